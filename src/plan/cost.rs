//! The cost model: what probing and scanning a set are expected to take.

/// What is stored, as far as the cost of a search depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// Distinct fingerprints in every table.
    pub entries: u64,
    /// Whether some are stored singly, which costs a second seek a probe.
    pub singles: bool,
}

/// Prices of the steps of a search, in nanoseconds.
///
/// The defaults suit a two-core server whose tables lie in the page cache.
///
/// ```
/// use hamdex::plan::Costs;
///
/// let costs = Costs { seek_ns: 90_000.0, ..Costs::default() }; // tables on a cold disk
/// assert_eq!(costs.scan_nanos(1000), 4400.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// One seek to the start of a range. Default: 2,400.
    pub seek_ns: f64,
    /// Decoding one entry and comparing it. Default: 2.
    pub candidate_ns: f64,
    /// Decoding and comparing one entry in a scan of everything. Default: 4.4.
    pub scan_ns: f64,
    /// Entries that are decoded together. Default: 128.
    pub run_entries: u32,
    /// In memory: finding a bucket, others being on their way too. Default: 25.
    pub bucket_ns: f64,
    /// In memory: comparing one member of a bucket. Default: 0.3.
    pub member_ns: f64,
    /// In memory: comparing one member when all are read in order. Default: 0.2.
    pub resident_scan_ns: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            seek_ns: 2_400.0,
            candidate_ns: 2.0,
            scan_ns: 4.4,
            run_entries: 128,
            bucket_ns: 25.0,
            member_ns: 0.3,
            resident_scan_ns: 0.2,
        }
    }
}

impl Costs {
    /// Returns the expected time of a scan of so many entries, in nanoseconds.
    pub fn scan_nanos(&self, entries: u64) -> f64 {
        self.scan_ns * entries as f64
    }

    /// Returns the expected time of one probe, in nanoseconds.
    pub(super) fn probe_nanos(&self, prefix_bits: u32, census: &Census) -> f64 {
        let seeks = if census.singles { 2.0 } else { 1.0 };
        // A range begins and ends somewhere within a run, so one run's worth comes on top.
        let shared = f64::from(self.run_entries).min(census.entries as f64);
        let decoded = expected_candidates(prefix_bits, census.entries) + shared;
        seeks * self.seek_ns + decoded * self.candidate_ns
    }
}

/// Returns how many entries share one prefix when fingerprints are spread evenly.
pub(super) fn expected_candidates(prefix_bits: u32, entries: u64) -> f64 {
    entries as f64 * (-f64::from(prefix_bits)).exp2()
}
