//! Indexes: create, open and close; one handle type for all three widths.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use hamdex::any::AnyIndex;
use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::{Error, IndexOptions};

use crate::error::{HamdexError, Result, free, guard, guard_or, required, write_to};
use crate::pipeline::{HamdexFingerprint, HamdexPipeline, supported};
use crate::slices::HamdexBytes;

/// An open index of fingerprints of one width.
///
/// Any number of threads may search and write through one handle at the same time. Only one handle
/// of one process may have an index open for writing. Owned by the caller; free with
/// `hamdex_index_close` when no thread uses it any more.
#[derive(Debug)]
pub struct HamdexIndex(pub(crate) AnyIndex);

/// Settings of a new index; initialise with `hamdex_options_default()`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexOptions<'a> {
    /// Width of the fingerprints: 32, 64 or 128. Default = 64.
    pub bits: u32,
    /// Default distance of searches, 0 to a quarter of the width. Default = 3.
    pub distance: u32,
    /// The permutation tables, such as "4", "10" or "6x2". Default = empty, which is "4".
    pub plan: HamdexBytes,
    /// The pipeline of the fingerprints; its descriptor is stored. Default = NULL for none.
    pub pipeline: Option<&'a HamdexPipeline>,
    /// Bytes for block cache and write buffers. Default = 512 MiB.
    pub memory: usize,
    /// Bytes for holding all fingerprints in memory, 0 to disable. Default = 0.
    pub resident: usize,
}

/// How an index is opened; initialise with `hamdex_open_options_default()`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexOpenOptions {
    /// Bytes for block cache and write buffers. Default = 512 MiB.
    pub memory: usize,
    /// Bytes for holding all fingerprints in memory, 0 to disable. Default = 0.
    pub resident: usize,
    /// Whether to open read-only; another process may write. Default = false.
    pub read_only: bool,
    /// Whether a background thread merges delta entries into runs. Default = false.
    pub background_fold: bool,
}

/// Default bytes of memory.
pub(crate) const MEMORY: usize = 512 << 20;

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
    fn settings(self) -> IndexOptions {
        IndexOptions::new()
            .memory(self.memory)
            .resident(self.resident)
            .read_only(self.read_only)
            .background_merge(self.background_fold)
    }
}

/// Returns the default settings of a new index.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_options_default() -> HamdexOptions<'static> {
    let plan = HamdexBytes::NONE;
    HamdexOptions { bits: 64, distance: 3, plan, pipeline: None, memory: MEMORY, resident: 0 }
}

/// Returns the default settings for opening an index.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_open_options_default() -> HamdexOpenOptions {
    HamdexOpenOptions { memory: MEMORY, resident: 0, read_only: false, background_fold: false }
}

/// Converts a path, which may be any bytes.
pub(crate) fn path(bytes: &HamdexBytes) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes.get("path")?)).to_owned())
}

/// Creates a new, empty index in a directory that does not exist or is empty.
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

/// Opens an index with fingerprints of `bits` bits; 0 accepts any width.
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

/// Closes an index; all writes survive. Does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_close(index: Option<Box<HamdexIndex>>) {
    free(index);
}

/// Returns the width of the fingerprints in bits; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_bits(index: Option<&HamdexIndex>) -> u32 {
    guard_or(0, || index.map_or(0, |index| index.0.bits()))
}

/// Returns the default distance of searches; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_distance(index: Option<&HamdexIndex>) -> u32 {
    guard_or(0, || index.map_or(0, |index| index.0.distance()))
}

/// Returns the number of stored documents.
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

/// Looks up the fingerprint of a document.
///
/// If the key is not stored, `*found` is false and `*fingerprint` is 0. Either pointer may be NULL.
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
        write_to(found, stored.is_some());
        write_to(fingerprint, stored.unwrap_or_default());
        Ok(())
    })
}
