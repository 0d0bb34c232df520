//! Sampling: a few texts from all over the inputs represent all of them.
//!
//! The sample has the beginning of every source, and rows at even distances of sources with random
//! access, so that the first rows of a sorted file do not dominate.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use hamdex::advice::Sampler;
use hamdex::text::{self, Encoding};

use super::inputs::{Draw, Inputs};
use super::kind::Kind;
use super::open::{Meter, Reader, is_html};
use super::source::Source;
use crate::face::failure::{Failure, Result};
use crate::formats::chunk::{Body, Chunk, Line, MAX_ROW, Text};
use crate::formats::fields::Fields;
use crate::formats::row;

/// Bytes that are read of all sources together, decompressed, up to a row more of each.
const BUDGET: u64 = 24 << 20;
/// Bytes of a text file that are read at most.
const LONGEST: u64 = 1 << 20;
/// Bytes of a text that are looked at; rows are read whole, and their texts cut.
const LONGEST_TEXT: usize = 1 << 20;
/// Texts of files that are enough, each being opened on its own.
const FILES: usize = 300;

impl Inputs {
    /// Reads at most `wanted` texts of different rows.
    ///
    /// Rows that are no documents are skipped; the real pass reports them. Sources that can be read
    /// only once are not opened.
    pub fn sample(&self, wanted: usize) -> Result<Vec<String>> {
        let sources: Vec<&Source> =
            self.sources.iter().filter(|source| !source.is_live()).collect();
        let chosen: Vec<&Source> =
            spread(sources.len(), wanted).filter_map(|at| sources.get(at).copied()).collect();
        let quota = wanted.div_ceil(chosen.len().max(1));
        let budget = BUDGET / chosen.len().max(1) as u64;
        let (mut sampler, mut texts) = (Sampler::new(wanted), Vec::new());
        for source in chosen {
            match &source.kind {
                Kind::Raw(_) => {}
                Kind::Columnar(columnar) => {
                    let mut used = 0;
                    for batch in columnar.sample(quota)? {
                        let batch = batch.map_err(|e| Failure::io(&source.name, e))?;
                        batch.each(&source.fields, |_, row| {
                            let text = || row.ok()?.text;
                            if columnar.in_memory() {
                                // All rows are there, so each of them has the same chance.
                                sampler.row(|| text().map(Cow::into_owned));
                            } else if used < budget
                                && let Some(text) = text()
                            {
                                used += text.len() as u64;
                                texts.push(beginning(&text));
                            }
                        })?;
                    }
                }
                Kind::Lines | Kind::Json | Kind::Delimited(_) => {
                    lines(source, &source.fields, quota, budget, &mut texts)?;
                }
                Kind::Warc => records(source, &source.fields, quota, budget, &mut texts)?,
                Kind::Text => {
                    texts.extend(file(
                        source.open(&Meter::default())?,
                        &source.name,
                        source.fields.encoding,
                    )?);
                }
                Kind::Directory(listing) => {
                    for at in spread(listing.files.len(), quota.min(FILES)) {
                        let Some(name) = listing.files.get(at) else { continue };
                        // The real pass reports an unreadable file.
                        let reader = source.open_file(name, &Meter::default());
                        texts.extend(
                            reader
                                .and_then(|reader| file(reader, name, source.fields.encoding))
                                .ok()
                                .flatten(),
                        );
                    }
                }
            }
            // Quotas are rounded up, and a source gives one long text at least.
            texts.drain(..).for_each(|text| sampler.row(|| Some(text)));
        }
        Ok(sampler.finish())
    }
}

impl Inputs {
    /// Leaves the rows of a chunk that were drawn; all, if none were.
    ///
    /// Rows of tables become lines.
    pub(crate) fn leave_drawn(&self, mut chunk: Chunk) -> Result<Chunk> {
        let Some(Draw { origins, .. }) = &self.drawn else { return Ok(chunk) };
        let base = chunk.base.unwrap_or_default();
        let is_drawn = |ordinal: u64| origins.binary_search(&(base + ordinal)).is_ok();
        match &mut chunk.body {
            Body::Lines { lines, .. } => lines.retain(|line| is_drawn(line.ordinal)),
            Body::Texts(texts) => texts.retain(|text| is_drawn(text.ordinal)),
            Body::Table(batch) => {
                let (mut bytes, mut lines) = (Vec::new(), Vec::new());
                let ordinals = batch.first()..batch.first() + batch.rows();
                for (row, ordinal) in ordinals.enumerate() {
                    if is_drawn(ordinal) {
                        let start = bytes.len();
                        bytes.append(&mut batch.line(row)?);
                        lines.push(Line { ordinal, bytes: start..bytes.len(), fault: None });
                    }
                }
                chunk.body = Body::Lines { bytes, lines };
            }
            Body::Raw { .. } => {}
        }
        Ok(chunk)
    }
}

/// Positions at even distances: all of a few, `wanted` of many.
fn spread(len: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let wanted = wanted.min(len);
    (0..wanted).map(move |n| n * len / wanted.max(1))
}

/// Reads the text of a file, the main one of a page; `None` for a binary file.
fn file(reader: Reader, name: &str, encoding: Encoding) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    reader.take(LONGEST).read_to_end(&mut bytes).map_err(|e| Failure::io(name, e))?;
    // A character that the limit cuts would make the file look like one of another encoding.
    if let Err(cut) = std::str::from_utf8(&bytes)
        && cut.error_len().is_none()
    {
        bytes.truncate(cut.valid_up_to());
    }
    let Some(content) = encoding.decode_text(&bytes) else { return Ok(None) };
    let content = content.text;
    Ok(Some(if is_html(name) { text::main_text(&content) } else { content.into_owned() }))
}

/// Takes rows from the beginning, and as many again from all over a plain file.
fn lines(
    source: &Source,
    fields: &Fields,
    quota: usize,
    budget: u64,
    texts: &mut Vec<String>,
) -> Result<()> {
    let size = source.plain_bytes().filter(|&size| size > budget);
    let quota = if size.is_some() { quota.div_ceil(2) } else { quota };
    let mut rows = Rows::new(fields, &source.name, budget);
    let mut head = source.open_rows(&Meter::default())?;
    let mut sampler = Sampler::new(quota);
    let mut count = 0;
    while let Some(line) = rows.next(&mut head)? {
        sampler.row(|| rows.text(&line));
        count += 1;
    }
    texts.append(&mut sampler.finish());
    let Some(size) = size else { return Ok(()) };
    // As many places as the budget allows, with two rows at each: one is cut in front.
    let mean = rows.at / u64::max(count, 1);
    let places = (budget / (2 * mean).max(1)).clamp(1, quota as u64);
    let mut seen = rows.at;
    for place in 0..places {
        let offset = size / places * place;
        if offset < seen {
            continue;
        }
        let Some(mut reader) = source.open_at(offset)? else { break };
        let mut rows = Rows::new(fields, &source.name, u64::MAX);
        if rows.next(&mut reader)?.is_some()
            && let Some(line) = rows.next(&mut reader)?
        {
            texts.extend(rows.text(&line));
        }
        seen = offset + rows.at;
    }
    Ok(())
}

/// Takes pages from the beginning of a crawl.
fn records(
    source: &Source,
    fields: &Fields,
    quota: usize,
    budget: u64,
    texts: &mut Vec<String>,
) -> Result<()> {
    let mut records = source.open_records(1, &Meter::default())?;
    let (mut left, enough) = (budget, texts.len() + quota);
    while left > 0 && texts.len() < enough {
        let Some(record) = records.next().map_err(|e| Failure::io(&source.name, e))? else { break };
        let Some(Ok((page, bytes))) = record.page else { continue };
        let bytes = bytes.get(..LONGEST_TEXT).unwrap_or(&bytes);
        left = left.saturating_sub(bytes.len() as u64);
        let text =
            Text { ordinal: 0, name: String::new(), bytes: Ok(Vec::new()), page: Some(page) };
        if let Some(decoded) = text.encoding(fields).decode_text(bytes) {
            let content = decoded.text;
            texts.push(if text.is_html() {
                text::main_text(&content)
            } else {
                content.into_owned()
            });
        }
    }
    Ok(())
}

/// Reads rows one by one while bytes are left.
struct Rows<'a> {
    fields: &'a Fields,
    name: &'a str,
    /// Bytes that rows may begin in.
    budget: u64,
    /// Bytes that were read.
    at: u64,
}

impl<'a> Rows<'a> {
    fn new(fields: &'a Fields, name: &'a str, budget: u64) -> Self {
        Self { fields, name, budget, at: 0 }
    }

    /// Returns the next line; `None` at the end and beyond the budget.
    fn next(&mut self, reader: &mut Reader) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        if self.at >= self.budget {
            return Ok(None);
        }
        let mut limited = reader.take(MAX_ROW);
        let read = limited.read_until(b'\n', &mut line).map_err(|e| Failure::io(self.name, e))?;
        self.at += read as u64;
        Ok((read > 0).then_some(line))
    }

    /// Returns the beginning of a row's text; `None` for a row that is no document, or has none.
    fn text(&self, line: &[u8]) -> Option<String> {
        row::parse(self.fields, line).ok()?.text.as_deref().map(beginning)
    }
}

/// Returns as much of a text as is looked at.
fn beginning(text: &str) -> String {
    text.get(..text.floor_char_boundary(LONGEST_TEXT)).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::Options;
    use crate::face::host::Silent;

    fn inputs(directory: &std::path::Path, name: &str, content: &[u8]) -> Inputs {
        let path = directory.join(name);
        std::fs::write(&path, content).unwrap();
        Inputs::resolve(&[path], &Options::default(), &Silent).unwrap()
    }

    fn rows(count: usize) -> String {
        (0..count).fold(String::new(), |mut rows, n| {
            writeln!(rows, "{{\"id\":{n},\"text\":\"row {n}\"}}").unwrap();
            rows
        })
    }

    #[test]
    fn positions_are_spread_over_all() {
        assert_eq!(spread(3, 5).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [0, 25, 50, 75]);
        assert_eq!(spread(0, 4).count(), 0);
    }

    #[test]
    fn rows_come_from_all_over_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let few = inputs(directory.path(), "few.jsonl", rows(5).as_bytes());
        assert_eq!(few.sample(100).unwrap().len(), 5);
        let many = inputs(directory.path(), "many.jsonl", rows(100_000).as_bytes());
        let sample = many.sample(1000).unwrap();
        assert!((500..=1000).contains(&sample.len()), "{}", sample.len());
        assert_eq!(sample[0], "row 0");
        assert!(sample.last().unwrap()[4..].parse::<u32>().unwrap() > 99_000);
    }

    #[test]
    fn the_end_of_a_large_plain_file_is_looked_at_too() {
        let directory = tempfile::tempdir().unwrap();
        let long = "x".repeat(2000);
        let content = (0..20_000).fold(String::new(), |mut rows, n| {
            writeln!(rows, "{{\"id\":{n},\"text\":\"{n} {long}\"}}").unwrap();
            rows
        });
        let sample = inputs(directory.path(), "a.jsonl", content.as_bytes()).sample(100).unwrap();
        let last = sample.last().unwrap().split(' ').next().unwrap().parse::<u32>().unwrap();
        assert!(last > 19_000, "{last}");
    }

    #[test]
    fn long_rows_count_and_no_row_counts_twice() {
        let directory = tempfile::tempdir().unwrap();
        let row = |n: usize, bytes: usize| {
            format!("{{\"id\":{n},\"text\":\"{n} {}\"}}\n", "x".repeat(bytes))
        };
        let numbers = |name: &str, sizes: &[usize]| -> Vec<usize> {
            let rows: String = sizes.iter().zip(0..).map(|(&bytes, n)| row(n, bytes)).collect();
            let sample = inputs(directory.path(), name, rows.as_bytes()).sample(1000).unwrap();
            assert!(sample.iter().all(|text| text.len() <= LONGEST_TEXT));
            sample.iter().map(|text| text.split(' ').next().unwrap().parse().unwrap()).collect()
        };
        // All is read: 15 texts of 1.15 MB, and a short one at the end.
        let books = [[1_150_000; 15].as_slice(), &[16]].concat();
        assert_eq!(numbers("books.jsonl", &books), (0..16).collect::<Vec<_>>());
        // More than the budget: most rows are seen, and each once.
        let long = [[2_000_000, 9_000_000, 15_000_000].as_slice(), &[5_000_000; 9], &[20]].concat();
        let mut seen = numbers("long.jsonl", &long);
        let count = seen.len();
        assert!((3..=long.len()).contains(&count) && seen.is_sorted(), "{seen:?}");
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn a_character_at_the_limit_of_a_file_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("a{}", "天".repeat(400_000));
        let sample = inputs(directory.path(), "a.txt", text.as_bytes()).sample(10).unwrap();
        assert_eq!(sample[0].chars().count(), 1 + ((1 << 20) - 1) / 3);
    }

    #[test]
    fn bad_rows_and_binary_files_are_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let bad = inputs(directory.path(), "a.jsonl", b"{\n\n{\"text\":\"good\"}\n[]\n\xff\n");
        assert_eq!(bad.sample(10).unwrap(), ["good"]);
        assert!(inputs(directory.path(), "a.txt", b"a\0b").sample(10).unwrap().is_empty());
        let page = inputs(directory.path(), "a.html", b"<p>sunny days</p>");
        assert_eq!(page.sample(10).unwrap()[0].trim(), "sunny days");
        assert!(inputs(directory.path(), "a.u64", &[0; 16]).sample(10).unwrap().is_empty());
    }
}
