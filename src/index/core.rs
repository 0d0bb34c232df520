//! Shared state of an index and its readers: plan, header and computed schedules.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::health::Events;
use super::read::heavy::Skewed;
use super::read::probing::Waits;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::{Costs, Plan, Schedule};
use crate::store::Store;
use crate::store::codec::HeaderRecord;

/// The settings that were fixed when an index was created.
///
/// ```
/// use hamdex::inspect::Header;
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
/// let header = Header::read(&path)?;
/// assert_eq!((header.bits, header.distance, header.plan.as_str()), (64, 3, "4"));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Version of the stored format: even with packed documents, else odd.
    pub format: u32,
    /// Fingerprint width: 32, 64 or 128.
    pub bits: u32,
    /// Default distance of searches, in bits.
    pub distance: u32,
    /// The plan in canonical form.
    pub plan: String,
    /// Descriptor of the text pipeline. Empty if fingerprints are made elsewhere.
    pub pipeline: String,
    /// Whether feature sets are stored with the documents, for verification.
    pub keeps_features: bool,
}

impl Header {
    /// Reads the header of an index of any width, without opening it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if there is no index, and [`Error::FormatVersion`] or
    /// [`Error::Corrupt`] if the header cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Store::peek(path.as_ref()).map(|record| Self::of(&record))
    }

    pub(crate) fn of(record: &HeaderRecord) -> Self {
        Self {
            format: record.format,
            bits: record.bits,
            distance: record.distance,
            plan: record.plan.clone(),
            pipeline: record.pipeline.clone(),
            keeps_features: record.keeps_features,
        }
    }

    /// Returns [`Error::HeaderMismatch`] if a setting differs from the stored one.
    pub(crate) fn require(
        &self,
        plan: Option<String>,
        distance: Option<u32>,
        pipeline: Option<String>,
        keep_features: Option<bool>,
    ) -> Result<()> {
        let compared = [
            ("plan", self.plan.clone(), plan),
            ("distance", self.distance.to_string(), distance.map(|d| d.to_string())),
            ("pipeline", self.pipeline.clone(), pipeline),
            (
                "keep_features",
                self.keeps_features.to_string(),
                keep_features.map(|keep| keep.to_string()),
            ),
        ];
        for (what, stored, wanted) in compared {
            if let Some(wanted) = wanted
                && wanted != stored
            {
                return Err(Error::HeaderMismatch { what, stored, wanted });
            }
        }
        Ok(())
    }

    /// Returns [`Error::WidthMismatch`] unless the index has the width of `F`.
    pub(crate) fn require_width<F: Fingerprint>(&self) -> Result<()> {
        if self.bits == F::BITS {
            return Ok(());
        }
        Err(Error::WidthMismatch { stored: self.bits, wanted: F::BITS })
    }
}

/// Parses the plan of a header, and proves it again at every open.
pub(crate) fn plan_of(record: &HeaderRecord) -> Result<Plan> {
    Plan::parse(&record.plan, record.bits, record.distance, None)
        .map_err(|error| Error::corrupt("meta", format!("header: {error}")))
}

/// Expected waste, in nanoseconds, above which a query gets its own schedule.
const WORTH_PLANNING: f64 = 50_000.0;

/// State shared by an index and all its readers.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) header: Header,
    pub(crate) plan: Plan,
    pub(crate) costs: Costs,
    pub(crate) skewed: Skewed,
    pub(super) waits: Waits,
    pub(crate) events: Events,
    schedules: Mutex<HashMap<Situation, Arc<Schedule>>>,
    #[cfg(test)]
    pub(super) within_search: Hook,
}

/// Code that a test runs within each part of a batch of searches.
#[cfg(test)]
#[derive(Default)]
pub(super) struct Hook(pub(super) std::sync::OnceLock<Box<dyn Fn() + Send + Sync>>);

#[cfg(test)]
impl Hook {
    pub(super) fn call(&self) {
        if let Some(hook) = self.0.get() {
            hook();
        }
    }
}

#[cfg(test)]
impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

/// The inputs of a schedule. Sizes are rounded to powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Situation {
    distance: u32,
    magnitude: u32,
}

impl Core {
    pub(crate) fn new(header: Header, plan: Plan, costs: Costs, events: Events) -> Self {
        let skewed = Skewed::new(plan.tables().len());
        Self {
            header,
            plan,
            costs,
            skewed,
            waits: Waits::default(),
            events,
            schedules: Mutex::default(),
            #[cfg(test)]
            within_search: Hook::default(),
        }
    }

    /// Returns the cheapest complete schedule, computed once per distance and magnitude.
    pub(crate) fn schedule(&self, distance: u32, entries: u64) -> Arc<Schedule> {
        let magnitude = entries.checked_ilog2().map_or(0, |log| log + 1);
        let situation = Situation { distance, magnitude };
        let mut known = self.schedules.lock().unwrap_or_else(PoisonError::into_inner);
        let schedule = known
            .entry(situation)
            .or_insert_with(|| Arc::new(self.plan.schedule(distance, entries, &self.costs)));
        Arc::clone(schedule)
    }

    /// Returns a schedule that avoids known skewed prefixes near the query.
    pub(super) fn schedule_for<F: Fingerprint>(
        &self,
        query: F,
        distance: u32,
        entries: u64,
    ) -> Arc<Schedule> {
        let usual = self.schedule(distance, entries);
        if self.skewed.is_empty() {
            return usual;
        }
        let mut known = Vec::new();
        for (number, table) in self.plan.tables().iter().enumerate() {
            let bits = table.prefix_of(query);
            known.push(self.skewed.near(number, bits, distance.min(table.prefix_bits())));
        }
        let extra = |table: usize, radius: u32| {
            let within = known.get(table).and_then(Option::as_ref);
            within
                .and_then(|within| within.get(radius as usize).or(within.last()))
                .map_or(0, |&m| m)
        };
        let tables = usual.radii().iter().enumerate();
        let met: u64 = tables.filter_map(|(table, radius)| Some(extra(table, (*radius)?))).sum();
        if (met as f64) * self.costs.candidate_ns < WORTH_PLANNING {
            return usual;
        }
        Arc::new(self.plan.schedule_with(distance, entries, &self.costs, &extra))
    }
}
