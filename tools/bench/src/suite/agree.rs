//! Agreement: compares the answers of contenders to the same queries.

use serde_json::{Value, json};

use super::contender::{self, Contender};
use crate::row::{Check, Row};

/// The verdict on one row.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) engine: String,
    pub(crate) work: String,
    pub(crate) n: u64,
    pub(crate) k: u64,
    pub(crate) kind: String,
    /// Queries that both answered.
    pub(crate) queries: u64,
    pub(crate) matches: u64,
    /// Matches of the reference for the same queries.
    pub(crate) wanted: u64,
    pub(crate) equal: bool,
    /// True if the contender claims to find everything.
    pub(crate) complete: bool,
}

impl Verdict {
    pub(crate) fn recall(&self) -> f64 {
        if self.wanted == 0 { 1.0 } else { self.matches as f64 / self.wanted as f64 }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "engine": self.engine,
            "work": self.work,
            "n": self.n,
            "k": self.k,
            "kind": self.kind,
            "queries": self.queries,
            "matches": self.matches,
            "wanted": self.wanted,
            "equal": self.equal,
            "recall": self.recall(),
        })
    }

    /// Returns true if answers differ that must be equal.
    pub(crate) fn is_wrong(&self) -> bool {
        !self.equal && self.complete
    }
}

/// Compares the answers of every row with ours, on as many queries as possible.
pub(crate) fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let contenders: Vec<Contender> = contender::all().collect();
    let find = |row: &Row| contenders.iter().find(|c| c.name == row.engine);
    let mut verdicts = Vec::new();
    for row in rows.iter().filter(|row| !row.checks.is_empty()) {
        let ours = rows.iter().filter(|other| {
            find(other).is_some_and(|c| c.ours)
                && other.engine.starts_with("hamdex")
                && !std::ptr::eq(*other, row)
                && (other.n, other.k, &other.kind) == (row.n, row.k, &row.kind)
        });
        let widest = ours.filter_map(|other| common(&row.checks, &other.checks));
        let Some((own, wanted)) = widest.max_by_key(|(own, _)| own.queries) else { continue };
        verdicts.push(Verdict {
            engine: row.engine.clone(),
            work: row.work.clone(),
            n: row.n,
            k: row.k.unwrap_or(0),
            kind: row.kind.clone(),
            queries: own.queries,
            matches: own.matches,
            wanted: wanted.matches,
            equal: own == wanted,
            complete: find(row).is_none_or(|c| c.complete),
        });
    }
    verdicts
}

/// Returns the checks of both after the largest common number of queries.
fn common<'a>(own: &'a [Check], other: &'a [Check]) -> Option<(&'a Check, &'a Check)> {
    let pairs = own.iter().rev().filter_map(|own| {
        other.iter().find(|other| other.queries == own.queries).map(|other| (own, other))
    });
    pairs.max_by_key(|(own, _)| own.queries)
}

#[cfg(test)]
mod tests {
    use super::verdicts;
    use crate::row::{Check, Row};

    fn row(engine: &str, checks: &[(u64, u64, &str)]) -> Row {
        let check = |(queries, matches, digest): &(u64, u64, &str)| Check {
            queries: *queries,
            matches: *matches,
            digest: (*digest).into(),
        };
        let checks = checks.iter().map(check).collect();
        Row { k: Some(3), checks, ..Row::new(engine, "search", 10_000) }
    }

    #[test]
    fn answers_are_compared_on_the_largest_common_number_of_queries() {
        let ours = row("hamdex, disk", &[(10, 4, "a"), (100, 40, "b")]);
        let peer = row("web-simhash", &[(10, 4, "a")]);
        let verdicts = verdicts(&[ours, peer]);
        let [verdict] = verdicts.as_slice() else { panic!("{verdicts:?}") };
        assert!(verdict.equal && !verdict.is_wrong());
        assert_eq!(verdict.queries, 10);
    }

    #[test]
    fn another_answer_is_wrong_unless_the_peer_is_known_to_miss_some() {
        let ours = row("hamdex, disk", &[(10, 4, "a")]);
        let complete = row("web-simhash", &[(10, 3, "b")]);
        let incomplete = row("gaoya, 6 blocks by 3", &[(10, 3, "b")]);
        let verdicts = verdicts(&[ours, complete, incomplete]);
        let wrong: Vec<bool> = verdicts.iter().map(super::Verdict::is_wrong).collect();
        assert_eq!(wrong, [true, false]);
        assert!(verdicts.iter().all(|verdict| verdict.recall() < 0.8));
    }
}
