//! Boilerplate: units that many documents have, exactly or nearly, are found and cut.
//!
//! A first reading notes the documents of every unit. Then the distinct units are deduplicated as
//! documents are, by fingerprint and verification, and documents are counted for each group. A
//! second reading looks up units by their cleaned text. What grows with the documents is in
//! temporary files.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use rayon::prelude::*;

use super::engine::Dedup;
use super::grouped::{Common, Occurrences};
use super::settings::BoilerplateOptions;
use super::unit::{Cut, Unit, says_something};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::Progress;
use crate::sketch::feature_hash;
use crate::text::Pipeline;

/// Documents whose units are made together.
const BATCH: usize = 1024;

/// Characters of a unit that a report shows.
const SHOWN: usize = 1000;

/// Counts the documents of every unit.
///
/// Give it documents that are not near-duplicates of each other, such as those that a
/// deduplication kept: the units of a document with many copies are not boilerplate.
///
/// Memory is that of the options, and never changes the answer: what exceeds it is in temporary
/// files. They hold the texts of the units, and 36 bytes for each unit of a document. In memory stay
/// 16 bytes per distinct unit, 33 more if it is near another one, and 16 for each unit that is cut.
///
/// ```
/// use hamdex::dedup::{BoilerplateFinder, BoilerplateOptions, DocumentUnits, DedupOptions, Unit};
/// use hamdex::verify::Verification;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pages = [
///     "We use 312 cookies to give you the best experience.\nSunny days are here again.",
///     "We use 87 cookies to give you the best experience.\nSevere flooding closes the main road.",
///     "We use 121 cookies to give you the best experience.\nA wonderful book about the deep sea.",
/// ];
/// let pipeline = Pipeline::new(&PipelineOptions::preset("text")?)?;
/// let near = DedupOptions::new(16).verify(Verification::Edit(0.8));
/// let options = BoilerplateOptions::new(Unit::Line, near).documents(2);
/// let mut finder = BoilerplateFinder::<u64>::new(&options)?;
/// finder.push_texts(&pipeline, &pages[..2])?;
/// let last: DocumentUnits = finder.units(&pipeline, [pages[2]]); // on any thread
/// finder.push(&last)?;
/// let boilerplate = finder.finish(&pipeline, &())?;
/// assert_eq!(boilerplate.groups()[0].documents, 3);
/// assert_eq!(boilerplate.cut(&pipeline, pages[0]).text, "Sunny days are here again.");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct BoilerplateFinder<F> {
    options: BoilerplateOptions,
    seed: u64,
    documents: u32,
    occurrences: Occurrences,
    engine: Dedup<F>,
}

/// The distinct units of one document, made on any thread.
#[derive(Debug, Clone, Default)]
pub struct DocumentUnits(Vec<(u128, Box<str>)>);

impl<F: Fingerprint> BoilerplateFinder<F> {
    /// Begins to count; makes temporary files.
    ///
    /// # Errors
    ///
    /// Those of [`Dedup::new`].
    pub fn new(options: &BoilerplateOptions) -> Result<Self> {
        let memory = options.near.memory.min(options.memory);
        let settings = options.settings().memory(memory);
        let tmp = settings.tmp.as_deref();
        Ok(Self {
            // Nobody can prepare units that collide under a seed that is not known.
            seed: RandomState::new().hash_one(0),
            documents: 0,
            occurrences: Occurrences::new(tmp, options.memory)?,
            engine: Dedup::new(&settings)?,
            options: options.clone(),
        })
    }

    /// Makes the units of a document, whose text may have several parts.
    pub fn units<'t>(
        &self,
        pipeline: &Pipeline,
        parts: impl IntoIterator<Item = &'t str>,
    ) -> DocumentUnits {
        let mut units = DocumentUnits::default();
        let mut known = HashSet::new();
        for part in parts {
            let texts = self.options.unit.ranges(part).into_iter().filter_map(|at| part.get(at));
            let texts = texts.filter(|unit| says_something(unit));
            let keyed = texts.map(|unit| (key(pipeline, unit, self.seed), unit));
            let distinct = keyed.filter(|(key, _)| known.insert(*key));
            units.0.extend(distinct.map(|(key, unit)| (key, unit.into())));
        }
        units
    }

    /// Counts the units of the next document.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if a temporary file cannot be written.
    /// - [`Error::InvalidOption`] for more than `u32::MAX` documents.
    pub fn push(&mut self, units: &DocumentUnits) -> Result<()> {
        let document = self.documents;
        self.documents = document.checked_add(1).ok_or_else(|| Error::InvalidOption {
            name: "documents",
            reason: format!("more than {} are too many", u32::MAX),
        })?;
        units.0.iter().try_for_each(|(hash, unit)| self.occurrences.push(*hash, document, unit))
    }

    /// Counts the units of several documents, made on all threads.
    ///
    /// # Errors
    ///
    /// Those of [`push`](Self::push).
    pub fn push_texts<T: AsRef<str> + Sync>(
        &mut self,
        pipeline: &Pipeline,
        texts: &[T],
    ) -> Result<()> {
        for batch in texts.chunks(BATCH) {
            let made: Vec<DocumentUnits> =
                batch.par_iter().map(|text| self.units(pipeline, [text.as_ref()])).collect();
            made.iter().try_for_each(|units| self.push(units))?;
        }
        Ok(())
    }

    /// Groups near units, and returns those that more documents have than allowed.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] for more than `u32::MAX` distinct units.
    /// - [`Error::Io`] if a temporary file cannot be written or read.
    /// - [`Error::Cancelled`] once the progress sink asks to stop.
    pub fn finish(self, pipeline: &Pipeline, progress: &dyn Progress) -> Result<Boilerplate> {
        let Self { options, seed, occurrences, engine, .. } = self;
        let counted = occurrences.count(progress)?;
        let distinct = counted.distinct;
        let grouped = counted.group(engine, pipeline, progress)?;
        let mut hashes = HashSet::new();
        // Each with the place of its text, which orders units by their first occurrence.
        let mut of_group: HashMap<u32, (u64, BoilerplateGroup)> = HashMap::new();
        grouped.common(options.documents, progress, |common| {
            let Common { unit, documents, kept, position } = common;
            hashes.insert(unit.hash);
            let (first, group) = of_group.entry(kept).or_insert_with(|| {
                (0, BoilerplateGroup { text: String::new(), documents, variants: 0 })
            });
            group.variants += 1;
            if position == kept {
                *first = unit.text.offset;
                group.text = grouped.text(&unit)?.chars().take(SHOWN).collect();
            }
            Ok(())
        })?;
        let mut groups: Vec<(u64, BoilerplateGroup)> = of_group.into_values().collect();
        groups.sort_unstable_by_key(|(first, group)| (Reverse(group.documents), *first));
        let groups = groups.into_iter().map(|(_, group)| group).collect();
        Ok(Boilerplate { unit: options.unit, seed, hashes, groups, distinct })
    }
}

/// Returns what equal units share: case, width and white space do not matter.
fn key(pipeline: &Pipeline, unit: &str, seed: u64) -> u128 {
    feature_hash::<u128>(pipeline.cleaned(unit).trim().as_bytes(), seed)
}

/// Units that are boilerplate.
///
/// ```
/// use hamdex::dedup::{Boilerplate, BoilerplateFinder, BoilerplateGroup, BoilerplateOptions};
/// use hamdex::dedup::{DedupOptions, Unit};
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("text")?)?;
/// let options = BoilerplateOptions::new(Unit::Line, DedupOptions::new(3)).documents(1);
/// let mut finder = BoilerplateFinder::<u64>::new(&options)?;
/// let texts = ["All rights are reserved.\nSun", "All rights are reserved.\nRain"];
/// finder.push_texts(&pipeline, &texts)?;
/// let boilerplate: Boilerplate = finder.finish(&pipeline, &())?;
/// assert_eq!(boilerplate.distinct(), 3);
/// let most: &BoilerplateGroup = &boilerplate.groups()[0];
/// assert_eq!((&most.text[..], most.documents), ("All rights are reserved.", 2));
/// assert_eq!(boilerplate.cut(&pipeline, texts[1]).text, "Rain");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Boilerplate {
    unit: Unit,
    seed: u64,
    /// Hash of the cleaned text of every variant.
    hashes: HashSet<u128>,
    groups: Vec<BoilerplateGroup>,
    distinct: u64,
}

/// Near units that many documents have. [`Boilerplate`] has an example.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoilerplateGroup {
    /// The variant that the most documents have, its first thousand characters.
    pub text: String,
    /// Documents that have one of the variants.
    pub documents: u32,
    /// Distinct units, after cleaning.
    pub variants: u32,
}

impl Boilerplate {
    /// Cuts the boilerplate of a text.
    ///
    /// Adjacent units that are boilerplate are cut together, with the lines of signs and the blank
    /// lines between them, if they have 24 letters or more: a short line that many documents have
    /// in between their own ones, such as a heading, stays. Everything else keeps its bytes, except
    /// for white space in front of boilerplate at the end.
    pub fn cut<'t>(&self, pipeline: &Pipeline, text: &'t str) -> Cut<'t> {
        self.unit.cut(text, &|unit| self.hashes.contains(&key(pipeline, unit, self.seed)))
    }

    /// Returns the groups of near units, those with the most documents first.
    pub fn groups(&self) -> &[BoilerplateGroup] {
        &self.groups
    }

    /// Returns the number of distinct units that were counted.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dedup::DedupOptions;
    use crate::text::PipelineOptions;
    use crate::verify::Verification;

    fn pipeline() -> Pipeline {
        Pipeline::new(&PipelineOptions::preset("auto").unwrap()).unwrap()
    }

    fn options(documents: u32) -> BoilerplateOptions {
        let near = DedupOptions::new(16).verify(Verification::Edit(0.8));
        BoilerplateOptions::new(Unit::Line, near).documents(documents)
    }

    fn found(options: &BoilerplateOptions, texts: &[String]) -> Boilerplate {
        let mut finder = BoilerplateFinder::<u64>::new(options).unwrap();
        finder.push_texts(&pipeline(), texts).unwrap();
        finder.finish(&pipeline(), &()).unwrap()
    }

    /// Documents of lines that are their own, common, or common but for a word.
    fn texts(rng: &mut fastrand::Rng, documents: usize) -> Vec<String> {
        let words = ["rain", "snow", "town", "road", "river", "market", "bridge", "music"];
        let sentence = |rng: &mut fastrand::Rng| -> String {
            let words: Vec<&str> = (0..7).map(|_| words[rng.usize(..words.len())]).collect();
            words.join(" ")
        };
        let common: Vec<String> = (0..6).map(|_| sentence(rng)).collect();
        let document = |_| {
            let line = |_| match rng.u32(0..4) {
                0 => sentence(rng),
                1 => common[rng.usize(..common.len())].to_uppercase(),
                2 => format!("{} {}", common[rng.usize(..common.len())], rng.u32(0..30)),
                _ => ["---", "", "}"][rng.usize(..3)].to_owned(),
            };
            (0..6).map(line).collect::<Vec<_>>().join("\n")
        };
        (0..documents).map(document).collect()
    }

    /// The rule as it is written: every unit is held against every representative before it.
    fn by_comparison(options: &BoilerplateOptions, texts: &[String]) -> BTreeSet<String> {
        let pipeline = pipeline();
        let mut documents: Vec<(String, String, BTreeSet<usize>)> = Vec::new();
        for (text, number) in texts.iter().zip(0..) {
            for unit in text.lines().map(str::trim).filter(|unit| says_something(unit)) {
                let cleaned = pipeline.cleaned(unit).trim().to_owned();
                match documents.iter_mut().find(|(known, ..)| *known == cleaned) {
                    Some((_, _, of)) => drop(of.insert(number)),
                    None => documents.push((cleaned, unit.to_owned(), BTreeSet::from([number]))),
                }
            }
        }
        // Stable, so that the first of equals comes first.
        documents.sort_by_key(|(_, _, of)| std::cmp::Reverse(of.len()));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in 0..documents.len() {
            let made = |at: usize| {
                let unit = &documents[at].1;
                let sketch = pipeline.fingerprint::<u64>(unit).unwrap();
                (sketch.fingerprint, options.near.verification.evidence(&pipeline, unit))
            };
            let (print, evidence) = made(at);
            let joins = |group: &&mut Vec<usize>| {
                let (other, kept) = made(group[0]);
                let distance = print.distance(other);
                let check = options.near.verification;
                distance <= options.near.distance
                    && check.check(distance, &kept, &evidence).unwrap().is_some()
            };
            match groups.iter_mut().find(joins) {
                Some(group) => group.push(at),
                None => groups.push(vec![at]),
            }
        }
        let is_common = |group: &&Vec<usize>| {
            let all: HashSet<usize> =
                group.iter().flat_map(|&at| documents[at].2.iter().copied()).collect();
            all.len() > options.documents as usize
        };
        let common = groups.iter().filter(is_common).flatten();
        common.map(|&at| documents[at].0.clone()).collect()
    }

    #[test]
    fn boilerplate_is_what_comparing_all_units_finds() {
        let mut rng = fastrand::Rng::with_seed(22);
        for documents in [0, 1, 5, 40] {
            let texts = texts(&mut rng, documents);
            let (options, pipeline) = (options(5), pipeline());
            let expected = by_comparison(&options, &texts);
            let found = found(&options, &texts);
            let units: BTreeSet<String> = texts
                .iter()
                .flat_map(|text| text.lines())
                .filter(|unit| found.hashes.contains(&key(&pipeline, unit, found.seed)))
                .map(|unit| pipeline.cleaned(unit.trim()).trim().to_owned())
                .collect();
            assert_eq!(units, expected, "{documents}");
            assert_eq!(expected.is_empty(), documents <= 5, "{documents}");
            let variants: u32 = found.groups().iter().map(|group| group.variants).sum();
            assert_eq!(variants as usize, expected.len());
            assert!(found.groups().is_sorted_by(|a, b| a.documents >= b.documents));
        }
    }

    #[test]
    fn variants_within_one_document_are_one_document() {
        let log = |at: u32| format!("the market by the river opens at {at} in the morning\n");
        let mut texts = vec![(10..40).map(log).collect::<String>()];
        assert!(found(&options(1), &texts).groups().is_empty());
        texts.push(log(77));
        let found = found(&options(1), &texts);
        let [group] = found.groups() else { panic!("{:?}", found.groups()) };
        assert_eq!((group.documents, group.variants), (2, 31));
        assert_eq!(found.cut(&pipeline(), &texts[1]).left, 0);
    }

    #[test]
    fn memory_changes_nothing_of_what_is_cut() {
        let seed = 4;
        let mut rng = fastrand::Rng::with_seed(seed);
        let texts: Vec<String> = [texts(&mut rng, 300), texts(&mut rng, 300)].concat();
        for unit in [Unit::Line, Unit::Paragraph] {
            let options = BoilerplateOptions { unit, ..options(3) };
            let plenty = found(&options.clone().memory(usize::MAX), &texts);
            let near = DedupOptions { memory: 0, ..options.near.clone() };
            let scarce = found(&BoilerplateOptions { near, ..options }.memory(0), &texts);
            assert_eq!(scarce.groups(), plenty.groups(), "seed {seed}: {unit}");
            assert_eq!(scarce.distinct(), plenty.distinct(), "seed {seed}: {unit}");
            assert_eq!(scarce.hashes.len(), plenty.hashes.len(), "seed {seed}: {unit}");
            let pipeline = pipeline();
            for text in &texts {
                assert_eq!(scarce.cut(&pipeline, text), plenty.cut(&pipeline, text));
            }
        }
    }
}
