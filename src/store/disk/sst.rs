//! SST files: blocks of ascending entries become table files outside the database.

use std::path::Path;

use rocksdb::{Options, SstFileWriter};
#[cfg(feature = "distributed")]
use self_cell::self_cell;

use crate::error::Result;
#[cfg(feature = "distributed")]
use crate::store::open::tuning::{MIN_MEMORY, Tuning};
use crate::store::{Family, engine_error};

/// Ascending entries of one file, in one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct SstBlock {
    bytes: Vec<u8>,
    /// End offsets of each entry's key and value.
    ends: Vec<(u32, u32)>,
}

impl SstBlock {
    /// Appends an entry. Keys must be ascending.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let end = |bytes: &Vec<u8>| u32::try_from(bytes.len()).expect("blocks stay below 4 GiB");
        self.bytes.extend_from_slice(key);
        let key_end = end(&self.bytes);
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, end(&self.bytes)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<(u32, u32)>()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Settings for the files of one family.
pub(crate) struct SstOptions {
    options: Options,
    family: Family,
}

impl SstOptions {
    pub(in crate::store) fn new(options: Options, family: Family) -> Self {
        Self { options, family }
    }

    /// Creates a new file.
    pub(crate) fn create(&self, path: &Path) -> Result<SstFile<'_>> {
        let writer = SstFileWriter::create(&self.options);
        writer.open(path).map_err(|e| engine_error(&self.family.to_string(), e))?;
        Ok(SstFile { writer, family: self.family })
    }
}

/// A file being written.
pub(crate) struct SstFile<'a> {
    writer: SstFileWriter<'a>,
    family: Family,
}

impl SstFile<'_> {
    /// Appends the entries of a block, which must follow all earlier entries.
    #[expect(clippy::indexing_slicing, reason = "a block counts the bytes that it takes in")]
    pub(crate) fn append(&mut self, block: &SstBlock) -> Result<()> {
        let mut start = 0_usize;
        for &(key_end, value_end) in &block.ends {
            let (key_end, value_end) = (key_end as usize, value_end as usize);
            let key = &block.bytes[start..key_end];
            let value = &block.bytes[key_end..value_end];
            self.writer.put(key, value).map_err(|e| engine_error(&self.family.to_string(), e))?;
            start = value_end;
        }
        Ok(())
    }

    /// Completes the file and syncs it.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.writer.finish().map_err(|e| engine_error(&self.family.to_string(), e))
    }
}

#[cfg(feature = "distributed")]
self_cell!(
    struct WithOptions {
        owner: SstOptions,
        #[covariant]
        dependent: SstFile,
    }
);

/// A file being written without a database, with the settings that a database would use.
#[cfg(feature = "distributed")]
pub(crate) struct LoneSstFile(WithOptions);

#[cfg(feature = "distributed")]
impl LoneSstFile {
    /// Creates a new file of a family.
    pub(crate) fn create(family: Family, path: &Path) -> Result<Self> {
        let options = Tuning::new(MIN_MEMORY, 1).last_level(&family.name(1));
        let options = SstOptions::new(options, family);
        WithOptions::try_new(options, |options| options.create(path)).map(Self)
    }

    /// Appends the entries of a block, which must follow all earlier entries.
    pub(crate) fn append(&mut self, block: &SstBlock) -> Result<()> {
        self.0.with_dependent_mut(|_, file| file.append(block))
    }

    /// Completes the file and syncs it.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.0.with_dependent_mut(|_, file| file.end())
    }
}
