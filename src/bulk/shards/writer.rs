//! The writer: writes the sorted rows of a range to one file per family.

use std::fs::File;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::layout::Layout;
use super::manifest::Shard;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::store::codec::{self, Document};
use crate::store::keys::{Kind, TableKey};
use crate::store::run::{self, RUN_MEMBERS};
use crate::store::{Family, LoneSstFile, SstBlock, read_some};

/// Bytes that are buffered before they are written to the file.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes the rows of one range of a sorted set to files.
///
/// Give every writer a different stem: then a failed attempt leaves only files that no manifest
/// lists. The [module](crate::build::shards) has an example.
pub struct ShardWriter<F> {
    directory: PathBuf,
    stem: String,
    layout: Layout,
    open: Option<Open>,
    last: Vec<u8>,
    /// Members of the run that is being filled.
    members: Vec<F>,
    record: Vec<u8>,
    written: Vec<Shard>,
}

impl<F> std::fmt::Debug for ShardWriter<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (directory, stem) = (&self.directory, &self.stem);
        f.debug_struct("ShardWriter")
            .field("directory", directory)
            .field("stem", stem)
            .finish_non_exhaustive()
    }
}

/// The file that is being written.
struct Open {
    family: Family,
    file: LoneSstFile,
    block: SstBlock,
    shard: Shard,
}

impl<F: Fingerprint> ShardWriter<F> {
    /// Creates a writer for files `stem-FAMILY.sst` in an existing directory.
    ///
    /// # Errors
    ///
    /// Returns [`Error::WidthMismatch`] if the width differs from the plan's.
    pub fn new(directory: impl AsRef<Path>, stem: &str, layout: &Layout) -> Result<Self> {
        layout.require_width::<F>()?;
        Ok(Self {
            directory: directory.as_ref().to_owned(),
            stem: stem.to_owned(),
            layout: layout.clone(),
            open: None,
            last: Vec::new(),
            members: Vec::new(),
            record: Vec::new(),
            written: Vec::new(),
        })
    }

    /// Writes the next row of [`Layout::rows`]; skips repeated rows of a table.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] if a document is repeated, or a row is out of order or not one of
    ///   the layout's.
    /// - [`Error::Io`] and [`Error::Store`] if the file cannot be written.
    pub fn push(&mut self, family: u32, key: &[u8], fingerprint: Option<F>) -> Result<()> {
        let before = self.open.as_ref().map(|open| open.shard.family);
        if before != Some(family) {
            if before.is_some_and(|before| before > family) {
                return Err(invalid("family", format!("{family} is pushed after a later one")));
            }
            self.close()?;
            let kind = self.layout.family(family)?;
            let name = format!("{}-{family:03}.sst", self.stem);
            let file = LoneSstFile::create(kind, &self.directory.join(&name))?;
            let shard = Shard::begin(family, name, key);
            self.open = Some(Open { family: kind, file, block: SstBlock::default(), shard });
        } else if key <= self.last.as_slice() {
            let equal = key == self.last;
            return match self.open.as_ref().map(|open| open.family) {
                Some(Family::Table(_)) if equal => Ok(()),
                _ if equal => {
                    Err(invalid("key", format!("document {} comes twice", key.escape_ascii())))
                }
                _ => Err(invalid("key", format!("{} is out of order", key.escape_ascii()))),
            };
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        let Some(open) = &mut self.open else { return Ok(()) };
        open.shard.members += 1;
        match open.family {
            Family::Docs | Family::DocPacks | Family::Meta => {
                let fingerprint = fingerprint
                    .ok_or_else(|| invalid("fingerprint", "a document has none".to_owned()))?;
                let document = Document { fingerprint, features: None };
                codec::encode_into(&mut self.record, key, &document);
                open.put(key, &self.record)
            }
            Family::Postings | Family::PostingPacks => open.put(key, &[]),
            Family::Table(_) => {
                let member = F::from_bytes(key).ok_or_else(|| {
                    invalid("key", format!("{} bytes are not a fingerprint", key.len()))
                })?;
                self.members.push(member);
                if self.members.len() == RUN_MEMBERS { self.put_run() } else { Ok(()) }
            }
        }
    }

    /// Finishes the last file and returns the descriptions of all files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] and [`Error::Store`] if the file cannot be written.
    pub fn finish(mut self) -> Result<Vec<Shard>> {
        self.close()?;
        Ok(self.written)
    }

    fn put_run(&mut self) -> Result<()> {
        let Some(&last) = self.members.last() else { return Ok(()) };
        let open = self.open.as_mut().expect("members wait for an open file");
        run::encode(&self.members, &mut self.record);
        self.members.clear();
        open.put(TableKey::new(Kind::Run, last).as_ref(), &self.record)
    }

    /// Finishes the open file.
    fn close(&mut self) -> Result<()> {
        self.put_run()?;
        let Some(Open { mut file, block, mut shard, .. }) = self.open.take() else { return Ok(()) };
        file.append(&block)?;
        file.finish()?;
        shard.last.clone_from(&self.last);
        (shard.bytes, shard.checksum) =
            checksum(&self.directory.join(&shard.file), &mut |_| Ok(()))?;
        self.written.push(shard);
        Ok(())
    }
}

impl Open {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.block.push(key, value);
        if self.block.memory() < BLOCK_BYTES {
            return Ok(());
        }
        self.file.append(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

fn invalid(name: &'static str, reason: String) -> Error {
    Error::InvalidOption { name, reason }
}

/// Reads a file and returns its length and checksum; calls `tick` after every piece.
pub(super) fn checksum(path: &Path, tick: &mut dyn FnMut(u64) -> Result<()>) -> Result<(u64, u64)> {
    let fail = |e| Error::io(path, e);
    let mut file = File::open(path).map_err(fail)?;
    let (mut hash, mut bytes) = (Xxh3::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = read_some(&mut file, &mut buffer).map_err(fail)?;
        if read == 0 {
            return Ok((bytes, hash.digest()));
        }
        hash.update(buffer.split_at(read).0);
        bytes += read as u64;
        tick(read as u64)?;
    }
}
