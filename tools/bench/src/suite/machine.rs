//! The machine, commit and date of a report.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Instruction sets that affect the speed of comparisons.
const FEATURES: [&str; 7] =
    ["popcnt", "bmi2", "avx2", "avx512f", "avx512bw", "avx512_vpopcntdq", "asimd"];

/// Returns names and values in display order.
pub(crate) fn describe() -> Vec<(&'static str, String)> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim()).to_owned()
    };
    let flags = format!("{} {}", field("flags"), field("Features"));
    let features: Vec<_> =
        FEATURES.into_iter().filter(|f| flags.split_whitespace().any(|flag| flag == *f)).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        ("processor", field("model name")),
        ("cores", cores.to_string()),
        ("cache", field("cache size")),
        ("instructions", features.join(" ")),
        ("memory", format!("{:.1} GiB", memory("MemTotal:") / f64::from(1 << 30))),
        ("system", first_line("uname", &["-srm"])),
        ("compiler", first_line("rustc", &["--version"])),
        ("commit", commit()),
        ("date", date()),
    ]
}

/// Returns the available memory in bytes.
pub(crate) fn available() -> f64 {
    memory("MemAvailable:")
}

/// Returns the version of a Python package.
pub(crate) fn python_version(python: &Path, package: &str) -> Option<String> {
    let code = format!("import importlib.metadata as m; print(m.version('{package}'))");
    let output = Command::new(python).args(["-c", &code]).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    Some(version).filter(|_| output.status.success())
}

fn memory(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1024.0
}

fn commit() -> String {
    let hash = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    let changes = ["status", "--porcelain", "--untracked-files=no", "--", "src", "tools/bench/src"];
    let changed = !first_line("git", &changes).is_empty();
    if changed { format!("{hash}, with changes") } else { hash }
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// Returns the date in UTC, by Howard Hinnant's algorithm `civil_from_days`.
fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let (month, day) = ((march + 2) % 12 + 1, day - (153 * march + 2) / 5 + 1);
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month < 3))
}
