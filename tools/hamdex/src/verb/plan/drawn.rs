//! The survey drawn: every plan is a point, and those that no other plan beats are joined.

use hamdex::plan::PlanReport;

use crate::chart::{self, Axis, Chart, Kind, Mark, Point, Series};
use crate::size;

const SIZE: (u32, u32) = (1100, 720);

/// The title of the plot, and what there is to see in it.
pub(super) fn words(bits: u32, distance: u32, count: u64) -> (String, String) {
    let count = size::thousands(count);
    let title = format!("Plans for {count} fingerprints of {bits} bits, distance {distance}");
    let about =
        "Expected time of a search and bytes of all tables; further down is faster, further \
                 to the left is smaller. A plan of the front is beaten by no other in both."
            .to_owned();
    (title, about)
}

/// Draws time against space.
pub(super) fn chart(title: &str, reports: &[PlanReport]) -> Chart {
    let (front, others) = front(reports);
    let point = |plan: &&PlanReport| Point::named(plan.bytes, plan.seconds, plan.name.clone());
    let series = |name: &str, mark, style, plans: &[&PlanReport]| Series {
        name: name.to_owned(),
        mark,
        style,
        points: plans.iter().map(point).collect(),
    };
    // A step at each plan: between two of them nothing is had.
    let steps = front.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        Some(Point::at(after.bytes, before.seconds))
    });
    let mut edge = series("", Mark::Edge, 0, &front);
    edge.points.extend(steps);
    edge.points.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    Chart {
        title: title.to_owned(),
        size: SIZE,
        x: Axis::new("space of all tables", Kind::Logarithmic, chart::bytes),
        y: Axis::new("expected time of a search", Kind::Logarithmic, chart::seconds),
        series: vec![
            edge,
            series("front", Mark::Dots, 0, &front),
            series("beaten in time and space", Mark::Dots, 1, &others),
        ],
        level: None,
        named: true,
    }
}

/// Parts the plans that no other beats in both, the smallest first, from the others.
fn front(reports: &[PlanReport]) -> (Vec<&PlanReport>, Vec<&PlanReport>) {
    let mut plans: Vec<&PlanReport> = reports.iter().collect();
    plans.sort_by(|a, b| a.bytes.total_cmp(&b.bytes).then(a.seconds.total_cmp(&b.seconds)));
    let mut fastest = f64::INFINITY;
    plans.into_iter().partition(|plan| {
        let leads = plan.seconds < fastest;
        fastest = fastest.min(plan.seconds);
        leads
    })
}

#[cfg(test)]
mod tests {
    use hamdex::plan::{Costs, survey};

    use super::*;

    #[test]
    fn the_front_is_what_no_plan_beats_in_both() {
        let reports = survey(64, 3, 1 << 30, &Costs::default());
        let (front, others) = front(&reports);
        assert_eq!(front.len() + others.len(), reports.len());
        assert!(front.len() > 2 && !others.is_empty(), "{} and {}", front.len(), others.len());
        let beats = |a: &PlanReport, b: &PlanReport| {
            a.bytes <= b.bytes
                && a.seconds <= b.seconds
                && (a.bytes < b.bytes || a.seconds < b.seconds)
        };
        assert!(!front.iter().any(|plan| reports.iter().any(|other| beats(other, plan))));
        let twin = |a: &PlanReport, b: &PlanReport| {
            a.bytes.total_cmp(&b.bytes).is_eq() && a.seconds.total_cmp(&b.seconds).is_eq()
        };
        let behind = |plan: &PlanReport| {
            reports.iter().any(|other| beats(other, plan)) || front.iter().any(|f| twin(f, plan))
        };
        assert!(others.iter().all(|plan| behind(plan)));
    }

    #[test]
    fn every_plan_is_a_point_with_its_name() {
        let reports = survey(64, 8, 10_000_000, &Costs::default());
        let (_, rows) = chart("", &reports).table();
        assert_eq!(rows.len(), reports.len());
        assert!(reports.iter().all(|plan| rows.iter().any(|row| row[0] == plan.name)));
    }
}
