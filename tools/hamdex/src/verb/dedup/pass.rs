//! The second pass: rows to keep are copied, of all others only the ids are noted.
//!
//! Rows are read, decoded and labelled on all threads; one thread writes them in order.

use std::collections::HashMap;
use std::sync::Arc;

use hamdex::Fingerprint;
use hamdex::dedup::{Decision, DedupOptions, Sources};
use hamdex_io::host::Host;

use super::crowds::Samples;
use super::files::Files;
use super::form::Sinks;
use super::page::Seen;
use super::parts::{CutRow, Cutting, Parts};
use super::row::Row;
use crate::console::Console;
use crate::failure::Result;
use crate::input::{Body, Chunk, Inputs, Totals, changed, for_each_made, row_label};
use crate::job::Choice;
use crate::session::Session;
use crate::verb::gather::Keys;

/// The kept rows, and what is known of the others.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) count: u64,
    pub(super) ids: Ids,
    /// Labels of rows that share a value, by their ordinals.
    pub(super) labels: HashMap<u64, String>,
    /// Rows of each source: kept and removed.
    pub(super) sources: Sources,
    /// What was cut from the kept rows.
    pub(super) parts: Option<Parts>,
    /// Rows of which too little was left.
    pub(super) dropped: Vec<Dropped>,
}

/// A row that is nearly all boilerplate.
#[derive(Debug)]
pub(super) struct Dropped {
    pub(super) origin: u64,
    pub(super) label: String,
    /// Share of its letters that is not boilerplate.
    pub(super) left: f64,
}

/// Ids of the documents that are not alone, in the order of the inputs; of all with a state.
#[derive(Debug)]
pub(super) struct Ids {
    keys: Keys,
    /// Position of each among the documents.
    positions: Vec<u32>,
}

impl Ids {
    /// Returns the positions of the documents.
    pub(super) fn positions(&self) -> impl Iterator<Item = u32> {
        self.positions.iter().copied()
    }

    /// Returns the id of a document; empty if it is alone.
    pub(super) fn get(&self, position: u32) -> hamdex::Result<Vec<u8>> {
        match self.positions.binary_search(&position) {
            Ok(slot) => self.keys.get(slot),
            Err(_) => Ok(Vec::new()),
        }
    }

    fn note(&mut self, key: &[u8], position: u32) -> Result<()> {
        self.positions.push(position);
        self.keys.push(key)
    }
}

/// Reads all inputs again, as far as the first time.
pub(super) fn run<F: Fingerprint>(
    session: &Session,
    inputs: &Arc<Inputs>,
    files: &Files,
    (choice, totals): (&Choice<F>, &Totals),
    (seen, samples): (Option<&mut Seen>, &mut Samples),
    (cutting, near): (Option<&Cutting<'_>>, &DedupOptions),
) -> Result<(Sinks, Kept)> {
    let rows = Sinks::new(files, inputs, &totals.origins, session)?;
    let read = rows.reads();
    let sources = match &choice.named {
        Some(named) => named.sources.clone(),
        None => Sources::of_names(inputs.sources.iter().map(|source| source.name.as_str())),
    };
    let kept = Kept {
        count: 0,
        ids: Ids { keys: Keys::new(near.memory, near.tmp.as_deref())?, positions: Vec::new() },
        labels: HashMap::new(),
        sources,
        parts: cutting.map(|cutting| cutting.parts.clone()),
        dropped: Vec::new(),
    };
    let mut pass = Pass {
        inputs,
        files,
        console: &session.console,
        choice,
        next: 0,
        next_blank: 0,
        raw_rows: 0,
        rows,
        kept,
        seen,
        samples,
    };
    session.console.begin_reading("writing", inputs.bytes());
    let extents = Some(&totals.extents);
    let label = |chunk: Chunk| {
        let labelled = Labelled::of(inputs, choice, cutting, chunk)?;
        let bytes = labelled.bytes();
        Ok((labelled, bytes))
    };
    for_each_made(inputs, read, extents, &session.console, label, |source, base, labelled| {
        pass.chunk(source, base, labelled)
    })?;
    session.console.end_phase();
    let all =
        (pass.next as usize) < choice.origins.count() || pass.next_blank < choice.blanks.count();
    if all {
        let missing = choice.origins.get(pass.next as usize);
        let missing = missing.or_else(|| choice.blanks.get(pass.next_blank));
        let at = missing.map_or_else(String::new, |origin| inputs.at(&totals.origins, origin));
        return Err(changed(&at));
    }
    let Pass { rows, mut kept, .. } = pass;
    kept.ids.keys = kept.ids.keys.finish()?;
    Ok((rows, kept))
}

/// A chunk with the labels of those rows that need one, and what is left of those that are cut.
struct Labelled {
    body: Body,
    /// Ordinals and labels of lines, rising.
    labels: Vec<(u64, String)>,
    /// By the rows of the chunk; empty if nothing is to be cut.
    cut: Vec<Option<CutRow>>,
}

impl Labelled {
    fn of<F: Fingerprint>(
        inputs: &Inputs,
        choice: &Choice<F>,
        cutting: Option<&Cutting<'_>>,
        chunk: Chunk,
    ) -> Result<Self> {
        let Chunk { source: at, base, body, .. } = chunk;
        let (body, base) = (body.lines()?, base.unwrap_or_default());
        let mut labels = Vec::new();
        if let (Body::Lines { bytes, lines }, Some(source)) = (&body, inputs.sources.get(at)) {
            let first = lines.first().map_or(base, |line| base + line.ordinal);
            let mut next = choice.origins.before(first);
            for line in lines {
                let (ordinal, origin) = (line.ordinal, base + line.ordinal);
                let document = choice.origins.get(next) == Some(origin);
                let position = u32::try_from(next).ok().filter(|_| document);
                next += usize::from(document);
                if choice.is_labelled(position, origin) {
                    let bytes = bytes.get(line.bytes.clone()).unwrap_or_default();
                    let label = row_label(&source.fields, &source.name, ordinal, bytes);
                    let at = || changed(&format!("{}:{}", source.name, ordinal + 1));
                    labels.push((ordinal, label.map_err(|_| at())?));
                }
            }
        }
        let cut = |cutting: &Cutting<'_>| {
            cutting.rows(choice, &Row::of_chunk(inputs, (at, base), &body, &labels))
        };
        let cut = cutting.map(cut).unwrap_or_default();
        Ok(Self { body, labels, cut })
    }

    /// Returns the bytes in memory.
    fn bytes(&self) -> usize {
        let lines = self.cut.iter().flatten().filter_map(|cut| cut.line.as_ref());
        self.body.bytes() + lines.map(Vec::len).sum::<usize>()
    }
}

struct Pass<'a, F> {
    inputs: &'a Inputs,
    files: &'a Files,
    console: &'a Console,
    choice: &'a Choice<F>,
    /// Position of the next document to come.
    next: u32,
    /// Position of the next row with nothing to compare.
    next_blank: usize,
    /// Position of the next raw fingerprint.
    raw_rows: u64,
    rows: Sinks,
    kept: Kept,
    /// Looks at every document, where a page is to show some.
    seen: Option<&'a mut Seen>,
    /// Catches texts of large groups.
    samples: &'a mut Samples,
}

impl<F: Fingerprint> Pass<'_, F> {
    fn chunk(&mut self, at: usize, base: u64, labelled: Labelled) -> Result<()> {
        let Labelled { body, labels, cut } = labelled;
        match &body {
            Body::Lines { .. } | Body::Texts(_) => {
                let rows = Row::of_chunk(self.inputs, (at, base), &body, &labels);
                let mut cut = cut.iter().map(Option::as_ref);
                rows.iter()
                    .try_for_each(|(origin, row)| self.row(at, *origin, row, cut.next().flatten()))
            }
            // Rows of tables are lines by now.
            Body::Table(_) => Ok(()),
            Body::Raw { first, bytes, .. } => {
                let rows = bytes.chunks_exact(F::BYTES).zip(base + first..);
                rows.map(|(_, origin)| origin).try_for_each(|origin| {
                    let fingerprint = self.choice.decisions.fingerprint(self.next);
                    let row = Row::Raw { position: self.raw_rows, fingerprint };
                    self.raw_rows += 1;
                    self.row(at, origin, &row, None)
                })
            }
        }
    }

    fn row(
        &mut self,
        source: usize,
        origin: u64,
        row: &Row<'_, F>,
        cut: Option<&CutRow>,
    ) -> Result<()> {
        let position = self.next;
        let document = self.choice.origins.get(position as usize) == Some(origin);
        let named = self.choice.named.as_ref();
        let from = match named {
            Some(named) if document => named.of_document(position),
            Some(named) => named.of_blank(self.next_blank),
            None => u32::try_from(source).unwrap_or(u32::MAX),
        };
        if document {
            self.next += 1;
        } else if self.choice.blanks.get(self.next_blank) == Some(origin) {
            self.next_blank += 1;
        } else {
            // A bad row, which the first pass has dealt with.
            return Ok(());
        }
        let repeats = self.choice.repeats.contains_key(&origin);
        if repeats || self.choice.shared.contains(&origin) {
            self.kept.labels.insert(origin, row.label()?);
        }
        if repeats {
            self.kept.sources.count(from, false);
            return Ok(());
        }
        if document {
            let decision = self.choice.decisions.of(position);
            if let Some(seen) = &mut self.seen {
                seen.row(row, decision, position)?;
            }
            self.samples.row(row, position);
            if decision != (Decision::Kept { cluster: None }) || self.choice.trail.is_some() {
                self.kept.ids.note(row.label()?.as_bytes(), position)?;
            }
            if !matches!(decision, Decision::Kept { .. }) {
                self.kept.sources.count(from, false);
                return Ok(());
            }
        }
        if let (Some(parts), Some(cut)) = (&mut self.kept.parts, cut) {
            parts.add(cut);
        }
        if let Some(left) = cut.and_then(|cut| cut.dropped) {
            self.kept.sources.count(from, false);
            let label = row.label()?;
            self.kept.dropped.push(Dropped { origin, label, left });
            return Ok(());
        }
        self.kept.sources.count(from, true);
        self.kept.count += 1;
        let line = cut.and_then(|cut| cut.line.as_deref());
        let row_of = (source, origin, line);
        self.rows.row(self.inputs, self.files, row_of, self.console, |out| row.copy(out))
    }
}
