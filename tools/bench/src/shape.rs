//! Shapes of fingerprints: even ones, and skewed ones as `SimHash` makes them of texts.
//!
//! A document is a bag of n-grams. All documents share some of them, which bias the same bits of
//! all fingerprints in one direction. Others follow Zipf's law (in Mandelbrot's form), and others
//! belong to the document's topic, so that documents of a topic are nearer to each other. Bits are
//! counted in planes, each with one bit of every count, so a document takes about a microsecond.
//! All numbers are integers, so that a seed gives the same fingerprints everywhere.

use hamdex::Fingerprint;

use crate::data::{Random, mix};

/// The distribution of fingerprints.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Independent bits, each set in half of the fingerprints
    #[default]
    Random,
    /// Skewed, as by plain `SimHash` of English articles
    Text,
    /// From the same documents, with each bit compared with its usual share
    Balanced,
}

/// Planes of a count, for up to 255 grams.
const PLANES: usize = 8;

/// The counts of all positions, one bit in each plane, lowest first.
type Planes<F> = [F; PLANES];

/// Numbers of drawn grams in a document; common grams are added.
const LENGTHS: [u64; 4] = [67, 89, 109, 135];
/// Number of common grams for a hundred drawn ones.
const COMMON: u64 = 88;
/// Number of grams of the document's topic among 256 drawn ones.
const OF_TOPIC: u64 = 110;
/// Number of documents from which the usual share of each bit is learnt.
const LEARNT_FROM: usize = 8192;

/// Seeds of the grams, chosen so that all blocks are about equally skewed.
const GRAMS: u64 = 0x5eed;
const COMMON_GRAMS: u64 = GRAMS ^ 0xf5;
const TOPICS: u64 = 77;

/// Generates `count` fingerprints, one in five a copy of an earlier one with 0 to 3 flips.
pub(crate) fn mixed<F: Fingerprint>(shape: Shape, seed: u64, count: u64) -> Vec<F> {
    let maker = Maker::new(shape);
    let mut random = Random(seed);
    let mut all: Vec<F> = Vec::new();
    for _ in 0..count {
        let earlier = usize::try_from(random.below(all.len() as u64)).unwrap_or(0);
        let next = match all.get(earlier) {
            Some(&earlier) if random.below(5) == 0 => flip(&mut random, earlier, 3),
            _ => maker.next(&mut random),
        };
        all.push(next);
    }
    all
}

/// Generates fingerprints without copies, of other documents for each seed.
pub(crate) fn strangers(shape: Shape, seed: u64, count: usize) -> Vec<u64> {
    let maker = Maker::new(shape);
    let mut random = Random(seed);
    (0..count).map(|_| maker.next(&mut random)).collect()
}

fn flip<F: Fingerprint>(random: &mut Random, fingerprint: F, most: u64) -> F {
    let flips = random.below(most + 1);
    let bit = |random: &mut Random| F::truncate(1 << random.below(F::BITS.into()));
    (0..flips).fold(fingerprint, |fingerprint, _| fingerprint ^ bit(random))
}

/// A generator of fingerprints.
struct Maker<F> {
    grams: Ranks,
    topics: Ranks,
    of_topic: Ranks,
    /// The threshold of each count, by length of the document; `None` for even fingerprints.
    thresholds: Option<[Planes<F>; LENGTHS.len()]>,
}

impl<F: Fingerprint> Maker<F> {
    fn new(shape: Shape) -> Self {
        let mut maker = Self {
            grams: Ranks::new(1 << 20, 60),
            topics: Ranks::new(4096, 100),
            of_topic: Ranks::new(200, 2),
            thresholds: None,
        };
        maker.thresholds = match shape {
            Shape::Random => None,
            Shape::Text => Some(LENGTHS.map(|length| {
                let half = u64::midpoint(length, common(length));
                thresholds(|bit| half.saturating_sub(common_ones::<F>(length, bit)))
            })),
            Shape::Balanced => {
                let (ones, drawn) = maker.usual();
                let share = |bit: u32| ones.get(bit as usize).copied().unwrap_or(0);
                Some(LENGTHS.map(|length| thresholds(|bit| share(bit) * length / drawn)))
            }
        };
        maker
    }

    fn next(&self, random: &mut Random) -> F {
        let Some(thresholds) = &self.thresholds else {
            return wide(random.next());
        };
        let (class, counts) = self.document(random);
        let Some(thresholds) = thresholds.get(class) else { return F::ZERO };
        let (mut above, mut equal) = (F::ZERO, F::ONES);
        for (&count, &threshold) in counts.iter().zip(thresholds).rev() {
            above = above | (equal & count & !threshold);
            equal = equal & !(count ^ threshold);
        }
        above
    }

    /// Draws a document; returns the index of its length, and how many grams set each bit.
    fn document(&self, random: &mut Random) -> (usize, Planes<F>) {
        let class = usize::try_from(random.next() & 3).unwrap_or(0);
        let topic = mix(self.topics.of(random.next()).wrapping_add(TOPICS));
        let mut counts = [F::ZERO; PLANES];
        for _ in 0..LENGTHS.get(class).copied().unwrap_or(0) {
            let draw = random.next();
            let gram = if (draw >> 16 & 0xff) < OF_TOPIC {
                topic.wrapping_add(self.of_topic.of(draw))
            } else {
                self.grams.of(draw)
            };
            let mut carried = bits::<F>(gram, GRAMS);
            for plane in &mut counts {
                let next = *plane & carried;
                *plane = *plane ^ carried;
                carried = next;
            }
        }
        (class, counts)
    }

    /// Counts the grams of a sample that set each bit, and all grams.
    fn usual(&self) -> (Vec<u64>, u64) {
        let mut random = Random(99);
        let mut ones = vec![0_u64; F::BITS as usize];
        let mut drawn = 0;
        for _ in 0..LEARNT_FROM {
            let (class, counts) = self.document(&mut random);
            drawn += LENGTHS.get(class).copied().unwrap_or(0);
            for (bit, ones) in (0..).zip(&mut ones) {
                let of_plane = |plane: &F| u64::from(((*plane >> bit).widen() & 1) != 0);
                *ones += (0..).zip(&counts).map(|(at, plane)| of_plane(plane) << at).sum::<u64>();
            }
        }
        (ones, drawn)
    }
}

/// Returns the number of common grams in a document.
///
/// With the drawn grams the sum is odd, so that no bit is a tie.
fn common(length: u64) -> u64 {
    (length * COMMON / 100) & !1
}

/// Returns the number of common grams that set a bit.
fn common_ones<F: Fingerprint>(length: u64, bit: u32) -> u64 {
    let sets = |gram: &u64| (bits::<F>(*gram, COMMON_GRAMS) >> bit).widen() & 1 != 0;
    (0..common(length)).filter(sets).count() as u64
}

/// Converts the thresholds of all bits to planes.
fn thresholds<F: Fingerprint>(of: impl Fn(u32) -> u64) -> Planes<F> {
    let mut planes = [F::ZERO; PLANES];
    for bit in 0..F::BITS {
        let threshold = of(bit);
        for (at, plane) in planes.iter_mut().enumerate() {
            *plane = *plane | F::truncate(u128::from(threshold >> at & 1) << bit);
        }
    }
    planes
}

/// Returns the bits that a gram sets.
fn bits<F: Fingerprint>(gram: u64, grams: u64) -> F {
    wide(mix(gram.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(grams)))
}

/// Extends a number to the width.
fn wide<F: Fingerprint>(number: u64) -> F {
    let high = if F::BITS > 64 { u128::from(mix(number ^ GRAMS)) << 64 } else { 0 };
    F::truncate(u128::from(number) | high)
}

/// A distribution of ranks with probabilities proportional to 1 / (10 rank + `flat`).
struct Ranks {
    /// The rank at each of 65,536 equal shares.
    shares: Vec<u32>,
}

impl Ranks {
    fn new(ranks: u32, flat: u64) -> Self {
        const SHARES: usize = 1 << 16;
        let weight = |rank: u32| (1_u64 << 40) / (10 * (u64::from(rank) + 1) + flat);
        let total: u64 = (0..ranks).map(weight).sum();
        let mut shares = Vec::with_capacity(SHARES + 1);
        let mut sum = 0;
        for rank in 0..ranks {
            sum += weight(rank);
            let end = u128::from(sum) << 16;
            while shares.len() < SHARES && shares.len() as u128 * u128::from(total) < end {
                shares.push(rank);
            }
        }
        shares.push(ranks.saturating_sub(1));
        Self { shares }
    }

    /// Returns the rank of a random number.
    ///
    /// The lowest 16 bits choose a share; the highest ones choose a rank within it.
    fn of(&self, draw: u64) -> u64 {
        let at = usize::try_from(draw & 0xffff).unwrap_or(0);
        let share = |at: usize| self.shares.get(at).copied().map_or(0, u64::from);
        let first = share(at);
        first + (((draw >> 32) * share(at + 1).saturating_sub(first)) >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evenness::Evenness;

    const COUNT: u64 = 1_500_000;
    const GOLDEN: [u64; 3] = [0x9766_f3e3_f7b3_a409, 0x99f7_e77a_d630_241d, 0x96fc_f352_5fa7_351d];

    fn evenness(shape: Shape) -> Evenness {
        let maker = Maker::new(shape);
        let mut random = Random(7);
        let made: Vec<u64> = (0..COUNT).map(|_| maker.next(&mut random)).collect();
        Evenness::of(&made)
    }

    #[test]
    fn text_is_as_skewed_as_fingerprints_of_articles() {
        let text = evenness(Shape::Text);
        assert!((40..=50).contains(&text.uneven_bits), "{text:?}");
        assert!((45.0..49.0).contains(&text.entropy), "{text:?}");
        assert!(text.candidates.iter().all(|times| (16.0..29.0).contains(times)), "{text:?}");
        assert!(text.largest.iter().all(|times| (116.0..270.0).contains(times)), "{text:?}");
    }

    #[test]
    fn balanced_ones_are_skewed_only_by_topics() {
        let balanced = evenness(Shape::Balanced);
        assert_eq!(balanced.uneven_bits, 0, "{balanced:?}");
        assert!(balanced.candidates.iter().all(|times| (1.2..1.5).contains(times)), "{balanced:?}");
        let random = evenness(Shape::Random);
        assert!(random.candidates.iter().all(|times| *times < 1.1), "{random:?}");
    }

    #[test]
    fn a_seed_gives_the_same_fingerprints_everywhere() {
        for shape in [Shape::Random, Shape::Text, Shape::Balanced] {
            let long = mixed::<u64>(shape, 3, 500);
            assert_eq!(long[..100], mixed::<u64>(shape, 3, 100));
            assert_ne!(long[..100], mixed::<u64>(shape, 4, 100));
        }
        assert_eq!(mixed::<u64>(Shape::Text, 3, 3), GOLDEN);
        assert!(mixed::<u64>(Shape::Text, 3, 0).is_empty());
    }

    #[test]
    fn all_widths_are_generated_from_the_same_documents() {
        let maker =
            |shape| (Maker::<u32>::new(shape), Maker::<u64>::new(shape), Maker::<u128>::new(shape));
        let (of_32, of_64, of_128) = maker(Shape::Text);
        for seed in 0..100 {
            let middle = of_64.next(&mut Random(seed));
            assert_eq!(u64::truncate(of_128.next(&mut Random(seed))), middle);
            assert_eq!(of_32.next(&mut Random(seed)), u32::truncate(middle.into()));
        }
    }
}
