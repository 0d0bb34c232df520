//! Simplified Chinese: converts traditional characters phrase by phrase.
//!
//! Uses `OpenCC`'s tables (`t2s`): 乾 becomes 干 in 乾燥 and stays in 乾坤. A text in either script
//! gets the same fingerprint. This is optional, because it also makes some different words equal.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::text::tokens::segment::is_han;

/// The phrases that begin with one character and their replacements, longest first.
type Replacements = Vec<(&'static str, &'static str)>;

static TABLE: LazyLock<HashMap<char, Replacements>> = LazyLock::new(|| {
    let mut table: HashMap<char, Replacements> = HashMap::new();
    let lines = include_str!("../tables/simplified.tsv").lines();
    for (from, to) in lines.filter_map(|line| line.split_once('\t')) {
        if let Some(first) = from.chars().next() {
            table.entry(first).or_default().push((from, to));
        }
    }
    for replacements in table.values_mut() {
        replacements.sort_unstable_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    }
    table
});

/// Appends Chinese in simplified characters, by the longest matching entry at each position.
fn convert_into(mut han: &str, out: &mut String) {
    while let Some(first) = han.chars().next() {
        let entries = TABLE.get(&first).map_or(&[][..], Vec::as_slice);
        let entry = entries.iter().find(|(from, _)| han.starts_with(from));
        let taken = if let Some((from, to)) = entry {
            out.push_str(to);
            from.len()
        } else {
            out.push(first);
            first.len_utf8()
        };
        han = &han[taken..];
    }
}

/// Replaces `out` by the text in simplified characters.
pub(in crate::text) fn simplify_into(text: &str, out: &mut String) {
    out.clear();
    out.reserve(text.len());
    let mut rest = text;
    // Only Chinese is looked up: a look-up costs far more than a copy.
    while let Some(start) = rest.find(is_han) {
        let (other, tail) = rest.split_at(start);
        let end = tail.find(|c| !is_han(c)).unwrap_or(tail.len());
        let (han, tail) = tail.split_at(end);
        out.push_str(other);
        convert_into(han, out);
        rest = tail;
    }
    out.push_str(rest);
}

/// Returns the text in simplified characters.
pub(in crate::text) fn simplify(text: &str) -> String {
    let mut out = String::new();
    simplify_into(text, &mut out);
    out
}

/// Returns a digest of the tables, computed from their conversion of a fixed text.
pub(in crate::text) fn digest() -> u32 {
    const PROBE: &str = "臺灣大學的圖書館藏有許多繁體字的書籍,乾燥乾坤,頭髮出發,後來皇后,一隻隻能,裏面公里,\
        著作走著,瞭解瞭望,併購並且,鐘錶手錶表面,麵粉面對,鬆開松樹,穀物山谷,儘管盡力,曆法歷史,\
        製造制度,複習恢復覆蓋,鬱金香,龍龜鳳蠶驢鑰體讓變襯衛藝蘇蘭蕭薩藍雞";
    crc32fast::hash(simplify(PROBE).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traditional_text_becomes_simplified_by_phrases() {
        assert_eq!(simplify("臺灣大學,繁體字 abc 乾燥"), "台湾大学,繁体字 abc 干燥");
        assert_eq!(simplify("乾坤"), "乾坤");
        assert_eq!(simplify("頭髮出發"), "头发出发");
        for same in ["", "plain", "今天是晴天", "かな漢"] {
            assert_eq!(simplify(same).chars().count(), same.chars().count(), "{same}");
        }
        assert_eq!(simplify("今天是晴天"), "今天是晴天");
    }

    #[test]
    fn simplified_text_is_in_normal_form_and_stays_as_it_is() {
        let han: String = ('\u{4e00}'..='\u{9fff}').collect();
        let once = simplify(&han);
        assert_eq!(crate::text::normalise(&once), once);
        assert_ne!(once, han);
    }

    #[test]
    fn every_entry_of_the_table_is_read_once() {
        let lines =
            include_str!("../tables/simplified.tsv").lines().filter(|l| !l.starts_with('#'));
        let keys: Vec<&str> = lines.map(|line| line.split_once('\t').unwrap().0).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!(TABLE.values().flatten().count(), keys.len());
        for (from, to) in TABLE.values().flatten() {
            assert_eq!(simplify(from), *to);
        }
    }

    #[test]
    fn golden_digest_holds_until_the_tables_change() {
        assert_eq!(digest(), 0xb8eb_7544);
    }
}
