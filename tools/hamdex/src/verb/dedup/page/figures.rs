//! Figures: counts of a deduplication become charts, each with a sentence about it.

use std::collections::BTreeMap;

use super::Page;
use super::seen::STEPS;
use super::seen::shortest;
use crate::draw::chart::{self, Axis, Chart, Kind, Mark, Point, Series};
use crate::size;

const SIZE: (u32, u32) = (560, 340);

/// A chart and its explanation.
pub(super) type Figure = (Chart, String);

/// Returns all charts that have something to show.
pub(super) fn all(page: &Page, sizes: &BTreeMap<usize, u64>) -> Vec<Figure> {
    let figures = [
        group_sizes(sizes),
        distances(page.notes.distances()),
        similarities(page.notes.similarities()),
        lengths(page),
        prefixes(page),
        balance(page),
    ];
    figures.into_iter().flatten().collect()
}

fn one(name: &str, mark: Mark, points: Vec<Point>) -> Series {
    Series { name: name.to_owned(), mark, style: 0, points }
}

fn plain(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
    Chart { title: title.to_owned(), size: SIZE, x, y, series, level: None, named: false }
}

fn group_sizes(counts: &BTreeMap<usize, u64>) -> Option<Figure> {
    let largest = *counts.last_key_value()?.0;
    let points = counts.iter().map(|(&size, &count)| Point::at(size as f64, count as f64));
    let x = Axis::new("documents in the group", Kind::Logarithmic, chart::count);
    let y = Axis::new("groups", Kind::Logarithmic, chart::count);
    let groups: u64 = counts.values().sum();
    let chart = plain("Sizes of groups", x, y, vec![one("groups", Mark::Dots, points.collect())]);
    let (groups, largest) = (size::thousands(groups), size::thousands(largest as u64));
    Some((
        chart,
        format!("{groups} groups of near-duplicates, the largest of {largest} documents."),
    ))
}

fn distances(counts: &[u64]) -> Option<Figure> {
    let removed: u64 = counts.iter().sum();
    let points = counts.iter().enumerate();
    let points = points.map(|(at, &count)| Point::at(at as f64, count as f64)).collect();
    let farthest = counts.len().checked_sub(1)?;
    let x = Axis::new("distance (bits)", Kind::Linear, chart::count);
    let chart = plain(
        "Distances of removed documents to the kept one",
        x.between(-0.7, farthest.max(3) as f64 + 0.7),
        Axis::new("documents", Kind::Linear, chart::count),
        vec![one("documents", Mark::Bars(0.8), points)],
    );
    let equal = counts.first().copied().unwrap_or(0) as f64 / removed.max(1) as f64;
    let equal = chart::percent((1000.0 * equal).round() / 1000.0);
    Some((chart, format!("{equal} of the removed documents have the fingerprint of the kept one.")))
}

fn similarities(counts: &[u64]) -> Option<Figure> {
    let least = counts.iter().position(|&count| count > 0)?;
    let width = 1.0 / STEPS as f64;
    let point = |(at, &count): (usize, &u64)| {
        let low = at as f64 * width;
        let name = format!("{low:.2} to {:.2}", low + width);
        Point::named(low + width / 2.0, count as f64, name)
    };
    let points = counts.iter().enumerate().skip(least).map(point).collect();
    let x = Axis::new("similarity to the kept document", Kind::Linear, chart::share);
    // Room for some steps to the left, so that a single bar is one.
    let low = (least as f64 * width - 0.02).clamp(0.0, 0.8);
    let chart = plain(
        "Similarity of removed documents",
        x.between(low, 1.0),
        Axis::new("documents", Kind::Linear, chart::count),
        vec![one("documents", Mark::Bars(0.86 * width), points)],
    );
    Some((
        chart,
        "For each removed document: its similarity to the kept one, as the verification measures \
            it."
        .to_owned(),
    ))
}

fn lengths(page: &Page) -> Option<Figure> {
    let bins: Vec<_> = page.seen.lengths().enumerate().collect();
    let all = |of: fn(&super::seen::Lengths) -> u64| -> u64 {
        bins.iter().map(|(_, (_, lengths))| of(lengths)).sum()
    };
    let (kept, removed) = (all(|l| l.kept), all(|l| l.removed));
    let first = bins.iter().position(|(_, (_, lengths))| lengths.kept + lengths.removed > 0)?;
    let series = |name: &str, style, total: u64, of: fn(&super::seen::Lengths) -> u64| {
        let share = |count: u64| count as f64 / total.max(1) as f64;
        let bins = bins.iter().skip(first).filter(|(at, _)| shortest(at + 1) > shortest(*at));
        let mut points: Vec<Point> = bins
            .map(|(at, (low, lengths))| {
                let name = match shortest(at + 1) - 1 {
                    high if high == *low => low.to_string(),
                    high => format!(
                        "{} to {}",
                        size::thousands(*low as u64),
                        size::thousands(high as u64)
                    ),
                };
                Point::named(*low as f64, share(of(lengths)), name)
            })
            .collect();
        // The last step ends where the next bin would begin.
        points.push(Point::named(shortest(bins_end(&page.seen)) as f64, 0.0, "longer"));
        Series {
            name: format!("{name} ({})", size::thousands(total)),
            mark: Mark::Steps,
            style,
            points,
        }
    };
    let chart = plain(
        "Lengths of texts",
        Axis::new("characters", Kind::Logarithmic, chart::count),
        Axis::new("share of the kept or removed texts", Kind::Linear, chart::percent),
        vec![series("kept", 0, kept, |l| l.kept), series("removed", 1, removed, |l| l.removed)],
    );
    Some((chart, "Steps are half a doubling wide.".to_owned()))
}

fn bins_end(seen: &super::Seen) -> usize {
    seen.lengths().count()
}

fn prefixes(page: &Page) -> Option<Figure> {
    let prints = &page.prints;
    let top = prints.skewed.first()?;
    let names = prints.skewed.iter().map(|prefix| prefix.name.clone()).collect();
    let series = |name: &str, style, of: fn(&super::prints::Prefix) -> u64| Series {
        name: name.to_owned(),
        mark: Mark::Bars(0.8),
        style,
        points: prints
            .skewed
            .iter()
            .enumerate()
            .map(|(at, prefix)| Point::named(at as f64, of(prefix) as f64, prefix.name.clone()))
            .collect(),
    };
    let bits = 4 * prints.digits;
    let mut chart = plain(
        "Skewed prefixes of fingerprints",
        Axis::new(format!("first {bits} bits, hexadecimal"), Kind::Names(names), chart::count),
        Axis::new("documents", Kind::Linear, chart::count),
        vec![
            series("documents", 0, |prefix| prefix.documents),
            series("distinct fingerprints", 1, |prefix| prefix.fingerprints),
        ],
    );
    let even = prints.even();
    chart.level = Some((even, format!("even share: {}", size::estimate(even))));
    let times = top.documents as f64 / even.max(f64::MIN_POSITIVE);
    let about = format!(
        "The most skewed of {} prefixes has {times:.1} times its even share.",
        size::thousands(1 << bits)
    );
    Some((chart, about))
}

fn balance(page: &Page) -> Option<Figure> {
    if page.prints.documents == 0 {
        return None;
    }
    let points: Vec<Point> =
        page.prints.shares().enumerate().map(|(at, share)| Point::at(at as f64, share)).collect();
    let uneven = points.iter().max_by(|a, b| (a.y - 0.5).abs().total_cmp(&(b.y - 0.5).abs()))?;
    let about = format!(
        "The least balanced bit is {}: it is set in {:.1} % of the fingerprints.",
        uneven.x,
        100.0 * uneven.y
    );
    let bits = points.len() as f64;
    let mut chart = plain(
        "Balance of bits",
        Axis::new("bit, the most significant is 0", Kind::Linear, chart::count).between(-1.0, bits),
        Axis::new("share of ones", Kind::Linear, chart::percent).between(0.0, 1.0),
        vec![one("share of ones", Mark::Dots, points)],
    );
    chart.level = Some((0.5, "even".to_owned()));
    Some((chart, about))
}
