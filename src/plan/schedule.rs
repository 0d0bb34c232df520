//! Schedules: the radius of every table for one distance.
//!
//! Two kinds are tried, and each is proved before it is used. Tables with disjoint leads find
//! everything within k if (r₁+1) + … + (rₘ+1) >= k+1 (the general pigeonhole; Qin et al., *GPH*,
//! ICDE 2018). Tables with overlapping leads need smaller radii, and the proof finds how small.

use super::cost::{Costs, expected_candidates};
use super::{MAX_TABLES, Plan};
use crate::bits::{self, ball};

/// Limit of nodes times tables for the proofs of one schedule: about a millisecond.
const WORK: u32 = 16_000;

/// The radius of every table, proved to miss no match.
///
/// Returned by [`Plan::schedule`].
///
/// ```
/// use hamdex::plan::{Costs, Plan};
///
/// let costs = Costs::default();
/// let schedule = Plan::named("4", 64)?.schedule(3, 1_000_000, &costs);
/// assert_eq!(schedule.radii(), [Some(0); 4]);
/// assert!(schedule.nanos() < costs.scan_nanos(1_000_000));
/// assert_eq!(schedule.probes(), 4);
/// assert!(schedule.candidates() < 100.0);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    radii: Vec<Option<u32>>,
    probes: u64,
    candidates: f64,
    nanos: f64,
}

impl Schedule {
    /// Returns the radius of each table, `None` for tables that are not probed.
    pub fn radii(&self) -> &[Option<u32>] {
        &self.radii
    }

    /// Returns the number of probes over all tables, saturating.
    pub fn probes(&self) -> u64 {
        self.probes
    }

    /// Returns the expected number of candidates of all probes.
    ///
    /// Assumes that fingerprints are distributed evenly over the prefixes.
    pub fn candidates(&self) -> f64 {
        self.candidates
    }

    /// Returns the expected time of one search, in nanoseconds.
    ///
    /// Compare it with [`Costs::scan_nanos`]: at large distances a scan is cheaper.
    pub fn nanos(&self) -> f64 {
        self.nanos
    }
}

impl Plan {
    /// Returns the cheapest complete schedule found for a distance.
    ///
    /// `entries` is the number of distinct fingerprints in each table. Every schedule is proved to
    /// find all matches within `distance`, for any distance. Radii stay
    /// within a fixed radius if it suffices. Takes about ten microseconds with few tables and a
    /// millisecond with many, so reuse the result.
    ///
    /// ```
    /// use hamdex::plan::{Costs, Plan};
    ///
    /// let plan = Plan::uniform(64, 4, 1)?;
    /// let schedule = plan.schedule(6, 10_000_000, &Costs::default());
    /// assert_eq!(schedule.radii(), [Some(1), Some(1), Some(1), Some(0)]);
    /// assert_eq!(schedule.probes(), 17 + 17 + 17 + 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn schedule(&self, distance: u32, entries: u64, costs: &Costs) -> Schedule {
        self.schedule_with(distance, entries, costs, &|_, _| 0)
    }

    /// [`Plan::schedule`] for a query with skewed prefixes.
    ///
    /// `extra(table, radius)` returns the members beyond the expected ones that the probes meet.
    pub(crate) fn schedule_with(
        &self,
        distance: u32,
        entries: u64,
        costs: &Costs,
        extra: &dyn Fn(usize, u32) -> u64,
    ) -> Schedule {
        let mut planner = Planner::new(self, distance, entries, costs, extra);
        planner.consider_disjoint_tables();
        planner.consider_overlapping_tables();
        planner.finish()
    }
}

/// Needs (radius plus one, 0 for an unused table) and their expected time.
#[derive(Debug, Clone)]
struct Candidate {
    needs: Vec<u32>,
    nanos: f64,
}

struct Planner<'a> {
    plan: &'a Plan,
    distance: u32,
    entries: u64,
    /// Expected time of one probe of each table.
    probe_nanos: Vec<f64>,
    candidate_ns: f64,
    /// Returns the members beyond the expected ones that a table's probes meet.
    extra: &'a dyn Fn(usize, u32) -> u64,
    /// The largest need that a table may get.
    limit: u32,
    nodes: u32,
    best: Option<Candidate>,
}

impl<'a> Planner<'a> {
    fn new(
        plan: &'a Plan,
        distance: u32,
        entries: u64,
        costs: &Costs,
        extra: &'a dyn Fn(usize, u32) -> u64,
    ) -> Self {
        let tables = plan.tables.iter();
        // No pair differs in more bits than there are.
        let distance = distance.min(plan.bits);
        let limit = match plan.radius {
            Some(radius) if distance <= plan.complete_to => radius + 1,
            _ => distance + 1,
        };
        Self {
            plan,
            distance,
            entries,
            probe_nanos: tables.map(|t| costs.probe_nanos(t.prefix_bits(), entries)).collect(),
            candidate_ns: costs.candidate_ns,
            extra,
            limit,
            nodes: WORK / u32::try_from(plan.tables.len()).expect("a plan has at most 128 tables"),
            best: None,
        }
    }

    /// Returns the expected time of probing one table with a need.
    fn table_nanos(&self, table: usize, need: u32) -> f64 {
        let probes = probes(self.plan.tables[table].prefix_bits(), need) as f64;
        probes * self.probe_nanos[table] + self.extra(table, need) * self.candidate_ns
    }

    fn extra(&self, table: usize, need: u32) -> f64 {
        need.checked_sub(1).map_or(0.0, |radius| (self.extra)(table, radius) as f64)
    }

    fn nanos(&self, needs: &[u32]) -> f64 {
        needs.iter().enumerate().map(|(table, &need)| self.table_nanos(table, need)).sum()
    }

    fn proved(&mut self, needs: &[u32]) -> bool {
        self.plan.cover.withstands(needs, self.distance, &mut self.nodes) == Some(true)
    }

    /// Keeps proved needs if they are cheaper than the best ones.
    fn offer(&mut self, needs: Vec<u32>) {
        let nanos = self.nanos(&needs);
        if self.best.as_ref().is_none_or(|best| nanos < best.nanos) {
            self.best = Some(Candidate { needs, nanos });
        }
    }

    /// Tries sets of tables with disjoint leads, one set starting at each table.
    fn consider_disjoint_tables(&mut self) {
        let mut known: Vec<Vec<usize>> = Vec::new();
        for first in 0..self.plan.tables.len() {
            let set = self.disjoint_from(first);
            if known.contains(&set) {
                continue;
            }
            // A fixed radius may limit them.
            if let Some(needs) = self.pigeonhole(&set) {
                let proved = self.plan.cover.withstands(&needs, self.distance, &mut 1);
                debug_assert_eq!(proved, Some(true), "one node proves disjoint leads");
                if proved == Some(true) {
                    self.offer(needs);
                }
            }
            known.push(set);
        }
    }

    /// Returns a greedy set of tables with disjoint leads that contains `first`, ascending.
    fn disjoint_from(&self, first: usize) -> Vec<usize> {
        let mut taken = 0;
        let mut set = Vec::new();
        let rest = (0..self.plan.tables.len()).filter(|&table| table != first);
        for table in std::iter::once(first).chain(rest) {
            let lead = self.plan.tables[table].lead();
            if lead & taken == 0 {
                taken |= lead;
                set.push(table);
            }
        }
        set.sort_unstable();
        set
    }

    /// Returns the cheapest needs of some tables that sum to the distance plus one.
    fn pigeonhole(&self, set: &[usize]) -> Option<Vec<u32>> {
        let price = |at: usize, flips: u32, _| {
            let table = set[at];
            if flips == self.limit {
                return f64::INFINITY;
            }
            self.table_nanos(table, flips + 1) - self.table_nanos(table, flips)
        };
        let (cheapest, _) = bits::cheapest::<MAX_TABLES>(set.len(), self.distance + 1, price)?;
        let mut needs = vec![0; self.plan.tables.len()];
        for (&table, need) in set.iter().zip(cheapest) {
            needs[table] = need.into();
        }
        Some(needs)
    }

    /// Tries equal radii for the tables that only the first blocks lead, then trims them.
    fn consider_overlapping_tables(&mut self) {
        let bits = self.plan.bits;
        let ends: Vec<u32> =
            self.plan.tables.iter().map(|t| bits - t.lead().trailing_zeros()).collect();
        let mut widths = ends.clone();
        // All tables last: proofs with fewer tables are easier.
        widths.sort_unstable();
        widths.dedup();
        let mut equal: Vec<Vec<u32>> = Vec::new();
        for width in widths {
            let used: Vec<bool> = ends.iter().map(|&end| end <= width).collect();
            equal.extend(self.equal_needs(&used));
        }
        // The cheapest first, while there are nodes left for trimming.
        equal.sort_by(|a, b| self.nanos(a).total_cmp(&self.nanos(b)));
        for needs in equal {
            let needs = self.trim(needs);
            self.offer(needs);
        }
    }

    /// Returns the smallest equal needs of some tables that are proved complete.
    fn equal_needs(&mut self, used: &[bool]) -> Option<Vec<u32>> {
        (1..=self.limit)
            .map(|need| used.iter().map(|&used| if used { need } else { 0 }).collect::<Vec<u32>>())
            .find(|needs| self.proved(needs))
    }

    /// Lowers needs one at a time, the costliest first, while proved complete.
    fn trim(&mut self, mut needs: Vec<u32>) -> Vec<u32> {
        // A need that could not be lowered stays so, since other needs only shrink.
        let mut open: Vec<usize> = (0..needs.len()).collect();
        while self.nodes > 0 {
            let saving = |table: usize| {
                let less = needs[table].checked_sub(1)?;
                Some(self.table_nanos(table, needs[table]) - self.table_nanos(table, less))
            };
            let savings =
                open.iter().enumerate().filter_map(|(i, &table)| Some((i, saving(table)?)));
            let Some((i, _)) = savings.max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let table = open.swap_remove(i);
            let mut lower = needs.clone();
            lower[table] -= 1;
            if self.proved(&lower) {
                needs = lower;
                open.push(table);
            }
        }
        needs
    }

    fn finish(self) -> Schedule {
        // Without a fixed radius the pigeonhole always succeeds, so there is a best candidate. A
        // fixed radius is complete by itself.
        let needs = self.best.as_ref().map_or_else(
            || vec![self.limit; self.plan.tables.len()],
            |candidate| candidate.needs.clone(),
        );
        let (mut all, mut candidates, mut nanos) = (0_u64, 0.0, 0.0);
        let mut radii = Vec::with_capacity(needs.len());
        for (number, (table, &need)) in self.plan.tables.iter().zip(&needs).enumerate() {
            let probes = probes(table.prefix_bits(), need);
            all = all.saturating_add(probes);
            candidates += probes as f64 * expected_candidates(table.prefix_bits(), self.entries)
                + self.extra(number, need);
            nanos += self.table_nanos(number, need);
            radii.push(need.checked_sub(1).map(|radius| radius.min(table.prefix_bits())));
        }
        Schedule { radii, probes: all, candidates, nanos }
    }
}

/// Returns the number of prefixes within radius `need - 1`, saturating.
fn probes(prefix_bits: u32, need: u32) -> u64 {
    need.checked_sub(1).map_or(0, |radius| ball(prefix_bits, radius))
}

#[cfg(test)]
mod tests;
