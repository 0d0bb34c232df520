//! Differences: two texts become what they share, shortened, and what only one has.
//!
//! The pieces compared are words, and single characters in scripts without spaces.

use std::time::Duration;

use similar::{DiffTag, TextDiff};

/// Equal characters that are shown on either side of a difference.
const CONTEXT: usize = 80;

/// Characters by which the context is longer, at most, so that it does not end within a word.
const WORD: usize = 24;

/// Characters of one difference that are shown; the middle of a longer one is left out.
const LONGEST: usize = 1200;

/// Stretches with differences that are shown.
const STRETCHES: usize = 12;

/// Time after which the rest is treated as different: texts of one group are mostly alike.
const PATIENCE: Duration = Duration::from_secs(5);

/// Part of a difference, in the order of the texts.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::verb) enum Part {
    /// Number of equal characters that are not shown.
    Alike(usize),
    /// What the kept text has and what the removed one has.
    Stretch { kept: Vec<Piece>, removed: Vec<Piece> },
    /// Number of further stretches with differences.
    More(usize),
}

/// Characters of one text.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::verb) struct Piece {
    pub(in crate::verb) text: String,
    /// Whether the other text has something else there.
    pub(in crate::verb) own: bool,
}

/// Compares two texts; equal ones are a single [`Part::Alike`].
pub(in crate::verb) fn parts(kept: &str, removed: &str) -> Vec<Part> {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_unicode_words(kept, removed);
    let mut parts = Parts::default();
    let ops = diff.ops();
    for (at, op) in ops.iter().enumerate() {
        let (tag, old, new) = op.as_tag_tuple();
        let kept: String = old.filter_map(|slot| diff.old_slice(slot)).collect();
        if tag == DiffTag::Equal {
            parts.equal(&kept, at == 0, at + 1 == ops.len());
        } else {
            let removed: String = new.filter_map(|slot| diff.new_slice(slot)).collect();
            parts.unequal(&kept, &removed);
        }
    }
    parts.finish()
}

#[derive(Default)]
struct Parts {
    done: Vec<Part>,
    kept: Vec<Piece>,
    removed: Vec<Piece>,
}

impl Parts {
    /// Takes what both texts have; the middle of a long piece goes unseen.
    fn equal(&mut self, text: &str, first: bool, last: bool) {
        let before = if first { 0 } else { CONTEXT };
        let after = if last { 0 } else { CONTEXT };
        let length = text.chars().count();
        // A gap is worth its line only where it saves some.
        if length <= before + after + CONTEXT / 2 {
            self.both(text);
            return;
        }
        let cut =
            |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |at| at.0);
        let (head, rest) = text.split_at(word_end(text, cut(before)));
        let (hidden, tail) =
            rest.split_at(word_start(text, cut(length - after)).saturating_sub(head.len()));
        self.both(head);
        self.close();
        self.done.push(Part::Alike(hidden.chars().count()));
        self.both(tail);
    }

    fn both(&mut self, text: &str) {
        for side in [&mut self.kept, &mut self.removed] {
            if !text.is_empty() {
                side.push(Piece { text: clean(text), own: false });
            }
        }
    }

    fn unequal(&mut self, kept: &str, removed: &str) {
        for (side, text) in [(&mut self.kept, kept), (&mut self.removed, removed)] {
            if !text.is_empty() {
                side.push(Piece { text: shortened(text), own: true });
            }
        }
    }

    fn close(&mut self) {
        let (kept, removed) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.removed));
        if !kept.is_empty() || !removed.is_empty() {
            self.done.push(Part::Stretch { kept, removed });
        }
    }

    fn finish(mut self) -> Vec<Part> {
        self.close();
        let stretches = |parts: &[Part]| {
            parts.iter().filter(|part| matches!(part, Part::Stretch { .. })).count()
        };
        let all = stretches(&self.done);
        while stretches(&self.done) > STRETCHES {
            self.done.pop();
        }
        if all > STRETCHES {
            self.done.push(Part::More(all - STRETCHES));
        }
        self.done
    }
}

/// Moves a place within a word to the end of it, unless that is far away.
fn word_end(text: &str, at: usize) -> usize {
    let (before, after) = text.split_at(at);
    if before.chars().next_back().is_none_or(char::is_whitespace) {
        return at;
    }
    let mut near = after.char_indices().take(WORD);
    near.find(|(_, c)| c.is_whitespace()).map_or(at, |(end, _)| at + end)
}

/// Moves a place within a word to the beginning of it, unless that is far away.
fn word_start(text: &str, at: usize) -> usize {
    let (before, after) = text.split_at(at);
    if after.chars().next().is_none_or(char::is_whitespace) {
        return at;
    }
    let mut near = before.char_indices().rev().take(WORD);
    near.find(|(_, c)| c.is_whitespace()).map_or(at, |(end, c)| end + c.len_utf8())
}

/// Takes the middle out of a long text.
fn shortened(text: &str) -> String {
    let length = text.chars().count();
    if length <= LONGEST {
        return clean(text);
    }
    let half = LONGEST / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - half).collect();
    format!(
        "{} [\u{2026} {} characters \u{2026}] {}",
        clean(&head),
        length - 2 * half,
        clean(&tail)
    )
}

/// Replaces characters that a page cannot contain by a sign.
fn clean(text: &str) -> String {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.replace("\r\n", "\n").replace(odd, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(pieces: &[Piece]) -> Vec<&str> {
        pieces.iter().filter(|piece| piece.own).map(|piece| piece.text.as_str()).collect()
    }

    fn stretches(parts: &[Part]) -> Vec<(Vec<&str>, Vec<&str>)> {
        let mut found = Vec::new();
        for part in parts {
            if let Part::Stretch { kept, removed } = part {
                found.push((own(kept), own(removed)));
            }
        }
        found
    }

    #[test]
    fn words_differ_as_a_whole_and_chinese_by_the_character() {
        let found = parts("the quick brown fox", "the quiet brown fox");
        assert_eq!(stretches(&found), [(vec!["quick"], vec!["quiet"])]);
        let found = parts("北京大学的研究人员发表论文", "北京大学的科研人员发表论文");
        assert_eq!(stretches(&found), [(vec!["究"], vec!["科"])]);
    }

    #[test]
    fn long_texts_are_shortened_around_what_differs() {
        let (head, tail) = ("alike ".repeat(400), " and the same".repeat(300));
        let found = parts(&format!("{head}one{tail}"), &format!("{head}two{tail}"));
        let [Part::Alike(before), Part::Stretch { kept, removed }, Part::Alike(after)] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!((own(kept), own(removed)), (vec!["one"], vec!["two"]));
        let shown: usize = kept.iter().map(|piece| piece.text.chars().count()).sum();
        assert_eq!(*before + *after + shown, 2400 + 3900 + 3);
        assert!((2 * CONTEXT..2 * (CONTEXT + WORD)).contains(&shown), "{shown}");
        // No word is cut.
        assert!(kept[0].text.starts_with("alike "), "{kept:?}");
        let last = kept.last().unwrap().text.split(' ').next_back().unwrap();
        assert!(["and", "the", "same"].contains(&last), "{kept:?}");
    }

    #[test]
    fn words_too_long_to_be_shown_are_cut() {
        let (head, tail) = ("a".repeat(400), "学".repeat(400));
        let found = parts(&format!("{head} one {tail}"), &format!("{head} two {tail}"));
        let [Part::Alike(before), Part::Stretch { kept, .. }, Part::Alike(after)] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!((*before, *after), (401 - CONTEXT, 401 - CONTEXT));
        assert_eq!(own(kept), ["one"]);
    }

    #[test]
    fn equal_texts_have_nothing_to_show() {
        assert_eq!(parts(&"a b ".repeat(100), &"a b ".repeat(100)), [Part::Alike(400)]);
        assert!(stretches(&parts("ab", "ab"))[0].0.is_empty());
        assert!(parts("", "").is_empty());
    }

    #[test]
    fn many_differences_are_counted_and_huge_ones_cut() {
        let text = |word: &str| format!("{word} {}", "filler ".repeat(60)).repeat(20);
        let found = parts(&text("one"), &text("two"));
        assert_eq!(stretches(&found).len(), STRETCHES);
        assert_eq!(found.last(), Some(&Part::More(20 - STRETCHES)));
        let [Part::Stretch { kept, .. }] = &parts(&"x".repeat(90_000), "y")[..] else { panic!() };
        assert!(kept[0].text.chars().count() < LONGEST + 60, "{}", kept[0].text.len());
        assert!(kept[0].text.contains("88800 characters"));
    }

    #[test]
    fn control_characters_become_a_sign() {
        let [Part::Stretch { kept, .. }] = &parts("a\0\u{1b}b", "c")[..] else { panic!() };
        assert_eq!(own(kept).concat(), "a\u{fffd}\u{fffd}b");
    }
}
