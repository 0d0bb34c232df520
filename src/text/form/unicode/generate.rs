//! Generates `tables/casefold-1.tsv` from the Unicode data of crates and of the compiler.
//!
//! Decompositions and classes of marks come from `unicode-normalization` 0.1.26, scripts from
//! `unicode-script` 0.5.9, case and letters from Rust 1.95 (Unicode 17). A released table never
//! changes: a newer one gets a new name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
    is_combining_mark,
};
use unicode_script::{Script, UnicodeScript};

/// Characters with the property `Default_Ignorable_Code_Point`, stable since Unicode 5.
const IGNORABLE: [(u32, u32); 17] = [
    (0xad, 0xad),
    (0x034f, 0x034f),
    (0x061c, 0x061c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x2060, 0x206f),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfff8),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0x000e_0000, 0x000e_0fff),
];

/// Points of Hebrew and Arabic, and the tatweel: optional in spelling.
///
/// Lucene's `ArabicNormalizer` and `PersianNormalizer` drop most of them too.
const POINTS: [(u32, u32); 17] = [
    (0x0591, 0x05bd),
    (0x05bf, 0x05bf),
    (0x05c1, 0x05c2),
    (0x05c4, 0x05c5),
    (0x05c7, 0x05c7),
    (0x0610, 0x061a),
    (0x0640, 0x0640),
    (0x064b, 0x065f),
    (0x0670, 0x0670),
    (0x06d6, 0x06dc),
    (0x06df, 0x06e4),
    (0x06e7, 0x06e8),
    (0x06ea, 0x06ed),
    (0x0897, 0x089f),
    (0x08ca, 0x08e1),
    (0x08e3, 0x08ff),
    (0x10ec2, 0x10ec7),
];

/// Letters folded beyond Unicode: alef maksura and Farsi yeh, keheh, teh marbuta, dotless i.
///
/// All but the dotless i as in Lucene.
const ALIKE: [(char, char); 5] = [
    ('\u{649}', '\u{64a}'),
    ('\u{6cc}', '\u{64a}'),
    ('\u{6a9}', '\u{643}'),
    ('\u{629}', '\u{647}'),
    ('\u{131}', 'i'),
];

fn is_in(ranges: &[(u32, u32)], c: char) -> bool {
    ranges.iter().any(|&(first, last)| (first..=last).contains(&u32::from(c)))
}

/// Returns the full case folding: lower case, except that Cherokee folds to capitals.
fn folded(c: char) -> Vec<char> {
    match c {
        '\u{13a0}'..='\u{13f5}' | '\u{131}' => vec![c],
        '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => c.to_uppercase().collect(),
        '\u{130}' => vec!['i', '\u{307}'],
        _ => c.to_uppercase().flat_map(char::to_lowercase).collect(),
    }
}

/// Returns what a character folds to, fully decomposed, in canonical order.
fn form(c: char) -> Vec<char> {
    let mut now = vec![c];
    loop {
        let mut next = Vec::new();
        for c in &now {
            decompose_compatible(*c, |c| {
                for c in folded(c).into_iter().filter(|&c| !is_in(&IGNORABLE, c)) {
                    next.push(ALIKE.iter().find(|(from, _)| *from == c).map_or(c, |(_, to)| *to));
                }
            });
        }
        next.retain(|&c| !is_in(&POINTS, c));
        if next == now {
            break;
        }
        now = next;
    }
    // Drops the dot of the dotted capital I, because the small letter has one.
    if c == '\u{130}' {
        now = vec!['i'];
    }
    for run in now.chunk_by_mut(|_, &b| canonical_combining_class(b) != 0) {
        run.sort_by_key(|&c| canonical_combining_class(c));
    }
    now
}

fn canonical(c: char) -> Vec<char> {
    let mut out = Vec::new();
    decompose_canonical(c, |c| out.push(c));
    out
}

/// Composes the result of `form`.
fn composed(text: &[char]) -> Vec<char> {
    use unicode_normalization::UnicodeNormalization;
    text.iter().copied().nfc().collect()
}

fn is_hangul(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

fn hex(text: &[char]) -> String {
    text.iter().map(|c| format!("{:X}", u32::from(*c))).collect::<Vec<_>>().join(" ")
}

/// Writes a line `tag first..last value` for each range of characters with one value.
fn ranges(out: &mut String, tag: &str, values: &BTreeMap<u32, String>, rising: bool) {
    let mut rest = values.iter().peekable();
    while let Some((&first, value)) = rest.next() {
        let mut last = first;
        let target = u32::from_str_radix(value, 16).ok().filter(|_| rising);
        while let Some(&(&next, other)) = rest.peek()
            && next == last + 1
            && target.map_or(other == value, |target| {
                u32::from_str_radix(other, 16) == Ok(target + next - first)
            })
        {
            last = next;
            rest.next();
        }
        writeln!(out, "{tag}\t{first:X}..{last:X}\t{value}").unwrap();
    }
}

pub(super) fn table() -> String {
    let mut out = String::from(
        "# Normal form casefold-1 of hamdex: NFKC_Casefold and more, see unicode/generate.rs.\n\
         # F from..to first: a character becomes others (a range: one each, rising); none: dropped\n\
         # D character: its canonical decomposition; P first second composite; M mark: its class\n\
         # L alphabetic, N numeric, S dense script, C combining mark\n\
         # From the Unicode Character Database, (c) Unicode, Inc., Unicode License V3.\n",
    );
    let all = || ('\0'..=char::MAX).filter(|&c| !is_hangul(c));
    let fixed: BTreeSet<char> = all().filter(|&c| composed(&form(c)) == [c]).collect();
    let folds = all().filter(|c| !fixed.contains(c));
    let folds = folds.map(|c| (u32::from(c), hex(&composed(&form(c))))).collect();
    ranges(&mut out, "F", &folds, true);
    for &c in &fixed {
        let parts = canonical(c);
        if parts != [c] {
            writeln!(out, "D\t{:X}\t{}", u32::from(c), hex(&parts)).unwrap();
        }
    }
    writeln!(out, "P\t69 307\t69").unwrap();
    for &c in &fixed {
        // Only pairs of two fixed characters: no others occur in folded text.
        if let [head @ .., second] = &canonical(c)[..]
            && let [first] = composed(head)[..]
            && compose(first, *second) == Some(c)
        {
            writeln!(out, "P\t{}\t{:X}", hex(&[first, *second]), u32::from(c)).unwrap();
        }
    }
    let of = |value: &dyn Fn(char) -> Option<String>| -> BTreeMap<u32, String> {
        ('\0'..=char::MAX).filter_map(|c| Some((u32::from(c), value(c)?))).collect()
    };
    let marks =
        of(&|c| Some(canonical_combining_class(c)).filter(|&n| n > 0).map(|n| n.to_string()));
    ranges(&mut out, "M", &marks, false);
    let said = |yes: bool| yes.then(String::new);
    ranges(&mut out, "L", &of(&|c| said(c.is_alphabetic())), false);
    ranges(&mut out, "N", &of(&|c| said(c.is_numeric())), false);
    ranges(&mut out, "S", &of(&|c| said(is_dense(c))), false);
    ranges(&mut out, "C", &of(&|c| said(is_combining_mark(c))), false);
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// Returns true if a character counts as two letters by its script.
fn is_dense(c: char) -> bool {
    matches!(
        c.script(),
        Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Hangul
            | Script::Bopomofo
            | Script::Yi
    )
}

#[test]
#[ignore = "rewrites a released table; see the module"]
fn the_table_is_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/text/tables/casefold-1.tsv");
    std::fs::write(path, table()).unwrap();
}
