//! Places: whether a directory can be written, what it is on and how much room it has.

use std::path::Path;

use super::Finding;
use crate::failure::Failure;
use crate::size;

/// Room below which large inputs are likely to fill a directory.
const LITTLE: u64 = 1 << 30;

/// What is known of a file system.
struct Volume {
    free: u64,
    kind: &'static str,
}

/// Looks at the directory for temporary files.
pub(super) fn temporary(path: &Path) -> Vec<Finding> {
    if let Err(error) = tempfile::tempfile_in(path) {
        return vec![Finding {
            remedy: Some("name a directory that can be written, by --tmp DIR".to_owned()),
            ..Finding::failed("tmp", &Failure::io(path, error))
        }];
    }
    let Some(volume) = volume(path) else {
        return vec![Finding::good("tmp", path.display().to_string())];
    };
    let found = told(path, &volume);
    let disk = "large inputs are sorted there: name a directory on a disk, by --tmp DIR";
    vec![if ["tmpfs", "ramfs"].contains(&volume.kind) {
        Finding::warning("tmp", format!("{found}, which is memory"), disk)
    } else if volume.free < LITTLE {
        Finding::warning("tmp", found, "make room, or name another directory by --tmp DIR")
    } else {
        Finding::good("tmp", found)
    }]
}

/// Looks at the directory of an index.
pub(super) fn of_index(path: &Path) -> Option<Finding> {
    let volume = volume(path)?;
    let found = told(path, &volume);
    Some(if ["nfs", "cifs", "smb", "9p"].contains(&volume.kind) {
        let remedy = "locks and synced writes over a network hold no more than the server does: \
                      keep the index on a local disk";
        Finding::warning("index on", found, remedy)
    } else if volume.free < LITTLE {
        Finding::warning("index on", found, "make room: folding and compacting need some")
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
