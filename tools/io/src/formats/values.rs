//! Values: takes from one line of JSON the values of the fields that matter.
//!
//! A path leads through objects, and to a text also through lists: what their elements have is
//! joined by line ends. An element may be a part of a message, which is an object with a text in
//! it, or with a picture or the like in place of one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::{Node, Role};

/// A value that is a text, or why it is none.
#[derive(Default)]
pub(super) enum Scalar<'a> {
    #[default]
    Missing,
    Null,
    Text(Cow<'a, str>),
    Other,
}

impl Scalar<'_> {
    /// Joins two parts of a text by a line end; null parts are left out.
    pub(super) fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Missing, part) | (part, Self::Missing) => part,
            (Self::Other, _) | (_, Self::Other) => Self::Other,
            (Self::Null, part) | (part, Self::Null) => part,
            (Self::Text(before), Self::Text(part)) => {
                let mut text = before.into_owned();
                text.push('\n');
                text.push_str(&part);
                Self::Text(Cow::Owned(text))
            }
        }
    }
}

/// Takes values of a row; of equal field names the last one counts.
pub(super) trait Take<'a> {
    /// Returns the place of a value that is read as a scalar.
    fn slot(&mut self, role: Role) -> Option<&mut Scalar<'a>>;

    /// Takes any other value, as JSON.
    fn take(&mut self, role: Role, raw: &'a str);

    /// Returns an empty one of this kind.
    fn empty(&self) -> Self;

    /// Appends the texts that an element of a list has.
    fn append(&mut self, element: Self);

    /// Takes the texts that the elements of a list have together.
    fn replace(&mut self, list: Self);
}

/// Most lists within lists, the same number as in `serde_json`.
const DEEPEST: usize = 128;

/// Returns the elements of a list as JSON, in place of lists among them those of these.
pub(super) fn elements(raw: &str) -> serde_json::Result<Vec<&str>> {
    let (mut elements, mut rest) = (Vec::new(), vec![(raw, 0)]);
    while let Some((raw, depth)) = rest.pop() {
        if !raw.starts_with('[') {
            elements.push(raw);
        } else if depth < DEEPEST {
            let inner: Vec<&RawValue> = serde_json::from_str(raw)?;
            rest.extend(inner.into_iter().rev().map(|raw| (raw.get(), depth + 1)));
        } else {
            return Err(serde::de::Error::custom("recursion limit exceeded"));
        }
    }
    Ok(elements)
}

/// Reads an object.
pub(super) struct RowVisitor<'f, 'r, T> {
    pub(super) nodes: &'f [Node],
    pub(super) found: &'r mut T,
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
                *slot = map.next_value_seed(ScalarSeed::of(*role))?;
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
                    let mut json = serde_json::Deserializer::from_str(raw);
                    *slot = ScalarSeed::of(role).deserialize(&mut json)?;
                }
                None => found.take(role, raw),
            }
        }
        if self.inner.is_empty() { Ok(()) } else { self.enter(raw, found) }
    }

    /// Hands on fields of an object, or the texts in the objects of a list.
    fn enter<'de>(&self, raw: &'de str, found: &mut impl Take<'de>) -> serde_json::Result<()> {
        match raw.as_bytes() {
            [b'{', ..] => {
                let mut json = serde_json::Deserializer::from_str(raw);
                json.deserialize_map(RowVisitor { nodes: &self.inner, found })
            }
            [b'[', ..] => {
                let mut list = found.empty();
                for element in elements(raw)? {
                    let mut one = found.empty();
                    self.enter(element, &mut one)?;
                    list.append(one);
                }
                found.replace(list);
                Ok(())
            }
            _ => Ok(()),
        }
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

/// Field of the text of a part of a message.
pub(super) const PART_TEXT: &str = "text";

/// Field of what a part of a message is, which may be no text.
pub(super) const PART_KIND: &str = "type";

/// Reads a value; the texts of a list are one, if it may be one.
#[derive(Clone, Copy)]
struct ScalarSeed {
    of_list: bool,
    within_list: bool,
}

impl ScalarSeed {
    fn of(role: Role) -> Self {
        Self { of_list: matches!(role, Role::Text(_)), within_list: false }
    }
}

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
        Ok(Scalar::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar<'de>, A::Error> {
        let mut all = Scalar::Null;
        let of_element = Self { within_list: true, ..self };
        while let Some(element) = seq.next_element_seed(of_element)? {
            all = all.and(element);
        }
        Ok(if self.of_list { all } else { Scalar::Other })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        let (mut text, mut has_kind) = (Scalar::Missing, false);
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == PART_TEXT {
                text = map.next_value_seed(Self { of_list: false, within_list: false })?;
            } else {
                has_kind |= name == PART_KIND;
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(match text {
            Scalar::Text(_) | Scalar::Null if self.within_list => text,
            Scalar::Missing if self.within_list && has_kind => Scalar::Null,
            Scalar::Text(_) | Scalar::Null | Scalar::Missing | Scalar::Other => Scalar::Other,
        })
    }
}
