//! Files that are mapped for reading, so that processes share one copy in memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a whole file, which nobody may change afterwards.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: The bytes of a mapping change, or are missing, only if the file is written or cut
    // meanwhile. Files of this library are made under another name and never written again, and
    // the documentation of everything that opens one says so.
    unsafe { Mmap::map(file) }
}
