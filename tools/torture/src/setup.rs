//! Setups: settings of an index drawn from a seed, equal in every process, and its handles.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use hamdex::any::{AnyIndex, AnyReader};
use hamdex::build::BuildOptions;
use hamdex::inspect::CheckReport;
use hamdex::interop::rocksdb::{Options, WriteBatch};
use hamdex::interop::{Attached, HostDb, Staged};
use hamdex::plan::Plan;
use hamdex::verify::FeatureSet;
use hamdex::{Durability, Error, IndexOptions, Result, StoreErrorKind, each_width, for_width};

/// Name of an index in a host's database.
const NAME: &str = "near";

/// A document: key, fingerprint, and features if the index keeps them.
pub(crate) type Document = (Vec<u8>, u128, Option<Vec<u8>>);

/// Settings of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the settings are independent")]
pub(crate) struct Setup {
    pub(crate) bits: u32,
    plan: &'static str,
    distance: u32,
    mebibytes: usize,
    pub(crate) resident: bool,
    pub(crate) features: bool,
    folds: bool,
    pub(crate) attached: bool,
    /// Whether keys are row numbers, which a build packs.
    pub(crate) rows: bool,
}

impl Setup {
    /// Draws settings. One index in five is attached to a host's database.
    pub(crate) fn drawn(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed ^ 0x7365_7475_7073);
        let bits = *rng.choice(&[32, 64, 128]).unwrap_or(&64);
        Self {
            bits,
            plan: rng.choice(&["4", "10", "16", "6x2", "5x1"]).unwrap_or(&"4"),
            distance: rng.u32(0..=4),
            mebibytes: *rng.choice(&[16, 24, 64]).unwrap_or(&16),
            resident: rng.u32(0..3) == 0,
            features: rng.u32(0..3) == 0,
            folds: rng.u32(0..3) == 0,
            attached: rng.u32(0..5) == 0,
            rows: rng.bool(),
        }
    }

    /// Returns these settings for an index with its own directory.
    pub(crate) fn own(self) -> Self {
        Self { attached: false, ..self }
    }

    /// Returns the largest distance of a search, at most `wanted`.
    pub(crate) fn at_most(&self, wanted: u32) -> u32 {
        wanted.min(self.bits / 4)
    }

    /// Returns the low bits of a number as a fingerprint.
    pub(crate) fn narrow(&self, wide: u128) -> u128 {
        wide & (u128::MAX >> (128 - self.bits))
    }

    fn creation(&self) -> Result<IndexOptions> {
        let plan = Plan::parse(self.plan, self.bits, self.distance, None)?;
        Ok(IndexOptions::new()
            .plan(plan)
            .distance(self.distance)
            .keep_features(self.features)
            .memory(self.mebibytes << 20)
            .resident(if self.resident { 1 << 20 } else { 0 }))
    }

    /// Returns the settings for opening.
    pub(crate) fn opening(&self) -> IndexOptions {
        IndexOptions::new()
            .memory(self.mebibytes << 20)
            .resident(if self.resident { 1 << 20 } else { 0 })
            .background_merge(self.folds)
    }

    /// Creates an index.
    pub(crate) fn create(self, path: &Path) -> Result<Handle> {
        if self.attached {
            return self.attach(path, true);
        }
        Ok(self.handle(Kind::Own(AnyIndex::create(path, self.bits, &self.creation()?)?)))
    }

    /// Opens an index.
    pub(crate) fn open(self, path: &Path) -> Result<Handle> {
        if self.attached {
            return self.attach(path, false);
        }
        Ok(self.handle(Kind::Own(AnyIndex::open_with(path, &self.opening())?)))
    }

    /// Opens an index for reading only.
    pub(crate) fn open_read_only(self, path: &Path) -> Result<Handle> {
        let options = self.opening().read_only(true);
        Ok(self.handle(Kind::Own(AnyIndex::open_with(path, &options)?)))
    }

    /// Opens an index, or creates it if it does not exist.
    pub(crate) fn open_or_create(self, path: &Path) -> Result<Handle> {
        match self.open(path) {
            Err(Error::NotFound { .. }) => self.create(path),
            opened => opened,
        }
    }

    fn handle(self, kind: Kind) -> Handle {
        Handle { setup: self, kind }
    }

    fn attach(self, path: &Path, creates: bool) -> Result<Handle> {
        if !creates && !path.join("CURRENT").exists() {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        let settings = self.creation()?;
        let mut host = Options::default();
        host.create_if_missing(true);
        host.create_missing_column_families(true);
        let guest: Result<Guest> = for_width!(self.bits, F => {
            let families = Attached::<F>::families(NAME, &settings)?;
            let db = HostDb::open_cf_descriptors(&host, path, families)
                .map_err(|error| Error::Store {
                    kind: StoreErrorKind::Other,
                    message: error.to_string(),
                })?;
            let db = Arc::new(db);
            let near = match Attached::<F>::open_with(Arc::clone(&db), NAME, &self.opening()) {
                Err(Error::NotFound { .. }) if creates => Attached::create(db, NAME, &settings)?,
                opened => opened?,
            };
            Ok(near.into())
        });
        Ok(self.handle(Kind::Guest(guest?)))
    }

    /// Begins a bulk build.
    pub(crate) fn build(&self, path: &Path) -> Result<hamdex::any::AnyBuilder> {
        let options = BuildOptions::new().memory(16 << 20);
        hamdex::any::AnyBuilder::create(path, self.bits, &self.creation()?, &options)
    }

    /// Returns the features that belong to a fingerprint, if the index keeps any.
    pub(crate) fn features_of(&self, fingerprint: u128) -> Option<Vec<u8>> {
        if !self.features {
            return None;
        }
        let seed = u64::try_from(fingerprint & u128::from(u64::MAX)).unwrap_or_default();
        let rng = &mut Rng::with_seed(seed);
        let hashes: Vec<u64> = (0..rng.u32(1..20)).map(|_| rng.u64(..)).collect();
        Some(FeatureSet::from_hashes(&hashes).encode())
    }

    /// Adds the features to documents.
    pub(crate) fn with_features(&self, documents: &[(Vec<u8>, u128)]) -> Vec<Document> {
        let document = |(key, f): &(Vec<u8>, u128)| (key.clone(), *f, self.features_of(*f));
        documents.iter().map(document).collect()
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits, plan {}, {} MiB", self.bits, self.plan, self.mebibytes)?;
        for (is, name) in [
            (self.resident, "resident"),
            (self.features, "features"),
            (self.folds, "background merge"),
            (self.attached, "attached"),
            (self.rows, "row numbers"),
        ] {
            if is {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

/// An index in a host's database.
#[derive(Debug)]
enum Guest {
    Bits32(Attached<u32>),
    Bits64(Attached<u64>),
    Bits128(Attached<u128>),
}

macro_rules! from_attached {
    ($($variant:ident $int:ty),*) => {
        $(impl From<Attached<$int>> for Guest {
            fn from(near: Attached<$int>) -> Self {
                Self::$variant(near)
            }
        })*
    };
}
from_attached!(Bits32 u32, Bits64 u64, Bits128 u128);

/// Runs an expression with the attached index of one width.
macro_rules! guest {
    ($guest:expr, $near:ident => $body:expr) => {
        match $guest {
            Guest::Bits32($near) => $body,
            Guest::Bits64($near) => $body,
            Guest::Bits128($near) => $body,
        }
    };
}

#[derive(Debug)]
enum Kind {
    Own(AnyIndex),
    Guest(Guest),
}

/// An open index and its settings.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) setup: Setup,
    kind: Kind,
}

/// Runs an expression with the index of a handle.
macro_rules! with {
    ($handle:expr, $index:ident => $body:expr) => {
        match &$handle.kind {
            Kind::Own(any) => each_width!(AnyIndex, any, $index => $body),
            Kind::Guest(guest) => guest!(guest, near => {
                let $index = near.index();
                $body
            }),
        }
    };
}

impl Handle {
    /// Returns the index of a directory.
    pub(crate) fn own(&self) -> Result<&AnyIndex> {
        match &self.kind {
            Kind::Own(index) => Ok(index),
            Kind::Guest(_) => Err(Error::Attached { what: "make copies" }),
        }
    }

    pub(crate) fn reader(&self) -> Result<AnyReader> {
        with!(self, index => Ok(index.reader()?.into()))
    }

    /// Inserts documents, in a host's database through a batch of the host.
    pub(crate) fn insert(
        &self,
        documents: &[(Vec<u8>, u128)],
        durability: Durability,
    ) -> Result<()> {
        let documents = self.setup.with_features(documents);
        match &self.kind {
            Kind::Own(index) => index.insert_batch(&documents, durability).map(drop),
            Kind::Guest(guest) => guest!(guest, near => {
                let documents = narrow_all(&documents)?;
                let mut staged = Staged::new();
                for document in &documents {
                    staged.insert_document(document);
                }
                near.commit(&staged, WriteBatch::default(), durability).map(drop)
            }),
        }
    }

    /// Offers documents; returns the distance to the near one for each that was rejected.
    pub(crate) fn insert_if_new(
        &self,
        documents: &[(Vec<u8>, u128)],
        near: u32,
    ) -> Result<Vec<Option<u32>>> {
        let documents = self.setup.with_features(documents);
        with!(self, index => {
            let documents = narrow_all(&documents)?;
            let found = index.insert_batch_if_new(&documents, near, Durability::Buffered)?;
            Ok(found.into_iter().map(|near| near.map(|near| near.distance)).collect())
        })
    }

    pub(crate) fn remove(&self, keys: &[Vec<u8>], durability: Durability) -> Result<u64> {
        with!(self, index => index.remove_batch(keys, durability))
    }

    pub(crate) fn merge(&self) -> Result<()> {
        with!(self, index => index.merge(&()).map(drop))
    }

    pub(crate) fn merge_step(&self) -> Result<bool> {
        with!(self, index => index.merge_step())
    }

    pub(crate) fn flush(&self) -> Result<()> {
        with!(self, index => index.flush())
    }

    pub(crate) fn compact(&self) -> Result<()> {
        with!(self, index => index.compact().map(drop))
    }

    pub(crate) fn load_resident(&self) -> Result<()> {
        with!(self, index => index.load_resident(1 << 20).map(drop))
    }

    pub(crate) fn checkpoint(&self, target: &Path) -> Result<()> {
        each_width!(AnyIndex, self.own()?, index => index.checkpoint(target))
    }

    /// Checks past the caches; in a host's database, with them.
    pub(crate) fn check_deep(&self) -> Result<CheckReport> {
        with!(self, index => {
            if self.setup.attached { index.check(&()) } else { index.check_deep(&()) }
        })
    }
}

/// A document of one width.
type Narrow<'a, F> = (&'a [u8], F, Option<&'a [u8]>);

fn narrow_all<F: hamdex::Fingerprint>(documents: &[Document]) -> Result<Vec<Narrow<'_, F>>> {
    let mut narrow = Vec::with_capacity(documents.len());
    for (key, fingerprint, features) in documents {
        narrow.push((key.as_slice(), F::narrow(*fingerprint)?, features.as_deref()));
    }
    Ok(narrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setup_makes_an_index_that_keeps_what_it_is_given() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            let setup = Setup::drawn(seed);
            seen.insert((setup.bits, setup.attached, setup.features));
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("index");
            let index = setup.open_or_create(&path).unwrap();
            index.insert(&[(b"key".to_vec(), 5)], Durability::Synced).unwrap();
            drop(index);
            let reader = setup.open(&path).unwrap().reader().unwrap();
            assert_eq!(reader.get(b"key").unwrap(), Some(5), "{setup}");
            assert_eq!(reader.features(b"key").unwrap(), setup.features_of(5), "{setup}");
        }
        assert!(seen.len() > 8, "{seen:?}");
    }
}
