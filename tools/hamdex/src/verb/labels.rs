//! Labels: a file of pairs becomes positions of near and of undecided pairs.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use hamdex::evaluate;

use crate::failure::{Failure, Result};
use crate::key::Name;

/// Labelled pairs in the order of the file.
#[derive(Debug)]
pub(super) struct Labels {
    pairs: Vec<(String, String, Option<f64>)>,
}

/// Labelled pairs by position, the smaller one first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) labels: evaluate::Labels,
    /// Pairs of which a document is missing.
    pub(super) unknown: u64,
}

impl Labels {
    /// Reads lines of two ids and perhaps a similarity, with or without column names.
    pub(super) fn read(path: &Path, column: Option<&str>) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Failure::io(path, e))?;
        Self::parse(&text, column).map_err(|reason| Failure::file(path, reason))
    }

    fn parse(text: &str, column: Option<&str>) -> Result<Self, String> {
        let mut lines =
            (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
        let names = lines.next_if(|(_, line)| line.starts_with("id_a\t"));
        let names: Vec<&str> = names.map_or_else(Vec::new, |(_, line)| line.split('\t').collect());
        let similarity = match column {
            None => 2,
            Some(column) => match column.parse::<usize>() {
                Ok(number) if number > 2 => number - 1,
                _ => names
                    .iter()
                    .position(|name| *name == column)
                    .filter(|&at| at > 1)
                    .ok_or_else(|| format!("has no similarity column \"{column}\""))?,
            },
        };
        let mut pairs = Vec::new();
        for (number, line) in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            let [a, b, ..] = fields.as_slice() else {
                return Err(format!("line {number} has no tab between two ids"));
            };
            let value = match fields.get(similarity) {
                Some(value) => Some(
                    value
                        .trim()
                        .parse()
                        .map_err(|_| format!("line {number}: \"{value}\" is not a similarity"))?,
                ),
                None if column.is_some() => return Err(format!("line {number} has no similarity")),
                None => None,
            };
            pairs.push(((*a).to_owned(), (*b).to_owned(), value));
        }
        Ok(Self { pairs })
    }

    /// Returns the ids of all documents in labels.
    pub(super) fn names(&self) -> HashSet<&str> {
        self.pairs.iter().flat_map(|(a, b, _)| [a.as_str(), b.as_str()]).collect()
    }

    /// Finds the documents by their keys; a pair listed twice is counted once.
    pub(super) fn judge<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]>,
        near_from: Option<f64>,
        ignored_from: Option<f64>,
    ) -> Judged {
        let positions: HashMap<String, u32> =
            (0..).zip(keys).map(|(position, key)| (Name::of(key).to_string(), position)).collect();
        let mut seen = HashSet::new();
        let mut judged = Judged::default();
        for (a, b, similarity) in &self.pairs {
            let (Some(&a), Some(&b)) = (positions.get(a), positions.get(b)) else {
                judged.unknown += 1;
                continue;
            };
            let pair = (a.min(b), a.max(b));
            if a == b || !seen.insert(pair) {
                continue;
            }
            let reaches = |limit: Option<f64>| match (similarity, limit) {
                (Some(similarity), Some(limit)) => *similarity >= limit,
                _ => true,
            };
            if reaches(near_from) {
                judged.labels.near.push(pair);
            } else if ignored_from.is_some() && reaches(ignored_from) {
                judged.labels.ignored.push(pair);
            }
        }
        judged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<(String, String, Option<f64>)> {
        Labels::parse(text, None).unwrap().pairs
    }

    #[test]
    fn labels_come_with_and_without_names_and_similarity() {
        let plain = [("a".to_owned(), "b".to_owned(), None)];
        assert_eq!(parse("a\tb\n"), plain);
        assert_eq!(parse("id_a\tid_b\na\tb\n\n"), plain);
        let similar = [("a".to_owned(), "b".to_owned(), Some(0.9))];
        assert_eq!(parse("id_a\tid_b\tedit_similarity\na\tb\t0.9"), similar);
        let named = Labels::parse("id_a\tid_b\tx\ty\na\tb\t1\t0.9", Some("y")).unwrap();
        assert_eq!(named.pairs, similar);
        assert!(parse("").is_empty());
    }

    #[test]
    fn lines_that_are_no_labels_are_named() {
        for (text, column, reason) in [
            ("a b", None, "line 1 has no tab between two ids"),
            ("a\tb\t0.5\na\tb\tx", None, "line 2: \"x\" is not a similarity"),
            ("a\tb", Some("z"), "has no similarity column \"z\""),
            ("a\tb", Some("3"), "line 1 has no similarity"),
        ] {
            assert_eq!(Labels::parse(text, column).unwrap_err(), reason);
        }
    }
}
