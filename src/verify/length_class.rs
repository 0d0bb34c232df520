//! Classes of lengths: a byte per text, which rejects most pairs before their records are read.
#![expect(clippy::indexing_slicing, reason = "there is a start for every class")]

use super::edit::most_edits;

/// Classes of a doubling, so that lengths of a class differ by less than 6 %.
const PER_DOUBLING: usize = 12;

/// Two to the power of each twelfth, times 65,536.
const TWELFTHS: [u64; PER_DOUBLING] = [
    65_536, 69_433, 73_562, 77_936, 82_570, 87_480, 92_682, 98_193, 104_032, 110_218, 116_772,
    123_715,
];

/// The shortest length of each class, from no character to 2.3 million and more.
static STARTS: [u32; 256] = starts();

#[allow(clippy::cast_possible_truncation)] // the last start has 22 bits
const fn starts() -> [u32; 256] {
    let mut starts = [0; 256];
    let mut class = 1;
    while class < starts.len() {
        let (doublings, twelfth) = ((class - 1) / PER_DOUBLING, (class - 1) % PER_DOUBLING);
        starts[class] = ((TWELFTHS[twelfth] << doublings) >> 16) as u32;
        class += 1;
    }
    starts
}

/// The length of a text in characters, to within 6 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LengthClass(u8);

impl LengthClass {
    pub(super) fn of(chars: u32) -> Self {
        let classes = STARTS.partition_point(|&start| start <= chars);
        Self(u8::try_from(classes - 1).expect("the first class starts with no character"))
    }

    fn shortest(self) -> u32 {
        STARTS[usize::from(self.0)]
    }

    fn longest(self) -> u32 {
        STARTS.get(usize::from(self.0) + 1).map_or(u32::MAX, |next| next.saturating_sub(1))
    }

    /// Returns true if two texts are too different in length for an edit similarity.
    ///
    /// Every character that one text has more than the other is an edit.
    pub(super) fn rejects(self, other: Self, threshold: f64) -> bool {
        let long = self.max(other).shortest();
        let missing = long.saturating_sub(self.min(other).longest());
        missing as usize > most_edits(long as usize, threshold)
    }
}

/// Brackets of lengths: texts of brackets that are no neighbours are too different to pass.
#[derive(Debug)]
pub(super) struct Brackets([u8; 256]);

impl Brackets {
    /// Cuts all lengths into brackets for an edit similarity, as narrow as it allows.
    pub(super) fn new(threshold: f64) -> Self {
        let mut brackets = [0; 256];
        let (mut bracket, mut start) = (0, 0_u8);
        for class in 1..=u8::MAX {
            let longest_before = LengthClass(start.saturating_sub(1));
            if LengthClass(class).rejects(longest_before, threshold) {
                (bracket, start) = (bracket + 1, class);
            }
            brackets[usize::from(class)] = bracket;
        }
        Self(brackets)
    }

    pub(super) fn of(&self, length: LengthClass) -> u8 {
        self.0[usize::from(length.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_brackets_that_are_no_neighbours_are_too_different() {
        for (threshold, fewest) in [(0.0, 1), (0.5, 10), (0.78, 40), (0.95, 90), (1.0, 200)] {
            let brackets = Brackets::new(threshold);
            assert!(brackets.0[255] >= fewest - 1, "{threshold}: {}", brackets.0[255]);
            for long in (0..400).chain((400..40_000).step_by(331)).chain([3_000_000, u32::MAX]) {
                for short in (0..=long).rev().step_by(long as usize / 200 + 1) {
                    let [a, b] = [long, short].map(|chars| brackets.of(LengthClass::of(chars)));
                    let differ = (long - short) as usize > most_edits(long as usize, threshold);
                    assert!(differ || a - b <= 1, "{threshold}: {long} {short}");
                }
            }
        }
    }

    #[test]
    fn every_length_is_in_its_class() {
        for chars in (0..5000).chain((5000..4_000_000).step_by(997)).chain([u32::MAX]) {
            let class = LengthClass::of(chars);
            assert!((class.shortest()..=class.longest()).contains(&chars), "{chars}: {class:?}");
        }
        assert_eq!([0, 1, u32::MAX].map(|chars| LengthClass::of(chars).0), [0, 12, 255]);
    }

    #[test]
    fn rejected_lengths_are_too_different() {
        let (mut rejected, mut kept) = (0, 0);
        for threshold in [0.0, 0.5, 0.78, 0.88, 1.0] {
            for long in (0..400).chain((400..40_000).step_by(331)).chain([3_000_000, u32::MAX]) {
                for short in (0..=long).rev().step_by(long as usize / 200 + 1) {
                    let [a, b] = [long, short].map(LengthClass::of);
                    let differ = (long - short) as usize > most_edits(long as usize, threshold);
                    assert!(differ || !a.rejects(b, threshold), "{threshold}: {long} {short}");
                    assert_eq!(a.rejects(b, threshold), b.rejects(a, threshold));
                    rejected += u32::from(a.rejects(b, threshold));
                    kept += u32::from(differ && !a.rejects(b, threshold));
                }
            }
        }
        assert!(rejected > 10 * kept, "{rejected} {kept}");
    }
}
