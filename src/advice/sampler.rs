//! Sampling: chooses a few texts, spread evenly over a stream of rows.

/// Number of texts that is enough for a sample.
pub const SAMPLE: usize = 1000;

/// Maximum length of a text in bytes; more does not change its kind.
const MOST_BYTES: usize = 1 << 20;

/// Maximum length of all texts of a sample in bytes, plus one text.
const ALL_BYTES: usize = 64 << 20;

/// A sample of rows, spread evenly over a stream of them.
///
/// Keeps every stride-th row, and doubles the stride when there are too many rows or bytes. So the
/// sample of a sorted table represents all of it. A sample takes up to about 64 MiB; a text longer
/// than 1 MiB is truncated.
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
    /// Creates an empty sample of up to `wanted` texts.
    ///
    /// With enough rows, the sample has at least half as many.
    pub fn new(wanted: usize) -> Self {
        Self { wanted: wanted.max(1), kept: Vec::new(), bytes: 0, stride: 1, ordinal: 0 }
    }

    /// Offers the next row; calls `text` only if it is sampled.
    ///
    /// A row whose `text` returns `None` is skipped.
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

    /// Returns the sampled texts, up to the number wanted.
    pub fn finish(self) -> Vec<String> {
        evenly(self.kept, self.wanted)
    }
}

/// Returns up to `wanted` items, evenly spaced.
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
    fn a_sample_has_no_more_texts_than_wanted() {
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
    fn long_texts_are_truncated_and_sampled_less_often() {
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
