//! Flow: chunks are read, made into results on all threads, and handed on in order.
//!
//! Up to one reading thread per thread of the pool reads units: sources, some row groups of a
//! Parquet file, or ranges of lines. With six threads a source, two or more unpack the members of a
//! crawl; with sixteen, two or more read the lines of a plain file. A chunk becomes a job of the
//! pool as soon as it is read. The caller's thread receives the results in the order of the units.
//! A stage waits for another one only if the chunks and results in flight reach a limit of bytes;
//! the unit that is handed on always continues, so that the limit cannot block it.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use rayon::Yield;

use super::chunk::{CHUNK, Chunk, Extents, Out, Rows};
use super::columnar::Part;
use super::gate::Gate;
use super::lines;
use crate::face::failure::{Failure, Result};
use crate::face::host::Host;
use crate::sources::inputs::Inputs;
use crate::sources::kind::Kind;
use crate::sources::open::Meter;

/// Chunks in flight of the unit that is handed on, besides two per thread that works.
const FRONT: usize = 8;

/// Threads that one thread which unpacks a crawl keeps busy: those of plain text, which is faster
/// than HTML.
const UNPACKED: usize = 3;

/// The same of one thread that reads the lines of a plain file.
pub(crate) const READ: usize = 8;

/// How long a worker of the pool waits before it looks for another job.
const IDLE: Duration = Duration::from_millis(1);

/// What a reading thread reports.
pub(crate) enum Event {
    /// The chunk with this number of a unit.
    Chunk(usize, u64, Chunk),
    /// A unit ended after this number of chunks, or with a failure.
    End(usize, u64, Result<End>),
    /// A reading thread panicked.
    Panic(Box<dyn Any + Send>),
    /// The caller takes no more results.
    Stop,
}

/// What one thread reads at a time.
#[derive(Debug)]
pub(crate) struct Unit {
    /// Position of the source among the inputs.
    pub(crate) source: usize,
    pub(crate) share: Share,
    /// Whether the source ends with it.
    pub(crate) last: bool,
}

/// What a unit has of its source.
#[derive(Debug)]
pub(crate) enum Share {
    Whole,
    Groups(Part),
    /// The lines that begin in a range of bytes.
    Lines(Range<u64>),
}

impl Share {
    /// Returns the row groups; `None` is all of them.
    pub(crate) fn groups(&self) -> Option<&Part> {
        if let Self::Groups(part) = self { Some(part) } else { None }
    }
}

/// Cuts the sources into units, in order; returns how many threads can read them as well.
fn units(inputs: &Inputs, threads: usize, of_source: usize) -> (Arc<[Unit]>, usize) {
    let (mut units, mut readers) = (Vec::with_capacity(inputs.sources.len()), 0);
    for (source, from) in inputs.sources.iter().enumerate() {
        let lines = matches!(from.kind, Kind::Lines) && of_source >= 2 * READ;
        let mut shares: Vec<Share> = if let Kind::Columnar(file) = &from.kind {
            file.parts().into_iter().map(Share::Groups).collect()
        } else if lines {
            lines::ranges(from).into_iter().map(Share::Lines).collect()
        } else {
            Vec::new()
        };
        if shares.is_empty() {
            shares.push(Share::Whole);
        }
        // Each further one would only hold back more bytes.
        readers += if lines { shares.len().min(of_source / READ) } else { shares.len() };
        let last = shares.len() - 1;
        let unit = |(at, share)| Unit { source, share, last: at == last };
        units.extend(shares.into_iter().enumerate().map(unit));
    }
    (units.into(), readers.min(threads))
}

/// The end of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// Its rows.
    pub(crate) rows: u64,
    /// Whether it has more rows than an earlier pass read.
    pub(crate) grown: bool,
}

/// A result of the pool.
enum Made<T> {
    Chunk(usize, u64, Done<T>),
    End(usize, u64, Result<End>),
    Panic(Box<dyn Any + Send>),
}

/// What became of a chunk.
struct Done<T> {
    /// Bytes of the result.
    kept: usize,
    /// Bytes read of all sources.
    read: u64,
    rows: u64,
    made: Result<T>,
}

/// Calls `make` with every chunk on all threads, and `visit` with the results in order.
///
/// `make` also returns the bytes that its result takes. `visit` receives the position of the
/// source and the origin of its first row as well. Returns the number of rows of every source.
/// Given those of an earlier pass, no source is read further than then, as if it had not grown; one
/// that has shrunk is an error. Of drawn rows the drawing was the earlier pass.
pub fn for_each_made<T: Send>(
    inputs: &Arc<Inputs>,
    rows: Rows,
    extents: Option<&Extents>,
    console: &dyn Host,
    make: impl Fn(Chunk) -> Result<(T, usize)> + Sync,
    visit: impl FnMut(usize, u64, T) -> Result<()>,
) -> Result<Extents> {
    let threads = rayon::current_num_threads();
    let extents = extents.or(inputs.drawn.as_ref().map(|drawn| &drawn.extents));
    // More threads than processors would only keep more bytes in flight, beyond the caches.
    let working =
        std::thread::available_parallelism().map_or(threads, |all| threads.min(all.get()));
    let gate = Arc::new(Gate::new(CHUNK * (FRONT + 2 * working)));
    let (read, reads) = channel();
    let of_source = threads / inputs.sources.len().max(1);
    let ((units, readers), meter) = (units(inputs, threads, of_source), Meter::default());
    let unpacking = of_source / UNPACKED;
    let mut reading = Vec::new();
    for _ in 0..readers {
        let (inputs, gate, read) = (Arc::clone(inputs), Arc::clone(&gate), read.clone());
        let (units, meter) = (Arc::clone(&units), meter.clone());
        let before = extents.cloned();
        let out = Out { gate, units, threads: unpacking, read, rows, before, meter };
        // Not a scoped thread: it may wait for a terminal long after the work has failed.
        let thread = std::thread::Builder::new().name("reader".to_owned());
        let reader = thread.spawn(move || out.run(&inputs));
        reading.push(reader.map_err(|e| Failure::io("reading thread", e))?);
    }
    let (made, results) = channel();
    let flow = Flow { inputs, units: &units, console, gate: &gate, results };
    let make = |chunk| make(inputs.leave_drawn(chunk)?);
    let make = |unit, number, chunk| made_of(unit, number, chunk, &make, &gate);
    let make = &make;
    let extents = rayon::in_place_scope(|scope| {
        std::thread::scope(|threads| {
            let _closing = Closing { gate: &gate, read };
            let dispatch = move || {
                for event in reads {
                    let made = made.clone();
                    let sent = match event {
                        Event::Chunk(unit, number, chunk) => {
                            scope.spawn(move |_| drop(made.send(make(unit, number, chunk))));
                            Ok(())
                        }
                        Event::End(unit, chunks, end) => made.send(Made::End(unit, chunks, end)),
                        Event::Panic(panic) => made.send(Made::Panic(panic)),
                        Event::Stop => break,
                    };
                    if sent.is_err() {
                        break;
                    }
                }
            };
            let thread = std::thread::Builder::new().name("chunks".to_owned());
            thread
                .spawn_scoped(threads, dispatch)
                .map_err(|e| Failure::io("thread for chunks", e))?;
            flow.hand_on(visit)
        })
    })?;
    for reader in reading {
        // All sources have ended, and so has the thread; it panics only through its events.
        let _ = reader.join();
    }
    Ok(extents)
}

fn made_of<T>(
    unit: usize,
    number: u64,
    chunk: Chunk,
    make: &(impl Fn(Chunk) -> Result<(T, usize)> + Sync),
    gate: &Gate,
) -> Made<T> {
    let (read, rows) = (chunk.read, chunk.body.rows());
    let bytes = chunk.body.bytes();
    let (made, kept) = match catch_unwind(AssertUnwindSafe(|| make(chunk))) {
        Ok(Ok((made, kept))) => (Ok(made), kept),
        Ok(Err(failure)) => (Err(failure), 0),
        Err(panic) => return Made::Panic(panic),
    };
    gate.resize(unit, bytes, kept);
    Made::Chunk(unit, number, Done { kept, read, rows, made })
}

/// The caller's side: results become ordered.
struct Flow<'a, T> {
    inputs: &'a Inputs,
    units: &'a [Unit],
    console: &'a dyn Host,
    gate: &'a Gate,
    results: Receiver<Made<T>>,
}

/// Results of one unit that wait for their turn.
struct Waiting<T> {
    /// By number.
    made: BTreeMap<u64, Done<T>>,
    /// How many chunks there are, and the end.
    end: Option<(u64, Result<End>)>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { made: BTreeMap::new(), end: None }
    }
}

impl<T> Flow<'_, T> {
    fn hand_on(&self, mut visit: impl FnMut(usize, u64, T) -> Result<()>) -> Result<Extents> {
        let mut waiting: HashMap<usize, Waiting<T>> = HashMap::new();
        let (mut extents, mut base, mut rows_of_source) = (Extents::new(), 0, 0);
        let mut grown = Vec::new();
        let (mut front, mut due) = (0, 0);
        while let Some(unit) = self.units.get(front) {
            let next = waiting.entry(front).or_default();
            if let Some(Done { kept, read, rows, made }) = next.made.remove(&due) {
                self.console.check()?;
                visit(unit.source, base, made?)?;
                self.gate.resize(front, kept, 0);
                self.console.reach(read, rows);
                due += 1;
                continue;
            }
            if let Some((_, end)) = next.end.take_if(|(chunks, _)| *chunks == due) {
                let end = end?;
                waiting.remove(&front);
                grown.extend(end.grown.then_some(unit.source));
                rows_of_source += end.rows;
                if unit.last {
                    extents.push(rows_of_source);
                    base += rows_of_source;
                    rows_of_source = 0;
                }
                (front, due) = (front + 1, 0);
                self.gate.pass(base);
                continue;
            }
            match next_of(&self.results) {
                Some(Made::Chunk(unit, number, done)) => {
                    waiting.entry(unit).or_default().made.insert(number, done);
                }
                Some(Made::End(unit, chunks, end)) => {
                    waiting.entry(unit).or_default().end = Some((chunks, end));
                }
                Some(Made::Panic(panic)) => resume_unwind(panic),
                None => unreachable!("every unit ends"),
            }
        }
        grown.dedup();
        let name = |at: usize| self.inputs.sources.get(at).map(|source| &source.name);
        for name in grown.into_iter().filter_map(name) {
            self.console.warn(&format!("{name} grew while it was read; the new rows are skipped"));
        }
        Ok(extents)
    }
}

/// Receives the next result; a worker of the pool does jobs meanwhile.
fn next_of<T>(results: &Receiver<T>) -> Option<T> {
    loop {
        match results.try_recv() {
            Ok(result) => return Some(result),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {}
        }
        match rayon::yield_now() {
            None => return results.recv().ok(),
            Some(Yield::Executed) => {}
            Some(Yield::Idle) => match results.recv_timeout(IDLE) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            },
        }
    }
}

/// Lets the reading threads and the dispatching one end.
struct Closing<'a> {
    gate: &'a Gate,
    read: Sender<Event>,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.gate.close();
        let _ = self.read.send(Event::Stop);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::PathBuf;

    use super::*;
    use crate::face::host::Silent;
    use crate::{Body, Options};

    /// Makes files of these numbers of rows, each the inputs' next one.
    fn inputs(directory: &std::path::Path, rows: &[usize]) -> Arc<Inputs> {
        let file = |(at, &rows): (usize, &usize)| -> PathBuf {
            let path = directory.join(format!("{at}.jsonl"));
            let content = (0..rows).fold(String::new(), |mut content, row| {
                writeln!(content, "{{\"text\":\"{at} {row} {}\"}}", "x".repeat(900)).unwrap();
                content
            });
            std::fs::write(&path, content).unwrap();
            path
        };
        let paths: Vec<PathBuf> = rows.iter().enumerate().map(file).collect();
        Arc::new(Inputs::resolve(&paths, &Options::default(), &Silent).unwrap())
    }

    /// Returns source, origin of its first row and ordinal of every row, as they are handed on.
    fn handed_on(inputs: &Arc<Inputs>) -> (Vec<(usize, u64, u64)>, Extents) {
        let make = |chunk: Chunk| {
            if chunk.source == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
            let Body::Lines { lines, .. } = chunk.body else { panic!("no lines") };
            Ok((lines.iter().map(|line| line.ordinal).collect::<Vec<u64>>(), 64))
        };
        let mut rows = Vec::new();
        let visit = |source, base, ordinals: Vec<u64>| {
            rows.extend(ordinals.into_iter().map(|ordinal| (source, base, ordinal)));
            Ok(())
        };
        let console = Silent;
        let extents = for_each_made(inputs, Rows::Needed, None, &console, make, visit).unwrap();
        (rows, extents)
    }

    #[test]
    fn results_come_in_the_order_of_the_inputs() {
        let directory = tempfile::tempdir().unwrap();
        let sizes = [4000, 1, 300, 0, 2000, 7];
        let inputs = inputs(directory.path(), &sizes);
        let (rows, extents) = handed_on(&inputs);
        assert_eq!(extents, sizes.map(|rows| rows as u64));
        assert!(rows.is_sorted(), "rows are out of order");
        assert_eq!(rows.len(), sizes.iter().sum::<usize>());
        assert_eq!(rows.last(), Some(&(5, 6301, 6)));
        assert_eq!(Arc::strong_count(&inputs), 1, "a reading thread still has the inputs");
    }

    #[test]
    fn a_pool_of_one_thread_may_read_from_within() {
        let directory = tempfile::tempdir().unwrap();
        let inputs = inputs(directory.path(), &[3000, 10]);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| handed_on(&inputs).0.len()), 3010);
    }

    #[test]
    #[should_panic(expected = "within the pool")]
    fn a_panic_of_a_job_reaches_the_caller() {
        let directory = tempfile::tempdir().unwrap();
        let inputs = inputs(directory.path(), &[10, 10]);
        let make = |_| -> Result<((), usize)> { panic!("within the pool") };
        let visit = |_, _, ()| Ok(());
        let _ = for_each_made(&inputs, Rows::Needed, None, &Silent, make, visit);
    }
}
