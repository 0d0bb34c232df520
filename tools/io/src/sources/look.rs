//! The first rows of a source: their fields, and whether they have texts or fingerprints.
//!
//! The first thousand rows decide what a source holds, never one row.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use super::exported::{self, Export};
use super::open::{Meter, Reader};
use crate::face::failure::{Failure, Result};
use crate::formats::chunk::MAX_ROW;
use crate::formats::columnar::Columnar;
use crate::formats::fields::{FINGERPRINT, Fields, Names, TEXT_FIELDS, default_among};
use crate::formats::row::{self, Missing, Row};

/// Rows to inspect.
const ROWS: usize = 1000;

/// Bytes to inspect, unless the first row is longer.
const BYTES: usize = 4 << 20;

/// Fields that a message names.
const SHOWN: usize = 20;

/// Characters of a field's name in a message.
const NAME: usize = 60;

/// Whether rows have texts or fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bring {
    /// There are no rows, or none that can be read.
    Nothing,
    Fingerprints,
    /// Texts, some of them at least.
    Texts,
}

/// The first lines of a source.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) bytes: Vec<u8>,
}

impl Head {
    /// Reads lines that are not blank, up to a thousand; of a `live` source the first ones until
    /// one has a text or a fingerprint.
    pub(crate) fn read(reader: &mut Reader, live: Option<&Names>) -> std::io::Result<Self> {
        let mut head = Self::default();
        let mut rows = 0;
        while rows < ROWS && (rows == 0 || head.bytes.len() < BYTES) {
            let start = head.bytes.len();
            let read = reader.by_ref().take(MAX_ROW).read_until(b'\n', &mut head.bytes)?;
            let line = head.bytes.get(start..).unwrap_or_default();
            if read == 0 || (read as u64 == MAX_ROW && !line.ends_with(b"\n")) {
                break;
            }
            let blank = line.trim_ascii().is_empty();
            rows += usize::from(!blank);
            if let Some(names) = live
                && !blank
                && decides(line, names)
            {
                break;
            }
        }
        Ok(head)
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.bytes.split(|&byte| byte == b'\n');
        lines.filter(|line| !line.trim_ascii().is_empty() && !exported::is_header(line))
    }

    /// Returns the header of an exported index, if the first line is one.
    pub(crate) fn export(&self, name: &str) -> Result<Option<Export>> {
        let first = self.bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        exported::is_header(first).then(|| Export::parse(name, first)).transpose()
    }

    /// Returns the fields of the rows, in the order of appearance.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for line in self.lines() {
            row::names(line, &mut names);
        }
        names
    }

    /// Shows the fields of the rows, of which `names` may name the text.
    pub(crate) fn shown<'h>(&'h self, names: &'h Names) -> impl Shown {
        Rows { head: self, names, found: self.names() }
    }

    /// Returns whether the rows have texts or fingerprints.
    pub(crate) fn bring(&self, fields: &Fields) -> Bring {
        let mut found = Found::default();
        for row in self.lines().filter_map(|line| row::parse(fields, line).ok()) {
            if found.note(&row) {
                break;
            }
        }
        found.bring()
    }

    /// Returns whether a row has an id.
    pub(crate) fn has_id(&self, fields: &Fields) -> bool {
        self.lines().any(|line| row::parse(fields, line).is_ok_and(|row| row.id.is_some()))
    }
}

/// What the first rows have in a field: the best of all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holds {
    Nothing,
    /// Numbers, objects and the like.
    Others,
    Nulls,
    Texts,
}

/// What the first rows of a source, its header or its schema show of its fields.
pub(crate) trait Shown {
    /// Returns the fields, in the order of appearance.
    fn names(&self) -> &[String];

    /// Returns what rows have in the fields of a text, which may be several with commas between.
    fn holds(&self, text: &str) -> Holds;

    /// Returns the fields that hold no others, each with the way to it.
    fn paths(&self) -> Vec<String>;
}

/// The first lines.
struct Rows<'h> {
    head: &'h Head,
    names: &'h Names,
    found: Vec<String>,
}

impl Shown for Rows<'_> {
    fn names(&self) -> &[String] {
        &self.found
    }

    fn holds(&self, text: &str) -> Holds {
        let fields = Fields::of(self.names, text);
        let mut best = Holds::Nothing;
        for row in self.head.lines().filter_map(|line| row::parse(&fields, line).ok()) {
            best = best.max(match (row.text, row.missing) {
                (Some(_), _) => Holds::Texts,
                (None, Missing::Null) => Holds::Nulls,
                (None, Missing::NoString) => Holds::Others,
                (None, Missing::Absent) => Holds::Nothing,
            });
            if best == Holds::Texts {
                break;
            }
        }
        best
    }

    fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.head.lines().for_each(|line| row::paths(line, &mut paths));
        paths
    }
}

/// The header of a table of text cells.
pub(crate) struct Header<'h>(pub(crate) &'h [String]);

impl Shown for Header<'_> {
    fn names(&self) -> &[String] {
        self.0
    }

    fn holds(&self, text: &str) -> Holds {
        let is_there = |name: &str| self.0.iter().any(|column| column == name.trim());
        if text.split(',').any(is_there) { Holds::Texts } else { Holds::Nothing }
    }

    fn paths(&self) -> Vec<String> {
        self.0.to_vec()
    }
}

/// The schema of a columnar file.
pub(crate) struct Schema<'s> {
    columnar: &'s Columnar,
    names: Vec<String>,
}

impl<'s> Schema<'s> {
    pub(crate) fn of(columnar: &'s Columnar) -> Self {
        Self { columnar, names: columnar.names() }
    }
}

impl Shown for Schema<'_> {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn holds(&self, text: &str) -> Holds {
        let any = |only_texts| {
            text.split(',').any(|name| self.columnar.has_text(name.trim(), only_texts))
        };
        match (any(true), any(false)) {
            (true, _) => Holds::Texts,
            (false, true) => Holds::Others,
            (false, false) => Holds::Nothing,
        }
    }

    fn paths(&self) -> Vec<String> {
        self.columnar.paths()
    }
}

/// What the first rows have.
#[derive(Debug, Default)]
struct Found {
    texts: bool,
    fingerprints: bool,
    nulls: bool,
}

impl Found {
    /// Takes a row; true once no other row matters.
    fn note(&mut self, row: &Row<'_>) -> bool {
        self.texts |= row.text.is_some();
        self.fingerprints |= row.fingerprint.is_some();
        self.nulls |= row.missing != Missing::Absent;
        self.texts
    }

    fn bring(&self) -> Bring {
        match self {
            Self { texts: true, .. } => Bring::Texts,
            Self { fingerprints: true, .. } => Bring::Fingerprints,
            // Later rows may have what these ones lack.
            Self { nulls: true, .. } => Bring::Texts,
            Self { .. } => Bring::Nothing,
        }
    }
}

/// Returns whether the first rows of a columnar file have texts or fingerprints.
pub(crate) fn bring_of(name: &str, columnar: &Columnar, fields: &Fields) -> Result<Bring> {
    let (mut found, mut rows, mut bytes) = (Found::default(), 0, 0);
    for batch in columnar.batches_of(false, None, &Meter::default())? {
        let batch = batch.map_err(|e| Failure::io(name, e))?;
        batch.each(fields, |_, row| row.is_ok_and(|row| found.note(&row)))?;
        (rows, bytes) = (rows + batch.rows(), bytes + batch.bytes());
        if found.texts || rows >= ROWS as u64 || bytes >= BYTES {
            break;
        }
    }
    Ok(found.bring())
}

/// Returns true if one row of a live source decides what its rows have.
fn decides(line: &[u8], names: &Names) -> bool {
    let head = Head { bytes: line.to_vec() };
    let shown = head.shown(names);
    if shown.names().is_empty() {
        return false;
    }
    let text = names.text.as_deref().or_else(|| known(&shown));
    let fields = Fields::of(names, text.unwrap_or(TEXT_FIELDS[0]));
    row::parse(&fields, line).is_ok_and(|row| row.text.is_some() || row.fingerprint.is_some())
}

/// Returns the default field of the text: the first with texts, else with nulls, else the first that
/// is there, also of rows that cannot be read.
fn known(shown: &impl Shown) -> Option<&str> {
    let leads_there = |path: &'static str| {
        let (first, _) = path.split_once('.')?;
        shown.names().iter().any(|name| name == first).then_some(path)
    };
    let (mut best, mut known) = (Holds::Nothing, None);
    for field in TEXT_FIELDS {
        let named = default_among(shown.names(), field).or_else(|| leads_there(field));
        if let Some(field) = named.filter(|_| best < Holds::Texts) {
            let holds = shown.holds(field);
            if holds > best {
                (best, known) = (holds, Some(field));
            }
        }
    }
    known.or_else(|| TEXT_FIELDS.into_iter().find_map(|field| default_among(shown.names(), field)))
}

/// Chooses the fields of a source; refuses rows that have neither text nor fingerprint.
pub(crate) fn choose(source: &str, names: &Names, shown: &impl Shown) -> Result<Fields> {
    let found = shown.names();
    let names = &names.with_id_among(found);
    let no_texts_needed = found.is_empty() || found.iter().any(|name| name == FINGERPRINT);
    let text = match &names.text {
        Some(text) if no_texts_needed || shown.holds(text) > Holds::Nothing => Some(&**text),
        Some(text) => return Err(no_text(source, NO_FIELD, text, shown)),
        None => known(shown),
    };
    match text {
        Some(text) if !no_texts_needed && holds_only_fields(shown, text) => {
            Err(no_text(source, "no text in the field", text, shown))
        }
        Some(text) => Ok(Fields::of(names, text)),
        None if no_texts_needed => Ok(Fields::of(names, TEXT_FIELDS[0])),
        None => Err(no_text(source, NO_FIELD, TEXT_FIELDS[0], shown)),
    }
}

const NO_FIELD: &str = "no field";

/// Returns true if the first rows have other fields within a field, one of which the user may mean.
fn holds_only_fields(shown: &impl Shown, text: &str) -> bool {
    let is_within =
        |path: &String| path.strip_prefix(text).is_some_and(|rest| rest.starts_with('.'));
    shown.holds(text) == Holds::Others && shown.paths().iter().any(is_within)
}

/// Cuts a name to what a message has room for; a file read in a wrong way has names of megabytes.
fn short(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}...", name.get(..end).unwrap_or_default()).into(),
        None => name.into(),
    }
}

fn no_text(source: &str, lacks: &'static str, text: &str, shown: &impl Shown) -> Failure {
    let paths = shown.paths();
    // Rows that cannot be read have names only.
    let found = if paths.is_empty() { shown.names() } else { &paths };
    let mut fields: Vec<Cow<'_, str>> = found.iter().take(SHOWN).map(|name| short(name)).collect();
    if found.len() > SHOWN {
        fields.push("...".into());
    }
    Failure::NoTextField {
        path: source.to_owned(),
        lacks,
        text: text.to_owned(),
        fields: fields.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(content: &str) -> Head {
        Head { bytes: content.as_bytes().to_vec() }
    }

    #[test]
    fn rows_say_what_they_bring_together() {
        let fields = Fields::default();
        let bring = |content: &str| head(content).bring(&fields);
        assert_eq!(bring("{\"text\":null}\n{\"text\":\"a\"}\n"), Bring::Texts);
        assert_eq!(bring("{\"text\":null}\n{\"fingerprint\":\"00\"}\n"), Bring::Fingerprints);
        assert_eq!(bring("{\"fingerprint\":\"00\"}\n{\"text\":\"\"}\n"), Bring::Texts);
        assert_eq!(bring("{\"text\":null}\nnonsense\n"), Bring::Texts);
        assert_eq!(bring("{\"id\":1}\nnonsense\n"), Bring::Nothing);
    }

    #[test]
    fn the_text_field_is_the_first_known_one_or_what_the_user_names() {
        let names = Names::default();
        let found = |content: &str| head(content).names();
        let chosen = |names: &Names, content: &str| {
            let head = head(content);
            choose("a.jsonl", names, &head.shown(names)).map(|fields| fields.text())
        };
        assert_eq!(found("{\"b\":1}\n{\"a\":{},\"b\":2}\n"), ["b", "a"]);
        assert_eq!(chosen(&names, "{\"body\":1,\"content\":null}\n").unwrap(), "content");
        assert_eq!(chosen(&names, r#"{"标题":"t","内容":"a"}"#).unwrap(), "内容");
        assert_eq!(chosen(&names, r#"{"Text":"a","content":"b"}"#).unwrap(), "Text");
        assert_eq!(chosen(&names, r#"{"TEXT":"a","text":"b"}"#).unwrap(), "text");
        assert_eq!(chosen(&names, r#"{"TEXT":1,"Messages":2,"Body":"b"}"#).unwrap(), "Body");
        assert_eq!(chosen(&names, "").unwrap(), "text");
        assert_eq!(chosen(&names, "{\"fingerprint\":\"00\"}").unwrap(), "text");
        let error = chosen(&names, "{\"id\":1,\"title\":\"t\"}").unwrap_err();
        assert!(error.to_string().contains("(fields: id, title)"), "{error}");
        let nested = Names { text: Some("a.b".to_owned()), ..Names::default() };
        assert_eq!(chosen(&nested, "{\"x\":1}\n{\"a\":{\"b\":null}}").unwrap(), "a.b");
        assert!(chosen(&nested, "{\"a\":{},\"text\":\"t\"}").is_err());
    }

    #[test]
    fn a_field_that_holds_only_other_fields_is_refused_with_their_names() {
        let chosen = |text: Option<&str>, content: &str| {
            let names = Names { text: text.map(str::to_owned), ..Names::default() };
            let fields = choose("a.jsonl", &names, &head(content).shown(&names));
            fields.map(|fields| fields.text()).map_err(|error| error.to_string())
        };
        let rows = "{\"id\":1,\"content\":{\"title\":\"t\",\"body\":\"b\"}}\n";
        for text in [None, Some("content")] {
            let error = chosen(text, rows).unwrap_err();
            let wanted = "no text in the field \"content\" in its first rows \
                          (fields: id, content.title, content.body)";
            assert!(error.contains(wanted), "{error}");
        }
        assert_eq!(chosen(Some("content.body"), rows).unwrap(), "content.body");
        let within = "{\"messages\":[{\"content\":[{\"said\":\"a\"}]}]}\n";
        let error = chosen(None, within).unwrap_err();
        assert!(error.contains("messages.content.said"), "{error}");
        let parts = "{\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]}\n";
        assert_eq!(chosen(None, parts).unwrap(), "messages.content");
        let one_text = format!("{rows}{{\"content\":\"a\"}}\n");
        assert_eq!(chosen(None, &one_text).unwrap(), "content");
        let fingerprints = rows.replace("\"id\":1", "\"fingerprint\":\"00\"");
        assert_eq!(chosen(None, &fingerprints).unwrap(), "content");
    }

    #[test]
    fn a_field_with_texts_is_chosen_before_one_without() {
        let names = Names::default();
        let chosen = |content: &str| {
            choose("a.jsonl", &names, &head(content).shown(&names)).map(|fields| fields.text())
        };
        assert_eq!(chosen("{\"text\":{\"a\":1},\"body\":\"b\"}").unwrap(), "body");
        assert_eq!(chosen("{\"text\":7}").unwrap(), "text");
        assert_eq!(chosen("{\"text\":7,\"content\":null,\"body\":[]}").unwrap(), "content");
        assert_eq!(chosen("{\"text\":null,\"body\":\"b\"}\n{\"text\":null}").unwrap(), "body");
        assert_eq!(chosen("{\"text\":null,\"body\":\"b\"}\n{\"text\":\"a\"}").unwrap(), "text");
        let chat = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n";
        assert_eq!(chosen(chat).unwrap(), "messages.content");
        assert_eq!(
            chosen("{\"conversations\":[{\"value\":\"a\"}]}").unwrap(),
            "conversations.value"
        );
        assert_eq!(
            chosen("{\"messages\":[{\"content\":\"a\"}],\"markdown\":\"b\"}").unwrap(),
            "markdown"
        );
        let error =
            chosen("{\"id\":1,\"messages\":[{\"role\":\"u\",\"said\":\"a\"}]}").unwrap_err();
        assert!(
            error.to_string().contains("(fields: id, messages.role, messages.said)"),
            "{error}"
        );
    }
}
