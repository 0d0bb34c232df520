//! The cost model: what probing and scanning a set are expected to take.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

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
/// [`calibrate`](crate::calibrate()) measures those of a machine.
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

    /// Returns the expected time of one probe, in nanoseconds.
    pub(super) fn probe_nanos(&self, prefix_bits: u32, census: &Census) -> f64 {
        let seeks = if census.singles { 2.0 } else { 1.0 };
        // A range begins and ends somewhere within a run, so one run's worth comes on top.
        let shared = f64::from(self.run_entries).min(census.entries as f64);
        let decoded = expected_candidates(prefix_bits, census.entries) + shared;
        seeks * self.seek_ns + decoded * self.candidate_ns
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

#[cfg(test)]
mod tests {
    use super::*;

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
