//! Surveys: the sensible plans for a number of fingerprints, and what they cost.

use super::cost::expected_candidates;
use super::layout::{self, Level};
use super::{Costs, MAX_TABLES, Plan, check_bits, check_distance, parse};
use crate::bits::binomial;
use crate::error::{Error, Result};

/// Unnamed designs with more tables are omitted, unless the distance requires them.
const USUAL_TABLES: u64 = 40;

/// Maximum size of the tables of an automatic plan, in bytes per fingerprint.
const AUTO_BYTES: f64 = 60.0;

/// If a scan takes less time, in nanoseconds, the choice of the plan does not matter.
const AUTO_SMALL_NANOS: f64 = 50_000.0;

/// An automatic plan may be this much slower than the fastest if it has fewer tables.
const AUTO_NEAR: f64 = 1.25;

/// The automatic plan unless another one is clearly better.
const AUTO_DEFAULT: &str = "4";

/// One plan of a [`survey`] and what it costs.
///
/// ```
/// use hamdex::plan::{Costs, survey};
///
/// for report in survey(64, 3, 1_000_000, &Costs::default()) {
///     println!("{}: {:.0} us per search", report.name, report.seconds * 1e6);
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlanReport {
    /// The text of the plan, as [`Plan::parse`] accepts it.
    pub name: String,
    /// Block sizes and number of leading blocks, level by level.
    pub blocks: String,
    /// Number of tables.
    pub tables: u64,
    /// Shortest prefix of a table, in bits.
    pub prefix_min: u32,
    /// Longest prefix of a table, in bits.
    pub prefix_max: u32,
    /// Probes of a search over all tables, saturating.
    pub probes: u64,
    /// Expected candidates of a probe of the shortest prefix.
    pub candidates_per_probe: f64,
    /// Expected candidates of a search.
    pub candidates: f64,
    /// Expected time of a search, in seconds.
    pub seconds: f64,
    /// Expected bytes of all tables per fingerprint, without documents and postings.
    pub bytes_per_fingerprint: f64,
    /// Expected bytes of all tables, without documents and postings.
    pub bytes: f64,
}

/// Reports every sensible plan for `count` fingerprints, the named ones first.
///
/// Times are those of searches in the store with all fingerprints in runs, computed from `costs`.
/// Returns an empty list if `bits` is not 32, 64 or 128, or if `distance` exceeds a quarter of it.
///
/// ```
/// use hamdex::plan::{Costs, survey};
///
/// let reports = survey(64, 3, 1 << 34, &Costs::default());
/// let row = reports.iter().find(|report| report.name == "16").unwrap();
/// assert_eq!((row.tables, row.prefix_min, row.candidates_per_probe), (16, 28, 64.0));
/// ```
pub fn survey(bits: u32, distance: u32, count: u64, costs: &Costs) -> Vec<PlanReport> {
    if check_bits(bits).is_err() || check_distance(bits, distance).is_err() {
        return Vec::new();
    }
    let mut names: Vec<String> = ["20", "16", "10", AUTO_DEFAULT].map(str::to_owned).into();
    for lead in 1..=4 {
        let usual = lead + 2..=bits / 4;
        let usual = usual.filter(|&blocks| binomial(blocks, lead) <= USUAL_TABLES);
        for blocks in (lead == 1).then_some(2).into_iter().chain(usual).chain([distance + lead]) {
            let name = parse::describe(&[Level { blocks, lead }], None);
            let fits = lead < blocks && binomial(blocks, lead) <= MAX_TABLES as u64;
            if fits && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let plans = names.iter().filter_map(|name| Plan::parse(name, bits, distance, None).ok());
    plans.map(|plan| report(&plan, distance, count, costs)).collect()
}

fn report(plan: &Plan, distance: u32, count: u64, costs: &Costs) -> PlanReport {
    let schedule = plan.schedule(distance, count, costs);
    let prefixes = || plan.tables.iter().map(super::Table::prefix_bits);
    let (prefix_min, prefix_max) = (prefixes().min(), prefixes().max());
    let (prefix_min, prefix_max) =
        prefix_min.zip(prefix_max).expect("a plan has at least one table");
    // Delta encoding of neighbours in a run saves about one byte per entry.
    let entry_bytes = f64::from(plan.bits / 8 - 1);
    let bytes_per_fingerprint = entry_bytes * plan.tables.len() as f64;
    PlanReport {
        name: plan.to_string(),
        blocks: describe_blocks(plan),
        tables: plan.tables.len() as u64,
        prefix_min,
        prefix_max,
        probes: schedule.probes(),
        candidates_per_probe: expected_candidates(prefix_min, count),
        candidates: schedule.candidates(),
        seconds: schedule.nanos() / 1e9,
        bytes_per_fingerprint,
        bytes: bytes_per_fingerprint * count as f64,
    }
}

/// Formats block sizes such as `4 x 13 + 1 x 12, lead with 2`; levels are joined by `then`.
fn describe_blocks(plan: &Plan) -> String {
    let mut rest = plan.bits;
    let levels = plan.levels.iter().map(|&Level { blocks, lead }| {
        let sizes: Vec<u32> = layout::sizes(rest, blocks).collect();
        rest -= sizes.iter().take(lead as usize).sum::<u32>();
        let groups: Vec<String> = sizes
            .chunk_by(|a, b| a == b)
            .filter_map(|group| Some(format!("{} x {}", group.len(), group.first()?)))
            .collect();
        format!("{}, lead with {lead}", groups.join(" + "))
    });
    levels.collect::<Vec<_>>().join(", then ")
}

impl Plan {
    /// Chooses the plan with the cheapest searches for `count` fingerprints.
    ///
    /// The tables take up to about 60 bytes per fingerprint. Among plans of nearly equal cost the
    /// one with the fewest tables is chosen. Plan "4" is chosen if a scan takes next to no time, or
    /// if every plan is slower than the scan.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// assert_eq!(Plan::auto(64, 3, 1_000)?.to_string(), "4");
    /// assert_eq!(Plan::auto(64, 3, 10_000_000)?.to_string(), "4");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidPlan`] if `bits` is not 32, 64 or 128, and
    /// [`Error::InvalidDistance`] if `distance` exceeds a quarter of the width.
    pub fn auto(bits: u32, distance: u32, count: u64) -> Result<Self> {
        check_bits(bits).map_err(|reason| Error::InvalidPlan {
            plan: "auto".to_owned(),
            bits,
            reason: reason.to_owned(),
        })?;
        check_distance(bits, distance)?;
        let scan = Costs::default().scan_nanos(count);
        if scan < AUTO_SMALL_NANOS {
            return Self::named(AUTO_DEFAULT, bits);
        }
        let reports = survey(bits, distance, count, &Costs::default());
        let affordable =
            || reports.iter().filter(|report| report.bytes_per_fingerprint <= AUTO_BYTES);
        let cheapest = affordable().map(|report| report.seconds).fold(f64::INFINITY, f64::min);
        if cheapest * 1e9 > scan {
            return Self::named(AUTO_DEFAULT, bits);
        }
        let near = affordable().filter(|report| report.seconds <= cheapest * AUTO_NEAR);
        let chosen =
            near.min_by(|a, b| a.tables.cmp(&b.tables).then(a.seconds.total_cmp(&b.seconds)));
        Self::parse(chosen.map_or(AUTO_DEFAULT, |report| &report.name), bits, distance, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reports: &[PlanReport], name: &str) -> PlanReport {
        reports.iter().find(|report| report.name == name).unwrap().clone()
    }

    #[test]
    fn survey_reproduces_the_table_of_the_paper() {
        let reports = survey(64, 3, 1 << 34, &Costs::default());
        let wanted = [
            ("20", 20, 31, 33, 8.0, "4 x 11 + 2 x 10, lead with 3"),
            ("16", 16, 28, 28, 64.0, "4 x 16, lead with 1, then 4 x 12, lead with 1"),
            ("10", 10, 25, 26, 512.0, "4 x 13 + 1 x 12, lead with 2"),
            ("4", 4, 16, 16, 262_144.0, "4 x 16, lead with 1"),
        ];
        for ((name, tables, prefix_min, prefix_max, candidates, blocks), first) in
            wanted.into_iter().zip(&reports)
        {
            let report = row(&reports, name);
            assert_eq!(&report, first);
            assert_eq!((report.tables, report.prefix_min), (tables, prefix_min), "{name}");
            assert_eq!((report.prefix_max, report.blocks.as_str()), (prefix_max, blocks));
            assert!((report.candidates_per_probe - candidates).abs() < f64::EPSILON, "{name}");
            assert!((report.bytes_per_fingerprint - 7.0 * tables as f64).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn survey_returns_finite_figures_at_every_width_and_distance() {
        for bits in [32, 64, 128] {
            for distance in [0, 1, 3, bits / 8, bits / 4] {
                let reports = survey(bits, distance, 1_000_000, &Costs::default());
                assert!(reports.len() > 10, "{bits} {distance}");
                for report in &reports {
                    assert!(report.probes >= 1 && report.tables >= 1, "{report:?}");
                    assert!(report.seconds.is_finite() && report.seconds > 0.0, "{report:?}");
                }
                let mut names: Vec<&str> = reports.iter().map(|r| r.name.as_str()).collect();
                names.sort_unstable();
                assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
            }
        }
        assert!(survey(48, 3, 10, &Costs::default()).is_empty());
        assert!(survey(64, 17, 10, &Costs::default()).is_empty());
    }

    #[test]
    fn automatic_plans_stay_within_their_size_limit() {
        for bits in [32, 64, 128] {
            for distance in 0..=bits / 4 {
                for count in [0, 1, 100_000, 10_000_000, 1 << 34] {
                    let plan = Plan::auto(bits, distance, count).unwrap();
                    let report = report(&plan, distance, count, &Costs::default());
                    assert!(report.bytes_per_fingerprint <= AUTO_BYTES, "{report:?}");
                    assert!(plan.require(distance).is_ok());
                }
            }
        }
    }

    #[test]
    fn automatic_plans_have_four_tables_while_these_are_fast() {
        for count in [0, 1, 1_000, 1_000_000, 10_000_000] {
            assert_eq!(Plan::auto(64, 3, count).unwrap().to_string(), "4", "{count}");
        }
        // A quarter of a million candidates per probe: longer prefixes with flips are cheaper.
        assert_ne!(Plan::auto(64, 3, 1 << 34).unwrap().to_string(), "4");
        assert!(matches!(Plan::auto(64, 17, 1), Err(Error::InvalidDistance { max: 16, .. })));
        assert!(matches!(Plan::auto(63, 3, 1), Err(Error::InvalidPlan { .. })));
    }
}
