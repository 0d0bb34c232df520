//! Sampling: rows that come one after another become a few texts from all over them.

/// Texts of a sample that is large enough.
pub const SAMPLE: usize = 1000;

/// Bytes of a text that are kept; more say nothing else about its kind.
const MOST_BYTES: usize = 1 << 20;

/// Bytes that all texts of a sample take together, up to one text more.
const ALL_BYTES: usize = 64 << 20;

/// Chooses a sample of rows that come one after another, spread evenly over all of them.
///
/// Every stride-th row is kept; the stride doubles when rows or bytes become too many. So a sorted
/// table does not look like its first rows, and a sample takes 64 MiB at most. A text longer than
/// 1 MiB is cut to its beginning.
///
/// ```
/// use hamdex::advice::Sampler;
///
/// let mut sampler = Sampler::new(2);
/// for n in 0..100 {
///     sampler.row(|| Some(n.to_string()));
/// }
/// assert_eq!(sampler.finish(), ["0", "64"]);
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    wanted: usize,
    kept: Vec<String>,
    bytes: usize,
    stride: usize,
    ordinal: usize,
}

impl Sampler {
    /// Begins a sample of at most `wanted` texts, half as many at least if there are enough rows.
    pub fn new(wanted: usize) -> Self {
        Self { wanted: wanted.max(1), kept: Vec::new(), bytes: 0, stride: 1, ordinal: 0 }
    }

    /// Takes the next row, whose text is asked for only if it counts.
    ///
    /// `None` stands for a row without a text, which is skipped.
    pub fn row(&mut self, text: impl FnOnce() -> Option<String>) {
        if self.ordinal.is_multiple_of(self.stride)
            && let Some(mut text) = text()
        {
            if text.len() > MOST_BYTES {
                text.truncate(text.floor_char_boundary(MOST_BYTES));
                text.shrink_to_fit();
            }
            self.bytes += text.len();
            self.kept.push(text);
        }
        self.ordinal += 1;
        let large = self.bytes > ALL_BYTES && self.kept.len() > 1;
        if large || self.kept.len() >= self.wanted.saturating_mul(2) {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.bytes = self.kept.iter().map(String::len).sum();
            self.stride = self.stride.saturating_mul(2);
        }
    }

    /// Returns the sample, at most as many texts as were wanted.
    pub fn finish(self) -> Vec<String> {
        evenly(self.kept, self.wanted)
    }
}

/// Leaves at most `wanted` items, at even distances.
fn evenly<T>(items: Vec<T>, wanted: usize) -> Vec<T> {
    let (len, mut next) = (items.len(), 0);
    if len <= wanted {
        return items;
    }
    let chosen = (0..).zip(items).filter(|&(at, _)| {
        let taken = next < wanted && at == next * len / wanted;
        next += usize::from(taken);
        taken
    });
    chosen.map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all_rows() {
        let mut sampler = Sampler::new(10);
        for n in 0..5 {
            sampler.row(|| (n != 3).then(|| n.to_string()));
        }
        assert_eq!(sampler.clone().finish(), ["0", "1", "2", "4"]);
        for n in 5..10_000 {
            sampler.row(|| Some(n.to_string()));
        }
        let kept = sampler.finish();
        assert!((5..=10).contains(&kept.len()) && kept[0] == "0", "{kept:?}");
        assert!(kept.last().unwrap().parse::<u32>().unwrap() >= 8000, "{kept:?}");
    }

    #[test]
    fn a_sample_has_at_most_as_many_texts_as_were_wanted() {
        for rows in 0..100 {
            let mut sampler = Sampler::new(7);
            (0..rows).for_each(|n| sampler.row(|| Some(n.to_string())));
            let kept = sampler.finish();
            assert!(kept.len() <= 7 && kept.len() >= rows.min(4), "{rows}: {kept:?}");
            assert_eq!(kept.first().map(String::as_str), (rows > 0).then_some("0"));
        }
        assert_eq!(evenly(vec![1, 2, 3, 4, 5], 2), [1, 3]);
        assert_eq!(evenly(vec![1, 2], 0), [0; 0]);
    }

    #[test]
    fn long_texts_are_cut_and_many_of_them_thinned() {
        let mut sampler = Sampler::new(1000);
        for n in 0..200 {
            sampler.row(|| Some(format!("{n} {}", "天".repeat(500_000))));
        }
        let kept = sampler.finish();
        assert!(kept.iter().all(|text| (MOST_BYTES - 3..=MOST_BYTES).contains(&text.len())));
        assert!((20..=64).contains(&kept.len()), "{}", kept.len());
        assert!(kept.last().unwrap().split(' ').next().unwrap().parse::<u32>().unwrap() > 150);
    }
}
