//! Resident memory of this process, where the system tells.

/// Resident bytes now.
pub(crate) fn resident() -> Option<f64> {
    field("VmRSS:")
}

/// The most that were ever resident.
pub(crate) fn peak() -> Option<f64> {
    field("VmHWM:")
}

fn field(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0)
}
