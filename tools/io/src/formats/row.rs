//! JSON rows: one line of JSON Lines becomes the fields that matter here.

use std::borrow::Cow;
use std::fmt;

use hamdex::dedup::Stamp;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::{FEATURES, FINGERPRINT, Fields, Node, Role, TEXT_FIELDS};
use super::values::{RowVisitor, Scalar, Take, elements};
use crate::documents::reject::Reason;

/// The fields of one row; an id that is null is absent.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    /// The id as JSON.
    pub id: Option<&'a str>,
    /// The parts of the text that there are, with line ends between.
    pub text: Option<Cow<'a, str>>,
    /// The default field that has the text in place of the chosen one, as a part of the others.
    pub other: Option<usize>,
    /// Why there is no text.
    pub missing: Missing,
    pub fingerprint: Option<Cow<'a, str>>,
    /// The features that an export wrote beside the fingerprint.
    pub features: Option<Cow<'a, str>>,
    pub stamp: Stamp,
    /// The value that the row must not share, as JSON.
    pub unique: Option<&'a str>,
    /// Source of the row.
    pub source: Option<Cow<'a, str>>,
}

/// Why a row has no text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// None of the fields is there.
    #[default]
    Absent,
    Null,
    NoString,
}

/// Reads the fields of one line; of equal field names the last one counts.
pub(crate) fn parse<'a>(fields: &Fields, line: &'a [u8]) -> Result<Row<'a>, Reason> {
    parse_beside(fields, line, std::iter::empty())
}

/// Reads only the id of one line, as [`parse`] does; texts are skipped.
pub(crate) fn id<'a>(fields: &Fields, line: &'a [u8]) -> Result<Option<&'a str>, Reason> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    let visitor = RowVisitor { nodes: &fields.id_nodes, found: &mut found };
    json.deserialize_map(visitor).map_err(|e| Reason::json(&e))?;
    json.end().map_err(|e| Reason::json(&e))?;
    Ok(found.id.filter(|id| *id != "null"))
}

/// Reads the fields of one line, and takes parts of the text from elsewhere; `None` is null.
pub(crate) fn parse_beside<'a>(
    fields: &Fields,
    line: &'a [u8],
    texts: impl Iterator<Item = (usize, Option<&'a str>)>,
) -> Result<Row<'a>, Reason> {
    let text = simdutf8::compat::from_utf8(line).map_err(|e| Reason::Utf8(e.valid_up_to()))?;
    // Else a truncated string would be reported as one with a line end in it.
    let text = text.trim_end();
    if !text.trim_start().starts_with('{') {
        return Err(serde_json::from_str::<IgnoredAny>(text)
            .map_or_else(|e| Reason::json(&e), |_| Reason::NoObject));
    }
    let mut found = Found::default();
    found.texts.resize_with(fields.texts.len(), Scalar::default);
    let mut json = serde_json::Deserializer::from_str(text);
    let visitor = RowVisitor { nodes: &fields.nodes, found: &mut found };
    json.deserialize_map(visitor).map_err(|e| Reason::json(&e))?;
    json.end().map_err(|e| Reason::json(&e))?;
    for (part, text) in texts {
        if let Some(slot) = found.texts.get_mut(part) {
            *slot = text.map_or(Scalar::Null, |text| Scalar::Text(text.into()));
        }
    }
    let mut whole = std::mem::take(&mut found.texts).into_iter().fold(Scalar::Missing, Scalar::and);
    let mut other = None;
    if matches!((&whole, &found.fingerprint), (Scalar::Missing, Scalar::Missing)) {
        (other, whole) = other_text(&fields.others, text)?;
    }
    let (text, missing) = match whole {
        Scalar::Text(text) => (Some(text), Missing::Absent),
        Scalar::Missing => (None, Missing::Absent),
        Scalar::Null => (None, Missing::Null),
        Scalar::Other => (None, Missing::NoString),
    };
    Ok(Row {
        id: found.id.filter(|id| *id != "null"),
        text,
        other,
        missing,
        fingerprint: match found.fingerprint {
            Scalar::Missing | Scalar::Null => None,
            Scalar::Text(hex) => Some(hex),
            Scalar::Other => {
                return Err(Reason::NoString(FINGERPRINT.to_owned()));
            }
        },
        features: match found.features {
            Scalar::Text(features) => Some(features),
            Scalar::Missing | Scalar::Null => None,
            Scalar::Other => return Err(Reason::NoString(FEATURES.to_owned())),
        },
        stamp: found.stamp,
        unique: found.unique.filter(|value| *value != "null"),
        source: found.source.and_then(plain),
    })
}

/// Reads the text of a row that lacks the chosen field, from the first of the others that has one.
fn other_text<'a>(others: &[Node], row: &'a str) -> Result<(Option<usize>, Scalar<'a>), Reason> {
    if others.is_empty() {
        return Ok((None, Scalar::Missing));
    }
    let mut found = Found::default();
    found.texts.resize_with(TEXT_FIELDS.len(), Scalar::default);
    let mut json = serde_json::Deserializer::from_str(row);
    let visitor = RowVisitor { nodes: others, found: &mut found };
    json.deserialize_map(visitor).map_err(|e| Reason::json(&e))?;
    let texts = &mut found.texts;
    let first = texts.iter().position(|text| matches!(text, Scalar::Text(_)));
    let at = first.or_else(|| texts.iter().position(|text| !matches!(text, Scalar::Missing)));
    Ok((first, at.and_then(|at| texts.get_mut(at)).map(std::mem::take).unwrap_or_default()))
}

/// Reads a stamp from a value as JSON; numbers keep all their digits.
fn stamp(raw: &str) -> Stamp {
    match raw.as_bytes() {
        [b'"', ..] => {
            let text = serde_json::from_str::<Cow<'_, str>>(raw);
            text.map_or(Stamp::Missing, |text| Stamp::from_text(&text))
        }
        [b'0'..=b'9' | b'-', ..] => Stamp::from_text(raw),
        _ => Stamp::Missing,
    }
}

/// Takes a value without the quotes of a text; `None` of null and of an empty text.
fn plain(raw: &str) -> Option<Cow<'_, str>> {
    let value = match raw.as_bytes() {
        [b'"', ..] => serde_json::from_str::<Cow<'_, str>>(raw).ok()?,
        _ => raw.into(),
    };
    Some(value).filter(|value| !value.trim().is_empty() && raw != "null")
}

/// Collects the top-level fields of one line that is an object.
pub(crate) fn names(line: &[u8], found: &mut Vec<String>) -> bool {
    struct Names<'f>(&'f mut Vec<String>);
    impl<'de> Visitor<'de> for Names<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                let wanted = self.0.len() < NAMED || is_known(&name);
                if wanted && !self.0.iter().any(|known| *known == name) {
                    self.0.push(name.into_owned());
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let known = found.len();
    let mut json = serde_json::Deserializer::from_slice(line);
    let whole = json.deserialize_map(Names(found)).is_ok() && json.end().is_ok();
    if !whole {
        found.truncate(known);
    }
    whole
}

fn is_known(name: &str) -> bool {
    let known = |path: &str| {
        let first = path.split('.').next();
        first.is_some_and(|first| first.eq_ignore_ascii_case(name))
    };
    name == FINGERPRINT || TEXT_FIELDS.into_iter().any(known)
}

/// Fields that are collected, except for the known ones.
const NAMED: usize = 1000;

/// Collects the fields of one line that hold no others, each with the way to it.
pub(crate) fn paths(line: &[u8], found: &mut Vec<String>) {
    struct Paths<'f> {
        way: &'f str,
        depth: usize,
        found: &'f mut Vec<String>,
    }
    impl<'de> Visitor<'de> for Paths<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                let raw = map.next_value::<&'de RawValue>()?.get();
                let path = match self.way {
                    "" => name.into_owned(),
                    way => format!("{way}.{name}"),
                };
                enter(&path, raw, self.depth, self.found);
            }
            Ok(())
        }
    }
    fn enter(path: &str, raw: &str, depth: usize, found: &mut Vec<String>) {
        let known = found.len();
        for object in elements(raw).unwrap_or_default() {
            if object.starts_with('{') && depth < SHOWN_DEPTH {
                let paths = Paths { way: path, depth: depth + 1, found };
                // A line that breaks off shows what it has until there.
                let _ = serde_json::Deserializer::from_str(object).deserialize_map(paths);
            }
        }
        let is_leaf = found.len() == known && !is_way(path, found);
        if is_leaf && found.len() < NAMED && !path.is_empty() {
            found.push(path.to_owned());
        }
    }
    enter("", std::str::from_utf8(line).unwrap_or_default().trim(), 0, found);
}

/// Fields within fields that a message shows, at most.
const SHOWN_DEPTH: usize = 8;

/// Returns true if the field is there already, or one within it.
fn is_way(path: &str, found: &[String]) -> bool {
    let rest = |other: &String| other.strip_prefix(path).map(|rest| rest.bytes().next());
    found.iter().filter_map(rest).any(|next| matches!(next, None | Some(b'.')))
}

#[derive(Default)]
struct Found<'a> {
    id: Option<&'a str>,
    texts: Vec<Scalar<'a>>,
    fingerprint: Scalar<'a>,
    features: Scalar<'a>,
    stamp: Stamp,
    unique: Option<&'a str>,
    source: Option<&'a str>,
}

impl<'a> Take<'a> for Found<'a> {
    fn slot(&mut self, role: Role) -> Option<&mut Scalar<'a>> {
        match role {
            Role::Text(at) => self.texts.get_mut(at),
            Role::Fingerprint => Some(&mut self.fingerprint),
            Role::Features => Some(&mut self.features),
            Role::Id | Role::Unique | Role::Stamp | Role::Source => None,
        }
    }

    fn take(&mut self, role: Role, raw: &'a str) {
        match role {
            Role::Id => self.id = Some(raw),
            Role::Unique => self.unique = Some(raw),
            Role::Source => self.source = Some(raw),
            Role::Stamp => self.stamp = stamp(raw),
            Role::Text(_) | Role::Fingerprint | Role::Features => {}
        }
    }

    fn empty(&self) -> Self {
        let mut empty = Self::default();
        empty.texts.resize_with(self.texts.len(), Scalar::default);
        empty
    }

    fn append(&mut self, element: Self) {
        for (text, part) in self.texts.iter_mut().zip(element.texts) {
            *text = std::mem::take(text).and(part);
        }
    }

    fn replace(&mut self, list: Self) {
        for (text, whole) in self.texts.iter_mut().zip(list.texts) {
            if !matches!(whole, Scalar::Missing) {
                *text = whole;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::fields::Names;

    fn fields() -> Fields {
        let names = Names { stamp: Some("date".to_owned()), ..Names::default() };
        Fields::of(&names, "text")
    }

    #[test]
    fn fields_are_found_whatever_stands_around_them() {
        let line =
            br#" {"x":{"id":1},"text":"a\nb","id":17,"date":"2024-01-02","y":[1,{"text":0}]} "#;
        let fields = fields();
        let row = parse(&fields, line).unwrap();
        assert_eq!(row.text.as_deref(), Some("a\nb"));
        assert_eq!(row.id, Some("17"));
        assert_eq!(row.stamp, Stamp::from_text("2024-01-02"));
        assert!(row.fingerprint.is_none());
    }

    #[test]
    fn null_is_absent_and_the_last_of_equal_names_counts() {
        let fields = fields();
        let row =
            parse(&fields, br#"{"text":null,"fingerprint":"00","text":"b","text":null}"#).unwrap();
        assert!(row.text.is_none());
        assert_eq!(row.fingerprint.as_deref(), Some("00"));
    }

    #[test]
    fn the_id_alone_is_that_of_the_whole_row() {
        let names = Names { id: Some("meta.id".to_owned()), ..Names::default() };
        for fields in [fields(), Fields::of(&names, "text")] {
            let ids = [
                r#" {"text":"a\n\u00e9b","id":"x\ty","id":17,"meta":{"text":{"id":2},"id":[3]}} "#,
                r#"{"id":null,"fingerprint":"00","meta":{"id":null}}"#,
                r#"{"text":["a"],"meta":[{"id":4}]}"#,
                r#"{"meta.id":"5","meta":{"id":6}}"#,
            ]
            .map(|line| {
                let alone = id(&fields, line.as_bytes()).unwrap();
                assert_eq!(alone, parse(&fields, line.as_bytes()).unwrap().id, "{line}");
                alone
            });
            assert!(ids[0].is_some() && ids[1].is_none());
        }
        assert!(id(&fields(), br#"{"id":1,"text":"a"#).is_err());
    }

    #[test]
    fn texts_that_are_missing_say_why() {
        let missing = |line: &str| {
            let fields = fields();
            let row = parse(&fields, line.as_bytes()).unwrap();
            (row.text.is_none(), row.missing)
        };
        assert_eq!(missing("{}"), (true, Missing::Absent));
        assert_eq!(missing(r#"{"text":null}"#), (true, Missing::Null));
        assert_eq!(missing(r#"{"text":[1]}"#), (true, Missing::NoString));
        assert_eq!(missing(r#"{"text":7}"#), (true, Missing::NoString));
    }

    #[test]
    fn nested_fields_are_found_and_several_are_joined() {
        let names = Names {
            id: Some("meta.id".to_owned()),
            unique: Some("meta.url".to_owned()),
            ..Names::default()
        };
        let fields = Fields::of(&names, "title,data.text,more");
        let line = br#"{"data":{"x":1,"text":"body"},"more":null,"meta":{"id":[1],"url":"u"},"title":"t"}"#;
        let row = parse(&fields, line).unwrap();
        assert_eq!(row.text.as_deref(), Some("t\nbody"));
        assert_eq!((row.id, row.unique), (Some("[1]"), Some("\"u\"")));
        let line = br#"{"data.text":"dotted","meta":7,"data":[]}"#;
        let row = parse(&fields, line).unwrap();
        assert_eq!(row.text.as_deref(), Some("dotted"));
        assert!(row.id.is_none() && row.unique.is_none());
    }

    #[test]
    fn texts_of_a_list_are_joined() {
        let text = |name: &str, line: &str| {
            let fields = Fields::of(&Names::default(), name);
            let row = parse(&fields, line.as_bytes()).unwrap();
            row.text.map_or_else(|| Err(row.missing), |text| Ok(text.into_owned()))
        };
        let chat = r#"{"m":[{"r":"u","c":"a"},7,{"r":"b"},{"c":null},{"c":"b\n"}],"t":"title"}"#;
        assert_eq!(text("m.c", chat).unwrap(), "a\nb\n");
        assert_eq!(text("t,m.c", chat).unwrap(), "title\na\nb\n");
        assert_eq!(text("m.r,m.c", chat).unwrap(), "u\nb\na\nb\n");
        assert_eq!(text("m", chat), Err(Missing::NoString), "objects are no texts");
        assert_eq!(text("m.x", chat), Err(Missing::Absent));
        let parts = r#"{"m":[{"c":["a",{"text":"b"}]},{"c":[{"text":"c"}]},[{"c":"d"}]]}"#;
        assert_eq!(text("m.c.text", parts).unwrap(), "b\nc");
        assert_eq!(text("m.c", parts).unwrap(), "a\nb\nc\nd");
        let pictures = r#"{"m":[{"c":[{"type":"image"},{"type":"text","text":"a"}]},{"c":"b"}]}"#;
        assert_eq!(text("m.c", pictures).unwrap(), "a\nb");
        assert_eq!(text("m", r#"{"m":[{"type":"image"},{"text":null}]}"#), Err(Missing::Null));
        assert_eq!(
            text("m", r#"{"m":[{"type":"x","text":{"text":"a"}}]}"#),
            Err(Missing::NoString)
        );
        assert_eq!(text("m", r#"{"m":{"type":"text","text":"a"}}"#), Err(Missing::NoString));
        assert_eq!(text("text", r#"{"text":["a",null,["b","c"]]}"#).unwrap(), "a\nb\nc");
        assert_eq!(text("text", r#"{"text":["a",1]}"#), Err(Missing::NoString));
        assert_eq!(text("text", r#"{"text":[]}"#), Err(Missing::Null));
        assert_eq!(text("m.c", r#"{"m":[]}"#), Err(Missing::Absent));
        let deep = format!("{{\"m\":{}{}}}", "[".repeat(1 << 16), "]".repeat(1 << 16));
        for name in ["m", "m.c"] {
            let fields = Fields::of(&Names::default(), name);
            assert!(parse(&fields, deep.as_bytes()).is_err(), "{name}");
        }
        // The last one of equal names.
        assert_eq!(text("m.c", r#"{"m":[{"c":"a"}],"m":[{"c":"b"}]}"#).unwrap(), "b");
    }

    #[test]
    fn a_row_without_the_chosen_field_has_the_text_of_another_default() {
        let fields = Fields::of(&Names::default(), "text").or_other_defaults();
        let text = |line: &str| {
            let row = parse(&fields, line.as_bytes()).unwrap();
            row.text.map_or_else(|| Err(row.missing), |text| Ok(text.into_owned()))
        };
        assert_eq!(text(r#"{"content":"a","text":"b"}"#).unwrap(), "b");
        assert_eq!(text(r#"{"body":"c","content":"a"}"#).unwrap(), "a");
        assert_eq!(text(r#"{"body":"c","content":null,"document":7}"#).unwrap(), "c");
        assert_eq!(text(r#"{"messages":[{"content":"a"},{"content":"b"}]}"#).unwrap(), "a\nb");
        assert_eq!(text(r#"{"content":"a","text":null}"#), Err(Missing::Null), "it is there");
        assert_eq!(text(r#"{"content":7,"body":null}"#), Err(Missing::NoString));
        assert_eq!(text(r#"{"title":"a"}"#), Err(Missing::Absent));
        assert_eq!(text(r#"{"content":"a","fingerprint":"00"}"#), Err(Missing::Absent));
        let named = Fields::of(&Names::default(), "text");
        assert!(parse(&named, br#"{"content":"a"}"#).unwrap().text.is_none());
    }

    #[test]
    fn only_texts_are_looked_for_in_lists() {
        let names = Names {
            id: Some("m.id".to_owned()),
            unique: Some("m.u".to_owned()),
            source: Some("m.s".to_owned()),
            ..Names::default()
        };
        let fields = Fields::of(&names, "m.c");
        let row = parse(&fields, br#"{"m":[{"id":1,"u":2,"s":"s","c":"a"}]}"#).unwrap();
        assert_eq!(row.text.as_deref(), Some("a"));
        assert!(row.id.is_none() && row.unique.is_none() && row.source.is_none());
        let error = parse(&fields, br#"{"fingerprint":["00"]}"#).unwrap_err();
        assert_eq!(error.to_string(), "field \"fingerprint\" is not a string");
    }

    #[test]
    fn paths_lead_to_the_fields_that_hold_no_others() {
        let mut found = Vec::new();
        paths(
            br#"{"id":1,"m":[{"role":"u","c":{"t":"x"}},{"n":[]}],"e":{},"l":["a"]}"#,
            &mut found,
        );
        paths(br#"{"m":{"n":2},"id":{"a":1},"late":null}"#, &mut found);
        paths(b"[1]", &mut found);
        paths(b"nonsense", &mut found);
        paths(format!("{{\"deep\":{}", "[".repeat(1 << 20)).as_bytes(), &mut found);
        assert_eq!(found, ["id", "m.role", "m.c.t", "m.n", "e", "l", "id.a", "late"]);
    }

    #[test]
    fn one_field_may_have_several_roles() {
        let names = Names { unique: Some("text".to_owned()), ..Names::default() };
        let fields = Fields::of(&names, "text");
        let row = parse(&fields, br#"{"text":"a"}"#).unwrap();
        assert_eq!((row.text.as_deref(), row.unique), (Some("a"), Some("\"a\"")));
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        let cases: [(&[u8], &str); 6] = [
            (b"{\"text\":\"a\r\n", "broken JSON: EOF while parsing a string at column 10"),
            (b"{\"text\":\"a\"} x", "broken JSON: trailing characters at column 14"),
            (b"{\"text\":\"\xff\"}", "invalid UTF-8 at byte 9"),
            (b"[1]", "not a JSON object"),
            (b"oops", "broken JSON: expected value at column 1"),
            (b"{\"fingerprint\":[]}", "field \"fingerprint\" is not a string"),
        ];
        for (line, message) in cases {
            let error = parse(&fields(), line).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
