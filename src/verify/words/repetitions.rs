//! Repetitions: the terms of a text that occur again.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a slot for every hash, and room for all terms"
)]

use std::hash::{BuildHasher, RandomState};

/// Terms that are looked up together.
const TOGETHER: usize = 1024;

/// Fewest slots of the table.
const FEWEST: usize = 256;

/// Most slots that the table of a long text keeps for the next one: 1 MiB.
const KEPT: usize = 1 << 17;

/// Terms of one kind, in the order of the text.
#[derive(Debug)]
pub(super) struct Terms {
    /// Not looked up yet: the first `len` of [`TOGETHER`].
    pending: Vec<u32>,
    len: usize,
    /// Terms that occur more than once.
    pub(super) repeated: Vec<u32>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { pending: vec![0; TOGETHER], len: 0, repeated: Vec::new() }
    }
}

/// How often each term of a text occurred so far, by its hash: a table with open addressing.
///
/// Whether a term is wanted or new is unpredictable, so nothing branches on it.
#[derive(Debug)]
pub(super) struct Repetitions {
    /// The number of occurrences, up to 3, above a term; 0 is free.
    slots: Vec<u64>,
    /// Slots in use, at most three quarters.
    len: usize,
    /// An odd factor that nobody knows, so that nobody can choose words whose slots collide.
    factor: u64,
}

impl Default for Repetitions {
    fn default() -> Self {
        let factor = RandomState::new().hash_one(0_u64) | 1;
        Self { slots: vec![0; FEWEST], len: 0, factor }
    }
}

impl Repetitions {
    /// Forgets the terms of the last text; the next one has about `expected` distinct ones.
    pub(super) fn reset(&mut self, expected: usize) {
        if self.slots.capacity() > KEPT {
            self.slots = Vec::new();
        }
        // Longer texts repeat their words; the table grows on demand.
        let slots = (expected + expected / 3).min(KEPT / 4).next_power_of_two().max(FEWEST);
        self.slots.clear();
        self.slots.resize(slots, 0);
        self.len = 0;
    }

    /// Adds a term if it is wanted; it counts at the latest when [`finish`](Self::finish) returns.
    #[inline]
    pub(super) fn add(&mut self, term: u32, is_wanted: bool, to: &mut Terms) {
        to.pending[to.len] = term;
        to.len += usize::from(is_wanted);
        if to.len == TOGETHER {
            self.finish(to);
        }
    }

    /// Adds what is pending, and collects repeated terms.
    pub(super) fn finish(&mut self, terms: &mut Terms) {
        let pending = &terms.pending[..std::mem::take(&mut terms.len)];
        while 4 * (self.len + pending.len()) > 3 * self.slots.len() {
            self.grow();
        }
        let repeated = &mut terms.repeated;
        let mut again = repeated.len();
        repeated.resize(again + pending.len(), 0);
        for &term in pending {
            let at = self.slot(term);
            let before = self.slots[at] >> u32::BITS;
            self.slots[at] = (before.min(2) + 1) << u32::BITS | u64::from(term);
            self.len += usize::from(before == 0);
            repeated[again] = term;
            again += usize::from(before == 1);
        }
        repeated.truncate(again);
    }

    /// Returns the slot of a term, or the free one where it belongs.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "masked at once; a slot ends with its term"
    )]
    fn slot(&self, term: u32) -> usize {
        let mask = self.slots.len() - 1;
        // Multiply-shift hashing (Dietzfelbinger and others, 1997).
        let unused = (self.slots.len() as u64).leading_zeros() + 1;
        let mut at = (u64::from(term).wrapping_mul(self.factor) >> unused) as usize & mask;
        while self.slots[at] != 0 && self.slots[at] as u32 != term {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "a slot ends with its term")]
    fn grow(&mut self) {
        let doubled = vec![0; 2 * self.slots.len()];
        for slot in
            std::mem::replace(&mut self.slots, doubled).into_iter().filter(|slot| *slot != 0)
        {
            let at = self.slot(slot as u32);
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_terms_are_those_of_a_map_at_every_size() {
        let seed = 3;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut repetitions = Repetitions::default();
        for count in [0, 1, 2, 1000, 5000, 300_000, 10] {
            repetitions.reset(count as usize / 2);
            // Two kinds of terms, some of which are equal.
            let mut kinds = [Terms::default(), Terms::default()];
            let mut expected = [const { Vec::new() }; 2];
            let mut known = std::collections::HashMap::new();
            let mut all: [Vec<u32>; 2] = Default::default();
            for _ in 0..count {
                let kind = rng.usize(0..2);
                all[kind].push(rng.u32(0..count) * [1, 3][kind]);
            }
            for (kind, terms) in all.iter().enumerate() {
                for &term in terms {
                    let is_wanted = term % 7 != 0;
                    repetitions.add(term, is_wanted, &mut kinds[kind]);
                    let occurred: &mut u32 = known.entry(term).or_default();
                    *occurred += 1;
                    if is_wanted && *occurred == 2 {
                        expected[kind].push(term);
                    }
                }
                repetitions.finish(&mut kinds[kind]);
            }
            assert!(kinds.map(|terms| terms.repeated) == expected, "{seed}: {count}");
        }
    }

    #[test]
    fn chosen_terms_do_not_collide() {
        for shift in [0, 8, 16] {
            let (mut repetitions, mut terms) = (Repetitions::default(), Terms::default());
            for term in 1..=50_000_u32 {
                repetitions.add(term << shift, true, &mut terms);
            }
            repetitions.finish(&mut terms);
            let slots = repetitions.slots.len();
            let (mut run, mut longest) = (0, 0);
            for slot in repetitions.slots.iter().chain(&repetitions.slots).take(2 * slots) {
                run = if *slot == 0 { 0 } else { run + 1 };
                longest = longest.max(run);
            }
            // Collisions would form one run; at random the longest run is a few hundred.
            assert!(longest < 10_000, "shift {shift}, {:x}: {longest}", repetitions.factor);
        }
    }
}
