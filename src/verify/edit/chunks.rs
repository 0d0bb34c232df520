//! Chunks: long texts are cut at positions chosen by content, and compared chunk by chunk.
//!
//! A cut is at a passage that its text has once, chosen by its hash, so that two texts choose the
//! same passages (Manber, Finding similar files in a large file system, 1994). A passage of both
//! texts aligns them. The longest sequence of such passages that ascends in both texts is used, as
//! patience diff does with lines. With any cuts, the edits of all parts together turn one text into
//! the other, so a bad cut can only give too many edits.
#![expect(clippy::indexing_slicing, reason = "cuts are numbered here")]

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::anchors::{self, Passage};

/// Under an unknown seed, nobody can prepare chunks that collide.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// A text that is compared by chunks, with what is computed before any comparison.
#[derive(Debug)]
pub(in crate::verify) struct LongText<'t> {
    pub(in crate::verify) text: Cow<'t, str>,
    pub(super) chars: usize,
    /// By position; the first is the start of the text.
    cuts: Vec<Cut>,
    /// Hash table with open addressing from passages to indexes of cuts; 0, the start, marks an
    /// empty slot.
    slots: Vec<u32>,
}

/// The start of a chunk.
#[derive(Debug, Clone, Copy, Default)]
struct Cut {
    passage: u32,
    start: u32,
    /// Hash of the text up to the next cut.
    content: u64,
}

/// The text between two shared cuts, or between a shared cut and an end, on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'t> {
    pub(super) a: &'t str,
    pub(super) b: &'t str,
    /// Depends only on the two contents, not on their order or their texts.
    pub(super) key: u64,
    /// First and end of the chunks on both sides.
    chunks: [(usize, usize); 2],
}

impl<'t> LongText<'t> {
    /// Computes the chunks of a text, in linear time and memory.
    pub(in crate::verify) fn new(text: impl Into<Cow<'t, str>>) -> Self {
        let text = text.into();
        let chars = text.chars().count();
        // Longer texts than `u32::MAX` bytes are one chunk.
        let found = u32::try_from(text.len()).map(|_| anchors::passages(&text));
        let (cuts, slots) = cut(found.unwrap_or_default());
        let mut long = Self { text, chars, cuts, slots };
        for at in 0..long.cuts.len() {
            let content = xxh3_64_with_seed(long.between(at, at + 1).as_bytes(), *SEED);
            long.cuts[at].content = content;
        }
        long
    }

    /// Returns the approximate memory of the text and its chunks in bytes.
    pub(in crate::verify) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.cuts) + size_of_val(&*self.slots)
    }

    /// Returns the index of the cut at a passage.
    fn find(&self, passage: u32) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut slot = spread(passage) & mask;
        loop {
            match self.slots[slot] as usize {
                0 => return None,
                at if self.cuts[at].passage == passage => return Some(at),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn start(&self, cut: usize) -> usize {
        self.cuts.get(cut).map_or(self.text.len(), |cut| cut.start as usize)
    }

    /// Returns the text between two cuts; the index after the last cut is the end.
    fn between(&self, from: usize, to: usize) -> &str {
        &self.text[self.start(from)..self.start(to)]
    }

    /// Hashes the contents of consecutive chunks.
    fn content(&self, from: usize, to: usize) -> u64 {
        self.cuts[from..to].iter().fold(0, |hash, cut| mix(hash, cut.content))
    }
}

/// Creates cuts at the passages that occur once; `found` is sorted by position.
fn cut(found: Vec<Passage>) -> (Vec<Cut>, Vec<u32>) {
    let mut cuts = vec![Cut::default()];
    cuts.extend(found.into_iter().filter(|&(_, start)| start != 0).map(|(hash, start)| Cut {
        passage: short(hash),
        start: u32::try_from(start).expect("longer texts are not cut"),
        content: 0,
    }));
    let mut slots = Vec::new();
    if enter(&mut cuts, &mut slots) {
        // A repeated passage marks no position. Removing cuts changes the indexes of the others.
        cuts.retain(|cut| cut.start != AGAIN);
        enter(&mut cuts, &mut slots);
    }
    (cuts, slots)
}

/// Start of a cut whose passage is repeated.
const AGAIN: u32 = u32::MAX;

/// Inserts cuts by passage; returns true if it marked repeated ones.
fn enter(cuts: &mut [Cut], slots: &mut Vec<u32>) -> bool {
    slots.clear();
    slots.resize((2 * cuts.len()).next_power_of_two(), 0);
    let mask = slots.len() - 1;
    let mut marked = false;
    for number in 1..cuts.len() {
        let passage = cuts[number].passage;
        let mut slot = spread(passage) & mask;
        loop {
            match slots[slot] as usize {
                0 => {
                    slots[slot] = u32::try_from(number).expect("a text has fewer cuts than bytes");
                    break;
                }
                before if cuts[before].passage == passage => {
                    (cuts[before].start, cuts[number].start) = (AGAIN, AGAIN);
                    marked = true;
                    break;
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }
    marked
}

/// Returns the hash bits below those that are zero in all chosen passages.
fn short(hash: u64) -> u32 {
    u32::try_from(hash >> 8 & u64::from(u32::MAX)).expect("masked")
}

/// Distributes passages over slots.
fn spread(passage: u32) -> usize {
    (passage.wrapping_mul(0x9e37_79b1) >> 7) as usize
}

fn mix(hash: u64, with: u64) -> u64 {
    (hash.rotate_left(23) ^ with).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the parts of two texts that may differ, in order; the text between them is equal.
pub(super) fn parts<'t>(a: &'t LongText<'_>, b: &'t LongText<'_>) -> Vec<Part<'t>> {
    let ends = [(a.cuts.len(), b.cuts.len())];
    let mut from = (0, 0);
    let part = |to: (usize, usize)| {
        let begin = std::mem::replace(&mut from, to);
        let (ours, theirs) = (a.content(begin.0, to.0), b.content(begin.1, to.1));
        (ours != theirs).then(|| Part {
            a: a.between(begin.0, to.0),
            b: b.between(begin.1, to.1),
            key: mix(ours.min(theirs), ours.max(theirs)),
            chunks: [(begin.0, to.0), (begin.1, to.1)],
        })
    };
    shared(a, b).into_iter().chain(ends).filter_map(part).collect()
}

/// Most bytes of a narrow part on either side, and largest difference of its sides.
const NARROW: (usize, usize) = (1 << 10, 64);

/// Returns true if both ends of a part certainly align the two texts.
///
/// A moved passage leaves a part next to it that is much longer on one side.
pub(super) fn is_narrow(part: &Part<'_>) -> bool {
    let (ours, theirs) = (part.a.len(), part.b.len());
    ours.max(theirs) <= NARROW.0 && ours.abs_diff(theirs) <= NARROW.1
}

/// Most bytes per cut of a part whose cuts say whether its sides are alike.
///
/// Texts of unrepeated lines have a cut in 32 bytes.
const SPARSE: usize = 128;

/// Returns false if the two sides of a part share almost no passages, in whatever order.
///
/// Repeated passages make no cuts; where most are repeated, they are counted.
pub(super) fn are_alike(part: &Part<'_>, [a, b]: [&LongText<'_>; 2]) -> bool {
    // The first chunk begins where the part does.
    let [ours, theirs] = part.chunks.map(|(first, end)| first + 1..end);
    if ours.len() * SPARSE < part.a.len() || theirs.len() * SPARSE < part.b.len() {
        return anchors::are_alike(part.a, part.b);
    }
    let most = ours.len().max(theirs.len());
    let cuts = &b.cuts[theirs];
    let shared = cuts.iter().filter(|cut| a.find(cut.passage).is_some_and(|at| ours.contains(&at)));
    anchors::is_enough(shared.count(), most)
}

/// Pairs the cuts at passages that both texts have, ascending in both.
fn shared(a: &LongText<'_>, b: &LongText<'_>) -> Vec<(usize, usize)> {
    let mut pairs = Vec::with_capacity(b.cuts.len());
    let numbers = (0..).zip(&b.cuts).skip(1);
    pairs.extend(numbers.filter_map(|(j, cut)| Some((a.find(cut.passage)?, j))));
    if pairs.is_sorted() {
        return pairs;
    }
    // Of several longest sequences, the choice must not depend on the order of the two texts.
    let turned = a.text <= b.text;
    let turn = |(i, j): (usize, usize)| if turned { (j, i) } else { (i, j) };
    let mut pairs: Vec<(usize, usize)> = pairs.into_iter().map(turn).collect();
    pairs.sort_unstable();
    anchors::rising(&pairs).into_iter().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(rng: &mut fastrand::Rng, words: usize) -> String {
        let words: Vec<String> = (0..words).map(|_| format!("{:x}", rng.u16(..))).collect();
        words.join(" ") + " "
    }

    /// The parts of two texts without common prefixes and suffixes.
    fn parts(a: &str, b: &str) -> Vec<(String, String)> {
        let (a, b) = (LongText::new(a), LongText::new(b));
        let differing = |part: Part<'_>| {
            let (a, b) = super::super::differing(part.a, part.b);
            (a.to_owned(), b.to_owned())
        };
        super::parts(&a, &b).into_iter().map(differing).collect()
    }

    #[test]
    fn equal_texts_have_no_parts_and_different_ones_have_one() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (a, b) = (prose(&mut rng, 5000), prose(&mut rng, 5000));
        assert_eq!(parts(&a, &a), []);
        assert_eq!(parts("", ""), []);
        assert_eq!(parts(&a, ""), [(a.clone(), String::new())]);
        assert_eq!(parts(&a, &b).len(), 1);
    }

    #[test]
    fn changes_become_separate_parts() {
        let mut rng = fastrand::Rng::with_seed(2);
        let [one, two, three] = [(); 3].map(|()| prose(&mut rng, 2000));
        let a = format!("{one}晴天{two}gone {three}");
        let b = format!("{one}雨天{two}{three}added");
        let expected = [("晴", "雨"), ("gone ", ""), ("", "added")];
        assert_eq!(parts(&a, &b), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        let moved = format!("{two}{one}");
        assert_eq!(parts(&format!("{one}{two}"), &moved).len(), 2);
    }

    #[test]
    fn sides_are_alike_if_they_share_passages_in_any_order() {
        let mut rng = fastrand::Rng::with_seed(5);
        let blocks = [(); 5].map(|()| prose(&mut rng, 1000));
        let [one, two, three, four, five] = blocks.each_ref().map(|block| &**block);
        let table = "all is well in the north of the country. ".repeat(800);
        let alike = |a: String, b: String| {
            let (a, b) = (LongText::new(a), LongText::new(b));
            let of = |a, b| -> Vec<bool> {
                super::parts(a, b).iter().map(|part| are_alike(part, [a, b])).collect()
            };
            assert_eq!(of(&a, &b), of(&b, &a));
            of(&a, &b)
        };
        let [a, b] = [[two, three, four].concat(), [four, three, two].concat()];
        assert_eq!(alike(a.clone(), one.to_owned()), [false]);
        // A block in order aligns; beside it, the other two are on opposite sides.
        assert_eq!(alike(a.clone(), b), [false, false]);
        let shuffled = [two, one, five, three, one, five].concat();
        let moved = [three, five, one, two, one, five].concat();
        assert!(alike(shuffled, moved).contains(&true));
        // Passages of a table make no cuts.
        assert_eq!(alike(table.clone(), table.replacen("well", "good", 300)), [true]);
        assert_eq!(alike(table, a), [false]);
    }

    #[test]
    fn swapping_the_texts_swaps_the_parts() {
        let mut rng = fastrand::Rng::with_seed(4);
        for _ in 0..30 {
            let blocks: Vec<String> = (0..6).map(|_| prose(&mut rng, 100)).collect();
            let mut text = || {
                let order: Vec<&str> = (0..8).map(|_| &*blocks[rng.usize(0..6)]).collect();
                order.concat()
            };
            let (a, b) = (text(), text());
            let turned = parts(&b, &a).into_iter().map(|(b, a)| (a, b));
            assert!(parts(&a, &b).into_iter().eq(turned));
        }
    }

    #[test]
    fn parts_and_equal_text_make_up_both_texts() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..50 {
            let text = prose(&mut rng, 3000).replace('7', "é").replace('8', "雨");
            let a: Vec<char> = text.chars().collect();
            let mut b = a.clone();
            for _ in 0..rng.usize(0..300) {
                let at = rng.usize(0..b.len());
                match rng.u8(0..3) {
                    0 => b.insert(at, '雪'),
                    1 => drop(b.remove(at)),
                    _ => b[at] = 'ê',
                }
            }
            let [a, b]: [String; 2] = [a, b].map(|text| text.into_iter().collect());
            let (a, b) = (LongText::new(a), LongText::new(b));
            let place = |text: &LongText<'_>, part: &str| {
                part.as_ptr() as usize - text.text.as_ptr() as usize
            };
            let (mut x, mut y) = (0, 0);
            for part in super::parts(&a, &b) {
                assert_eq!(a.text[x..place(&a, part.a)], b.text[y..place(&b, part.b)]);
                (x, y) = (place(&a, part.a) + part.a.len(), place(&b, part.b) + part.b.len());
            }
            assert_eq!(a.text[x..], b.text[y..]);
        }
    }
}
