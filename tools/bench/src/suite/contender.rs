//! Who takes part: our own ways and the peers that the registries have.

use crate::measure;

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
