//! The manifest: the files of an index, their content and its settings.

use std::cmp::Ordering;
use std::fs;
use std::io::Write;
use std::path::Path;

use bincode::{Decode, Encode};

use super::layout::Layout;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::store::{codec, sync_directory};

/// Name of the file; if it exists, all other files are complete.
const NAME: &str = "manifest";
const KEY: &[u8] = b"shards";
/// Version of the list; others are refused.
const FORMAT: u32 = 1;

/// A file of one family, and its range of rows.
///
/// See [`Manifest`] for an example.
///
/// [`Manifest`] has an example.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Shard {
    /// Number of the family, as in [`Layout::rows`](super::Layout::rows).
    pub family: u32,
    /// Name within the directory.
    pub file: String,
    /// Number of documents, postings or fingerprints in it.
    pub members: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3 of all bytes.
    pub checksum: u64,
    /// Key of the first row.
    pub first: Vec<u8>,
    /// Key of the last row.
    pub last: Vec<u8>,
}

impl Shard {
    pub(super) fn begin(family: u32, file: String, first: &[u8]) -> Self {
        let (first, last) = (first.to_vec(), Vec::new());
        Self { family, file, members: 0, bytes: 0, checksum: 0, first, last }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.family.cmp(&other.family).then_with(|| self.first.cmp(&other.first))
    }
}

/// The list of all files of an index written as shards.
///
/// ```
/// use hamdex::plan::Plan;
/// use hamdex::build::shards::{Layout, Manifest, Shard, ShardWriter};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// let layout = Layout::new(Plan::named("4", 64)?, 3, "")?;
/// let mut rows = Vec::new();
/// layout.rows(b"page", 0b0111_u64, |family, key, fingerprint| {
///     rows.push((family, key.to_vec(), fingerprint));
/// })?;
/// let mut writer = ShardWriter::<u64>::new(directory, "part-0", &layout)?;
/// for (family, key, fingerprint) in &rows {
///     writer.push(*family, key, *fingerprint)?;
/// }
/// Manifest::new(&layout, writer.finish()?)?.write(directory)?;
///
/// let manifest = Manifest::read(directory)?;
/// assert_eq!((manifest.bits(), manifest.documents(), manifest.fingerprints()), (64, 1, 1));
/// let first: &Shard = &manifest.shards()[0];
/// assert_eq!((&first.file[..], first.members), ("part-0-000.sst", 1));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Manifest {
    format: u32,
    bits: u32,
    distance: u32,
    plan: String,
    pipeline: String,
    /// By family, then by first key.
    shards: Vec<Shard>,
}

impl Manifest {
    /// Combines the descriptions of all writers to a manifest.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if files of a family overlap, a family is missing, or
    /// families have different documents.
    pub fn new(layout: &Layout, mut shards: Vec<Shard>) -> Result<Self> {
        shards.sort_by(Shard::order);
        let manifest = Self {
            format: FORMAT,
            bits: layout.plan.bits(),
            distance: layout.distance,
            plan: layout.plan.to_string(),
            pipeline: layout.pipeline.clone(),
            shards,
        };
        manifest
            .check()
            .map_err(|reason| Error::InvalidOption { name: "shards", reason })
            .map(|()| manifest)
    }

    /// Reads the manifest of a directory.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if there is none.
    /// - [`Error::Corrupt`] if it is damaged or its files contradict each other.
    /// - [`Error::FormatVersion`] if its version is later.
    pub fn read(directory: impl AsRef<Path>) -> Result<Self> {
        let path = directory.as_ref().join(NAME);
        let bytes = fs::read(&path).map_err(|e| Error::io(&path, e))?;
        let manifest: Self = codec::decode("shard manifest", KEY, &bytes)?;
        if manifest.format != FORMAT {
            let (stored, supported) = (manifest.format, FORMAT);
            return Err(Error::FormatVersion { stored, supported });
        }
        manifest.check().map_err(|reason| Error::corrupt("shard manifest", reason))?;
        Ok(manifest)
    }

    /// Writes the manifest to the directory of its files and syncs it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if that fails.
    pub fn write(&self, directory: impl AsRef<Path>) -> Result<()> {
        let directory = directory.as_ref();
        let path = directory.join(NAME);
        let fail = |e| Error::io(&path, e);
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(fail)?;
        file.write_all(&codec::encode(KEY, self)).map_err(fail)?;
        file.as_file().sync_all().map_err(fail)?;
        file.persist(&path).map_err(|e| Error::io(&path, e.error))?;
        sync_directory(directory)
    }

    /// Returns the width of the fingerprints in bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the files, by family, then by first key.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> u64 {
        self.members(0)
    }

    /// Returns the number of distinct fingerprints.
    pub fn fingerprints(&self) -> u64 {
        self.members(2)
    }

    pub(super) fn layout(&self) -> Result<Layout> {
        let plan = Plan::parse(&self.plan, self.bits, self.distance, None)?;
        Layout::new(plan, self.distance, &self.pipeline)
    }

    pub(super) fn of_family(&self, family: u32) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter(move |shard| shard.family == family)
    }

    fn members(&self, family: u32) -> u64 {
        self.of_family(family).map(|shard| shard.members).sum()
    }

    /// Returns an error if the list contradicts itself.
    fn check(&self) -> Result<(), String> {
        let families = Plan::parse(&self.plan, self.bits, self.distance, None)
            .map(|plan| plan.tables().len() + 2)
            .map_err(|error| error.to_string())?;
        let families = u32::try_from(families).expect("a plan has few tables");
        for shard in &self.shards {
            let Shard { file, first, last, .. } = shard;
            let plain = Path::new(file).file_name().is_some_and(|name| name == file.as_str());
            if !plain {
                return Err(format!("{file:?} is not a file name"));
            }
            if first > last || shard.members == 0 || shard.family >= families {
                return Err(format!("{file} has an invalid range"));
            }
        }
        for (before, after) in self.shards.iter().zip(self.shards.iter().skip(1)) {
            if before.family == after.family && before.last >= after.first {
                return Err(format!("{} and {} overlap", before.file, after.file));
            }
            if before.order(after) != Ordering::Less {
                return Err(format!("{} and {} are out of order", before.file, after.file));
            }
        }
        let (documents, postings) = (self.members(0), self.members(1));
        if documents != postings {
            return Err(format!("{documents} documents have {postings} postings"));
        }
        let fingerprints = self.members(2);
        for table in 2..families {
            let members = self.members(table);
            if members != fingerprints || members > documents || (members == 0) != (documents == 0)
            {
                let table = table - 2;
                return Err(format!(
                    "table {table} has {members} fingerprints, table 0 {fingerprints}, of \
                     {documents} documents"
                ));
            }
        }
        Ok(())
    }
}
