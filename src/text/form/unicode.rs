//! The pinned Unicode table, which later compilers and crates do not change.
//!
//! `tables/casefold-1.tsv` has the folding of each character, the compositions and order of marks,
//! and the letters. It is parsed once into two-stage tables.
#![expect(clippy::indexing_slicing, reason = "the tables have an entry for every character")]

#[cfg(test)]
mod generate;

use std::collections::BTreeMap;
use std::str::Split;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

const SOURCE: &str = include_str!("../tables/casefold-1.tsv");

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(SOURCE));

/// Returns the digest of the table, as in descriptors.
pub(in crate::text) fn digest() -> u64 {
    static DIGEST: LazyLock<u64> = LazyLock::new(|| xxh3_64(SOURCE.as_bytes()));
    *DIGEST
}

/// Returns the table.
pub(in crate::text) fn table() -> &'static Table {
    &TABLE
}

/// Returns true if a character has the property `White_Space` of Unicode 17.
#[inline]
pub(super) fn is_white(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
        | '\u{2028}'..='\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// Properties of a character, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::text) struct Class(u8);

impl Class {
    const ALPHABETIC: u8 = 1;
    const NUMERIC: u8 = 2;
    const DENSE: u8 = 4;
    const MARK: u8 = 8;

    /// Returns true for a letter or a digit of any script.
    #[inline]
    pub(super) fn is_letter(self) -> bool {
        self.0 & (Self::ALPHABETIC | Self::NUMERIC) != 0
    }

    /// Returns true for a letter of any script.
    #[inline]
    pub(super) fn is_alphabetic(self) -> bool {
        self.0 & Self::ALPHABETIC != 0
    }

    /// Returns true for a character of a dense script, which counts as two letters.
    #[inline]
    pub(super) fn is_dense(self) -> bool {
        self.0 & Self::DENSE != 0
    }

    /// Returns true for a combining mark.
    #[inline]
    pub(in crate::text) fn is_mark(self) -> bool {
        self.0 & Self::MARK != 0
    }
}

/// The effect of normalisation on a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Unchanged after any character; marks only in canonical order.
    Stays,
    /// Unchanged unless it composes with a character before it.
    MayCompose,
    White,
    Dropped,
    One(char),
    /// Replaced by the [`Table::sequence`] of this number.
    Many(usize),
}

/// The normalisation of a character: combining class, kind of fold, and data of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Form(u32);

impl Form {
    const CLASS: u32 = 0xff;
    const MAY_COMPOSE: u32 = 1 << 8;
    const WHITE: u32 = 2 << 8;
    const DROPPED: u32 = 3 << 8;
    const ONE: u32 = 4 << 8;
    const MANY: u32 = 5 << 8;
    const KIND: u32 = 7 << 8;
    const DECOMPOSES: u32 = 1 << 11;

    /// Returns the form of a character that stays; a mark if `class` is not 0.
    pub(super) const fn staying(class: u8) -> Self {
        Self(class as u32)
    }

    /// Returns the form of a character that becomes another one.
    pub(super) const fn one(to: char) -> Self {
        Self(Self::ONE | (to as u32) << 11)
    }

    /// Returns the form of a character that is dropped.
    pub(super) const fn dropped() -> Self {
        Self(Self::DROPPED)
    }

    /// Returns the form of a character that may compose or needs the slow path.
    pub(super) const fn may_compose() -> Self {
        Self(Self::MAY_COMPOSE)
    }

    /// Returns true if it stays after any character; a mark only after marks of no higher class.
    #[inline]
    pub(super) fn stays(self) -> bool {
        self.0 & Self::KIND == 0
    }

    /// Returns true if it always stays and is not a mark.
    #[inline]
    pub(super) fn is_inert(self) -> bool {
        self.0 & (Self::KIND | Self::CLASS) == 0
    }

    /// Returns the canonical combining class; 0 unless it is a mark.
    #[inline]
    pub(super) fn class(self) -> u32 {
        self.0 & Self::CLASS
    }

    /// Returns true if it has a canonical decomposition.
    #[inline]
    pub(super) fn decomposes(self) -> bool {
        self.0 & Self::DECOMPOSES != 0
    }

    #[inline]
    pub(super) fn fold(self) -> Fold {
        match self.0 & Self::KIND {
            0 => Fold::Stays,
            Self::MAY_COMPOSE => Fold::MayCompose,
            Self::WHITE => Fold::White,
            Self::ONE => {
                Fold::One(char::from_u32(self.0 >> 11).expect("the table names characters"))
            }
            Self::MANY => Fold::Many((self.0 >> 11) as usize),
            _ => Fold::Dropped,
        }
    }
}

/// Entries of a block: characters that differ only in the last byte of their UTF-8.
const BLOCK: usize = 64;

/// A two-stage table with a value for every character; equal blocks are stored once.
#[derive(Debug)]
struct Stages<T> {
    index: Vec<u16>,
    blocks: Vec<[T; BLOCK]>,
}

impl<T: Copy + Default + PartialEq> Stages<T> {
    fn new(values: &[T]) -> Self {
        let mut stages = Self { index: Vec::new(), blocks: Vec::new() };
        for values in values.chunks(BLOCK) {
            let mut block = [T::default(); BLOCK];
            block.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
            let known = stages.blocks.iter().position(|other| *other == block);
            let number = known.unwrap_or_else(|| {
                stages.blocks.push(block);
                stages.blocks.len() - 1
            });
            stages.index.push(u16::try_from(number).expect("fewer blocks than 65,536"));
        }
        stages
    }

    #[inline]
    fn get(&self, code: usize) -> T {
        self.blocks[usize::from(self.index[code / BLOCK])][code % BLOCK]
    }
}

/// Why parsing a line of the table cannot fail.
const FIELDS: &str = "the tests parse every line of the table in the crate";

/// The pinned table.
#[derive(Debug)]
pub(in crate::text) struct Table {
    classes: Stages<Class>,
    forms: Stages<Form>,
    sequences: Vec<Vec<char>>,
    /// Canonical decompositions of characters that stay, without Hangul.
    decompositions: BTreeMap<char, Vec<char>>,
    /// Second and first character of each pair that composes, sorted, without Hangul.
    pairs: Vec<((char, char), char)>,
}

impl Table {
    /// Parses the table in the crate.
    fn read(source: &str) -> Self {
        let characters = char::MAX as usize + 1;
        let mut classes = vec![Class::default(); characters];
        let mut forms = vec![Form::default(); characters];
        let mut table = Self {
            classes: Stages { index: Vec::new(), blocks: Vec::new() },
            forms: Stages { index: Vec::new(), blocks: Vec::new() },
            sequences: Vec::new(),
            decompositions: BTreeMap::new(),
            pairs: Vec::new(),
        };
        for line in source.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let tag = fields.next().expect(FIELDS);
            let characters = fields.next().expect(FIELDS);
            match tag {
                "D" | "P" => table.read_composition(tag, characters, &mut fields, &mut forms),
                _ => {
                    let (first, last) = characters.split_once("..").expect(FIELDS);
                    let value = fields.next().unwrap_or_default();
                    let range = number(first)..=number(last);
                    match tag {
                        "F" => table.read_folds(value, &mut forms[range]),
                        "M" => {
                            let class: u32 = value.parse().expect(FIELDS);
                            for form in &mut forms[range] {
                                form.0 |= class;
                            }
                        }
                        _ => {
                            let bit = match tag {
                                "L" => Class::ALPHABETIC,
                                "N" => Class::NUMERIC,
                                "S" => Class::DENSE,
                                _ => Class::MARK,
                            };
                            classes[range].iter_mut().for_each(|class| class.0 |= bit);
                        }
                    }
                }
            }
        }
        let mut set = |range: std::ops::RangeInclusive<u32>, bits: u32| {
            let range = *range.start() as usize..=*range.end() as usize;
            forms[range].iter_mut().for_each(|form| form.0 |= bits);
        };
        set(hangul::SYLLABLES, Form::DECOMPOSES);
        set(hangul::VOWELS, Form::MAY_COMPOSE);
        set(hangul::TAILS, Form::MAY_COMPOSE);
        for c in ('\0'..='\u{ffff}').filter(|&c| is_white(c)) {
            forms[c as usize] = Form(Form::WHITE);
        }
        table.pairs.sort_unstable();
        table.classes = Stages::new(&classes);
        table.forms = Stages::new(&forms);
        table
    }

    /// Reads the folds of a range: one character each, or the same sequence for all.
    fn read_folds(&mut self, value: &str, forms: &mut [Form]) {
        let sequence = characters(value);
        for (form, n) in forms.iter_mut().zip(0..) {
            *form = match sequence[..] {
                [] => Form(Form::DROPPED),
                [one] => Form(Form::ONE | (u32::from(one) + n) << 11),
                _ => {
                    let number =
                        u32::try_from(self.sequences.len()).expect("fewer than characters");
                    self.sequences.push(sequence.clone());
                    Form(Form::MANY | number << 11)
                }
            };
        }
    }

    /// Reads a decomposition, or a pair and its composition.
    fn read_composition(
        &mut self,
        tag: &str,
        from: &str,
        fields: &mut Split<'_, char>,
        forms: &mut [Form],
    ) {
        let (from, to) = (characters(from), characters(fields.next().expect(FIELDS)));
        let mut set = |c: char, bits| forms[c as usize].0 |= bits;
        match (tag, &from[..], &to[..]) {
            ("D", &[composed], _) => {
                set(composed, Form::DECOMPOSES);
                self.decompositions.insert(composed, to);
            }
            ("P", &[first, second], &[composed]) => {
                set(second, Form::MAY_COMPOSE);
                self.pairs.push(((second, first), composed));
            }
            _ => {}
        }
    }

    /// Returns the properties of a character.
    #[inline]
    pub(in crate::text) fn class(&self, c: char) -> Class {
        self.classes.get(c as usize)
    }

    /// Returns the normalisation of a character.
    #[inline]
    pub(super) fn form(&self, c: char) -> Form {
        self.forms.get(c as usize)
    }

    /// Returns the normalisation of the character with a code point.
    #[inline]
    pub(super) fn form_of(&self, code: usize) -> Form {
        self.forms.get(code)
    }

    /// Returns the characters of [`Fold::Many`].
    pub(super) fn sequence(&self, number: usize) -> &[char] {
        &self.sequences[number]
    }

    /// Calls `emit` with the canonical decomposition of a character that stays.
    pub(super) fn decompose(&self, c: char, mut emit: impl FnMut(char)) {
        if !self.form(c).decomposes() {
            return emit(c);
        }
        match self.decompositions.get(&c) {
            Some(parts) => parts.iter().copied().for_each(emit),
            None => hangul::decompose(c, &mut emit),
        }
    }

    /// Returns the composition of two characters, if there is one.
    pub(super) fn compose(&self, first: char, second: char) -> Option<char> {
        let at = self.pairs.binary_search_by_key(&(second, first), |(pair, _)| *pair);
        match at {
            Ok(at) => Some(self.pairs[at].1),
            Err(_) => hangul::compose(first, second),
        }
    }
}

fn number(hex: &str) -> usize {
    usize::from_str_radix(hex, 16).expect(FIELDS)
}

fn characters(hex: &str) -> Vec<char> {
    let code = |hex| u32::from_str_radix(hex, 16).expect(FIELDS);
    let some = hex.split(' ').filter(|hex| !hex.is_empty());
    some.map(|hex| char::from_u32(code(hex)).expect(FIELDS)).collect()
}

/// Hangul syllables, which are composed by arithmetic (The Unicode Standard, 3.12).
mod hangul {
    use std::ops::RangeInclusive;

    const SYLLABLE: u32 = 0xac00;
    const LEAD: u32 = 0x1100;
    const VOWEL: u32 = 0x1161;
    /// One before the first tail: a syllable without a tail.
    const TAIL: u32 = 0x11a7;
    const LEAD_COUNT: u32 = 19;
    const VOWEL_COUNT: u32 = 21;
    const TAIL_COUNT: u32 = 28;

    pub(super) const SYLLABLES: RangeInclusive<u32> =
        SYLLABLE..=SYLLABLE + LEAD_COUNT * VOWEL_COUNT * TAIL_COUNT - 1;
    pub(super) const VOWELS: RangeInclusive<u32> = VOWEL..=VOWEL + VOWEL_COUNT - 1;
    pub(super) const TAILS: RangeInclusive<u32> = TAIL + 1..=TAIL + TAIL_COUNT - 1;

    pub(super) fn decompose(c: char, emit: &mut impl FnMut(char)) {
        let Some(at) = u32::from(c).checked_sub(SYLLABLE) else { return emit(c) };
        let tail = at % TAIL_COUNT;
        let parts = [
            LEAD + at / TAIL_COUNT / VOWEL_COUNT,
            VOWEL + at / TAIL_COUNT % VOWEL_COUNT,
            TAIL + tail,
        ];
        let some = parts.into_iter().take(if tail == 0 { 2 } else { 3 });
        some.filter_map(char::from_u32).for_each(emit);
    }

    pub(super) fn compose(first: char, second: char) -> Option<char> {
        let (first, second) = (u32::from(first), u32::from(second));
        let composed = if VOWELS.contains(&second) {
            let lead = first.checked_sub(LEAD).filter(|&lead| lead < LEAD_COUNT)?;
            SYLLABLE + (lead * VOWEL_COUNT + second - VOWEL) * TAIL_COUNT
        } else if TAILS.contains(&second) && SYLLABLES.contains(&first) {
            (first - SYLLABLE).is_multiple_of(TAIL_COUNT).then_some(first + second - TAIL)?
        } else {
            return None;
        };
        char::from_u32(composed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_one_that_descriptors_name() {
        assert_eq!(format!("{:016x}", digest()), "5a2c8152561ef459");
    }

    #[test]
    fn every_line_parses() {
        let lines = SOURCE.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            let valid = |hex: &str| characters(hex).len() == hex.split(' ').count();
            let range = |text: &str| {
                text.split_once("..")
                    .is_some_and(|(a, b)| number(a) <= number(b) && number(b) <= char::MAX as usize)
            };
            let understood = match fields[..] {
                ["D" | "P", from, to] => valid(from) && valid(to),
                ["F", from, to] => range(from) && valid(to),
                ["F" | "L" | "N" | "S" | "C", from] => range(from),
                ["M", from, class] => range(from) && class.parse::<u8>().is_ok(),
                _ => false,
            };
            assert!(understood, "{line:?}");
        }
    }

    #[test]
    fn compositions_are_those_of_the_standard() {
        let table = table();
        for c in '\0'..=char::MAX {
            if !matches!(table.form(c).fold(), Fold::Stays | Fold::MayCompose) {
                continue;
            }
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            table.decompose(c, |c| ours.push(c));
            unicode_normalization::char::decompose_canonical(c, |c| theirs.push(c));
            assert_eq!(ours, theirs, "{c:?}");
            let class = unicode_normalization::char::canonical_combining_class(c);
            assert_eq!(table.form(c).class(), u32::from(class), "{c:?}");
        }
    }
}
