//! The cost model: what probing and scanning a set are expected to take.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Entries among which [`Costs::seek_ns`] is the price of a seek.
pub(crate) const SEEK_ENTRIES: u64 = 1_000_000;

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
/// The defaults suit a two-core server whose tables lie in the page cache;
/// [`calibrate`](crate::inspect::calibrate()) measures those of a machine.
///
/// ```
/// use hamdex::plan::Costs;
///
/// let costs = Costs { seek_ns: 90_000.0, ..Costs::default() }; // tables on a cold disk
/// assert_eq!(costs.scan_nanos(1000), 4400.0);
/// assert_eq!(costs.to_string().parse::<Costs>()?, costs);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// One seek to the start of a range among a million entries. Default: 1,500.
    ///
    /// The price grows with the fourth root of the number of entries, as ever less of the way lies
    /// in the processor's caches; so it did within a third from ten thousand to a hundred million.
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
            seek_ns: 1_500.0,
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
    /// The prices with their names, in the order in which they are written.
    fn prices(&self) -> [(&'static str, f64); 6] {
        [
            ("seek_ns", self.seek_ns),
            ("candidate_ns", self.candidate_ns),
            ("scan_ns", self.scan_ns),
            ("bucket_ns", self.bucket_ns),
            ("member_ns", self.member_ns),
            ("resident_scan_ns", self.resident_scan_ns),
        ]
    }

    /// Returns the expected time of a scan of so many entries, in nanoseconds.
    pub fn scan_nanos(&self, entries: u64) -> f64 {
        self.scan_ns * entries as f64
    }

    /// Returns the expected time of one seek among so many entries, in nanoseconds.
    pub(crate) fn seek_nanos(&self, entries: u64) -> f64 {
        self.seek_ns * (entries.max(1) as f64 / SEEK_ENTRIES as f64).powf(0.25)
    }

    /// Returns the expected time to look up the documents of what a random query finds.
    pub(crate) fn documents_nanos(&self, bits: u32, distance: u32, entries: u64) -> f64 {
        expected_matches(bits, distance, entries) * self.seek_nanos(entries)
    }

    /// Returns the expected time of one probe, in nanoseconds.
    pub(super) fn probe_nanos(&self, prefix_bits: u32, census: &Census) -> f64 {
        let seeks = if census.singles { 2.0 } else { 1.0 };
        // A range begins and ends somewhere within a run, so one run's worth comes on top.
        let shared = f64::from(self.run_entries).min(census.entries as f64);
        let decoded = expected_candidates(prefix_bits, census.entries) + shared;
        seeks * self.seek_nanos(census.entries) + decoded * self.candidate_ns
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, price)) in self.prices().into_iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{name}={price}")?;
        }
        Ok(())
    }
}

/// Reads what [`Display`](fmt::Display) writes; prices left out keep their default.
impl FromStr for Costs {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut costs = Self::default();
        for word in text.split_whitespace() {
            let invalid = |reason: &str| Error::InvalidOption {
                name: "costs",
                reason: format!("\"{word}\" {reason}"),
            };
            let (name, price) = word.split_once('=').ok_or_else(|| invalid("is not name=price"))?;
            let price: f64 = price.parse().map_err(|_| invalid("has no number as its price"))?;
            if !(price.is_finite() && price > 0.0) {
                return Err(invalid("has no price above zero"));
            }
            let place = match name {
                "seek_ns" => &mut costs.seek_ns,
                "candidate_ns" => &mut costs.candidate_ns,
                "scan_ns" => &mut costs.scan_ns,
                "bucket_ns" => &mut costs.bucket_ns,
                "member_ns" => &mut costs.member_ns,
                "resident_scan_ns" => &mut costs.resident_scan_ns,
                _ => return Err(invalid("is no price that is known here")),
            };
            *place = price;
        }
        Ok(costs)
    }
}

/// Returns how many entries share one prefix when fingerprints are spread evenly.
pub(crate) fn expected_candidates(prefix_bits: u32, entries: u64) -> f64 {
    entries as f64 * (-f64::from(prefix_bits)).exp2()
}

/// Returns how many entries a random query finds when fingerprints are spread evenly.
fn expected_matches(bits: u32, distance: u32, entries: u64) -> f64 {
    // One entry that differs in no bit, in each one, in each pair, and so on.
    let (mut of_distance, mut sum) = (entries as f64 * (-f64::from(bits)).exp2(), 0.0);
    for flips in 0..=distance.min(bits) {
        sum += of_distance;
        of_distance *= f64::from(bits - flips) / f64::from(flips + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_among_ten_thousand_times_the_entries_costs_ten_times_as_much() {
        let costs = Costs { seek_ns: 100.0, ..Costs::default() };
        for (entries, nanos) in [(SEEK_ENTRIES, 100.0), (SEEK_ENTRIES * 10_000, 1_000.0)] {
            assert!((costs.seek_nanos(entries) - nanos).abs() < 1e-6, "{entries}");
        }
        assert!(costs.seek_nanos(0) > 0.0);
    }

    #[test]
    fn a_random_query_is_expected_to_find_its_share() {
        let close = |found: f64, of: f64| (found / of - 1.0).abs() < 1e-9;
        assert!(close(expected_matches(64, 64, 1000), 1000.0));
        assert!(close(expected_matches(32, 1, 1 << 32), 33.0));
        assert!(close(expected_matches(64, 3, 1 << 40), 43_745.0 / f64::from(1 << 24)));
        assert!(close(expected_matches(128, 200, 7), 7.0));
    }

    #[test]
    fn prices_come_back_from_their_words() {
        let costs = Costs { seek_ns: 1.5, member_ns: 0.25, ..Costs::default() };
        assert_eq!(costs.to_string().parse::<Costs>().unwrap(), costs);
        assert_eq!("".parse::<Costs>().unwrap(), Costs::default());
        assert!((" scan_ns=7\n".parse::<Costs>().unwrap().scan_ns - 7.0).abs() < 1e-9);
    }

    #[test]
    fn words_that_are_no_prices_are_refused() {
        for bad in
            ["seek", "seek_ns=", "seek_ns=x", "seek_ns=0", "seek_ns=-1", "seek_ns=inf", "a=1"]
        {
            let refused = bad.parse::<Costs>();
            assert!(matches!(refused, Err(Error::InvalidOption { name: "costs", .. })), "{bad}");
        }
    }
}
