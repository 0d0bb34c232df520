//! Parts: the texts of a row with their bytes, so that a row can be written with other ones.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::Deserializer;

use super::fields::{Fields, Node, Role, TEXT_FIELDS};
use super::row;
use super::values::{PART_KIND, PART_TEXT, RowVisitor, Scalar, Take, elements};

/// Returns the parts of the text of a good row, each with the bytes of its value in the line.
pub fn text_parts<'a>(fields: &Fields, line: &'a [u8]) -> Vec<(Range<usize>, Cow<'a, str>)> {
    let Ok(row) = row::parse(fields, line) else { return Vec::new() };
    let raw = match row.other {
        _ if row.text.is_none() => Vec::new(),
        None => raw_parts(&fields.nodes, fields.texts.len(), line),
        Some(other) => {
            let others = raw_parts(&fields.others, TEXT_FIELDS.len(), line);
            others.into_iter().skip(other).take(1).collect()
        }
    };
    let part = |raw: &'a str| {
        let start = raw.as_ptr().addr() - line.as_ptr().addr();
        let text = serde_json::from_str::<Cow<'a, str>>(raw).ok()?;
        Some((start..start + raw.len(), text))
    };
    raw.into_iter().flatten().filter_map(part).collect()
}

/// Returns the values that make the text, as JSON: of each part, in order.
fn raw_parts<'a>(nodes: &[Node], parts: usize, line: &'a [u8]) -> Vec<Vec<&'a str>> {
    let mut found = Parts(vec![Vec::new(); parts]);
    let mut json = serde_json::Deserializer::from_slice(line);
    let visitor = RowVisitor { nodes, found: &mut found };
    if json.deserialize_map(visitor).is_err() {
        return Vec::new();
    }
    found.0
}

struct Parts<'a>(Vec<Vec<&'a str>>);

impl<'a> Take<'a> for Parts<'a> {
    fn slot(&mut self, _: Role) -> Option<&mut Scalar<'a>> {
        None
    }

    fn take(&mut self, role: Role, raw: &'a str) {
        if let Role::Text(at) = role
            && let Some(part) = self.0.get_mut(at)
        {
            let within_list = raw.starts_with('[');
            let of_element = |raw: &'a str| {
                let is_part = within_list && raw.starts_with('{');
                if is_part { text_of_part(raw) } else { vec![raw] }
            };
            *part = elements(raw).unwrap_or_default().into_iter().flat_map(of_element).collect();
        }
    }

    fn empty(&self) -> Self {
        Self(vec![Vec::new(); self.0.len()])
    }

    fn append(&mut self, element: Self) {
        for (part, more) in self.0.iter_mut().zip(element.0) {
            part.extend(more);
        }
    }

    fn replace(&mut self, list: Self) {
        for (part, whole) in self.0.iter_mut().zip(list.0).filter(|(_, whole)| !whole.is_empty()) {
            *part = whole;
        }
    }
}

/// Returns the text of a part of a message, as JSON; nothing of a picture, and other objects whole.
fn text_of_part(raw: &str) -> Vec<&str> {
    let node = |name: &str, part| Node {
        name: name.to_owned(),
        roles: vec![Role::Text(part)],
        inner: Vec::new(),
    };
    let nodes = [node(PART_TEXT, 0), node(PART_KIND, 1)];
    let mut found = raw_parts(&nodes, nodes.len(), raw.as_bytes()).into_iter();
    match (found.next().unwrap_or_default(), found.next().unwrap_or_default()) {
        (text, kind) if text.is_empty() && kind.is_empty() => vec![raw],
        (text, _) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::fields::Names;
    use crate::formats::row::parse;

    fn shown(fields: &Fields, line: &str) -> Vec<(String, String)> {
        let parts = text_parts(fields, line.as_bytes()).into_iter();
        parts.map(|(at, text)| (line[at].to_owned(), text.into_owned())).collect()
    }

    fn pairs(texts: &[(&str, &str)]) -> Vec<(String, String)> {
        texts.iter().map(|&(raw, text)| (raw.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn parts_of_a_text_are_found_with_their_bytes() {
        let fields = Fields::of(&Names::default(), "title,data.text,more");
        let line = r#"{"title":"old","data":{"x":1,"text":"b\u00e9"},"more":null,"title":"t"}"#;
        assert_eq!(shown(&fields, line), pairs(&[("\"t\"", "t"), (r#""b\u00e9""#, "bé")]));
        assert!(text_parts(&fields, br#"{"title":"#).is_empty());
        assert!(text_parts(&fields, br#"{"title":7}"#).is_empty());
        let deep = format!("{{\"title\":{}{}}}", "[".repeat(1 << 16), "]".repeat(1 << 16));
        assert!(text_parts(&fields, deep.as_bytes()).is_empty());
    }

    #[test]
    fn the_parts_of_a_list_are_found_with_their_bytes() {
        let fields = Fields::of(&Names::default(), "m.c,more");
        let line = r#"{"more":["x",null,["y"]],"m":[{"c":"a"},{"c":["b"]},{"d":"c"}]}"#;
        let texts = [("\"a\"", "a"), ("\"b\"", "b"), ("\"x\"", "x"), ("\"y\"", "y")];
        assert_eq!(shown(&fields, line), pairs(&texts));
        let line = r#"{"m":[{"c":[{"type":"text","text":"a"},{"type":"image"}]},{"c":"b"}]}"#;
        assert_eq!(shown(&fields, line), pairs(&[("\"a\"", "a"), ("\"b\"", "b")]));
        assert!(text_parts(&fields, br#"{"m":{"c":{"text":"a"}}}"#).is_empty(), "no list");
        assert!(text_parts(&fields, br#"{"more":["x",7]}"#).is_empty(), "not only texts");
    }

    #[test]
    fn a_row_without_the_chosen_field_has_the_parts_of_another_default() {
        let fields = Fields::of(&Names::default(), "text").or_other_defaults();
        let body = |line: &str| shown(&fields, line);
        assert_eq!(body(r#"{"content":null,"body":"b"}"#), pairs(&[("\"b\"", "b")]));
        assert_eq!(body(r#"{"body":"b","text":"a"}"#), pairs(&[("\"a\"", "a")]));
        assert!(body(r#"{"body":"b","text":null}"#).is_empty());
        assert!(body(r#"{"title":"b"}"#).is_empty());
        assert!(body(r#"{"body":"b","fingerprint":"00"}"#).is_empty());
        for others in ["\"a\",7", "\"a\",{\"x\":1}", "{\"type\":\"x\",\"text\":[0]},\"a\""] {
            let line = format!("{{\"content\":[{others}],\"body\":\"b\"}}");
            let row = parse(&fields, line.as_bytes()).unwrap();
            assert_eq!((row.text.as_deref(), body(&line)), (Some("b"), pairs(&[("\"b\"", "b")])));
        }
    }
}
