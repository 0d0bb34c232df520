//! Indexes: made, opened and closed; one handle for every width.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::{AnyIndex, Error, IndexOptions, OpenOptions};

use crate::border::{Result, end, give, guard, guard_or, required};
use crate::error::HamdexError;
use crate::fingerprint::{HamdexFingerprint, supported};
use crate::pipeline::HamdexPipeline;
use crate::slices::HamdexBytes;

/// An open index of fingerprints of one width.
///
/// Any number of threads may search and write through one handle at a time. One process and one
/// handle at a time may have an index open for writing. Owned by the caller, who ends it with
/// `hamdex_index_close` when no thread uses it any more.
#[derive(Debug)]
pub struct HamdexIndex(pub(crate) AnyIndex);

/// What a new index is made with; begin with `hamdex_options_default()`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexOptions<'a> {
    /// Width of the fingerprints: 32, 64 or 128. Default = 64.
    pub bits: u32,
    /// Distance of searches that name none, 0 to a quarter of the width. Default = 3.
    pub distance: u32,
    /// The permutation tables, such as "4", "10" or "6x2". Default = empty, which is "4".
    pub plan: HamdexBytes,
    /// The pipeline that makes the fingerprints, whose name is stored. Default = NULL for none.
    pub pipeline: Option<&'a HamdexPipeline>,
    /// Bytes for block cache and write buffers. Default = 512 MiB.
    pub memory: usize,
    /// Bytes for holding all fingerprints in memory. Default = 0 for not.
    pub resident: usize,
}

/// How an index is opened; begin with `hamdex_open_options_default()`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexOpenOptions {
    /// Bytes for block cache and write buffers. Default = 512 MiB.
    pub memory: usize,
    /// Bytes for holding all fingerprints in memory. Default = 0 for not.
    pub resident: usize,
    /// Whether it is opened for reading only, beside a process that may write. Default = false.
    pub read_only: bool,
    /// Whether a thread of the index folds single entries into runs. Default = false.
    pub background_fold: bool,
}

const MEMORY: usize = 512 << 20;

impl HamdexOptions<'_> {
    pub(crate) fn settings(&self) -> Result<IndexOptions> {
        let mut settings =
            IndexOptions::new().distance(self.distance).memory(self.memory).resident(self.resident);
        let plan = self.plan.text("plan")?;
        if !plan.is_empty() {
            settings = settings.plan(Plan::parse(plan, self.bits, self.distance, None)?);
        }
        if let Some(pipeline) = self.pipeline {
            settings = settings.text(&pipeline.0);
        }
        Ok(settings)
    }
}

impl HamdexOpenOptions {
    fn settings(self) -> OpenOptions {
        OpenOptions::new()
            .memory(self.memory)
            .resident(self.resident)
            .read_only(self.read_only)
            .background_fold(self.background_fold)
    }
}

/// Returns the settings that an index has unless they are changed.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_options_default() -> HamdexOptions<'static> {
    let plan = HamdexBytes::NONE;
    HamdexOptions { bits: 64, distance: 3, plan, pipeline: None, memory: MEMORY, resident: 0 }
}

/// Returns the settings that an index is opened with unless they are changed.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_open_options_default() -> HamdexOpenOptions {
    HamdexOpenOptions { memory: MEMORY, resident: 0, read_only: false, background_fold: false }
}

/// Reads a path: any bytes where the system allows it, else UTF-8.
pub(crate) fn path(bytes: &HamdexBytes) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes.get("path")?)).to_owned())
}

/// Makes a new, empty index in a directory that is absent or empty.
///
/// `options` may be NULL for the defaults. `*index` is NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_create(
    path: HamdexBytes,
    options: Option<&HamdexOptions<'_>>,
    index: Option<&mut MaybeUninit<Option<Box<HamdexIndex>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(index, "index")?.write(None);
        let options = options.copied().unwrap_or_else(|| hamdex_options_default());
        let (path, settings) = (self::path(&path)?, options.settings()?);
        let made = AnyIndex::create(path, supported(options.bits)?, &settings)?;
        *out = Some(Box::new(HamdexIndex(made)));
        Ok(())
    })
}

/// Opens an index that holds fingerprints of so many bits; 0 for whatever it holds.
///
/// `options` may be NULL for the defaults. `*index` is NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_open(
    path: HamdexBytes,
    bits: u32,
    options: Option<&HamdexOpenOptions>,
    index: Option<&mut MaybeUninit<Option<Box<HamdexIndex>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(index, "index")?.write(None);
        let options = options.copied().unwrap_or_else(|| hamdex_open_options_default()).settings();
        let path = self::path(&path)?;
        if bits != 0 {
            let (wanted, stored) = (supported(bits)?, Header::read(&path)?.bits);
            if wanted != stored {
                return Err(Error::WidthMismatch { stored, wanted }.into());
            }
        }
        let opened = AnyIndex::open_with(path, &options)?;
        *out = Some(Box::new(HamdexIndex(opened)));
        Ok(())
    })
}

/// Closes an index; what was written survives. Nothing happens for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_close(index: Option<Box<HamdexIndex>>) {
    end(index);
}

/// Returns the width of the fingerprints in bits; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_bits(index: Option<&HamdexIndex>) -> u32 {
    guard_or(0, || index.map_or(0, |index| index.0.bits()))
}

/// Returns the distance of searches that name none; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_distance(index: Option<&HamdexIndex>) -> u32 {
    guard_or(0, || index.map_or(0, |index| index.0.distance()))
}

/// Counts the stored documents.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_len(
    index: Option<&HamdexIndex>,
    documents: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(documents, "documents")?;
        out.write(required(index, "index")?.0.len()?);
        Ok(())
    })
}

/// Reads the fingerprint of a document.
///
/// `*found` is false where none is stored under the key, and `*fingerprint` is 0 then. Either may
/// be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_get(
    index: Option<&HamdexIndex>,
    key: HamdexBytes,
    fingerprint: Option<&mut MaybeUninit<HamdexFingerprint>>,
    found: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let (index, key) = (required(index, "index")?, key.get("key")?);
        let stored = index.0.get(key)?.map(HamdexFingerprint::of);
        give(found, stored.is_some());
        give(fingerprint, stored.unwrap_or_default());
        Ok(())
    })
}
