//! Contenders: our engines and the peers, and the sizes up to which they run.

use super::machine;
use crate::measure;
use crate::row::Row;

/// The program that runs a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// This binary.
    Rust,
    /// The Python driver.
    Python,
}

/// A contender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) host: Host,
    pub(crate) ours: bool,
    /// False if its method misses matches.
    pub(crate) complete: bool,
}

/// Peers, the program that runs them, and whether they find everything.
const PEERS: [(&str, Host, bool); 9] = [
    ("FAISS BinaryFlat", Host::Python, true),
    ("FAISS BinaryHash", Host::Python, true),
    ("FAISS MultiHash 4 x 16", Host::Python, true),
    ("simhash (Python)", Host::Python, true),
    // Finds what is nearer than the number of blocks left out: with 3 it misses distance 3.
    ("gaoya, 6 blocks by 3", Host::Rust, false),
    ("gaoya, 6 blocks by 2", Host::Rust, true),
    ("web-simhash", Host::Rust, true),
    ("mih-rs", Host::Rust, true),
    ("all-pairs-hamming", Host::Rust, true),
];

/// Returns all contenders, ours first.
pub(crate) fn all() -> impl Iterator<Item = Contender> {
    let ours = measure::OURS.into_iter().map(|name| Contender {
        name,
        host: Host::Rust,
        ours: true,
        complete: true,
    });
    ours.chain(PEERS.into_iter().map(|(name, host, complete)| Contender {
        name,
        host,
        ours: false,
        complete,
    }))
}

/// Peers that are listed but not measured, with the reason.
pub(crate) const LEFT_OUT: [(&str, &str); 2] = [
    (
        "datasketch (Python)",
        "MinHashLSH finds sets by Jaccard similarity and takes no fingerprints; \
         tools/peers/evaluate_peers.py measures it on texts",
    ),
    ("go-simstore, simhash-cpp", "not in a registry that this command installs from"),
];

/// Maximum share of the free memory that a peer may be expected to use.
const MOST_MEMORY: f64 = 0.8;

/// Returns the reason for not running a peer at `n`, predicted from its smaller sizes.
///
/// `patience` is the maximum expected time of its build or join, in seconds.
pub(crate) fn too_slow(peer: &str, n: u64, patience: f64, rows: &[Row]) -> Option<String> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.engine == peer).collect();
    if let Some(row) = rows.iter().find(|row| row.work == "absent") {
        return Some(row.note.clone());
    }
    let works = rows.iter().filter(|row| row.work == "build" || row.k == Some(3));
    for row in works.filter(|row| row.n < n) {
        let growth = n as f64 / row.n.max(1) as f64;
        let seconds = row.median("seconds").unwrap_or(0.0) * growth;
        // Only the largest size so far is used.
        if rows.iter().any(|other| other.work == row.work && other.n > row.n) {
            continue;
        }
        if seconds > patience {
            return Some(format!("would take about {seconds:.0} s, by its time at n = {}", row.n));
        }
        let bytes = ["memory_bytes", "peak_bytes"];
        let bytes = bytes.iter().filter_map(|name| row.median(name)).fold(0.0, f64::max) * growth;
        if bytes > machine::available() * MOST_MEMORY {
            return Some(format!("would take about {:.1} GB of memory", bytes / 1e9));
        }
    }
    None
}
