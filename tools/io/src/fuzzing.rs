//! Readers of rows, tables and crawls under a fuzzer; a panic is a finding.

use std::io::BufRead;

use hamdex::{Fingerprint, Pipeline, PipelineOptions};

use crate::documents::evidence::Wanted;
use crate::documents::key::{MAX_KEY, Name};
use crate::documents::make::{Maker, row_label};
use crate::documents::seen::Seeds;
use crate::formats::chunk::Text;
use crate::formats::delimited;
use crate::formats::fields::{Fields, Names};
use crate::formats::row;
use crate::formats::warc::Records;
use crate::sources::open;

/// Makes a document of a row, or documents of a table or a crawl: the first byte chooses which,
/// fields and width, the rest is the line or file.
pub(crate) fn rows(bytes: &[u8]) {
    let [choice, line @ ..] = bytes else { return };
    let names = Names {
        id: (choice & 8 != 0).then(|| "text".to_owned()),
        stamp: (choice & 4 != 0).then(|| "date".to_owned()),
        ..Names::default()
    };
    let fields = Fields::of(&names, "text").or_other_defaults();
    let presets = PipelineOptions::PRESETS;
    let preset = presets.get(usize::from(choice >> 4 & 3)).unwrap_or(&"auto");
    let options = PipelineOptions::preset(preset).expect("a preset");
    let pipeline = (choice & 0x80 == 0).then(|| Pipeline::new(&options).expect("a pipeline"));
    let maker = Maker {
        pipeline: pipeline.as_ref(),
        wanted: Wanted::ALL,
        preparer: None,
        keyed: true,
        seeds: Seeds::default(),
    };
    let maker = (&maker, &fields);
    match choice & 0xc0 {
        0xc0 => return records(maker, line),
        0x40 => return table(maker, &names, if choice & 1 == 0 { b',' } else { b'\t' }, line),
        _ => {}
    }
    match choice & 3 {
        0 => row_of::<u32>(maker, line),
        1 => row_of::<u128>(maker, line),
        _ => row_of::<u64>(maker, line),
    }
}

fn row_of<F: Fingerprint>((maker, fields): (&Maker<'_>, &Fields), bytes: &[u8]) {
    let made = maker.line::<F>(fields, ("rows.jsonl", 6), bytes);
    if let Err(reason) = &made {
        assert!(!reason.to_string().is_empty());
    }
    if let Ok(made) = made {
        require_length(&made.key);
        assert!(!Name::of(&made.key).to_string().contains(['\n', '\t']), "a name of two lines");
        let label = row_label(fields, "rows.jsonl", 6, bytes).expect("a row read again");
        serde_json::from_str::<&serde_json::value::RawValue>(&label).expect("a label is JSON");
    }
}

/// Reads a table, every line of which is blank, a row, or a record with what is wrong about it.
fn table((maker, fields): (&Maker<'_>, &Fields), names: &Names, delimiter: u8, bytes: &[u8]) {
    let reader = open::buffered(std::io::Cursor::new(bytes.to_vec()));
    let names = Names { delimiter: Some(delimiter), ..names.clone() };
    let Ok(table) = delimited::begin("a.csv", delimiter, &names, reader) else { return };
    let reader = delimited::lines(table);
    let ends = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    let mut count = 0;
    for line in reader.split(b'\n') {
        // A quote that is never closed ends the table.
        let Ok(line) = line else { return };
        count += 1;
        if let Some((reason, _)) = delimited::refused(&line) {
            assert!(reason.starts_with("record of "), "{reason:?} of a record");
        } else if !line.is_empty() {
            row::parse(fields, &line).expect("cells become a row of strings");
            let ordinal = count as u64 - 1;
            if let Ok(made) = maker.line::<u64>(fields, ("a.csv", ordinal), &line) {
                require_length(&made.key);
            }
        }
    }
    assert!(count <= ends + 2, "{count} lines, the table has {ends} line ends");
}

/// Reads a crawl and makes documents of its pages, which has to end and to go forward.
fn records((maker, fields): (&Maker<'_>, &Fields), bytes: &[u8]) {
    let reader = open::buffered(std::io::Cursor::new(bytes.to_vec()));
    let mut records = Records::new(reader).expect("a reader of memory");
    let mut count = 0;
    while let Some(record) = records.next().expect("a reader of memory") {
        assert_eq!(record.ordinal, count, "records are counted");
        assert!(record.offset <= bytes.len() as u64, "an offset behind the end");
        count += 1;
        let Some(Ok((page, bytes))) = record.page else { continue };
        let name = page.id(fields.warc_id).unwrap_or("crawl.warc:1").to_owned();
        let text = Text { ordinal: 0, name, bytes: Ok(Vec::new()), page: Some(page) };
        if let Ok(made) = maker.text::<u64>(fields, &text, Ok(bytes)) {
            require_length(&made.key);
        }
    }
}

fn require_length(key: &[u8]) {
    assert!((1..=MAX_KEY).contains(&key.len()), "a key of {} bytes", key.len());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_of_rows_holds() {
        hamdex_fuzz::replay("rows", super::rows);
    }
}
