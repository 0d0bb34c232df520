//! Shared by the test binaries: seeded numbers, data sets and the linear scan as the oracle.
#![allow(dead_code)] // each test binary uses a part of it

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hamdex::join::Cluster;
use hamdex::plan::Plan;
use hamdex::verify::DuplicateRule;
use hamdex::{Durability, Fingerprint, Index, IndexOptions, Match, Result};

/// The documents that an index must hold.
pub(crate) type Model<F> = BTreeMap<Vec<u8>, F>;

/// A pair of documents: both keys in order, and their distance.
pub(crate) type KeyPair = (Vec<u8>, Vec<u8>, u32);

/// Seeded numbers (splitmix64), equal on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound, which must not be 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() % bound as u64).unwrap()
    }

    /// A number from 0 to the limit.
    pub(crate) fn up_to(&mut self, limit: u32) -> u32 {
        u32::try_from(self.number() % (u64::from(limit) + 1)).unwrap()
    }

    pub(crate) fn fingerprint<F: Fingerprint>(&mut self) -> F {
        F::truncate(u128::from(self.number()) << 64 | u128::from(self.number()))
    }

    /// The fingerprint with exactly `flips` bits flipped.
    pub(crate) fn flipped<F: Fingerprint>(&mut self, fingerprint: F, flips: u32) -> F {
        let mut near = fingerprint;
        while near.distance(fingerprint) < flips {
            let bit = F::truncate(1) << self.up_to(F::BITS - 1);
            near = near & !bit | !fingerprint & bit;
        }
        near
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Unrelated fingerprints.
pub(crate) fn random<F: Fingerprint>(rng: &mut Rng, count: usize) -> Vec<F> {
    (0..count).map(|_| rng.fingerprint()).collect()
}

/// Centres, and copies at all distances up to the limit.
pub(crate) fn clustered<F: Fingerprint>(rng: &mut Rng, count: usize, limit: u32) -> Vec<F> {
    let centres: Vec<F> = random(rng, count.div_ceil(12));
    (0..count)
        .map(|_| {
            let centre = *rng.pick(&centres);
            let flips = rng.up_to(limit);
            rng.flipped(centre, flips)
        })
        .collect()
}

/// Few fingerprints, each repeated, the first ones most often.
pub(crate) fn repeated<F: Fingerprint>(rng: &mut Rng, count: usize) -> Vec<F> {
    let values: Vec<F> = random(rng, 9);
    (0..count).map(|_| values[rng.below(values.len()).min(rng.below(values.len()))]).collect()
}

/// Fingerprints that differ only in their last eighth.
pub(crate) fn one_prefix<F: Fingerprint>(rng: &mut Rng, count: usize) -> Vec<F> {
    let prefix: F = rng.fingerprint();
    let mask = F::high_mask(F::BITS - F::BITS / 8);
    (0..count).map(|_| prefix & mask | rng.fingerprint::<F>() & !mask).collect()
}

/// A mix of all sets, with all zeros, all ones and their neighbours.
pub(crate) fn mixed<F: Fingerprint>(rng: &mut Rng, count: usize) -> Vec<F> {
    let part = count / 4;
    let mut all = random(rng, part);
    all.extend(clustered::<F>(rng, part, F::MAX_DISTANCE));
    all.extend(repeated::<F>(rng, part));
    all.extend(one_prefix::<F>(rng, part));
    all.extend([F::ZERO, F::ONES, F::truncate(1), !F::truncate(1), F::high_mask(1)]);
    for at in (1..all.len()).rev() {
        all.swap(at, rng.below(at + 1));
    }
    all
}

/// Gives each fingerprint a distinct key, of any length and in random order.
pub(crate) fn keyed<F: Fingerprint>(rng: &mut Rng, fingerprints: &[F]) -> Vec<(Vec<u8>, F)> {
    let mut documents: Vec<_> = fingerprints
        .iter()
        .enumerate()
        .map(|(number, fingerprint)| {
            let mut key = rng.number().to_be_bytes()[..rng.below(9)].to_vec();
            key.extend_from_slice(&u32::try_from(number).unwrap().to_be_bytes());
            (key, *fingerprint)
        })
        .collect();
    // A key may be a prefix of another one, and contain any byte.
    if let [first, second, third, ..] = documents.as_mut_slice() {
        first.0 = vec![0];
        second.0 = vec![0, 0];
        third.0 = vec![0xff; 1024];
    }
    documents
}

/// Compares the query with every document: the expected result of every search.
pub(crate) fn scan<F: Fingerprint>(model: &Model<F>, query: F, distance: u32) -> Vec<Match<F>> {
    let mut matches: Vec<_> = model
        .iter()
        .map(|(key, &fingerprint)| Match {
            key: key.clone(),
            fingerprint,
            distance: fingerprint.distance(query),
            similarity: None,
        })
        .filter(|found| found.distance <= distance)
        .collect();
    matches.sort_by(|a, b| (a.distance, &a.key).cmp(&(b.distance, &b.key)));
    matches
}

/// Compares every document with every later one.
pub(crate) fn scan_pairs<F: Fingerprint>(model: &Model<F>, distance: u32) -> Vec<KeyPair> {
    let mut pairs = Vec::new();
    for (at, (a, one)) in model.iter().enumerate() {
        for (b, other) in model.iter().skip(at + 1) {
            if one.distance(*other) <= distance {
                pairs.push((a.clone(), b.clone(), one.distance(*other)));
            }
        }
    }
    pairs.sort();
    pairs
}

/// Follows near documents until no group grows, largest group first.
pub(crate) fn scan_clusters<F: Fingerprint>(model: &Model<F>, distance: u32) -> Vec<Vec<Vec<u8>>> {
    let mut rest: Vec<_> = model.iter().collect();
    let mut groups = Vec::new();
    while let Some(first) = rest.pop() {
        let mut group = vec![first];
        let mut at = 0;
        while let Some(&(_, fingerprint)) = group.get(at) {
            let near = rest.extract_if(.., |(_, other)| fingerprint.distance(**other) <= distance);
            group.extend(near);
            at += 1;
        }
        let mut keys: Vec<_> = group.into_iter().map(|(key, _)| key.clone()).collect();
        keys.sort();
        if keys.len() > 1 {
            groups.push(keys);
        }
    }
    groups.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    groups
}

/// An index of these documents, inserted in parts, and its directory.
pub(crate) fn index_of<F: Fingerprint>(
    documents: &[(Vec<u8>, F)],
) -> Result<(tempfile::TempDir, Index<F>)> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path().join("index"), &options::<F>("4"))?;
    for part in documents.chunks(10_000) {
        index.insert_batch(part, Durability::Buffered)?;
    }
    Ok((directory, index))
}

/// All pairs that the index returns, in the order of [`scan_pairs`].
pub(crate) fn pairs_of<F: Fingerprint>(
    index: &Index<F>,
    near: impl Into<DuplicateRule>,
) -> Result<Vec<KeyPair>> {
    let mut pairs = Vec::new();
    let count = index.pairs(near, &(), &mut |pair| {
        pairs.push((pair.a.to_vec(), pair.b.to_vec(), pair.distance));
        Ok(())
    })?;
    assert_eq!(count, pairs.len() as u64, "pairs counted and pairs visited");
    pairs.sort();
    Ok(pairs)
}

pub(crate) fn clusters_of<F: Fingerprint>(
    index: &Index<F>,
    near: impl Into<DuplicateRule>,
) -> Result<Vec<Vec<Vec<u8>>>> {
    let clusters = index.clusters(near, &())?;
    Ok(clusters.into_iter().map(|Cluster { keys, .. }| keys).collect())
}

pub(crate) fn documents_of<F: Fingerprint>(index: &Index<F>) -> Result<Model<F>> {
    let documents = index.documents()?.collect::<Result<Vec<_>>>()?;
    assert!(documents.is_sorted_by(|a, b| a.0 < b.0), "documents are not sorted by key");
    Ok(documents.into_iter().collect())
}

/// Asserts that the index is sound and holds exactly these documents.
pub(crate) fn assert_holds<F: Fingerprint>(index: &Index<F>, model: &Model<F>, context: &str) {
    let documents = documents_of(index).unwrap();
    assert_eq!(documents.len(), model.len(), "documents stored, {context}");
    assert!(documents == *model, "other documents than expected, {context}");
    assert_eq!(index.len().unwrap(), model.len() as u64, "{context}");
    let report = index.check(&()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new(), "{context}");
    assert_eq!(report.problem_count, 0, "{context}");
    assert_eq!(report.documents, model.len() as u64, "{context}");
    let mut distinct: Vec<F> = model.values().copied().collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(report.fingerprints, distinct.len() as u64, "{context}");
    let stats = index.stats(&()).unwrap();
    assert_eq!(stats.fingerprints, distinct.len() as u64, "{context}");
    assert_eq!(stats.documents, model.len() as u64, "{context}");
}

/// Options of an index that uses little memory.
pub(crate) fn options<F: Fingerprint>(plan: &str) -> IndexOptions {
    let plan = Plan::parse(plan, F::BITS, 3, None).unwrap();
    IndexOptions::new().plan(plan).memory(16 << 20)
}

/// Copies a directory with its subdirectories.
///
/// The engine of an open database removes files in the background, so the copy is repeated if the
/// directory changed meanwhile.
pub(crate) fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    for _ in 0..1000 {
        let before = lengths(from);
        let copied = copy_once(from, to);
        let at_rest =
            matches!((&before, lengths(from)), (Ok(before), Ok(after)) if *before == after);
        match copied {
            Ok(()) if at_rest => return Ok(()),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            // Only if nothing was copied can the directory itself be missing.
            Err(error) if !from.exists() => return Err(error),
            Ok(()) | Err(_) => std::fs::remove_dir_all(to)?,
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(std::io::Error::other(format!("{} changes all the time", from.display())))
}

/// Lengths of all files below a directory.
fn lengths(directory: &Path) -> std::io::Result<BTreeMap<PathBuf, u64>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(lengths(&entry.path())?);
        } else {
            files.insert(entry.path(), entry.metadata()?.len());
        }
    }
    Ok(files)
}

fn copy_once(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_once(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The table files of a database, sorted by name.
pub(crate) fn table_files(directory: &Path) -> Vec<PathBuf> {
    files(directory, |name| Path::new(name).extension().is_some_and(|end| end == "sst"))
}

/// Every file in a directory whose name passes, sorted by name.
pub(crate) fn files(directory: &Path, mut keep: impl FnMut(&str) -> bool) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&mut keep))
        .collect();
    files.sort();
    files
}
