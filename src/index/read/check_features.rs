//! Checking candidates: compares the stored feature sets of near documents with a query's.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::core::Header;
use crate::store::codec::{self, Document};
use crate::store::{Family, Snapshot};
use crate::verify::{Evidence, FeatureSet, Verification};

/// Reads the feature set of a stored document. Returns `None` if it has none.
pub(crate) fn features_of<F: Fingerprint>(
    snapshot: &Snapshot,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    match snapshot.get(Family::Docs, key)? {
        Some(bytes) => Ok(codec::decode::<Document<F>>("docs", key, &bytes)?.features),
        None => Ok(None),
    }
}

/// A verification over the documents of one snapshot.
#[derive(Clone, Copy)]
pub(crate) struct Checker<'a> {
    snapshot: &'a Snapshot,
    verification: Verification,
}

impl<'a> Checker<'a> {
    /// Returns `None` if every candidate passes.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        header: &Header,
        verification: Verification,
    ) -> Result<Option<Self>> {
        verification.validate()?;
        match verification.needs() {
            Evidence::Nothing => Ok(None),
            Evidence::Features if header.keeps_features => {
                Ok(Some(Self { snapshot, verification }))
            }
            Evidence::Features => Err(Error::NoFeatureSets),
            Evidence::Text => Err(not_kept("edit compares texts")),
            Evidence::Phrases => Err(not_kept("contains compares all words")),
        }
    }

    /// Returns an error if evidence from the caller does not decode.
    pub(crate) fn require_evidence(evidence: &[u8]) -> Result<()> {
        FeatureSet::check(evidence)
            .map_err(|error| Error::InvalidOption { name: "evidence", reason: error.to_string() })
    }

    /// Reads the evidence of a stored document.
    pub(crate) fn evidence<F: Fingerprint>(&self, key: &[u8]) -> Result<Vec<u8>> {
        features_of::<F>(self.snapshot, key)?.ok_or_else(|| missing(key))
    }

    /// Compares two pieces of evidence. An error for damaged stored evidence names `key`.
    pub(crate) fn compare(
        &self,
        distance: u32,
        ours: &[u8],
        stored: &[u8],
        key: &[u8],
    ) -> Result<Option<f64>> {
        self.verification.check(distance, ours, stored).map_err(|error| {
            let Error::Corrupt { detail, .. } = error else { return error };
            Error::corrupt("docs", format!("record of key {}: {detail}", key.escape_ascii()))
        })
    }
}

/// Returns the error for a check of data that an index does not store.
fn not_kept(what: &str) -> Error {
    let reason = format!("{what}, which an index does not keep; use jaccard or zhou");
    Error::InvalidOption { name: "verify", reason }
}

/// Returns the error for a document stored without features.
pub(crate) fn missing(key: &[u8]) -> Error {
    Error::NoFeatureSet { key: key.escape_ascii().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Index, IndexOptions, Query};
    use crate::verify::DuplicateRule;

    /// Returns an index with valid records whose feature sets do not decode.
    fn damaged(path: &std::path::Path) -> Index<u64> {
        let index = Index::create(path, &IndexOptions::new().keep_features(true)).unwrap();
        index.insert(b"a", 1).unwrap();
        index.insert(b"b", 1).unwrap();
        for key in [b"a", b"b"] {
            let document = Document { fingerprint: 1_u64, features: Some(vec![0x80, key[0]]) };
            let mut batch = index.shared.store.batch().unwrap();
            batch.put_document(key, &codec::encode(key, &document));
            batch.commit().unwrap();
        }
        index.shared.committer.withdraw();
        index
    }

    #[test]
    fn damaged_features_are_an_error_that_names_the_document() {
        let dir = tempfile::tempdir().unwrap();
        let index = damaged(dir.path());
        let check = Verification::Jaccard(0.0);
        let near = DuplicateRule::new(3).verify(check);
        let good = FeatureSet::from_hashes(&[1 << 40]).encode();
        let refused = [
            index.search(Query::new(1).verify(check, good)).map(drop),
            index.pairs(near, &(), &mut |_| Ok(())).map(drop),
            index.clusters(near, &()).map(drop),
        ];
        for refused in refused {
            let Err(Error::Corrupt { family, detail }) = refused else { panic!("{refused:?}") };
            assert_eq!(family, "docs");
            assert!(detail.starts_with("record of key "), "{detail}");
        }
        let report = index.check(&()).unwrap();
        assert_eq!(report.problem_count, 2, "{:?}", report.problems);
        assert!(report.problems[0].starts_with("document a: "), "{:?}", report.problems);
    }
}
