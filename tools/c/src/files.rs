//! Files: rows become documents, by the rules of the command line.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use hamdex::advice::{Choice, Overrides, Resolved, Support};
use hamdex::{Error, Fingerprint, Pipeline, for_width};
use hamdex_io::failure::Result as Read;
use hamdex_io::host::Silent;
use hamdex_io::settings::{self, Asked, Given};
use hamdex_io::{
    Bad, Document, Format, Ids, Inputs, Names, Options, Place, Policy, Reading, Rejects, Repeat,
    Sink, Walking, Wanted,
};

use crate::error::{Failure, HamdexError, Result, free, guard, guard_or, required, write_to};
use crate::index::path;
use crate::pipeline::{HamdexFingerprint, HamdexPipeline, supported};
use crate::slices::{HamdexBytes, HamdexPaths};

/// Files to read as documents, and how; initialise with `hamdex_files_default()`.
///
/// They are read by the rules of the command line, which `tools/hamdex/README.md` describes. Words
/// are those of its options, and so are the options that a message names.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexFiles {
    /// The files and directories, in the order of reading; "-" is standard input.
    pub paths: HamdexPaths,
    /// Field of the text: a name, a path with dots, or several separated by commas. Default =
    /// empty, which is "text", else the first of its usual names that a row has.
    pub text_field: HamdexBytes,
    /// Field of the id. Default = empty, which is "id".
    pub id_field: HamdexBytes,
    /// Format of all files: "jsonl", "json", "csv", "tsv", "parquet", "arrow", "warc", "text",
    /// "u32", "u64" or "u128". Default = empty, which detects the format of each file.
    pub format: HamdexBytes,
    /// How many rows may be bad: a number, or a share such as "5%". Default = empty, "10%".
    pub max_bad: HamdexBytes,
    /// Whether every file is one document, data files too. Default = false.
    pub as_documents: bool,
    /// Whether to read files whose names begin with a dot. Default = false.
    pub hidden: bool,
}

/// The place of a row.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexPlace {
    /// The file; empty if there is no row.
    pub file: HamdexBytes,
    /// Number of the row in its file, from 1; 0 if the file is one document.
    pub row: u64,
    /// Ordinal of the row over all files, from 0; `UINT64_MAX` if there is no row.
    pub ordinal: u64,
}

/// A document of a file.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexFileDocument {
    /// The key: the id of the row, or its place if it has none.
    pub key: HamdexBytes,
    /// The fingerprint.
    pub fingerprint: HamdexFingerprint,
    /// The place of the row.
    pub place: HamdexPlace,
    /// Features of the text; 0 for a row that has a fingerprint instead of a text.
    pub features: usize,
    /// Characters of the text.
    pub length: u64,
}

/// A row that cannot be used.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexBadRow {
    /// The place of the row.
    pub place: HamdexPlace,
    /// The reason, such as "broken JSON: expected value at column 1".
    pub reason: HamdexBytes,
}

/// The counts of a reading.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexReadReport {
    /// All rows.
    pub rows: u64,
    /// Rows that are documents.
    pub documents: u64,
    /// Rows that cannot be used.
    pub rejects: u64,
    /// Of these, rows with nothing to compare, such as empty texts; any number of them is allowed.
    pub blanks: u64,
}

/// Receives a document; any result except 0 stops the call.
pub type HamdexOnDocument =
    Option<extern "C" fn(context: *mut c_void, document: &HamdexFileDocument) -> c_int>;

/// Receives a row that cannot be used, as `hamdex_on_document` does a document.
pub type HamdexOnBad = Option<extern "C" fn(context: *mut c_void, row: &HamdexBadRow) -> c_int>;

/// Fully resolved settings.
///
/// Immutable, so any number of threads may read it. Owned by the caller; free with
/// `hamdex_settings_free`.
#[derive(Debug)]
pub struct HamdexSettings {
    bits: u32,
    distance: u32,
    verification: String,
    pipeline: Option<HamdexPipeline>,
    advice: String,
}

impl HamdexFiles {
    /// Opens all files; `names` has the fields that are read besides id and text.
    pub(crate) fn open(&self, names: Names) -> Result<Inputs> {
        let paths = self.paths.get()?.iter().map(path).collect::<Result<Vec<_>>>()?;
        if paths.is_empty() {
            return Err(Failure::Argument("there are no paths".to_owned()));
        }
        let (text, id) = (self.text_field.word("text_field")?, self.id_field.word("id_field")?);
        let (as_documents, hidden) = (self.as_documents, self.hidden);
        let reading = Walking { format: self.format()?, as_documents, hidden };
        let options = Options { names: Names { text, id, ..names }, reading };
        Ok(Inputs::resolve(&paths, &options, &Silent)?)
    }

    fn format(&self) -> Result<Option<Format>> {
        let name = self.format.text("format")?;
        let known = Format::ALL.iter().find(|(known, ..)| *known == name);
        match known {
            Some((_, format, _)) => Ok(Some(*format)),
            None if name.is_empty() => Ok(None),
            None => Err(Failure::Argument(format!("format is \"{name}\", which is unknown"))),
        }
    }

    pub(crate) fn rejects(&self) -> Result<Rejects> {
        let max_bad = self.max_bad.word("max_bad")?.unwrap_or_default();
        Ok(Rejects::new(Policy { max_bad, ..Policy::default() }, &Silent)?)
    }
}

/// Returns what a call says about its settings to a resolution.
pub(crate) fn resolve<T>(
    overrides: Overrides,
    pipeline: Option<&HamdexPipeline>,
    resolve: impl FnOnce(&Asked<'_>) -> T,
) -> T {
    let given = if pipeline.is_some() { Given::Own } else { Given::Nothing };
    let make = |choice: Choice| match pipeline {
        Some(pipeline) => Ok(pipeline.0.clone()),
        None => Ok(Pipeline::new(&choice.options()?)?),
    };
    resolve(&Asked { overrides, given, make: &make })
}

/// Returns the requested width; `None` if it follows from the files.
pub(crate) fn width(bits: u32) -> Result<Option<u32>> {
    if bits == 0 { Ok(None) } else { supported(bits).map(Some) }
}

/// Chooses what a new index of the files has.
fn choose(inputs: &Inputs, bits: u32) -> Result<HamdexSettings> {
    let (bits, export) = (width_of(inputs, bits)?, inputs.export()?);
    let overrides = Overrides::new().bits(bits).support(Support::Nothing);
    let resolved = resolve(overrides, None, |asked| {
        settings::resolve_new(inputs, export.as_ref(), None, asked)
    })?;
    Ok(HamdexSettings::of(bits, resolved))
}

/// Returns the width of the fingerprints of the files.
fn width_of(inputs: &Inputs, bits: u32) -> Result<u32> {
    let bits = width(bits)?.or(inputs.export()?.map(|export| export.bits));
    Ok(settings::width(bits, None, inputs.raw_width()?)?)
}

impl HamdexSettings {
    pub(crate) fn of(bits: u32, resolved: Resolved) -> Self {
        let Resolved { pipeline, distance, verification, advice } = resolved;
        let mut lines = Vec::new();
        if let Some(advice) = advice {
            lines.push(format!("{}: {}", advice.settings.kind, advice.reason));
            lines.extend(advice.warnings);
        }
        Self {
            bits,
            distance,
            verification: verification.to_string(),
            pipeline: pipeline.map(HamdexPipeline),
            advice: lines.join("\n"),
        }
    }
}

impl HamdexPlace {
    pub(crate) const NONE: Self = Self { file: HamdexBytes::NONE, row: 0, ordinal: u64::MAX };

    fn of<F: Fingerprint>(place: &Place<'_>, ordinal: u64) -> Self {
        Self { file: HamdexBytes::of(place.file.as_bytes()), row: place.row(F::BYTES), ordinal }
    }
}

/// Returns an error if a callback does not want more.
pub(crate) fn go_on(answer: c_int) -> hamdex::Result<()> {
    if answer == 0 { Ok(()) } else { Err(Error::Cancelled) }
}

/// Hands documents and bad rows to the callbacks.
struct Calls {
    on_document: extern "C" fn(*mut c_void, &HamdexFileDocument) -> c_int,
    on_bad: HamdexOnBad,
    context: *mut c_void,
    blanks: u64,
}

impl<F: Fingerprint> Sink<F> for Calls {
    fn document(&mut self, document: Document<'_, F>) -> Read<()> {
        let document = HamdexFileDocument {
            key: HamdexBytes::of(document.key),
            fingerprint: HamdexFingerprint::of(document.fingerprint.widen()),
            place: HamdexPlace::of::<F>(&document.place, document.origin),
            features: document.features.unwrap_or_default(),
            length: document.length,
        };
        Ok(go_on((self.on_document)(self.context, &document))?)
    }

    fn bad(&mut self, bad: &Bad<'_>) -> Read<()> {
        self.blanks += u64::from(bad.reason.not_compared().is_some());
        let Some(on_bad) = self.on_bad else { return Ok(()) };
        let reason = bad.reason.to_string();
        let place = HamdexPlace::of::<F>(&bad.place, bad.origin);
        let row = HamdexBadRow { place, reason: HamdexBytes::of(reason.as_bytes()) };
        Ok(go_on(on_bad(self.context, &row))?)
    }
}

/// Returns no files, and the defaults for reading some.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_files_default() -> HamdexFiles {
    let empty = HamdexBytes::NONE;
    HamdexFiles {
        paths: HamdexPaths::NONE,
        text_field: empty,
        id_field: empty,
        format: empty,
        max_bad: empty,
        as_documents: false,
        hidden: false,
    }
}

/// Chooses the settings of a new index from a sample of the files, as `hamdex build` does.
///
/// `bits` may be 0 for the width of files that have fingerprints, else 64. Files must be readable
/// twice. `*settings` is owned by the caller, and NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_files_choose(
    files: Option<&HamdexFiles>,
    bits: u32,
    settings: Option<&mut MaybeUninit<Option<Box<HamdexSettings>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(settings, "settings")?.write(None);
        let inputs = required(files, "files")?.open(Names::default())?;
        *out = Some(Box::new(choose(&inputs, bits)?));
        Ok(())
    })
}

/// Reads files as `hamdex insert` does, and calls `on_document` for every document, in order.
///
/// Without a pipeline the one of `hamdex_files_choose` is used. `bits` is as there. `on_bad` is
/// called for every row that cannot be used, in order with the documents; it may be NULL. A row
/// whose id an earlier row has is one of these. `context` is passed on to both. If one of them
/// stops the call, the error is `HAMDEX_ERROR_CODE_STOPPED`. `report` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_files_read(
    files: Option<&HamdexFiles>,
    pipeline: Option<&HamdexPipeline>,
    bits: u32,
    on_document: HamdexOnDocument,
    on_bad: HamdexOnBad,
    context: *mut c_void,
    report: Option<&mut MaybeUninit<HamdexReadReport>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let on_document = required(on_document, "on_document")?;
        let files = required(files, "files")?;
        let inputs = Arc::new(files.open(Names::default())?);
        let chosen = if pipeline.is_none() { Some(choose(&inputs, bits)?) } else { None };
        let pipeline = pipeline.or(chosen.as_ref().and_then(|chosen| chosen.pipeline.as_ref()));
        let reading = Reading {
            inputs: &inputs,
            pipeline: pipeline.map(|pipeline| &pipeline.0),
            console: &Silent,
            ids: Ids::Keys(Repeat::Reject),
            keep_blank: false,
            after: None,
            wanted: Wanted::NOTHING,
        };
        let mut rejects = files.rejects()?;
        let mut calls = Calls { on_document, on_bad, context, blanks: 0 };
        let bits = width_of(&inputs, bits)?;
        let totals = for_width!(bits, F => reading.run::<F>(&mut rejects, &mut calls))?;
        let (rows, documents) = (totals.rows, totals.documents);
        let (rejects, blanks) = (rejects.count(), calls.blanks);
        write_to(report, HamdexReadReport { rows, documents, rejects, blanks });
        Ok(())
    })
}

/// Returns the width of the fingerprints in bits; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_settings_bits(settings: Option<&HamdexSettings>) -> u32 {
    guard_or(0, || settings.map_or(0, |settings| settings.bits))
}

/// Returns how many bits near-duplicates may differ in; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_settings_distance(settings: Option<&HamdexSettings>) -> u32 {
    guard_or(0, || settings.map_or(0, |settings| settings.distance))
}

/// Returns the check of near documents, such as "edit:0.8", owned by the settings; empty for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_settings_verification(settings: Option<&HamdexSettings>) -> HamdexBytes {
    guard_or(HamdexBytes::NONE, || {
        settings
            .map_or(HamdexBytes::NONE, |settings| HamdexBytes::of(settings.verification.as_bytes()))
    })
}

/// Returns the pipeline, owned by the settings; do not free it.
///
/// NULL if the files have only fingerprints, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_settings_pipeline(
    settings: Option<&HamdexSettings>,
) -> Option<&HamdexPipeline> {
    guard_or(None, || settings.and_then(|settings| settings.pipeline.as_ref()))
}

/// Returns the reason of the choice and a line for each warning, owned by the settings.
///
/// Empty if nothing was chosen from a sample, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_settings_advice(settings: Option<&HamdexSettings>) -> HamdexBytes {
    guard_or(HamdexBytes::NONE, || {
        settings.map_or(HamdexBytes::NONE, |settings| HamdexBytes::of(settings.advice.as_bytes()))
    })
}

/// Frees settings; does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_settings_free(settings: Option<Box<HamdexSettings>>) {
    free(settings);
}
