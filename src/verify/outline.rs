//! Outlines: character counts that reject most pairs of texts before either is read.
//!
//! An edit adds at most one character and removes at most one. So the surplus of one text over the
//! other is a lower bound of the number of edits: the bag distance (Bartolini, Ciaccia and Patella,
//! String matching with metric trees using an approximate distance, SPIRE 2002). It also changes at
//! most two of the bigrams of each text, which reject more pairs of short texts.
#![expect(clippy::indexing_slicing, reason = "there is a counter for every character")]

use super::edit::most_edits;
use super::{Verification, by_length};
use crate::error::Result;
use crate::kernel::{self, Work};
use crate::text::is_dense;

/// Characters of the longest text whose bigrams distinguish it.
const SHORT_CHARS: u32 = 255;

/// Words of a set of bigrams.
const WORDS: usize = 15;

/// Counters of bigrams; a counter has two bits, for its first and its second bigram.
const BIGRAMS: u32 = 480;

/// Counters of a text; several characters share one.
const COUNTERS: usize = 32;

/// Summary of a text, known without reading it: 44 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) chars: u32,
    /// Number of letters; dense characters count as two.
    pub(super) letters: u32,
    /// Low bits that were dropped from the counts.
    shift: u32,
    counts: [u8; COUNTERS],
}

impl Outline {
    /// Counts the characters of a text.
    pub(super) fn new(text: &str) -> Self {
        let (counts, chars, dense) = count_chars(text);
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let (counts, chars, dense) = (counts.map(number), number(chars), number(dense));
        let most = counts.iter().copied().max().unwrap_or(0);
        let shift = (u32::BITS - most.leading_zeros()).saturating_sub(u8::BITS);
        let counts = counts.map(|count| u8::try_from(count >> shift).expect("eight bits are left"));
        Self { chars, letters: chars.saturating_add(dense), shift, counts }
    }

    /// Bytes of an encoded outline.
    pub(super) const BYTES: usize = 12 + COUNTERS;

    /// Appends the outline to a record.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.chars, self.letters, self.shift] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.counts);
    }

    /// Reads an outline that [`encode`](Self::encode) wrote.
    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let (numbers, counts) = bytes.split_at(12);
        let (numbers, _) = numbers.as_chunks::<4>();
        let number = |at: usize| u32::from_be_bytes(numbers[at]);
        let counts = counts.try_into().expect("the rest has a byte for every counter");
        Self { chars: number(0), letters: number(1), shift: number(2), counts }
    }

    /// Returns a lower bound of the number of edits between two texts.
    pub(super) fn least_edits(&self, other: &Self) -> u32 {
        let (mut more, mut fewer) = (0_u32, 0_u32);
        for (&a, &b) in self.counts.iter().zip(&other.counts) {
            let (a, b) = (self.range(a), other.range(b));
            more += a.0.saturating_sub(b.1);
            fewer += b.0.saturating_sub(a.1);
        }
        more.max(fewer).max(self.chars.abs_diff(other.chars))
    }

    /// Returns the smallest and the largest count that a counter may represent.
    fn range(&self, count: u8) -> (u32, u32) {
        let least = u32::from(count) << self.shift;
        (least, least | !(u32::MAX << self.shift))
    }

    /// Returns true if the texts certainly do not pass.
    pub(super) fn rejects(&self, other: &Self, verification: Verification) -> bool {
        let threshold = verification.edit_threshold(|| self.step_by_length(other));
        let Some(threshold) = threshold else { return false };
        let most = most_edits(self.chars.max(other.chars) as usize, threshold);
        self.least_edits(other) as usize > most
    }

    /// Returns true for a text whose bigrams distinguish it.
    pub(super) fn is_short(&self) -> bool {
        self.chars <= SHORT_CHARS
    }

    /// Returns the step of the threshold by length.
    pub(super) fn step(&self) -> u8 {
        let step = by_length::step_of(self.letters as usize);
        u8::try_from(step).expect("there are few steps")
    }

    /// Returns the step of the threshold by length for two texts.
    pub(super) fn step_by_length(&self, other: &Self) -> usize {
        by_length::step_of(self.letters.max(other.letters) as usize)
    }
}

/// Length and bigrams of a text, small enough to stay in memory: two cache lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct BigramOutline {
    chars: u32,
    /// Members of the set.
    size: u16,
    /// Step of the threshold by length.
    step: u8,
    is_short: bool,
    /// The first and the second bigram of each counter; empty for a text that is not short.
    bigrams: [u64; WORDS],
}

impl BigramOutline {
    /// Returns what is known of a text; reads it only if it is short.
    pub(super) fn new(outline: &Outline, text: impl FnOnce() -> Result<String>) -> Result<Self> {
        let is_short = outline.is_short();
        let bigrams = if is_short { bigrams(&text()?) } else { [0; WORDS] };
        let size: u32 = bigrams.iter().map(|word| word.count_ones()).sum();
        Ok(Self {
            chars: outline.chars,
            size: u16::try_from(size).expect("a set has two bits per counter at most"),
            step: outline.step(),
            is_short,
            bigrams,
        })
    }

    /// Returns true if the texts certainly do not pass.
    pub(crate) fn rejects(&self, other: &Self, verification: Verification) -> bool {
        // The step rises with the length, so that of the longer text decides.
        let step = usize::from(self.step.max(other.step));
        let Some(threshold) = verification.edit_threshold(|| step) else { return false };
        let most = most_edits(self.chars.max(other.chars) as usize, threshold);
        if self.chars.abs_diff(other.chars) as usize > most {
            return true;
        }
        if !(self.is_short && other.is_short) {
            return false;
        }
        let common = kernel::dispatch(Common([&self.bigrams, &other.bigrams]));
        let surplus = u32::from(self.size.max(other.size)) - common;
        surplus as usize > 2 * most
    }
}

/// Counts the members that two sets have in common.
struct Common<'a>([&'a [u64; WORDS]; 2]);

impl Work for Common<'_> {
    type Output = u32;

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run(self) -> u32 {
        let [a, b] = self.0;
        let mut common = 0;
        for word in 0..WORDS {
            common += (a[word] & b[word]).count_ones();
        }
        common
    }
}

/// Returns the set of a text's bigrams; a second one of a counter is another member.
///
/// Members of one text that the other lacks are at most as many as such bigrams.
fn bigrams(text: &str) -> [u64; WORDS] {
    let mut set = [0; WORDS];
    let mut last = 0_u32;
    for (c, at) in text.chars().map(u32::from).zip(0..) {
        let mixed = (last.wrapping_mul(0x85eb_ca6b) ^ c).wrapping_mul(0x9e37_79b1);
        if at > 0 {
            let counter = ((u64::from(mixed) * u64::from(BIGRAMS)) >> u32::BITS) as usize;
            let mut put = |bit: usize| {
                let (word, bit) = (&mut set[bit / 64], 1 << (bit % 64));
                let known = *word & bit != 0;
                *word |= bit;
                known
            };
            if put(counter) {
                put(counter + BIGRAMS as usize);
            }
        }
        last = c;
    }
    set
}

/// Sets of counters that take turns, because equal letters in a row would wait for one counter.
const SETS: usize = 4;

/// Counts all characters per counter, all characters, and dense characters.
fn count_chars(text: &str) -> ([usize; COUNTERS], usize, usize) {
    let mut sets = [[0; COUNTERS]; SETS];
    let (mut chars, mut dense, mut rest) = (0, 0, text);
    while !rest.is_empty() {
        // Even text with other characters is mostly ASCII, which needs no decoding.
        let (ascii, others) = rest.split_at(ascii_start(rest.as_bytes()));
        count_ascii(ascii.as_bytes(), &mut sets);
        chars += ascii.len();
        let mut others = others.chars();
        while others.as_str().as_bytes().first().is_some_and(|byte| !byte.is_ascii())
            && let Some(c) = others.next()
        {
            sets[chars % SETS][counter(c)] += 1;
            chars += 1;
            if c >= FIRST_DENSE {
                dense += usize::from(is_dense(c));
            }
        }
        rest = others.as_str();
    }
    let counts = std::array::from_fn(|at| sets.iter().map(|set| set[at]).sum());
    (counts, chars, dense)
}

/// Returns the number of ASCII characters at the beginning.
fn ascii_start(text: &[u8]) -> usize {
    let (lanes, _) = text.as_chunks::<32>();
    let whole = lanes.iter().take_while(|lane| lane.is_ascii()).count() * 32;
    whole + text[whole..].iter().take_while(|byte| byte.is_ascii()).count()
}

fn count_ascii(text: &[u8], sets: &mut [[usize; COUNTERS]; SETS]) {
    let (turns, rest) = text.as_chunks::<SETS>();
    for bytes in turns.iter().map(<[u8; SETS]>::as_slice).chain([rest]) {
        for (set, &byte) in sets.iter_mut().zip(bytes) {
            set[usize::from(byte) % COUNTERS] += 1;
        }
    }
}

/// No character before it is dense.
const FIRST_DENSE: char = '\u{1100}';

/// Returns the counter of a character. Capitals and digits, which are rarer, share those of small
/// letters.
fn counter(c: char) -> usize {
    let code = u32::from(c);
    let spread = if c.is_ascii() { code } else { code.wrapping_mul(0x9e37_79b1) >> 27 };
    spread as usize % COUNTERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::edit_similarity;

    fn least(a: &str, b: &str) -> u32 {
        let (a, b) = (Outline::new(a), Outline::new(b));
        assert_eq!(a.least_edits(&b), b.least_edits(&a));
        a.least_edits(&b)
    }

    #[test]
    fn outlines_decode_to_what_was_encoded() {
        for text in ["", "a text", &"晴 long ".repeat(500)] {
            let (outline, mut bytes) = (Outline::new(text), Vec::new());
            outline.encode(&mut bytes);
            assert_eq!(Outline::decode(&bytes.try_into().unwrap()), outline);
        }
    }

    #[test]
    fn bounds_equal_the_worked_examples() {
        assert_eq!(least("kitten", "sitting"), 3);
        assert_eq!(least("", "abcd"), 4);
        assert_eq!((least("", ""), least("abc", "cba")), (0, 0));
        assert_eq!(least("天晴雨雪风", "雪天晴雨风"), 0);
        // Counts above 255 lose their low bits, so 0 may be 3 here.
        assert_eq!(least(&"a".repeat(1000), &"b".repeat(1000)), 997);
        assert_eq!(least(&"a".repeat(1001), &"b".repeat(1003)), 997);
    }

    #[test]
    fn runs_of_any_length_are_counted_like_single_characters() {
        let ascii: String = (0..=127_u8).cycle().take(1003).map(char::from).collect();
        let texts = [1, 3, 31, 32, 33, 200, 1003].map(|run| {
            let runs = ascii.as_bytes().chunks(run).map(|run| str::from_utf8(run).unwrap());
            runs.flat_map(|run| [run, "é晴雨"]).collect::<String>()
        });
        for text in texts.iter().chain([&ascii, &"晴".repeat(99)]) {
            let (counts, chars, dense) = count_chars(text);
            let mut expected = [0; COUNTERS];
            text.chars().for_each(|c| expected[counter(c)] += 1);
            assert_eq!((counts, chars), (expected, text.chars().count()));
            assert_eq!(dense, text.chars().filter(|&c| is_dense(c)).count());
        }
    }

    #[test]
    fn rejected_pairs_do_not_pass() {
        let seed = 21;
        let mut rng = fastrand::Rng::with_seed(seed);
        let letters: Vec<char> = "aabcdeeee  tABC01é晴雨ัก".chars().collect();
        let (mut refused, mut passed) = (0, 0);
        for round in 0..4000 {
            let longest = if round % 100 == 0 { 3000 } else { 60 };
            let a: String =
                (0..rng.usize(0..longest)).map(|_| *rng.choice(&letters).unwrap()).collect();
            let mut b: Vec<char> = a.chars().collect();
            for _ in 0..rng.usize(0..=b.len() / 2) {
                let at = rng.usize(0..b.len());
                b[at] = *rng.choice(&letters).unwrap();
            }
            b.truncate(b.len() - rng.usize(0..=b.len() / 4));
            let b: String = b.into_iter().collect();
            let (ours, theirs) = (Outline::new(&a), Outline::new(&b));
            for verification in [
                Verification::Edit(0.8),
                Verification::Edit(1.0),
                Verification::EditByLength { short: 0.7, long: 0.95, boilerplate: None },
            ] {
                let found = verification.check(0, a.as_bytes(), b.as_bytes()).unwrap();
                let rejects = ours.rejects(&theirs, verification);
                assert!(!(rejects && found.is_some()), "seed {seed}: {verification} {a:?} {b:?}");
                refused += u32::from(rejects);
                passed += u32::from(found.is_some());
            }
            if let Some(all) = edit_similarity(&a, &b, 0.0) {
                let longest = a.chars().count().max(b.chars().count());
                let edits = (1.0 - all) * longest as f64;
                assert!(
                    f64::from(ours.least_edits(&theirs)) <= edits + 1e-6,
                    "seed {seed}: {a:?} {b:?}"
                );
            }
        }
        assert!(refused > 1000 && passed > 1000, "{refused} {passed}");
    }

    #[test]
    fn bigrams_reject_most_pairs_of_short_texts_and_none_that_passes() {
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        let letters: Vec<char> = "etaoinsrhldcumfpgwyb  é晴雨天风ั".chars().collect();
        let outline =
            |text: &str| BigramOutline::new(&Outline::new(text), || Ok(text.to_owned())).unwrap();
        let random = |rng: &mut fastrand::Rng, longest: usize| -> Vec<char> {
            (0..rng.usize(0..longest)).map(|_| *rng.choice(&letters).unwrap()).collect()
        };
        let (mut unlike, mut refused, mut passed) = (0, 0, 0);
        for round in 0..4000 {
            let longest = if round % 50 == 0 { 600 } else { 200 };
            let a = random(&mut rng, longest);
            let other = round % 2 == 0;
            let mut b = if other { random(&mut rng, longest) } else { a.clone() };
            for _ in 0..if other { 0 } else { rng.usize(0..=a.len() / 4) } {
                let (at, letter) = (rng.usize(0..=b.len()), *rng.choice(&letters).unwrap());
                match rng.u32(0..3) {
                    0 => b.insert(at, letter),
                    1 if at < b.len() => b[at] = letter,
                    _ => b.truncate(b.len().saturating_sub(1)),
                }
            }
            let [a, b] = [a, b].map(|text| text.into_iter().collect::<String>());
            let (ours, theirs) = (outline(&a), outline(&b));
            for verification in [
                Verification::Edit(0.8),
                Verification::Edit(1.0),
                Verification::EditByLength { short: 0.78, long: 0.88, boilerplate: None },
            ] {
                let found = verification.check(0, a.as_bytes(), b.as_bytes()).unwrap();
                let rejects = ours.rejects(&theirs, verification);
                assert_eq!(rejects, theirs.rejects(&ours, verification));
                assert!(!(rejects && found.is_some()), "seed {seed}: {verification} {a:?} {b:?}");
                passed += u32::from(found.is_some());
                unlike += u32::from(other);
                refused += u32::from(other && rejects);
            }
        }
        assert!(passed > 2000 && refused * 1000 > unlike * 995, "{passed} {refused} {unlike}");
    }

    #[test]
    fn long_texts_are_not_read_for_their_bigrams() {
        let outline = |len: usize| {
            let text = "a".repeat(len);
            let read = || if len > 255 { Err(crate::Error::Cancelled) } else { Ok(text.clone()) };
            BigramOutline::new(&Outline::new(&text), read).unwrap()
        };
        let rejects = |a, b| outline(a).rejects(&outline(b), Verification::Edit(0.5));
        assert_eq!((rejects(255, 256), rejects(256, 511), rejects(256, 600)), (false, false, true));
        assert!(!outline(1).rejects(&outline(900), Verification::Jaccard(1.0)));
    }

    #[test]
    fn checks_of_feature_sets_reject_nothing() {
        let (a, b) = (Outline::new("a"), Outline::new("bcd"));
        assert!(a.rejects(&b, Verification::Edit(0.5)));
        for verification in [Verification::None, Verification::Jaccard(1.0)] {
            assert!(!a.rejects(&b, verification));
        }
    }
}
