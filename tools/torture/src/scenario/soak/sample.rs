//! Samples: memory, files, disk and latencies of every second.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::load::Load;

/// Latencies of one second, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latency {
    pub(super) count: u64,
    pub(super) median: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
}

impl Latency {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |part: usize| {
            let place = (times.len() * part / 1000).min(times.len().saturating_sub(1));
            times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        let count = times.len() as u64;
        Self { count, median: at(500), p99: at(990), p999: at(999) }
    }
}

/// The figures of one second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// Seconds since the load began.
    pub(super) at: f64,
    /// Resident memory of the process in bytes.
    pub(super) memory: u64,
    pub(super) open_files: u64,
    /// Size of the index's directory in bytes.
    pub(super) disk: u64,
    pub(super) searches: Latency,
    pub(super) writes: Latency,
}

impl Sample {
    /// Samples this process and the index's directory.
    pub(super) fn take(path: &Path, at: Duration, load: &Load) -> std::io::Result<Self> {
        let (searches, writes) = load.times();
        Ok(Self {
            at: at.as_secs_f64(),
            memory: memory()?,
            open_files: std::fs::read_dir("/proc/self/fd")?.count() as u64,
            disk: disk(path)?,
            searches: Latency::of(searches),
            writes: Latency::of(writes),
        })
    }
}

/// Returns the resident memory of this process in bytes.
fn memory() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.unwrap_or(0) << 10)
}

/// Returns the size of all files in a directory in bytes; skips files deleted meanwhile.
pub(super) fn disk(path: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(path)? {
        sum += entry?.metadata().map_or(0, |found| found.len());
    }
    Ok(sum)
}

/// One figure in the first and in the last third of a run.
#[derive(Debug, Clone)]
pub(super) struct Flatness {
    pub(super) name: &'static str,
    /// Median or mean of the first third, in the unit of the samples.
    pub(super) first: f64,
    /// Median or mean of the last third.
    pub(super) last: f64,
    /// Maximum of `last`, as a multiple of `first`.
    pub(super) allowed: f64,
}

impl Flatness {
    pub(super) fn is_flat(&self) -> bool {
        self.last <= self.first * self.allowed
    }

    pub(super) fn ratio(&self) -> f64 {
        self.last / self.first.max(f64::MIN_POSITIVE)
    }
}

impl fmt::Display for Flatness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.first, self.last);
        write!(f, "{} from {first:.0} to {last:.0}, allowed {:.2} times", self.name, self.allowed)
    }
}

/// Compares the first third of a run with the last.
///
/// The limits allow for a cache that fills, compactions and other processes. The slowest calls of a
/// second are compared by their mean: in about half of the seconds a call waits for other work, so
/// a median would be one of two values by chance.
pub(super) fn flatness(samples: &[Sample]) -> Vec<Flatness> {
    type Figure = fn(&Sample) -> f64;
    type Middle = fn(&[f64]) -> f64;
    let figures: [(&'static str, f64, Middle, Figure); 9] = [
        ("resident memory", 1.25, median, |s| s.memory as f64),
        ("open files", 1.25, median, |s| s.open_files as f64),
        ("disk", 1.35, median, |s| s.disk as f64),
        ("search median", 1.5, median, |s| s.searches.median),
        ("search p99", 1.5, mean, |s| s.searches.p99),
        ("search p99.9", 1.5, mean, |s| s.searches.p999),
        ("write median", 1.5, median, |s| s.writes.median),
        ("write p99", 1.5, mean, |s| s.writes.p99),
        ("write p99.9", 1.5, mean, |s| s.writes.p999),
    ];
    let third = samples.len() / 3;
    let (first, rest) = samples.split_at(third);
    let last = rest.get(rest.len() - third.min(rest.len())..).unwrap_or_default();
    let of = |(name, allowed, middle, figure): (&'static str, f64, Middle, Figure)| {
        let middle = |part: &[Sample]| middle(&part.iter().map(figure).collect::<Vec<_>>());
        Flatness { name, first: middle(first), last: middle(last), allowed }
    };
    figures.into_iter().map(of).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    #[test]
    fn a_run_that_grows_is_not_flat() {
        let sample = |at: u64| Sample { memory: 100 + at, open_files: 7, ..Sample::default() };
        let flat = |samples: &[Sample], name: &str| {
            flatness(samples).iter().find(|flat| flat.name == name).unwrap().is_flat()
        };
        let growing: Vec<_> = (0..90).map(sample).collect();
        assert!(!flat(&growing, "resident memory"));
        assert!(flat(&growing, "open files"));
        let steady: Vec<_> = (0..90).map(|at| sample(at % 5)).collect();
        assert!(flat(&steady, "resident memory"));
        assert!(flat(&[], "disk"));
    }

    #[test]
    fn waits_in_every_second_second_are_flat_until_they_grow_in_number_or_length() {
        for seed in 0..100 {
            let rng = &mut Rng::with_seed(seed);
            let mut second = |waits_in_a_hundred: u32, wait: f64| {
                let p99 = if rng.u32(0..100) < waits_in_a_hundred { wait } else { 15.0 };
                let writes = Latency { p99, p999: p99, ..Latency::default() };
                Sample { writes, ..Sample::default() }
            };
            let first: Vec<_> = (0..600).map(|_| second(49, 180.0)).collect();
            for (waits_in_a_hundred, wait, flat) in
                [(49, 180.0, true), (52, 180.0, true), (95, 180.0, false), (49, 360.0, false)]
            {
                let later = (0..1200).map(|_| second(waits_in_a_hundred, wait));
                let samples: Vec<_> = first.iter().copied().chain(later).collect();
                for found in flatness(&samples).iter().filter(|f| f.name.starts_with("write p99")) {
                    assert_eq!(found.is_flat(), flat, "seed {seed}: {found}");
                }
            }
        }
    }

    #[test]
    fn the_last_quantile_is_the_slowest_call_of_a_second() {
        let latency = Latency::of((1..=1000).map(Duration::from_micros).rev().collect());
        assert_eq!((latency.count, latency.median.round()), (1000, 501.0));
        assert_eq!((latency.p99.round(), latency.p999.round()), (991.0, 1000.0));
        assert_eq!(Latency::of(Vec::new()).count, 0);
    }
}
