//! Edit similarity: the share of the longer text that need not be changed.

use rapidfuzz::distance::levenshtein;

use crate::error::Result;

mod anchors;
mod bound;
mod chunks;
mod known;

pub(super) use chunks::LongText;
use chunks::Part;

/// Characters of the longer text up to which the similarity is always exact.
pub(super) const EXACT_CHARS: usize = 1 << 11;

/// Most characters of a part that are compared in one piece.
const PIECE_CHARS: usize = 1 << 12;

/// Bytes of parts whose edits are always counted completely, so that they can be cached.
const SHORT_BYTES: usize = 1 << 8;

/// Most edits for which a band of one machine word is enough.
const BAND_EDITS: usize = 31;

/// First bound that is tried when pieces are compared.
const FEW_EDITS: usize = 64;

/// Edits from which counting n-grams costs less than the distance that it may save.
const MANY_EDITS: usize = 512;

/// Returns the edit similarity, if it is at least `threshold`.
///
/// It is 1 - edits / characters of the longer text. Edits are insertions, deletions and
/// substitutions of single characters (Levenshtein). Two empty texts have similarity 1. Stops once
/// the texts certainly need too many edits.
///
/// Computes the distance with Hyyrö's bit vectors, in a band as wide as the threshold allows, after
/// removing common prefixes and suffixes. Bounds by lengths, letters and n-grams reject many pairs
/// first, which changes no result.
///
/// Texts of more than 2,048 characters are cut at passages that both have once, and the parts are
/// compared one to one, unless a part is wide and at most 4,096 characters differ. Parts above
/// 4,096 characters are compared in equal pieces, or treated as completely different if they share
/// less than 1 in 64 of their passages. The result for such texts may be too low, but never too
/// high; the time is linear in their length.
///
/// ```
/// use hamdex::verify::edit_similarity;
///
/// assert_eq!(edit_similarity("0123456789", "012345678", 0.9), Some(0.9));
/// assert_eq!(edit_similarity("0123456789", "01234567", 0.9), None);
/// ```
pub fn edit_similarity(a: &str, b: &str, threshold: f64) -> Option<f64> {
    similarity_while(a, b, threshold, &|| Ok(())).expect("it is never cancelled")
}

/// Does what [`edit_similarity`] does, calling `check_cancelled` between pieces of long texts.
///
/// A piece takes about ten milliseconds at most.
pub(super) fn similarity_while(
    a: &str,
    b: &str,
    threshold: f64,
    check_cancelled: &dyn Fn() -> Result<()>,
) -> Result<Option<f64>> {
    let lens = (a.chars().count(), b.chars().count());
    let edits = |most| edits_up_to(a, b, most, check_cancelled);
    similarity_by(lens, threshold, edits)
}

/// Does what [`similarity_while`] does for texts whose chunks are known.
pub(super) fn similarity_of_long(
    a: &LongText<'_>,
    b: &LongText<'_>,
    threshold: f64,
    check_cancelled: &dyn Fn() -> Result<()>,
) -> Result<Option<f64>> {
    let is_short = a.chars.max(b.chars) <= EXACT_CHARS;
    similarity_by((a.chars, b.chars), threshold, |most| {
        if is_short {
            Ok(exact_edits(&a.text, &b.text, most))
        } else {
            edits_of_long(a, b, most, check_cancelled)
        }
    })
}

/// Converts edits, counted up to the most that the threshold allows, to a similarity.
fn similarity_by(
    lens: (usize, usize),
    threshold: f64,
    edits: impl FnOnce(usize) -> Result<Option<usize>>,
) -> Result<Option<f64>> {
    let longest = lens.0.max(lens.1);
    let similarity = |edits: usize| {
        if longest == 0 { 1.0 } else { longest.saturating_sub(edits) as f64 / longest as f64 }
    };
    // The difference of the lengths is a lower bound of the edits.
    if similarity(lens.0.abs_diff(lens.1)) < threshold {
        return Ok(None);
    }
    let edits = edits(most_edits(longest, threshold))?;
    Ok(edits.map(similarity).filter(|similarity| *similarity >= threshold))
}

/// Returns the most edits that reach the threshold, or one more because of rounding.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn most_edits(longest: usize, threshold: f64) -> usize {
    let edits = (1.0 - threshold) * longest as f64;
    // The cast saturates, and a text cannot need more edits than it has characters.
    let whole = edits as usize;
    // Without SSE4.1, `ceil` is a call, and most pairs are only rejected.
    whole.saturating_add(usize::from(edits > whole as f64)).min(longest)
}

/// Removes the common prefix and suffix.
fn differing<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str) {
    let begin = common_start(a, b);
    let (a, b) = (&a[begin..], &b[begin..]);
    let end = common_end(a, b);
    (&a[..a.len() - end], &b[..b.len() - end])
}

/// Bytes compared at once.
const LANE: usize = 32;

/// Returns the length in bytes of the common prefix, in whole characters.
fn common_start(a: &str, b: &str) -> usize {
    let (ours, theirs) = (a.as_bytes(), b.as_bytes());
    let lanes = ours.chunks_exact(LANE).zip(theirs.chunks_exact(LANE));
    let begin = lanes.take_while(|(x, y)| x == y).count() * LANE;
    let rest = ours.iter().zip(theirs).skip(begin);
    let mut len = begin + rest.take_while(|(x, y)| x == y).count();
    while !(a.is_char_boundary(len) && b.is_char_boundary(len)) {
        len -= 1;
    }
    len
}

/// Returns the length in bytes of the common suffix, in whole characters.
fn common_end(a: &str, b: &str) -> usize {
    let (ours, theirs) = (a.as_bytes(), b.as_bytes());
    let lanes = ours.rchunks_exact(LANE).zip(theirs.rchunks_exact(LANE));
    let end = lanes.take_while(|(x, y)| x == y).count() * LANE;
    let rest = ours.iter().rev().zip(theirs.iter().rev()).skip(end);
    let mut len = end + rest.take_while(|(x, y)| x == y).count();
    while !a.is_char_boundary(a.len() - len) {
        len -= 1;
    }
    len
}

/// Counts the edits between two texts; `None` if there are more than `most`.
fn edits_up_to(
    a: &str,
    b: &str,
    most: usize,
    check_cancelled: &dyn Fn() -> Result<()>,
) -> Result<Option<usize>> {
    if a.chars().count().max(b.chars().count()) <= EXACT_CHARS {
        return Ok(exact_edits(a, b, most));
    }
    edits_of_long(&LongText::new(a), &LongText::new(b), most, check_cancelled)
}

/// Does what [`edits_up_to`] does for texts whose chunks are known.
fn edits_of_long(
    a: &LongText<'_>,
    b: &LongText<'_>,
    most: usize,
    check_cancelled: &dyn Fn() -> Result<()>,
) -> Result<Option<usize>> {
    let mut left = most;
    let parts = chunks::parts(a, b);
    if !parts.iter().all(chunks::is_narrow) {
        let (a, b) = differing(&a.text, &b.text);
        if a.chars().count().max(b.chars().count()) <= PIECE_CHARS {
            return Ok(exact_up_to(a, b, most));
        }
    }
    let is_short = |part: &Part<'_>| part.a.len().max(part.b.len()) <= SHORT_BYTES;
    let (short, long): (Vec<Part<'_>>, Vec<Part<'_>>) = parts.into_iter().partition(is_short);
    // What nothing aligns decides most pairs that fail, and is found without comparing letters.
    let mut alike = Vec::new();
    for part in &long {
        let (ours, theirs) = differing(part.a, part.b);
        let longest = ours.chars().count().max(theirs.chars().count());
        if longest <= PIECE_CHARS || chunks::are_alike(part, [a, b]) {
            alike.push((part.key, ours, theirs));
        } else if longest <= left {
            left -= longest;
        } else {
            return Ok(None);
        }
    }
    // Short parts next: texts of one template have many, and other pairs have cached them.
    for part in short {
        let count = |_| Ok(levenshtein_of(part.a, part.b));
        let Some(found) = known::edits(part.key, left, count)? else { return Ok(None) };
        left -= found;
    }
    // Most other pairs that fail do so by letters that only one side of a part has.
    let mut least = 0;
    for (_, ours, theirs) in &alike {
        least += bound::letters(ours, theirs);
        if least > left {
            return Ok(None);
        }
    }
    for (key, ours, theirs) in alike {
        check_cancelled()?;
        let count = |most| part_edits(ours, theirs, most, check_cancelled);
        let Some(found) = known::edits(key, left, count)? else { return Ok(None) };
        left -= found;
    }
    Ok(Some(most - left))
}

/// Counts the edits between two short texts; `None` if there are more than `most`.
fn exact_edits(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b) = differing(a, b);
    exact_up_to(a, b, most)
}

/// Counts the edits between two texts short enough for an exact result.
fn exact_up_to(a: &str, b: &str, most: usize) -> Option<usize> {
    // A band of one word per row costs less than the bounds, and is enough for near texts.
    let found = distance(a, b, most.min(BAND_EDITS), BAND_EDITS);
    if found.is_some() || most <= BAND_EDITS {
        return found;
    }
    let least =
        if most < MANY_EDITS { bound::letters(a, b) } else { bound::least(a, b, most).ok()? };
    if least > most {
        return None;
    }
    // Bands narrower than the lower bound cannot succeed. The full band comes first if the narrower
    // ones together would cost nearly as much.
    let hint = FEW_EDITS.max(least * 5 / 4);
    distance(a, b, most, if hint * 2 > most { most } else { hint })
}

/// Counts the edits between two parts, in equal pieces if they are long; `None` above `most`.
fn part_edits(
    a: &str,
    b: &str,
    most: usize,
    check_cancelled: &dyn Fn() -> Result<()>,
) -> Result<Option<usize>> {
    let lens = (a.chars().count(), b.chars().count());
    if lens.0.abs_diff(lens.1) > most {
        return Ok(None);
    }
    let longest = lens.0.max(lens.1);
    let pieces = longest.div_ceil(PIECE_CHARS).max(1);
    let (mut a, mut b) = (Pieces::new(a, lens.0, pieces), Pieces::new(b, lens.1, pieces));
    let (mut left, mut hint) = (most, FEW_EDITS);
    for piece in 0..pieces {
        if piece > 0 {
            check_cancelled()?;
        }
        let Some(found) = distance(a.next(), b.next(), left, hint) else { return Ok(None) };
        left -= found;
        // The pieces of one text need similar numbers of edits.
        hint = found.max(FEW_EDITS);
    }
    Ok(Some(most - left))
}

/// Counts all edits between two parts.
fn levenshtein_of(a: &str, b: &str) -> Option<usize> {
    let (a, b) = differing(a, b);
    if a.is_empty() || b.is_empty() {
        return Some(a.chars().count().max(b.chars().count()));
    }
    // A hint below the difference of the lengths makes rapidfuzz 0.5 return wrong results.
    distance(a, b, BAND_EDITS, BAND_EDITS).or_else(|| distance(a, b, usize::MAX, usize::MAX))
}

/// Computes the edits between two pieces; `None` if there are more than `most`.
///
/// `hint` is the first bound tried, doubled until it is enough; it changes only the time. It must
/// be at least 64 or `most`.
fn distance(a: &str, b: &str, most: usize, hint: usize) -> Option<usize> {
    let args = levenshtein::Args::default().score_cutoff(most).score_hint(hint.min(most));
    if a.is_ascii() && b.is_ascii() {
        return levenshtein::distance_with_args(a.bytes(), b.bytes(), &args);
    }
    levenshtein::distance_with_args(a.chars(), b.chars(), &args)
}

/// Cuts a text into pieces with equal numbers of characters.
struct Pieces<'a> {
    rest: &'a str,
    chars: usize,
    count: usize,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str, chars: usize, count: usize) -> Self {
        Self { rest: text, chars, count }
    }

    fn next(&mut self) -> &'a str {
        let take = self.chars.div_ceil(self.count.max(1));
        let end = self.rest.char_indices().nth(take).map_or(self.rest.len(), |(at, _)| at);
        let (piece, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.chars -= take;
        self.count = self.count.saturating_sub(1);
        piece
    }
}

#[cfg(test)]
mod tests;
