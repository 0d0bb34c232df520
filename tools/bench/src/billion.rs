//! One large index: build, check, searches on disk and in memory, and the join with planted pairs.
//!
//! Fingerprints are computed from their row, so nothing but the index is stored. Every fifth row is
//! a copy of an earlier one with 0 to 3 flipped bits, the others are random. Some of these pairs
//! must be found by the join, and a search of each must find as many documents as the join.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hamdex::build::{BuildOptions, Builder};
use hamdex::join::UnionFind;
use hamdex::plan::Costs;
use hamdex::verify::DuplicateRule;
use hamdex::{Index, IndexOptions, Query, Reader};

use crate::data::{Random, mix};
use crate::report;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Rows between two copies.
const COPY_EVERY: u64 = 5;
/// Planted pairs that are checked.
const PLANTED: u64 = 10_000;
/// Searches that are measured one by one, of each kind.
const SEARCHES: usize = 20_000;
const DISTANCE: u32 = 3;

/// Options of the measurements of one large index.
#[derive(clap::Args, Debug)]
pub(crate) struct Billion {
    /// Directory of the index; it is built if it is not there
    dir: PathBuf,
    /// Number of documents
    #[arg(long, default_value_t = 1_000_000_000)]
    count: u64,
    /// Memory of build and searches in MiB
    #[arg(long, default_value_t = 2048)]
    memory: usize,
    /// Memory of the join in MiB
    #[arg(long, default_value_t = 8192)]
    join_memory: usize,
    /// Memory of the resident fingerprints in MiB
    #[arg(long, default_value_t = 14_336)]
    resident_memory: usize,
    /// Queries of the batch
    #[arg(long, default_value_t = 1_000_000)]
    queries: usize,
    /// What to measure, in this order
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Step::ALL)]
    steps: Vec<Step>,
    /// Seed of all data
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// One measurement of the index.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Builds the index, and measures its size
    Build,
    /// Searches one by one
    Search,
    /// Searches as one batch
    Batch,
    /// Joins the index with itself, and compares the pairs with what was planted
    Join,
    /// Writes a spanning forest of the near pairs to a file, and reads it again
    Spanning,
    /// Joins by other tables, and compares all pairs with those of `join` and `spanning`
    Replanned,
    /// Reads every entry of the index
    Check,
    /// Saves the fingerprints to a file, maps it, and searches in memory
    Resident,
    /// Removes that file, loads the fingerprints into its own memory, and searches there
    Loaded,
}

impl Step {
    /// All but `Loaded`, which takes more memory than many machines have.
    const ALL: [Self; 8] = [
        Self::Build,
        Self::Search,
        Self::Batch,
        Self::Join,
        Self::Spanning,
        Self::Replanned,
        Self::Check,
        Self::Resident,
    ];
}

/// Measures what was asked for.
pub(crate) fn run(args: &Billion) -> Outcome<()> {
    report::head(&format!("{args:?}"));
    let rows = Rows { seed: args.seed, count: args.count };
    let (mut forest, mut joined) = (None, None);
    for step in &args.steps {
        forget_peak();
        match step {
            Step::Build => build(args, rows)?,
            Step::Search => search(args, rows)?,
            Step::Batch => batch(args, rows)?,
            Step::Join => joined = Some(join(args, rows)?),
            Step::Spanning => forest = Some(spanning(args)?),
            Step::Replanned => replanned(args, joined, forest.take())?,
            Step::Check => check(args)?,
            Step::Resident => resident(args, rows)?,
            Step::Loaded => loaded(args, rows)?,
        }
        if let Some(peak) = report::peak_memory() {
            report::row(&format!("{step:?}: peak memory"), &format!("{:.0} MB", peak / 1e6));
        }
    }
    Ok(())
}

/// The fingerprints of all rows.
#[derive(Clone, Copy)]
struct Rows {
    seed: u64,
    count: u64,
}

impl Rows {
    fn fingerprint(self, row: u64) -> u64 {
        let Some(original) = self.original(row) else { return self.random(row) };
        (0..u64::from(self.flips(row))).fold(self.random(original), |fingerprint, flip| {
            // Bits of different flips differ.
            fingerprint ^ 1 << (flip * 21 + self.random(row ^ flip << 60) % 21)
        })
    }

    fn random(self, row: u64) -> u64 {
        mix(mix(row.wrapping_add(self.seed << 40)).wrapping_add(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns the row that a row is a copy of, which is no copy itself.
    fn original(self, row: u64) -> Option<u64> {
        let is_copy = row % COPY_EVERY == COPY_EVERY - 1;
        is_copy.then(|| self.random(!row) % row / COPY_EVERY * COPY_EVERY)
    }

    /// Returns the number of flipped bits of a copy: 0 to 3.
    fn flips(self, copy: u64) -> u32 {
        (self.random(copy ^ 1 << 59) % 4).try_into().expect("below 4")
    }

    /// Returns the copies whose pairs are checked.
    fn planted(self) -> impl Iterator<Item = u64> {
        let step = (self.count / PLANTED).max(1).next_multiple_of(COPY_EVERY);
        (COPY_EVERY - 1..self.count).step_by(usize::try_from(step).unwrap_or(usize::MAX))
    }
}

fn build(args: &Billion, rows: Rows) -> Outcome<()> {
    let build = BuildOptions::new().memory(args.memory << 20);
    let (space, time) = with_space(&args.dir, || {
        let start = Instant::now();
        let mut builder = Builder::<u64>::create(&args.dir, &IndexOptions::new(), &build)?;
        for row in 0..rows.count {
            builder.push(&row.to_be_bytes(), rows.fingerprint(row), row)?;
        }
        builder.finish(&(), &mut |_, _| ())?;
        Ok(start.elapsed())
    })?;
    report::rate("build, documents and postings included", rows.count, time);
    let stats = Index::<u64>::open_read_only(&args.dir)?.stats(&())?;
    let per = |bytes: u64| format!("{:.1}", bytes as f64 / rows.count.max(1) as f64);
    let whole = stats.bytes_docs + stats.bytes_postings + stats.bytes_tables;
    let parts = [stats.bytes_docs, stats.bytes_postings, stats.bytes_tables].map(per).join(", ");
    report::row("bytes per document", &per(whole));
    report::row("of these docs, postings, tables", &parts);
    report::row("most bytes on disk during the build, per document", &per(space));
    Ok(())
}

fn search(args: &Billion, rows: Rows) -> Outcome<()> {
    let index = opened(args)?;
    searches(rows, "search", |query| Ok(index.search(Query::new(query).distance(DISTANCE))?.len()))
}

/// Measures searches one by one, of each kind.
fn searches(rows: Rows, name: &str, find: impl Fn(u64) -> Outcome<usize>) -> Outcome<()> {
    for (kind, near) in [("random", false), ("near stored ones", true)] {
        let mut found = 0;
        let mut times = Vec::with_capacity(SEARCHES);
        for query in rows.queries(SEARCHES, near) {
            let start = Instant::now();
            found += find(query)?;
            times.push(start.elapsed());
        }
        let name = format!("{name}, k = {DISTANCE}, {SEARCHES} queries {kind}, {found} matches");
        report::spread(&name, &mut times);
    }
    Ok(())
}

fn resident(args: &Billion, rows: Rows) -> Outcome<()> {
    let options = IndexOptions::new().memory(args.memory << 20);
    let budget = args.resident_memory << 20;
    let start = Instant::now();
    let saved = Index::<u64>::open_with(&args.dir, &options)?.save_resident(budget)?;
    let bytes = saved.ok_or("the fingerprints exceed --resident-memory")?;
    report::rate("fingerprints saved", rows.count, start.elapsed());
    report::row("bytes per document", &format!("{:.1}", bytes as f64 / rows.count.max(1) as f64));
    let index = opened(args)?;
    let start = Instant::now();
    load(&index, budget)?;
    report::row("saved fingerprints mapped", &format!("{:.3} s", start.elapsed().as_secs_f64()));
    searches_in_memory(args, rows, &index.reader()?)
}

fn loaded(args: &Billion, rows: Rows) -> Outcome<()> {
    match fs::remove_file(args.dir.join("hamdex.resident")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => (),
    }
    let index = opened(args)?;
    let start = Instant::now();
    load(&index, args.resident_memory << 20)?;
    report::rate("fingerprints loaded", rows.count, start.elapsed());
    searches_in_memory(args, rows, &index.reader()?)
}

fn load(index: &Index<u64>, budget: usize) -> Outcome<()> {
    let fits = index.load_resident(budget)?;
    if fits { Ok(()) } else { Err("the fingerprints exceed --resident-memory".into()) }
}

/// Searches before and after a batch, which reads most pages of a mapped file.
fn searches_in_memory(args: &Billion, rows: Rows, reader: &Reader<u64>) -> Outcome<()> {
    let near = |query| Ok(reader.near(query, DISTANCE)?.len());
    searches(rows, "first searches in memory", near)?;
    let queries: Vec<u64> = rows.queries(args.queries, true).collect();
    let start = Instant::now();
    let found: usize = reader.near_batch(&queries, DISTANCE)?.iter().map(Vec::len).sum();
    let name = format!("near_batch in memory, k = {DISTANCE}, near stored ones, {found} matches");
    report::rate(&name, queries.len() as u64, start.elapsed());
    searches(rows, "later searches in memory", near)
}

fn batch(args: &Billion, rows: Rows) -> Outcome<()> {
    let index = opened(args)?;
    let query = |fingerprint| Query::new(fingerprint).distance(DISTANCE);
    let queries: Vec<_> = rows.queries(args.queries, true).map(query).collect();
    let start = Instant::now();
    let found: usize = index.search_batch(&queries)?.iter().map(Vec::len).sum();
    let name = format!("search_batch, k = {DISTANCE}, near stored ones, {found} matches");
    report::rate(&name, queries.len() as u64, start.elapsed());
    Ok(())
}

impl Rows {
    /// Generates queries: random ones, or stored fingerprints with up to 3 flips.
    fn queries(self, count: usize, near: bool) -> impl Iterator<Item = u64> {
        let mut random = Random(self.seed ^ 0xabcd);
        (0..count).map(move |_| {
            if near {
                let row = random.below(self.count);
                random.flip(self.fingerprint(row), u64::from(DISTANCE))
            } else {
                random.next()
            }
        })
    }
}

/// The pairs of a join: their number, and a sum that does not depend on their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Joined {
    pairs: u64,
    sum: u64,
}

/// Joins an index with itself, and calls `visit` with rows and distance of each pair.
fn joined(
    index: &Index<u64>,
    args: &Billion,
    name: &str,
    mut visit: impl FnMut(u64, u64, u32) + Send,
) -> Outcome<Joined> {
    let near = DuplicateRule::new(DISTANCE).memory(args.join_memory << 20);
    let start = Instant::now();
    let mut sum = 0_u64;
    let pairs = index.pairs(near, &(), &mut |pair| {
        let (a, b) = (row_of(pair.a), row_of(pair.b));
        sum = sum.wrapping_add(mix(mix(a) ^ b ^ u64::from(pair.distance) << 60));
        visit(a, b, pair.distance);
        Ok(())
    })?;
    let name = format!("{name}, k = {DISTANCE}, {pairs} pairs of documents, sum {sum:016x}");
    report::rate(&name, args.count, start.elapsed());
    Ok(Joined { pairs, sum })
}

/// Joins by the tables that would be cheapest if comparing took thirty times as long.
fn replanned(
    args: &Billion,
    by_join: Option<Joined>,
    mut forest: Option<UnionFind>,
) -> Outcome<()> {
    let mut costs = Costs::default();
    costs.pair_ns *= 30.0;
    let options = options(args).costs(costs);
    let index = Index::open_with(&args.dir, &options)?;
    let mut apart = 0_u64;
    let found = joined(&index, args, "join with itself by other tables", |a, b, _| {
        if let Some(sets) = &mut forest {
            let [a, b] = [a, b].map(|row| u32::try_from(row).expect("rows were united as u32"));
            apart += u64::from(sets.find(a) != sets.find(b));
        }
    })?;
    if forest.is_some() {
        report::row("pairs that the forest does not connect", &apart.to_string());
    }
    match by_join {
        Some(by_join) if by_join != found => Err(format!("{by_join:?}, but {found:?}").into()),
        _ if apart > 0 => Err(format!("the forest does not connect {apart} pairs").into()),
        _ => Ok(()),
    }
}

/// Writes the pairs of a spanning forest as two row numbers each; returns the groups they connect.
fn spanning(args: &Billion) -> Outcome<UnionFind> {
    let index = opened(args)?;
    let near = DuplicateRule::new(DISTANCE).memory(args.join_memory << 20);
    let place = args.dir.parent().unwrap_or(&args.dir);
    let mut file = BufWriter::new(tempfile::tempfile_in(place)?);
    let start = Instant::now();
    let found = index.spanning_forest(near, place, &(), &mut |pair| {
        let written = file.write_all(pair.a).and_then(|()| file.write_all(pair.b));
        written.map_err(|error| hamdex::Error::InvalidOption {
            name: "dir",
            reason: error.to_string(),
        })
    })?;
    let mut file = file.into_inner()?;
    let name = format!("spanning forest, k = {DISTANCE}, {found} pairs of documents written");
    report::rate(&name, args.count, start.elapsed());
    if let Some(peak) = report::peak_memory() {
        report::row("peak memory of the forest", &format!("{:.0} MB", peak / 1e6));
    }
    file.rewind()?;
    let mut file = BufReader::new(file);
    let mut sets = UnionFind::new(u32::try_from(args.count)?);
    let mut pair = [0; 16];
    for at in 0..found {
        file.read_exact(&mut pair)?;
        let (a, b) = pair.split_at(8);
        if !sets.union(u32::try_from(row_of(a))?, u32::try_from(row_of(b))?) {
            return Err(format!("pair {at} connects what others connect").into());
        }
    }
    Ok(sets)
}

fn join(args: &Billion, rows: Rows) -> Outcome<Joined> {
    let index = opened(args)?;
    // The neighbours that the join finds of each planted copy.
    let mut neighbours: HashMap<u64, Vec<(u64, u32)>> =
        rows.planted().map(|copy| (copy, Vec::new())).collect();
    let found = joined(&index, args, "join with itself", |a, b, distance| {
        for (row, other) in [(a, b), (b, a)] {
            if row % COPY_EVERY == COPY_EVERY - 1
                && let Some(found) = neighbours.get_mut(&row)
            {
                found.push((other, distance));
            }
        }
    })?;
    let (mut planted, mut missed, mut differing) = (0_u64, 0_u64, 0_u64);
    for (&copy, near) in &mut neighbours {
        planted += 1;
        let original = rows.original(copy).ok_or("a planted row is a copy")?;
        missed += u64::from(!near.contains(&(original, rows.flips(copy))));
        let query = Query::new(rows.fingerprint(copy)).distance(DISTANCE);
        let mut by_search: Vec<_> = index
            .search(query)?
            .iter()
            .map(|found| (row_of(&found.key), found.distance))
            .filter(|(row, _)| *row != copy)
            .collect();
        by_search.sort_unstable();
        near.sort_unstable();
        differing += u64::from(by_search != *near);
    }
    let checked = format!("{planted} planted, {missed} missed; {differing} differ from a search");
    report::row("pairs of the join that were checked", &checked);
    if missed + differing > 0 { Err(checked.into()) } else { Ok(found) }
}

fn check(args: &Billion) -> Outcome<()> {
    let index = opened(args)?;
    let start = Instant::now();
    let found = index.check_deep(&())?;
    let name = format!("check --deep, {} problems", found.problems.len());
    report::rate(&name, args.count, start.elapsed());
    if found.problems.is_empty() { Ok(()) } else { Err(name.into()) }
}

fn opened(args: &Billion) -> Outcome<Index<u64>> {
    Ok(Index::open_with(&args.dir, &options(args))?)
}

fn options(args: &Billion) -> IndexOptions {
    IndexOptions::new().memory(args.memory << 20).read_only(true)
}

fn row_of(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("keys are row numbers"))
}

/// Runs `body` and returns the most bytes that the files of a directory had meanwhile.
fn with_space<T>(dir: &Path, body: impl FnOnce() -> Outcome<T>) -> Outcome<(u64, T)> {
    let (done, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                most.fetch_max(bytes_below(dir), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let result = body();
        done.store(true, Ordering::Relaxed);
        result
    });
    Ok((most.into_inner().max(bytes_below(dir)), result?))
}

/// Sums the files of a directory; files that vanish meanwhile are skipped.
fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_below(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Makes the system count the peak of memory anew, where it can.
fn forget_peak() {
    // Where that fails, the peak is that of all steps so far.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_pairs_have_their_distance() {
        let rows = Rows { seed: 7, count: 1_000_000 };
        let mut by_distance = [0; 4];
        for copy in rows.planted() {
            let original = rows.original(copy).unwrap();
            assert!(original < copy && rows.original(original).is_none());
            let differing = rows.fingerprint(copy) ^ rows.fingerprint(original);
            assert_eq!(differing.count_ones(), rows.flips(copy));
            by_distance[rows.flips(copy) as usize] += 1;
        }
        assert!(by_distance.iter().all(|&count| count > 2000), "{by_distance:?}");
    }

    #[test]
    fn a_small_index_passes_all_steps() {
        let dir = tempfile::tempdir().unwrap();
        let args = Billion {
            dir: dir.path().join("index"),
            count: 30_000,
            memory: 16,
            join_memory: 16,
            resident_memory: 16,
            queries: 1000,
            steps: [&Step::ALL[..], &[Step::Loaded]].concat(),
            seed: 7,
        };
        run(&args).unwrap();
    }
}
