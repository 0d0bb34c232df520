//! JSON rows: one line of JSON Lines becomes the fields that matter here.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use hamdex::text::Encoding;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::reject::Reason;
use super::warc::WarcId;

/// Field of a fingerprint that stands instead of text.
pub(super) const FINGERPRINT: &str = "fingerprint";

/// Names of the fields to read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields {
    pub(crate) id: String,
    pub(crate) text: String,
    /// The field that tells which of two documents is the newer one.
    pub(crate) stamp: Option<String>,
    /// What text files are decoded from; rows of JSON are UTF-8 by their standard.
    pub(crate) encoding: Encoding,
    /// What pages of a crawl go by.
    pub(crate) warc_id: WarcId,
}

/// The fields of one row; absent and null are the same.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    /// The id as it stands in the JSON.
    pub(crate) id: Option<&'a str>,
    pub(crate) text: Option<Cow<'a, str>>,
    pub(crate) fingerprint: Option<Cow<'a, str>>,
    pub(crate) stamp: Stamp,
}

/// A date or version to order documents by; rows without one come before all others.
#[derive(Debug, Default, Clone)]
pub(crate) enum Stamp {
    #[default]
    Missing,
    Number(f64),
    Text(Box<str>),
}

impl Ord for Stamp {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Missing, Self::Missing) => Ordering::Equal,
            (Self::Missing, _) | (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (_, Self::Missing) | (Self::Text(_), Self::Number(_)) => Ordering::Greater,
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
        }
    }
}

impl PartialOrd for Stamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Stamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Stamp {}

/// Reads the fields of one line; of equal field names the last one counts.
pub(crate) fn parse<'a>(fields: &Fields, line: &'a [u8]) -> Result<Row<'a>, Reason> {
    let text = std::str::from_utf8(line).map_err(|e| Reason::Utf8(e.valid_up_to()))?;
    // A string that is cut short would otherwise be told as one with a line end in it.
    let text = text.trim_end();
    if !text.trim_start().starts_with('{') {
        return Err(serde_json::from_str::<IgnoredAny>(text)
            .map_or_else(|e| Reason::json(&e), |_| Reason::NoObject));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let found = json.deserialize_map(RowVisitor(fields)).map_err(|e| Reason::json(&e))?;
    json.end().map_err(|e| Reason::json(&e))?;
    let text_of = |scalar, name: &str| match scalar {
        Scalar::Missing => Ok(None),
        Scalar::Text(text) => Ok(Some(text)),
        Scalar::Number(_) | Scalar::Other => Err(Reason::NoString(name.to_owned())),
    };
    Ok(Row {
        id: found.id,
        text: text_of(found.text, &fields.text)?,
        fingerprint: text_of(found.fingerprint, FINGERPRINT)?,
        stamp: match found.stamp {
            Scalar::Missing | Scalar::Other => Stamp::Missing,
            Scalar::Number(number) => Stamp::Number(number),
            Scalar::Text(text) => Stamp::Text(text.into()),
        },
    })
}

#[derive(Default)]
struct Found<'a> {
    id: Option<&'a str>,
    text: Scalar<'a>,
    fingerprint: Scalar<'a>,
    stamp: Scalar<'a>,
}

#[derive(Default)]
enum Scalar<'a> {
    #[default]
    Missing,
    Text(Cow<'a, str>),
    Number(f64),
    Other,
}

struct RowVisitor<'f>(&'f Fields);

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found<'de>, A::Error> {
        let mut found = Found::default();
        while let Some(field) = map.next_key_seed(FieldSeed(self.0))? {
            match field {
                Field::Id => found.id = Some(map.next_value::<&RawValue>()?.get()),
                Field::Text => found.text = map.next_value_seed(ScalarSeed)?,
                Field::Fingerprint => found.fingerprint = map.next_value_seed(ScalarSeed)?,
                Field::Stamp => found.stamp = map.next_value_seed(ScalarSeed)?,
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

enum Field {
    Id,
    Text,
    Fingerprint,
    Stamp,
    Other,
}

struct FieldSeed<'f>(&'f Fields);

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Field, E> {
        Ok(match name {
            name if name == self.0.text => Field::Text,
            name if name == self.0.id => Field::Id,
            FINGERPRINT => Field::Fingerprint,
            name if self.0.stamp.as_deref() == Some(name) => Field::Stamp,
            _ => Field::Other,
        })
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
        Ok(Scalar::Missing)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number))
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

    fn fields() -> Fields {
        Fields {
            id: "id".to_owned(),
            text: "text".to_owned(),
            stamp: Some("date".to_owned()),
            encoding: Encoding::AUTO,
            warc_id: WarcId::Uri,
        }
    }

    #[test]
    fn fields_are_found_whatever_stands_around_them() {
        let line =
            br#" {"x":{"id":1},"text":"a\nb","id":17,"date":"2024-01-02","y":[1,{"text":0}]} "#;
        let fields = fields();
        let row = parse(&fields, line).unwrap();
        assert_eq!(row.text.as_deref(), Some("a\nb"));
        assert_eq!(row.id, Some("17"));
        assert_eq!(row.stamp, Stamp::Text("2024-01-02".into()));
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
    fn bad_lines_say_what_is_wrong() {
        let cases: [(&[u8], &str); 7] = [
            (b"{\"text\":\"a\r\n", "broken JSON: EOF while parsing a string at column 10"),
            (b"{\"text\":\"a\"} x", "broken JSON: trailing characters at column 14"),
            (b"{\"text\":\"\xff\"}", "invalid UTF-8 at byte 9"),
            (b"[1]", "not a JSON object"),
            (b"oops", "broken JSON: expected value at column 1"),
            (b"{\"text\":7}", "field \"text\" is not a string"),
            (b"{\"fingerprint\":[]}", "field \"fingerprint\" is not a string"),
        ];
        for (line, message) in cases {
            let error = parse(&fields(), line).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn stamps_order_missing_numbers_texts() {
        let stamps =
            [Stamp::Missing, Stamp::Number(-1.0), Stamp::Number(2.0), Stamp::Text("1".into())];
        for pair in stamps.windows(2) {
            assert!(pair[0] < pair[1]);
        }
    }
}
