//! The cost model: the expected time of probing and scanning a set.

use std::fmt;
use std::str::FromStr;

use crate::bits::share_within;
use crate::error::{Error, Result};

/// The number of entries for which [`Costs::seek_ns`] is the cost of a seek.
pub(crate) const SEEK_ENTRIES: u64 = 1_000_000;

/// Costs of the steps of searches and joins, in nanoseconds.
///
/// The defaults suit a two-core server with all tables in the page cache.
/// [`calibrate`](crate::inspect::calibrate()) measures the costs of a machine.
///
/// ```
/// use hamdex::plan::Costs;
///
/// let mut costs = Costs::default();
/// costs.seek_ns = 90_000.0; // tables on a cold disk
/// assert_eq!(costs.scan_nanos(1000), 4400.0);
/// assert_eq!(costs.to_string().parse::<Costs>()?, costs);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Costs {
    /// One seek to the start of a range among a million entries. Default: 1,500.
    ///
    /// Scales with the fourth root of the number of entries, since less of the path fits the
    /// processor caches. Measured within a third from ten thousand to a hundred million entries.
    pub seek_ns: f64,
    /// Decoding one entry and comparing it. Default: 2.
    pub candidate_ns: f64,
    /// Decoding and comparing one entry in a full scan. Default: 4.4.
    pub scan_ns: f64,
    /// Number of entries that are decoded together. Default: 128.
    pub run_entries: u32,
    /// In memory: finding a bucket, with others prefetched. Default: 25.
    pub bucket_ns: f64,
    /// In memory: comparing one member of a bucket. Default: 0.3.
    pub member_ns: f64,
    /// In memory: comparing one member in a full scan. Default: 0.2.
    pub resident_scan_ns: f64,
    /// In memory: adding one member to all tables. Default: 100.
    pub build_ns: f64,
    /// In a batch of queries: permuting, flipping and sorting one range. Default: 60.
    pub range_ns: f64,
    /// In a join: moving a member of 64 bits into its bucket. Default: 8.
    pub scatter_ns: f64,
    /// In a join: moving it from there into its group. Default: 7.
    pub gather_ns: f64,
    /// In a join: starting a group, even an empty one. Default: 10.
    pub group_ns: f64,
    /// In a join: comparing one pair of a group. Default: 0.03.
    pub pair_ns: f64,
    /// In a join: verifying a near pair and finding the table that owns it. Default: 15.
    pub near_ns: f64,
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
            build_ns: 100.0,
            range_ns: 60.0,
            scatter_ns: 8.0,
            gather_ns: 7.0,
            group_ns: 10.0,
            pair_ns: 0.03,
            near_ns: 15.0,
        }
    }
}

impl Costs {
    /// Returns the measured costs with their names, in print order.
    fn prices(&mut self) -> [(&'static str, &mut f64); 13] {
        [
            ("seek_ns", &mut self.seek_ns),
            ("candidate_ns", &mut self.candidate_ns),
            ("scan_ns", &mut self.scan_ns),
            ("bucket_ns", &mut self.bucket_ns),
            ("member_ns", &mut self.member_ns),
            ("resident_scan_ns", &mut self.resident_scan_ns),
            ("build_ns", &mut self.build_ns),
            ("range_ns", &mut self.range_ns),
            ("scatter_ns", &mut self.scatter_ns),
            ("gather_ns", &mut self.gather_ns),
            ("group_ns", &mut self.group_ns),
            ("pair_ns", &mut self.pair_ns),
            ("near_ns", &mut self.near_ns),
        ]
    }

    /// Rounds the measured costs to three digits, as precise as they are.
    pub(crate) fn rounded(mut self) -> Self {
        for (_, price) in self.prices() {
            *price = format!("{price:.2e}").parse().expect("a number that was printed");
        }
        self
    }

    /// Returns the expected time of a scan of `entries` entries, in nanoseconds.
    pub fn scan_nanos(&self, entries: u64) -> f64 {
        self.scan_ns * entries as f64
    }

    /// Returns the expected time of one seek among `entries` entries, in nanoseconds.
    pub(crate) fn seek_nanos(&self, entries: u64) -> f64 {
        self.seek_ns * (entries.max(1) as f64 / SEEK_ENTRIES as f64).powf(0.25)
    }

    /// Returns the expected time to look up the documents that a random query finds.
    pub(crate) fn documents_nanos(&self, bits: u32, distance: u32, entries: u64) -> f64 {
        entries as f64 * share_within(f64::from(bits), distance) * self.seek_nanos(entries)
    }

    /// Returns the expected time of one probe, in nanoseconds.
    pub(super) fn probe_nanos(&self, prefix_bits: u32, entries: u64) -> f64 {
        // A range starts and ends within a run, which adds one run to decode.
        let shared = f64::from(self.run_entries).min(entries as f64);
        let decoded = expected_candidates(prefix_bits, entries) + shared;
        self.seek_nanos(entries) + decoded * self.candidate_ns
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut costs = *self;
        for (at, (name, price)) in costs.prices().into_iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{name}={price}")?;
        }
        Ok(())
    }
}

/// Parses what [`Display`](fmt::Display) prints; omitted costs keep their default.
impl FromStr for Costs {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut costs = Self::default();
        for word in text.split_whitespace() {
            let invalid = |reason: &str| Error::InvalidOption {
                name: "costs",
                reason: format!("\"{word}\" {reason}"),
            };
            let (name, price) = word.split_once('=').ok_or_else(|| invalid("is not name=cost"))?;
            let price: f64 =
                price.parse().map_err(|_| invalid("is not a number of nanoseconds"))?;
            if !(price.is_finite() && price > 0.0) {
                return Err(invalid("is not above zero"));
            }
            let place = costs.prices().into_iter().find(|(known, _)| *known == name);
            *place.ok_or_else(|| invalid("is not a known cost"))?.1 = price;
        }
        Ok(costs)
    }
}

/// Returns how many evenly distributed entries share one prefix.
pub(crate) fn expected_candidates(prefix_bits: u32, entries: u64) -> f64 {
    entries as f64 * (-f64::from(prefix_bits)).exp2()
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
    fn costs_are_printed_and_parsed_back() {
        let costs = Costs { seek_ns: 1.5, member_ns: 0.25, near_ns: 3.0, ..Costs::default() };
        assert_eq!(costs.to_string().parse::<Costs>().unwrap(), costs);
        assert_eq!("".parse::<Costs>().unwrap(), Costs::default());
        assert!((" scan_ns=7\n".parse::<Costs>().unwrap().scan_ns - 7.0).abs() < 1e-9);
    }

    #[test]
    fn measured_costs_have_three_digits() {
        let costs = Costs { seek_ns: 986.494_9, pair_ns: 0.013_660_1, ..Costs::default() };
        let printed = costs.rounded().to_string();
        assert!(
            printed.contains("seek_ns=986 ") && printed.contains("pair_ns=0.0137 "),
            "{printed}"
        );
        assert_eq!(Costs::default().rounded(), Costs::default());
    }

    #[test]
    fn invalid_costs_are_rejected() {
        for bad in
            ["seek", "seek_ns=", "seek_ns=x", "seek_ns=0", "seek_ns=-1", "seek_ns=inf", "a=1"]
        {
            let refused = bad.parse::<Costs>();
            assert!(matches!(refused, Err(Error::InvalidOption { name: "costs", .. })), "{bad}");
        }
    }
}
