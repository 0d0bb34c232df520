//! Deduplication: what is kept is unchanged, what is removed can be looked up.

use serde_json::json;

use crate::support::{Bench, json_lines, stored};

const ROWS: &str = "{\"id\":\"a\", \"text\":\"sunny days are here again\",\"date\":\"2021\"}\n\
                    {\"id\":\"b\",\"text\":\"an article about something else altogether\"}\r\n\
                    {\"id\":\"c\",\"date\":\"2023\",\"text\":\"Sunny days are here again!!\"}\n\
                    {\"id\":\"d\",\"text\":\"sunny days are here again\",\"n\":1.50}";

fn line(number: usize) -> String {
    let line = ROWS.split_inclusive('\n').nth(number).unwrap();
    if line.ends_with('\n') { line.to_owned() } else { format!("{line}\n") }
}

#[test]
fn rows_to_keep_are_copied_byte_for_byte() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    bench.ok("dedup rows.jsonl -o out -k 3 --verify none");
    assert_eq!(bench.read("out/kept.jsonl"), line(0) + &line(1));
    let duplicate = |id: &str, row: u32| {
        json!({
            "id": id, "at": format!("rows.jsonl:{row}"), "kept_id": "a", "kept_at": "rows.jsonl:1",
            "distance": 0, "cluster": 1
        })
    };
    assert_eq!(
        json_lines(&bench.read("out/duplicates.jsonl")),
        [duplicate("c", 3), duplicate("d", 4)]
    );
    assert_eq!(
        json_lines(&bench.read("out/clusters.jsonl")),
        [json!({ "cluster": 1, "size": 3, "ids": ["a", "c", "d"], "diameter": 0 })]
    );
    assert_eq!(bench.read("out/rejects.jsonl"), "");
    let names: Vec<_> =
        std::fs::read_dir(bench.path("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "nothing temporary stays behind: {names:?}");
}

#[test]
fn the_report_holds_counts_settings_and_groups() {
    let bench = Bench::new();
    bench.file("rows.jsonl", format!("{ROWS}\n{{\n"));
    let printed = bench.ok("dedup rows.jsonl -o out -k 2 --json --max-bad 1").json();
    let report: serde_json::Value = serde_json::from_str(&bench.read("out/report.json")).unwrap();
    assert_eq!(printed, std::slice::from_ref(&report));
    for (name, count) in
        [("documents", 4), ("kept", 2), ("removed", 2), ("clusters", 1), ("rejects", 1)]
    {
        assert_eq!(report[name], count, "{name}");
    }
    let settings = &report["settings"];
    assert_eq!(
        (&settings["bits"], &settings["distance"], &settings["keep"]),
        (&json!(64), &json!(2), &json!("first"))
    );
    assert_eq!(report["largest"], json!([{ "cluster": 1, "size": 3, "kept_id": "a" }]));
    assert!(report["seconds"].is_number());
}

#[test]
fn the_longest_or_newest_of_a_group_can_be_kept() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    bench.ok("dedup rows.jsonl -o longest --prefer longest");
    assert_eq!(bench.read("longest/kept.jsonl"), line(1) + &line(2));
    bench.ok("dedup rows.jsonl -o newest --prefer newest:date");
    assert_eq!(bench.read("newest/kept.jsonl"), line(1) + &line(2));
    let kept: Vec<_> = json_lines(&bench.read("newest/duplicates.jsonl"));
    assert!(kept.iter().all(|row| row["kept_id"] == "c"), "{kept:?}");
}

#[test]
fn the_best_of_a_group_has_the_largest_number() {
    let bench = Bench::new();
    let row = |id: &str, score: &str| {
        format!(
            "{{\"id\":\"{id}\",\"q\":{{\"score\":{score}}},\"text\":\"sunny days are here again\"}}\n"
        )
    };
    let rows = [row("a", "9.5"), row("b", "\"10\""), row("c", "null"), row("d", "-1e3")].concat();
    bench.file("rows.jsonl", rows);
    bench.ok("dedup rows.jsonl -o out --prefer best:q.score");
    assert_eq!(bench.read("out/kept.jsonl"), row("b", "\"10\""));
    let report: serde_json::Value = serde_json::from_str(&bench.read("out/report.json")).unwrap();
    assert_eq!(report["settings"]["keep"], "best:q.score");
    bench.run("dedup rows.jsonl -o no --prefer best:score").refused(3, &["--prefer best", "score"]);
}

#[test]
fn every_source_is_accounted_for() {
    let bench = Bench::new();
    let rows = |from: &str, texts: std::ops::Range<u32>| -> String {
        let text = |n: u32| {
            format!("article {} speaks of {} and of {} alone", n * n, n * 7919, n * 104_729)
        };
        let row = |n: u32| json!({ "id": format!("{from}{n}"), "from": from, "text": text(n) });
        texts.map(|n| row(n).to_string() + "\n").collect()
    };
    bench.file("a.jsonl", rows("a", 0..30)).file("b.jsonl", rows("b", 0..25) + &rows("c", 30..40));
    let report = |call: &str| -> serde_json::Value {
        bench.ok(&format!("dedup {call} -o out --overwrite -k 0 --verify none --report out.html"));
        serde_json::from_str(&bench.read("out/report.json")).unwrap()
    };
    let counts = |report: &serde_json::Value| -> Vec<String> {
        let sources = report["sources"].as_array().unwrap();
        sources
            .iter()
            .map(|from| {
                let [name, documents, kept, share] =
                    ["name", "documents", "kept", "removed_share"].map(|field| &from[field]);
                format!("{name} {documents} {kept} {share}")
            })
            .collect()
    };
    let files = report("a.jsonl b.jsonl");
    assert_eq!(counts(&files), ["\"b.jsonl\" 35 10 0.7143", "\"a.jsonl\" 30 30 0.0"]);
    assert_eq!(files["sources"][0]["largest_group"]["documents"], 1);
    let pair = &files["sources"][0]["farthest"];
    assert_eq!(
        [&pair["id"], &pair["kept_id"], &pair["distance"]],
        [&json!("b0"), &json!("a0"), &json!(0)]
    );
    assert_eq!(files["sources"][1]["farthest"], json!(null));
    let fields = report("a.jsonl b.jsonl --source-field from");
    assert_eq!(counts(&fields), ["\"b\" 25 0 1.0", "\"a\" 30 30 0.0", "\"c\" 10 10 0.0"]);
    let warnings = fields["warnings"].to_string();
    assert!(
        warnings.contains("25 of the 25 documents of b were removed, next to all"),
        "{warnings}"
    );
    let page = bench.read("out.html");
    assert!(page.contains("Nearly all documents were removed from: b."), "{page}");
    // In one input alone, a field tells of more sources than one.
    let one = report("b.jsonl --source-field id");
    assert_eq!(one["sources"].as_array().unwrap().len(), 35);
    bench.run("dedup b.jsonl -o no --source-field host").refused(3, &["--source-field", "host"]);
}

#[test]
fn what_is_near_a_stored_document_is_dropped_too() {
    let bench = Bench::new();
    bench
        .file("old.jsonl", "{\"id\":\"old\",\"text\":\"sunny days are here again\"}\n")
        .file("rows.jsonl", ROWS);
    bench.ok("build idx old.jsonl");
    let before = bench.export("idx");
    bench.ok("dedup rows.jsonl -o out --against idx");
    assert_eq!(bench.read("out/kept.jsonl"), line(1));
    let duplicate = |id: &str, row: u32| {
        json!({
            "id": id, "at": format!("rows.jsonl:{row}"), "kept_id": "old", "kept_at": null,
            "distance": 0, "cluster": null
        })
    };
    let duplicates = json_lines(&bench.read("out/duplicates.jsonl"));
    assert_eq!(duplicates, [duplicate("a", 1), duplicate("c", 3), duplicate("d", 4)]);
    assert_eq!(bench.read("out/clusters.jsonl"), "");
    assert_eq!(bench.export("idx"), before);
}

#[test]
fn standard_input_gives_the_same_result_as_a_file() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    bench.ok("dedup rows.jsonl -o file");
    assert_eq!(bench.feed("dedup - -o pipe", ROWS.as_bytes()).status, 0);
    for name in ["kept.jsonl", "duplicates.jsonl", "clusters.jsonl"] {
        let piped = bench.read(&format!("pipe/{name}")).replace("\"-:", "\"rows.jsonl:");
        assert_eq!(piped, bench.read(&format!("file/{name}")));
    }
}

#[test]
fn other_inputs_become_json_rows() {
    let bench = Bench::new();
    bench
        .file("docs/a.txt", "sunny days are here again")
        .file("docs/b.txt", "sunny days are here again")
        .file("docs/c.txt", "an article about something else altogether\n");
    bench.ok("dedup docs -o texts");
    assert_eq!(
        json_lines(&bench.read("texts/kept.jsonl")),
        [
            json!({ "id": "a.txt", "text": "sunny days are here again" }),
            json!({ "id": "c.txt", "text": "an article about something else altogether\n" }),
        ]
    );
    let bytes: Vec<u8> = [1_u64, u64::MAX, 1].iter().flat_map(|v| v.to_le_bytes()).collect();
    bench.file("a.u64", bytes);
    bench.ok("dedup a.u64 -o raw");
    let kept = "{\"id\":0,\"fingerprint\":\"0000000000000001\"}\n{\"id\":1,\"fingerprint\":\"ffffffffffffffff\"}\n";
    assert_eq!(bench.read("raw/kept.jsonl"), kept);
    assert_eq!(json_lines(&bench.read("raw/duplicates.jsonl"))[0]["id"], 2);
}

#[test]
fn a_result_can_take_the_place_of_an_older_one_and_of_its_own_input() {
    let bench = Bench::new();
    bench.file("out/kept.jsonl", ROWS);
    bench.ok("dedup out/kept.jsonl -o out --overwrite");
    assert_eq!(bench.read("out/kept.jsonl"), line(0) + &line(1));
    bench.ok("dedup out/kept.jsonl -o out --overwrite");
    assert_eq!(bench.read("out/kept.jsonl"), line(0) + &line(1));
}

#[test]
fn no_documents_and_one_document_are_inputs_like_any_other() {
    let bench = stored();
    bench.file("none.jsonl", "").file("one.jsonl", line(0));
    bench.ok("dedup none.jsonl -o none");
    assert_eq!(bench.read("none/kept.jsonl"), "");
    bench.ok("dedup one.jsonl -o one");
    assert_eq!(bench.read("one/kept.jsonl"), line(0));
    bench.ok("dedup none.jsonl -o none --against idx --overwrite");
}

#[test]
fn a_dry_run_says_what_is_needed_and_writes_nothing() {
    let bench = Bench::new();
    let row = |n: u64| {
        let text = format!("row {} of the many {}", n / 2, n * 7919);
        json!({ "id": n, "text": text }).to_string() + "\n"
    };
    let rows: String = (0..3000).map(row).collect();
    bench.file("rows.jsonl", &rows).file("raw.u64", [0; 800]);
    let need = bench.ok("dedup rows.jsonl -o out --dry-run --prefer longest --json").json();
    let need = &need[0];
    assert_eq!((&need["rows"], &need["rows_sampled"]), (&json!(3000), &json!(3000)));
    assert_eq!((&need["bytes"], &need["results"]), (&json!(rows.len()), &json!(rows.len())));
    assert_eq!((&need["distance"], &need["keep"]), (&json!(16), &json!("longest")));
    for name in ["memory", "temporary", "seconds"] {
        assert!(need[name].as_f64().unwrap() > 0.0, "{name}: {need}");
    }
    let told = bench.ok("dedup raw.u64 -o out --state seen --dry-run --tmp .").stdout;
    assert!(told.contains("100 (100 sampled)") && told.contains("up to"), "{told}");
    bench.run("dedup - -o out --dry-run").refused(2, &["--dry-run", "only once"]);
    let left = std::fs::read_dir(bench.path(".")).unwrap().count();
    assert_eq!(left, 2, "nothing was written");
}

/// A sentence of twelve words, another one for every number.
fn sentence(number: u64) -> String {
    let words = [
        "rain", "market", "bridge", "letter", "garden", "music", "harbour", "winter", "teacher",
        "engine", "village", "mirror", "planet", "silver", "ticket", "forest",
    ];
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[(state >> 32) as usize % words.len()]
    };
    (0..12).map(|_| word()).collect::<Vec<_>>().join(" ")
}

/// Rows of texts, every third one like the one before it.
fn rows(from: u64, to: u64) -> String {
    let row = |id: u64| {
        let text = match id % 3 {
            2 => format!("{} again", sentence(id - 1)),
            _ => sentence(id),
        };
        format!("{{\"id\":{id},\"text\":\"{text}\",\"n\":1.50}}\n")
    };
    (from..to).map(row).collect()
}

#[test]
fn a_sample_is_drawn_from_all_inputs_and_gets_the_whole_work() {
    let bench = Bench::new();
    bench.file("a.jsonl", rows(0, 600)).file("b.jsonl", rows(600, 900));
    let ids = |out: &str| {
        let kept = json_lines(&bench.read(&format!("{out}/kept.jsonl")));
        let removed = json_lines(&bench.read(&format!("{out}/duplicates.jsonl")));
        let rows = kept.iter().chain(&removed);
        let mut ids: Vec<u64> = rows.map(|row| row["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    let report = &bench.ok("dedup a.jsonl b.jsonl -o out --sample 300 --json").json()[0];
    assert_eq!((&report["rows"], &report["documents"]), (&json!(300), &json!(300)));
    let sample = &report["sample"];
    assert_eq!((&sample["rows"], &sample["of"]), (&json!(300), &json!(900)));
    let sampled = ids("out");
    let of_second = sampled.iter().filter(|&&id| id >= 600).count();
    assert!((70..130).contains(&of_second), "{of_second} of 300 rows from a third of them");
    let input = bench.read("a.jsonl") + &bench.read("b.jsonl");
    assert!(bench.read("out/kept.jsonl").lines().all(|row| input.contains(&format!("{row}\n"))));
    for row in json_lines(&bench.read("out/duplicates.jsonl")) {
        let id = row["id"].as_u64().unwrap();
        let place =
            if id < 600 { format!("a.jsonl:{}", id + 1) } else { format!("b.jsonl:{}", id - 599) };
        assert_eq!(row["at"], place);
    }
    // Of 300 pairs a ninth is in the sample, and the bounds hold what the whole loses.
    let whole = &bench.ok("dedup a.jsonl b.jsonl -o whole --json").json()[0];
    let share = |name: &str| sample[name].as_f64().unwrap();
    let lost = whole["removed"].as_f64().unwrap() / 900.0;
    assert!(share("removed_share_at_least") < lost, "{lost}: {sample}");
    assert!((share("removed_share_at_most") / lost - 1.0).abs() < 0.4, "{lost}: {sample}");
    assert!(whole["sample"].is_null());

    bench.ok("dedup a.jsonl b.jsonl -o again --sample 300");
    assert_eq!(bench.read("again/kept.jsonl"), bench.read("out/kept.jsonl"));
    bench.ok("dedup a.jsonl b.jsonl -o few --sample 100");
    assert!(ids("few").len() == 100 && ids("few").iter().all(|id| sampled.contains(id)));
    bench.ok("dedup a.jsonl b.jsonl -o all --sample 5000");
    assert_eq!(bench.read("all/kept.jsonl"), bench.read("whole/kept.jsonl"));
    bench.file("a.u64", [0_u8; 64]);
    bench.run("dedup a.u64 -o raw --sample 3").refused(2, &["a.u64", "--sample"]);
}

#[test]
fn the_closest_duplicates_go_until_the_target_is_met() {
    let bench = Bench::new();
    let base: Vec<String> = (0..40).map(|word| format!("word{word}")).collect();
    let text = |changed: usize| {
        let words = base.iter().zip(0..);
        let words: Vec<String> = words
            .map(|(word, at)| if at < changed { format!("x{at}y{changed}") } else { word.clone() })
            .collect();
        words.join(" ")
    };
    // One of each number of changes, a copy of two of them, and others.
    let mut texts: Vec<String> = (0..5).map(text).collect();
    texts.extend([text(4), text(2)]);
    texts.extend((0..5).map(sentence));
    let row = |(text, id): (&String, u32)| format!("{{\"id\":{id},\"text\":\"{text}\"}}\n");
    bench.file("rows.jsonl", texts.iter().zip(0..).map(row).collect::<String>());
    let removed = |to: &str| -> Vec<u64> {
        let out = to.replace('%', "p");
        bench.ok(&format!("dedup rows.jsonl -o {out} --to {to} -k 16 --verify edit:0.7"));
        let rows = json_lines(&bench.read(&format!("{out}/duplicates.jsonl")));
        assert_eq!(json_lines(&bench.read(&format!("{out}/kept.jsonl"))).len() + rows.len(), 12);
        assert!(rows.iter().all(|row| row["similarity"].as_f64().unwrap() >= 0.7), "{rows:?}");
        rows.iter().map(|row| row["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(removed("12"), [] as [u64; 0]);
    assert_eq!(removed("11"), [6]);
    assert_eq!(removed("10"), [5, 6]);
    assert_eq!(removed("75%"), [1, 5, 6]);
    assert_eq!(removed("0.75"), [1, 5, 6]);
    let widest = removed("6");
    assert_eq!(widest, [1, 2, 3, 4, 5, 6]);

    let missed = bench.run("dedup rows.jsonl -o missed --to 3 -k 16 --verify edit:0.7");
    assert_eq!(missed.status, 3, "{missed:?}");
    assert!(missed.stderr.contains("6 rows are left, more than the 3 of --to"), "{missed:?}");
    assert_eq!(bench.read("missed/kept.jsonl"), bench.read("6/kept.jsonl"));
    bench.run("dedup rows.jsonl -o bad --to 1.5").refused(2, &["1.5", "80%"]);
}

/// Pages with a menu, a notice that varies and a footer; every fourth one says nothing else.
fn pages(count: u64) -> Vec<String> {
    let page = |id: u64| {
        let body = match id % 4 {
            3 => String::new(),
            _ => format!("  {}\\r\\n\\r\\n{}\\n\\n", sentence(2 * id), sentence(2 * id + 1)),
        };
        format!(
            "{{\"url\" : \"u{id}\",\"text\":\"Home\\nWorld news\\nSubscribe now\\n\\nWe and our \
                {} partners store cookies on your device.\\n\\n{body}All rights reserved by the \
                Daily Post. No. {id}\",\"score\":1.50}}\n",
            100 + id
        )
    };
    (0..count).map(page).collect()
}

#[test]
fn boilerplate_is_cut_and_everything_else_keeps_its_bytes() {
    let bench = Bench::new();
    let pages = pages(40);
    bench.file("pages.jsonl", pages.concat());
    for unit in ["line", "paragraph"] {
        let call = format!("dedup pages.jsonl -o {unit} --unit {unit} --id-field url --json");
        let report = &bench.ok(&call).json()[0];
        let kept = bench.read(&format!("{unit}/kept.jsonl"));
        let expected: Vec<String> = (0..40)
            .filter(|id| id % 4 != 3)
            .map(|id| {
                let body = format!("  {}\\r\\n\\r\\n{}", sentence(2 * id), sentence(2 * id + 1));
                format!("{{\"url\" : \"u{id}\",\"text\":\"{body}\",\"score\":1.50}}\n")
            })
            .collect();
        assert_eq!(kept, expected.concat(), "{unit}");
        let removed = json_lines(&bench.read(&format!("{unit}/duplicates.jsonl")));
        let empty: Vec<_> = removed.iter().filter(|row| !row["left"].is_null()).collect();
        assert!(!empty.is_empty() && removed.len() == 10, "{removed:?}");
        assert!(empty.iter().all(|row| row["kept_id"].is_null() && row["left"] == 0.0));
        assert_eq!(report["removed_boilerplate"], empty.len());
        assert_eq!((&report["kept"], &report["removed"]), (&json!(30), &json!(10)));
        let groups = json_lines(&bench.read(&format!("{unit}/boilerplate.jsonl")));
        assert_eq!(report["parts"]["groups"], groups.len());
        let notice =
            groups.iter().find(|group| group["text"].as_str().unwrap().contains("cookies"));
        assert!(notice.unwrap()["variants"].as_u64().unwrap() > 20, "{groups:?}");
    }
    let plain = bench.ok("dedup pages.jsonl -o line --overwrite");
    assert!(!plain.stdout.contains("boilerplate"));
    assert!(!bench.path("line/boilerplate.jsonl").exists(), "a result of another run stays");
}

#[test]
fn tables_are_sampled_and_cut_as_rows_of_json() {
    let bench = Bench::new();
    bench.file("pages.jsonl", pages(40).concat());
    bench.ok("dedup pages.jsonl -o rows.jsonl");
    bench.ok("dedup pages.jsonl -o rows.parquet");
    for options in ["--sample 12", "--sample 1000", "--unit line", "--sample 20 --unit line"] {
        bench.ok(&format!("dedup rows.jsonl -o json {options} --id-field url --overwrite"));
        bench.ok(&format!("dedup rows.parquet -o table {options} --id-field url --overwrite"));
        for file in ["kept.jsonl", "duplicates.jsonl"] {
            let rows = |out: &str| {
                let mut rows = json_lines(&bench.read(&format!("{out}/{file}")));
                for row in &mut rows {
                    // Names the input.
                    row.as_object_mut().unwrap().retain(|field, _| !field.ends_with("at"));
                }
                rows
            };
            assert_eq!(rows("table"), rows("json"), "{file} {options}");
        }
    }
    bench.ok("dedup rows.parquet -o kept.parquet --sample 12");
    bench.ok("dedup rows.jsonl -o kept.jsonl --sample 12");
    let ids = |name: &str| {
        bench
            .ok(&format!("dedup {name} -o - -k 0 --verify none"))
            .json()
            .iter()
            .map(|row| row["url"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("kept.parquet"), ids("kept.jsonl"));
}

#[test]
fn rare_lines_and_rows_without_boilerplate_are_left_alone() {
    let bench = Bench::new();
    bench.file("pages.jsonl", pages(40).concat());
    let kept = |options: &str| {
        let call = format!("dedup pages.jsonl -o - --unit line --overwrite {options}");
        bench.ok(&call).stdout
    };
    let all = bench.ok("dedup pages.jsonl -o -").stdout;
    assert_eq!(kept("--boilerplate 40"), all);
    let bounded = kept("--min-left 0.9");
    assert_eq!(bounded, "", "less than nine tenths of every page is left");
    assert!(kept("--min-left 0").lines().count() >= 30);
    let empty = "{\"text\":null}\n{\"text\":\"!!\"}\n";
    bench.file("blank.jsonl", format!("{empty}{}", pages(40).concat()));
    let kept = bench.ok("dedup blank.jsonl -o - --unit line").stdout;
    assert!(kept.starts_with(empty), "{kept}");
}

#[test]
fn titles_pages_and_cells_lose_their_boilerplate_too() {
    let bench = Bench::new();
    let notice = "This page is part of the handbook of the harbour town.";
    let row = |id: u64| {
        let (title, body) = (sentence(id), sentence(id + 100));
        format!("{{\"title\":\"{title}\",\"b\":{{\"body\":\"{notice}\\n{body}\",\"x\":[1]}}}}\n")
    };
    bench.file("rows.jsonl", (0..20).map(row).collect::<String>());
    let kept = bench.ok("dedup rows.jsonl -o - --unit line --text-field title,b.body").stdout;
    assert_eq!(kept, (0..20).map(row).collect::<String>().replace(&format!("{notice}\\n"), ""));

    for id in 0..20 {
        let (first, second) = (sentence(id), sentence(id + 100));
        let page = format!(
            "<html><body><article><p>{notice}</p><p>{first}</p><p>{second}</p></article></body>"
        );
        bench.file(&format!("site/{id:02}.html"), page);
    }
    let kept = json_lines(&bench.ok("dedup site -o - --unit line").stdout);
    assert_eq!(kept.len(), 20);
    for (row, id) in kept.iter().zip(0..) {
        let text = row["text"].as_str().unwrap();
        assert!(text.starts_with(&sentence(id)) && !text.contains("handbook"), "{text}");
    }

    let cell = |id| format!("{id},\"{notice}\n{}\"\n", sentence(id));
    bench.file("rows.csv", format!("n,text\n{}", (0..20).map(cell).collect::<String>()));
    bench.ok("dedup rows.csv -o clean.csv --unit line");
    let clean = |id| format!("{id},{}\n", sentence(id));
    let clean: String = (0..20).map(clean).collect();
    assert_eq!(bench.read("clean.csv"), format!("n,text\n{clean}"));
    bench.ok("dedup rows.csv -o clean.parquet --unit line");
    bench.ok("dedup clean.parquet -o again.jsonl -k 0 --verify none");
    let again = json_lines(&bench.read("again.jsonl"));
    assert_eq!((again.len(), &again[7]["text"]), (20, &json!(sentence(7))));
    bench.run("dedup rows.csv -o p --boilerplate 3").refused(2, &["--unit"]);
    bench.run("dedup rows.csv -o p --unit word").refused(2, &["line", "paragraph"]);
}
