//! Numbered n-grams: finds the distinct n-grams of a text by the numbers of their letters.
//!
//! A text of one script has a few dozen different letters, so a bitmap of its short n-grams fits
//! the L1 and L2 caches, and only new n-grams are hashed. N-grams over more letters, such as
//! Chinese ones, are looked up in a set.
#![expect(
    clippy::indexing_slicing,
    reason = "n-grams are numbered here; a wrong number must panic, not lose an n-gram"
)]
// A call for each letter would cost more than its body.
#![allow(clippy::inline_always)]

use super::Visit;
use super::grams::{AHEAD, Letters, Start};
use super::seen::Seen;
use super::sift::{BATCH, Sift};

/// Lengths of n-grams, separately for dense letters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    pub(super) letters: usize,
    pub(super) dense: usize,
    /// Whether single dense letters are features too.
    pub(super) singles: bool,
    /// Whether n-grams of one letter less are features too, with double weight.
    pub(super) shorter: bool,
}

impl Lengths {
    /// Returns true if [`Numbered::take`] supports the lengths and the text has one n-gram.
    pub(super) fn are_supported(self, text: &Letters) -> bool {
        let known = matches!((self.letters, self.dense), (4 | 3, 2) | (2, 1));
        known
            && (self.letters > 2 || !self.shorter)
            && text.len() >= self.letters
            && text.numbered().is_some()
    }
}

/// The set of a text's n-grams, by the numbers of their letters.
#[derive(Debug, Default)]
pub(in crate::text) struct Numbered {
    /// Bits of pairs of few letters.
    small: Vec<u64>,
    /// Bits of other n-grams, at the offsets in [`Kinds`].
    large: Vec<u64>,
    /// Indexes of the dirty words of `large`, with room for one more batch.
    written: Vec<usize>,
    len: usize,
    kinds: Kinds,
    /// N-grams that have no bit.
    others: Seen,
}

/// The offsets of the bits of each kind of n-grams, and the bits per letter number.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    /// Bits per number of a letter that is not dense.
    digits: u32,
    /// Bits per number of a dense letter, and of the letter after it.
    dense_digits: u32,
    /// Whether the numbers of all letters that are not dense fit in `digits`.
    few: bool,
    /// Whether the numbers of all letters fit in `dense_digits`.
    dense_few: bool,
    /// Whether there are dense letters.
    dense: bool,
    dense_pairs: usize,
}

/// Where an n-gram is recorded.
enum Place {
    Small(usize),
    Large(usize),
    Other(u64),
}

/// Maximum bits per letter for which threes have a bit each: 256 KiB of bits.
const MAX_DIGITS: u32 = 7;

/// Maximum bits per dense letter for which pairs have a bit each: 256 KiB of bits.
const MAX_DENSE_DIGITS: u32 = 10;

const DENSE: usize = Start::DENSE as usize;

/// Set in the keys of n-grams of four letters, which have no bit.
const QUADS: u64 = 1 << 63;

impl Kinds {
    /// Returns the kinds of a text, and the number of words of the small and large bitmaps.
    fn of(text: &Letters) -> (Self, usize, usize) {
        let alphabet = text.alphabet();
        let digits = |greatest: u16| u16::BITS - greatest.leading_zeros();
        let (letters, dense) = (digits(alphabet.greatest()), digits(alphabet.dense()));
        let mut kinds = Self {
            digits: letters.min(MAX_DIGITS),
            dense_digits: letters.max(dense).min(MAX_DENSE_DIGITS),
            few: letters <= MAX_DIGITS,
            dense_few: letters.max(dense) <= MAX_DENSE_DIGITS,
            dense: dense > 0,
            ..Self::default()
        };
        let bits = |digits: u32| (1_usize << digits).next_multiple_of(64);
        kinds.dense_pairs = bits(3 * kinds.digits);
        let dense_pairs = if dense > 0 { bits(2 * kinds.dense_digits + 1) } else { 0 };
        let (small, large) = (bits(2 * kinds.digits), kinds.dense_pairs + dense_pairs);
        (kinds, small / 64, large / 64)
    }

    #[inline(always)]
    fn place<const N: usize>(self, letters: [usize; N]) -> Place {
        let any = letters.iter().fold(0, |any, number| any | number);
        let number = || letters.iter().fold(0, |all, number| all << self.digits | number);
        let few = any >> self.digits == 0;
        match letters[..] {
            [_, _] if few => Place::Small(number()),
            [_, _, _] if few => Place::Large(number()),
            [_, _, _, _] if few => Place::Other(QUADS | number() as u64),
            [first, second] if first & DENSE != 0 && (any & !DENSE) >> self.dense_digits == 0 => {
                let second = second >> 15 << self.dense_digits | (second & !DENSE);
                let first = first & !DENSE;
                Place::Large(self.dense_pairs + (first << (self.dense_digits + 1) | second))
            }
            _ => Place::Other(letters.iter().fold(0, |all, &number| all << 16 | number as u64)),
        }
    }
}

impl Numbered {
    /// Passes the distinct n-grams of a text to `sift`, or all of them if repeats count.
    ///
    /// The visitor must not need bytes, and the lengths must be
    /// [supported](Lengths::are_supported).
    pub(super) fn take<V: Visit>(
        &mut self,
        text: &Letters,
        lengths: Lengths,
        sift: &mut Sift<'_, V>,
    ) {
        self.reset(text, lengths.letters);
        match (lengths.letters, lengths.shorter) {
            (4, false) => self.take_lengths::<V, 4, 2, 0, 0>(text, lengths.singles, sift),
            (4, true) => self.take_lengths::<V, 4, 2, 3, 1>(text, lengths.singles, sift),
            (3, false) => self.take_lengths::<V, 3, 2, 0, 0>(text, lengths.singles, sift),
            (3, true) => self.take_lengths::<V, 3, 2, 2, 1>(text, lengths.singles, sift),
            _ => self.take_lengths::<V, 2, 1, 0, 0>(text, lengths.singles, sift),
        }
    }

    /// Clears the set and sizes it for a text.
    fn reset(&mut self, text: &Letters, n: usize) {
        for &at in self.written.iter().take(self.len) {
            self.large[at] = 0;
        }
        self.len = 0;
        let (kinds, small, large) = Kinds::of(text);
        self.kinds = kinds;
        self.small.clear();
        self.small.resize(small, 0);
        if self.large.len() < large {
            self.large.resize(large, 0);
        }
        let large = n > 3 || !kinds.few || kinds.dense_digits == MAX_DENSE_DIGITS;
        self.others.reset(if large { text.len() } else { text.len() / 8 });
    }

    /// Takes n-grams of N letters or D dense ones, and with double weight those of M or E.
    ///
    /// M = 0: there are none with double weight.
    fn take_lengths<V: Visit, const N: usize, const D: usize, const M: usize, const E: usize>(
        &mut self,
        text: &Letters,
        singles: bool,
        sift: &mut Sift<'_, V>,
    ) {
        let (bytes, starts) = text.numbered().expect("the lengths are supported");
        let full = (text.len() + 1).saturating_sub(N);
        let (mut found, mut doubled) = (Found::default(), Found::default());
        let distinct = sift.is_distinct();
        // The shorter n-grams at the end go first, so that they count once and not double.
        let mut grams = self.grams(distinct);
        grams.take_ends::<N, D>(starts, full..text.len(), &mut found);
        if M > 0 {
            grams.take_fitted::<M, E>(window(starts, full), full, &mut doubled);
            grams.take_ends::<M, E>(starts, full + 1..text.len(), &mut doubled);
        }
        self.len = grams.len;
        // Empties the lists, because one batch of the text can fill them.
        sift.take_found((bytes, starts), found.take(), 1);
        sift.take_found((bytes, starts), doubled.take(), 2);
        if singles {
            take_dense(text, 1, sift);
        }
        // If repeats count, a letter is both a single one and an n-gram.
        if D == 1 && !(singles && distinct) {
            take_dense(text, 1, sift);
        }
        if E == 1 {
            take_dense(text, 2, sift);
        }
        let mut at = 0;
        while at < full {
            let mut grams = self.grams(distinct);
            let last = (at + BATCH).min(full);
            while at < last {
                // A run of one kind of few letters gets rolling numbers.
                let run = &starts[at..last + N - 1];
                let dense = run.iter().position(|start| grams.kinds.dense && start.is_dense());
                let dense = dense.unwrap_or(run.len());
                if grams.kinds.few && dense >= N {
                    at += grams.take_run::<N>(&run[..dense], at, &mut found);
                } else if D == 2 && dense == 0 && grams.kinds.dense_few {
                    let begins = &starts[at..=last];
                    at += grams.take_dense_run(begins, at, &mut found);
                } else {
                    grams.take_fitted::<N, D>(window(starts, at), at, &mut found);
                    at += 1;
                }
            }
            if M > 0 {
                // Each shorter n-gram that is new begins a longer one that is new.
                for at in found.firsts() {
                    grams.take_fitted::<M, E>(window(starts, at), at, &mut doubled);
                }
            }
            self.len = grams.len;
            sift.take_found((bytes, starts), found.take(), 1);
            sift.take_found((bytes, starts), doubled.take(), 2);
        }
    }

    fn grams(&mut self, distinct: bool) -> Grams<'_> {
        if self.written.len() < self.len + 2 * BATCH {
            self.written.resize(2 * self.len + 2 * BATCH, 0);
        }
        Grams {
            small: &mut self.small,
            large: &mut self.large,
            written: &mut self.written,
            len: self.len,
            kinds: self.kinds,
            others: &mut self.others,
            distinct,
        }
    }

    /// Shrinks buffers larger than `bytes`.
    pub(in crate::text) fn release_above(&mut self, bytes: usize) {
        if self.written.capacity() * size_of::<usize>() > bytes {
            *self = Self::default();
        }
        self.others.release_above(bytes);
    }
}

/// Takes single dense letters: the distinct ones, or all of them if repeats count.
fn take_dense<V: Visit>(text: &Letters, times: u32, sift: &mut Sift<'_, V>) {
    let (bytes, starts) = text.numbered().expect("the lengths are supported");
    let distinct = sift.is_distinct();
    let mut found = Found::default();
    let mut take = |at: usize| {
        found.push(at, 1, true);
        if found.len == BATCH {
            sift.take_found((bytes, starts), found.take(), times);
        }
    };
    if distinct {
        text.dense_firsts().iter().copied().for_each(&mut take);
    } else {
        (0..text.len()).filter(|&at| starts[at].is_dense()).for_each(&mut take);
    }
    sift.take_found((bytes, starts), found.take(), times);
}

/// Returns a letter and the [`AHEAD`] entries after it.
#[inline(always)]
fn window(starts: &[Start], at: usize) -> &[Start; AHEAD + 1] {
    starts[at..].first_chunk().expect("the last letter is followed by entries for the end")
}

/// N-grams that are not hashed yet.
struct Found {
    /// For each n-gram, the index of its first letter times 8, plus its length.
    places: [usize; BATCH],
    len: usize,
}

impl Default for Found {
    fn default() -> Self {
        Self { places: [0; BATCH], len: 0 }
    }
}

impl Found {
    /// Adds an n-gram if it is new.
    #[inline(always)]
    fn push(&mut self, at: usize, n: usize, new: bool) {
        // Branchless: whether an n-gram is new is unpredictable; the next overwrites an old one.
        self.places[self.len] = at << 3 | n;
        self.len += usize::from(new);
    }

    /// Returns the indexes of the first letters.
    fn firsts(&self) -> impl Iterator<Item = usize> {
        self.places[..self.len].iter().map(|place| place >> 3)
    }

    fn take(&mut self) -> &[usize] {
        &self.places[..std::mem::take(&mut self.len)]
    }
}

/// The set, borrowed for one batch of n-grams.
struct Grams<'a> {
    small: &'a mut [u64],
    large: &'a mut [u64],
    written: &'a mut [usize],
    len: usize,
    kinds: Kinds,
    others: &'a mut Seen,
    distinct: bool,
}

impl Grams<'_> {
    /// Takes the n-grams that begin with the first letter, at the length for its script.
    #[inline(always)]
    fn take_fitted<const N: usize, const D: usize>(
        &mut self,
        letters: &[Start; AHEAD + 1],
        at: usize,
        found: &mut Found,
    ) {
        if !letters[0].is_dense() {
            self.take::<N>(letters, at, found);
        } else if D > 1 {
            self.take::<D>(letters, at, found);
        }
    }

    /// Takes the n-grams at the end, where fewer than N letters are left.
    ///
    /// These begin with a dense letter, or with the letter after one.
    fn take_ends<const N: usize, const D: usize>(
        &mut self,
        starts: &[Start],
        ends: std::ops::Range<usize>,
        found: &mut Found,
    ) {
        let is_dense = |at: usize| starts[at].is_dense();
        for at in ends.clone() {
            let (letters, left) = (window(starts, at), ends.end - at);
            let after_dense = at > 0 && is_dense(at - 1);
            match if is_dense(at) { D } else { left } {
                len if len > left || !(is_dense(at) || (after_dense && left >= D)) => {}
                1 if is_dense(at) => {}
                1 => self.take::<1>(letters, at, found),
                2 => self.take::<2>(letters, at, found),
                _ => self.take::<3>(letters, at, found),
            }
        }
    }

    /// Takes the n-grams of a run of few letters, none of them dense; returns their number.
    #[inline(always)]
    fn take_run<const N: usize>(&mut self, run: &[Start], at: usize, found: &mut Found) -> usize {
        let digits = self.kinds.digits;
        let mask = (0..N).fold(0, |mask, _| mask << digits | ((1 << digits) - 1));
        let (before, lasts) = run.split_at((N - 1).min(run.len()));
        let roll = |all: usize, start: &Start| all << digits | usize::from(start.number());
        let mut rolled = before.iter().fold(0, roll);
        for (last, at) in lasts.iter().zip(at..) {
            rolled = roll(rolled, last) & mask;
            let new = !self.distinct
                || match N {
                    2 => self.set_small(rolled),
                    3 => self.set_large(rolled),
                    _ => self.others.insert(QUADS | rolled as u64),
                };
            found.push(at, N, new);
        }
        lasts.len()
    }

    /// Takes the pairs that begin with dense letters; returns their number.
    ///
    /// The numbers of all letters must fit in `dense_digits`. The last letter of `run` begins no
    /// pair.
    #[inline(always)]
    fn take_dense_run(&mut self, run: &[Start], at: usize, found: &mut Found) -> usize {
        let Kinds { dense_digits: digits, dense_pairs, .. } = self.kinds;
        let of = |start: Start| usize::from(start.number());
        let mut count = 0;
        for (&first, &second) in run.iter().zip(run.iter().skip(1)) {
            if !first.is_dense() {
                break;
            }
            let (letter, other, at) = (of(first) & !DENSE, of(second), at + count);
            let other = other >> 15 << digits | (other & !DENSE);
            let bit = dense_pairs + (letter << (digits + 1) | other);
            let new = !self.distinct || self.set_large(bit);
            found.push(at, 2, new);
            count += 1;
        }
        count
    }

    /// Takes the first N letters as an n-gram, if it is new or repeats count.
    #[inline(always)]
    fn take<const N: usize>(&mut self, letters: &[Start; AHEAD + 1], at: usize, found: &mut Found) {
        let gram = letters.first_chunk::<N>().expect("no n-gram is longer");
        let new = !self.distinct
            || match self.kinds.place(gram.map(|letter| usize::from(letter.number()))) {
                Place::Small(bit) => self.set_small(bit),
                Place::Large(bit) => self.set_large(bit),
                Place::Other(key) => self.others.insert(key),
            };
        found.push(at, N, new);
    }

    /// Sets a bit; returns true if it was not set.
    #[inline(always)]
    fn set_small(&mut self, bit: usize) -> bool {
        let word = &mut self.small[bit / 64];
        let new = *word >> (bit % 64) & 1 == 0;
        *word |= 1 << (bit % 64);
        new
    }

    /// Sets a bit and records its word as written; returns true if the bit was not set.
    #[inline(always)]
    fn set_large(&mut self, bit: usize) -> bool {
        let word = &mut self.large[bit / 64];
        let new = *word >> (bit % 64) & 1 == 0;
        *word |= 1 << (bit % 64);
        self.written[self.len] = bit / 64;
        self.len += usize::from(new);
        new
    }
}

#[cfg(test)]
mod tests;
