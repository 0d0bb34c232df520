//! Numbered n-grams: which of a text's n-grams are new is told by the numbers of their letters.
//!
//! A text of one script has some dozens of different letters, so that a bit for each of its short
//! n-grams fits the first caches, and only new ones are hashed. What has more letters, as Chinese
//! has, is looked up in a set.
// A call for each letter would cost more than what it does.
#![allow(clippy::inline_always)]

use super::features::Visit;
use super::grams::{AHEAD, Letters, Start};
use super::seen::Seen;
use super::sift::{BATCH, Sift};

/// Lengths of n-grams, those of dense letters by a number of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    pub(super) letters: usize,
    pub(super) dense: usize,
    /// Whether dense letters count singly as well.
    pub(super) singles: bool,
    /// Whether n-grams of one letter less count as well, and double.
    pub(super) shorter: bool,
}

impl Lengths {
    /// Whether [`Numbered::take`] knows them, and the text is long enough for one n-gram.
    pub(super) fn are_taken(self, text: &Letters) -> bool {
        let known = matches!((self.letters, self.dense), (4 | 3, 2) | (2, 1));
        known
            && (self.letters > 2 || !self.shorter)
            && text.len() >= self.letters
            && text.numbered().is_some()
    }
}

/// The set of a text's n-grams, by the numbers of their letters.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    /// Bits of n-grams, where [`Kinds`] says.
    bits: Vec<u64>,
    /// Words of bits that were written, and room for those of one batch more.
    written: Vec<u32>,
    len: usize,
    kinds: Kinds,
    /// N-grams that have no bit.
    others: Seen,
}

/// Where the bits of each kind of n-grams begin, and how many digits number a letter.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    /// Digits of the letters that are not dense.
    digits: u32,
    /// Digits of dense letters and of those beside them.
    dense_digits: u32,
    /// Whether all letters that are not dense have so few digits.
    few: bool,
    /// Whether all letters have so few as dense ones and those beside them.
    dense_few: bool,
    pairs: u64,
    triples: u64,
    dense_pairs: u64,
}

/// Most digits of letters whose n-grams have a bit each: 256 KiB of bits.
const MAX_DIGITS: u32 = 7;

/// Most digits of dense letters whose pairs have a bit each: as many bits.
const MAX_DENSE_DIGITS: u32 = 10;

const DENSE: u64 = Start::DENSE as u64;

/// Set in the keys of n-grams of four of few letters, which have no bit.
const QUADS: u64 = 1 << 63;

impl Kinds {
    /// The kinds of a text, and how many bits they take.
    fn of(text: &Letters) -> (Self, u64) {
        let alphabet = text.alphabet();
        let digits = |greatest: u16| u16::BITS - greatest.leading_zeros();
        let (letters, dense) = (digits(alphabet.greatest()), digits(alphabet.dense()));
        let mut kinds = Self {
            digits: letters.min(MAX_DIGITS),
            dense_digits: letters.max(dense).min(MAX_DENSE_DIGITS),
            few: letters <= MAX_DIGITS,
            dense_few: letters.max(dense) <= MAX_DENSE_DIGITS,
            ..Self::default()
        };
        let mut bits = 0;
        let mut region = |digits: u32| {
            let begin = bits;
            bits += (1_u64 << digits).next_multiple_of(64);
            begin
        };
        if dense > 0 {
            region(dense);
            kinds.dense_pairs = region(2 * kinds.dense_digits + 1);
        }
        kinds.pairs = region(2 * kinds.digits);
        kinds.triples = region(3 * kinds.digits);
        (kinds, bits)
    }

    /// The bit of an n-gram, or else its key.
    #[inline(always)]
    fn place<const N: usize>(self, letters: [u64; N]) -> std::result::Result<u64, u64> {
        let any = letters.iter().fold(0, |any, number| any | number);
        let number = || letters.iter().fold(0, |all, number| all << self.digits | number);
        let few = any >> self.digits == 0;
        match letters[..] {
            [letter] if letter & DENSE != 0 => Ok(letter & !DENSE),
            [_, _] if few => Ok(self.pairs + number()),
            [_, _, _] if few => Ok(self.triples + number()),
            [_, _, _, _] if few => Err(QUADS | number()),
            [first, second] if first & DENSE != 0 && (any & !DENSE) >> self.dense_digits == 0 => {
                let second = second >> 15 << self.dense_digits | (second & !DENSE);
                Ok(self.dense_pairs + ((first & !DENSE) << (self.dense_digits + 1) | second))
            }
            _ => Err(letters.iter().fold(0, |all, number| all << 16 | number)),
        }
    }
}

impl Numbered {
    /// Hands on the n-grams of a text that are new, or all where repeats count.
    ///
    /// Only where hashes will do, and the lengths [are taken](Lengths::are_taken).
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

    /// Forgets all n-grams.
    fn reset(&mut self, text: &Letters, n: usize) {
        for &at in self.written.iter().take(self.len) {
            if let Some(bits) = self.bits.get_mut(at as usize) {
                *bits = 0;
            }
        }
        self.len = 0;
        let (kinds, bits) = Kinds::of(text);
        self.kinds = kinds;
        let words = usize::try_from(bits / 64).unwrap_or(usize::MAX);
        if self.bits.len() < words {
            self.bits.resize(words, 0);
        }
        let large = n > 3 || !kinds.few || kinds.dense_digits == MAX_DENSE_DIGITS;
        self.others.reset(if large { text.len() } else { text.len() / 8 });
    }

    /// Takes n-grams of N letters and of D dense ones, and doubly those of M and E, if these are not 0.
    fn take_lengths<V: Visit, const N: usize, const D: usize, const M: usize, const E: usize>(
        &mut self,
        text: &Letters,
        singles: bool,
        sift: &mut Sift<'_, V>,
    ) {
        let Some((bytes, starts)) = text.numbered() else { return };
        let full = (text.len() + 1).saturating_sub(N);
        let (mut found, mut doubled) = (Found::default(), Found::default());
        let distinct = sift.is_distinct();
        // What fewer letters than N make at the end is not new where it counts double.
        let mut grams = self.grams(distinct);
        grams.take_ends::<N, D>(starts, full..text.len(), singles, &mut found);
        if M > 0 {
            grams.take_fitted::<M, E>(window(starts, full), false, &mut doubled);
            grams.take_ends::<M, E>(starts, full + 1..text.len(), false, &mut doubled);
        }
        self.len = grams.len;
        let mut at = 0;
        while at < full {
            let mut grams = self.grams(distinct);
            let last = (at + BATCH / 2).min(full);
            while at < last {
                // Few letters of one kind are numbered as they come.
                let run = starts.get(at..last + N - 1).unwrap_or_default();
                let dense = run.iter().position(|start| start.is_dense()).unwrap_or(run.len());
                if grams.kinds.few && dense >= N {
                    at += grams.take_run::<N, M>(
                        run.get(..dense).unwrap_or_default(),
                        starts,
                        at,
                        &mut found,
                        &mut doubled,
                    );
                    continue;
                }
                if D == 2 && dense == 0 && grams.kinds.dense_few {
                    let begins = starts.get(at..last + 2).unwrap_or_default();
                    at += grams.take_dense_run(begins, singles, M > 0, &mut found, &mut doubled);
                    continue;
                }
                let letters = window(starts, at);
                grams.take_fitted::<N, D>(letters, singles, &mut found);
                if M > 0 {
                    grams.take_fitted::<M, E>(letters, false, &mut doubled);
                }
                at += 1;
            }
            self.len = grams.len;
            sift.take_found(bytes, found.take(), 1);
            sift.take_found(bytes, doubled.take(), 2);
        }
        sift.take_found(bytes, found.take(), 1);
        sift.take_found(bytes, doubled.take(), 2);
    }

    fn grams(&mut self, distinct: bool) -> Grams<'_> {
        if self.written.len() < self.len + 2 * BATCH {
            self.written.resize(2 * self.len + 2 * BATCH, 0);
        }
        Grams {
            bits: &mut self.bits,
            written: &mut self.written,
            len: self.len,
            kinds: self.kinds,
            others: &mut self.others,
            distinct,
        }
    }

    /// Gives back memory that one huge text took.
    pub(super) fn release_above(&mut self, bytes: usize) {
        if self.written.capacity() * size_of::<u32>() > bytes {
            *self = Self::default();
        }
        self.others.release_above(bytes);
    }
}

/// A letter and what follows it.
#[inline(always)]
fn window(starts: &[Start], at: usize) -> &[Start; AHEAD + 1] {
    const NONE: [Start; AHEAD + 1] = [Start::NONE; AHEAD + 1];
    starts.get(at..).and_then(<[Start]>::first_chunk).unwrap_or(&NONE)
}

/// N-grams on their way to their hashes.
struct Found {
    /// Where they begin, and their length in the lowest byte.
    places: [u64; BATCH],
    len: usize,
}

impl Default for Found {
    fn default() -> Self {
        Self { places: [0; BATCH], len: 0 }
    }
}

impl Found {
    /// Adds an n-gram; the next one takes the place of one that is not new.
    #[inline(always)]
    fn push(&mut self, first: Start, end: Start, new: bool) {
        // Whether an n-gram is new cannot be foretold, so nothing branches on it.
        if let Some(slot) = self.places.get_mut(self.len) {
            *slot = (first.at() as u64) << 8 | (end.at() - first.at()) as u64;
        }
        self.len += usize::from(new);
    }

    fn take(&mut self) -> &[u64] {
        self.places.get(..std::mem::take(&mut self.len)).unwrap_or_default()
    }
}

/// The set, as a batch of n-grams sees it.
struct Grams<'a> {
    bits: &'a mut [u64],
    written: &'a mut [u32],
    len: usize,
    kinds: Kinds,
    others: &'a mut Seen,
    distinct: bool,
}

impl Grams<'_> {
    /// Takes the n-grams that begin with the first letter, as long as is fitted to it.
    #[inline(always)]
    fn take_fitted<const N: usize, const D: usize>(
        &mut self,
        letters: &[Start; AHEAD + 1],
        singles: bool,
        found: &mut Found,
    ) {
        if letters[0].is_dense() {
            if singles {
                self.take::<1>(letters, found);
            }
            self.take::<D>(letters, found);
        } else {
            self.take::<N>(letters, found);
        }
    }

    /// Takes what fewer than N letters make: dense ones do, and what follows a dense one.
    fn take_ends<const N: usize, const D: usize>(
        &mut self,
        starts: &[Start],
        ends: std::ops::Range<usize>,
        singles: bool,
        found: &mut Found,
    ) {
        let is_dense = |at: usize| starts.get(at).is_some_and(|start| start.is_dense());
        for at in ends.clone() {
            let (letters, left) = (window(starts, at), ends.end - at);
            let after_dense = at > 0 && is_dense(at - 1);
            if is_dense(at) && singles {
                self.take::<1>(letters, found);
            }
            match if is_dense(at) { D } else { left } {
                len if len > left || !(is_dense(at) || (after_dense && left >= D)) => {}
                1 => self.take::<1>(letters, found),
                2 => self.take::<2>(letters, found),
                _ => self.take::<3>(letters, found),
            }
        }
    }

    /// Takes the n-grams of a run of few letters, none of them dense, and returns how many.
    #[inline(always)]
    fn take_run<const N: usize, const M: usize>(
        &mut self,
        run: &[Start],
        starts: &[Start],
        at: usize,
        found: &mut Found,
        doubled: &mut Found,
    ) -> usize {
        let digits = self.kinds.digits;
        let mask = (0..N).fold(0, |mask, _| mask << digits | ((1 << digits) - 1));
        let before = run.iter().take(N - 1);
        let mut rolled = before.fold(0, |all, start| all << digits | u64::from(start.number()));
        let begins = starts.get(at..).unwrap_or_default();
        let count = run.len() + 1 - N;
        let lasts = run.get(N - 1..).unwrap_or_default().iter();
        let ends = begins.get(N..).unwrap_or_default().iter();
        let shorts = begins.get(M..).unwrap_or_default().iter();
        for (((&first, &last), &end), &short) in begins.iter().zip(lasts).zip(ends).zip(shorts) {
            rolled = (rolled << digits | u64::from(last.number())) & mask;
            let new = !self.distinct
                || match N {
                    2 => self.set(self.kinds.pairs + rolled),
                    3 => self.set(self.kinds.triples + rolled),
                    _ => self.others.insert(QUADS | rolled),
                };
            found.push(first, end, new);
            if M > 0 {
                let number = rolled >> digits;
                let region = if M == 2 { self.kinds.pairs } else { self.kinds.triples };
                let new = !self.distinct || self.set(region + number);
                doubled.push(first, short, new);
            }
        }
        count
    }

    /// Takes the pairs that begin with dense letters, and these alone as asked, and returns how many.
    ///
    /// Only where dense letters are few. The last two letters begin none.
    #[inline(always)]
    fn take_dense_run(
        &mut self,
        run: &[Start],
        singles: bool,
        doubles: bool,
        found: &mut Found,
        doubled: &mut Found,
    ) -> usize {
        let Kinds { dense_digits: digits, dense_pairs, .. } = self.kinds;
        let of = |start: Start| u64::from(start.number());
        let mut count = 0;
        let seconds = run.iter().skip(1);
        let ends = run.iter().skip(2);
        for ((&first, &second), &end) in run.iter().zip(seconds).zip(ends) {
            if !first.is_dense() {
                break;
            }
            count += 1;
            let (letter, other) = (of(first) & !DENSE, of(second));
            let other = other >> 15 << digits | (other & !DENSE);
            let new = !self.distinct || self.set(dense_pairs + (letter << (digits + 1) | other));
            found.push(first, end, new);
            if singles || doubles {
                let new = !self.distinct || self.set(letter);
                if singles {
                    found.push(first, second, new);
                } else {
                    doubled.push(first, second, new);
                }
            }
        }
        count
    }

    /// Takes the first letters, if they are new or repeats count.
    #[inline(always)]
    fn take<const N: usize>(&mut self, letters: &[Start; AHEAD + 1], found: &mut Found) {
        let (Some(gram), Some(end)) = (letters.first_chunk::<N>(), letters.get(N)) else { return };
        let [first, ..] = letters;
        let new = !self.distinct
            || match self.kinds.place(gram.map(|letter| u64::from(letter.number()))) {
                Ok(bit) => self.set(bit),
                Err(key) => self.others.insert(key),
            };
        found.push(*first, *end, new);
    }

    /// Sets a bit; true when it was not set.
    #[inline(always)]
    fn set(&mut self, bit: u64) -> bool {
        let at = bit >> 6;
        let slots = (
            usize::try_from(at).ok().and_then(|at| self.bits.get_mut(at)),
            self.written.get_mut(self.len),
            u32::try_from(at),
        );
        let (Some(word), Some(slot), Ok(at)) = slots else { return false };
        let bit = 1 << (bit & 63);
        let new = *word & bit == 0;
        *word |= bit;
        *slot = at;
        self.len += usize::from(new);
        new
    }
}

#[cfg(test)]
mod tests {
    use crate::text::features::{self, Feature, Visit};
    use crate::text::pipeline::{Inner, Scratch};
    use crate::text::{Pipeline, PipelineOptions, Segment, Weights};

    /// Hashes and weights, without a look at bytes.
    struct Hashes<'a>(&'a mut Vec<(u64, i64)>);

    impl Visit for Hashes<'_> {
        const BYTES: bool = false;

        fn feature(&mut self, feature: Feature<'_>) {
            self.0.push((feature.hash, feature.weight));
        }

        fn hashes(&mut self, hashes: &[u64]) {
            self.0.extend(hashes.iter().map(|&hash| (hash, 1)));
        }

        fn weighted(&mut self, hashes: &[u64], weights: &[u32]) {
            let weights = weights.iter().map(|&weight| i64::from(weight));
            self.0.extend(hashes.iter().copied().zip(weights));
        }
    }

    fn compare(pipeline: &Inner, scratch: &mut Scratch, text: &str) {
        scratch.normal.clear();
        scratch.normal.push_str(text);
        let (mut quick, mut plain) = (Vec::new(), Vec::new());
        features::for_each(pipeline, scratch, Hashes(&mut quick));
        features::for_each(pipeline, scratch, |feature: Feature<'_>| {
            plain.push((feature.hash, feature.weight));
        });
        quick.sort_unstable();
        plain.sort_unstable();
        assert_eq!(quick, plain, "{}: {text:?}", pipeline.options.segment);
    }

    #[test]
    fn numbered_ngrams_are_those_of_the_plain_way() {
        let base = PipelineOptions::new;
        let pipelines = [
            base().segment(Segment::Mixed),
            base().segment(Segment::Mixed).ngram(4),
            base().segment(Segment::Mixed).ngram(2),
            base(),
            base().ngram(4),
            base().ngram(2),
            base().ngram(5),
            base().weights(Weights::Tf),
            base().weights(Weights::Tf).ngram(4),
        ];
        let pipelines = pipelines.map(|options| Pipeline::new(&options).unwrap());
        // Few letters, so that they repeat; of one to four bytes, dense ones, and what is dropped.
        let few: Vec<char> = "aab1 .éяب\u{94d}กကガ晴天天한글𠀀𐐨\u{301}".chars().collect();
        let many: Vec<char> = ('\u{370}'..'\u{600}').chain('一'..'龥').collect();
        let mut random = fastrand::Rng::with_seed(3);
        let mut scratch = Scratch::default();
        for round in 0..6_000 {
            let length = if round % 50 == 0 { random.usize(..4_000) } else { random.usize(..40) };
            let letters = match round % 4 {
                0 => &many[..],
                1 => &few[..8],
                _ => &few[..],
            };
            // Runs of one kind, as scripts make them.
            let mut at = 0;
            let text: String = std::iter::repeat_with(|| {
                match random.u8(..) {
                    ..60 => at = random.usize(..letters.len()),
                    60..110 => return ' ',
                    _ => {}
                }
                letters[(at + random.usize(..2)) % letters.len()]
            })
            .take(length)
            .collect();
            for pipeline in &pipelines {
                compare(pipeline.inner(), &mut scratch, &text);
            }
        }
    }
}
