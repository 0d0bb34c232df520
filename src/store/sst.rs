//! SST files: blocks of rising entries become finished table files outside the database.

use std::path::Path;

use rocksdb::{Options, SstFileWriter};
use self_cell::self_cell;

use super::tuning::{MIN_MEMORY, Tuning};
use super::{Family, engine_error};
use crate::error::Result;

/// Rising entries that go into one file, in one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct SstBlock {
    bytes: Vec<u8>,
    /// Where each entry's key and value end.
    ends: Vec<(u32, u32)>,
}

impl SstBlock {
    /// Appends an entry; keys must rise.
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

    /// Bytes of memory that its content takes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<(u32, u32)>()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Settings that the files of one family are written with.
pub(crate) struct SstOptions {
    options: Options,
    family: Family,
}

impl SstOptions {
    pub(super) fn new(options: Options, family: Family) -> Self {
        Self { options, family }
    }

    /// Begins a new file.
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
    /// Appends the entries of a block, which lie behind those written before.
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

    /// Ends the file and syncs it.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.writer.finish().map_err(|e| engine_error(&self.family.to_string(), e))
    }
}

self_cell!(
    struct WithOptions {
        owner: SstOptions,
        #[covariant]
        dependent: SstFile,
    }
);

/// A file being written where there is no database, with the settings that one would have.
pub(crate) struct LoneSstFile(WithOptions);

impl LoneSstFile {
    /// Begins a new file of a family.
    pub(crate) fn create(family: Family, path: &Path) -> Result<Self> {
        let options = Tuning::new(MIN_MEMORY, 1).family(&family.name(1));
        let options = SstOptions::new(options, family);
        WithOptions::try_new(options, |options| options.create(path)).map(Self)
    }

    /// Appends the entries of a block, which lie behind those written before.
    pub(crate) fn append(&mut self, block: &SstBlock) -> Result<()> {
        self.0.with_dependent_mut(|_, file| file.append(block))
    }

    /// Ends the file and syncs it.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.0.with_dependent_mut(|_, file| file.end())
    }
}
