//! Devices: what never ends, or is a whole disk, is refused as an input.

use std::fs::Metadata;
use std::io::IsTerminal;
use std::path::Path;

use crate::failure::{Failure, Result};

/// The device that is empty.
const NULL: &str = "/dev/null";

/// Refuses devices other than terminals and the empty one.
pub(super) fn refuse(path: &Path, found: &Metadata) -> Result<()> {
    if !is_device(found) || path.canonicalize().is_ok_and(|real| real == Path::new(NULL)) {
        return Ok(());
    }
    if std::fs::File::open(path).is_ok_and(|file| file.is_terminal()) {
        return Ok(());
    }
    Err(Failure::file(path, "is a device, which may never end; give a file, a pipe or -"))
}

fn is_device(found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    kind.is_char_device() || kind.is_block_device()
}
