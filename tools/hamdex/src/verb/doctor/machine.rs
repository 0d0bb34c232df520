//! The machine: processor, memory, limits and what was measured of it.

use std::fs;
use std::time::Duration;

use super::Finding;
use crate::costs;
use crate::size;

/// Files that an open index may hold, and what the process needs beside.
const FILES_OF_AN_INDEX: u64 = 1000;
const FILES_BESIDE: u64 = 100;

/// How long prices of searching are taken to hold.
const STALE: Duration = Duration::from_hours(365 * 24);

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Which instructions fingerprints are compared with.
pub(super) fn processor() -> Finding {
    let used = hamdex::instructions();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{cores} threads, fingerprints are compared by {used}");
    if used == "portable code" && cfg!(target_arch = "x86_64") {
        let remedy = "a processor with popcnt or AVX2 is several times faster; a virtual machine \
                      may hide them";
        return Finding::warning("processor", found, remedy);
    }
    Finding::good("processor", found)
}

/// Whether the budget fits what is free.
pub(super) fn memory(budget: u64) -> Finding {
    let bytes = |count: u64| size::bytes(count as f64);
    let Some((free, whole)) = free_memory() else {
        return Finding::good("memory", format!("budget {}", bytes(budget)));
    };
    let found =
        format!("budget {} (--memory), {} free of {}", bytes(budget), bytes(free), bytes(whole));
    if budget > whole {
        return Finding::bad("memory", found, "ask for less by --memory");
    }
    if budget > free / 10 * 8 {
        return Finding::warning("memory", found, "ask for less by --memory, or free some");
    }
    Finding::good("memory", found)
}

/// Free and whole memory in bytes, as the system and the control groups allow it.
fn free_memory() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
    };
    let (mut free, mut whole) = (field("MemAvailable:")?, field("MemTotal:")?);
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").to_owned();
    let number = |path: String| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Every group from one's own up to the root may have a limit.
    let mut group = own.trim_end_matches('/');
    loop {
        let root = format!("/sys/fs/cgroup{group}");
        if let Some(limit) = number(format!("{root}/memory.max")) {
            let used = number(format!("{root}/memory.current")).unwrap_or(0);
            whole = whole.min(limit);
            free = free.min(limit.saturating_sub(used));
        }
        match group.rsplit_once('/') {
            Some((above, _)) => group = above,
            None => return Some((free, whole)),
        }
    }
}

/// Whether an index may open as many files as it wants.
pub(super) fn open_files() -> Finding {
    let Some(limit) = limit_of_files() else {
        return Finding::good("open files", "no limit");
    };
    let found = format!("{} allowed", size::thousands(limit));
    let remedy = "raise the limit by 'ulimit -n 4096'";
    if limit < 2 * FILES_BESIDE {
        Finding::bad("open files", found, remedy)
    } else if limit < FILES_OF_AN_INDEX + FILES_BESIDE {
        Finding::warning(
            "open files",
            found,
            format!("{remedy}: a large index has up to 1,000 open"),
        )
    } else {
        Finding::good("open files", found)
    }
}

fn limit_of_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Whether large arrays in memory get large pages.
pub(super) fn huge_pages() -> Finding {
    let Ok(text) = fs::read_to_string(HUGE_PAGES) else {
        return Finding::good("huge pages", "this system has no such setting");
    };
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let chosen = chosen.map_or("unknown", |(chosen, _)| chosen);
    if chosen == "never" {
        let remedy = format!("searches in memory gain from 'echo madvise | sudo tee {HUGE_PAGES}'");
        return Finding::warning("huge pages", chosen, remedy);
    }
    Finding::good("huge pages", chosen)
}

/// Whether prices of searching were measured, and when.
pub(super) fn calibration() -> Finding {
    let remedy = "'hamdex plan --calibrate' measures this machine in some seconds";
    match costs::kept().and_then(|_| costs::age()) {
        Err(failure) => Finding::failed("calibration", &failure),
        Ok(None) => Finding::warning("calibration", "none: searches are priced as usual", remedy),
        Ok(Some((place, age))) => {
            let found = format!("{} days old, in {}", age.as_secs() / 86_400, place.display());
            if age > STALE {
                Finding::warning("calibration", found, remedy)
            } else {
                Finding::good("calibration", found)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Grade;
    use super::*;

    #[test]
    fn a_budget_is_held_against_what_is_free() {
        assert_eq!(memory(1).grade, Grade::Good);
        if free_memory().is_some() {
            let bad = memory(u64::MAX);
            assert_eq!(bad.grade, Grade::Bad);
            assert!(bad.remedy.unwrap().contains("--memory"));
        }
    }
}
