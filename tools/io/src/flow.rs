//! Flow: chunks are read, made into results on all threads, and handed on in order.
//!
//! Up to one reading thread per processor reads units: sources, or some row groups of a Parquet
//! file. With six threads a unit, two or more unpack the members of a crawl. A chunk becomes a job
//! of the pool as soon as it is read. The caller's thread receives the results in the order of the
//! units. A stage waits for another one only if the chunks and results in flight reach a limit of
//! bytes; the unit that is handed on always continues, so that the limit cannot block it.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rayon::Yield;

use super::chunk::{CHUNK, Chunk, Extents, Out, Rows};
use super::columnar::Part;
use super::inputs::Inputs;
use super::kind::Kind;
use super::open::Meter;
use crate::failure::{Failure, Result};
use crate::host::Host;

/// Chunks in flight of the unit that is handed on, besides two per thread.
const FRONT: usize = 8;

/// Bytes in flight of all later units, chunks and results.
const AHEAD: usize = 64 << 20;

/// Threads that one thread which unpacks a crawl keeps busy: those of plain text, which is faster
/// than HTML.
const UNPACKED: usize = 3;

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
    /// `None` is the whole source.
    pub(crate) part: Option<Part>,
    /// Whether the source ends with it.
    last: bool,
}

/// Cuts the sources into units, in order.
fn units(inputs: &Inputs) -> Arc<[Unit]> {
    let mut units = Vec::with_capacity(inputs.sources.len());
    for (source, kind) in inputs.sources.iter().map(|source| &source.kind).enumerate() {
        let parts = if let Kind::Columnar(file) = kind { file.parts() } else { Vec::new() };
        let last = parts.len().saturating_sub(1);
        let part = |(at, part)| Unit { source, part: Some(part), last: at == last };
        if parts.is_empty() {
            units.push(Unit { source, part: None, last: true });
        }
        units.extend(parts.into_iter().enumerate().map(part));
    }
    units.into()
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
    let gate = Arc::new(Gate::new(CHUNK * (FRONT + 2 * threads)));
    let (read, reads) = channel();
    let (units, meter) = (units(inputs), Meter::default());
    let mut readers = Vec::new();
    for _ in 0..threads.min(units.len()) {
        let (inputs, gate, read) = (Arc::clone(inputs), Arc::clone(&gate), read.clone());
        let (units, meter) = (Arc::clone(&units), meter.clone());
        let of_unit = threads / units.len() / UNPACKED;
        let before = extents.cloned();
        let out = Out { gate, units, threads: of_unit, read, rows, before, meter };
        // Not a scoped thread: it may wait for a terminal long after the work has failed.
        let thread = std::thread::Builder::new().name("reader".to_owned());
        let reader = thread.spawn(move || out.run(&inputs));
        readers.push(reader.map_err(|e| Failure::io("reading thread", e))?);
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
    for reader in readers {
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

/// Bounds the bytes in flight.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    moved: Condvar,
    /// Bytes in flight of the unit that is handed on.
    front: usize,
}

#[derive(Debug, Default)]
struct State {
    /// The next unit to read.
    next: usize,
    /// The unit that is handed on, and the origin of the first row of its source.
    front: usize,
    base: u64,
    /// Bytes in flight by unit, and of all units behind the front.
    used: HashMap<usize, usize>,
    ahead: usize,
    closed: bool,
}

impl Gate {
    fn new(front: usize) -> Self {
        Self { state: Mutex::default(), moved: Condvar::new(), front }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next unit to read, with its position; `None` once it is not wanted.
    pub(crate) fn next<'u>(&self, units: &'u [Unit]) -> Option<(usize, &'u Unit)> {
        let mut state = self.lock();
        let next = state.next;
        state.next += 1;
        units.get(next).filter(|_| !state.closed).map(|unit| (next, unit))
    }

    /// Waits until there is room for a chunk, and returns the origin of the source's first row if
    /// it is known; fails once no result is wanted.
    pub(crate) fn admit(&self, unit: usize, bytes: usize) -> Result<Option<u64>, ()> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err(());
            }
            let front = unit == state.front;
            let used = if front { state.used.get(&unit).copied() } else { Some(state.ahead) };
            let used = used.unwrap_or(0);
            let limit = if front { self.front } else { AHEAD };
            if used + bytes <= limit || (front && used == 0) {
                *state.used.entry(unit).or_default() += bytes;
                if !front {
                    state.ahead += bytes;
                }
                return Ok(front.then_some(state.base));
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Changes the bytes of something in flight.
    pub(crate) fn resize(&self, unit: usize, from: usize, to: usize) {
        let mut state = self.lock();
        let used = state.used.entry(unit).or_default();
        *used = (*used + to).saturating_sub(from);
        if unit != state.front {
            state.ahead = (state.ahead + to).saturating_sub(from);
        }
        drop(state);
        self.moved.notify_all();
    }

    /// Makes the next unit the one that is handed on; `base` is the origin of its source.
    fn pass(&self, base: u64) {
        let mut state = self.lock();
        let done = state.front;
        state.used.remove(&done);
        state.front += 1;
        state.base = base;
        let front = state.front;
        state.ahead -= state.used.get(&front).copied().unwrap_or(0).min(state.ahead);
        drop(state);
        self.moved.notify_all();
    }

    fn close(&self) {
        self.lock().closed = true;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::PathBuf;

    use super::*;
    use crate::host::Silent;
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

    #[test]
    fn only_the_source_in_front_may_exceed_its_bytes() {
        let gate = Arc::new(Gate::new(100));
        assert_eq!(gate.admit(0, 1000), Ok(Some(0)));
        assert_eq!(gate.admit(1, AHEAD), Ok(None));
        let waiting = std::thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.admit(1, 1)
        });
        gate.resize(0, 1000, 0);
        assert!(!waiting.is_finished());
        // The bytes of the next source count as those of the front from now on.
        gate.pass(7);
        gate.resize(1, AHEAD, 0);
        assert_eq!(waiting.join().unwrap(), Ok(Some(7)));
        gate.close();
        assert_eq!(gate.admit(1, 1), Err(()));
    }
}
