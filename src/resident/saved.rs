//! Tables in a file, which any number of processes map instead of building their own.
//!
//! The file is the tables as they are in memory, in pages of 4,096 bytes: a page with the head,
//! then directory, columns and checksums of one table after another. See "Files" in `RESIDENT.md`.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bincode::{Decode, Encode};
use memmap2::Mmap;
use rayon::prelude::*;

use super::array::Section;
use super::cut::Cut;
use super::guard::Guard;
use super::table::Table;
use super::{BLOCK_BITS, ResidentTables, directory_bits, require_countable};
use crate::error::{Error, Result};
use crate::exclusion;
use crate::fingerprint::Fingerprint;
use crate::mapping;
use crate::plan::Costs;
use crate::store::{codec, rename_durably};

const MAGIC: &[u8; 8] = b"hamdexrt";

/// Version of the file's layout.
const FORMAT: u32 = 1;

/// The head's record follows the magic, the format and the record's length.
const RECORD: usize = MAGIC.len() + 8;

/// Every part begins at a multiple of this.
const PAGE: usize = 4096;

const KEY: &[u8] = b"resident";

/// What the arrays of a file mean.
#[derive(Debug, Encode, Decode)]
struct Head {
    bits: u32,
    len: u64,
    bucket_bits: u32,
    cell_bits: u32,
    /// The bytes of [`ORDER`], as the machine that wrote the file stores it.
    order: [u8; 4],
    /// What the caller wants to recognise the file by.
    origin: Vec<u8>,
    tables: Vec<TableHead>,
}

impl Head {
    /// Describes a set of tables that are not written yet.
    fn new<F: Fingerprint>(
        len: usize,
        (bucket_bits, cell_bits): (u32, u32),
        origin: Vec<u8>,
    ) -> Self {
        let (len, tables) = (len as u64, Vec::new());
        Self { bits: F::BITS, len, bucket_bits, cell_bits, order: order(), origin, tables }
    }
}

/// The checksums of the parts of a table that are read as a whole.
#[derive(Debug, Encode, Decode)]
struct TableHead {
    directory: u32,
    sums: u32,
}

const ORDER: u32 = 0x0102_0304;

fn order() -> [u8; 4] {
    bytemuck::cast(ORDER)
}

impl<F: Fingerprint> ResidentTables<F> {
    /// Writes the tables to a file, for [`open`](Self::open).
    ///
    /// Writes `PATH.new` first and renames it, so that processes that have the earlier file open
    /// keep it. The file survives a power loss. Machines with another order of bytes refuse it.
    /// Returns its size in bytes, about a thousandth more than [`bytes`](Self::bytes).
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`], also if there is a file that does not hold tables.
    ///
    /// ```
    /// use hamdex::resident::ResidentTables;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages.tables");
    /// ResidentTables::build(&[0b0000_u64, 0b0111])?.save(&path)?;
    /// let tables = ResidentTables::<u64>::open(&path)?;
    /// assert_eq!(tables.search(0b0001, 2)?.len(), 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<u64> {
        let path = path.as_ref();
        [path, &new_name(path)].into_iter().try_for_each(require_own)?;
        self.verify()?;
        let head = Head::new::<F>(self.len, self.first().directory(), Vec::new());
        write(path, head, |writer| self.tables.iter().map(|table| writer.table(table)).collect())
    }

    /// Maps the tables of a file, which all processes share in memory.
    ///
    /// Reads the directories, about half a byte per fingerprint of large sets, and each part of the
    /// members when a search first needs it, after comparing it with its checksum. Nobody may
    /// write to the file while it is open; [`save`](Self::save) replaces it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`], [`Error::FormatVersion`] for the file of a later version,
    /// [`Error::WidthMismatch`], and [`Error::Corrupt`] for damage. Later, all searches return
    /// [`Error::Corrupt`] once one of them has met a damaged part.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        Self::map(path, &file, &read_head(path, &file)?, Costs::default())
    }

    /// Compares the whole file with its checksums, on all threads of rayon's current pool.
    ///
    /// Does nothing for tables that are not from a file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if a part does not match.
    ///
    /// ```
    /// use hamdex::resident::ResidentTables;
    ///
    /// ResidentTables::build(&[0b0000_u64, 0b0111])?.verify()?;
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn verify(&self) -> Result<()> {
        if exclusion::alone() {
            self.tables.iter().for_each(Table::require_all);
        } else {
            self.tables.par_iter().for_each(Table::require_all);
        }
        self.require_intact()
    }

    /// Writes tables of distinct fingerprints to a file; `None` if they exceed the budget.
    ///
    /// Replaces any file of that name, which must be the caller's. Returns the size of the file in
    /// bytes. Holds one table in memory at a time.
    pub(crate) fn save_distinct(
        members: &[F],
        budget: usize,
        path: &Path,
        origin: Vec<u8>,
    ) -> Result<Option<u64>> {
        require_countable(members.len())?;
        let Some(tables) = Self::tables_within(members.len(), budget) else { return Ok(None) };
        let (bucket_bits, cell_bits) = directory_bits(members.len());
        let head = Head::new::<F>(members.len(), (bucket_bits, cell_bits), origin);
        let written = write(path, head, |writer| {
            let cuts = (0..tables).map(|block| Cut::new::<F>(block, bucket_bits));
            cuts.map(|cut| writer.table(&Table::build(cut, cell_bits, members))).collect()
        });
        written.map(Some)
    }

    /// Maps a file if it was saved with this origin; `None` if there is none or it has another.
    ///
    /// The origin is asked for if there is a file.
    pub(crate) fn open_of(
        path: &Path,
        origin: impl FnOnce() -> Result<Vec<u8>>,
        costs: Costs,
    ) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|e| Error::io(path, e))?,
        };
        let head = read_head(path, &file)?;
        if head.origin != origin()? {
            return Ok(None);
        }
        Self::map(path, &file, &head, costs).map(Some)
    }

    fn map(path: &Path, file: &File, head: &Head, costs: Costs) -> Result<Self> {
        if head.bits != F::BITS {
            return Err(Error::WidthMismatch { stored: head.bits, wanted: F::BITS });
        }
        let mapped = mapping::map(file).map_err(|e| Error::io(path, e))?;
        let (tables, len) = tables::<F>(&Arc::new(mapped), head).map_err(|part| {
            Error::corrupt(path.display().to_string(), format!("{part} is damaged"))
        })?;
        let directory = (head.bucket_bits, head.cell_bits);
        let mut opened = Self::of_tables(tables, len, directory, costs);
        opened.file = Some(path.to_owned());
        // Scans of small sets read everything, without looking at checksums.
        if opened.own_blocks.is_some() {
            opened.verify()?;
        }
        Ok(opened)
    }

    /// Returns true if the tables are in a mapped file.
    pub(crate) fn is_mapped(&self) -> bool {
        self.file.is_some()
    }

    /// Fails if a search met a part of the file that does not match its checksum.
    #[inline]
    pub(super) fn require_intact(&self) -> Result<()> {
        self.file.as_deref().map_or(Ok(()), |path| self.require_intact_in(path))
    }

    #[inline(never)]
    fn require_intact_in(&self, path: &Path) -> Result<()> {
        let damaged = |(number, table): (usize, &Table)| Some((number, table.damaged()?));
        match self.tables.iter().enumerate().find_map(damaged) {
            None => Ok(()),
            Some((table, page)) => Err(Error::corrupt(
                path.display().to_string(),
                format!("page {page} of the members of table {table} does not match its checksum"),
            )),
        }
    }
}

/// Finds the tables of a mapped file. The error names the part that does not fit.
fn tables<F: Fingerprint>(
    file: &Arc<Mmap>,
    head: &Head,
) -> std::result::Result<(Vec<Table>, usize), String> {
    let counts = 1..=ResidentTables::<F>::MOST_TABLES as usize;
    let fits = counts.contains(&head.tables.len())
        && (1..=BLOCK_BITS).contains(&head.bucket_bits)
        && head.cell_bits <= BLOCK_BITS;
    let len = usize::try_from(head.len).ok().filter(|_| fits && u32::try_from(head.len).is_ok());
    let len = len.ok_or_else(|| "the head".to_owned())?;
    let mut at = PAGE;
    let mut tables = Vec::new();
    for (block, sums) in (0..).zip(&head.tables) {
        let cut = Cut::new::<F>(block, head.bucket_bits);
        let short = || format!("table {block}");
        let (starts, stride) = Table::lengths(cut, head.cell_bits, len);
        let starts = section::<u32>(file, &mut at, starts).ok_or_else(short)?;
        let columns = section::<u16>(file, &mut at, stride * cut.columns()).ok_or_else(short)?;
        let pages = Guard::sums_of(size_of_val(columns.as_slice()));
        let pages = section::<u32>(file, &mut at, pages).ok_or_else(short)?;
        if checksum(starts.as_slice()) != sums.directory {
            return Err(format!("the directory of table {block}"));
        }
        if checksum(pages.as_slice()) != sums.sums {
            return Err(format!("the list of checksums of table {block}"));
        }
        let guard = Guard::new(pages);
        let table = Table::saved(cut, head.cell_bits, len, (starts, columns), guard);
        tables.push(table.ok_or_else(|| format!("the directory of table {block}"))?);
    }
    if at == file.len() { Ok((tables, len)) } else { Err("the end of the file".to_owned()) }
}

/// Takes the next part of a file.
fn section<T: bytemuck::Pod>(file: &Arc<Mmap>, at: &mut usize, len: usize) -> Option<Section<T>> {
    let section = Section::new(file, *at, len)?;
    *at = (*at + size_of_val(section.as_slice())).next_multiple_of(PAGE);
    Some(section)
}

fn checksum<T: bytemuck::Pod>(items: &[T]) -> u32 {
    crc32fast::hash(bytemuck::cast_slice(items))
}

/// Reads and checks the head of a file.
fn read_head(path: &Path, mut file: &File) -> Result<Head> {
    let damaged =
        |detail: &str| Error::corrupt(path.display().to_string(), format!("the head {detail}"));
    let mut page = [0; PAGE];
    match file.read_exact(&mut page) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Err(damaged("is not complete"));
        }
        read => read.map_err(|e| Error::io(path, e))?,
    }
    let number = |at: usize| {
        let bytes = page[at..].first_chunk().expect("the numbers are within the page");
        u32::from_be_bytes(*bytes)
    };
    if !page.starts_with(MAGIC) {
        return Err(damaged("is not that of saved tables"));
    }
    if number(MAGIC.len()) != FORMAT {
        return Err(Error::FormatVersion { stored: number(MAGIC.len()), supported: FORMAT });
    }
    let record = page[RECORD..].get(..number(MAGIC.len() + 4) as usize);
    let record = record.ok_or_else(|| damaged("is too long"))?;
    let head: Head = codec::decode(&path.display().to_string(), KEY, record)?;
    if head.order != order() {
        return Err(damaged("was written by a machine with another order of bytes"));
    }
    Ok(head)
}

/// A file that is being written.
struct Writer {
    file: BufWriter<File>,
    path: PathBuf,
}

/// Writes a file under another name, and renames it once it is complete. Returns its size.
fn write(
    path: &Path,
    mut head: Head,
    fill: impl FnOnce(&mut Writer) -> Result<Vec<TableHead>>,
) -> Result<u64> {
    let new = new_name(path);
    let filled = File::create(&new).map_err(|e| Error::io(&new, e)).and_then(|file| {
        let mut writer =
            Writer { file: BufWriter::with_capacity(1 << 20, file), path: new.clone() };
        writer.put(MAGIC)?;
        head.tables = fill(&mut writer)?;
        writer.finish(&head)
    });
    match filled {
        Ok(bytes) => rename_durably(&new, path).map(|()| bytes),
        Err(error) => {
            // The first error says more than one of clearing up.
            let _ = fs::remove_file(&new);
            Err(error)
        }
    }
}

/// Returns the name of a file while it is being written.
fn new_name(path: &Path) -> PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    PathBuf::from(new)
}

/// Fails if a file exists that does not begin like one of these.
fn require_own(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened.and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start)),
    }
    .map_err(|e| Error::io(path, e))?;
    if start.is_empty() || start == MAGIC {
        return Ok(());
    }
    let foreign = std::io::Error::new(
        std::io::ErrorKind::AlreadyExists,
        "the file exists and does not hold saved tables",
    );
    Err(Error::io(path, foreign))
}

impl Writer {
    /// Writes bytes and fills their last page.
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let rest = bytes.len().next_multiple_of(PAGE) - bytes.len();
        let written = self.file.write_all(bytes);
        written
            .and_then(|()| self.file.write_all(&[0; PAGE][..rest]))
            .map_err(|e| Error::io(&self.path, e))
    }

    fn table(&mut self, table: &Table) -> Result<TableHead> {
        let (starts, columns) = table.arrays();
        let columns = bytemuck::cast_slice(columns);
        let sums = Guard::sums(columns);
        self.put(bytemuck::cast_slice(starts))?;
        self.put(columns)?;
        self.put(bytemuck::cast_slice(&sums))?;
        Ok(TableHead { directory: checksum(starts), sums: checksum(&sums) })
    }

    /// Writes the head and syncs the file. Returns its size.
    fn finish(mut self, head: &Head) -> Result<u64> {
        let record = codec::encode(KEY, head);
        let length = u32::try_from(record.len()).ok().filter(|_| record.len() <= PAGE - RECORD);
        let Some(length) = length else {
            let reason = format!("a head of {} bytes exceeds a page", record.len());
            return Err(Error::InvalidOption { name: "saved tables", reason });
        };
        let mut page = MAGIC.to_vec();
        page.extend_from_slice(&FORMAT.to_be_bytes());
        page.extend_from_slice(&length.to_be_bytes());
        page.extend_from_slice(&record);
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| {
            self.file.write_all(&page)?;
            self.file.flush()?;
            self.file.get_ref().sync_all()?;
            self.file.get_ref().metadata().map(|file| file.len())
        });
        written.map_err(|e| Error::io(&self.path, e))
    }
}
