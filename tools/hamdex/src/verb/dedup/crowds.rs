//! Dense groups: so large that they may be one template rather than one document.
//!
//! Texts that differ in a few numbers or names are near by every measure. Only the user can judge
//! whether they mean the same, so the report shows what they share.

use std::collections::{BTreeMap, HashMap};

use hamdex::Fingerprint;
use hamdex::dedup::{Cluster, Decisions};
use rayon::prelude::*;
use serde::Serialize;
use similar::algorithms::IdentifyDistinct;
use similar::{Algorithm, DiffOp, capture_diff};

use super::row::Row;

/// Share of all rows above which a group is dense.
const SHARE: f64 = 0.01;

/// Members below which nothing is worth a warning.
const FEW: usize = 20;

/// Groups that are described, the largest.
const DESCRIBED: usize = 64;

/// Members whose texts are compared.
const COMPARED: usize = 8;

/// Characters of a text that are compared, and of a template that are shown.
const LONGEST: usize = 2000;
const SHOWN: usize = 160;

/// Share of the shorter of two templates that both have if they are one.
const ALIKE: f64 = 0.6;

/// Characters of an average word above which a text is treated as one without spaces.
const LONG_WORD: usize = 20;

/// Placeholder for differences.
const GAP: &str = "\u{2026}";
const GAP_CHAR: char = '\u{2026}';

/// Groups of one template that hold more than a hundredth of the rows together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Crowd {
    /// The largest of the groups.
    pub(super) cluster: u32,
    pub(super) groups: usize,
    /// Members of all groups.
    pub(super) size: usize,
    /// Of all rows.
    pub(super) share: f64,
    /// What their texts share; empty for fingerprints.
    pub(super) template: String,
}

/// Texts of some members of large groups, caught in the second pass.
#[derive(Debug, Default)]
pub(super) struct Samples {
    groups: Vec<(u32, usize)>,
    documents: u64,
    /// Cluster of every position whose text is wanted, and the text.
    wanted: BTreeMap<u32, (u32, Option<String>)>,
}

impl Samples {
    /// Chooses groups, and of each the members to compare.
    pub(super) fn of<F: Fingerprint>(decisions: &Decisions<F>, documents: u64) -> Self {
        let mut samples = Self { documents, ..Self::default() };
        let groups = decisions.clusters().take(DESCRIBED);
        for Cluster { number, members, .. } in groups {
            let size = members.len();
            if size < FEW {
                break;
            }
            samples.groups.push((number, size));
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

    /// Joins groups of one template and returns the dense ones.
    pub(super) fn crowds(&self) -> Vec<Crowd> {
        let mut families: Vec<Crowd> = Vec::new();
        let templates = self.groups.par_iter().map(|&(cluster, size)| {
            let texts = self.wanted.values().filter(|(of, _)| *of == cluster);
            let texts: Vec<&str> = texts.filter_map(|(_, text)| text.as_deref()).collect();
            (cluster, size, template(&texts))
        });
        for (cluster, size, template) in templates.collect::<Vec<_>>() {
            let found = families.iter_mut().find_map(|family| {
                one_template(&family.template, &template).map(|common| (common, family))
            });
            match found {
                Some((common, family)) => {
                    family.template = common;
                    family.groups += 1;
                    family.size += size;
                }
                None => families.push(Crowd { cluster, groups: 1, size, share: 0.0, template }),
            }
        }
        for family in &mut families {
            family.share = family.size as f64 / self.documents.max(1) as f64;
            family.template = shown(&family.template);
        }
        families.retain(|family| family.share > SHARE);
        families.sort_by_key(|family| std::cmp::Reverse(family.size));
        families
    }
}

/// Returns what two templates have in common if that is most of the shorter one.
fn one_template(a: &str, b: &str) -> Option<String> {
    if a == b {
        return (!a.is_empty()).then(|| a.to_owned());
    }
    let shorter = said(a).min(said(b));
    let is_most = |said: usize| shorter > 0 && said as f64 >= ALIKE * shorter as f64;
    // Most templates have few words in common, in any order, and need not be compared.
    let common = || Some(template(&[a, b])).filter(|common| is_most(said(common)));
    is_most(said_by_both(a, b)).then(common).flatten()
}

/// Returns the number of characters that are neither spaces nor gaps.
fn said(text: &str) -> usize {
    text.chars().filter(|&c| !c.is_whitespace() && c != GAP_CHAR).count()
}

/// Returns the characters of the words that both texts have, in any order.
fn said_by_both(a: &str, b: &str) -> usize {
    let cut = if is_spaced(a) { words } else { letters };
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in cut(a) {
        *left.entry(word).or_default() += 1;
    }
    let both = cut(b).into_iter().filter(|word| match left.get_mut(word) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    });
    both.map(said).sum()
}

/// Returns true for a text with spaces between its words.
fn is_spaced(text: &str) -> bool {
    let count = text.split_whitespace().count();
    let long = text.chars().count() > count * LONG_WORD;
    !long && (count > 1 || text.is_ascii())
}

/// Returns what all texts share, in order, with gaps for the rest.
fn template(texts: &[&str]) -> String {
    let Some((first, others)) = texts.split_first() else { return String::new() };
    let spaced = is_spaced(first);
    let cut = if spaced { words } else { letters };
    let mut common = cut(first);
    for other in others {
        let other = cut(other);
        let mut shared: Vec<&str> = Vec::new();
        for op in differences(&common, &other) {
            if let DiffOp::Equal { old_index, len, .. } = op {
                shared.extend(common.iter().skip(old_index).take(len));
            } else if shared.last().is_none_or(|last| *last != GAP) {
                shared.push(GAP);
            }
        }
        shared.dedup_by(|a, b| *a == GAP && *b == GAP);
        common = shared;
    }
    let text = common.join(if spaced { " " } else { "" });
    // Texts that have nothing in common have no template.
    if text == GAP { String::new() } else { text }
}

/// Compares two texts by words or letters, each of which is hashed once.
fn differences(a: &[&str], b: &[&str]) -> Vec<DiffOp> {
    let numbers = IdentifyDistinct::<u32>::new(a, 0..a.len(), b, 0..b.len());
    let (ours, theirs) = (numbers.old_lookup(), numbers.new_lookup());
    capture_diff(Algorithm::Myers, ours, numbers.old_range(), theirs, numbers.new_range())
}

/// Returns the beginning of a long template.
fn shown(template: &str) -> String {
    if template.chars().count() <= SHOWN {
        return template.to_owned();
    }
    template.chars().take(SHOWN).chain(GAP.chars()).collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn letters(text: &str) -> Vec<&str> {
    text.split("").filter(|letter| !letter.trim().is_empty()).collect()
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

    /// Returns the dense groups, each with its number of members and the sampled texts.
    fn crowds(groups: &[(usize, &[&str])], documents: u64) -> Vec<(usize, usize, String)> {
        let mut samples = Samples { documents, ..Samples::default() };
        for (&(size, texts), cluster) in groups.iter().zip(1..) {
            samples.groups.push((cluster, size));
            for text in texts {
                let position = u32::try_from(samples.wanted.len()).unwrap();
                samples.wanted.insert(position, (cluster, Some((*text).to_owned())));
            }
        }
        let crowds = samples.crowds();
        crowds.into_iter().map(|crowd| (crowd.groups, crowd.size, crowd.template)).collect()
    }

    #[test]
    fn groups_of_one_template_are_one_crowd_however_small_each_is() {
        let oslo = ["Weather in Oslo on Monday: 3 degrees", "Weather in Oslo on Friday: 9 degrees"];
        let rome =
            ["Weather in Rome on Sunday: 20 degrees", "Weather in Rome on Friday: 9 degrees"];
        let news = ["a lake froze in the night", "a lake froze in a night"];
        let groups: [(usize, &[&str]); 4] =
            [(70, &oslo), (60, &rome), (50, &news), (40, &["…", "a wholly different text"])];
        let weather = "Weather in \u{2026} on \u{2026} degrees".to_owned();
        assert_eq!(crowds(&groups, 10_000), [(2, 130, weather)]);
        let sizes = |documents| crowds(&groups, documents).iter().map(|c| c.1).collect::<Vec<_>>();
        assert_eq!((sizes(4_900), sizes(13_000)), (vec![130, 50], vec![]));
    }

    #[test]
    fn groups_of_fingerprints_stay_apart() {
        let groups: [(usize, &[&str]); 2] = [(90, &[]), (70, &[])];
        assert_eq!(crowds(&groups, 1000), [(1, 90, String::new()), (1, 70, String::new())]);
    }
}
