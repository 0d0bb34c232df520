//! Deduplication: decides on every row of files, as the command line does.

use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use hamdex::advice::{Overrides, Resolved};
use hamdex::dedup::{Decision, DedupOptions};
use hamdex::verify::{EvidencePreparer, Verification};
use hamdex::{Fingerprint, for_width};
use hamdex_io::failure::Result as Read;
use hamdex_io::job::{Against, Choice, Documents, Field, Keep, Purpose, To};
use hamdex_io::settings;
use hamdex_io::{
    Bad, Blank, Document, Ids, Inputs, Names, Origins, Reading, Rejects, Sink, Wanted,
};

use crate::error::{HamdexError, Result, guard, required, write_to};
use crate::files::{HamdexFiles, HamdexPlace, HamdexSettings, go_on, resolve, width};
use crate::index::{HamdexIndex, MEMORY, path};
use crate::pipeline::HamdexPipeline;
use crate::search::{HAMDEX_OWN_DISTANCE, distance_of};
use crate::slices::HamdexBytes;
use crate::stop::{HamdexStop, Stoppable};

/// How to deduplicate; initialise with `hamdex_dedup_options_default()`.
///
/// Words are those of the options of `hamdex dedup`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexDedupOptions<'a> {
    /// How many bits near-duplicates may differ in. Default = `HAMDEX_OWN_DISTANCE`, that of the
    /// index, else chosen from the texts.
    pub distance: u32,
    /// Check of near documents, such as "none", "edit:0.8" or "jaccard:0.6". Default = empty,
    /// chosen from the texts, or by what the index keeps.
    pub verification: HamdexBytes,
    /// The pipeline, used as it is. Default = NULL, that of the index, else chosen from the texts.
    pub pipeline: Option<&'a HamdexPipeline>,
    /// Width of the fingerprints: 32, 64 or 128. Default = 0, that of the index or of files that
    /// have fingerprints, else 64.
    pub bits: u32,
    /// Document of a group to keep: "first", "longest", "newest:FIELD" or "best:FIELD". Default =
    /// empty, which is "first".
    pub keep: HamdexBytes,
    /// Field whose value only one row keeps, before any other comparison. Default = empty for none.
    pub unique_by: HamdexBytes,
    /// Rows to leave: a count such as "5000", or a share such as "0.8" or "80%". Only the closest
    /// duplicates are removed then; if no other pair is near enough, more rows are left. Default =
    /// empty for no target.
    pub to: HamdexBytes,
    /// Whether rows with nothing to compare are bad rows. Default = false.
    pub drop_empty: bool,
    /// Bytes of memory to use; what does not fit is in temporary files. Default = 512 MiB.
    pub memory: usize,
    /// Directory for temporary files. Default = empty, that of the system.
    pub tmp: HamdexBytes,
    /// Also removes what is near a document of this index. Default = NULL for none.
    pub index: Option<&'a HamdexIndex>,
    /// Ends the call once another thread requests it. Default = NULL for never.
    pub stop: Option<&'a HamdexStop>,
}

/// The decision on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum HamdexFate {
    /// Kept: no other document is near, or it is the one of its group to keep.
    Kept = 1,
    /// Kept: it has nothing to compare, such as an empty text.
    Blank = 2,
    /// Removed: it is near a row that is kept.
    Duplicate = 3,
    /// Removed: it is near a document of the index.
    Stored = 4,
    /// Removed: it has the value of `unique_by` of a row that is kept.
    Repeat = 5,
    /// Neither: it cannot be used, such as a broken line.
    Bad = 6,
}

/// A row and the decision on it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexRow {
    /// The place of the row.
    pub place: HamdexPlace,
    /// The decision.
    pub fate: HamdexFate,
    /// Whether a deduplicated copy of the files has the row.
    pub kept: bool,
    /// Number of its group, from 1; 0 if it is in none.
    pub cluster: u32,
    /// Of a duplicate or repeat, the place of the row that is kept.
    pub kept_place: HamdexPlace,
    /// Of a row near the index, the key of the stored document; else empty.
    pub stored_key: HamdexBytes,
    /// Distance to the kept row or stored document in bits; `UINT32_MAX` if there is none.
    pub distance: u32,
    /// Similarity to it, as the check measures it; -1 if nothing was checked.
    pub similarity: f64,
    /// Why the row is bad or has nothing to compare; else empty.
    pub reason: HamdexBytes,
}

/// The counts of a deduplication.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexDedupReport {
    /// All rows.
    pub rows: u64,
    /// Rows that can be used: kept and removed ones.
    pub documents: u64,
    /// Rows that are kept.
    pub kept: u64,
    /// Rows that are removed.
    pub removed: u64,
    /// Of these, rows with nothing to compare.
    pub blanks: u64,
    /// Groups of near-duplicates.
    pub clusters: u64,
    /// Rows that cannot be used.
    pub rejects: u64,
    /// Documents with a fingerprint and no text, which a check cannot compare.
    pub unverified: u64,
}

/// Receives the decision on a row; any result except 0 stops the call.
pub type HamdexOnRow = Option<extern "C" fn(context: *mut c_void, row: &HamdexRow) -> c_int>;

/// Returns the default settings of a deduplication.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_dedup_options_default() -> HamdexDedupOptions<'static> {
    let empty = HamdexBytes::NONE;
    HamdexDedupOptions {
        distance: HAMDEX_OWN_DISTANCE,
        verification: empty,
        pipeline: None,
        bits: 0,
        keep: empty,
        unique_by: empty,
        to: empty,
        drop_empty: false,
        memory: MEMORY,
        tmp: empty,
        index: None,
        stop: None,
    }
}

/// Decides which rows of files to keep, as `hamdex dedup` does, and writes nothing.
///
/// When everything is decided, `on_row` is called for every row, in order; it may be NULL, and gets
/// `context`. If it stops the call, or `stop` of the options is requested meanwhile, the error is
/// `HAMDEX_ERROR_CODE_STOPPED`. `options` may be NULL for the defaults, and `report` and `settings`
/// may be NULL. `*settings` has what was passed or chosen; it is owned by the caller, and NULL after
/// an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_files_dedup(
    files: Option<&HamdexFiles>,
    options: Option<&HamdexDedupOptions<'_>>,
    on_row: HamdexOnRow,
    context: *mut c_void,
    report: Option<&mut MaybeUninit<HamdexDedupReport>>,
    settings: Option<&mut MaybeUninit<Option<Box<HamdexSettings>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = settings.map(|settings| settings.write(None));
        let files = required(files, "files")?;
        let options = options.copied().unwrap_or_else(|| hamdex_dedup_options_default());
        let job = Job::of(files, &options)?;
        let (counts, made) = for_width!(job.bits, F => job.run::<F>(on_row, context))?;
        write_to(report, counts);
        if let Some(out) = out {
            *out = Some(Box::new(made));
        }
        Ok(())
    })
}

/// One call.
struct Job<'a> {
    inputs: Arc<Inputs>,
    rejects: Rejects,
    keep: Keep,
    unique: bool,
    to: Option<To>,
    drop_empty: bool,
    bits: u32,
    resolved: Resolved,
    near: DedupOptions,
    index: Option<&'a HamdexIndex>,
    host: Stoppable,
}

impl<'a> Job<'a> {
    /// Opens the files and resolves the settings.
    fn of(files: &HamdexFiles, options: &HamdexDedupOptions<'a>) -> Result<Self> {
        let keep = options.keep.word("keep")?.unwrap_or(Keep::First);
        let verification: Option<Verification> = options.verification.word("verification")?;
        let to: Option<To> = options.to.word("to")?;
        let host = Stoppable::by(options.stop);
        let tmp = path(&options.tmp)?;
        let tmp = (!tmp.as_os_str().is_empty()).then_some(tmp);
        let stamp = match &keep {
            Keep::Largest(Field { name, .. }) => Some(name.clone()),
            Keep::First | Keep::Longest => None,
        };
        let field: Option<String> = options.unique_by.word("unique_by")?;
        let (unique, drop_empty) = (field.is_some(), options.drop_empty);
        let rejects = files.rejects()?;
        let mut inputs = files.open(Names { stamp, unique: field, ..Names::default() })?;
        let header = options.index.map(|index| index.0.header());
        let bits = settings::width(width(options.bits)?, header, inputs.raw_width()?)?;
        inputs.spool(tmp.as_deref(), &host)?;
        let distance = distance_of(options.distance);
        let resolved = if let (Some(header), Some(index)) = (header, options.index) {
            let pipeline = match options.pipeline {
                Some(wanted) => Some(settings::require_pipeline(&wanted.0, header)?),
                None => index.0.pipeline_with(None)?,
            };
            settings::resolve_against(header, pipeline, distance, verification)?
        } else {
            let mut overrides = Overrides::new().bits(bits);
            overrides.distance = distance;
            overrides.verification = verification;
            resolve(overrides, options.pipeline, |asked| settings::resolve(&inputs, asked))?
        };
        let mut near = DedupOptions::of(&resolved).memory(options.memory);
        near.tmp = tmp;
        let (inputs, index) = (Arc::new(inputs), options.index);
        Ok(Self {
            inputs,
            rejects,
            keep,
            unique,
            to,
            drop_empty,
            bits,
            resolved,
            near,
            index,
            host,
        })
    }

    fn run<F: Fingerprint>(
        self,
        on_row: HamdexOnRow,
        context: *mut c_void,
    ) -> Result<(HamdexDedupReport, HamdexSettings)> {
        let Self {
            inputs,
            mut rejects,
            keep,
            unique,
            to,
            drop_empty,
            bits,
            resolved,
            near,
            index,
            host,
        } = self;
        let reading = Reading {
            inputs: &inputs,
            pipeline: resolved.pipeline.as_ref(),
            console: &host,
            ids: Ids::Labels,
            keep_blank: !drop_empty,
            after: None,
            wanted: Wanted::by(resolved.verification),
        };
        let against = index.is_some();
        let purpose = Purpose { keep: &keep, near: &near, unique, against, sourced: false };
        let documents = Documents::<F>::new(&purpose)?;
        let mut taken = Taken { documents, blank: Vec::new(), bad: Vec::new() };
        let totals = reading.run::<F>(&mut rejects, &mut taken)?;
        let Taken { documents, blank, bad } = taken;
        documents.require_fields(&keep, None)?;
        let (all, unverified) = (documents.rows(), documents.without());
        let against = match index {
            Some(index) => Against::Index(index.0.of_width::<F>()?),
            None => Against::Nothing,
        };
        let leave = to.map(|to| to.rows(all));
        let choice = documents.decide(against, leave, &host)?;
        let removed = (choice.decisions.removed() + choice.repeats.len()) as u64;
        let report = HamdexDedupReport {
            rows: totals.rows,
            documents: all,
            kept: all - removed,
            removed,
            blanks: blank.len() as u64,
            clusters: choice.decisions.clusters().len() as u64,
            rejects: rejects.count(),
            unverified,
        };
        if let Some(on_row) = on_row {
            let rows = Rows { inputs: &inputs, origins: &totals.origins, choice, blank, bad };
            rows.each(&mut |row| go_on(on_row(context, row)))?;
        }
        Ok((report, HamdexSettings::of(bits, resolved)))
    }
}

/// Collects documents, and why other rows are none.
struct Taken<F> {
    documents: Documents<F>,
    /// Reasons of rows with nothing to compare, in order.
    blank: Vec<&'static str>,
    /// Ordinals and reasons of bad rows, rising.
    bad: Vec<(u64, String)>,
}

impl<F: Fingerprint> Sink<F> for Taken<F> {
    fn document(&mut self, document: Document<'_, F>) -> Read<()> {
        self.documents.document(document)
    }

    fn preparer(&self) -> Option<EvidencePreparer> {
        Sink::<F>::preparer(&self.documents)
    }

    fn blank(&mut self, blank: Blank) -> Read<()> {
        self.blank.push(blank.reason);
        Sink::<F>::blank(&mut self.documents, blank)
    }

    fn bad(&mut self, bad: &Bad<'_>) -> Read<()> {
        self.bad.push((bad.origin, bad.reason.to_string()));
        Ok(())
    }
}

/// Receives the rows.
type Visit<'v> = dyn FnMut(&HamdexRow) -> hamdex::Result<()> + 'v;

/// All rows, with the decisions on them.
struct Rows<'a, F> {
    inputs: &'a Inputs,
    origins: &'a Origins,
    choice: Choice<F>,
    blank: Vec<&'static str>,
    bad: Vec<(u64, String)>,
}

impl<F: Fingerprint> Rows<'_, F> {
    /// Calls `visit` with every row, by its ordinal.
    fn each(&self, visit: &mut Visit<'_>) -> hamdex::Result<()> {
        let Choice { decisions, origins, blanks, .. } = &self.choice;
        let mut documents = origins.iter().zip(decisions.iter()).peekable();
        let mut blank = blanks.iter().zip(&self.blank).peekable();
        let mut bad = self.bad.iter().peekable();
        loop {
            let next = [
                documents.peek().map(|(ordinal, _)| *ordinal),
                blank.peek().map(|(ordinal, _)| *ordinal),
                bad.peek().map(|(ordinal, _)| *ordinal),
            ];
            let Some(ordinal) = next.into_iter().flatten().min() else { return Ok(()) };
            let decision = documents.next_if(|(at, _)| *at == ordinal).map(|(_, it)| it);
            let blank = blank.next_if(|(at, _)| *at == ordinal).map(|(_, reason)| *reason);
            let bad = bad.next_if(|(at, _)| *at == ordinal).map(|(_, reason)| reason.as_str());
            match (self.choice.repeats.get(&ordinal), decision, blank, bad) {
                (Some(&kept), ..) => self.repeat(ordinal, kept, visit)?,
                (_, Some(decision), ..) => self.document(ordinal, decision, visit)?,
                (_, _, Some(reason), _) => {
                    self.row(ordinal, (HamdexFate::Blank, reason), visit)?;
                }
                (.., reason) => {
                    let reason = reason.unwrap_or_default();
                    self.row(ordinal, (HamdexFate::Bad, reason), visit)?;
                }
            }
        }
    }

    /// Visits a row that shares a value with a kept one.
    fn repeat(&self, ordinal: u64, kept: u64, visit: &mut Visit<'_>) -> hamdex::Result<()> {
        let (file, kept_file) = (self.find(ordinal), self.find(kept));
        let row = row(HamdexFate::Repeat, place(&file, ordinal));
        visit(&HamdexRow { kept: false, kept_place: place(&kept_file, kept), ..row })
    }

    fn document(
        &self,
        ordinal: u64,
        decision: Decision<'_>,
        visit: &mut Visit<'_>,
    ) -> hamdex::Result<()> {
        let file = self.find(ordinal);
        let row = row(HamdexFate::Kept, place(&file, ordinal));
        let measured = |similarity: Option<f64>| similarity.unwrap_or(-1.0);
        match decision {
            Decision::Kept { cluster } => {
                visit(&HamdexRow { cluster: cluster.unwrap_or_default(), ..row })
            }
            Decision::Duplicate { kept, distance, similarity, cluster } => {
                let kept = self.choice.origins.get(kept as usize).unwrap_or(u64::MAX);
                let file = self.find(kept);
                visit(&HamdexRow {
                    fate: HamdexFate::Duplicate,
                    kept: false,
                    cluster,
                    kept_place: place(&file, kept),
                    distance,
                    similarity: measured(similarity),
                    ..row
                })
            }
            Decision::Stored { key, distance, similarity } => visit(&HamdexRow {
                fate: HamdexFate::Stored,
                kept: false,
                stored_key: HamdexBytes::of(key),
                distance,
                similarity: measured(similarity),
                ..row
            }),
        }
    }

    /// Visits a row that is no document.
    fn row(
        &self,
        ordinal: u64,
        (fate, reason): (HamdexFate, &str),
        visit: &mut Visit<'_>,
    ) -> hamdex::Result<()> {
        let file = self.find(ordinal);
        let row = row(fate, place(&file, ordinal));
        visit(&HamdexRow { reason: HamdexBytes::of(reason.as_bytes()), ..row })
    }

    fn find(&self, ordinal: u64) -> (Cow<'_, str>, u64) {
        self.inputs.find(self.origins, ordinal).unwrap_or_default()
    }
}

fn place((file, row): &(Cow<'_, str>, u64), ordinal: u64) -> HamdexPlace {
    HamdexPlace { file: HamdexBytes::of(file.as_bytes()), row: *row, ordinal }
}

fn row(fate: HamdexFate, place: HamdexPlace) -> HamdexRow {
    HamdexRow {
        place,
        fate,
        kept: fate != HamdexFate::Bad,
        cluster: 0,
        kept_place: HamdexPlace::NONE,
        stored_key: HamdexBytes::NONE,
        distance: u32::MAX,
        similarity: -1.0,
        reason: HamdexBytes::NONE,
    }
}
