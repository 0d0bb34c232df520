//! Visible text: characters that would control a terminal become readable escapes.
//!
//! Ids, paths and addresses are untrusted. Files and pipes get them unchanged.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with every character that a terminal would act on as an escape.
///
/// These are control characters, line separators and the marks and overrides of text direction.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, &|out, c| match c {
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        c => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
    })
}

/// Returns JSON in which the same characters are escapes of JSON, so that its value is unchanged.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // None of them is above U+FFFF, where JSON would need two escapes.
    escaped(json, &|out, c| {
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    })
}

fn escaped<'a>(text: &'a str, escape: &dyn Fn(&mut String, char)) -> Cow<'a, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            escape(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Undoes [`visible`]; `None` if there is no escape in the text.
pub fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        if let Some((c, len)) = escape_at(escape) {
            out.push(c);
            rest = escape.get(len..).unwrap_or_default();
        } else {
            out.push('\\');
            rest = escape.get(1..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

/// Returns the character of the escape at the start of the text, and its length.
fn escape_at(text: &str) -> Option<(char, usize)> {
    let simple = [("\\t", '\t'), ("\\n", '\n'), ("\\r", '\r')];
    if let Some(&(escape, c)) = simple.iter().find(|(escape, _)| text.starts_with(escape)) {
        return Some((c, escape.len()));
    }
    let digits = text.strip_prefix("\\u{")?;
    let end = digits.find('}')?;
    let c = char::from_u32(u32::from_str_radix(digits.get(..end)?, 16).ok()?)?;
    Some((c, "\\u{".len() + end + 1))
}

/// Returns whether a terminal would act on the character, or show the text around it elsewhere.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}'
            | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_comes_back() {
        for (text, shown) in [
            ("plain, \u{7f8e}\u{56fd} \u{1f600}", "plain, \u{7f8e}\u{56fd} \u{1f600}"),
            ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{9b}b\u{7f}", "a\\u{9b}b\\u{7f}"),
            ("a\tb\nc\rd", "a\\tb\\nc\\rd"),
            ("\u{61c}\u{200e}\u{2028}\u{2067}", "\\u{61c}\\u{200e}\\u{2028}\\u{2067}"),
        ] {
            assert_eq!(visible(text), shown);
            let back = unescaped(shown);
            assert_eq!(back.as_deref(), (text != shown).then_some(text), "{shown}");
        }
        assert_eq!(unescaped("C:\\users \\u{110000} \\u{x} \\"), None);
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"id": "a\u{202e}b\u{9b}c\u{7f}\td"});
        let shown = visible_json(&value.to_string()).into_owned();
        assert!(!shown.contains(steers), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
