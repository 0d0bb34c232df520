//! Texts: encodings, the caller's own tables, secrets, and what an index keeps of them.

use std::fmt::Write;

use crate::support::Bench;

const NEWS: &str =
    "据报道,今年上半年全国居民人均可支配收入实际增长百分之五,城镇和农村居民的收入差距继续缩小。";

/// The same in GB18030.
const NEWS_GB18030: &str = "beddb1a8b5c02cbdf1c4eac9cfb0ebc4eac8abb9fabed3c3f1c8cbbef9bfc9d6a7c5e4cad5c8ebcab5bccad4\
    f6b3a4b0d9b7d6d6aecee52cb3c7d5f2bacdc5a9b4e5bed3c3f1b5c4cad5c8ebb2eebee0bcccd0f8cbf5d0a1\
    a1a3";

const TRADITIONAL: &str =
    "據報道,今年上半年全國居民人均可支配收入實際增長百分之五,城鎮和農村居民的收入差距繼續縮小。";

/// The same in Big5.
const TRADITIONAL_BIG5: &str = "bedab3f8b9442ca4b5a67ea457a562a67ea5feb0eaa97ea5c1a448a7a1a569a4e4b074a6aca44ab9eabbdabc\
    57aaf8a6caa4c0a4a7a4ad2cabb0c2eda94db941a7f8a97ea5c1aabaa6aca44aae74b65ac47ec4f2c159a470\
    a143";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

fn utf16_le(text: &str) -> Vec<u8> {
    text.encode_utf16().map(u16::swap_bytes).flat_map(u16::to_be_bytes).collect()
}

#[test]
fn files_of_every_encoding_are_duplicates_of_their_utf8_twins() {
    let bench = Bench::new();
    bench
        .file("docs/a-utf8.txt", NEWS)
        .file("docs/b-gb18030.txt", bytes(NEWS_GB18030))
        .file("docs/c-utf16.txt", [b"\xff\xfe", utf16_le(NEWS).as_slice()].concat())
        .file("docs/d-utf16-bare.txt", utf16_le(NEWS))
        .file("docs/e-bom.txt", format!("\u{feff}{NEWS}"))
        .file(
            "docs/f-page.html",
            [b"<html><head><meta charset=gb2312></head><body><p>", &bytes(NEWS_GB18030)[..]]
                .concat(),
        )
        .file("docs/g-utf8.txt", TRADITIONAL)
        .file("docs/h-big5.txt", bytes(TRADITIONAL_BIG5))
        .file("docs/i-picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let outcome = bench.ok("dedup docs -o out -k 0 --json").json();
    assert_eq!((&outcome[0]["documents"], &outcome[0]["kept"]), (&8.into(), &2.into()));
    let prints = bench.ok("fingerprint docs").json();
    assert!(prints[..6].iter().all(|row| row["fingerprint"] == prints[0]["fingerprint"]));
    assert_eq!(prints[6]["fingerprint"], prints[7]["fingerprint"]);
    assert_ne!(prints[0]["fingerprint"], prints[6]["fingerprint"]);
    let together = bench.ok("fingerprint docs --simplified").json();
    assert!(together.iter().all(|row| row["fingerprint"] == together[0]["fingerprint"]));
    // What is kept is kept as text, not as the bytes it came in.
    bench.file("legacy/a.txt", bytes(NEWS_GB18030));
    bench.ok("dedup legacy -o legacy-out");
    let row: serde_json::Value =
        serde_json::from_str(&bench.read("legacy-out/kept.jsonl")).unwrap();
    assert_eq!(row["text"], NEWS);
}

#[test]
fn fields_in_capitals_and_in_chinese_are_texts_in_one_folder() {
    let bench = Bench::new();
    bench
        .file("all/a.csv", format!("编号,内容\n1,\"{NEWS}\"\n"))
        .file("all/b.csv", format!("Id,Title,Text\n1,x,\"{NEWS}\"\n"))
        .file("all/c.jsonl", serde_json::json!({"标题": "x", "正文": NEWS}).to_string());
    let outcome = bench.ok("dedup all -o out --json").json();
    assert_eq!((&outcome[0]["documents"], &outcome[0]["kept"]), (&3.into(), &1.into()));
    let rows = format!("Id\tText\r\n1\t\"{NEWS}\"\r\n");
    bench.file("excel.tsv", [b"\xff\xfe", utf16_le(&rows).as_slice()].concat());
    let outcome = bench.ok("dedup all excel.tsv -o excel --json").json();
    assert_eq!((&outcome[0]["documents"], &outcome[0]["kept"]), (&4.into(), &1.into()));
    bench.file("all/d.csv", format!("编号,说明\n1,\"{NEWS}\"\n"));
    bench.run("dedup all -o all-out").refused(3, &["说明", "--text-field"]);
    bench.file("misread.csv", "说明".repeat(100_000) + "\n1\n");
    let outcome = bench.run("dedup misread.csv -o misread");
    outcome.refused(3, &["说明说明...", "--text-field"]);
    assert!(outcome.stderr.len() < 1000, "{}", outcome.stderr);
    let named = bench.ok("dedup all -o named --text-field 内容,Text,正文,说明 --json").json();
    assert_eq!((&named[0]["documents"], &named[0]["kept"]), (&4.into(), &1.into()));
}

#[test]
fn an_id_in_capitals_is_the_id_unless_there_is_one_in_small_letters() {
    let bench = Bench::new();
    bench
        .file("a.csv", format!("ID,Text\nx,\"{NEWS}\"\n,\"{NEWS}\"\n"))
        .file("b.jsonl", serde_json::json!({"Id": "y", "text": NEWS}).to_string())
        .file("c.jsonl", serde_json::json!({"ID": "other", "id": "z", "text": NEWS}).to_string());
    let outcome = bench.ok("fingerprint a.csv b.jsonl c.jsonl");
    assert!(outcome.stderr.contains("ids from field ID, Id, id"), "{}", outcome.stderr);
    let ids: Vec<_> = outcome.json().into_iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["x", "a.csv:3", "y", "z"]);
    let named = bench.ok("fingerprint c.jsonl --id-field ID");
    assert_eq!(named.json()[0]["id"], "other");
    assert!(!named.stderr.contains("ids from"), "{}", named.stderr);
}

#[test]
fn a_named_encoding_is_believed_and_malformed_bytes_are_told() {
    let bench = Bench::new();
    bench.file("a.txt", b"\xa4\xa4\xa4\xe5\xa9\xce\xadn");
    bench.file("b.txt", "中文或要");
    let prints = bench.ok("fingerprint a.txt b.txt --encoding big5 --pipeline post").json();
    assert_ne!(prints[0]["fingerprint"], prints[1]["fingerprint"], "b is no Big5");
    let big5 = prints[0]["fingerprint"].clone();
    let utf8 = bench.ok("fingerprint b.txt --pipeline post").json()[0]["fingerprint"].clone();
    assert_eq!(big5, utf8);
    bench.file("c.txt", b"sunny days \xff are here");
    let outcome = bench.ok("fingerprint c.txt --encoding utf-8");
    assert!(outcome.stderr.contains("1 text file holds malformed bytes"), "{}", outcome.stderr);
    bench.run("fingerprint a.txt --encoding klingon").refused(2, &["klingon", "gb18030"]);
}

#[test]
fn json_lines_in_other_encodings_are_refused_with_the_remedy() {
    let bench = Bench::new();
    let row = format!("{{\"id\":\"a\",\"text\":\"{NEWS}\"}}\n");
    bench.file("marked.jsonl", [b"\xff\xfe", utf16_le(&row).as_slice()].concat());
    bench.file("bare.jsonl", utf16_le(&row));
    for name in ["marked.jsonl", "bare.jsonl"] {
        bench.run(&format!("fingerprint {name}")).refused(3, &[name, "UTF-16", "iconv"]);
        bench.run(&format!("build idx {name}")).refused(3, &[name]);
        assert!(!bench.path("idx").exists());
    }
    let legacy = [b"{\"id\":\"a\",\"text\":\"", &bytes(NEWS_GB18030)[..], b"\"}\n"].concat();
    bench.file("legacy.jsonl", legacy);
    bench
        .run("fingerprint legacy.jsonl")
        .refused(3, &["legacy.jsonl:1: invalid UTF-8", "none of 1 rows can be used"]);
}

#[test]
fn an_index_keeps_the_version_of_words_it_was_made_with() {
    let bench = Bench::new();
    bench.file("rows.jsonl", "{\"id\":\"a\",\"text\":\"ภาษาไทยภาษาไทย\"}\n");
    let descriptor = |index: &str| {
        let stats = bench.ok(&format!("stats {index} --json")).json();
        stats[0]["pipeline"].as_str().unwrap().to_owned()
    };
    bench.ok("build new rows.jsonl --segment words");
    let new = descriptor("new");
    let (head, tail) = new.split_once("words-2,").unwrap();
    let (_, tail) = tail.split_once(';').unwrap();
    let old = format!("{head}words;{tail}");
    bench.ok(&format!("build old rows.jsonl --pipeline {old}"));
    assert_ne!(bench.export("old"), bench.export("new"));
    for index in ["old", "new"] {
        bench.ok(&format!("insert {index} rows.jsonl --segment words"));
        let found = bench.ok(&format!("query {index} rows.jsonl -k 0")).json();
        assert_eq!(found[0]["distance"], 0, "{index}");
    }
    assert_eq!((descriptor("old"), descriptor("new")), (old, new));
    bench.run("insert old rows.jsonl --segment auto").refused(1, &["pipeline", "segment=words;"]);
}

const STORIES: &str = "\
{\"id\":\"a\",\"text\":\"the saucer landed behind the hill at night\"}
{\"id\":\"b\",\"text\":\"the pilots of the saucer left in the morning\"}
{\"id\":\"c\",\"text\":\"海量指纹的去重算法和快速查找办法\"}
";

#[test]
fn an_index_keeps_the_tables_that_its_texts_need() {
    let bench = Bench::new();
    bench
        .file("rows.jsonl", STORIES)
        .file("words.txt", "海量指纹 10 n\n")
        .file("stop.txt", "# common\nthe\nof\n的\n");
    let tables = "--dictionary words.txt --stop-words stop.txt --weights tfidf --idf learn";
    bench.ok(&format!("build idx rows.jsonl {tables}"));
    let prints = bench.ok(&format!("fingerprint rows.jsonl {tables} --save-idf rarity.idf"));
    bench.ok(&format!("insert made rows.jsonl {tables}"));
    assert_eq!(bench.export("made"), bench.export("idx"));
    // The same again, from the saved table.
    let saved = "--dictionary words.txt --stop-words stop.txt --weights tfidf --idf rarity.idf";
    assert_eq!(bench.ok(&format!("fingerprint rows.jsonl {saved}")).stdout, prints.stdout);
    bench.ok(&format!("insert idx rows.jsonl {saved}"));
    bench.ok(&format!("insert idx rows.jsonl {tables}"));
    bench
        .run("insert idx rows.jsonl --weights tfidf --idf learn")
        .refused(1, &["pipeline", "dictionary=-"]);
    for name in ["words.txt", "stop.txt", "rarity.idf"] {
        std::fs::remove_file(bench.path(name)).unwrap();
    }
    for index in ["idx", "made"] {
        let mut command = bench.command(&format!("query {index} -k 0 --text"));
        let found = command.arg("海量指纹的去重算法和快速查找办法").output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        assert!(found.contains("\"id\":\"c\",\"distance\":0"), "{found}");
        assert_eq!(bench.ok(&format!("query {index} rows.jsonl -k 0")).json().len(), 3);
        bench.ok(&format!("insert {index} rows.jsonl"));
        bench.ok(&format!("check {index}"));
    }
    let stats = bench.ok("stats idx --json").json();
    assert_eq!(stats[0]["resources"]["dictionary"], "海量指纹 10 n\n".len());
    assert!(stats[0]["resources"]["idf"].as_u64().unwrap() > 0);
    assert!(bench.ok("stats idx").stdout.contains("stop-words"));
    let descriptor = stats[0]["pipeline"].as_str().unwrap();
    assert!(descriptor.contains("idf=learnt,"), "{descriptor}");
}

#[test]
fn a_centre_that_was_learnt_goes_with_the_index_and_can_be_saved() {
    let bench = Bench::new();
    let mut random = fastrand::Rng::with_seed(5);
    let rows: Vec<String> = (0..80)
        .map(|n| {
            let words: Vec<String> = (0..40).map(|_| format!("{:x}", random.u64(..))).collect();
            format!("{{\"id\":\"{n}\",\"text\":\"the {}\"}}\n", words.join(" "))
        })
        .collect();
    bench.file("rows.jsonl", rows.concat());
    bench.ok("build idx rows.jsonl --centre learn");
    let stats = bench.ok("stats idx --json").json();
    assert!(stats[0]["pipeline"].as_str().unwrap().contains(";centre="));
    assert_eq!(stats[0]["resources"]["centre"], 396);
    bench.ok("insert idx rows.jsonl --centre learn");
    bench.ok("insert idx rows.jsonl");
    assert_eq!(bench.ok("query idx rows.jsonl -k 0").json().len(), 80);
    let prints = bench.ok("fingerprint rows.jsonl --centre learn --save-centre usual").stdout;
    assert_eq!(bench.ok("fingerprint rows.jsonl --centre usual").stdout, prints);
    assert_ne!(bench.ok("fingerprint rows.jsonl").stdout, prints);
    bench.ok("insert idx rows.jsonl --centre usual");
    bench.run("insert idx rows.jsonl --centre none").refused(1, &["pipeline", "centre="]);
    bench.file("prints.jsonl", "{\"id\":1,\"fingerprint\":\"00000000000000ff\"}\n");
    bench.run("pairs prints.jsonl --centre learn").refused(2, &["--centre", "only fingerprints"]);
    // One template many times over has no middle of its own.
    let notices: Vec<String> = (0..200)
        .map(|n| format!("{{\"id\":{n},\"text\":\"your parcel {n} is on its way to you\"}}\n"))
        .collect();
    bench.file("notices.jsonl", notices.concat());
    let plain = bench.ok("fingerprint notices.jsonl").stdout;
    let tried = bench.ok("fingerprint notices.jsonl --centre learn");
    assert_eq!(tried.stdout, plain);
    assert!(tried.stderr.contains("no centre") || tried.stderr.contains("too few"));
}

#[test]
fn given_weights_and_built_in_stop_words_decide_what_counts() {
    let bench = Bench::new();
    bench.file("rows.jsonl", STORIES).file("weights.tsv", "saucer\t1000\n*\t1\nhill\t0\n");
    let of = |options: &str| {
        let rows = bench.ok(&format!("fingerprint rows.jsonl {options}")).json();
        (
            rows[0]["fingerprint"].clone(),
            rows[1]["fingerprint"].clone(),
            rows[0]["features"].clone(),
        )
    };
    let (a, b, features) = of("--weights weights.tsv");
    assert_eq!((a, features), (b, 6.into()), "one word outweighs all others");
    assert_eq!(of("--stop-words builtin").2, 4, "saucer, landed, hill, night");
    assert_eq!(of("--stop-words none --segment auto").2, 7);
    let prints = bench.ok("fingerprint rows.jsonl --stop-words none").stdout;
    assert_eq!(prints, bench.ok("fingerprint rows.jsonl --pipeline auto").stdout);
}

#[test]
fn wrong_lines_of_tables_are_named_with_file_and_line() {
    let bench = Bench::new();
    bench
        .file("rows.jsonl", STORIES)
        .file("words.txt", "云计算 3\n指纹 x3! n\n")
        .file("stop.txt", "the\nof a\n")
        .file("weights.tsv", "the\t-1\n")
        .file("noise.idf", "no table");
    for (option, status, words) in [
        ("--dictionary words.txt", 3, ["words.txt:2", "x3!"]),
        ("--stop-words stop.txt", 3, ["stop.txt:2", "of a"]),
        ("--weights weights.tsv", 3, ["weights.tsv:1", "-1"]),
        ("--weights tfidf --idf noise.idf", 3, ["noise.idf", "--save-idf"]),
        ("--weights tfidf --idf absent.idf", 6, ["absent.idf", "check the path"]),
        ("--weights absent.tsv", 2, ["absent.tsv", "tfidf"]),
        ("--idf learn --weights tf", 2, ["idf", "weights tf ignore it"]),
        ("--dictionary words.txt --pipeline post", 3, ["words.txt:2", "x3!"]),
        ("--stop-words builtin --pipeline code --idf learn", 2, ["idf", "weights tf ignore it"]),
        ("--idf jieba --save-idf out.idf", 2, ["--save-idf", "learn"]),
        ("--centre noise.idf", 3, ["noise.idf", "--save-centre"]),
        ("--centre learn --save-centre out", 2, ["--save-centre", "learn"]),
        ("--centre learn --sketch minhash", 2, ["centre", "simhash"]),
    ] {
        bench.run(&format!("fingerprint rows.jsonl {option}")).refused(status, &words);
    }
    let piped = bench.feed("fingerprint - --weights tfidf --idf learn", STORIES.as_bytes());
    piped.refused(2, &["-", "twice"]);
    let piped = bench.feed("fingerprint - --centre learn", STORIES.as_bytes());
    piped.refused(2, &["-", "twice"]);
}

const KEY: &str = "6f1d0c9be2a8475393d4c07a51fe286b6f1d0c9be2a8475393d4c07a51fe286b\n";

const TEXT: &str = "sunny-days-are-here-again-and-rain-is-far-away";

fn bench() -> Bench {
    let bench = Bench::new();
    let mut rows = String::new();
    for (id, text) in [("sun", TEXT), ("snow", "it snowed all night upon the hills of the north")] {
        writeln!(rows, "{{\"id\":\"{id}\",\"text\":\"{text}\"}}").unwrap();
    }
    bench.file("rows.jsonl", rows).file("seed", KEY).file("other", KEY.replace('6', "7"));
    bench.ok("build idx rows.jsonl --pipeline code --secret-file seed");
    bench
}

#[test]
fn texts_are_found_with_the_secret_and_refused_without_it() {
    let bench = bench();
    let found = bench.ok(&format!("query idx --text {TEXT} --secret-file seed")).json();
    assert_eq!((found.len(), &found[0]["id"]), (1, &"sun".into()));
    let query = |more: &str| bench.run(&format!("query idx --text {TEXT} {more}"));
    query("").refused(1, &["secret", "--secret-file FILE"]);
    query("--secret-file other").refused(1, &["secret", "that the index was made with"]);
    for more in ["", "--secret-file other", "--pipeline code"] {
        let insert = bench.run(&format!("insert idx rows.jsonl {more}"));
        insert.refused(1, &["--secret-file FILE"]);
    }
    bench.ok("insert idx rows.jsonl --secret-file seed");
    assert_eq!(bench.export("idx").lines().count(), 2);
    bench.ok("build open rows.jsonl --pipeline code");
    let refused = bench.run(&format!("query open --text {TEXT} --secret-file seed"));
    refused.refused(1, &["drop --secret-file"]);
}

#[test]
fn fingerprints_need_no_secret_and_differ_by_it() {
    let bench = bench();
    let exported = bench.export("idx");
    let print = exported.lines().find(|row| row.contains("\"sun\"")).unwrap();
    let (_, print) = print.split_once("fingerprint\":\"").unwrap();
    let found = bench.ok(&format!("query idx --fingerprint {}", &print[..16])).json();
    assert_eq!(found[0]["id"], "sun");
    bench.file("prints.jsonl", &exported);
    assert_eq!(bench.ok("query idx prints.jsonl").json().len(), 2);
    bench.ok("check idx");
    bench.ok("pairs idx");
    let plain = bench.ok("fingerprint rows.jsonl --pipeline code").stdout;
    let keyed = bench.ok("fingerprint rows.jsonl --pipeline code --secret-file seed").stdout;
    let other = bench.ok("fingerprint rows.jsonl --pipeline code --secret-file other").stdout;
    assert!(plain != keyed && keyed != other && plain != other);
    assert!(keyed.contains(&print[..16]), "an index holds what fingerprint prints");
}

#[test]
fn the_secret_itself_is_nowhere_in_the_index() {
    let bench = bench();
    let needle = KEY.trim().as_bytes();
    let raw: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&KEY[2 * at..2 * at + 2], 16).unwrap()).collect();
    for entry in std::fs::read_dir(bench.path("idx")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        for secret in [needle, &raw] {
            let held = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!held, "{} holds the secret", path.display());
        }
    }
    let stats = bench.ok("stats idx").stdout;
    assert!(stats.contains("secret=siphash24,"), "{stats}");
}

#[test]
fn files_that_hold_no_secret_are_refused_with_a_remedy() {
    let bench = bench();
    bench.file("short", "fifteen bytes..").file("zeros", [0; 64]).file("long", [7; 5000]);
    for (file, status, reason) in [
        ("short", 3, "too few"),
        ("zeros", 3, "all equal"),
        ("long", 3, "4096"),
        ("absent", 6, "absent"),
    ] {
        let refused = bench.run(&format!("fingerprint rows.jsonl --secret-file {file}"));
        refused.refused(status, &[file, reason]);
    }
    let link = bench.run("fingerprint rows.jsonl --secret-file /dev/zero");
    link.refused(3, &["4096"]);
}
