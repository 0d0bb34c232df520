//! Labels: the id of a row as JSON, exactly as the row has it.

use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::key::Name;

/// The id of a row, or its place where it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label<'a>(std::borrow::Cow<'a, str>);

impl<'a> Label<'a> {
    /// Takes JSON.
    pub(super) fn of(json: &'a [u8]) -> Self {
        Self(String::from_utf8_lossy(json))
    }

    /// Takes the key of a stored document.
    pub(super) fn stored(key: &[u8]) -> Self {
        Self(serde_json::to_string(&Name::of(key)).unwrap_or_default().into())
    }
}

impl Serialize for Label<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(json) => json.serialize(serializer),
            Err(_) => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Label<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Box::<str>::from(json).into_string().into()))
    }
}

impl fmt::Display for Label<'_> {
    /// Writes a text without its quotes, anything else as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match serde_json::from_str::<String>(&self.0) {
            Ok(text) => f.write_str(&text),
            Err(_) => f.write_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_as_the_row_has_them() {
        for json in ["1.0", "\"a\\tb\"", "123456789012345678901234567890", "[1, 2]", "true"] {
            assert_eq!(serde_json::to_string(&Label::of(json.as_bytes())).unwrap(), json);
        }
        assert_eq!(Label::of(b"\"a\\tb\"").to_string(), "a\tb");
        assert_eq!(Label::of(b"7").to_string(), "7");
        assert_eq!(serde_json::to_string(&Label::of(b"")).unwrap(), "null");
        assert_eq!(Label::stored(&7_u64.to_be_bytes()).to_string(), "7");
    }
}
