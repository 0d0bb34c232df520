//! The manifest: which files belong together, what is in them and what they are made with.

use std::cmp::Ordering;
use std::fs;
use std::io::Write;
use std::path::Path;

use bincode::{Decode, Encode};

use super::layout::Layout;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::store::{codec, sync_directory};

/// Name of the file; its presence says that all others are whole.
const NAME: &str = "manifest";
const KEY: &[u8] = b"shards";
/// Version of the list; one that is not known is refused.
const FORMAT: u32 = 1;

/// One file of one family.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Shard {
    /// Number of the family, as [`Layout::rows`](super::Layout::rows) gives it.
    pub family: u32,
    /// Name within the directory.
    pub file: String,
    /// Documents, postings or fingerprints in it.
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

/// Every file of an index of shards.
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
    /// Puts together what all writers wrote.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] where files of a family overlap, a family is missing, or families
    /// do not have the same documents.
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
    /// [`Error::Io`] where there is none, [`Error::Corrupt`] for a damaged one or one whose files
    /// contradict each other, [`Error::FormatVersion`] for one of a later version.
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

    /// Writes the manifest to the directory of its files; on return it is on the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] as the system reports it.
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

    /// Returns the files, by family and then by first key.
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

    /// Tells what contradicts itself.
    fn check(&self) -> Result<(), String> {
        let families = Plan::parse(&self.plan, self.bits, self.distance, None)
            .map(|plan| plan.tables().len() + 2)
            .map_err(|error| error.to_string())?;
        let families = u32::try_from(families).expect("a plan has few tables");
        for shard in &self.shards {
            let Shard { file, first, last, .. } = shard;
            let plain = Path::new(file).file_name().is_some_and(|name| name == file.as_str());
            if !plain {
                return Err(format!("{file:?} is no name of a file"));
            }
            if first > last || shard.members == 0 || shard.family >= families {
                return Err(format!("{file} has no sound range"));
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
                    "table {table} has {members} fingerprints, the first one {fingerprints}, of \
                     {documents} documents"
                ));
            }
        }
        Ok(())
    }
}
