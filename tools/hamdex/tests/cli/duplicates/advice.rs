//! Settings that nobody gave: texts choose them, and what is near is verified.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Bench, PRINTS, json_lines};

/// Posts that have nothing to do with one another.
const POSTS: [&str; 20] = [
    "今天北京的天气真好，大家一起去公园散步吧",
    "刚刚吃完晚饭，准备看一部新上映的电影",
    "地铁又晚点了，上班要迟到了怎么办呢",
    "周末想去爬山，有没有朋友愿意同行的",
    "新买的手机屏幕摔碎了，心疼得不行",
    "孩子第一次自己骑自行车，特别开心的一天",
    "这家餐厅的火锅味道非常正宗，推荐给大家",
    "明天就要考试了，今晚只能熬夜复习功课",
    "公司楼下新开了一家咖啡店，环境挺不错",
    "昨晚的球赛太精彩了，最后一分钟逆转取胜",
    "severe flooding closes the main road into town this morning",
    "just finished reading a wonderful book about the deep sea",
    "anyone else without electricity on the north side of the river",
    "my cat has decided that the keyboard is the best place to sleep",
    "looking for a good recipe for apple pie, any ideas out there",
    "the new album is finally out and it is better than the last one",
    "stuck at the airport for six hours because of the thunderstorm",
    "great turnout at the farmers market today, see you next week",
    "does somebody know a reliable plumber who works on sundays",
    "ran ten kilometres before breakfast and now i cannot move",
];

fn row(id: &str, text: &str) -> String {
    format!("{}\n", json!({ "id": id, "text": text }))
}

fn posts() -> String {
    let mut rows = String::new();
    for (n, text) in POSTS.iter().enumerate() {
        rows.push_str(&row(&format!("p{n}"), text));
    }
    rows
}

fn ids(jsonl: &str) -> Vec<Value> {
    json_lines(jsonl).into_iter().map(|mut row| row["id"].take()).collect()
}

#[test]
fn posts_are_deduplicated_right_without_a_flag() {
    let bench = Bench::new();
    let copies = [
        ("forwarded", "今天北京的天气真好，大家一起去公园散步吧//@小明:转发微博"),
        ("linked", "severe flooding closes the main road into town this morning http://t.co/a1B2"),
        ("retold", "severe flooding closes the main road into town this evening"),
        ("other", "severe drought closes the old mill down by the river this summer"),
    ];
    let rows = copies.iter().fold(posts(), |rows, (id, text)| rows + &row(id, text));
    bench.file("posts.jsonl", &rows);
    let outcome = bench.ok("dedup posts.jsonl -o out");
    assert!(
        outcome.stderr.contains("pipeline text, distance 16, verification edit:0.78,0.88,30"),
        "{outcome:?}"
    );
    let removed = json_lines(&bench.read("out/duplicates.jsonl"));
    let pairs: Vec<_> = removed.iter().map(|row| (&row["id"], &row["kept_id"])).collect();
    let near = |id, kept| (json!(id), json!(kept));
    let wanted = [near("forwarded", "p0"), near("linked", "p10"), near("retold", "p10")];
    assert_eq!(pairs, wanted.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());
    assert_eq!((&removed[0]["similarity"], &removed[1]["similarity"]), (&json!(1.0), &json!(1.0)));
    assert!(removed[2]["similarity"].as_f64().unwrap() < 0.95, "{removed:?}");
    let report: Value = serde_json::from_str(&bench.read("out/report.json")).unwrap();
    let advice = &report["advice"];
    assert_eq!((&advice["kind"], &advice["short_share"]), (&json!("texts"), &json!(1.0)));
    assert_eq!(
        (&advice["texts"], &report["settings"]["verification"]),
        (&json!(24), &json!("edit:0.78,0.88,30"))
    );
    assert!(!bench.ok("dedup posts.jsonl -o out -q --overwrite").stderr.contains("pipeline"));
}

/// A page of an article with navigation and footer around it.
fn page(article: &str, navigation: &str) -> String {
    let mut html =
        "<!doctype html><html><head><title>News</title></head><body><nav><ul>".to_owned();
    for n in 0..30 {
        write!(html, "<li><a href=\"/{n}\">{navigation} {n}</a></li>").unwrap();
    }
    html.push_str("</ul></nav><article><h1>Report</h1>");
    for paragraph in article.split("\n\n") {
        write!(html, "<p>{paragraph}</p>").unwrap();
    }
    html + "</article><footer>Copyright 2026, all rights reserved</footer></body></html>"
}

/// Paragraphs of words that a seed decides.
fn article(seed: usize) -> String {
    const WORDS: [&str; 24] = [
        "harbour", "council", "evening", "growth", "farmers", "bridge", "winter", "market",
        "station", "weather", "doctors", "music", "village", "engine", "budget", "school",
        "library", "forest", "coast", "museum", "railway", "garden", "election", "history",
    ];
    let mut text = String::new();
    let mut state = seed * 7919 + 13;
    for n in 1..240 {
        state = (state * 1_103_515_245 + 12345) % (1 << 31);
        text.push_str(WORDS[(state >> 8) % WORDS.len()]);
        text.push_str(match n % 40 {
            0 => ".\n\n",
            20 => ", and so ",
            _ => " ",
        });
    }
    text
}

#[test]
fn pages_are_deduplicated_right_without_a_flag() {
    let bench = Bench::new();
    for n in 0..20 {
        bench.file(&format!("pages/{n:02}.html"), page(&article(n), "All the sections"));
    }
    bench
        .file("pages/20.html", page(&article(3), "Quite another site with its own menu of things"))
        .file("pages/21.html", page(&article(4).replace("harbour", "airport"), "All the sections"));
    let outcome = bench.ok("dedup pages -o out");
    assert!(
        outcome.stderr.contains("pipeline text, distance 16, verification edit:"),
        "{outcome:?}"
    );
    assert_eq!(ids(&bench.read("out/duplicates.jsonl")), [json!("20.html"), json!("21.html")]);
    assert_eq!(bench.read("out/kept.jsonl").lines().count(), 20);
}

#[test]
fn a_given_distance_leaves_the_verification_on() {
    let bench = Bench::new();
    bench.file("posts.jsonl", posts() + &row("copy", POSTS[3]));
    bench.ok("dedup posts.jsonl -o out -k 0");
    let copy = |similarity: Value| {
        let mut copy = json!({
            "id": "copy", "at": "posts.jsonl:21", "kept_id": "p3", "kept_at": "posts.jsonl:4",
            "distance": 0, "cluster": 1
        });
        if !similarity.is_null() {
            copy["similarity"] = similarity;
        }
        copy
    };
    let verification = |report: &str| {
        let report: Value = serde_json::from_str(&bench.read(report)).unwrap();
        report["settings"]["verification"].clone()
    };
    assert_eq!(json_lines(&bench.read("out/duplicates.jsonl")), [copy(json!(1.0))]);
    assert_eq!(verification("out/report.json"), "edit:0.78,0.88,30");
    bench.ok("dedup posts.jsonl -o alone -k 0 --verify none");
    assert_eq!(json_lines(&bench.read("alone/duplicates.jsonl")), [copy(Value::Null)]);
    assert_eq!(verification("alone/report.json"), "none");
    let pairs = |options: &str| bench.ok(&format!("pairs posts.jsonl {options}")).stdout;
    assert_eq!(pairs("-k 16"), "p3\tcopy\t0\t1.0000\n");
    assert_eq!(pairs("-k 0 --verify none"), "p3\tcopy\t0\n");
    assert!(pairs("-k 16 --verify none").lines().count() >= 1);
    bench.ok("dedup posts.jsonl -o named --pipeline page -k 3");
    assert_eq!(verification("named/report.json"), "edit:0.88");
    assert!(bench.ok("pairs posts.jsonl --verify none").stderr.contains("distance 8, "));
}

#[test]
fn fingerprints_are_never_verified_by_default() {
    let bench = Bench::new();
    bench.file("p.jsonl", PRINTS);
    for options in ["-k 1", "-k 1 --pipeline post", "-k 1 --verify none"] {
        assert_eq!(bench.ok(&format!("pairs p.jsonl {options}")).stdout, "a\tb\t1\n");
    }
}

/// Every text is near the one before it, and the first far from the last.
fn chain() -> String {
    let mut text: Vec<char> =
        "the quick brown fox jumps over the lazy dog while seven wizards box \
                               with a jolly queen in the vast park of their city"
            .chars()
            .collect();
    let mut rows = String::new();
    for (id, at) in [("a", 0), ("b", 10), ("c", 40), ("d", 70)] {
        if id != "a" {
            text[at..at + 8].copy_from_slice(&['x', 'y', 'z', 'q', 'k', 'j', 'w', 'v']);
        }
        rows.push_str(&row(id, &text.iter().collect::<String>()));
    }
    rows
}

#[test]
fn chains_are_followed_or_cut_at_the_representative() {
    let bench = Bench::new();
    bench.file("chain.jsonl", chain());
    let settings = "--pipeline post -k 16 --verify edit:0.9";
    let groups = |args: &str| -> Vec<Value> {
        let lines = bench.ok(&format!("clusters chain.jsonl {settings} {args}")).json();
        lines.into_iter().map(|mut line| line["ids"].take()).collect()
    };
    assert_eq!(groups(""), [json!(["a", "b", "c", "d"])]);
    assert_eq!(groups("--linkage representative"), [json!(["a", "b"]), json!(["c", "d"])]);
    bench.ok(&format!("dedup chain.jsonl {settings} -o out"));
    assert_eq!(ids(&bench.read("out/kept.jsonl")), [json!("a"), json!("c")]);
    bench.ok(&format!("dedup chain.jsonl {settings} -o whole --linkage chain"));
    assert_eq!(ids(&bench.read("whole/kept.jsonl")), [json!("a")]);
    let far = json_lines(&bench.read("whole/duplicates.jsonl")).pop().unwrap();
    assert!(far["similarity"].as_f64().unwrap() < 0.85, "{far}");
    let cluster = json_lines(&bench.read("whole/clusters.jsonl")).pop().unwrap();
    assert!(cluster["diameter"].as_u64().unwrap() > 0, "{cluster}");
}

#[test]
fn what_is_removed_has_passed_with_what_is_kept_whichever_that_is() {
    let bench = Bench::new();
    let rows: Vec<String> = chain()
        .lines()
        .zip(["2", "1", "3", "0"])
        .map(|(line, date)| line.replace('}', &format!(",\"date\":\"{date}\"}}\n")))
        .collect();
    bench.file("chain.jsonl", rows.concat());
    bench.ok(
        "dedup chain.jsonl -o out --pipeline post -k 16 --verify edit:0.9 --prefer newest:date",
    );
    let removed = json_lines(&bench.read("out/duplicates.jsonl"));
    let pairs: Vec<_> = removed.iter().map(|row| (&row["id"], &row["kept_id"])).collect();
    // c is the newest: b and d pass with it, a does not.
    assert_eq!(pairs, [(&json!("b"), &json!("c")), (&json!("d"), &json!("c"))]);
    assert_eq!(ids(&bench.read("out/kept.jsonl")), [json!("a"), json!("c")]);
}

#[test]
fn equal_fingerprints_of_different_texts_are_told_apart() {
    let bench = Bench::new();
    let words = "one two three four five six seven eight nine ten";
    let turned: Vec<&str> = words.split(' ').rev().collect();
    bench.file("rows.jsonl", row("a", words) + &row("b", &turned.join(" ")) + &row("c", words));
    let bag = "--segment words --ngram 1 --weights uniform";
    assert_eq!(
        bench.ok(&format!("pairs rows.jsonl {bag} -k 0 --verify none")).stdout.lines().count(),
        3
    );
    let verified = bench.ok(&format!("pairs rows.jsonl {bag} -k 0 --verify edit:0.8")).stdout;
    assert_eq!(verified, "a\tc\t0\t1.0000\n");
    bench.ok(&format!("dedup rows.jsonl {bag} -k 0 --verify edit:0.8 -o out"));
    assert_eq!(ids(&bench.read("out/kept.jsonl")), [json!("a"), json!("b")]);
    let sets = bench.ok(&format!("pairs rows.jsonl {bag} -k 0 --verify jaccard:1")).stdout;
    assert_eq!(sets.lines().count(), 3, "{sets}");
}

#[test]
fn inputs_of_any_size_and_kind_are_settled() {
    let bench = Bench::new();
    bench.file("none.jsonl", "").file("one.jsonl", row("a", "one text")).file("p.jsonl", PRINTS);
    for verb in ["pairs", "clusters"] {
        assert_eq!(bench.ok(&format!("{verb} none.jsonl")).stdout, "");
        assert_eq!(bench.ok(&format!("{verb} one.jsonl")).stdout, "");
        let refused = bench.run(&format!("{verb} p.jsonl --verify edit:0.8"));
        refused.refused(2, &["--verify edit:0.8", "needs texts"]);
    }
    assert_eq!(bench.ok("pairs p.jsonl").stdout, "a\tb\t1\n");
    let mixed = posts() + PRINTS + &row("copy", POSTS[0]);
    let outcome = bench.feed("pairs -", mixed.as_bytes());
    assert_eq!(outcome.stdout, "p0\tcopy\t0\t1.0000\n");
    assert!(outcome.stderr.contains("3 documents have fingerprints"), "{outcome:?}");
}

#[test]
fn weak_settings_are_told_with_numbers() {
    let bench = Bench::new();
    let short: String = (0..30).map(|n| row(&n.to_string(), &format!("早上好{n}"))).collect();
    bench.file("short.jsonl", short);
    let outcome = bench.ok("clusters short.jsonl");
    assert!(outcome.stderr.contains("fewer than 10 features"), "{outcome:?}");
    let outcome = bench.ok("clusters short.jsonl -k 3 --verify none");
    assert!(outcome.stderr.contains("SimHash alone finds about 56 %"), "{outcome:?}");
    let given = "clusters short.jsonl --pipeline post -k 3 --verify none";
    assert_eq!(bench.ok(given).stderr.lines().count(), 1);
}

#[test]
fn evaluation_counts_boilerplate_as_its_check_asks() {
    let bench = Bench::new();
    let site =
        "the front page\nall manuals of this series\nabout us and our partners\nprinted by us";
    let pages = ["rain in spring", "a frozen lake", "hail and thunder", "morning fog over hills"];
    let rows = pages.iter().zip(0..).map(|(page, id)| {
        json!({ "id": format!("p{id}"), "text": format!("{site}\n{site}\n{page} {page}") })
            .to_string()
    });
    bench.file("pages.jsonl", rows.collect::<Vec<_>>().join("\n"));
    bench.file("pairs.tsv", "p0\tp1\n");
    let found = |verify: &str| {
        let call = format!("evaluate pages.jsonl --pairs pairs.tsv -k 16 --verify {verify} --json");
        let rows = bench.ok(&call).json();
        let default = rows.iter().find(|row| row["what"] == "default").expect("the settings");
        default["found"].as_u64().expect("a count")
    };
    assert_eq!((found("edit:0.5,0.5,4"), found("edit:0.5,0.5,5")), (0, 6));
    assert_eq!(found("edit:0.5,0.5"), 6);
}

#[test]
fn evaluation_shows_the_default_settings_and_the_best_ones() {
    let bench = Bench::new();
    let rows =
        posts() + &row("near", "severe flooding closes the main road into town this evening");
    bench.file("posts.jsonl", rows).file("labels.tsv", "p10\tnear\n");
    let outcome = bench.ok("evaluate posts.jsonl --pairs labels.tsv");
    let line = "default settings (pipeline text, distance 16, verification edit:0.78,0.88,30): \
                precision 1.0000, recall 1.0000, F1 1.0000";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    let lines = bench.ok("evaluate posts.jsonl --pairs labels.tsv --json --all-sketches").json();
    for sketch in ["simhash", "minhash", "longest:3"] {
        let of = |what: &str| {
            lines.iter().filter(|line| line["sketch"] == sketch && line["what"] == what).count()
        };
        assert_eq!((of("curve"), of("best"), of("default")), (17, 4, 1), "{sketch}");
    }
    let plain = bench.ok("evaluate posts.jsonl --pairs labels.tsv --json -k 3").json();
    assert_eq!(plain.len(), 4);
}

#[test]
fn settings_are_suggested_with_labels_and_without() {
    let bench = Bench::new();
    let rows =
        posts() + &row("near", "severe flooding closes the main road into town this evening");
    bench.file("posts.jsonl", rows).file("labels.tsv", "p10\tnear\n");
    for args in ["--suggest --pairs labels.tsv", "--suggest"] {
        let outcome = bench.ok(&format!("evaluate posts.jsonl {args}"));
        let command = outcome.stdout.lines().last().unwrap();
        assert!(command.starts_with("hamdex dedup posts.jsonl -o out --pipeline "), "{outcome:?}");
        let suggested = command.strip_prefix("hamdex ").unwrap();
        bench.ok(&format!("{suggested} --overwrite"));
        let again = bench.ok(&format!("evaluate posts.jsonl {args}"));
        assert_eq!(again.stdout, outcome.stdout);
        let lines = bench.ok(&format!("evaluate posts.jsonl {args} --json")).json();
        assert!(lines.len() > 8 && lines[0]["f1"].as_f64().unwrap() > 0.9, "{lines:?}");
    }
    bench.run("evaluate posts.jsonl").refused(2, &["--pairs", "TSV"]);
}

#[test]
fn nothing_is_suggested_where_no_pair_is_near() {
    let bench = Bench::new();
    bench.file("few.jsonl", "{\"id\":1,\"text\":\"one text alone\"}\n");
    bench.file("pairs.tsv", "a\tb\t0.9\n");
    bench.run("evaluate few.jsonl --suggest --pairs pairs.tsv").refused(2, &["no pairs to try"]);
}
