//! Weight tables: the caller's weight of each word.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::text::features::ngrams::SEPARATOR;
use crate::text::form::normalise::normalise;
use crate::text::form::simplified::simplify;

/// The name of all words that the table does not list.
const OTHERS: &str = "*";

/// Default weight of words that the table does not list.
const OTHER: u32 = 1;

/// The weights of words, whole numbers from 0.
///
/// Each line is a word, a tab and its weight. `*` sets the weight of all words that are not listed;
/// the default is 1. Weight 0 drops a word before n-grams are formed. A feature of several words
/// can be listed with spaces between them; otherwise its weight is the mean of its words, rounded
/// down. For features that are not words, see [`simhash`](crate::sketch::simhash).
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
    /// Parses a table; skips blank lines and lines that begin with `#`.
    ///
    /// If a word is listed twice, the last line wins.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidLine`] if a line has no tab or no word, or if a weight is not a
    /// whole number from 0 to `u32::MAX`.
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

    /// Returns the table in normal form, one sorted line for each word.
    ///
    /// ```
    /// use hamdex::text::WeightTable;
    ///
    /// let table = WeightTable::parse("# names\nSaucer\t5\nＨill\t2\n")?;
    /// assert_eq!(table.as_str(), "hill\t2\nsaucer\t5\n");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Restores a table from the text that [`WeightTable::as_str`] returned.
    pub(in crate::text) fn stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Builds the look-up tables, with words in the form that texts have.
    pub(in crate::text) fn load(&self, simplified: bool) -> LoadedWeights {
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

/// Parses one line.
fn entry(line: &str) -> Result<(String, u32), String> {
    let Some((word, weight)) = line.split_once('\t') else {
        return Err("no tab between the word and its weight".to_owned());
    };
    let weight = weight.trim();
    // Unicode's line separators do not end a line here, but become line feeds in normal form.
    let normal = normalise(word).replace('\n', " ");
    if normal.is_empty() {
        return Err("the word is empty".to_owned());
    }
    match weight.parse() {
        Ok(weight) => Ok((normal, weight)),
        Err(_) => Err(format!(
            "weight \"{weight}\" is not a whole number from 0 to {}; 0 drops the word",
            u32::MAX
        )),
    }
}

/// A weight table as hash maps.
#[derive(Debug)]
pub(in crate::text) struct LoadedWeights {
    words: HashMap<Box<[u8]>, u32, BuildHasherDefault<Xxh3>>,
    /// The listed features of several words.
    features: HashMap<Box<[u8]>, u32, BuildHasherDefault<Xxh3>>,
    other: u32,
}

impl LoadedWeights {
    /// Returns the weight of a word.
    #[inline]
    pub(in crate::text) fn word(&self, word: &str) -> u32 {
        self.words.get(word.as_bytes()).copied().unwrap_or(self.other)
    }

    /// Returns the weight of a feature of several words if the table lists it.
    #[inline]
    pub(in crate::text) fn feature(&self, feature: &[u8]) -> Option<u32> {
        if self.features.is_empty() { None } else { self.features.get(feature).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::refused;

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
