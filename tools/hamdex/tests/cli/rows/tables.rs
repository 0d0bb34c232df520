//! Parquet, CSV and TSV: tables are read as rows are, and come back as they were.

use std::fs::File;
use std::process::Command;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, LargeStringArray, RecordBatch, StringArray, StructArray,
    TimestampMillisecondArray, UInt64Array,
};
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::support::{Bench, json_lines};

const TEXTS: [Option<&str>; 7] = [
    Some("sunny days are here again, and everybody goes outside to sit in the grass"),
    Some("an article about something else altogether: how snails climb wet glass"),
    Some("sunny days are here again, and everybody goes outside to sit in the grass!"),
    None,
    Some("北京大学的研究人员发表了一篇关于气候变化的新论文，引起了广泛的关注"),
    Some("北京大学的研究人员发表了一篇关于气候变化的新论文，引起了广泛的关注。"),
    Some("short"),
];

/// Columns of many types beside an id and a text.
fn table(ids: std::ops::Range<i64>) -> RecordBatch {
    let texts: Vec<Option<&str>> =
        ids.clone().map(|id| TEXTS[usize::try_from(id).unwrap()]).collect();
    let ids_from = ids.start;
    let mut lists = ListBuilder::new(Int64Builder::new());
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    for id in ids.clone() {
        lists.append_option((id != 1).then(|| vec![Some(id), None, Some(-id)]));
        words.append_option((id % 3 != 0).then_some(if id % 2 == 0 { "even" } else { "odd" }));
    }
    let times =
        ids.clone().map(|id| Some(1_700_000_000_123 + id)).collect::<TimestampMillisecondArray>();
    let columns: [(&str, ArrayRef); 6] = [
        ("tags", Arc::new(lists.finish())),
        ("content", Arc::new(LargeStringArray::from(texts))),
        ("seen", Arc::new(times.with_timezone("UTC"))),
        ("id", Arc::new(ids.clone().collect::<Int64Array>())),
        ("word", Arc::new(words.finish())),
        ("score", Arc::new(ids.map(|id| Some(id as f64 / 3.0)).collect::<Float64Array>())),
    ];
    let all_nullable = ids_from > 0;
    let columns = columns.map(|(name, column)| (name, column, all_nullable || name != "id"));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn write(bench: &Bench, name: &str, batches: &[RecordBatch]) {
    let path = bench.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::create(path).unwrap();
    // Two rows a group, so that groups are crossed.
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(2))
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
}

fn read(bench: &Bench, name: &str) -> RecordBatch {
    let file = File::open(bench.path(name)).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = Arc::clone(builder.schema());
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

const DEDUP: &str = "--text-field content -k 3 --pipeline auto";

#[test]
fn parquet_goes_in_and_the_kept_rows_come_out_with_every_column() {
    let bench = Bench::new();
    write(&bench, "a.parquet", &[table(0..3)]);
    write(&bench, "b.parquet", &[table(3..7)]);
    bench.ok(&format!("dedup a.parquet b.parquet -o out {DEDUP} --format parquet"));
    // The first file says that its ids are never null, the second does not.
    let schema = table(3..7).schema();
    assert_ne!(table(0..3).schema(), schema);
    let first = RecordBatch::try_new(Arc::clone(&schema), table(0..3).columns().to_vec()).unwrap();
    let all = concat_batches(&schema, &[first, table(3..7)]).unwrap();
    let kept = read(&bench, "out/kept.parquet");
    assert_eq!(kept.schema().fields(), all.schema().fields());
    // The null text of row 3 has nothing to compare, and is kept.
    let rows = [0, 1, 3, 4, 6].map(|row| all.slice(row, 1));
    assert_eq!(kept, concat_batches(&all.schema(), &rows).unwrap());
    let removed = json_lines(&bench.read("out/duplicates.jsonl"));
    let removed: Vec<_> = removed.iter().map(|row| (&row["id"], &row["kept_id"])).collect();
    assert_eq!(removed, [(&2.into(), &0.into()), (&5.into(), &4.into())]);
    assert_eq!(bench.read("out/rejects.jsonl"), "");
    let names = std::fs::read_dir(bench.path("out")).unwrap().count();
    assert_eq!(names, 5, "nothing temporary stays behind");
}

/// A column of texts within structs, and texts of another type beside it.
fn page(ids: std::ops::Range<u32>, notice: &str) -> RecordBatch {
    let words = ["north", "rain", "harbour", "music", "bread", "train", "winter"];
    let sentence = |id: u32| {
        let word = |at: u32| words[((id * (at + 3) + at * at) % 7) as usize];
        (0..9).map(word).collect::<Vec<_>>().join(" ")
    };
    let text = |id: u32| match id % 5 {
        4 => format!("{} alone {id}", sentence(id)),
        _ => format!("{notice}\n{} {id}", sentence(id)),
    };
    let bodies = ids.clone().map(|id| Some(text(id))).collect::<LargeStringArray>();
    let kinds = ids.clone().map(|id| Some(i64::from(id))).collect::<Int64Array>();
    let structs = StructArray::try_from(vec![
        ("kind", Arc::new(kinds) as ArrayRef),
        ("body", Arc::new(bodies) as ArrayRef),
    ]);
    let titles = ids.clone().map(|id| Some(format!("title {id}").into_bytes()));
    let titles = titles.collect::<arrow_array::BinaryArray>();
    let numbers = ids.map(|id| f64::from(id) / 3.0).collect::<Float64Array>();
    let columns: [(&str, ArrayRef); 3] = [
        ("page", Arc::new(structs.unwrap())),
        ("title", Arc::new(titles)),
        ("number", Arc::new(numbers)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, of)| (name, of, true))).unwrap()
}

#[test]
fn parquet_loses_its_boilerplate_and_keeps_its_columns() {
    let bench = Bench::new();
    let notice = "This page is part of the handbook of the harbour town.";
    write(&bench, "in/a.parquet", &[page(0..15, notice)]);
    write(&bench, "in/b.parquet", &[page(15..40, notice)]);
    let options = "--unit line --text-field title,page.body -k 0 --verify none";
    bench.ok(&format!("dedup in -o one.parquet {options}"));
    bench.ok(&format!("dedup in -o all --format parquet {options}"));
    bench.ok(&format!("dedup in -o each --shards {options}"));
    bench.ok(&format!("dedup in -o lines.jsonl {options}"));
    let one = read(&bench, "one.parquet");
    assert_eq!(one.schema(), page(0..1, notice).schema());
    assert_eq!(read(&bench, "all/kept.parquet"), one);
    let each = ["each/a.parquet", "each/b.parquet"].map(|name| read(&bench, name));
    assert_eq!(concat_batches(&one.schema(), &each).unwrap(), one);
    bench.ok("dedup one.parquet -o one.jsonl --text-field title,page.body -k 0 --verify none");
    assert_eq!(bench.read("one.jsonl"), bench.read("lines.jsonl"));
    let lines = bench.read("lines.jsonl");
    assert!(!lines.contains("handbook") && lines.lines().count() == 40, "{lines}");
}

#[test]
fn conversations_are_compared_whole_and_lose_their_boilerplate() {
    let bench = Bench::new();
    let mut rng = fastrand::Rng::with_seed(7);
    let mut word = || (0..6).map(|_| rng.lowercase()).collect::<String>();
    let mut sentence = || (0..12).map(|_| word()).collect::<Vec<_>>().join(" ");
    let said: Vec<(String, String)> = (0..20).map(|_| (sentence(), sentence())).collect();
    let row = |(asked, answer): &(String, String), said: &str| {
        format!(
            "{{\"messages\":[{{\"role\":\"user\",\"content\":\"{asked}\"}},\
             {{\"role\":\"bot\",\"content\":\"{said}{answer}\"}}]}}\n"
        )
    };
    let rows: Vec<String> = said.iter().map(|turns| row(turns, "")).collect();
    bench.file("chat.jsonl", format!("{}{}", rows.concat(), rows[3]));
    let outcome = bench.ok("dedup chat.jsonl -o - -k 0 --verify edit:1");
    assert_eq!(outcome.stdout, rows.concat());
    assert!(outcome.stderr.contains("field messages.content"), "{}", outcome.stderr);

    let notice = "Happy to help with your question about the harbour town.\\n";
    bench.file("notice.jsonl", said.iter().map(|turns| row(turns, notice)).collect::<String>());
    let kept = bench.ok("dedup notice.jsonl -o - --unit line").stdout;
    assert_eq!(kept, rows.concat());
    bench.ok("dedup notice.jsonl -o notice.parquet --format parquet -k 0 --verify none");
    bench.ok("dedup notice.parquet -o rows.parquet --unit line");
    assert_eq!(bench.ok("dedup rows.parquet -o - -k 0 --verify none").stdout, rows.concat());
}

#[test]
fn messages_of_parts_are_compared_by_their_texts_and_lose_their_boilerplate() {
    let bench = Bench::new();
    let row = |at: usize, notice: &str| {
        let picture = "{\"type\":\"image_url\",\"text\":null}";
        format!(
            "{{\"messages\":[{{\"role\":\"user\",\"content\":[{picture},\
             {{\"type\":\"text\",\"text\":\"{notice}What is to be seen in picture {}?\"}}]}}]}}\n",
            "abcdefghijklmnopqrst".get(at..).unwrap(),
        )
    };
    let rows: Vec<String> = (0..20).map(|at| row(at, "")).collect();
    let plain = "{\"messages\":[{\"role\":\"user\",\"content\":\"Nothing to see\"}]}\n";
    bench.file("chat.jsonl", format!("{}{}{plain}", rows.concat(), rows[3]));
    let outcome = bench.ok("dedup chat.jsonl -o - -k 0 --verify edit:1");
    assert_eq!(outcome.stdout, format!("{}{plain}", rows.concat()));
    let notice = "Happy to help with your question about the harbour town.\\n";
    let noticed: String = (0..20).map(|at| row(at, notice)).collect();
    bench.file("notice.jsonl", noticed);
    let kept = bench.ok("dedup notice.jsonl -o - --unit line --verify none -k 0").stdout;
    assert_eq!(kept, rows.concat());
    bench.ok("dedup notice.jsonl -o notice.parquet --format parquet -k 0 --verify none");
    bench.ok("dedup notice.parquet -o rows.parquet --unit line --verify none -k 0");
    assert_eq!(bench.ok("dedup rows.parquet -o - -k 0 --verify none").stdout, rows.concat());
}

#[test]
fn what_was_kept_of_sources_with_other_fields_is_read_again() {
    let bench = Bench::new();
    bench.file("in/a.jsonl", "{\"id\":1,\"text\":\"snow on the pass\"}\n");
    bench.file("in/b.jsonl", "{\"id\":2,\"content\":\"fog at the port\"}\n");
    bench.file("in/c.csv", "id,body\n3,hail all over the valley\n");
    bench.ok("dedup in -o out");
    bench.ok("build index out/kept.jsonl");
    assert_eq!(bench.export("index").lines().count(), 3);
}

#[test]
fn rows_of_parquet_become_whole_rows_of_json() {
    let bench = Bench::new();
    write(&bench, "a.parquet", &[table(0..7)]);
    bench.ok(&format!("dedup a.parquet -o out {DEDUP}"));
    let kept = json_lines(&bench.read("out/kept.jsonl"));
    assert_eq!(kept.len(), 5);
    assert_eq!(kept[1]["tags"], serde_json::Value::Null);
    assert_eq!(kept[3]["tags"], serde_json::json!([4, null, -4]));
    assert_eq!(kept[3]["content"], TEXTS[4].unwrap());
    assert_eq!(kept[3]["word"], "even");
    assert_eq!(kept[0]["seen"], "2023-11-14T22:13:20.123Z");
}

#[test]
fn rows_of_json_become_parquet() {
    let bench = Bench::new();
    bench.file(
        "rows.jsonl",
        "{\"id\":1,\"text\":\"sunny days are here again\",\"n\":1.5,\"of\":{\"a\":[1,2]}}\n\
         {\"id\":2,\"text\":\"Sunny days are here again!\"}\n\
         {\"id\":3,\"text\":\"another text about climbing snails\",\"n\":2,\"tag\":\"x\"}\n",
    );
    bench.ok("dedup rows.jsonl -o out -k 3 --format parquet");
    let kept = read(&bench, "out/kept.parquet");
    assert_eq!(kept.num_rows(), 2);
    let names: Vec<String> = kept.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let text = kept.column_by_name("text").unwrap();
    let text: &StringArray = text.as_any().downcast_ref().unwrap();
    assert_eq!(text.value(1), "another text about climbing snails");
    bench.file("none.jsonl", "");
    bench.ok("dedup none.jsonl -o none --format parquet");
    assert_eq!(read(&bench, "none/kept.parquet").num_rows(), 0);
}

#[test]
fn a_file_as_output_takes_the_kept_rows_alone() {
    let bench = Bench::new();
    write(&bench, "a.parquet", &[table(0..7)]);
    for form in ["parquet", "jsonl"] {
        bench.ok(&format!("dedup a.parquet -o all {DEDUP} --format {form} --overwrite"));
        bench.ok(&format!(
            "dedup a.parquet -o alone/clean.{form} {DEDUP} --rejects alone/bad --report alone/a.html"
        ));
        let kept = |name: String| std::fs::read(bench.path(&name)).unwrap();
        assert_eq!(kept(format!("alone/clean.{form}")), kept(format!("all/kept.{form}")));
        assert_eq!(bench.read("alone/bad"), bench.read("all/rejects.jsonl"));
        assert!(bench.read("alone/a.html").starts_with("<!DOCTYPE html>"));
        let names = std::fs::read_dir(bench.path("alone")).unwrap().count();
        assert_eq!(names, 3, "nothing else is written");
        std::fs::remove_dir_all(bench.path("alone")).unwrap();
    }
}

#[test]
fn csv_comes_back_as_csv_cell_for_cell() {
    let bench = Bench::new();
    let header = "\u{feff}note,id,text\r\n";
    let rows = [
        "\"say \"\"hi\"\", they said\",,sunny days are here again\r\n",
        "gone,2,Sunny days are here again!\r\n",
        "\"two\nlines\",3,another text about climbing snails\r\n",
    ];
    bench.file("a.csv", [header, &rows.concat()].concat());
    bench
        .file("b.csv", "note,id,text\n公园,4,the council voted on the budget\n")
        .file("none.csv", "");
    bench.ok("dedup a.csv b.csv none.csv -o clean.csv -k 3");
    assert_eq!(
        bench.read("clean.csv"),
        "note,id,text\n\"say \"\"hi\"\", they said\",,sunny days are here again\n\
         \"two\nlines\",3,another text about climbing snails\n公园,4,the council voted on the budget\n"
    );
    bench.ok("dedup b.csv -o out -k 3 --format tsv");
    assert_eq!(
        bench.read("out/kept.tsv"),
        "note\tid\ttext\n公园\t4\tthe council voted on the budget\n"
    );
    bench.ok("dedup none.csv -o none-clean.csv");
    assert_eq!(bench.read("none-clean.csv"), "");
}

#[test]
fn csv_is_made_of_csv_with_equal_columns_alone() {
    let bench = Bench::new();
    bench.file("a.jsonl", "{\"text\":\"x y z\"}\n").file("a.csv", "id,text\n1,x y z\n");
    bench.file("b.csv", "text,id\nx y z,1\n").file("c.csv", "text,n,n\nx y z,1,2\n");
    bench.run("dedup c.csv -o out.csv").refused(3, &["two columns named \"n\""]);
    for inputs in ["a.jsonl", "a.csv a.jsonl", "a.csv b.csv"] {
        bench
            .run(&format!("dedup {inputs} -o out.csv"))
            .refused(2, &["csv needs CSV", "distinct columns", ".parquet"]);
        assert!(!bench.path("out.csv").exists());
    }
    bench.run("dedup a.csv -o out.csv --format tsv").refused(2, &["out.csv is csv by its name"]);
    bench.run("dedup a.csv -o out.csv.xz").refused(2, &["out.csv.xz", ".gz or .zst"]);
}

#[test]
fn an_index_is_built_from_tables_and_asked_with_them() {
    let bench = Bench::new();
    write(&bench, "a.parquet", &[table(0..7)]);
    bench.ok("build idx a.parquet --text-field content -k 3 --pipeline auto");
    let found = bench.ok("query idx a.parquet --text-field content -k 3").json();
    assert_eq!(found.len(), 10, "{found:?}");
    let prints: Vec<(i64, u64)> = vec![(7, 0xff), (8, 0xfe), (9, u64::MAX << 32)];
    let ids: ArrayRef = Arc::new(prints.iter().map(|p| p.0).collect::<Int64Array>());
    let values: ArrayRef = Arc::new(prints.iter().map(|p| p.1).collect::<UInt64Array>());
    let columns = [("id", ids), ("fingerprint", values)];
    write(&bench, "prints.parquet", &[RecordBatch::try_from_iter(columns).unwrap()]);
    let pairs = bench.ok("pairs prints.parquet").stdout;
    assert_eq!(pairs, "7\t8\t1\n");
}

#[test]
fn tables_give_what_rows_of_json_give() {
    let bench = Bench::new();
    write(&bench, "a.parquet", &[table(0..7)]);
    let quoted = |separator: &str| {
        let mut rows = format!("content{separator}id\r\n");
        for (id, text) in TEXTS.iter().enumerate() {
            let text = text.unwrap_or("").replace('"', "\"\"");
            let id = id.to_string();
            rows.push_str(&["\"", &text, "\"", separator, &id, "\r\n"].concat());
        }
        rows
    };
    let json = |id: &dyn Fn(usize) -> serde_json::Value| -> String {
        let rows = TEXTS.iter().enumerate();
        let rows = rows.map(|(at, text)| serde_json::json!({ "id": id(at), "content": text }));
        rows.map(|row| row.to_string()).collect::<Vec<_>>().join("\n")
    };
    // Cells have no types: a number in CSV is the text that it looks like.
    bench.file("numbers.jsonl", json(&|at| at.into()));
    bench.file("texts.jsonl", json(&|at| at.to_string().into()));
    bench.file("a.csv", quoted(",")).file("a.tsv", quoted("\t"));
    let fingerprints = |name: &str| {
        bench.ok(&format!("fingerprint {name} --text-field content --pipeline page")).stdout
    };
    let (numbers, texts) = (fingerprints("numbers.jsonl"), fingerprints("texts.jsonl"));
    assert_eq!(numbers.lines().count(), 6);
    for (name, wanted) in [("a.parquet", &numbers), ("a.csv", &texts), ("a.tsv", &texts)] {
        assert_eq!(fingerprints(name), *wanted, "{name}");
    }
}

#[test]
fn bad_records_are_told_by_their_line_and_kept_for_the_rejects() {
    let bench = Bench::new();
    bench
        .file("a.csv", "id,text\n1,\"a text of\ntwo lines\"\n2,one,two\n,nameless text here\n3,\n");
    let outcome = bench.ok("fingerprint a.csv --rejects bad.jsonl --pipeline page --max-bad 1");
    let ids: Vec<_> = outcome.json().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["1", "a.csv:5"]);
    let bad = json_lines(&bench.read("bad.jsonl"));
    assert_eq!(bad[0]["line"], 4);
    assert_eq!(bad[0]["reason"], "record of 3 fields under a header of 2");
    assert_eq!(bad[0]["row"], "2,one,two");
    assert_eq!((&bad[1]["line"], &bad[1]["reason"]), (&6.into(), &"empty text".into()));
}

#[test]
fn bad_records_out_of_a_pipe_are_told_by_their_line_too() {
    let bench = Bench::new();
    let pipe = bench.path("a.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn(move || std::fs::write(pipe, "id,text\n1,one,two\n2,three\n"));
    let outcome = bench.ok("dedup a.csv -o out --pipeline code -k 3 --max-bad 1");
    writer.join().unwrap().unwrap();
    let told = "a.csv:2: record of 3 fields under a header of 2; skipped\n";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
    let bad = json_lines(&bench.read("out/rejects.jsonl"));
    assert_eq!((&bad[0]["line"], &bad[0]["row"]), (&2.into(), &"1,one,two".into()));
    assert_eq!(bench.read("out/kept.jsonl"), "{\"id\":\"2\",\"text\":\"three\"}\n");
}

#[test]
fn columns_that_cannot_serve_are_refused_by_name() {
    let bench = Bench::new();
    write(&bench, "a.parquet", &[table(0..3)]);
    let refused = |args: &str, words: &[&str]| bench.run(args).refused(3, words);
    refused(
        "fingerprint a.parquet --text-field words",
        &["a.parquet", "\"words\"", "tags, content, seen", "--text-field"],
    );
    refused("fingerprint a.parquet --text-field tags", &["\"tags\" is List", "expected strings"]);
    refused("fingerprint a.parquet --text-field score", &["\"score\" is Float64"]);
    bench.file("b.parquet", "no table at all").file("c.csv", "id,words\n1,x\n");
    refused("fingerprint b.parquet", &["b.parquet", "cannot be read as Parquet"]);
    refused("fingerprint c.csv", &["c.csv", "(fields: id, words)"]);
}
