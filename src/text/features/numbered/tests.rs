//! Numbered n-grams, compared with the plain path.

use crate::text::features::{self, Feature, Visit};
use crate::text::pipeline::{Inner, Scratch};
use crate::text::{Pipeline, PipelineOptions, Segment, Weights};

/// A visitor that collects hashes and weights and reads no bytes.
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

/// The pairs of one batch fill all of [`Found`](super::Found), and the single letters too.
#[test]
fn a_batch_of_dense_letters_alone_loses_none() {
    let mut scratch = Scratch::default();
    for ngram in [2, 3] {
        for weights in [Weights::Uniform, Weights::Tf] {
            let options = PipelineOptions::new().ngram(ngram).weights(weights);
            let pipeline = Pipeline::new(&options).unwrap();
            for letters in [1, 2, 3, 127, 128, 129, 130, 255, 256, 257, 500] {
                let text: String = ('一'..'龥').take(letters).collect();
                compare(pipeline.inner(), &mut scratch, &text);
            }
        }
    }
}

#[test]
fn numbered_ngrams_equal_those_of_the_plain_path() {
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
    // Few letters, so that n-grams repeat: of one to four bytes, dense ones, and dropped marks.
    let few: Vec<char> = "aab1 .éяب\u{94d}กကガ晴天天。\u{3099}한글𠀀𐐨\u{301}".chars().collect();
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
        // Runs of one script, as in real texts.
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
