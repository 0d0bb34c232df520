//! `RocksDB` settings: each family gets suitable blocks, filters and buffers. And pressure: what
//! its properties say about background work, write delays and memory use.

use std::ffi::CStr;

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType,
    DBRecoveryMode, Env, LogLevel, Options, SliceTransform, properties,
};

use crate::error::Result;
use crate::store::{Family, Store, engine_error};

/// Smallest memory budget that leaves every family a usable buffer.
pub(crate) const MIN_MEMORY: usize = 16 << 20;

/// Share of the memory budget that an index may use outside of the store, as one in this many.
pub(crate) const BESIDE_SHARE: usize = 8;

/// Largest write buffer of a family. The skip lists of all families fit the processor's cache.
const MAX_WRITE_BUFFER: usize = 2 << 20;

/// Largest level above the last one, in bytes.
///
/// Small flushed files are merged with a level of this size, instead of with all of the family: in
/// a steady mix of inserts and removals compactions take half the time.
const LEVEL_BASE: u64 = 16 << 20;

/// The same for families that are rewritten in the order of their keys.
///
/// Their new files overlap little of the last level, so a level between costs as much as it saves,
/// and each search reads it. Without it, searches in an index of ten million documents took 0.8 of
/// the time after some minutes of writes.
const LEVEL_BASE_IN_ORDER: u64 = 256 << 20;

/// Size of the files of a level with the largest size, four times as much in each level below.
const FILE: u64 = 4 << 20;

/// Number of new files that start a compaction, `RocksDB`'s default.
const NEW_FILES: i32 = 4;

/// The same for families that every insert adds entries to.
///
/// Each compaction of new files rewrites the level below as a whole, because their keys are spread
/// over all of it, and that level is seven times as large as four of them. Searches and inserts
/// skip most new files by their filters.
const NEW_FILES_OF_INSERTS: i32 = 16;

/// New files beyond those that start a compaction until writes slow down, and until they stop.
/// `RocksDB`'s defaults.
const SLOWED: i32 = 16;
const STOPPED: i32 = 32;

/// Size of the filter of a memory table's prefixes, as a share of its write buffer.
const PREFIXES_IN_MEMORY: f64 = 0.02;

/// Options that the bindings have no setter for, in `RocksDB`'s own syntax.
///
/// - Each insert into a skip list begins at the last one, in place of its head, because the batches
///   of a write have ascending keys in each family.
/// - Blocks that a flush or a compaction writes enter the cache, those of a compaction as the first
///   to leave it. A search beside writers does not wait for blocks that were in memory before:
///   1,000 searches a second beside two writers took 91 us in place of 121, p99 260 for 385.
/// - Index blocks are marked if the distances of their keys differ by less than 0.8 of the average,
///   as those of random fingerprints do, and are then searched by interpolation. Searches of 10
///   million random ones took 0.93 to 0.96 of the time; interpolation in skewed blocks took 1.1.
const FURTHER: &str = "memtable_insert_with_hint_prefix_extractor=rocksdb.CappedPrefix.0;\
    block_based_table_factory={prepopulate_block_cache=kFlushAndCompaction;\
    index_block_search_type=kAuto;uniform_cv_threshold=0.8}";

/// Gives the lowest CPU priority to the compactions of all databases of the process.
pub(crate) fn lower_compactions() -> Result<()> {
    let mut env = Env::new().map_err(|e| engine_error("environment", e))?;
    env.lower_thread_pool_cpu_priority();
    Ok(())
}

/// The cache of blocks, with the memory that it may use.
#[derive(Clone)]
pub(crate) struct BlockCache {
    cache: Cache,
    bytes: usize,
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl BlockCache {
    fn new(bytes: usize) -> Self {
        Self { cache: Cache::new_hyper_clock_cache(bytes, 0), bytes }
    }

    /// Returns its memory if it leaves nothing to others, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Leaves this much of its memory to others, and takes back what it left before.
    pub(crate) fn leave(&self, bytes: usize) {
        self.cache.clone().set_capacity(self.bytes.saturating_sub(bytes));
    }
}

/// The memory budget, divided by use.
#[derive(Clone)]
pub(crate) struct Tuning {
    cache: BlockCache,
    write_buffer: usize,
    all_write_buffers: usize,
}

impl std::fmt::Debug for Tuning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tuning").field("write_buffer", &self.write_buffer).finish_non_exhaustive()
    }
}

impl Tuning {
    /// Divides the budget: a quarter for write buffers, an eighth for what an index holds beside the
    /// store, the rest for the block cache.
    pub(crate) fn new(memory: usize, families: usize) -> Self {
        let memory = memory.max(MIN_MEMORY);
        let all_write_buffers = memory / 4;
        let write_buffer = (all_write_buffers / families.max(1)).clamp(1 << 20, MAX_WRITE_BUFFER);
        let cache = BlockCache::new(memory - all_write_buffers - memory / BESIDE_SHARE);
        Self { cache, write_buffer, all_write_buffers }
    }

    pub(super) fn cache(&self) -> &BlockCache {
        &self.cache
    }

    pub(crate) fn database(&self) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_max_background_jobs(2);
        options.set_db_write_buffer_size(self.all_write_buffers);
        options.set_max_total_wal_size(256 << 20);
        options.set_bytes_per_sync(1 << 20);
        options.set_max_open_files(1000);
        options.set_keep_log_file_num(2);
        options.set_log_level(LogLevel::Warn);
        // A power loss leaves a torn last record. Everything before it is complete.
        options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        // Otherwise a synced log before the last one could be missing or cut, and leave a gap.
        // Every opening must track logs: RocksDB 11.8 crashes on a null pointer in
        // `DBImpl::Recover` if a database with tracked logs is opened for reading without tracking.
        options.set_track_and_verify_wals_in_manifest(true);
        options
    }

    /// Options for an existing database. Missing parts are not created.
    pub(crate) fn database_as_it_is(&self) -> Options {
        let mut options = self.database();
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        options
    }

    pub(crate) fn descriptor(&self, name: &str) -> ColumnFamilyDescriptor {
        ColumnFamilyDescriptor::new(name, self.family(name))
    }

    /// Options of a family, by its name.
    ///
    /// A cursor that looks for one prefix skips memory tables and files without it, which are most
    /// of the new ones.
    pub(crate) fn family(&self, name: &str) -> Options {
        let family = Family::of_name(name);
        self.options(family, family.and_then(Family::prefix_bytes))
    }

    /// Options of the files that a bulk build writes.
    ///
    /// As all files of the last level they have no filter of prefixes: what is looked for is mostly
    /// there, and the filters would grow with the index.
    pub(crate) fn last_level(&self, name: &str) -> Options {
        self.options(Family::of_name(name), None)
    }

    fn options(&self, family: Option<Family>, prefix_bytes: Option<usize>) -> Options {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&self.cache.cache);
        blocks.set_format_version(6);
        let mut options = Options::default();
        options.set_write_buffer_size(self.write_buffer);
        options.set_max_write_buffer_number(4);
        let new_files = match family {
            Some(Family::Docs | Family::Postings | Family::Table(0)) => NEW_FILES_OF_INSERTS,
            _ => NEW_FILES,
        };
        options.set_level_zero_file_num_compaction_trigger(new_files);
        options.set_level_zero_slowdown_writes_trigger(new_files + SLOWED);
        options.set_level_zero_stop_writes_trigger(new_files + STOPPED);
        options.set_max_bytes_for_level_base(match family {
            Some(Family::Table(_) | Family::DocPacks | Family::PostingPacks) => LEVEL_BASE_IN_ORDER,
            _ => LEVEL_BASE,
        });
        options.set_target_file_size_base(FILE);
        options.set_target_file_size_multiplier(4);
        if let Some(Family::Table(_) | Family::DocPacks | Family::PostingPacks) = family {
            // Runs and packs are already encoded, and their keys share too little for prefix
            // compression.
            options.set_compression_type(DBCompressionType::None);
            // A block holds eight or nine runs, or seven packs. Smaller blocks were not faster and
            // have a larger index.
            blocks.set_block_size(8 << 10);
            blocks.set_block_restart_interval(1);
        } else {
            // Nine in ten entries are in the last level. Those above it are soon rewritten.
            options.set_compression_type(DBCompressionType::None);
            options.set_bottommost_compression_type(DBCompressionType::Zstd);
            options.set_bottommost_compression_options(-14, 1, 0, 0, true);
            blocks.set_block_size(8 << 10);
        }
        if family == Some(Family::Docs) {
            // Most inserts look up keys that are not stored. The filters have 1.25 bytes for each
            // document, the one part of open files that grows beyond the memory budget. So they
            // are cut into parts that the cache holds and drops like blocks.
            blocks.set_bloom_filter(10.0, false);
            blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
            blocks.set_partition_filters(true);
            blocks.set_cache_index_and_filter_blocks(true);
            blocks.set_pin_top_level_index_and_filter(true);
        }
        if let Some(bytes) = prefix_bytes {
            options.set_prefix_extractor(SliceTransform::create_fixed_prefix(bytes));
            options.set_memtable_prefix_bloom_ratio(PREFIXES_IN_MEMORY);
            options.set_optimize_filters_for_hits(true);
            blocks.set_bloom_filter(10.0, false);
            blocks.set_whole_key_filtering(false);
        }
        options.set_block_based_table_factory(&blocks);
        options.get_options_from_string(FURTHER).expect("RocksDB parses its own options")
    }
}

/// Background work and write delays of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub(crate) writes_stopped: bool,
    pub(crate) writes_slowed_to: u64,
    pub(crate) background_errors: u64,
    pub(crate) flushes: u64,
    pub(crate) compactions: u64,
    pub(crate) bytes_to_compact: u64,
}

impl Store {
    pub(crate) fn pressure(&self) -> Result<Pressure> {
        Ok(Pressure {
            writes_stopped: self.property(Family::Docs, properties::IS_WRITE_STOPPED)? > 0,
            writes_slowed_to: self.property(Family::Docs, properties::ACTUAL_DELAYED_WRITE_RATE)?,
            background_errors: self.property(Family::Docs, properties::BACKGROUND_ERRORS)?,
            flushes: self.property(Family::Docs, properties::NUM_RUNNING_FLUSHES)?,
            compactions: self.property(Family::Docs, properties::NUM_RUNNING_COMPACTIONS)?,
            bytes_to_compact: self.properties(properties::ESTIMATE_PENDING_COMPACTION_BYTES)?,
        })
    }

    /// Returns the bytes of block cache, write buffers, and indexes and filters outside the cache.
    pub(crate) fn memory_usage(&self) -> Result<(u64, u64, u64)> {
        Ok((
            // All families share one cache.
            self.property(Family::Docs, properties::BLOCK_CACHE_USAGE)?,
            self.properties(properties::SIZE_ALL_MEM_TABLES)?,
            self.properties(properties::ESTIMATE_TABLE_READERS_MEM)?,
        ))
    }

    /// Returns the memory that the cache of blocks may use, in bytes.
    #[cfg(test)]
    pub(crate) fn cache_capacity(&self) -> usize {
        let capacity = self.property(Family::Docs, properties::BLOCK_CACHE_CAPACITY).unwrap();
        usize::try_from(capacity).unwrap()
    }

    /// Returns the size of a family on disk and in memory tables, in bytes, with its packs.
    pub(crate) fn bytes(&self, family: Family) -> Result<u64> {
        let files = self.property(family, properties::LIVE_SST_FILES_SIZE)?;
        let bytes = files + self.property(family, properties::CUR_SIZE_ALL_MEM_TABLES)?;
        match family.packs(&self.header) {
            Some(packs) => Ok(bytes + self.bytes(packs)?),
            None => Ok(bytes),
        }
    }

    /// Returns the number of documents that the overlay stores or removes, roughly.
    ///
    /// None in an index without packs.
    pub(crate) fn entries_over_packs(&self) -> Result<u64> {
        match Family::Docs.packs(&self.header) {
            Some(_) => self.property(Family::Docs, properties::ESTIMATE_NUM_KEYS),
            None => Ok(0),
        }
    }

    /// Returns the sum of a property over all families.
    fn properties(&self, name: &CStr) -> Result<u64> {
        let families = self.families().chain([Family::Meta]);
        families.map(|family| self.property(family, name)).sum()
    }

    fn property(&self, family: Family, name: &CStr) -> Result<u64> {
        let found = self.db.property_int_value_cf(self.handle(family)?, name);
        let found = found.map_err(|e| engine_error(&family.to_string(), e))?;
        Ok(found.expect("RocksDB has every property that its bindings name"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::build::{BuildOptions, Builder};
    use crate::index::{Durability, Index, IndexOptions};
    use crate::store::{Access, Opening};

    /// Returns the options that `RocksDB` has stored with an index.
    fn options_of(index: &Path) -> String {
        let entries = std::fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path());
        let options = entries.filter(|path| path.to_string_lossy().contains("OPTIONS-"));
        std::fs::read_to_string(options.max().unwrap()).unwrap()
    }

    /// Returns how many index blocks of the first table are marked as even.
    fn uniform_blocks(fingerprint: fn(u64) -> u64) -> u64 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let (options, build) = (IndexOptions::new(), BuildOptions::new());
        let mut builder = Builder::<u64>::create(&path, &options, &build).unwrap();
        for row in 0..30_000_u64 {
            builder.push(&row.to_be_bytes(), fingerprint(row), row).unwrap();
        }
        builder.finish(&(), &mut |_, _| ()).unwrap();
        let used = options_of(&path);
        assert!(used.contains("index_block_search_type=kAuto"), "marked blocks are interpolated");
        let store = Opening::new(&path, MIN_MEMORY, Access::Read).unwrap().with_tables(4).unwrap();
        let properties = "rocksdb.aggregated-table-properties";
        figure(&store, Family::Table(0), properties, "# uniform blocks=")
    }

    /// Returns a number that `RocksDB` states about the files of a family.
    fn figure(store: &Store, family: Family, properties: &str, name: &str) -> u64 {
        let family = store.handle(family).unwrap();
        let found = store.db.property_value_cf(family, properties);
        let found = found.unwrap().expect("RocksDB has this property");
        let (_, count) = found.split_once(name).expect("one of its numbers");
        count.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    }

    #[test]
    fn documents_are_compressed_in_the_last_level_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let (options, build) = (IndexOptions::new(), BuildOptions::new());
        let spread = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // A letter holds four bits, which zstd finds, and neighbours share few letters.
        let key = |row: u64| format!("{:016x}{:016x}", spread(row), spread(!row));
        let document = |row: u64| (key(row), spread(row));
        let mut builder = Builder::<u64>::create(&path, &options, &build).unwrap();
        for row in 0..20_000 {
            let (key, fingerprint) = document(row);
            builder.push(key.as_bytes(), fingerprint, row).unwrap();
        }
        builder.finish(&(), &mut |_, _| ()).unwrap();
        let index = Index::<u64>::open(&path).unwrap();
        let added: Vec<_> = (20_000..40_000).map(document).collect();
        index.insert_batch(&added, Durability::Buffered).unwrap();
        index.flush().unwrap();
        drop(index);
        let store = Opening::new(&path, MIN_MEMORY, Access::Read).unwrap().with_tables(4).unwrap();
        for family in [Family::Docs, Family::Postings] {
            let share = |level: u32| {
                let properties = format!("rocksdb.aggregated-table-properties-at-level{level}");
                let of = |name| figure(&store, family, &properties, name);
                let raw = of("raw key size=") + of("raw value size=");
                assert!(raw > 0, "level {level} of {family} has entries");
                100 * of("data block size=") / raw
            };
            let (new, last) = (share(0), share(6));
            assert!(new > 66 && last < 66, "{family}: {new} and {last} % of the bytes");
        }
    }

    #[test]
    fn what_is_rewritten_in_order_has_no_level_between_up_to_256_mib() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let (options, build) = (IndexOptions::new(), BuildOptions::new());
        let mut builder = Builder::<u64>::create(&path, &options, &build).unwrap();
        builder.push(&1_u64.to_be_bytes(), 1, 1).unwrap();
        builder.finish(&(), &mut |_, _| ()).unwrap();
        let used = options_of(&path);
        for (family, mib) in [
            (Family::Docs, 16),
            (Family::Postings, 16),
            (Family::Table(0), 256),
            (Family::Table(3), 256),
            (Family::DocPacks, 256),
            (Family::PostingPacks, 256),
        ] {
            let section = format!("[CFOptions \"{}\"]", family.name(2));
            let (_, of_family) = used.split_once(&section).expect("it has options");
            let (_, bytes) = of_family.split_once("max_bytes_for_level_base=").unwrap();
            let bytes: u64 = bytes.lines().next().unwrap().parse().unwrap();
            assert_eq!(bytes >> 20, mib, "{family}");
        }
    }

    #[test]
    fn even_fingerprints_are_sought_by_interpolation_and_skewed_ones_are_not() {
        assert_eq!(uniform_blocks(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15)), 1);
        assert_eq!(uniform_blocks(|row| (1 << (row % 48)) + row), 0);
    }
}
