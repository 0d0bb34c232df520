//! Checks of the machine: processor, memory, limits, measured costs and directories.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::Finding;
use crate::costs;
use crate::failure::Failure;
use crate::size;

/// Files that an open index may hold, and what the process needs beside.
const FILES_OF_AN_INDEX: u64 = 1000;
const FILES_BESIDE: u64 = 100;

/// Time after which measured costs are stale.
const STALE: Duration = Duration::from_hours(365 * 24);

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Reports the instructions that compare fingerprints.
pub(super) fn processor() -> Finding {
    let used = hamdex::inspect::instructions();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{cores} threads, fingerprints are compared with {used}");
    if used == "portable code" && cfg!(target_arch = "x86_64") {
        let remedy = "use a processor with popcnt or AVX2, which is several times faster; a \
                      virtual machine may hide them";
        return Finding::warning("processor", found, remedy);
    }
    Finding::good("processor", found)
}

/// Checks that the budget fits into the free memory.
pub(super) fn memory(budget: u64) -> Finding {
    let bytes = |count: u64| size::bytes(count as f64);
    let Some((free, whole)) = free_memory() else {
        return Finding::good("memory", format!("budget {}", bytes(budget)));
    };
    let found =
        format!("budget {} (--memory), {} free of {}", bytes(budget), bytes(free), bytes(whole));
    if budget > whole {
        return Finding::bad("memory", found, "lower --memory");
    }
    if budget > free / 10 * 8 {
        return Finding::warning("memory", found, "lower --memory, or free some memory");
    }
    Finding::good("memory", found)
}

/// Returns free and total memory in bytes, within the limits of control groups.
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

/// Checks that an index may open enough files.
pub(super) fn open_files() -> Finding {
    let Some(limit) = limit_of_files() else {
        return Finding::good("open files", "no limit");
    };
    let found = format!("{} allowed", size::thousands(limit));
    let remedy = "raise the limit with 'ulimit -n 4096'";
    if limit < 2 * FILES_BESIDE {
        Finding::bad("open files", found, remedy)
    } else if limit < FILES_OF_AN_INDEX + FILES_BESIDE {
        Finding::warning(
            "open files",
            found,
            format!("{remedy}: a large index has up to 1,000 open files"),
        )
    } else {
        Finding::good("open files", found)
    }
}

fn limit_of_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Checks that large arrays in memory get large pages.
pub(super) fn huge_pages() -> Finding {
    let Ok(text) = fs::read_to_string(HUGE_PAGES) else {
        return Finding::good("huge pages", "this system has no such setting");
    };
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let chosen = chosen.map_or("unknown", |(chosen, _)| chosen);
    if chosen == "never" {
        let remedy = format!(
            "make searches in memory faster with 'echo madvise | sudo tee \
                              {HUGE_PAGES}'"
        );
        return Finding::warning("huge pages", chosen, remedy);
    }
    Finding::good("huge pages", chosen)
}

/// Reports whether the costs of searches were measured, and when.
pub(super) fn calibration() -> Finding {
    let remedy = "measure this machine with 'hamdex plan --calibrate' (a few seconds)";
    match costs::kept().and_then(|_| costs::age()) {
        Err(failure) => Finding::failed("calibration", &failure),
        Ok(None) => Finding::warning("calibration", "none; plans use default costs", remedy),
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

/// Room below which large inputs are likely to fill a directory.
const LITTLE: u64 = 1 << 30;

/// The kind and free space of a file system.
struct Volume {
    free: u64,
    kind: &'static str,
}

/// Checks the directory for temporary files.
pub(super) fn temporary(path: &Path) -> Vec<Finding> {
    if let Err(error) = tempfile::tempfile_in(path) {
        return vec![Finding {
            remedy: Some("give a writable directory with --tmp DIR".to_owned()),
            ..Finding::failed("tmp", &Failure::io(path, error))
        }];
    }
    let Some(volume) = volume(path) else {
        return vec![Finding::good("tmp", path.display().to_string())];
    };
    let found = told(path, &volume);
    let disk = "large inputs are sorted there; give a directory on a disk with --tmp DIR";
    vec![if ["tmpfs", "ramfs"].contains(&volume.kind) {
        Finding::warning("tmp", format!("{found}, which is memory"), disk)
    } else if volume.free < LITTLE {
        Finding::warning("tmp", found, "free space, or give another directory with --tmp DIR")
    } else {
        Finding::good("tmp", found)
    }]
}

/// Checks the directory of an index.
pub(super) fn of_index(path: &Path) -> Option<Finding> {
    let volume = volume(path)?;
    let found = told(path, &volume);
    Some(if ["nfs", "cifs", "smb", "9p"].contains(&volume.kind) {
        let remedy = "keep the index on a local disk: over a network, locks and synced writes \
                      are only as reliable as the server";
        Finding::warning("index on", found, remedy)
    } else if volume.free < LITTLE {
        Finding::warning("index on", found, "free space: merging and compacting need it")
    } else {
        Finding::good("index on", found)
    })
}

fn told(path: &Path, volume: &Volume) -> String {
    let free = size::bytes(volume.free as f64);
    format!("{}: {free} free on {}", path.display(), volume.kind)
}

#[cfg(target_os = "linux")]
fn volume(path: &Path) -> Option<Volume> {
    /// Numbers of file systems, as the system's headers have them.
    const KINDS: [(u64, &str); 15] = [
        (0xef53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0x2fc1_2fc1, "zfs"),
        (0xf2f5_2010, "f2fs"),
        (0x0102_1994, "tmpfs"),
        (0x8584_58f6, "ramfs"),
        (0x794c_7630, "overlay"),
        (0x6573_5546, "fuse"),
        (0x6969, "nfs"),
        (0xff53_4d42, "cifs"),
        (0xfe53_4d42, "smb"),
        (0x0102_1997, "9p"),
        (0x4d44, "vfat"),
        (0x2011_bab0, "exfat"),
    ];
    let space = rustix::fs::statvfs(path).ok()?;
    let kind = rustix::fs::statfs(path).ok().and_then(|found| u64::try_from(found.f_type).ok());
    let name = KINDS.iter().find(|(number, _)| Some(*number) == kind);
    let kind = name.map_or("a file system", |(_, name)| name);
    Some(Volume { free: space.f_bavail.saturating_mul(space.f_frsize), kind })
}

#[cfg(not(target_os = "linux"))]
fn volume(_: &Path) -> Option<Volume> {
    None
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
