//! Evaluation: measures the chosen and all other settings on labelled pairs.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use hamdex::Fingerprint;
use hamdex::advice::{Overrides, Resolved};
use hamdex::evaluate::{Count, Labels, Tally};
use hamdex::verify::BOILERPLATE_DOCUMENTS;
use hamdex::verify::Verification;
use hamdex_io::evidence::{Keeper, Kept};
use hamdex_io::{Document, Ids, MaxBad, Repeat, Wanted as Evidence};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::index::key_of;
use crate::interrupt::{Watch, interruptible};
use crate::pipeline::Asked;
use crate::resolve;
use crate::rows::{self, Columns, Rows};
use crate::table::Table;
use crate::tables::Tables;

/// Two ids, and the similarity of their documents if the label has one.
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<f64>);

/// The arguments of a call, without the pipeline.
struct Wanted {
    text: String,
    id: Option<String>,
    odd: Vec<u64>,
    /// The largest distance to measure; `None` means a quarter of the width.
    largest: Option<u32>,
    verify: Option<Verification>,
    tmp: Option<PathBuf>,
    near: Vec<(Vec<u8>, Vec<u8>)>,
    ignored: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The result of a measurement.
struct Measured {
    documents: usize,
    rejects: u64,
    unknown: usize,
    largest: u32,
    /// Whether similarities were measured in addition to distances.
    verified: bool,
    tally: Tally,
    resolved: Resolved,
}

/// Counts the labelled pairs that every setting finds.
#[pyfunction]
#[pyo3(signature = (
    data, pairs, *, text, id, odd, distance, verify, pipeline, tables, bits, min_similarity,
    ignore_above, tmp,
))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // a call from Python
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    data: &Bound<'py, Table>,
    pairs: Vec<Pair<'py>>,
    text: String,
    id: Option<String>,
    odd: Vec<u64>,
    distance: Option<u32>,
    verify: Option<&str>,
    pipeline: Option<&Bound<'py, PyAny>>,
    tables: Tables,
    bits: u32,
    min_similarity: Option<f64>,
    ignore_above: Option<f64>,
    tmp: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let asked = Asked::of(pipeline, &tables)?;
    let verify = verify.map(str::parse).transpose().map_err(Failure::from)?;
    if let Some(Verification::Contains(_)) = verify {
        let refused = "evaluate supports distance, jaccard, zhou and edit, but not contains:T";
        return Err(Failure::usage(refused).into());
    }
    let (mut near, mut ignored) = (Vec::new(), Vec::new());
    for (a, b, similarity) in &pairs {
        let pair = (key_of(a)?, key_of(b)?);
        let reaches = |limit: Option<f64>| match (similarity, limit) {
            (Some(similarity), Some(limit)) => *similarity >= limit,
            _ => true,
        };
        if reaches(min_similarity) {
            near.push(pair);
        } else if ignore_above.is_some() && reaches(ignore_above) {
            ignored.push(pair);
        }
    }
    let wanted = Wanted { text, id, odd, largest: distance, verify, tmp, near, ignored };
    let table = data.get();
    let measured = interruptible(
        py,
        |watch| for_width!(bits, F => measure::<F>(table, &asked, &wanted, watch)),
    )?;
    measured.to_dict(py)
}

fn measure<F: Fingerprint>(
    table: &Table,
    asked: &Asked,
    wanted: &Wanted,
    watch: &Watch,
) -> Result<Measured> {
    let largest = wanted.largest.unwrap_or(F::MAX_DISTANCE);
    if largest > F::MAX_DISTANCE {
        let (bits, max) = (F::BITS, F::MAX_DISTANCE);
        return Err(hamdex::Error::InvalidDistance { distance: largest, bits, max }.into());
    }
    let columns = Columns { text: &wanted.text, id: wanted.id.as_deref(), ..Columns::default() };
    wanted.id.as_deref().map(|id| rows::require_ids(table, id)).transpose()?;
    let rows = Rows::of(table, &columns, wanted.odd.clone())?;
    let mut overrides = Overrides::new().bits(F::BITS);
    overrides.verification = wanted.verify;
    let learn = |pipeline: &hamdex::Pipeline| rows.learn(pipeline, watch);
    let resolved = resolve::resolve(asked, overrides, &learn, || rows.sample())?;
    let Some(pipeline) = &resolved.pipeline else {
        return Err(Failure::usage("there is no pipeline for texts"));
    };
    let verified = wanted.largest.is_none() || wanted.verify.is_some();
    let boilerplate = resolved.verification.boilerplate().or(Some(BOILERPLATE_DOCUMENTS));
    let evidence =
        if verified { Evidence { boilerplate, ..Evidence::ALL } } else { Evidence::NOTHING };
    let mut keeper = Keeper::new(evidence, wanted.tmp.as_deref(), usize::MAX)?;
    let (mut prints, mut positions) = (Vec::<F>::new(), HashMap::new());
    let mut sink = |document: Document<'_, F>| {
        let Ok(position) = u32::try_from(prints.len()) else { return Ok(()) };
        positions.insert(document.key.to_vec(), position);
        prints.push(document.fingerprint);
        keeper.push(&document.proofs)
    };
    // Pairs identify documents by id, so further documents with the same id are skipped.
    let keys = (Ids::Keys(Repeat::Reject), MaxBad::ANY);
    let read = rows.read(pipeline, watch, keys, evidence, &mut sink)?;
    let mut seen = HashSet::new();
    let mut unknown = 0;
    let mut known = |pairs: &[(Vec<u8>, Vec<u8>)]| -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for (a, b) in pairs {
            let (Some(&a), Some(&b)) = (positions.get(a), positions.get(b)) else {
                unknown += 1;
                continue;
            };
            let pair = (a.min(b), a.max(b));
            if a != b && seen.insert(pair) {
                found.push(pair);
            }
        }
        found
    };
    let labels = Labels { near: known(&wanted.near), ignored: known(&wanted.ignored) };
    let Kept { features, texts, .. } = keeper.finish()?;
    let tally =
        Tally::measure(&prints, features.as_ref(), texts.as_ref(), &labels, largest, watch)?;
    let (documents, rejects) =
        (prints.len(), read.rejects + read.totals.blank.values().sum::<u64>());
    Ok(Measured { documents, rejects, unknown, largest, verified, tally, resolved })
}

impl Measured {
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Self { resolved, tally, largest, .. } = self;
        let curve = |verification| {
            let figures = (0..=*largest).filter_map(|distance| {
                let count = tally.at(distance, verification)?;
                Some(figure(py, distance, verification, count, tally.positives()))
            });
            PyList::new(py, figures.collect::<PyResult<Vec<_>>>()?)
        };
        let dict = PyDict::new(py);
        dict.set_item("documents", self.documents)?;
        dict.set_item("rejects", self.rejects)?;
        dict.set_item("positives", tally.positives())?;
        dict.set_item("unknown", self.unknown)?;
        dict.set_item("curve", curve(Verification::None)?)?;
        let (distance, verification) = (resolved.distance, resolved.verification);
        let checked = self.verified && verification != Verification::None;
        dict.set_item("verified", if checked { Some(curve(verification)?) } else { None })?;
        let settings = tally
            .at(distance, verification)
            .filter(|_| self.verified && distance <= *largest)
            .map(|count| figure(py, distance, verification, count, tally.positives()))
            .transpose()?;
        dict.set_item("settings", settings)?;
        let pipeline = resolved.pipeline.as_ref();
        dict.set_item("pipeline", pipeline.map_or("", |pipeline| pipeline.descriptor()))?;
        let advice = resolved.advice.as_ref();
        dict.set_item("advice", advice.map(|advice| resolve::to_dict(py, advice)).transpose()?)?;
        Ok(dict)
    }
}

/// Returns the figures of one setting.
fn figure(
    py: Python<'_>,
    distance: u32,
    verification: Verification,
    count: Count,
    positives: u64,
) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("distance", distance)?;
    dict.set_item("verification", verification.to_string())?;
    dict.set_item("found", count.found)?;
    dict.set_item("correct", count.correct)?;
    dict.set_item("precision", count.precision())?;
    dict.set_item("recall", count.recall(positives))?;
    dict.set_item("f1", count.f1(positives))?;
    Ok(dict)
}
