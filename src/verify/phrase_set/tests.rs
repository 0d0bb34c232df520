use std::collections::HashSet;

use super::*;
use crate::text::PipelineOptions;
use crate::verify::{Evidence, Verification};

fn pipeline() -> Pipeline {
    Pipeline::new(&PipelineOptions::preset("page").unwrap()).unwrap()
}

fn set(text: &str) -> PhraseSet {
    PhraseSet::of_text(&pipeline(), text)
}

/// All ways to compare, which have to agree.
fn containment(a: &str, b: &str) -> f64 {
    let (a, b) = (set(a), set(b));
    let decoded = a.containment(&b);
    assert_eq!(b.containment(&a).to_bits(), decoded.to_bits(), "not symmetric");
    let encoded = containment_encoded(&a.encode(), &b.encode(), 0.0).unwrap().unwrap();
    assert_eq!(encoded.to_bits(), decoded.to_bits());
    decoded
}

/// The same in hundredths.
fn percent(a: &str, b: &str) -> String {
    format!("{:.0} %", 100.0 * containment(a, b))
}

#[test]
fn the_smaller_text_is_looked_for_in_the_larger() {
    let whole = "one two three four five six seven eight";
    assert_eq!(percent("three four five six", whole), "100 %");
    assert_eq!(percent("Three, FOUR; five six!", whole), "100 %");
    // Of five phrases, the last three are not there.
    assert_eq!(percent("one two three four nine six seven", whole), "40 %");
    assert_eq!(percent("eight seven six five", whole), "0 %");
    assert_eq!(percent(whole, whole), "100 %");
}

#[test]
fn short_texts_are_compared_by_their_words() {
    let extent = |text: &str| (set(text).extent().words, set(text).extent().phrases);
    assert_eq!(["rain", "rain rain", "rain and snow"].map(extent), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(percent("sunny day", "day"), "100 %");
    assert_eq!(percent("sunny day", "rainy day"), "50 %");
    // A word is no phrase of three.
    assert_eq!(percent("day", "a sunny day"), "0 %");
    assert_eq!([percent("", ""), percent("", "day")], ["0 %", "0 %"]);
}

#[test]
fn texts_without_a_word_are_one_as_a_whole() {
    assert_eq!(set("?!").extent(), Extent { words: 1, phrases: 1 });
    assert_eq!([percent("?!", "?!"), percent("?!", "...")], ["100 %", "0 %"]);
}

#[test]
fn every_script_has_its_words() {
    let words = |text: &str| set(text).extent().words;
    assert_eq!(words("晴天好"), 3);
    assert_eq!(words("カード です"), 5);
    assert_eq!(words("안녕 세계"), 4);
    assert_eq!(words("v2版本"), 3);
    assert_eq!(words("привет, дивный мир"), 3);
    assert_eq!(words("مرحبا بالعالم"), 2);
    assert_eq!(percent("今天晴转多云", "北京今天晴转多云，气温三度"), "100 %");
    assert!(containment("今天晴转多云", "北京明天有雨夹雪，气温三度") < 0.5);
    assert_eq!(percent("วันนี้ฝนตกหนัก", "กรุงเทพ วันนี้ฝนตกหนักมาก"), "100 %");
    assert!(containment("วันนี้ฝนตกหนัก", "พรุ่งนี้อากาศดีและแดดออก") < 0.5);
}

#[test]
fn words_are_those_of_the_cleaned_text() {
    let post = Pipeline::new(&PipelineOptions::preset("post").unwrap()).unwrap();
    let of = |text| PhraseSet::of_text(&post, text);
    assert_eq!(of("今天是晴天.//A:xxx//B:xxx"), of("今天是晴天"));
    // A secret changes the hashes and not what is shared.
    let secret = crate::text::Secret::from_bytes(b"0123456789abcdefghij").unwrap();
    let options = PipelineOptions::preset("page").unwrap().secret(secret);
    let keyed = Pipeline::new(&options).unwrap();
    let of = |text| PhraseSet::of_text(&keyed, text);
    assert_ne!(of("a b c d"), set("a b c d"));
    let shared = of("a b c d").containment(&of("a b c x y"));
    assert!((0.49..0.51).contains(&shared), "{shared}");
}

/// What the definition says, over texts of a few words.
fn by_the_definition(a: &[u8], b: &[u8]) -> f64 {
    let phrases = |text: &[u8]| -> HashSet<Vec<u8>> {
        let n = if text.len() < 3 { 1 } else { 3 };
        text.windows(n).map(<[u8]>::to_vec).collect()
    };
    let extent = |text: &[u8]| (text.len(), phrases(text).len());
    let (small, large) = if extent(a) <= extent(b) { (a, b) } else { (b, a) };
    let (small, large) = (phrases(small), phrases(large));
    small.intersection(&large).count() as f64 / small.len().max(1) as f64
}

#[test]
fn containment_is_that_of_the_definition() {
    let seed = 7;
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut some, mut all) = (0, 0);
    for _ in 0..3000 {
        let letters = rng.u8(2..9);
        let mut text =
            || -> Vec<u8> { (0..rng.usize(0..12)).map(|_| b'a' + rng.u8(0..letters)).collect() };
        let (a, b) = (text(), text());
        let spaced = |text: &[u8]| -> String {
            text.iter().flat_map(|&word| [char::from(word), ' ']).collect()
        };
        let expected = by_the_definition(&a, &b);
        let (a, b) = (spaced(&a), spaced(&b));
        assert_eq!(containment(&a, &b).to_bits(), expected.to_bits(), "seed {seed}: {a:?} {b:?}");
        some += u32::from(expected > 0.0 && expected < 1.0);
        all += u32::from(expected >= 1.0);
        let (a, b) = (set(&a), set(&b));
        for threshold in [0.0, 0.25, 0.5, expected, 0.9, 1.0] {
            let passed = containment_encoded(&a.encode(), &b.encode(), threshold).unwrap();
            assert_eq!(passed, Some(expected).filter(|found| *found >= threshold), "{threshold}");
            if a.extent().refuses(b.extent(), threshold) {
                assert_eq!(passed, None);
            }
        }
    }
    assert!(some > 400 && all > 100, "{some} {all}");
}

#[test]
fn sets_read_back_as_they_were_written() {
    for text in ["", "a", "a b", "a b c d e", &"many different words and more of them ".repeat(99)]
    {
        let set = set(text);
        assert_eq!(PhraseSet::decode(&set.encode()).unwrap(), set);
        assert_eq!(Extent::of_encoded(&set.encode()).unwrap(), set.extent());
    }
    let long: Vec<String> = (0..5000).map(|n| format!("w{n}")).collect();
    let long = long.join(" ");
    let bytes = set(&long).encode().len();
    assert!((3 * 5000..4 * 5000).contains(&bytes), "{bytes}");
}

#[test]
fn damaged_sets_are_refused() {
    let good = set("a b c d").encode();
    let cut = &good[..good.len() - 1];
    let longer = [&good[..], &[0]].concat();
    let large = [2, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
    for bytes in [&[][..], &[1], &[0x80, 0, 1], cut, &longer, &large] {
        let refused = PhraseSet::decode(bytes);
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{bytes:?}: {refused:?}");
    }
    let check = Verification::Contains(0.0);
    assert_eq!(check.needs(), Evidence::Phrases);
    for (a, b) in [(&good[..], &[][..]), (&[0xff], &good)] {
        assert!(matches!(check.check(0, a, b), Err(Error::Corrupt { .. })));
    }
}
