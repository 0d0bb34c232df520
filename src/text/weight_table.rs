//! Weight tables: the caller says how much each word counts.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::ngrams::SEPARATOR;
use super::normalise::normalise;
use super::simplified::simplify;
use crate::error::{Error, Result};

/// Stands for every word that the table does not name.
const OTHERS: &str = "*";

/// Weight of other words unless the table says otherwise.
const OTHER: u32 = 1;

/// How much each word counts, in whole numbers from 0.
///
/// A line is a word, a tab and its weight. `*` stands for all words that are not named, whose
/// weight is else 1; weight 0 takes a word out, before n-grams are formed. A feature of several
/// words can be named with spaces between them; one that is not weighs as its words do on
/// average, rounded down. For features that are no words at all there is [`simhash`](crate::sketch::simhash).
///
/// ```
/// use hamdex::text::{Pipeline, WeightTable};
/// use hamdex::PipelineOptions;
///
/// let table = WeightTable::parse("美国\t4\n区\t5\n有\t0\n")?;
/// let pipeline = Pipeline::new(&PipelineOptions::new().weight_table(table))?;
/// let features = pipeline.features("美国有51区");
/// let weights: Vec<_> = features.iter().map(|f| (f.text.as_str(), f.weight)).collect();
/// assert_eq!(weights, [("区", 5), ("美国", 4), ("51", 1)]);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightTable(Arc<str>);

impl WeightTable {
    /// Reads a table; blank lines and those that begin with `#` do not count.
    ///
    /// Of two lines for the same word the later one counts.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidLine`] for a line without tab or word, and for a weight that is no whole
    /// number from 0 to `u32::MAX`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut weights = BTreeMap::new();
        for (line, number) in text.lines().zip(1..) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, weight) = entry(line).map_err(|reason| Error::InvalidLine {
                what: "weights",
                line: number,
                reason,
            })?;
            weights.insert(word, weight);
        }
        let mut out = String::new();
        for (word, weight) in weights {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{word}\t{weight}");
        }
        Ok(Self(out.into()))
    }

    /// The words in normal form, rising, a line each with tab and weight.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes back what [`WeightTable::as_str`] gave.
    pub(super) fn stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The table as texts have its words.
    pub(super) fn load(&self, simplified: bool) -> LoadedWeights {
        let mut loaded =
            LoadedWeights { words: HashMap::default(), features: HashMap::default(), other: OTHER };
        for (word, weight) in self.0.lines().filter_map(|line| entry(line).ok()) {
            if word == OTHERS {
                loaded.other = weight;
                continue;
            }
            let word = if simplified { simplify(&word) } else { word };
            let of = if word.contains(' ') { &mut loaded.features } else { &mut loaded.words };
            let key = word.replace(' ', SEPARATOR.encode_utf8(&mut [0; 4]));
            of.insert(key.into_bytes().into(), weight);
        }
        loaded
    }
}

/// Reads one line.
fn entry(line: &str) -> Result<(String, u32), String> {
    let Some((word, weight)) = line.split_once('\t') else {
        return Err("no tab between word and weight".to_owned());
    };
    let weight = weight.trim();
    // A line break within a line comes of separators that only Unicode knows.
    let normal = normalise(word).replace('\n', " ");
    if normal.is_empty() {
        return Err("the word is empty".to_owned());
    }
    match weight.parse() {
        Ok(weight) => Ok((normal, weight)),
        Err(_) => Err(format!(
            "\"{weight}\" is no weight, a whole number from 0 to {}; 0 takes the word out",
            u32::MAX
        )),
    }
}

/// A table to look words and features up in.
#[derive(Debug)]
pub(super) struct LoadedWeights {
    words: HashMap<Box<[u8]>, u32, BuildHasherDefault<Xxh3>>,
    /// Features of several words that are named as such.
    features: HashMap<Box<[u8]>, u32, BuildHasherDefault<Xxh3>>,
    other: u32,
}

impl LoadedWeights {
    /// Returns the weight of a word.
    #[inline]
    pub(super) fn word(&self, word: &str) -> u32 {
        self.words.get(word.as_bytes()).copied().unwrap_or(self.other)
    }

    /// Returns the weight of a feature of several words that the table names.
    #[inline]
    pub(super) fn feature(&self, feature: &[u8]) -> Option<u32> {
        if self.features.is_empty() { None } else { self.features.get(feature).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused;
    use super::*;

    #[test]
    fn features_weigh_what_the_table_says() {
        let table = WeightTable::parse("美国\t4\n*\t2\nthe\t0\nflying saucer\t9\n").unwrap();
        let loaded = table.load(false);
        assert_eq!(["美国", "雇员", "the"].map(|word| loaded.word(word)), [4, 2, 0]);
        let named = ["flying", "saucer"].join(SEPARATOR.encode_utf8(&mut [0; 4]));
        assert_eq!(loaded.feature(named.as_bytes()), Some(9));
        assert_eq!(loaded.feature(b"saucer"), None);
    }

    #[test]
    fn tables_are_brought_into_normal_form() {
        let table = WeightTable::parse("# comment\nＴｈｅ \t 3\r\n\nthe\t4\n美国\t5\n").unwrap();
        assert_eq!(table.as_str(), "the\t4\n美国\t5\n");
        let traditional = WeightTable::parse("美國\t7").unwrap().load(true);
        assert_eq!(traditional.word("美国"), 7);
    }

    #[test]
    fn wrong_lines_are_named() {
        let cases = [
            ("美国 4", 1, "tab"),
            ("美国\t4\nthe\t-1", 2, "\"-1\""),
            ("the\t1.5", 1, "whole number"),
            ("the\t4294967296", 1, "4294967295"),
            ("\t4", 1, "empty"),
            ("the\t4\t5", 1, "whole number"),
        ];
        refused::check("weights", WeightTable::parse, &cases);
    }
}
