//! Unfinished switches: `CURRENT` names a MANIFEST that the disk has lost.
//!
//! `RocksDB` syncs a new MANIFEST, renames a file to `CURRENT`, and then syncs the directory. A power
//! loss before that may keep the second name without the first one. Ext4, XFS and Btrfs keep the name
//! of a new file that was synced; POSIX promises it to nobody. The MANIFEST before the switch is
//! deleted after the sync, and until then nothing is written that only the new one lists. So an
//! index that returns to it has lost nothing.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::directory::{exists, sync};
use super::files::named;
use super::seal::Bounds;
use crate::error::{Error, Result};

/// File whose name becomes `CURRENT`. `RocksDB` deletes files with this ending when it opens.
const NEXT: &str = "000000.dbtmp";

/// Returns the MANIFEST before a switch that a power loss has torn.
pub(in crate::store) fn torn(path: &Path) -> Result<Option<String>> {
    // Opening reports what is wrong with the seal or with CURRENT.
    let (Ok(Some(bounds)), Ok((name, number))) = (Bounds::read(path), named(path)) else {
        return Ok(None);
    };
    if exists(path, &name)? {
        return Ok(None);
    }
    bounds.manifest_before(path, number)
}

/// Returns to the MANIFEST before a torn switch. The caller holds the lock of the index.
pub(in crate::store) fn undo(path: &Path) -> Result<()> {
    let Some(manifest) = torn(path)? else { return Ok(()) };
    let next = path.join(NEXT);
    let written = File::create(&next).and_then(|mut file| {
        writeln!(file, "{manifest}")?;
        file.sync_all()?;
        std::fs::rename(&next, path.join("CURRENT"))
    });
    written.map_err(|e| Error::io(&next, e))?;
    sync(path)
}
