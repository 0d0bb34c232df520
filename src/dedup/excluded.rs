//! Exclusion: a bit for each document that no group may hold.

/// Positions that take no part, one bit each up to the largest.
#[derive(Debug, Clone, Default)]
pub(super) struct Excluded {
    words: Vec<u64>,
    count: usize,
}

impl Excluded {
    /// Adds a position; a second time changes nothing.
    pub(super) fn add(&mut self, position: u32) {
        let (at, bit) = place(position);
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        if let Some(word) = self.words.get_mut(at) {
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Returns true if a position was added.
    pub(super) fn holds(&self, position: u32) -> bool {
        let (at, bit) = place(position);
        self.words.get(at).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }
}

/// The word of a position, and its bit.
fn place(position: u32) -> (usize, u64) {
    ((position / u64::BITS) as usize, 1 << (position % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_held_once() {
        let mut excluded = Excluded::default();
        assert!(excluded.is_empty() && !excluded.holds(0));
        for position in [63, 64, 3, 64] {
            excluded.add(position);
        }
        assert_eq!(excluded.len(), 3);
        let held: Vec<u32> = (0..200).filter(|&position| excluded.holds(position)).collect();
        assert_eq!(held, [3, 63, 64]);
        assert!(!excluded.holds(u32::MAX));
    }
}
