//! Building: builds an index from a table, offline and in bounded memory.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use hamdex::advice::{Overrides, Support};
use hamdex::any::AnyIndex;
use hamdex::build::{BuildOptions, Builder};
use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::verify::FeatureSet;
use hamdex::{Error, Fingerprint, IndexOptions, NewDocument};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use super::open::{Texts, is_secret, secret_missing};
use crate::column::Ids;
use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::interrupt::Watch;
use crate::name;
use crate::pipeline::Asked;
use crate::read::{self, Rows};
use crate::resolve;
use crate::table::Table;
use crate::tables::Seed;

/// The arguments of a build.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) path: &'a Path,
    pub(super) table: &'a Table,
    pub(super) text: &'a str,
    /// `None` uses row numbers.
    pub(super) id: Option<&'a str>,
    pub(super) odd: Vec<u64>,
    pub(super) asked: Asked,
    pub(super) seed: Option<&'a Seed>,
    pub(super) bits: u32,
    pub(super) distance: Option<u32>,
    pub(super) plan: Option<&'a str>,
    pub(super) keep_features: bool,
    pub(super) memory: Option<usize>,
    pub(super) tmp: Option<PathBuf>,
    /// `None` rejects repeated ids.
    pub(super) on_repeat: Option<OnRepeat>,
    pub(super) max_bad: MaxBad,
}

/// Which of several rows with the same id is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnRepeat {
    First,
    Last,
}

impl OnRepeat {
    pub(super) fn of(word: &str) -> Result<Self> {
        match word {
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            _ => Err(Failure::usage(format!(
                "on_repeat is \"{word}\"; supported are \"first\" and \"last\""
            ))),
        }
    }
}

/// How many rows may have an invalid id.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MaxBad {
    Rows(u64),
    /// A percentage of all rows.
    Percent(f64),
}

impl Default for MaxBad {
    fn default() -> Self {
        Self::Percent(10.0)
    }
}

impl MaxBad {
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Result<Self> {
        let wrong =
            || Failure::usage("max_bad must be a number of rows, or a share such as \"5%\"");
        if object.is_instance_of::<PyInt>() {
            return object.extract().map(Self::Rows).map_err(|_| wrong());
        }
        let text = object.cast::<PyString>().map_err(|_| wrong())?.to_str()?;
        match text.strip_suffix('%') {
            None => text.parse().map(Self::Rows).map_err(|_| wrong()),
            Some(percent) => match percent.trim().parse() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
                _ => Err(wrong()),
            },
        }
    }

    fn allows(self, bad: u64, rows: usize) -> bool {
        match self {
            Self::Rows(allowed) => bad <= allowed,
            Self::Percent(percent) => bad as f64 * 100.0 <= percent * rows as f64,
        }
    }
}

/// The counts of a build; a dict in Python.
#[derive(Debug, Default, Clone, IntoPyObject)]
pub(super) struct Summary {
    rows: u64,
    documents: u64,
    distinct: u64,
    replaced: u64,
    /// Rows that were skipped because another one has their id.
    repeated: u64,
    /// Rows with nothing to fingerprint, by reason.
    not_compared: BTreeMap<&'static str, u64>,
    /// Rows with an invalid id.
    rejects: u64,
    bytes: u64,
}

/// Which rows are stored, and under which keys.
struct Plans {
    /// A key for each row; `None` skips the row.
    keys: Vec<Option<Vec<u8>>>,
    bad: u64,
    repeated: u64,
}

impl Job<'_> {
    pub(super) fn run(&self, watch: &Watch) -> Result<(AnyIndex, Summary, Texts)> {
        let header = match Header::read(self.path) {
            Ok(header) => Some(header),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let bits = header.as_ref().map_or(self.bits, |header| header.bits);
        for_width!(bits, F => self.build::<F>(header.as_ref(), watch))
    }

    fn build<F: Fingerprint>(
        &self,
        header: Option<&Header>,
        watch: &Watch,
    ) -> Result<(AnyIndex, Summary, Texts)> {
        let rows = Rows::of(self.table, self.text, self.id, self.odd.clone())?;
        let mut options = IndexOptions::new();
        let keeps = header.map_or(self.keep_features, |header| header.keeps_features);
        let (pipeline, distance) = if let Some(header) = header {
            if self.keep_features {
                options = options.keep_features(true);
            }
            if let Some(distance) = self.distance {
                options = options.distance(distance);
            }
            let distance = self.distance.unwrap_or(header.distance);
            (self.stored(header)?, distance)
        } else {
            let support = if keeps { Support::Features } else { Support::Nothing };
            let mut overrides = Overrides::new().support(support).bits(F::BITS);
            overrides.distance = self.distance;
            let learn = |pipeline: &hamdex::Pipeline| read::learn(&rows.texts, pipeline, watch);
            let resolved =
                resolve::resolve(&self.asked, overrides, &learn, || resolve::sample(&rows.texts))?;
            options = options.distance(resolved.distance).keep_features(keeps);
            let pipeline = match resolved.pipeline {
                Some(pipeline) => pipeline,
                None => self.asked.pipeline(&learn)?,
            };
            (pipeline, resolved.distance)
        };
        let plans = self.plans(&rows, &pipeline, watch)?;
        options = options.text(&pipeline);
        if let Some(plan) = self.plan {
            let count = Some(rows.len() as u64);
            options = options.plan(Plan::parse(plan, F::BITS, distance, count)?);
        }
        let mut build = BuildOptions::new();
        if let Some(memory) = self.memory {
            build = build.memory(memory);
        }
        if let Some(tmp) = &self.tmp {
            build = build.tmp(tmp);
        }
        let builder = Builder::<F>::create(self.path, &options, &build)?;
        let summary = match push(builder, &rows, &plans, &pipeline, keeps, watch) {
            Ok(summary) => summary,
            Err(failure) => {
                // The input table still exists, so there is nothing to resume.
                Builder::<F>::abandon(self.path)?;
                if header.is_none() {
                    std::fs::remove_dir_all(self.path)
                        .map_err(|source| Error::Io { path: self.path.to_owned(), source })?;
                }
                return Err(failure);
            }
        };
        Ok((AnyIndex::open(self.path)?, summary, Texts::with_pipeline(Some(pipeline))))
    }

    fn stored(&self, header: &Header) -> Result<hamdex::Pipeline> {
        if self.seed.is_none() && is_secret(&header.pipeline) {
            return Err(secret_missing());
        }
        let secret = self.seed.map(|seed| seed.secret);
        let stored = Header::read_pipeline_with(self.path, secret)?;
        resolve::by_index(header, stored, &self.asked)
    }

    /// Determines the key of every row before anything is written.
    fn plans(&self, rows: &Rows, pipeline: &hamdex::Pipeline, watch: &Watch) -> Result<Plans> {
        let mut plans = Plans { keys: Vec::with_capacity(rows.len()), bad: 0, repeated: 0 };
        let Some(id) = self.id else {
            let keys = (0..rows.len()).map(|row| Some(name::of_number(row as i128)));
            plans.keys.extend(keys);
            return Ok(plans);
        };
        let mut seen = Seen::default();
        let texts = rows.texts.pieces()?;
        // Needed only if another row has the same id.
        let usable = |row: usize| {
            let piece = texts.iter().rev().find(|(first, _)| *first <= row);
            let text = piece.and_then(|(first, piece)| piece.get(row - first));
            text.is_some_and(|text| pipeline.fingerprint::<u64>(&text).is_some())
        };
        for piece in self.table.column(id)? {
            watch.check()?;
            let ids = Ids::of(&piece, id)?;
            for at in 0..piece.len() {
                let row = plans.keys.len();
                let key = match ids.key(at) {
                    Ok(Some(key)) => key,
                    Ok(None) => name::of_number(row as i128),
                    Err(_) => {
                        plans.bad += 1;
                        plans.keys.push(None);
                        continue;
                    }
                };
                let Some(before) = seen.insert(&key, row as u64) else {
                    plans.keys.push(Some(key));
                    continue;
                };
                let before = usize::try_from(before).unwrap_or(usize::MAX);
                plans.repeat(self.on_repeat, (before, row), key, &mut seen, &usable)?;
            }
        }
        if !self.max_bad.allows(plans.bad, rows.len()) {
            let (bad, len) = (plans.bad, rows.len());
            return Err(Failure::data(format!(
                "{bad} of {len} rows have an invalid id; max_bad allows fewer"
            )));
        }
        Ok(plans)
    }
}

/// Stores the documents of the rows that have a key.
fn push<F: Fingerprint>(
    mut builder: Builder<F>,
    rows: &Rows,
    plans: &Plans,
    pipeline: &hamdex::Pipeline,
    keeps: bool,
    watch: &Watch,
) -> Result<Summary> {
    let key = |row: usize| plans.keys.get(row).and_then(Option::as_deref);
    let extra = |_: usize, text: &str| keeps.then(|| FeatureSet::of_text(pipeline, text).encode());
    let mut sink = |row: u64, fingerprint: F, features: Option<Vec<u8>>| {
        let Some(key) = usize::try_from(row).ok().and_then(key) else { return Ok(()) };
        let mut document = NewDocument::new(key, fingerprint);
        if let Some(features) = &features {
            document = document.features(features);
        }
        Ok(builder.push_document(&document, row)?)
    };
    let skip = |row: usize| key(row).is_none();
    let read = read::read(rows, pipeline, watch, skip, extra, &mut sink)?;
    if read.rows.is_empty() && rows.len() > 0 {
        return Err(read.unusable(rows.len()));
    }
    let report = builder.finish(watch, &mut |_, _| ())?;
    Ok(Summary {
        rows: rows.len() as u64,
        documents: report.documents,
        distinct: report.fingerprints,
        replaced: report.replaced,
        repeated: plans.repeated,
        not_compared: read.not_compared(),
        rejects: plans.bad,
        bytes: report.bytes,
    })
}

impl Plans {
    /// Decides between two rows with the same id.
    fn repeat(
        &mut self,
        on_repeat: Option<OnRepeat>,
        (before, row): (usize, usize),
        key: Vec<u8>,
        seen: &mut Seen,
        usable: &dyn Fn(usize) -> bool,
    ) -> Result<()> {
        let last = match (usable(before), usable(row)) {
            // A row without a text cedes the id to the other row.
            (_, false) => false,
            (false, true) => true,
            (true, true) => {
                self.repeated += 1;
                let Some(choice) = on_repeat else {
                    let id = name::to_text(&key);
                    return Err(Failure::data(format!(
                        "rows {before} and {row} have the same id {id}; make ids unique, or pass \
                         on_repeat=\"first\" or \"last\""
                    )));
                };
                choice == OnRepeat::Last
            }
        };
        let loser = if last { before } else { row };
        if last {
            seen.replace(&key, row as u64);
        }
        self.keys.push(Some(key));
        // A row without a text keeps its key, so that it is counted as such.
        if let Some(slot) = self.keys.get_mut(loser)
            && usable(loser)
        {
            *slot = None;
        }
        Ok(())
    }
}

/// The row at which each key was seen, 24 bytes each; accidental collisions are negligible.
#[derive(Debug, Default)]
struct Seen {
    rows: HashMap<u128, u64>,
    seeds: (RandomState, RandomState),
}

impl Seen {
    /// Notes a key, unless it is there; returns the row that had it before.
    fn insert(&mut self, key: &[u8], row: u64) -> Option<u64> {
        match self.rows.entry(hash(&self.seeds, key)) {
            Entry::Occupied(there) => Some(*there.get()),
            Entry::Vacant(free) => {
                free.insert(row);
                None
            }
        }
    }

    /// Notes a key at a row, also if it was seen at another one.
    fn replace(&mut self, key: &[u8], row: u64) {
        self.rows.insert(hash(&self.seeds, key), row);
    }
}

fn hash(seeds: &(RandomState, RandomState), key: &[u8]) -> u128 {
    let (high, low) = (seeds.0.hash_one(key), seeds.1.hash_one(key));
    u128::from(high) << 64 | u128::from(low)
}
