//! Who takes part, up to which size: our own ways and the peers that the registries have.

use super::machine;
use crate::measure;
use crate::row::Row;

/// What runs a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// This binary.
    Rust,
    /// The Python driver.
    Python,
}

/// One way to do the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) host: Host,
    pub(crate) ours: bool,
    /// False where its own rules keep it from finding everything.
    pub(crate) complete: bool,
}

/// Peers with how they are run and whether they find everything.
const PEERS: [(&str, Host, bool); 9] = [
    ("FAISS BinaryFlat", Host::Python, true),
    ("FAISS BinaryHash", Host::Python, true),
    ("FAISS MultiHash 4 x 16", Host::Python, true),
    ("simhash (Python)", Host::Python, true),
    // Keeps what is nearer than its number of blocks left out: at 3 it misses distance 3.
    ("gaoya, 6 blocks by 3", Host::Rust, false),
    ("gaoya, 6 blocks by 2", Host::Rust, true),
    ("web-simhash", Host::Rust, true),
    ("mih-rs", Host::Rust, true),
    ("all-pairs-hamming", Host::Rust, true),
];

/// All of them, ours first.
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

/// The peers that are told about but not measured, and why.
pub(crate) const LEFT_OUT: [(&str, &str); 2] = [
    (
        "datasketch (Python)",
        "MinHashLSH finds sets by Jaccard similarity and takes no fingerprints; \
         tools/peers/evaluate_peers.py measures it on texts",
    ),
    ("go-simstore, simhash-cpp", "in no registry that this command installs from"),
];

/// The part of the free memory that a peer may be expected to fill.
const MOST_MEMORY: f64 = 0.8;

/// Says why a peer is not run at `n`, judged by its rows at smaller sizes.
///
/// `patience` is the seconds that its build or join may be expected to take.
pub(crate) fn too_slow(peer: &str, n: u64, patience: f64, rows: &[Row]) -> Option<String> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.engine == peer).collect();
    if let Some(row) = rows.iter().find(|row| row.work == "absent") {
        return Some(row.note.clone());
    }
    let works = rows.iter().filter(|row| row.work == "build" || row.k == Some(3));
    for row in works.filter(|row| row.n < n) {
        let growth = n as f64 / row.n.max(1) as f64;
        let seconds = row.median("seconds").unwrap_or(0.0) * growth;
        // A size that is already past tells less than the last one does.
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
