//! The feature hash over real words: its bits are fair and independent.

use std::collections::HashSet;
use std::sync::OnceLock;

use hamdex::sketch::feature_hash;

/// Words of two common Chinese characters in the segmentation dictionary.
fn words() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        // The first level of GB 2312: the 3,755 characters of daily use.
        let rows = (0xb0..=0xd7_u8).flat_map(|row| (0xa1..=0xfe).map(move |cell| [row, cell]));
        let common: HashSet<char> = rows
            .filter_map(|bytes| {
                let (text, failed) = encoding_rs::GBK.decode_without_bom_handling(&bytes);
                text.chars().next().filter(|_| !failed)
            })
            .collect();
        let table = include_bytes!("../../src/text/tables/jieba.zst");
        let table = String::from_utf8(zstd::decode_all(&table[..]).unwrap()).unwrap();
        let words = table.lines().filter_map(|line| line.split_once(' ')).map(|(word, _)| word);
        let pairs = words.filter(|word| word.chars().count() == 2);
        pairs.filter(|word| word.chars().all(|c| common.contains(&c))).map(str::to_owned).collect()
    })
}

#[test]
fn every_bit_is_set_for_half_of_the_words_within_one_percent() {
    let words = words();
    assert!(words.len() > 50_000, "{}", words.len());
    let mut ones = [0_u32; 192];
    for word in words {
        let narrow = feature_hash::<u64>(word.as_bytes(), 0);
        let wide = feature_hash::<u128>(word.as_bytes(), 0);
        for (bit, count) in ones.iter_mut().enumerate() {
            let set = if bit < 64 { narrow >> bit & 1 == 1 } else { wide >> (bit - 64) & 1 == 1 };
            *count += u32::from(set);
        }
    }
    for (bit, count) in ones.into_iter().enumerate() {
        let share = f64::from(count) / words.len() as f64;
        assert!((share - 0.5).abs() < 0.01, "bit {bit} is set for {share:.4} of the words");
    }
}

#[test]
fn no_two_bits_agree_more_often_than_by_chance() {
    let words = words();
    let hashes: Vec<u64> =
        words.iter().map(|word| feature_hash::<u64>(word.as_bytes(), 0)).collect();
    // Five standard deviations of a fair coin.
    let allowed = 5.0 * 0.5 / (words.len() as f64).sqrt();
    for a in 0..64 {
        for b in 0..a {
            let agree = hashes.iter().filter(|&&hash| (hash >> a ^ hash >> b) & 1 == 0).count();
            let share = agree as f64 / words.len() as f64;
            assert!((share - 0.5).abs() < allowed, "bits {a} and {b} agree in {share:.4}");
        }
    }
}
