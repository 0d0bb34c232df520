//! Heads: the lines before an empty one become a first line and named fields.
//!
//! Records and HTTP responses begin alike. Crawls hold what servers sent, so whatever is no field
//! is passed over instead of refused.

use std::borrow::Cow;

/// A first line and the fields behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    /// Cuts a head of so many bytes at most off the front; `None` where no empty line ends it.
    pub(super) fn cut(bytes: &'a [u8], limit: usize) -> Option<(Self, &'a [u8])> {
        let mut from = 0;
        while from < limit {
            let line = line(bytes.get(from..)?)?;
            from += line.len();
            if line.trim_ascii().is_empty() {
                return bytes.split_at_checked(from).map(|(head, rest)| (Self(head), rest));
            }
        }
        None
    }

    /// The first line without its end.
    pub(super) fn first(&self) -> &'a [u8] {
        line(self.0).unwrap_or(self.0).trim_ascii_end()
    }

    /// The value of the first field of that name, whatever its case; folded lines are joined.
    pub(super) fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut lines = self.0.split_inclusive(|&byte| byte == b'\n').skip(1).peekable();
        while let Some(line) = lines.next() {
            let Some(at) = line.iter().position(|&byte| byte == b':') else { continue };
            let (found, value) = line.split_at(at);
            if !found.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()) {
                continue;
            }
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let mut value = String::from_utf8_lossy(value);
            while let Some(folded) =
                lines.next_if(|line| line.starts_with(b" ") || line.starts_with(b"\t"))
            {
                let value = value.to_mut();
                value.push(' ');
                value.push_str(&String::from_utf8_lossy(folded.trim_ascii()));
            }
            return Some(value);
        }
        None
    }
}

/// The first line with its end; `None` where no line ends.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    bytes.get(..=end)
}

/// A media type without its parameters, in lower case, and the charset among them.
pub(super) fn media_type(value: &str) -> (String, Option<&str>) {
    let mut parts = value.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    });
    (kind, charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_whatever_their_case_and_folded_ones_are_joined() {
        let bytes = b"HTTP/1.1 200 OK\r\nno field\r\nContent-TYPE : text/html;\r\n\tcharset=gbk\r\nX:\r\n\r\nbody";
        let (head, rest) = Head::cut(bytes, 1000).unwrap();
        assert_eq!(head.first(), b"HTTP/1.1 200 OK");
        assert_eq!(head.get("content-type").unwrap(), "text/html; charset=gbk");
        assert_eq!(head.get("x").unwrap(), "");
        assert_eq!((head.get("y"), rest), (None, &b"body"[..]));
        assert!(Head::cut(bytes, 20).is_none());
        assert!(Head::cut(b"HTTP/1.1 200 OK\r\nX: y\r\n", 1000).is_none());
        assert_eq!(Head::cut(b"a\n\nb", 1000).unwrap().1, b"b");
    }

    #[test]
    fn media_types_are_told_apart_from_their_parameters() {
        assert_eq!(media_type("Text/HTML"), ("text/html".to_owned(), None));
        assert_eq!(media_type("a/b; q=1; Charset=\"Big5\"").1, Some("Big5"));
        assert_eq!(media_type(";;charset"), (String::new(), None));
    }
}
