//! Scales: values become places along an axis, some of them ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::{Axis, Kind};

/// An axis with resolved ends.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    format: fn(f64) -> String,
}

impl Scale {
    /// Resolves the ends: as the axis has them, or around the values.
    pub(super) fn over(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let fits = |value: &f64| axis.kind != Kind::Logarithmic || *value > 0.0;
        let (least, most) = values
            .filter(fits)
            .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        let (least, most) = if least > most { (1.0, 1.0) } else { (least, most) };
        let (low, high) = axis.ends.unwrap_or(match &axis.kind {
            Kind::Linear => (0.0_f64.min(least), if most > 0.0 { 1.06 * most } else { 1.0 }),
            Kind::Logarithmic => (least / 1.5, most * 1.5),
            Kind::Names(names) => (-0.6, names.len() as f64 - 0.4),
        });
        Self { kind: axis.kind.clone(), low, high, format: axis.format }
    }

    /// Returns the least value that has a place, where bars start.
    pub(super) fn foot(&self) -> f64 {
        self.low
    }

    /// Returns the place of a value, 0 at the low end and 1 at the high end.
    fn place(&self, value: f64) -> f64 {
        let span = |low: f64, value: f64, high: f64| (value - low) / (high - low);
        match self.kind {
            Kind::Logarithmic => span(self.low.ln(), value.max(self.low).ln(), self.high.ln()),
            Kind::Linear | Kind::Names(_) => span(self.low, value, self.high),
        }
    }

    /// Returns at most `most` values to mark.
    fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(2) as f64;
        match &self.kind {
            Kind::Linear => {
                let step = nice((self.high - self.low) / most);
                // A count has no halves.
                let parted = (self.format)(0.5) != (self.format)(1.0)
                    && (self.format)(0.5) != (self.format)(0.0);
                multiples(if parted { step } else { step.max(1.0) }, self.low, self.high)
            }
            Kind::Logarithmic => {
                let decades = (self.high / self.low).log10();
                let every = (decades / most).ceil().max(1.0);
                let exponents = multiples(every, self.low.log10(), self.high.log10());
                let factors: &[f64] = match decades {
                    decades if 3.0 * decades <= most => &[1.0, 2.0, 5.0],
                    decades if 2.0 * decades <= most => &[1.0, 3.0],
                    _ => &[1.0],
                };
                // Starts one decade below: its multiples may be within.
                let below = exponents.first().map_or(self.low.log10().floor(), |first| first - 1.0);
                let all = std::iter::once(below).chain(exponents);
                let all = all.flat_map(|exponent| {
                    factors.iter().map(move |factor| factor * 10_f64.powf(exponent))
                });
                let within = self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9);
                all.filter(|tick| within.contains(tick)).collect()
            }
            Kind::Names(names) => (0..names.len()).map(|at| at as f64).collect(),
        }
    }

    fn text(&self, value: f64) -> String {
        match &self.kind {
            Kind::Names(names) => name(names, value),
            Kind::Linear | Kind::Logarithmic => (self.format)(value),
        }
    }
}

/// Returns the name at a whole value, empty if there is none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
pub(super) fn name(names: &[String], value: f64) -> String {
    names.get(value.round() as usize).cloned().unwrap_or_default()
}

/// Returns the next step of 1, 2 or 5 times a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|factor| factor * power);
    steps.into_iter().find(|&nice| nice >= step * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil();
    let places = std::iter::successors(Some(first), |place| Some(place + 1.0));
    places.map(|place| place * step).take_while(|&at| at <= high + 1e-9 * step).take(1000).collect()
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[allow(clippy::cast_possible_truncation)] // a pixel of the picture
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (from, to) = (f64::from(limit.0), f64::from(limit.1));
        (from + self.place(*value) * (to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.max_num_points() {
            0 => Vec::new(),
            most => self.ticks(most),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        self.text(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::chart::{count, share};

    fn ticks(axis: &Axis, values: &[f64], most: usize) -> Vec<f64> {
        Scale::over(axis, values.iter().copied()).ticks(most)
    }

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let axis = || Axis::new("", Kind::Linear, count);
        assert_eq!(ticks(&axis(), &[0.0, 11.0], 6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(&axis(), &[0.0, 1.0], 6), [0.0, 1.0], "half a document is none");
        let shares = Axis::new("", Kind::Linear, share).between(0.0, 1.0);
        assert_eq!(ticks(&shares, &[], 5), [0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0][..6]);
        let axis = || Axis::new("", Kind::Logarithmic, count);
        assert_eq!(ticks(&axis(), &[1.0, 3000.0], 6), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(ticks(&axis(), &[1.0, 4.0], 6), [1.0, 2.0, 5.0]);
        assert!(ticks(&axis(), &[1.0, 1e18], 6).len() <= 7);
        assert!(!ticks(&axis(), &[7.0], 6).is_empty(), "a single value has ticks around it");
    }

    #[test]
    fn the_ends_of_an_axis_are_the_ends_of_the_picture() {
        let axis = Axis::new("", Kind::Logarithmic, count).between(1.0, 100.0);
        let scale = Scale::over(&axis, std::iter::empty());
        assert_eq!([1.0, 10.0, 100.0, 0.0].map(|value| scale.map(&value, (0, 80))), [0, 40, 80, 0]);
        assert_eq!(scale.map(&1.0, (300, 20)), 300);
    }
}
