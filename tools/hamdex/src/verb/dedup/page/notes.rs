//! Notes: how near the removed documents are to the kept ones, counted.

/// Steps of similarity from 0 to 1.
pub(super) const STEPS: usize = 50;

/// Removed documents by distance and by similarity.
#[derive(Debug, Default)]
pub(in super::super) struct Notes {
    distances: Vec<u64>,
    similarities: Vec<u64>,
}

impl Notes {
    /// Takes numbers of removed documents by distance and by similarity.
    pub(super) fn of(distances: &[(u32, u64)], similarities: &[(f64, u64)]) -> Self {
        let mut notes = Self::default();
        for &(distance, many) in distances {
            count(&mut notes.distances, distance as usize, many);
        }
        for &(similarity, many) in similarities {
            count(&mut notes.similarities, step(similarity), many);
        }
        notes
    }

    /// Counts a removed document.
    pub(in super::super) fn note(&mut self, distance: u32, similarity: Option<f64>) {
        count(&mut self.distances, distance as usize, 1);
        if let Some(similarity) = similarity {
            count(&mut self.similarities, step(similarity), 1);
        }
    }

    /// Counts by distance, from 0.
    pub(super) fn distances(&self) -> &[u64] {
        &self.distances
    }

    /// Counts by step of similarity, from 0; empty where nothing was verified.
    pub(super) fn similarities(&self) -> &[u64] {
        &self.similarities
    }
}

/// Returns the step of a similarity; 1 itself belongs to the last one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn step(similarity: f64) -> usize {
    // The small term undoes what rounding took.
    ((similarity * STEPS as f64 + 1e-6) as usize).min(STEPS - 1)
}

fn count(counts: &mut Vec<u64>, at: usize, many: u64) {
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    if let Some(count) = counts.get_mut(at) {
        *count += many;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_documents_are_counted_by_distance_and_similarity() {
        let mut notes = Notes::default();
        notes.note(3, Some(0.82));
        notes.note(0, Some(1.0));
        notes.note(3, None);
        assert_eq!(notes.distances(), [1, 0, 0, 2]);
        assert_eq!((notes.similarities()[41], notes.similarities()[49]), (1, 1));
        assert_eq!(notes.similarities().iter().sum::<u64>(), 2);
    }
}
