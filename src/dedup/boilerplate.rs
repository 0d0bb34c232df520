//! Boilerplate: units that many documents have, exactly or nearly, are found and cut.
//!
//! A first reading counts the documents of every distinct unit. Their texts go to a temporary
//! file, and the numbers of each document's units to another one. Then the units are deduplicated
//! as documents are, by fingerprint and verification, and documents are counted for each group. A
//! second reading looks up units by their cleaned text.
#![expect(clippy::indexing_slicing, reason = "positions are those that a deduplication returned")]

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::{BuildHasher, RandomState};

use rayon::prelude::*;

use super::engine::Dedup;
use super::grouped::{Grouped, Known, NOWHERE, Spool};
use super::settings::BoilerplateOptions;
use super::unit::{Cut, Unit, says_something};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::Progress;
use crate::sketch::feature_hash;
use crate::text::Pipeline;

/// Bytes of a distinct unit while groups are formed; see [`Dedup`] and its evidence.
const PER_UNIT: usize = 256;

/// Least number of distinct units that are remembered, and documents that are made together.
const BATCH: usize = 1024;

/// Characters of a unit that a report shows.
const SHOWN: usize = 1000;

/// Counts the documents of every unit.
///
/// Give it documents that are not near-duplicates of each other, such as those that a
/// deduplication kept: the units of a document with many copies are not boilerplate.
///
/// Memory is that of the options. If there are more distinct units, the half that fewer documents
/// have is forgotten, the older ones first. A unit that is forgotten and comes again is counted
/// from one, so boilerplate with few documents far apart may stay; what is cut has that many
/// documents in any case. Temporary files hold the text of each distinct unit and four bytes a unit.
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
    /// Distinct units by the hash of their cleaned text.
    known: HashMap<u128, Known>,
    seed: u64,
    /// Number of the next distinct unit.
    next: u32,
    most: usize,
    forgotten: u64,
    documents: u32,
    texts: Spool,
    /// For each document the number of its distinct units and their numbers.
    lists: Spool,
    units: Vec<u32>,
    engine: Dedup<F, u32>,
}

/// The units of one document, made on any thread.
#[derive(Debug, Clone, Default)]
pub struct DocumentUnits(Vec<(u128, Box<str>)>);

impl<F: Fingerprint> BoilerplateFinder<F> {
    /// Begins to count; makes three temporary files.
    ///
    /// # Errors
    ///
    /// Those of [`Dedup::new`].
    pub fn new(options: &BoilerplateOptions) -> Result<Self> {
        let memory = options.near.memory.min(options.memory / 4);
        let settings = options.settings().memory(memory);
        let tmp = settings.tmp.as_deref();
        Ok(Self {
            known: HashMap::new(),
            // Nobody can prepare units that collide under a seed that is not known.
            seed: RandomState::new().hash_one(0),
            next: 0,
            most: (options.memory / PER_UNIT).max(BATCH),
            forgotten: 0,
            documents: 0,
            texts: Spool::new(tmp)?,
            lists: Spool::new(tmp)?,
            units: Vec::new(),
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
        for part in parts {
            let texts = self.options.unit.ranges(part).into_iter().filter_map(|at| part.get(at));
            let texts = texts.filter(|unit| says_something(unit));
            units.0.extend(texts.map(|unit| (key(pipeline, unit, self.seed), unit.into())));
        }
        units
    }

    /// Counts the units of the next document.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if a temporary file cannot be written.
    /// - [`Error::InvalidOption`] for more than `u32::MAX` documents or distinct units.
    pub fn push(&mut self, units: &DocumentUnits) -> Result<()> {
        let document = self.documents;
        self.documents = next(document, "documents")?;
        self.units.clear();
        for (hash, unit) in &units.0 {
            match self.known.entry(*hash) {
                Slot::Occupied(mut known) => {
                    let known = known.get_mut();
                    if known.last != document {
                        known.documents += 1;
                        known.last = document;
                        self.units.push(known.number);
                    }
                }
                Slot::Vacant(slot) => {
                    let number = self.next;
                    self.next = next(number, "units")?;
                    let offset = self.texts.write(unit.as_bytes())?;
                    let bytes = u32::try_from(unit.len()).map_err(|_| too_many("bytes"))?;
                    slot.insert(Known { number, documents: 1, last: document, offset, bytes });
                    self.units.push(number);
                }
            }
        }
        let count = u32::try_from(self.units.len()).map_err(|_| too_many("units"))?;
        self.lists.write(&count.to_be_bytes())?;
        for number in &self.units {
            self.lists.write(&number.to_be_bytes())?;
        }
        if self.known.len() > self.most {
            self.forget();
        }
        Ok(())
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

    /// Drops half of the units: those with fewer documents, of equals the older ones.
    fn forget(&mut self) {
        let mut ranked: Vec<(u32, u32)> =
            self.known.values().map(|known| (known.documents, known.number)).collect();
        let half = ranked.len() / 2;
        let (_, &mut least, _) = ranked.select_nth_unstable(half);
        self.known.retain(|_, known| (known.documents, known.number) >= least);
        self.forgotten += half as u64;
    }

    /// Groups near units, and returns those that more documents have than allowed.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`] if a temporary file cannot be written or read.
    /// - [`Error::Cancelled`] once the progress sink asks to stop.
    pub fn finish(self, pipeline: &Pipeline, progress: &dyn Progress) -> Result<Boilerplate> {
        let Self { options, known, seed, next, forgotten, documents, texts, lists, engine, .. } =
            self;
        let mut known: Vec<(u128, Known)> = known.into_iter().collect();
        known.par_sort_unstable_by_key(|(_, known)| known.number);
        let (texts, lists) = (texts.finish()?, lists.finish()?);
        let grouped = Grouped::of(engine, &known, &texts, pipeline, progress)?;
        let counts = grouped.documents(&known, documents, lists, progress)?;
        let is_boilerplate = |group: u32| counts[group as usize] > options.documents;
        let mut of_group: HashMap<u32, BoilerplateGroup> = HashMap::new();
        let mut hashes = HashMap::new();
        for (at, (hash, known)) in known.iter().enumerate() {
            let Some(group) = grouped.group(at).filter(|&group| is_boilerplate(group)) else {
                continue;
            };
            hashes.insert(*hash, group);
            let found = of_group.entry(group).or_insert_with(|| BoilerplateGroup {
                text: String::new(),
                documents: counts[group as usize],
                variants: 0,
            });
            found.variants += 1;
            if grouped.positions[at] == group {
                found.text = texts.read(known)?.chars().take(SHOWN).collect();
            }
        }
        // The most frequent ones first, of equals those that came first.
        let mut groups: Vec<(u32, BoilerplateGroup)> = of_group.into_iter().collect();
        groups.sort_unstable_by_key(|(at, group)| (std::cmp::Reverse(group.documents), *at));
        let groups = groups.into_iter().map(|(_, group)| group).collect();
        let unit = options.unit;
        Ok(Boilerplate { unit, seed, hashes, groups, distinct: u64::from(next), forgotten })
    }
}

fn next(number: u32, what: &'static str) -> Result<u32> {
    number.checked_add(1).filter(|&next| next < NOWHERE).ok_or_else(|| too_many(what))
}

fn too_many(name: &'static str) -> Error {
    Error::InvalidOption { name, reason: format!("more than {} are too many", u32::MAX) }
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
/// assert_eq!((boilerplate.distinct(), boilerplate.forgotten()), (3, 0));
/// let most: &BoilerplateGroup = &boilerplate.groups()[0];
/// assert_eq!((&most.text[..], most.documents), ("All rights are reserved.", 2));
/// assert_eq!(boilerplate.cut(&pipeline, texts[1]).text, "Rain");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Boilerplate {
    unit: Unit,
    seed: u64,
    /// The group of every variant, by the hash of its cleaned text.
    hashes: HashMap<u128, u32>,
    groups: Vec<BoilerplateGroup>,
    distinct: u64,
    forgotten: u64,
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
        self.unit.cut(text, &|unit| self.hashes.contains_key(&key(pipeline, unit, self.seed)))
    }

    /// Returns the groups of near units, those with the most documents first.
    pub fn groups(&self) -> &[BoilerplateGroup] {
        &self.groups
    }

    /// Returns the number of distinct units that were counted.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Returns the number of distinct units that were forgotten for want of memory.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

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
                .filter(|unit| found.hashes.contains_key(&key(&pipeline, unit, found.seed)))
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
    fn want_of_memory_forgets_rare_units_and_counts_no_other_as_common() {
        let mut rng = fastrand::Rng::with_seed(4);
        let own = |rng: &mut fastrand::Rng| {
            let word = |_| (0..8).map(|_| rng.alphabetic()).collect::<String>();
            (0..5).map(word).collect::<Vec<_>>().join(" ")
        };
        let texts: Vec<String> = (0..2000)
            .map(|_| {
                format!("read our privacy notice and imprint\n{}\n{}", own(&mut rng), own(&mut rng))
            })
            .collect();
        let scarce = found(&options(10).memory(0), &texts);
        assert!(scarce.forgotten() > 2000, "{}", scarce.forgotten());
        let plenty = found(&options(10), &texts);
        assert_eq!((plenty.forgotten(), plenty.distinct()), (0, scarce.distinct()));
        assert_eq!(scarce.groups(), plenty.groups());
        assert_eq!(scarce.groups()[0].documents, 2000);
    }
}
