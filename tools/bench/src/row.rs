//! Rows of figures of one engine at one size, exchanged between processes as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The answers of an engine to the first `queries` of a file of queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// Number of queries answered, or of fingerprints joined.
    pub(crate) queries: u64,
    /// Number of distinct pairs of query and fingerprint, or of pairs of fingerprints.
    pub(crate) matches: u64,
    /// Digest of these pairs in any order.
    pub(crate) digest: String,
}

/// Figures of one piece of work, one value for each repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) engine: String,
    /// `build`, `search`, `batch`, `join`, `insert`, `memory`, `distance`, or `absent`.
    pub(crate) work: String,
    pub(crate) n: u64,
    pub(crate) k: Option<u64>,
    /// `near` (queries near stored ones) or `random`.
    pub(crate) kind: String,
    pub(crate) threads: u64,
    /// Queries, documents or pairs of a repetition.
    pub(crate) count: u64,
    pub(crate) figures: BTreeMap<String, Vec<f64>>,
    pub(crate) checks: Vec<Check>,
    pub(crate) note: String,
}

impl Row {
    pub(crate) fn new(engine: &str, work: &str, n: u64) -> Self {
        Self { engine: engine.into(), work: work.into(), n, threads: 1, ..Self::default() }
    }

    /// Creates a row with the reason for missing figures.
    pub(crate) fn absent(engine: &str, n: u64, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..Self::new(engine, "absent", n) }
    }

    pub(crate) fn add(&mut self, figure: &str, value: f64) {
        self.figures.entry(figure.into()).or_default().push(value);
    }

    /// Returns the median, smallest and largest value of a figure.
    pub(crate) fn spread(&self, figure: &str) -> Option<[f64; 3]> {
        let mut values = self.figures.get(figure)?.clone();
        values.sort_unstable_by(f64::total_cmp);
        Some([*values.get(values.len() / 2)?, *values.first()?, *values.last()?])
    }

    pub(crate) fn median(&self, figure: &str) -> Option<f64> {
        self.spread(figure).map(|[median, ..]| median)
    }

    pub(crate) fn to_json(&self) -> Value {
        let checks: Vec<_> =
            self.checks.iter().map(|c| json!([c.queries, c.matches, c.digest])).collect();
        let mut row = Map::new();
        row.insert("engine".into(), json!(self.engine));
        row.insert("work".into(), json!(self.work));
        row.insert("n".into(), json!(self.n));
        row.insert("k".into(), json!(self.k));
        row.insert("kind".into(), json!(self.kind));
        row.insert("threads".into(), json!(self.threads));
        row.insert("count".into(), json!(self.count));
        row.insert("figures".into(), json!(self.figures));
        row.insert("checks".into(), json!(checks));
        row.insert("note".into(), json!(self.note));
        Value::Object(row)
    }

    /// Parses a line printed by an engine's process; missing fields are empty.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let row: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().into();
        let number = |name: &str| row.get(name).and_then(Value::as_u64);
        let numbers = |value: &Value| {
            value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect::<Vec<_>>()
        };
        let figures = row.get("figures").and_then(Value::as_object).into_iter().flatten();
        let checks = row.get("checks").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            engine: row.get("engine")?.as_str()?.into(),
            work: row.get("work")?.as_str()?.into(),
            n: number("n")?,
            k: number("k"),
            kind: text("kind"),
            threads: number("threads").unwrap_or(1),
            count: number("count").unwrap_or(0),
            figures: figures.map(|(name, values)| (name.clone(), numbers(values))).collect(),
            checks: checks.filter_map(check).collect(),
            note: text("note"),
        })
    }
}

fn check(value: &Value) -> Option<Check> {
    let [queries, matches, digest] = value.as_array()?.as_slice() else { return None };
    Some(Check {
        queries: queries.as_u64()?,
        matches: matches.as_u64()?,
        digest: digest.as_str()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Check, Row};

    #[test]
    fn rows_round_trip_through_their_line() {
        let mut row = Row::new("engine", "search", 10_000);
        row.k = Some(3);
        row.kind = "near".into();
        row.count = 10;
        row.note = "a \"note\"".into();
        row.add("median_us", 1.25);
        row.add("median_us", 2.5);
        row.checks.push(Check { queries: 10, matches: 4, digest: "ff".into() });
        assert_eq!(Row::parse(&row.to_json().to_string()), Some(row));
    }

    #[test]
    fn lines_of_other_programs_are_not_rows() {
        assert_eq!(Row::parse("WARNING: something"), None);
        assert_eq!(Row::parse("{\"engine\": 1}"), None);
    }

    #[test]
    fn spread_is_median_smallest_and_largest() {
        let mut row = Row::new("engine", "build", 1);
        for seconds in [3.0, 1.0, 2.0] {
            row.add("seconds", seconds);
        }
        assert_eq!(row.spread("seconds"), Some([2.0, 1.0, 3.0]));
        assert_eq!(row.spread("bytes"), None);
    }
}
