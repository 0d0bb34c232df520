//! Fail points: the named moments inside the library, and how to reach each.

use crate::child::tell;

/// A named moment.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // each says by itself how to reach the moment
pub(crate) struct Point {
    pub(crate) name: &'static str,
    /// The moment at which an earlier process has to end for this one to be reached.
    pub(crate) after: Option<&'static str>,
    /// Whether the unfinished build is abandoned, not resumed.
    pub(crate) abandons: bool,
    /// Whether the index must be a new one.
    pub(crate) creates: bool,
    /// Whether the build must be so large that it spills.
    pub(crate) spills: bool,
    /// Whether it is a moment of a deduplication with a state.
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
pub(crate) const POINTS: [Point; 53] = [
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
    point("compact.flushed"),
    point("compact.family"),
    point("build.begun"),
    point("build.manifest"),
    point("build.marked"),
    Point { spills: true, ..point("build.spilled") },
    point("build.sealed"),
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

/// Stops at a moment that is reached for the nth time and reports it; the parent ends the process.
pub(crate) fn end_at(point: Option<&str>, nth: u32) {
    let Some(name) = point else { return };
    let told = format!("at {name}");
    at(name, nth, move || {
        tell(&told);
        loop {
            std::thread::park();
        }
    });
}

/// Calls back when a moment is reached for the nth time.
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

/// Without the feature no moment is ever reached.
#[cfg(not(feature = "failpoints"))]
fn at(_: &str, _: u32, _: impl Fn() + Send + Sync + 'static) {}

/// Makes a moment fail once, as an error of the system would.
#[cfg(feature = "failpoints")]
pub(crate) fn fail_once(name: &str) {
    fail::cfg(name, "1*return").expect("the action is valid");
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn fail_once(_: &str) {}

/// Makes a moment pass again; true when it had been reached since it was told to fail.
#[cfg(feature = "failpoints")]
pub(crate) fn pass_again(name: &str) {
    fail::remove(name);
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn pass_again(_: &str) {}

/// Tells whether the library was built with its fail points.
pub(crate) const ENABLED: bool = cfg!(feature = "failpoints");
