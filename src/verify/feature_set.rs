//! Feature sets: the hashes of a document's features become a few bytes each, to be compared.
//!
//! A set of more than 1,024 features is cut to the 1,024 smallest hashes, which are a sample
//! without bias; the similarity is then that of the smallest of the union (bottom-k sketch:
//! Broder 1997; Cohen and Kaplan 2007).

use super::varint::{self, Rising};
use crate::error::{Error, Result};
use crate::text::Pipeline;

/// Features of one document that are kept at most.
pub const KEPT_FEATURES: usize = 1024;

/// Bits kept of a hash: two features fall together with a chance of 1 in 16 million.
const BITS: u32 = 24;

/// Bits kept of a hash where a set is so large that its smallest hashes lie close together.
const WIDE_BITS: u32 = 32;

/// Sets above this size keep wide hashes.
const WIDE_ABOVE: u32 = 1 << 16;

/// The distinct features of a document, in a few bytes each.
///
/// ```
/// use hamdex::verify::FeatureSet;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("code")?)?;
/// let abc = FeatureSet::of_text(&pipeline, "a b c d");
/// let bcd = FeatureSet::of_text(&pipeline, "b c d e");
/// assert_eq!(abc.jaccard(&bcd), 1.0 / 3.0); // they share "b c d" of three trigrams
/// assert_eq!(FeatureSet::decode(&abc.encode())?, abc);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeatureSet {
    total: u32,
    /// Leading bits of the smallest hashes, rising; how many bits follows from the total.
    values: Vec<u32>,
}

impl FeatureSet {
    /// Takes the features that a pipeline finds in a text.
    pub fn of_text(pipeline: &Pipeline, text: &str) -> Self {
        Self::from_hashes(&pipeline.distinct_hashes(text))
    }

    /// Takes 64-bit hashes that are distinct and rise, as of [`Pipeline::distinct_hashes`].
    ///
    /// Hashes in another order are no fault, but make a smaller set.
    pub fn from_hashes(hashes: &[u64]) -> Self {
        let total = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
        let bits = bits_of(total);
        let mut values: Vec<u32> = Vec::with_capacity(hashes.len().min(KEPT_FEATURES));
        for hash in hashes {
            let value = u32::try_from(hash >> (u64::BITS - bits)).expect("32 bits at most");
            if values.last().is_none_or(|last| *last < value) {
                if values.len() == KEPT_FEATURES {
                    break;
                }
                values.push(value);
            }
        }
        Self { total, values }
    }

    /// Returns how many features the document has, kept or not.
    pub fn len(&self) -> u32 {
        self.total
    }

    /// Tells whether the document has no feature.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the bytes: number of features, then the gaps between hashes, all LEB128.
    ///
    /// About 3 bytes a feature below 1,000 features, 2 to 3 KiB for any document above.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(5 + 3 * self.values.len());
        varint::put(&mut out, self.total);
        varint::put_rising(&mut out, &self.values);
        out
    }

    /// Reads the bytes of [`encode`](Self::encode) back.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for bytes that `encode` never writes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut encoded = Encoded::new(bytes)?;
        let mut values = Vec::new();
        while let Some(value) = encoded.next_value()? {
            values.push(value);
        }
        Ok(Self { total: encoded.total, values })
    }

    /// Refuses bytes that `encode` never writes, without keeping anything.
    pub(crate) fn check(bytes: &[u8]) -> Result<()> {
        let mut encoded = Encoded::new(bytes)?;
        while encoded.next_value()?.is_some() {}
        Ok(())
    }

    /// Returns the part of their features that two documents share, 0 to 1.
    ///
    /// Up to hashes of different features that fall together (1 in 16 million a pair) this is
    /// exact when neither set has more than [`KEPT_FEATURES`]; above, it is an estimate with a
    /// standard error of at most sqrt(J (1 - J) / 1024), which is 0.016 at worst and 0.009 at
    /// J = 0.9. Two empty sets share nothing: 0.
    pub fn jaccard(&self, other: &Self) -> f64 {
        let (mut ours, mut theirs) = (self.values.iter().copied(), other.values.iter().copied());
        let ours = Stream::new(self.total, || Ok(ours.next()));
        let theirs = Stream::new(other.total, || Ok(theirs.next()));
        jaccard(ours, theirs).expect("nothing is decoded")
    }
}

/// Compares two encoded sets without decoding them first.
///
/// # Errors
///
/// [`Error::Corrupt`] for bytes that [`FeatureSet::encode`] never writes.
pub(super) fn jaccard_encoded(a: &[u8], b: &[u8]) -> Result<f64> {
    let (mut a, mut b) = (Encoded::new(a)?, Encoded::new(b)?);
    jaccard(Stream::new(a.total, || a.next_value()), Stream::new(b.total, || b.next_value()))
}

/// Merges two sets as far as both are known and counts what they share.
fn jaccard<A, B>(mut a: Stream<A>, mut b: Stream<B>) -> Result<f64>
where
    A: FnMut() -> Result<Option<u32>>,
    B: FnMut() -> Result<Option<u32>>,
{
    let bits = bits_of(a.total).min(bits_of(b.total));
    (a.shift, b.shift) = (bits_of(a.total) - bits, bits_of(b.total) - bits);
    let most = if a.is_cut() || b.is_cut() { KEPT_FEATURES } else { usize::MAX };
    let (mut union, mut shared) = (0_usize, 0_usize);
    let (mut left, mut right) = (a.next()?, b.next()?);
    while union < most {
        let (from_left, from_right) = match (left, right) {
            (Some(l), Some(r)) => (l <= r, r <= l),
            // Beyond the last hash that a cut set keeps, nothing is known of it.
            (None, Some(_)) if !a.is_cut() => (false, true),
            (Some(_), None) if !b.is_cut() => (true, false),
            _ => break,
        };
        union += 1;
        shared += usize::from(from_left && from_right);
        if from_left {
            left = a.next()?;
        }
        if from_right {
            right = b.next()?;
        }
    }
    Ok(shared as f64 / union.max(1) as f64)
}

/// How many bits of each hash a set of so many features keeps.
fn bits_of(total: u32) -> u32 {
    if total > WIDE_ABOVE { WIDE_BITS } else { BITS }
}

/// Rising hashes of one set, brought to the width of the other's.
struct Stream<N> {
    total: u32,
    next: N,
    shift: u32,
    last: Option<u32>,
}

impl<N: FnMut() -> Result<Option<u32>>> Stream<N> {
    fn new(total: u32, next: N) -> Self {
        Self { total, next, shift: 0, last: None }
    }

    fn is_cut(&self) -> bool {
        self.total as usize > KEPT_FEATURES
    }

    #[inline]
    fn next(&mut self) -> Result<Option<u32>> {
        loop {
            let Some(value) = (self.next)()? else { return Ok(None) };
            let value = Some(value >> self.shift);
            if value != self.last {
                self.last = value;
                return Ok(value);
            }
        }
    }
}

/// An encoded set that is read hash by hash.
struct Encoded<'a> {
    total: u32,
    values: Rising<'a>,
}

impl<'a> Encoded<'a> {
    fn new(mut bytes: &'a [u8]) -> Result<Self> {
        let total = varint::take(&mut bytes).ok_or_else(|| damage("has no size"))?;
        Ok(Self { total, values: Rising::new(bytes) })
    }

    #[inline]
    fn next_value(&mut self) -> Result<Option<u32>> {
        if self.values.is_at_end() {
            if self.values.read == 0 && self.total > 0 {
                return Err(damage("has a size and no features"));
            }
            return Ok(None);
        }
        let value = self.values.take(bits_of(self.total)).map_err(damage)?;
        if self.values.read as usize > KEPT_FEATURES.min(self.total as usize) {
            return Err(damage("has more features than its size"));
        }
        Ok(Some(value))
    }
}

fn damage(what: &str) -> Error {
    Error::corrupt("evidence", format!("feature set {what}"))
}

#[cfg(test)]
mod tests;
