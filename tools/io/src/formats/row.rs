//! JSON rows: one line of JSON Lines becomes the fields that matter here.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use hamdex::dedup::Stamp;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::{FEATURES, FINGERPRINT, Fields, Node, Role, TEXT_FIELDS};
use crate::documents::reject::Reason;

/// The fields of one row; an id that is null is absent.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    /// The id as JSON.
    pub id: Option<&'a str>,
    /// The parts of the text that there are, with line ends between.
    pub text: Option<Cow<'a, str>>,
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

/// Reads the fields of one line, and takes parts of the text from elsewhere; `None` is null.
pub(crate) fn parse_beside<'a>(
    fields: &Fields,
    line: &'a [u8],
    texts: impl Iterator<Item = (usize, Option<&'a str>)>,
) -> Result<Row<'a>, Reason> {
    let text = std::str::from_utf8(line).map_err(|e| Reason::Utf8(e.valid_up_to()))?;
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
    let (text, missing) = joined(found.texts);
    Ok(Row {
        id: found.id.filter(|id| *id != "null"),
        text,
        missing,
        fingerprint: match found.fingerprint {
            Scalar::Missing | Scalar::Null => None,
            Scalar::Text(hex) => Some(hex),
            Scalar::Number | Scalar::Other => {
                return Err(Reason::NoString(FINGERPRINT.to_owned()));
            }
        },
        features: match found.features {
            Scalar::Text(features) => Some(features),
            Scalar::Missing | Scalar::Null => None,
            Scalar::Number | Scalar::Other => return Err(Reason::NoString(FEATURES.to_owned())),
        },
        stamp: found.stamp,
        unique: found.unique.filter(|value| *value != "null"),
        source: found.source.and_then(plain),
    })
}

/// Returns the parts of the text of a good row, each with the bytes of its value in the line.
pub fn text_parts<'a>(fields: &Fields, line: &'a [u8]) -> Vec<(Range<usize>, Cow<'a, str>)> {
    let mut parts = Parts(vec![None; fields.texts.len()]);
    let mut json = serde_json::Deserializer::from_slice(line);
    let visitor = RowVisitor { nodes: &fields.nodes, found: &mut parts };
    if json.deserialize_map(visitor).is_err() {
        return Vec::new();
    }
    let part = |raw: &'a str| {
        let start = raw.as_ptr().addr() - line.as_ptr().addr();
        let text = serde_json::from_str::<Cow<'a, str>>(raw).ok()?;
        Some((start..start + raw.len(), text))
    };
    parts.0.into_iter().flatten().filter_map(part).collect()
}

/// Joins the parts of a text, without null parts.
fn joined(parts: Vec<Scalar<'_>>) -> (Option<Cow<'_, str>>, Missing) {
    let (mut text, mut missing) = (None, Missing::Absent);
    for part in parts {
        match part {
            Scalar::Missing => {}
            Scalar::Null => missing = Missing::Null,
            Scalar::Number | Scalar::Other => return (None, Missing::NoString),
            Scalar::Text(part) => {
                text = Some(match text {
                    None => part,
                    Some(before) => Cow::Owned(format!("{before}\n{part}")),
                });
            }
        }
    }
    (text, missing)
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
    name == FINGERPRINT || TEXT_FIELDS.contains(&name)
}

/// Fields that are collected, except for the known ones.
const NAMED: usize = 1000;

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

#[derive(Default)]
enum Scalar<'a> {
    #[default]
    Missing,
    Null,
    Text(Cow<'a, str>),
    Number,
    Other,
}

/// Takes values of a row; of equal field names the last one counts.
trait Take<'a> {
    /// Returns the place of a value that is read as a scalar.
    fn slot(&mut self, role: Role) -> Option<&mut Scalar<'a>>;

    /// Takes any other value, as JSON.
    fn take(&mut self, role: Role, raw: &'a str);
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
}

/// The values that make the text, as JSON.
struct Parts<'a>(Vec<Option<&'a str>>);

impl<'a> Take<'a> for Parts<'a> {
    fn slot(&mut self, _: Role) -> Option<&mut Scalar<'a>> {
        None
    }

    fn take(&mut self, role: Role, raw: &'a str) {
        if let Role::Text(at) = role
            && let Some(part) = self.0.get_mut(at)
        {
            *part = Some(raw);
        }
    }
}

struct RowVisitor<'f, 'r, T> {
    nodes: &'f [Node],
    found: &'r mut T,
}

impl<'de, T: Take<'de>> Visitor<'de> for RowVisitor<'_, '_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(node) = map.next_key_seed(NodeSeed(self.nodes))? {
            let Some(node) = node else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if let ([role], true) = (node.roles.as_slice(), node.inner.is_empty())
                && let Some(slot) = self.found.slot(*role)
            {
                *slot = map.next_value_seed(ScalarSeed)?;
                continue;
            }
            let raw = map.next_value::<&'de RawValue>()?.get();
            node.take(raw, self.found).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

impl Node {
    /// Hands on a value that has several roles, or fields inside that matter.
    fn take<'de>(&self, raw: &'de str, found: &mut impl Take<'de>) -> serde_json::Result<()> {
        for &role in &self.roles {
            match found.slot(role) {
                Some(slot) => {
                    *slot = ScalarSeed.deserialize(&mut serde_json::Deserializer::from_str(raw))?;
                }
                None => found.take(role, raw),
            }
        }
        if !self.inner.is_empty() && raw.starts_with('{') {
            let mut json = serde_json::Deserializer::from_str(raw);
            json.deserialize_map(RowVisitor { nodes: &self.inner, found })?;
        }
        Ok(())
    }
}

struct NodeSeed<'f>(&'f [Node]);

impl<'de, 'f> DeserializeSeed<'de> for NodeSeed<'f> {
    type Value = Option<&'f Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'f> Visitor<'_> for NodeSeed<'f> {
    type Value = Option<&'f Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|node| node.name == name))
    }
}

struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = Scalar<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ScalarSeed {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
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
    fn parts_of_a_text_are_found_with_their_bytes() {
        let fields = Fields::of(&Names::default(), "title,data.text,more");
        let line = br#"{"title":"old","data":{"x":1,"text":"b\u00e9"},"more":null,"title":"t"}"#;
        let parts = text_parts(&fields, line);
        let shown: Vec<_> = parts
            .iter()
            .map(|(at, text)| (std::str::from_utf8(&line[at.clone()]).unwrap(), &**text))
            .collect();
        assert_eq!(shown, [("\"t\"", "t"), (r#""b\u00e9""#, "bé")]);
        assert!(text_parts(&fields, br#"{"title":"#).is_empty());
        assert!(text_parts(&fields, br#"{"title":7}"#).is_empty());
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
