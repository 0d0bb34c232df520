//! Anchors: passages that are chosen by their hash, so that every text chooses the same ones.
#![expect(clippy::indexing_slicing, reason = "pairs are numbered here")]

/// Bytes of a passage: ten Chinese characters or five English words.
const PASSAGE: usize = 32;

/// One passage in 2^5 is an anchor.
const ANCHORS: u32 = 5;

/// One passage in 2^3 is compared to decide whether texts are alike. A repeated line has few
/// passages.
const SAMPLES: u32 = 3;

/// Approximate limit of the passages chosen per text, so that memory stays at a few megabytes.
const PASSAGES: usize = 1 << 17;

/// Texts that share less than one passage in 64 are different.
const ALIKE: usize = 64;

/// Bits by which the hash is shifted per byte, so that a byte leaves it after a passage.
const STEP: u32 = 2;
const _: () = assert!(STEP as usize * PASSAGE == u64::BITS as usize);

/// A random word for each byte.
static WORDS: [u64; 256] = words();

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

/// The hash of a passage, and the offset of its first byte.
pub(super) type Passage = (u64, usize);

/// Returns the anchors of a text by position: about one per 32 bytes, fewer in huge texts.
pub(super) fn passages(text: &str) -> Vec<Passage> {
    chosen(text, sparse(ANCHORS, text.len()))
}

/// Returns false if two texts share almost no passages, counting repeats.
pub(super) fn are_alike(a: &str, b: &str) -> bool {
    let sparse = sparse(SAMPLES, a.len().max(b.len()));
    let [ours, theirs] = [a, b].map(|text| {
        let mut passages = chosen(text, sparse);
        passages.sort_unstable();
        passages
    });
    is_enough(in_both(&ours, &theirs).count(), ours.len().max(theirs.len()))
}

/// Returns true if texts are alike that have `shared` of `all` passages in common.
pub(super) fn is_enough(shared: usize, all: usize) -> bool {
    shared * ALIKE >= all
}

/// Returns how many high bits of the hash must be zero in chosen passages.
///
/// Passages chosen in a longer text are also chosen in a shorter one.
fn sparse(least: u32, len: usize) -> u32 {
    least.max((len / PASSAGES).checked_ilog2().map_or(0, |bits| bits + 1))
}

/// Pairs the positions of equal passages. Both sides are sorted by hash.
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

/// Returns the passages whose hash starts with `sparse` zero bits, by position.
fn chosen(text: &str, sparse: u32) -> Vec<Passage> {
    let room = 2 * (text.len() >> sparse);
    let (mut found, mut behind) = (Vec::with_capacity(room), Vec::with_capacity(room / 2));
    let look = |found: &mut Vec<Passage>, hash: u64, end: usize| {
        // The high bits depend on all bytes of the passage.
        if hash >> (u64::BITS - sparse) == 0
            && let Some(start) = end.checked_sub(PASSAGE)
            && text.is_char_boundary(start)
        {
            found.push((hash, start));
        }
    };
    let roll = |hash: u64, byte: u8| (hash << STEP).wrapping_add(WORDS[usize::from(byte)]);
    // A hash depends on the one before it, so two halves of the text are hashed in parallel.
    let bytes = text.as_bytes();
    let (left, right) = bytes.split_at(bytes.len() / 2);
    let warm = left.len().saturating_sub(PASSAGE);
    let before = left[warm..].iter().fold(0, |hash, &b| roll(hash, b));
    let mut hashes = (0, before);
    for ((&ours, &theirs), end) in left.iter().zip(right).zip(1..) {
        hashes = (roll(hashes.0, ours), roll(hashes.1, theirs));
        look(&mut found, hashes.0, end);
        look(&mut behind, hashes.1, left.len() + end);
    }
    if let (Some(&last), true) = (bytes.last(), right.len() > left.len()) {
        look(&mut behind, roll(hashes.1, last), bytes.len());
    }
    found.append(&mut behind);
    found
}

/// Returns the longest sequence of pairs that ascends on both sides.
///
/// The pairs are sorted by first position, and no position occurs twice.
pub(super) fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends`: the last pair of the best sequence of each length. `follows`: the predecessor of each
    // pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut follows: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let second = |at: usize| pairs[at].1;
    for (at, &(_, j)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| second(end) < j);
        follows.push(length.checked_sub(1).map(|before| ends[before]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut sequence = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(here) = at {
        sequence.push(pairs[here]);
        at = follows[here];
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
    fn texts_are_alike_if_they_share_passages_repeated_or_not() {
        let mut rng = fastrand::Rng::with_seed(4);
        let (a, b) = (prose(&mut rng, 5000), prose(&mut rng, 5000));
        let table = "all is well in the north of the country. ".repeat(1000);
        assert!(are_alike(&a, &a) && !are_alike(&a, &b) && !are_alike(&a, &table));
        assert!(are_alike(&table, &table.replacen("well", "good", 300)));
        assert!(are_alike(&a, &(b + &a)));
        assert!(are_alike("", ""));
    }
}
