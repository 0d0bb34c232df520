//! Declared encodings: read from the `<meta>` tag or the XML declaration of a page.

/// Bytes within which the HTML standard requires the declaration.
const HEAD: usize = 1024;

/// Returns the encoding that a page declares, if the label is known.
pub(super) fn encoding(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = bytes.get(..HEAD).unwrap_or(bytes).to_ascii_lowercase();
    let xml = head.trim_ascii_start().strip_prefix(b"<?xml").map(|rest| until(rest, b"?>"));
    let of_xml = xml.and_then(|tag| label(tag, b"encoding"));
    let metas = || positions(&head, b"<meta").map(|at| until(head.split_at(at).1, b">"));
    let found = of_xml.or_else(|| metas().find_map(|tag| label(tag, b"charset")))?;
    encoding_rs::Encoding::for_label_no_replacement(found)
}

/// Returns the value of `name=value` within a tag, quoted or not.
fn label<'a>(tag: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    positions(tag, name).find_map(|at| {
        let rest = tag.get(at + name.len()..)?.trim_ascii_start().strip_prefix(b"=")?;
        let rest = rest.trim_ascii_start();
        let rest = rest.strip_prefix(b"\"").or(rest.strip_prefix(b"'")).unwrap_or(rest);
        let ends =
            |byte: &u8| matches!(byte, b'"' | b'\'' | b';' | b'/') || byte.is_ascii_whitespace();
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        rest.get(..end).filter(|label| !label.is_empty())
    })
}

fn until<'a>(bytes: &'a [u8], end: &[u8]) -> &'a [u8] {
    let end = positions(bytes, end).next().unwrap_or(bytes.len());
    bytes.split_at(end).0
}

fn positions<'a>(bytes: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(wanted.len()).enumerate().filter(move |(_, at)| *at == wanted).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_declare_their_encoding_in_several_ways() {
        let pages: [(&[u8], Option<&str>); 9] = [
            (b"<html><head><META CHARSET=gb2312></head>", Some("GBK")),
            (b"<meta name=a><meta charset = 'Big5'/>", Some("Big5")),
            (
                b"<meta http-equiv=content-type content=\"text/html; charset=euc-kr\">",
                Some("EUC-KR"),
            ),
            (b"<?xml version=\"1.0\" encoding=\"shift_jis\"?><html>", Some("Shift_JIS")),
            (b"<meta charset=>", None),
            (b"<meta charset=\"klingon\">", None),
            (b"<meta name=\"charset\" content=\"big5\">", None),
            (b"the charset=big5 of this text", None),
            (b"", None),
        ];
        for (page, name) in pages {
            let found = encoding(page).map(encoding_rs::Encoding::name);
            assert_eq!(found, name, "{}", page.escape_ascii());
        }
        let late = [&[b' '; HEAD][..], b"<meta charset=big5>"].concat();
        assert_eq!(encoding(&late), None);
    }
}
