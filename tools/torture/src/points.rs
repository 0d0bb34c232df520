//! Fail points: the named moments in the library, and the conditions to reach them.

use crate::child::send;

/// A named moment.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // the conditions are independent
pub(crate) struct Point {
    pub(crate) name: &'static str,
    /// The moment at which an earlier process must be killed for this one to be reached.
    pub(crate) after: Option<&'static str>,
    /// Whether the unfinished build must be abandoned.
    pub(crate) abandons: bool,
    /// Whether the index must be new.
    pub(crate) creates: bool,
    /// Whether the build must need spill files.
    pub(crate) spills: bool,
    /// Whether the moment is in a deduplication with a state.
    pub(crate) shards: bool,
}

const fn point(name: &'static str) -> Point {
    Point { name, after: None, abandons: false, creates: false, spills: false, shards: false }
}

const fn creating(name: &'static str) -> Point {
    Point { creates: true, ..point(name) }
}

const fn after(name: &'static str, first: &'static str) -> Point {
    Point { after: Some(first), ..point(name) }
}

const fn of_shards(name: &'static str) -> Point {
    Point { shards: true, ..point(name) }
}

const fn abandoning(name: &'static str) -> Point {
    Point { abandons: true, ..after(name, "build.files") }
}

/// Every fail point of the library; a test compares this list with the sources.
pub(crate) const POINTS: [Point; 58] = [
    creating("create.marked"),
    creating("create.opened"),
    creating("create.written"),
    creating("create.synced"),
    point("open.recovered"),
    after("open.dropped", "build.live"),
    point("insert.staged"),
    point("insert.logged"),
    point("replace.staged"),
    point("replace.logged"),
    point("write.published"),
    point("write.synced"),
    point("fold.staged"),
    point("fold.logged"),
    point("fold.flushed"),
    point("fold.compacted"),
    point("repack.staged"),
    point("repack.logged"),
    point("repack.flushed"),
    point("compact.flushed"),
    point("compact.family"),
    point("build.begun"),
    point("build.manifest"),
    point("build.marked"),
    Point { spills: true, ..point("build.spilled") },
    point("build.sealed"),
    point("build.documents"),
    point("build.family"),
    point("build.files"),
    point("build.ingested"),
    point("build.switching"),
    point("build.switched"),
    point("build.live"),
    point("generation.dropping"),
    point("build.finished"),
    after("resume.dropped", "build.files"),
    abandoning("abandon.written"),
    abandoning("abandon.done"),
    point("backup.begun"),
    point("backup.copied"),
    point("backup.verified"),
    point("backup.state"),
    point("backup.purged"),
    point("checkpoint.copied"),
    point("restore.copied"),
    point("stage.begun"),
    point("stage.settled"),
    point("stage.marked"),
    point("stage.cleared"),
    point("stage.moving"),
    point("stage.moved"),
    of_shards("state.created"),
    of_shards("state.begun"),
    of_shards("state.staged"),
    of_shards("state.committed"),
    of_shards("state.published"),
    of_shards("state.added"),
    of_shards("state.done"),
];

/// Reports and stops when a moment is reached for the nth time; the parent kills the process.
pub(crate) fn end_at(point: Option<&str>, nth: u32) {
    let Some(name) = point else { return };
    let line = format!("at {name}");
    at(name, nth, move || {
        send(&line);
        loop {
            std::thread::park();
        }
    });
}

/// Calls `call` when a moment is reached for the nth time.
#[cfg(feature = "failpoints")]
fn at(name: &str, nth: u32, call: impl Fn() + Send + Sync + 'static) {
    use std::sync::atomic::{AtomicU32, Ordering};

    let seen = AtomicU32::new(0);
    fail::cfg_callback(name, move || {
        if seen.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            call();
        }
    })
    .expect("a callback is a valid action");
}

/// Does nothing: without the feature no moment is reached.
#[cfg(not(feature = "failpoints"))]
fn at(_: &str, _: u32, _: impl Fn() + Send + Sync + 'static) {}

/// Makes a moment fail once, like an error of the operating system.
#[cfg(feature = "failpoints")]
pub(crate) fn fail_once(name: &str) {
    fail::cfg(name, "1*return").expect("the action is valid");
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn fail_once(_: &str) {}

/// Makes a moment pass again.
#[cfg(feature = "failpoints")]
pub(crate) fn pass_again(name: &str) {
    fail::remove(name);
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn pass_again(_: &str) {}

/// Whether the library was built with fail points.
pub(crate) const ENABLED: bool = cfg!(feature = "failpoints");
