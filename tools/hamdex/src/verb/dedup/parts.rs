//! Parts: boilerplate is found among the kept documents and cut from them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use clap::Args;
use hamdex::dedup::{
    self, Boilerplate, BoilerplateFinder, BoilerplateOptions, DocumentUnits, Unit,
};
use hamdex::{Fingerprint, Pipeline};
use hamdex_io::host::Host;
use rayon::prelude::*;
use serde::Serialize;

use super::row::Row;
use crate::console::Console;
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::input::{self, Bring, Inputs, Totals, for_each_chunk, takes_html};
use crate::job::Choice;
use crate::output::Output;
use crate::size;

/// What is cut from the documents.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Parts of documents")]
pub(super) struct PartsArgs {
    /// Cut boilerplate from the kept documents: each line, or each paragraph, that many of them
    /// have
    ///
    /// Menus, cookie notices, footers and licences are counted once near-duplicate documents are
    /// removed. Near units count together: they are compared like documents, with the same
    /// fingerprints, distance and verification. Adjacent boilerplate is cut if it has 24 letters or
    /// more, so that a single heading or brace stays. The text field is rewritten, everything else
    /// keeps its bytes; of HTML the main text is written. boilerplate.jsonl has what was cut.
    #[arg(long, value_name = "line|paragraph", conflicts_with_all = ["state", "to"])]
    unit: Option<Unit>,
    /// Documents that may have a unit before it is boilerplate
    #[arg(long, value_name = "N", default_value_t = 10, requires = "unit",
        value_parser = clap::value_parser!(u32).range(1..))]
    boilerplate: u32,
    /// Remove documents of which a smaller share of the letters is left, and empty ones
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "unit",
        value_parser = share)]
    min_left: f64,
}

/// Parses a share from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("\"{text}\" is not a share from 0 to 1, such as 0.1"))
}

impl PartsArgs {
    /// Refuses inputs without texts.
    pub(super) fn require(&self, inputs: &Inputs) -> Result<()> {
        if self.unit.is_none() {
            return Ok(());
        }
        if inputs.bring() == Bring::Fingerprints {
            return Err(Failure::Usage(
                "--unit cuts texts, but the inputs have only fingerprints; drop --unit".to_owned(),
            ));
        }
        Ok(())
    }

    /// Reads the kept documents once and finds their boilerplate; `None` if nothing is to be cut.
    pub(super) fn find<'a, F: Fingerprint>(
        &self,
        console: &Console,
        inputs: &Arc<Inputs>,
        (choice, totals): (&Choice<F>, &Totals),
        (pipeline, near, memory): (Option<&'a Pipeline>, &dedup::DedupOptions, usize),
    ) -> Result<Option<Cutting<'a>>> {
        let (Some(unit), Some(pipeline)) = (self.unit, pipeline) else { return Ok(None) };
        let options = BoilerplateOptions::new(unit, near.clone());
        // The decisions about the documents take the other half.
        let options = options.documents(self.boilerplate).memory(memory / 2);
        let mut finder = BoilerplateFinder::<F>::new(&options)?;
        let html = takes_html(pipeline);
        console.begin_reading("counting units", inputs.bytes());
        let extents = Some(&totals.extents);
        for_each_chunk(inputs, input::Rows::Needed, extents, console, |chunk| {
            let at = (chunk.source, chunk.base.unwrap_or_default());
            let rows = Row::<F>::of_chunk(inputs, at, &chunk.body, &[]);
            let units = |(origin, row): &(u64, Row<'_, F>)| {
                choice.keeps(*origin).then(|| {
                    let parts = row.parts(html);
                    finder.units(pipeline, parts.iter().map(|(_, text)| &**text))
                })
            };
            let made: Vec<Option<DocumentUnits>> = rows.par_iter().map(units).collect();
            Ok(made.iter().flatten().try_for_each(|units| finder.push(units))?)
        })?;
        console.end_phase();
        let boilerplate = finder.finish(pipeline, console)?;
        console.end_phase();
        let parts = Parts {
            unit: unit.to_string(),
            boilerplate: self.boilerplate,
            min_left: self.min_left,
            distinct: boilerplate.distinct(),
            groups: boilerplate.groups().len() as u64,
            ..Parts::default()
        };
        Ok(Some(Cutting { boilerplate, pipeline, html, parts }))
    }
}

/// Counts of what was found and cut.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Parts {
    unit: String,
    boilerplate: u32,
    min_left: f64,
    /// Distinct units of the kept documents.
    distinct: u64,
    /// Groups of near units that are boilerplate.
    groups: u64,
    /// Documents from which something was cut.
    cut_documents: u64,
    cut_units: u64,
    cut_letters: u64,
    /// Letters of the documents before.
    letters: u64,
    /// Documents that were removed because too little was left.
    pub(super) removed: u64,
}

impl Parts {
    /// Counts one document.
    pub(super) fn add(&mut self, cut: &CutRow) {
        self.letters += cut.letters;
        self.removed += u64::from(cut.dropped.is_some());
        if cut.units > 0 {
            self.cut_documents += 1;
            self.cut_units += cut.units;
            self.cut_letters += cut.cut_letters;
        }
    }

    pub(super) fn show(&self, table: &mut Table) {
        let share = 100.0 * self.cut_letters as f64 / self.letters.max(1) as f64;
        table.pair(
            "boilerplate",
            format!("{} {}s and those like them", size::thousands(self.groups), self.unit),
        );
        table.pair(
            "cut",
            format!(
                "{} {}s of {} documents, {share:.1} % of the letters",
                size::thousands(self.cut_units),
                self.unit,
                size::thousands(self.cut_documents)
            ),
        );
    }
}

/// Boilerplate, and the rule by which documents lose it.
#[derive(Debug)]
pub(super) struct Cutting<'a> {
    boilerplate: Boilerplate,
    pipeline: &'a Pipeline,
    /// Whether every text is treated as HTML.
    html: bool,
    pub(super) parts: Parts,
}

/// A kept document without its boilerplate.
#[derive(Debug, Default)]
pub(super) struct CutRow {
    /// Its line of kept.jsonl; `None` copies the row.
    pub(super) line: Option<Vec<u8>>,
    /// The share that is left, if it is too small.
    pub(super) dropped: Option<f64>,
    units: u64,
    letters: u64,
    cut_letters: u64,
}

/// A line of boilerplate.jsonl.
#[derive(Serialize)]
struct Line<'a> {
    documents: u32,
    variants: u32,
    text: &'a str,
}

impl Cutting<'_> {
    /// Cuts the rows that are kept documents; `None` for all others.
    pub(super) fn rows<F: Fingerprint>(
        &self,
        choice: &Choice<F>,
        rows: &[(u64, Row<'_, F>)],
    ) -> Vec<Option<CutRow>> {
        let cut = |(origin, row): &(u64, Row<'_, F>)| choice.keeps(*origin).then(|| self.row(row));
        rows.iter().map(cut).collect()
    }

    fn row<F: Fingerprint>(&self, row: &Row<'_, F>) -> CutRow {
        let mut cut = CutRow::default();
        let mut left: Vec<(Range<usize>, Cow<'_, str>)> = Vec::new();
        let parts = row.parts(self.html);
        for (at, text) in &parts {
            let part = self.boilerplate.cut(self.pipeline, text);
            cut.units += part.units as u64;
            cut.letters += part.letters as u64;
            cut.cut_letters += (part.letters - part.left) as u64;
            left.push((at.clone(), part.text));
        }
        let letters = cut.letters - cut.cut_letters;
        let share = letters as f64 / cut.letters.max(1) as f64;
        if cut.units > 0 && (letters == 0 || share < self.parts.min_left) {
            cut.dropped = Some(share);
        } else if cut.units > 0 || row.is_html(self.html) {
            cut.line = row.rewritten(&left);
        }
        cut
    }

    /// Writes a line for every group of boilerplate.
    pub(super) fn write(&self, file: &mut Output) -> Result<()> {
        self.boilerplate.groups().iter().try_for_each(|group| {
            let (documents, variants) = (group.documents, group.variants);
            file.json(&Line { documents, variants, text: &group.text })
        })
    }
}
