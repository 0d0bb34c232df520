//! Inputs: what a build reads becomes a line that a resumed build is compared with.

use crate::input::{Inputs, Kind};
use crate::size;

/// Placeholder for inputs that can be read only once.
pub(super) const PIPE: &str = "a pipe, which cannot be compared";

/// Describes inputs by names, sizes, order and the settings that select rows.
///
/// `None` if one of them can be read only once. Modification times are ignored: a restored copy has
/// another time and the same rows.
pub(super) fn described(inputs: &Inputs, bits: u32) -> Option<String> {
    let mut digest = Digest::default();
    digest.add(&format!("{:?} {bits}", inputs.names));
    for source in &inputs.sources {
        if source.is_live() {
            return None;
        }
        let path = std::path::Path::new(&source.name);
        digest.add(&source.fields.text());
        digest.add(&source.canonical_name());
        match &source.kind {
            Kind::Directory(listing) => {
                digest.add(&format!("{} {:?}", listing.bytes, listing.files));
            }
            Kind::Lines
            | Kind::Json
            | Kind::Columnar(_)
            | Kind::Delimited(_)
            | Kind::Raw(_)
            | Kind::Text
            | Kind::Warc => digest.add(&path.metadata().map_or(0, |found| found.len()).to_string()),
        }
    }
    let first = inputs.sources.first().map_or("nothing", |source| &source.name);
    let more = match inputs.sources.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", size::thousands(count as u64 - 1)),
    };
    let bytes = size::thousands(inputs.bytes()?);
    Some(format!("{first}{more}, {bytes} bytes, digest {:016x}", digest.0))
}

/// FNV-1a: the same in every version, which the standard library's hashers are not.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a text and its end.
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_follow_the_published_function_and_keep_texts_apart() {
        let of = |texts: &[&str]| {
            let mut digest = Digest::default();
            for text in texts {
                digest.add(text);
            }
            digest.0
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        let plain = "foobar".bytes().fold(Digest::default().0, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!(plain, 0x8594_4171_f739_67e8, "the published value of foobar");
    }
}
