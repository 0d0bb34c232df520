//! Crowds: groups so large that they may be one template rather than one document.
//!
//! Texts that differ in a few numbers or names are near by every measure. Whether they say the
//! same is for the user to judge, who is shown what they share.

use std::collections::BTreeMap;

use hamdex::Fingerprint;
use hamdex::dedup::{Cluster, Decisions};
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::row::Row;

/// Share of all rows above which a group is a crowd.
const SHARE: f64 = 0.01;

/// Members below which nothing is worth a warning.
const FEW: usize = 20;

/// Crowds that are described, the largest.
const DESCRIBED: usize = 3;

/// Members whose texts are compared.
const COMPARED: usize = 8;

/// Characters of a text that are compared, and of a template that are shown.
const LONGEST: usize = 2000;
const SHOWN: usize = 160;

/// Characters of a word, on average, above which a text is taken for one without spaces.
const LONG_WORD: usize = 20;

/// Stands for what differs.
const GAP: &str = "\u{2026}";

/// A group that holds more than a hundredth of the rows.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Crowd {
    pub(super) cluster: u32,
    pub(super) size: usize,
    /// Of all rows.
    pub(super) share: f64,
    /// What its texts have in common; empty of fingerprints.
    pub(super) template: String,
}

/// Puts crowds of one template together, those of the largest group first.
pub(super) fn by_template(crowds: &[Crowd]) -> Vec<(&str, Vec<&Crowd>)> {
    let mut together: Vec<(&str, Vec<&Crowd>)> = Vec::new();
    for crowd in crowds {
        let known = together.iter_mut().find(|(template, _)| *template == crowd.template);
        match known.filter(|_| !crowd.template.is_empty()) {
            Some((_, groups)) => groups.push(crowd),
            None => together.push((&crowd.template, vec![crowd])),
        }
    }
    together
}

/// Texts of the members of crowds, caught in the second pass.
#[derive(Debug, Default)]
pub(super) struct Samples {
    crowds: Vec<(u32, usize)>,
    documents: u64,
    /// Cluster of every position whose text is wanted, and the text.
    wanted: BTreeMap<u32, (u32, Option<String>)>,
}

impl Samples {
    /// Chooses the crowds, and of each the members to compare.
    pub(super) fn of<F: Fingerprint>(decisions: &Decisions<F>, documents: u64) -> Self {
        let mut samples = Self { documents, ..Self::default() };
        let crowds = decisions.clusters().take(DESCRIBED);
        for Cluster { number, members, .. } in crowds {
            let size = members.len();
            if size < FEW || size as f64 <= SHARE * documents as f64 {
                break;
            }
            samples.crowds.push((number, size));
            let count = size.min(COMPARED);
            for member in (0..count).filter_map(|n| members.get(n * size / count)) {
                samples.wanted.insert(*member, (number, None));
            }
        }
        samples
    }

    /// Catches the text of a row that is wanted.
    pub(super) fn row<F: Fingerprint>(&mut self, row: &Row<'_, F>, position: u32) {
        if let Some((_, text)) = self.wanted.get_mut(&position) {
            *text = row.text().map(|text| text.chars().take(LONGEST).collect());
        }
    }

    /// Describes the crowds.
    pub(super) fn crowds(&self) -> Vec<Crowd> {
        let describe = |&(cluster, size): &(u32, usize)| {
            let texts = self.wanted.values().filter(|(of, _)| *of == cluster);
            let texts: Vec<&str> = texts.filter_map(|(_, text)| text.as_deref()).collect();
            let share = size as f64 / self.documents.max(1) as f64;
            Crowd { cluster, size, share, template: template(&texts) }
        };
        self.crowds.iter().map(describe).collect()
    }
}

/// What all texts have in common, in order, with a gap for all else.
fn template(texts: &[&str]) -> String {
    let Some((first, others)) = texts.split_first() else { return String::new() };
    let count = words(first).len();
    let long = first.chars().count() > count * LONG_WORD;
    let spaced = !long && (count > 1 || first.is_ascii());
    let cut = |text: &str| if spaced { words(text) } else { letters(text) };
    let mut common = cut(first);
    for other in others {
        let other = cut(other);
        let mut shared: Vec<String> = Vec::new();
        for op in capture_diff_slices(Algorithm::Myers, &common, &other) {
            if let DiffOp::Equal { old_index, len, .. } = op {
                shared.extend(common.iter().skip(old_index).take(len).cloned());
            } else if shared.last().is_none_or(|last| last != GAP) {
                shared.push(GAP.to_owned());
            }
        }
        shared.dedup_by(|a, b| a == GAP && b == GAP);
        common = shared;
    }
    let text = common.join(if spaced { " " } else { "" });
    // Texts that have nothing in common have no template.
    if text == GAP {
        return String::new();
    }
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN).chain(GAP.chars()).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn letters(text: &str) -> Vec<String> {
    text.chars().filter(|letter| !letter.is_whitespace()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_what_all_texts_share() {
        let texts = [
            "Weather for Oslo on Monday: 3 degrees, wind from the west",
            "Weather for Rome on Friday: 21 degrees, wind from the south",
            "Weather for New York on Monday: 9 degrees, wind from the east",
        ];
        assert_eq!(
            template(&texts),
            "Weather for \u{2026} on \u{2026} degrees, wind from the \u{2026}"
        );
        assert_eq!(
            template(&["北京今天晴转多云气温三度", "上海今天晴转多云气温九度"]),
            "…今天晴转多云气温…度"
        );
        assert_eq!(template(&["same text", "same text"]), "same text");
        assert_eq!(template(&["one", "other"]), "");
        assert_eq!(template(&[]), "");
    }

    #[test]
    fn groups_of_one_template_are_told_of_together() {
        let crowd = |size, template: &str| Crowd {
            cluster: 0,
            size,
            share: 0.0,
            template: template.to_owned(),
        };
        let crowds =
            [crowd(90, "a \u{2026}"), crowd(70, ""), crowd(50, "a \u{2026}"), crowd(40, "")];
        let sizes = |groups: &[&Crowd]| groups.iter().map(|crowd| crowd.size).collect::<Vec<_>>();
        let told: Vec<_> =
            by_template(&crowds).iter().map(|(like, groups)| (*like, sizes(groups))).collect();
        assert_eq!(told, [("a \u{2026}", vec![90, 50]), ("", vec![70]), ("", vec![40])]);
    }
}
