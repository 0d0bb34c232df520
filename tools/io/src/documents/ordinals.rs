//! Ordinals: numbers of rows over all inputs, which rise and mostly follow one another.

/// Rising ordinals, held as runs of adjacent ones.
#[derive(Debug, Default)]
pub struct Ordinals {
    /// Place and ordinal of the first of each run.
    runs: Vec<(usize, u64)>,
    len: usize,
    /// The ordinal after the last one.
    next: u64,
}

impl Ordinals {
    pub(crate) fn push(&mut self, ordinal: u64) {
        if self.len == 0 || ordinal != self.next {
            self.runs.push((self.len, ordinal));
        }
        self.len += 1;
        self.next = ordinal + 1;
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.len
    }

    /// Returns all ordinals, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len).filter_map(|place| self.get(place))
    }

    /// Returns the ordinal at a place.
    pub fn get(&self, place: usize) -> Option<u64> {
        let run = self.runs.partition_point(|&(first, _)| first <= place).checked_sub(1)?;
        let &(first, ordinal) = self.runs.get(run).filter(|_| place < self.len)?;
        Some(ordinal + (place - first) as u64)
    }

    /// Returns how many ordinals are below this one.
    pub fn before(&self, ordinal: u64) -> usize {
        let after = self.runs.partition_point(|&(_, first)| first < ordinal);
        let end = self.runs.get(after).map_or(self.len, |&(first, _)| first);
        let run = after.checked_sub(1).and_then(|run| self.runs.get(run));
        run.map_or(0, |&(place, first)| {
            let within = usize::try_from(ordinal - first).unwrap_or(usize::MAX);
            place.saturating_add(within).min(end)
        })
    }

    /// Returns the place of an ordinal.
    pub(crate) fn find(&self, ordinal: u64) -> Option<usize> {
        let place = self.before(ordinal);
        (self.get(place) == Some(ordinal)).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_are_found_at_their_places() {
        let mut state = 3_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        let (mut all, mut ordinals, mut next) = (Vec::new(), Ordinals::default(), 0);
        for _ in 0..2000 {
            next += if below(5) == 0 { 1 + below(3) } else { 0 };
            all.push(next);
            ordinals.push(next);
            next += 1;
        }
        assert!((0..2001).all(|place| ordinals.get(place) == all.get(place).copied()));
        for ordinal in 0..next + 2 {
            assert_eq!(ordinals.before(ordinal), all.partition_point(|&other| other < ordinal));
            assert_eq!(ordinals.find(ordinal), all.binary_search(&ordinal).ok());
        }
    }
}
