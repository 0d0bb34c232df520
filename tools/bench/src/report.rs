//! Rows of a Markdown table, and the memory of this process.

use std::time::Duration;

pub(crate) fn head(what: &str) {
    println!("# {what}");
    println!("# {} threads", rayon::current_num_threads());
    println!("\n| figure | value |\n|---|---|");
}

pub(crate) fn row(figure: &str, value: &str) {
    println!("| {figure} | {value} |");
}

pub(crate) fn rate(figure: &str, count: u64, time: Duration) {
    let seconds = time.as_secs_f64();
    row(figure, &format!("{seconds:.2} s, {:.2} M/s", count as f64 / seconds / 1e6));
}

/// Prints the median, 90th and 99th percentile of single times.
pub(crate) fn spread(figure: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent: usize| {
        let micros = times
            .get(((times.len() * percent) / 100).min(times.len().saturating_sub(1)))
            .map_or(0.0, |time| time.as_secs_f64() * 1e6);
        format!("{micros:.1}")
    };
    row(figure, &format!("median {} us, p90 {} us, p99 {} us", at(50), at(90), at(99)));
}

/// Returns the resident memory of this process in bytes, if the system reports it.
pub(crate) fn resident_memory() -> Option<f64> {
    memory("VmRSS:")
}

/// Returns the peak resident memory of this process in bytes, if the system reports it.
pub(crate) fn peak_memory() -> Option<f64> {
    memory("VmHWM:")
}

fn memory(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0)
}
