//! The tables of the report.

use super::agree::Verdict;
use super::document::{Cell, Mark, Table, or_dash, plain, size};
use crate::row::Row;

/// Returns the distinct engines in the order of their rows.
pub(crate) fn engines<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.engine.as_str()) {
            names.push(&row.engine);
        }
    }
    names
}

/// Returns builds, memory and searches at the main distance.
pub(crate) fn overview(rows: &[Row], n: u64, threads: u64) -> Table {
    let mut table = Table::new(&[
        "engine",
        "build, s",
        "memory, B/fp",
        "after searches",
        "disk, B/fp",
        "near: median, µs",
        "p99",
        "p99.9",
        "random: median, µs",
        "p99",
        "queries/s",
        "in a batch, 1 thread",
    ]);
    table.head.push(format!("{threads} threads"));
    for engine in engines(rows.iter().filter(|row| row.n == n && row.work == "build")) {
        let find = |work: &str, kind: &str, threads: u64| {
            rows.iter().find(|row| {
                let searched = row.k == Some(3) && row.kind == kind && row.threads == threads;
                row.n == n
                    && row.engine == engine
                    && row.work == work
                    && (row.k.is_none() || searched)
            })
        };
        let figure = |work: &str, kind: &str, threads: u64, name: &str| {
            find(work, kind, threads).and_then(|row| row.median(name))
        };
        let each = |name: &str, work: &str| {
            or_dash(figure(work, "", 1, name).map(|bytes| bytes / n as f64)).into()
        };
        let micros = |kind: &str, name: &str| or_dash(figure("search", kind, 1, name)).into();
        let rate = |work: &str, threads: u64| -> Cell {
            or_dash(figure(work, "near", threads, "per_second")).into()
        };
        table.rows.push(vec![
            engine.into(),
            or_dash(figure("build", "", 1, "seconds")).into(),
            each("memory_bytes", "build"),
            each("resident_bytes", "memory"),
            each("disk_bytes", "build"),
            micros("near", "median_us"),
            micros("near", "p99_us"),
            micros("near", "p999_us"),
            micros("random", "median_us"),
            micros("random", "p99_us"),
            rate("search", 1),
            rate("batch", 1),
            rate("batch", threads),
        ]);
    }
    table
}

/// Returns the median times at every distance, in microseconds.
pub(crate) fn distances(rows: &[Row], n: u64) -> Table {
    let searches: Vec<&Row> =
        rows.iter().filter(|r| r.n == n && r.work == "search" && r.kind == "near").collect();
    let mut all: Vec<u64> = searches.iter().filter_map(|row| row.k).collect();
    all.sort_unstable();
    all.dedup();
    let mut table = Table::new(&["median, µs, k ="]);
    table.head.extend(all.iter().map(u64::to_string));
    for engine in engines(searches.iter().copied()) {
        let at = |k: &u64| {
            let row = searches.iter().find(|row| row.engine == engine && row.k == Some(*k));
            or_dash(row.and_then(|row| row.median("median_us"))).into()
        };
        table.rows.push(std::iter::once(engine.into()).chain(all.iter().map(at)).collect());
    }
    table
}

/// Returns the times of self-joins in seconds, and the numbers of pairs.
pub(crate) fn joins(rows: &[Row]) -> Table {
    let mut table = Table::new(&["engine", "n", "k", "pairs", "s", "smallest to largest", "note"]);
    for row in rows.iter().filter(|row| row.work == "join") {
        let spread = row.spread("seconds");
        table.rows.push(vec![
            row.engine.clone().into(),
            plain(row.n as f64).into(),
            row.k.unwrap_or(0).to_string().into(),
            plain(row.checks.first().map_or(0.0, |check| check.matches as f64)).into(),
            or_dash(row.median("seconds")).into(),
            spread
                .map_or_else(String::new, |[_, a, b]| format!("{} to {}", plain(a), plain(b)))
                .into(),
            row.note.clone().into(),
        ]);
    }
    table
}

/// Returns the rates of inserts, and the times of the merges after them.
pub(crate) fn inserts(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "documents",
        "writers",
        "per second",
        "fold, s",
        "a reader's p99 before, µs",
        "meanwhile",
        "note",
    ]);
    for row in rows.iter().filter(|row| row.work == "insert") {
        table.rows.push(vec![
            plain(row.count as f64).into(),
            row.threads.to_string().into(),
            or_dash(row.median("per_second")).into(),
            or_dash(row.median("fold_seconds")).into(),
            or_dash(row.median("reader_p99_us_alone")).into(),
            or_dash(row.median("reader_p99_us_beside")).into(),
            row.note.clone().into(),
        ]);
    }
    table
}

/// Returns the times of a million distances of texts and of fingerprints.
pub(crate) fn yardstick(rows: &[Row]) -> Table {
    let mut table =
        Table::new(&["Levenshtein, s a million", "Hamming, s a million", "ratio", "note"]);
    for row in rows.iter().filter(|row| row.work == "distance").take(1) {
        let (long, short) = (row.median("levenshtein_seconds"), row.median("hamming_seconds"));
        let ratio = long.zip(short).map(|(long, short)| long / short);
        table.rows.push(vec![
            or_dash(long).into(),
            short.map_or_else(|| "–".into(), |s| format!("{s:.5}")).into(),
            or_dash(ratio).into(),
            row.note.clone().into(),
        ]);
    }
    table
}

/// Returns predicted and actual times, and how many are within a factor of two.
pub(crate) fn predictions(rows: &[Row]) -> Table {
    let mut table =
        Table::new(&["n", "k", "way", "predicted, µs", "actual, µs", "predicted / actual"]);
    let (mut all, mut near) = (0_u32, 0_u32);
    for row in rows.iter().filter(|row| row.work == "prediction") {
        let (Some(predicted), Some(actual)) = (row.median("predicted_us"), row.median("actual_us"))
        else {
            continue;
        };
        all += 1;
        let ratio = predicted / actual;
        if (0.5..=2.0).contains(&ratio) {
            near += 1;
        }
        let mark = if (0.5..=2.0).contains(&ratio) { "" } else { " ▼" };
        table.rows.push(vec![
            size(row.n).into(),
            row.k.map_or_else(String::new, |k| k.to_string()).into(),
            row.kind.clone().into(),
            plain(predicted).into(),
            plain(actual).into(),
            format!("{}{mark}", plain(ratio)).into(),
        ]);
    }
    if all > 0 {
        let summary = format!("{near} of {all} within a factor of two");
        table.rows.push(vec![
            "all".into(),
            String::new().into(),
            String::new().into(),
            String::new().into(),
            String::new().into(),
            summary.into(),
        ]);
    }
    table
}

/// Returns the contenders without figures, with the reasons.
pub(crate) fn absent(rows: &[Row], left_out: &[(&str, &str)]) -> Table {
    let mut table = Table::new(&["engine", "n", "why there are no figures"]);
    for row in rows.iter().filter(|row| row.work == "absent") {
        table.rows.push(vec![
            row.engine.clone().into(),
            plain(row.n as f64).into(),
            row.note.clone().into(),
        ]);
    }
    for (name, why) in left_out {
        table.rows.push(vec![(*name).into(), "all".into(), (*why).into()]);
    }
    table
}

/// Returns the results of the comparisons of answers, one row for each engine.
pub(crate) fn agreement(verdicts: &[Verdict]) -> Table {
    let mut table =
        Table::new(&["engine", "comparisons", "queries", "matches", "equal answers", "recall"]);
    let mut names: Vec<&str> = verdicts.iter().map(|verdict| verdict.engine.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let own: Vec<&Verdict> = verdicts.iter().filter(|v| v.engine == name).collect();
        let sum = |value: fn(&Verdict) -> u64| own.iter().map(|v| value(v)).sum::<u64>() as f64;
        let equal = own.iter().filter(|verdict| verdict.equal).count();
        let recall = own.iter().map(|verdict| verdict.recall()).fold(f64::INFINITY, f64::min);
        let wrong = own.iter().any(|verdict| verdict.is_wrong());
        let mark = if wrong { Mark::Behind } else { Mark::Plain };
        table.rows.push(vec![
            name.into(),
            own.len().to_string().into(),
            plain(sum(|verdict| verdict.queries)).into(),
            plain(sum(|verdict| verdict.matches)).into(),
            Cell { text: format!("{equal} of {}", own.len()), mark },
            format!("{recall:.4}").into(),
        ]);
    }
    table
}
