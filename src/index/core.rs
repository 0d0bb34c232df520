//! What an index and its readers share: plan, header and the schedules already worked out.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::health::Events;
use super::heavy::Heavy;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::{Census, Costs, Plan, Schedule};
use crate::store::Store;
use crate::store::codec::HeaderRecord;

/// What was settled when the index was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Version of the stored format.
    pub format: u32,
    /// Fingerprint width: 32, 64 or 128.
    pub bits: u32,
    /// Distance of searches that name none.
    pub distance: u32,
    /// The plan in its canonical words.
    pub plan: String,
    /// How fingerprints are made; empty when they come from outside.
    pub pipeline: String,
    /// Whether feature sets are kept with the documents, for verification.
    pub keeps_features: bool,
}

impl Header {
    /// Reads the header of an index, whatever its width.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] without an index at the path, [`Error::FormatVersion`] and
    /// [`Error::Corrupt`] for a header that cannot be used.
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

    /// Fails where the caller names something else than the index holds.
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

    /// Fails unless the index has the width of the caller's type.
    pub(crate) fn require_width<F: Fingerprint>(&self) -> Result<()> {
        if self.bits == F::BITS {
            return Ok(());
        }
        Err(Error::WidthMismatch { stored: self.bits, wanted: F::BITS })
    }
}

/// The plan of a header, proved again at every open.
pub(crate) fn plan_of(record: &HeaderRecord) -> Result<Plan> {
    Plan::parse(&record.plan, record.bits, record.distance, None)
        .map_err(|error| Error::corrupt("meta", format!("header: {error}")))
}

/// Nanoseconds of needless reading that are worth a schedule of a query's own.
const WORTH_PLANNING: f64 = 50_000.0;

/// Shared by an index and every reader made from it.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) header: Header,
    pub(crate) plan: Plan,
    pub(crate) costs: Costs,
    pub(crate) heavy: Heavy,
    pub(crate) events: Events,
    schedules: Mutex<HashMap<Situation, Arc<Schedule>>>,
    #[cfg(test)]
    pub(super) within_search: Hook,
}

/// What a test does within each part of a batch of searches.
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

/// What a schedule depends on; sizes count by their power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Situation {
    distance: u32,
    magnitude: u32,
    singles: bool,
}

impl Core {
    pub(crate) fn new(header: Header, plan: Plan, costs: Costs, events: Events) -> Self {
        let heavy = Heavy::new(plan.tables().len());
        Self {
            header,
            plan,
            costs,
            heavy,
            events,
            schedules: Mutex::default(),
            #[cfg(test)]
            within_search: Hook::default(),
        }
    }

    /// The cheapest complete way to probe, worked out once for each distance and magnitude.
    pub(crate) fn schedule(&self, distance: u32, entries: u64, singles: bool) -> Arc<Schedule> {
        let magnitude = entries.checked_ilog2().map_or(0, |log| log + 1);
        let situation = Situation { distance, magnitude, singles };
        let mut known = self.schedules.lock().unwrap_or_else(PoisonError::into_inner);
        let schedule = known.entry(situation).or_insert_with(|| {
            Arc::new(self.plan.schedule(distance, &Census { entries, singles }, &self.costs))
        });
        Arc::clone(schedule)
    }

    /// [`Core::schedule`], around the heavy prefixes near a query if there are any.
    pub(super) fn schedule_for<F: Fingerprint>(
        &self,
        query: F,
        distance: u32,
        entries: u64,
        singles: bool,
    ) -> Arc<Schedule> {
        let usual = self.schedule(distance, entries, singles);
        if self.heavy.is_empty() {
            return usual;
        }
        let mut known = Vec::new();
        for (number, table) in self.plan.tables().iter().enumerate() {
            let bits = table.prefix_of(query);
            known.push(self.heavy.near(number, bits, distance.min(table.prefix_bits())));
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
        Arc::new(self.plan.schedule_with(
            distance,
            &Census { entries, singles },
            &self.costs,
            &extra,
        ))
    }
}
