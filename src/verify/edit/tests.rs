use std::collections::HashMap;

use super::bound::{Rejection, least};
use super::*;

/// The textbook's table, row by row (Wagner and Fischer 1974).
fn textbook(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != y)).min(row[j].min(row[j + 1]) + 1);
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    row[b.len()]
}

fn edited(rng: &mut fastrand::Rng, text: &[char], edits: usize, alphabet: &[char]) -> Vec<char> {
    let mut text = text.to_vec();
    for _ in 0..edits {
        let at = rng.usize(0..=text.len());
        let letter = alphabet[rng.usize(0..alphabet.len())];
        match rng.u8(0..3) {
            0 => text.insert(at, letter),
            1 if at < text.len() => drop(text.remove(at)),
            _ if at < text.len() => text[at] = letter,
            _ => (),
        }
    }
    text
}

#[test]
fn similarities_equal_the_textbook_table() {
    let mut rng = fastrand::Rng::with_seed(1);
    let alphabet: Vec<char> = "ab c天晴雨\u{1f600}".chars().collect();
    for round in 0..3000 {
        let (len, edits) = (rng.usize(0..200), rng.usize(0..40));
        let a: Vec<char> = (0..len).map(|_| alphabet[rng.usize(0..alphabet.len())]).collect();
        let b = edited(&mut rng, &a, edits, &alphabet);
        let longest = a.len().max(b.len());
        let edits = textbook(&a, &b);
        let expected = if longest == 0 { 1.0 } else { (longest - edits) as f64 / longest as f64 };
        let [a, b]: [String; 2] = [a, b].map(|text| text.into_iter().collect());
        for threshold in [0.0, 0.5, 0.8, 0.9, 0.95, 1.0, expected, expected + 1e-9] {
            let found = edit_similarity(&a, &b, threshold);
            assert_eq!(found, Some(expected).filter(|s| *s >= threshold), "round {round}");
        }
    }
}

#[test]
fn edits_of_short_parts_equal_the_textbook_table() {
    let mut rng = fastrand::Rng::with_seed(7);
    for round in 0..20_000 {
        let letters = rng.u8(2..26);
        let alphabet: Vec<char> = (0..letters).map(|at| char::from(b'a' + at)).collect();
        let len = rng.usize(1..260);
        let a: Vec<char> = (0..len).map(|_| alphabet[rng.usize(0..alphabet.len())]).collect();
        let edits = rng.usize(0..120);
        let mut b = edited(&mut rng, &a, edits, &alphabet);
        if rng.bool() {
            b.truncate(rng.usize(0..=b.len()));
        }
        let expected = textbook(&a, &b);
        let [a, b]: [String; 2] = [a, b].map(|text| text.into_iter().collect());
        assert_eq!(levenshtein_of(&a, &b), Some(expected), "round {round}: {a} {b}");
    }
}

#[test]
fn round_similarities_pass_round_thresholds() {
    for tenths in 0..=10_usize {
        let a = "a".repeat(10);
        let b = "b".repeat(tenths) + &"a".repeat(10 - tenths);
        let threshold = format!("0.{}", 10 - tenths).replace("0.10", "1");
        let threshold = threshold.parse().unwrap();
        assert_eq!(edit_similarity(&a, &b, threshold), Some(threshold));
    }
}

#[test]
fn empty_texts_are_equal_and_differ_from_all_others() {
    assert_eq!(edit_similarity("", "", 1.0), Some(1.0));
    assert_eq!(edit_similarity("", "a", 0.0), Some(0.0));
    assert_eq!(edit_similarity("", "a", 0.1), None);
}

#[test]
fn texts_of_many_pieces_are_never_found_too_similar() {
    let mut rng = fastrand::Rng::with_seed(2);
    let alphabet: Vec<char> = ('a'..='z').chain('一'..='丐').collect();
    let a: Vec<char> = (0..200_000).map(|_| alphabet[rng.usize(0..alphabet.len())]).collect();
    let edits = 2000;
    let b = edited(&mut rng, &a, edits, &alphabet);
    let [a, b]: [String; 2] = [a, b].map(|text| text.into_iter().collect());
    let found = edit_similarity(&a, &b, 0.9).unwrap();
    // A letter may be replaced by itself, so there are fewer than 2,000 edits.
    assert!((0.985..0.991).contains(&found), "{found}");
    let mut joined = a.clone();
    joined.push_str(&b);
    assert_eq!(edit_similarity(&a, &joined, 0.9), None);
}

/// A text of random words of a vocabulary.
fn words(rng: &mut fastrand::Rng, count: usize, vocabulary: &[String]) -> String {
    let words: Vec<&str> =
        (0..count).map(|_| vocabulary[rng.usize(0..vocabulary.len())].as_str()).collect();
    words.join(" ")
}

/// Two texts: different, near, reordered, repeated, or empty.
fn pair(rng: &mut fastrand::Rng, letters: &[char]) -> [String; 2] {
    let vocabulary: Vec<String> = (0..200)
        .map(|_| (0..rng.usize(1..8)).map(|_| letters[rng.usize(0..letters.len())]).collect())
        .collect();
    let count = rng.usize(0..250);
    let a = words(rng, count, &vocabulary);
    let chars: Vec<char> = a.chars().collect();
    let b = match rng.u8(0..6) {
        0 => words(rng, count, &vocabulary),
        1 => {
            let other: Vec<char> = ('!'..='?').collect();
            (0..chars.len()).map(|_| other[rng.usize(0..other.len())]).collect()
        }
        2 => {
            let mut shuffled: Vec<&str> = a.split(' ').collect();
            rng.shuffle(&mut shuffled);
            shuffled.join(" ")
        }
        3 => a.get(..a.floor_char_boundary(a.len() / 3)).unwrap().repeat(3),
        4 if rng.u8(0..8) == 0 => String::new(),
        _ => {
            let edits = rng.usize(0..=chars.len() / 4);
            edited(rng, &chars, edits, letters).into_iter().collect()
        }
    };
    [a, b]
}

#[test]
fn lower_bounds_change_no_result() {
    let mut rng = fastrand::Rng::with_seed(3);
    let alphabets = [('a'..='z').collect::<Vec<char>>(), ('一'..='丐').collect()];
    let mut refused: HashMap<Option<Rejection>, usize> = HashMap::new();
    for round in 0..3000 {
        let [a, b] = pair(&mut rng, &alphabets[round % 2]);
        let chars = [&a, &b].map(|text| text.chars().collect::<Vec<char>>());
        let longest = chars[0].len().max(chars[1].len());
        let plain = levenshtein::distance(a.chars(), b.chars());
        if round % 30 == 0 {
            assert_eq!(plain, textbook(&chars[0], &chars[1]), "round {round}");
        }
        let expected = if longest == 0 { 1.0 } else { (longest - plain) as f64 / longest as f64 };
        for threshold in [0.0, 0.5, 0.8, 0.85, 0.88, 0.95, 1.0, expected] {
            let found = edit_similarity(&a, &b, threshold);
            assert_eq!(found, Some(expected).filter(|s| *s >= threshold), "round {round}");
            let most = most_edits(longest, threshold);
            let least = least(&a, &b, most);
            let at_least = least.unwrap_or(most + 1);
            assert!(plain >= at_least, "round {round}: {least:?} {plain} {most}");
            *refused.entry(least.err()).or_default() += 1;
        }
    }
    for why in [None, Some(Rejection::Letters), Some(Rejection::Grams)] {
        assert!(refused.get(&why).copied() > Some(500), "{why:?} of {refused:?}");
    }
}

#[test]
fn edits_of_long_texts_are_close_to_the_exact_number() {
    let mut rng = fastrand::Rng::with_seed(5);
    let alphabet: Vec<char> = ('a'..='z').chain('一'..='丐').collect();
    for changed in [0, 30, 300, 3000] {
        let a: Vec<char> = (0..40_000).map(|_| alphabet[rng.usize(0..alphabet.len())]).collect();
        let b = edited(&mut rng, &a, changed, &alphabet);
        let [a, b]: [String; 2] = [a, b].map(|text| text.into_iter().collect());
        let exact = levenshtein::distance(a.chars(), b.chars());
        let found = edits_up_to(&a, &b, 40_000, &|| Ok(())).unwrap().unwrap();
        assert!(found >= exact && found <= exact + exact / 50, "{changed} {found} {exact}");
        assert_eq!(edits_up_to(&a, &b, found, &|| Ok(())).unwrap(), Some(found));
        let fewer = found.checked_sub(1).map(|most| edits_up_to(&a, &b, most, &|| Ok(())).unwrap());
        assert_eq!(fewer.flatten(), None);
    }
}

#[test]
fn an_inserted_passage_does_not_misalign_the_rest() {
    let mut rng = fastrand::Rng::with_seed(6);
    let letters: Vec<char> = ('a'..='z').collect();
    let mut text =
        |len: usize| -> String { (0..len).map(|_| letters[rng.usize(0..letters.len())]).collect() };
    let (begin, between, end) = (text(100_000), text(5_000), text(100_000));
    let a = format!("x{begin}{end}y");
    let b = format!("y{begin}{between}{end}x");
    let found = edit_similarity(&a, &b, 0.9).unwrap();
    let exact = 1.0 - 5_002.0 / 205_002.0;
    assert!((found - exact).abs() < 1e-9, "{found} {exact}");
}

#[test]
fn different_long_texts_fail_and_can_be_cancelled() {
    let mut rng = fastrand::Rng::with_seed(4);
    let letters: Vec<char> = ('a'..='z').collect();
    let vocabulary: Vec<String> = (0..500)
        .map(|_| (0..rng.usize(1..8)).map(|_| letters[rng.usize(0..26)]).collect())
        .collect();
    let [a, b] = [0; 2].map(|_| words(&mut rng, 30_000, &vocabulary));
    assert_eq!(similarity_while(&a, &b, 0.8, &|| Ok(())).unwrap(), None);
    assert_eq!(similarity_while(&a, &b, 0.0, &|| Ok(())).unwrap(), Some(0.0));
    let [one, two] = [0; 2].map(|_| words(&mut rng, 300, &vocabulary));
    let within = |middle: &str| format!("{middle} {a} {b} {middle}");
    let cancel = || Err(crate::Error::Cancelled);
    let stopped = similarity_while(&within(&one), &within(&two), 0.0, &cancel);
    assert!(matches!(stopped, Err(crate::Error::Cancelled)), "{stopped:?}");
}
