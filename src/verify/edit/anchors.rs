//! Anchors: passages that two long texts share cut them into parts to be compared.
//!
//! A passage that each text has once stands for the same place in both, and the longest sequence
//! of such passages that rises in both texts is kept, as patience diff does with lines. Whatever
//! the cut, the edits of all parts together turn one text into the other: a bad cut needs too
//! many of them, never too few.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use xxhash_rust::xxh3::xxh3_64;

use super::{common_end, common_start};

/// Bytes of a passage: ten Chinese characters, five English words.
const PASSAGE: usize = 32;

/// One passage in 32 is an anchor, chosen by its hash, so that both texts choose alike.
const ANCHORS: u32 = 5;

/// One passage in eight says whether texts are alike: of a line that is repeated there are few.
const SAMPLES: u32 = 3;

/// Passages of a text that are looked at, about, so that memory is a few megabytes.
const PASSAGES: usize = 1 << 17;

/// Texts that share less than one passage in 64 are unlike.
const ALIKE: usize = 64;

/// Bits by which a byte moves up as the next one comes, so that it is gone after a passage.
const STEP: u32 = 2;
const _: () = assert!(STEP as usize * PASSAGE == u64::BITS as usize);

/// A word without a pattern for each byte.
static WORDS: [u64; 256] = words();

#[allow(clippy::indexing_slicing)] // a loop over all of a table at compile time
const fn words() -> [u64; 256] {
    let mut words = [0; 256];
    let (mut at, mut state) = (0, 0_u64);
    while at < words.len() {
        // SplitMix64 (Steele, Lea and Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        words[at] = mixed ^ mixed >> 31;
        at += 1;
    }
    words
}

/// Returns the parts that differ, in order; what lies between them is equal.
pub(super) fn parts<'a>(a: &'a str, b: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut parts = Vec::new();
    let (mut left, mut right) = (a, b);
    for (i, j) in rising(&shared(a, b)) {
        // What is left ends where the texts end, so places count from there.
        let (x, y) = (a.len() - left.len(), b.len() - right.len());
        let (Some(i), Some(j)) = (i.checked_sub(x), j.checked_sub(y)) else { continue };
        let split = left.split_at_checked(i).zip(right.split_at_checked(j));
        let Some(((ours, our_rest), (theirs, their_rest))) = split else { continue };
        let after = common_start(our_rest, their_rest);
        // A hash may be that of another passage.
        if after == 0 {
            continue;
        }
        let before = common_end(ours, theirs);
        let part = |text: &'a str| text.get(..text.len() - before).unwrap_or(text);
        parts.push((part(ours), part(theirs)));
        left = our_rest.get(after..).unwrap_or_default();
        right = their_rest.get(after..).unwrap_or_default();
    }
    parts.push((left, right));
    parts.retain(|(a, b)| !(a.is_empty() && b.is_empty()));
    parts
}

/// Returns false if two texts share next to no passage, however often they have each.
pub(super) fn are_alike(a: &str, b: &str) -> bool {
    let sparse = sparse(SAMPLES, a, b);
    let (ours, theirs) = (passages(a, sparse), passages(b, sparse));
    let all = ours.len().max(theirs.len());
    in_both(&ours, &theirs).count() * ALIKE >= all
}

/// High bits of the hash that are zero for passages of two texts that are looked at.
fn sparse(least: u32, a: &str, b: &str) -> u32 {
    let longest = a.len().max(b.len());
    least.max((longest / PASSAGES).checked_ilog2().map_or(0, |bits| bits + 1))
}

/// Returns where passages are that each text has once, by their place in the first.
fn shared(a: &str, b: &str) -> Vec<(usize, usize)> {
    let sparse = sparse(ANCHORS, a, b);
    let (ours, theirs) = (remembered(a, sparse), remembered(b, sparse));
    let mut shared: Vec<_> = in_both(&ours, &theirs).collect();
    shared.sort_unstable();
    shared
}

/// Pairs the places of equal passages; both sides come by rising hash.
fn in_both<'a>(
    ours: &'a [(u64, usize)],
    theirs: &'a [(u64, usize)],
) -> impl Iterator<Item = (usize, usize)> + use<'a> {
    let mut theirs = theirs.iter().copied().peekable();
    ours.iter().copied().filter_map(move |(hash, i)| {
        while theirs.next_if(|other| other.0 < hash).is_some() {}
        theirs.next_if(|other| other.0 == hash).map(|(_, j)| (i, j))
    })
}

/// Texts whose anchors a thread remembers: pages of one template are compared with each other.
const REMEMBERED: usize = 16;

/// Anchors of a text that are remembered at most: 128 KiB.
const MOST_ANCHORS: usize = 1 << 13;

/// The anchors of a text: hash and place of each, by rising hash.
type Anchors = Rc<[(u64, usize)]>;

/// What a text is known by: its hash, its length and how sparse its anchors are.
type Known = (u64, usize, u32);

thread_local! {
    /// The anchors of the last texts.
    static LAST: RefCell<VecDeque<(Known, Anchors)>> = const { RefCell::new(VecDeque::new()) };
}

/// Does what [`single`] does, and nothing for a text that it did lately.
///
/// Anchors of another text of the same hash would do no harm: places are compared before use.
fn remembered(text: &str, sparse: u32) -> Anchors {
    let key = (xxh3_64(text.as_bytes()), text.len(), sparse);
    LAST.with_borrow_mut(|last| {
        if let Some(at) = last.iter().position(|(known, _)| *known == key) {
            // To the front, so that a text that is compared with many stays.
            last.swap(0, at);
            return last.front().map(|(_, anchors)| Rc::clone(anchors)).unwrap_or_default();
        }
        let anchors: Anchors = single(text, sparse).into();
        if anchors.len() <= MOST_ANCHORS {
            last.truncate(REMEMBERED - 1);
            last.push_front((key, Rc::clone(&anchors)));
        }
        anchors
    })
}

/// Returns hash and place of the passages that a text has once, by rising hash.
fn single(text: &str, sparse: u32) -> Vec<(u64, usize)> {
    let found = passages(text, sparse);
    let groups = found.chunk_by(|a, b| a.0 == b.0);
    groups.filter(|group| group.len() == 1).flatten().copied().collect()
}

/// Returns hash and place of the passages that are looked at, by rising hash.
fn passages(text: &str, sparse: u32) -> Vec<(u64, usize)> {
    let mut found = Vec::with_capacity(2 * (text.len() >> sparse));
    let mut look = |hash: u64, end: usize| {
        // All bytes of the passage reach the high bits.
        if hash >> (u64::BITS - sparse) == 0
            && let Some(start) = end.checked_sub(PASSAGE)
            && text.is_char_boundary(start)
        {
            found.push((hash, start));
        }
    };
    let roll = |hash: u64, byte: u8| {
        (hash << STEP).wrapping_add(WORDS.get(usize::from(byte)).copied().unwrap_or(0))
    };
    // The hash of a byte waits for that of the byte before it, so two halves take turns.
    let bytes = text.as_bytes();
    let (left, right) = bytes.split_at(bytes.len() / 2);
    let warm = left.len().saturating_sub(PASSAGE);
    let before = left.get(warm..).unwrap_or_default().iter().fold(0, |hash, &b| roll(hash, b));
    let mut hashes = (0, before);
    for ((&ours, &theirs), end) in left.iter().zip(right).zip(1..) {
        hashes = (roll(hashes.0, ours), roll(hashes.1, theirs));
        look(hashes.0, end);
        look(hashes.1, left.len() + end);
    }
    if let (Some(&last), true) = (bytes.last(), right.len() > left.len()) {
        look(roll(hashes.1, last), bytes.len());
    }
    found.sort_unstable();
    found
}

/// Returns the longest sequence of pairs that rises on both sides.
///
/// Pairs come by rising first place, and no place comes twice.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best sequence of each length, and before each pair the one it follows.
    let mut ends: Vec<usize> = Vec::new();
    let mut follows: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let second = |at: usize| pairs.get(at).map_or(0, |pair| pair.1);
    for (at, &(_, j)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| second(end) < j);
        follows.push(length.checked_sub(1).and_then(|before| ends.get(before)).copied());
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut sequence = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(here) = at {
        sequence.extend(pairs.get(here));
        at = follows.get(here).copied().flatten();
    }
    sequence.reverse();
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(rng: &mut fastrand::Rng, words: usize) -> String {
        let words: Vec<String> = (0..words).map(|_| format!("{:x}", rng.u16(..))).collect();
        words.join(" ") + " "
    }

    #[test]
    fn the_longest_rising_sequence_is_found() {
        let of = |seconds: &[usize]| -> Vec<usize> {
            let pairs: Vec<(usize, usize)> = (0..).zip(seconds.iter().copied()).collect();
            rising(&pairs).into_iter().map(|pair| pair.1).collect()
        };
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[3]), [3]);
        assert_eq!(of(&[7, 8, 1, 2, 3, 9]), [1, 2, 3, 9]);
        assert_eq!(of(&[5, 4, 3]), [3]);
    }

    #[test]
    fn equal_texts_have_no_parts_and_unlike_ones_are_one() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (a, b) = (prose(&mut rng, 5000), prose(&mut rng, 5000));
        assert_eq!(parts(&a, &a), []);
        assert_eq!(parts("", ""), []);
        assert_eq!(parts(&a, ""), [(a.as_str(), "")]);
        assert_eq!(parts(&a, &b), [(a.as_str(), b.as_str())]);
    }

    #[test]
    fn texts_are_alike_if_they_share_passages_though_they_repeat_them() {
        let mut rng = fastrand::Rng::with_seed(4);
        let (a, b) = (prose(&mut rng, 5000), prose(&mut rng, 5000));
        let table = "all is well in the north of the country. ".repeat(1000);
        assert!(are_alike(&a, &a) && !are_alike(&a, &b) && !are_alike(&a, &table));
        assert!(are_alike(&table, &table.replacen("well", "good", 300)));
        assert!(are_alike(&a, &(b + &a)));
        assert!(are_alike("", ""));
    }

    #[test]
    fn changes_are_cut_out_of_what_is_equal() {
        let mut rng = fastrand::Rng::with_seed(2);
        let [one, two, three] = [(); 3].map(|()| prose(&mut rng, 2000));
        let a = format!("{one}晴天{two}gone {three}");
        let b = format!("{one}雨天{two}{three}added");
        assert_eq!(parts(&a, &b), [("晴", "雨"), ("gone ", ""), ("", "added")]);
        let moved = format!("{two}{one}");
        assert_eq!(parts(&format!("{one}{two}"), &moved).len(), 2);
    }

    #[test]
    fn parts_and_what_is_equal_are_the_whole_text() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..50 {
            let a: Vec<char> =
                prose(&mut rng, 3000).replace('7', "é").replace('8', "雨").chars().collect();
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
            let (mut x, mut y) = (0, 0);
            for (ours, theirs) in parts(&a, &b) {
                let (at, to) = (a.len() - a[x..].len(), b.len() - b[y..].len());
                let start = ours.as_ptr() as usize - a.as_ptr() as usize;
                let begin = theirs.as_ptr() as usize - b.as_ptr() as usize;
                assert_eq!(a[at..start], b[to..begin]);
                (x, y) = (start + ours.len(), begin + theirs.len());
            }
            assert_eq!(a[x..], b[y..]);
        }
    }
}
