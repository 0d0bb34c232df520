//! Learning a centre: the distinct texts of a sample vote on the usual share of each bit.
//!
//! Near-duplicates share one vote. Otherwise the centre of a corpus made from one template would be
//! the template itself, and the remaining differences, numbers and names, would separate its texts.
#![expect(clippy::indexing_slicing, reason = "sketches are numbered here")]

use std::sync::Arc;

use rayon::prelude::*;

use super::{BITS, Centre, of_simhash};
use crate::error::Result;
use crate::text::pipeline::Pipeline;

/// Maximum number of texts; more change the centre by less than a bit's noise.
const MOST: usize = 2048;

/// Minimum number of votes that represent a corpus.
const FEWEST: usize = 64;

/// Feature hashes by which two texts are compared.
const KEPT: usize = 64;

/// Two texts are alike if they share at least one in this many features.
const ALIKE: usize = 2;

impl Centre {
    /// Learns the usual share of each bit from a sample of texts.
    ///
    /// The share of a bit is the mean over the middle half of the texts. Texts that share half of
    /// their features count once. Returns `None` if fewer than 64 texts are left, because these do
    /// not represent a corpus.
    ///
    /// Reads up to 2,048 texts, spread evenly over `texts`; each takes about three times as long as
    /// a fingerprint. The same texts in the same order give the same centre. A centre of `pipeline`
    /// is ignored. [`Centre`] has an example.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`](crate::Error::InvalidOption) if the sketch is not
    /// [`SketchKind::SimHash`](crate::sketch::SketchKind::SimHash).
    pub fn learn<T: AsRef<str> + Sync>(pipeline: &Pipeline, texts: &[T]) -> Result<Option<Self>> {
        of_simhash(pipeline.options().sketch)?;
        let stride = texts.len().div_ceil(MOST).max(1);
        let chosen: Vec<&str> = texts.iter().step_by(stride).map(AsRef::as_ref).collect();
        let sketches: Vec<Vec<u64>> = chosen.par_iter().map(|text| least(pipeline, text)).collect();
        let voters = voters(&sketches);
        let votes: Vec<Vec<u16>> = voters
            .par_iter()
            .filter_map(|&at| {
                let text = chosen.get(at)?;
                let mut shares = pipeline.shares::<u64>(text)?;
                shares.extend(pipeline.shares::<u128>(text)?);
                Some(shares)
            })
            .collect();
        if votes.len() < FEWEST {
            return Ok(None);
        }
        let offsets = std::array::from_fn(|bit| {
            let column = votes.iter().filter_map(|shares| shares.get(bit).copied());
            middle(column.collect())
        });
        Ok(Some(Self { offsets: Arc::<[i16; BITS]>::new(offsets) }))
    }
}

/// Returns the lowest [`KEPT`] hashes of a text's distinct features, ascending.
fn least(pipeline: &Pipeline, text: &str) -> Vec<u64> {
    let mut hashes = pipeline.distinct_hashes(text);
    hashes.truncate(KEPT);
    hashes.shrink_to_fit();
    hashes
}

/// Returns the first text of each group of alike texts; skips texts without features.
fn voters(sketches: &[Vec<u64>]) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for (at, sketch) in sketches.iter().enumerate() {
        let is_known = |&other: &usize| are_alike(sketch, &sketches[other]);
        if !sketch.is_empty() && !chosen.par_iter().with_min_len(64).any(is_known) {
            chosen.push(at);
        }
    }
    chosen
}

/// Returns true if two texts share half of their features, estimated from their lowest hashes.
///
/// Broder, "On the resemblance and containment of documents", SEQUENCES 1997, section 4.
fn are_alike(a: &[u64], b: &[u64]) -> bool {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let (mut either, mut both) = (0, 0);
    while either < KEPT
        && let Some(&&least) = [a.peek(), b.peek()].into_iter().flatten().min()
    {
        let (in_a, in_b) = (
            a.next_if(|&&hash| hash == least).is_some(),
            b.next_if(|&&hash| hash == least).is_some(),
        );
        either += 1;
        both += usize::from(in_a && in_b);
    }
    both * ALIKE >= either
}

/// Returns the mean of the middle half of the shares, as an offset from a half.
fn middle(mut shares: Vec<u16>) -> i16 {
    shares.sort_unstable();
    let cut = shares.len() / 4;
    let half = &shares[cut..shares.len() - cut];
    let sum: u64 = half.iter().copied().map(u64::from).sum();
    let mean = sum / (half.len() as u64).max(1);
    let mean = i64::try_from(mean).expect("shares have 16 bits");
    i16::try_from(mean - (1 << 15)).expect("a share is a half away from a half at most")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PipelineOptions;
    use crate::error::Error;
    use crate::fingerprint::Fingerprint;
    use crate::sketch::SketchKind;

    /// Returns sentences over one small vocabulary, whose fingerprints share a bias.
    fn sentences(count: u64, words: u64) -> Vec<String> {
        let mut random = fastrand::Rng::with_seed(21);
        let word = |n: u64| format!("w{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
        let mut sentence = |n: u64| {
            // Nested limits make a few words common and most words rare.
            let mut number = || {
                let most = random.u64(1..=words);
                let most = random.u64(1..=most);
                random.u64(0..most)
            };
            let mut words: Vec<String> = (0..60).map(|_| word(number())).collect();
            words.push(format!("number{n}"));
            words.join(" ")
        };
        (0..count).map(&mut sentence).collect()
    }

    fn plain() -> PipelineOptions {
        PipelineOptions::preset("page").unwrap()
    }

    /// Returns the sum over all bits of the difference between the share of ones and a half.
    fn lean<F: Fingerprint>(options: &PipelineOptions, texts: &[String]) -> f64 {
        let pipeline = Pipeline::new(options).unwrap();
        let fps: Vec<F> =
            texts.iter().map(|text| pipeline.fingerprint(text).unwrap().fingerprint).collect();
        let ones = |bit: u32| fps.iter().filter(|&&fp| (fp >> bit).widen() & 1 == 1).count();
        (0..F::BITS).map(|bit| (ones(bit) as f64 / fps.len() as f64 - 0.5).abs()).sum()
    }

    #[test]
    fn bits_of_texts_that_were_not_learnt_from_are_balanced_at_every_width() {
        let texts = sentences(1200, 3000);
        let (learnt, others) = texts.split_at(600);
        let centre = Centre::learn(&Pipeline::new(&plain()).unwrap(), learnt).unwrap().unwrap();
        let centred = plain().centre(centre);
        let leans = [
            (lean::<u32>(&plain(), others), lean::<u32>(&centred, others)),
            (lean::<u64>(&plain(), others), lean::<u64>(&centred, others)),
            (lean::<u128>(&plain(), others), lean::<u128>(&centred, others)),
        ];
        for (plain, centred) in leans {
            assert!(centred * 3.0 < plain, "{leans:?}");
        }
    }

    #[test]
    fn a_corpus_of_one_template_has_no_centre() {
        let pipeline = Pipeline::new(&plain()).unwrap();
        let notices: Vec<String> = (0..1000)
            .map(|n| {
                format!("your parcel {n} is on its way and will be with you by {} o'clock", n % 24)
            })
            .collect();
        assert_eq!(Centre::learn(&pipeline, &notices).unwrap(), None);
        for few in [0, 1, FEWEST - 1] {
            let texts = sentences(few as u64, 1 << 30);
            assert_eq!(Centre::learn(&pipeline, &texts).unwrap(), None, "{few}");
        }
        assert_eq!(Centre::learn(&pipeline, &vec!["…"; 1000]).unwrap(), None);
        let minhash = Pipeline::new(&plain().sketch(SketchKind::MinHash)).unwrap();
        let refused = Centre::learn(&minhash, &notices);
        assert!(matches!(refused, Err(Error::InvalidOption { name: "centre", .. })));
    }

    #[test]
    fn templates_beside_other_texts_have_one_vote() {
        let pipeline = Pipeline::new(&plain()).unwrap();
        let texts = sentences(300, 1 << 30);
        let alone = Centre::learn(&pipeline, &texts).unwrap().unwrap();
        let copies = (0..900).map(|n| format!("{} {n}", texts[0]));
        let with_copies: Vec<String> = texts.iter().cloned().chain(copies).collect();
        assert_eq!(Centre::learn(&pipeline, &with_copies).unwrap().unwrap(), alone);
    }

    #[test]
    fn a_centre_of_halves_changes_no_fingerprint() {
        let (without, with) = (plain(), plain().centre(Centre::of_halves()));
        let (without, with) = (Pipeline::new(&without).unwrap(), Pipeline::new(&with).unwrap());
        for text in sentences(50, 1000).iter().map(String::as_str).chain(["", "a", "a b"]) {
            assert_eq!(without.fingerprint::<u32>(text), with.fingerprint(text), "{text}");
            assert_eq!(without.fingerprint::<u64>(text), with.fingerprint(text), "{text}");
            assert_eq!(without.fingerprint::<u128>(text), with.fingerprint(text), "{text}");
        }
        assert_ne!(without.descriptor(), with.descriptor());
    }

    #[test]
    fn the_middle_half_decides_and_outliers_do_not() {
        assert_eq!(middle(vec![0; 9]), i16::MIN);
        assert_eq!(middle(vec![1 << 15]), 0);
        assert_eq!(middle(vec![0, 32_800, 32_802, u16::MAX]), 33);
        assert_eq!(middle(vec![u16::MAX; 9]), i16::MAX);
    }
}
