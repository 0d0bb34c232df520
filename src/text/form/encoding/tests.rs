//! Tests of encodings: round trips, damage, binary data and arbitrary bytes.

use super::*;

const NEWS: &str = "据报道,今年上半年全国居民人均可支配收入实际增长百分之五,城镇和农村居民的收入差距继续缩小。\
    专家认为,这说明各项政策已经开始见效。";
const TRADITIONAL: &str = "據報導,今年上半年全國居民人均可支配收入實際增長百分之五,城鎮和農村居民的收入差距繼續縮小。\
    專家認為,這說明各項政策已經開始見效。";

fn encoded(text: &str, label: &str) -> Vec<u8> {
    match label {
        "utf-16le" => text.encode_utf16().map(u16::swap_bytes).flat_map(u16::to_be_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        label => {
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
            let (bytes, _, unmappable) = encoding.encode(text);
            assert!(!unmappable, "{label}");
            bytes.into_owned()
        }
    }
}

#[test]
fn texts_come_back_from_every_encoding_without_a_label() {
    let japanese = "日本語の文章を正しく読み取れるかどうかを確かめるための、短いテキストです。";
    let korean = "한국어 문장을 올바르게 읽을 수 있는지 확인하기 위한 짧은 글입니다.";
    let russian = "Короткий текст, по которому можно узнать кодировку файла.";
    let german = "Ein kurzer Text, der größtenteils aus gewöhnlichen Wörtern besteht.";
    for (text, label) in [
        (NEWS, "utf-8"),
        (NEWS, "gb18030"),
        (NEWS, "utf-16le"),
        (NEWS, "utf-16be"),
        (TRADITIONAL, "big5"),
        (TRADITIONAL, "utf-16le"),
        (japanese, "shift_jis"),
        (japanese, "euc-jp"),
        (japanese, "utf-16le"),
        (korean, "euc-kr"),
        (korean, "utf-16be"),
        (russian, "windows-1251"),
        (russian, "utf-16le"),
        (german, "windows-1252"),
        (german, "utf-16le"),
        ("plain words\nof ASCII", "utf-16be"),
    ] {
        let bytes = encoded(text, label);
        assert!(!looks_binary(&bytes), "{label}");
        let found = decode(&bytes);
        assert_eq!((found.text.as_ref(), found.replaced), (text, 0), "{label}: {}", found.encoding);
    }
}

#[test]
fn byte_order_marks_take_precedence() {
    for (mark, label) in
        [(&b"\xef\xbb\xbf"[..], "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be")]
    {
        let bytes = [mark, &encoded("晴", label)].concat();
        assert!(!looks_binary(&bytes), "{label}");
        assert_eq!(decode(&bytes).text, "晴", "{label}");
        assert_eq!("big5".parse::<Encoding>().unwrap().decode(&bytes).text, "晴", "{label}");
    }
}

#[test]
fn short_texts_are_read_as_their_page_declares() {
    let page = b"<meta charset=big5><p>\xa4\xa4\xa4\xe5</p>";
    assert_eq!(decode(page).text, "<meta charset=big5><p>中文</p>");
    let lying = "<meta charset=gb2312><p>中文</p>";
    assert_eq!(decode(lying.as_bytes()).text, lying, "valid UTF-8 is UTF-8");
}

#[test]
fn damaged_utf8_stays_utf8_and_its_damage_is_counted() {
    let mut bytes = NEWS.as_bytes().to_vec();
    bytes.truncate(bytes.len() - 1);
    bytes.insert(9, 0xff);
    let found = decode(&bytes);
    assert_eq!((found.encoding, found.replaced), ("UTF-8", 2));
    assert!(found.text.starts_with("据报道\u{fffd}"), "{}", found.text);
}

#[test]
fn ascii_that_would_be_ideographs_in_utf16_is_ascii() {
    for text in ["Bush hid the facts", "this app can break", "aa", ""] {
        assert_eq!(decode(text.as_bytes()).text, text);
        assert!(!looks_binary(text.as_bytes()));
    }
}

#[test]
fn binary_data_is_told_from_text() {
    let mut random = fastrand::Rng::with_seed(7);
    for len in [4, 64, 1000, 100_000] {
        let noise: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
        assert!(looks_binary(&noise) || len < 64, "{len}");
        let mut zeros = NEWS.as_bytes().to_vec();
        zeros.extend_from_slice(&vec![0; len]);
        assert!(looks_binary(&zeros), "{len}");
    }
    let wide: Encoding = "utf-16le".parse().unwrap();
    assert!(wide.decode_text(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").is_none());
    assert_eq!(wide.decode_text(b"h\0i\0").unwrap().text, "hi");
    assert!(Encoding::AUTO.decode_text(b"a\0b").is_none());
}

#[test]
fn no_bytes_make_decoding_fail() {
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..2000 {
        let alphabet: &[u8] = if round % 2 == 0 { b"\x00\xff\xfe\xd8<meta charset=" } else { &[] };
        let bytes: Vec<u8> = (0..random.usize(..80))
            .map(|_| random.choice(alphabet).copied().unwrap_or_else(|| random.u8(..)))
            .collect();
        let found = decode(&bytes);
        assert!(found.replaced <= found.text.chars().count());
        looks_binary(&bytes);
    }
}

#[test]
fn labels_parse_back_and_others_are_refused() {
    for label in ["auto", "UTF-8", "gb18030", "Big5", "UTF-16LE"] {
        assert_eq!(label.parse::<Encoding>().unwrap().to_string(), label);
    }
    assert_eq!(" GB2312 ".parse::<Encoding>().unwrap().to_string(), "GBK");
    for bad in ["", "Auto", "utf-9", "replacement"] {
        assert!(
            matches!(bad.parse::<Encoding>(), Err(Error::InvalidOption { name: "encoding", .. })),
            "{bad}"
        );
    }
}
