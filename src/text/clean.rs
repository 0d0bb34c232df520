//! Cleaning: what surrounds a text without being part of it is taken out.
//!
//! Both cleaners read normalised text and give normalised text: lower case, narrow punctuation,
//! folded white space.
#![expect(clippy::indexing_slicing, reason = "tables have an entry for every byte")]

use std::fmt;
use std::str::FromStr;

use super::letter::{is_alphabetic, is_letter, letters};
use super::normalise::Folder;
use crate::error::{Error, Result};

/// Longest name of a person that is mentioned or forwarded, in characters (Weibo's limit).
const NAME_LIMIT: usize = 30;

/// Longest line that is taken for a copyright line, in characters.
const NOTICE_LIMIT: usize = 200;

/// What the services put before a forwarded post whose forwarder said nothing.
const BARE_FORWARDS: [&str; 5] = ["转发微博", "轉發微博", "转发", "repost", "rt"];

/// Which noise is taken out of a text before it is cut.
///
/// Written `none`, or `web`, `weibo` and `links` with commas between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Clean {
    /// URLs and copyright lines of pages; see [`clean_page`].
    pub web: bool,
    /// Emoticons, URLs, mentions and forwarded tails; see [`clean_post`].
    pub weibo: bool,
    /// URLs and mentions, with the `rt` before them; nothing that other texts write as well.
    pub links: bool,
}

impl Clean {
    const NAMES: [&str; 3] = ["web", "weibo", "links"];

    /// Takes out nothing.
    pub const NONE: Self = Self { web: false, weibo: false, links: false };
    /// URLs and copyright lines of pages.
    pub const WEB: Self = Self { web: true, ..Self::NONE };
    /// What surrounds the words of a microblog post.
    pub const WEIBO: Self = Self { weibo: true, ..Self::NONE };
    /// URLs and mentions.
    pub const LINKS: Self = Self { links: true, ..Self::NONE };
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::NAMES.iter().zip([self.web, self.weibo, self.links]);
        let names: Vec<&str> = set.filter(|(_, set)| *set).map(|(name, _)| *name).collect();
        if names.is_empty() { f.write_str("none") } else { f.write_str(&names.join(",")) }
    }
}

impl FromStr for Clean {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut clean = Self::NONE;
        if text == "none" {
            return Ok(clean);
        }
        for name in text.split(',') {
            match name {
                "web" => clean.web = true,
                "weibo" => clean.weibo = true,
                "links" => clean.links = true,
                other => {
                    return Err(Error::InvalidOption {
                        name: "clean",
                        reason: format!("\"{other}\" is none of web, weibo, links, none"),
                    });
                }
            }
        }
        Ok(clean)
    }
}

/// Returns a normalised microblog post without what surrounds its own words.
///
/// Emoticons (`[哈哈]`), URLs, mentions (`@name`) and the forwarded tail (`//@name:` or `//name:`
/// and all after it) go, trailing punctuation too. A post that forwards without a word of its
/// own is the post that it forwards.
///
/// ```
/// use hamdex::text::clean_post;
///
/// assert_eq!(clean_post("今天是晴天.//a:xxx//b:xxx"), "今天是晴天");
/// assert_eq!(clean_post("转发微博//@a:今天是晴天[太阳] http://t.cn/x"), "今天是晴天");
/// assert_eq!(clean_post("rt @bob: sunny today!"), "sunny today");
/// ```
pub fn clean_post(text: &str) -> String {
    let mut out = String::new();
    clean_post_into(text, Mentions::Dropped, &mut out);
    out
}

/// Returns true if a normalised text has fewer characters than `short`.
pub(super) fn is_short(text: &str, short: u32, clean: Clean) -> bool {
    let short = short as usize;
    // A character has at most four bytes, so most texts are settled without counting.
    if text.len() >= short.saturating_mul(4) {
        return false;
    }
    if clean == Clean::WEIBO {
        return short > 0 && text.chars().nth(short.saturating_sub(1)).is_none();
    }
    letters(text) < short
}

/// What becomes of people's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mentions {
    Dropped,
    /// Kept where words stand on both sides: there a name is a word of the sentence.
    WithinSentences,
}

/// Returns normalised page text without URLs and copyright lines.
///
/// ```
/// use hamdex::text::clean_page;
///
/// let page = "今天是晴天, 见 https://example.org/a?b=1\n© 2026 example. all rights reserved.";
/// assert_eq!(clean_page(page), "今天是晴天, 见");
/// ```
pub fn clean_page(text: &str) -> String {
    let mut out = String::new();
    clean_page_into(text, &mut out);
    out
}

/// Writes the cleaned post over what `out` holds.
pub(super) fn clean_post_into(text: &str, mentions: Mentions, out: &mut String) {
    // Few posts hold any of the signs that noise begins with.
    if !text.bytes().any(|byte| matches!(byte, b'[' | b'@' | b'/')) && !text.contains("www.") {
        out.clear();
        out.push_str(text.trim_end_matches(|c| !is_letter(c)));
        return;
    }
    let mut fold = Folder::new(out);
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let noise = match c {
            'h' | 'w' => url(rest, before),
            '[' => emoticon(rest),
            '@' => mention(rest, before),
            '/' => forward(rest, before),
            _ => None,
        };
        let step = match (c, noise) {
            ('/', Some(_)) if has_own_words(fold.text()) => break,
            ('/', Some(marker)) => {
                fold.clear();
                marker
            }
            ('@', Some(noise))
                if mentions == Mentions::WithinSentences
                    && is_within_sentence(fold.text(), rest.split_at(noise)) =>
            {
                rest[1..noise].chars().for_each(|c| fold.push(c));
                noise
            }
            (_, Some(noise)) => {
                if c == '@' {
                    drop_reply_word(&mut fold);
                }
                fold.push(' ');
                noise
            }
            (_, None) => push_usual(rest, c, &mut fold),
        };
        let (read, tail) = rest.split_at(step);
        before = read.chars().next_back().filter(|_| noise.is_none());
        rest = tail;
    }
    let end = out.trim_end_matches(|c| !is_letter(c)).len();
    out.truncate(end);
}

/// Writes the text without addresses and mentions over what `out` holds.
///
/// What stands in brackets or behind two slashes is a subject in most texts, and stays.
pub(super) fn clean_links_into(text: &str, mentions: Mentions, out: &mut String) {
    let mut fold = Folder::new(out);
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let noise = match c {
            'h' | 'w' => url(rest, before),
            '@' => mention(rest, before).filter(|&len| is_person(rest, before, len)),
            _ => None,
        };
        match noise {
            Some(len)
                if c == '@'
                    && mentions == Mentions::WithinSentences
                    && is_within_sentence(fold.text(), rest.split_at(len)) =>
            {
                rest[1..len].chars().for_each(|c| fold.push(c));
            }
            Some(_) => {
                if c == '@' {
                    drop_reply_word(&mut fold);
                }
                fold.push(' ');
            }
            None => {}
        }
        let step = noise.unwrap_or_else(|| push_usual(rest, c, &mut fold));
        let (read, tail) = rest.split_at(step);
        before = read.chars().next_back().filter(|_| noise.is_none());
        rest = tail;
    }
}

/// Writes the first character and what follows it up to where noise or white space may begin.
///
/// Returns how much that is.
fn push_usual(text: &str, first: char, fold: &mut Folder<'_>) -> usize {
    let bytes = text.as_bytes();
    let mut at = first.len_utf8();
    loop {
        at += match bytes.get(at..) {
            Some([byte, ..]) if USUAL[usize::from(*byte)] => 1,
            // Of these, one character each is white space.
            Some(&[0xe1, b, c, ..]) if (b, c) != (0x9a, 0x80) => 3,
            Some(&[0xe3, b, c, ..]) if (b, c) != (0x80, 0x80) => 3,
            _ => break,
        }
    }
    fold.push(first);
    let usual = &text[first.len_utf8()..at];
    if !usual.is_empty() {
        fold.push_seen(usual);
    }
    at
}

/// Bytes that begin no noise, no white space and nothing that is not seen.
static USUAL: [bool; 256] = usual();

const fn usual() -> [bool; 256] {
    let mut usual = [false; 256];
    let mut byte = 0x21;
    while byte < usual.len() {
        usual[byte] = !matches!(byte, 0x7f | 0xc2 | 0xe1..=0xe3 | 0xef);
        byte += 1;
    }
    let (noise, mut at) = (*b"hw[@/", 0);
    while at < noise.len() {
        usual[noise[at] as usize] = false;
        at += 1;
    }
    usual
}

/// Tells a person from a part of a name: `@scope/package`, `@decorator(...)`, `a/@b`.
fn is_person(text: &str, before: Option<char>, len: usize) -> bool {
    let mut after = text[len..].chars();
    let goes_on = match after.next() {
        Some('/' | '(' | '=') => true,
        Some('.') => after.next().is_some_and(is_letter),
        _ => false,
    };
    !goes_on && before.is_none_or(|c| !matches!(c, '/' | '.' | '_' | '-'))
}

/// Writes the cleaned page over what `out` holds.
pub(super) fn clean_page_into(text: &str, out: &mut String) {
    let mut fold = Folder::new(out);
    for line in text.split('\n').filter(|line| !is_notice(line)) {
        if line.contains("://") || line.contains("www.") {
            push_without_urls(line, &mut fold);
        } else {
            fold.push_folded(line);
        }
        fold.push('\n');
    }
}

fn push_without_urls(line: &str, fold: &mut Folder<'_>) {
    let mut rest = line;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let noise = if matches!(c, 'h' | 'w') { url(rest, before) } else { None };
        fold.push(if noise.is_some() { ' ' } else { c });
        before = if noise.is_some() { None } else { Some(c) };
        rest = &rest[noise.unwrap_or(c.len_utf8())..];
    }
}

/// Length of the URL that `text` begins with.
fn url(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let scheme = ["https://", "http://", "www."].into_iter().find(|s| text.starts_with(s))?.len();
    let rest = text.get(scheme..)?;
    // Chinese text follows an address without a space, a forwarded tail likewise.
    let stop = |c: char| !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '[' | ']');
    let end = rest.find(stop).unwrap_or(rest.len());
    let end = rest.get(..end)?.find("//").unwrap_or(end);
    (end > 0).then_some(scheme + end)
}

/// Length of the emoticon `[name]` that `text` begins with.
fn emoticon(text: &str) -> Option<usize> {
    let name = text.strip_prefix('[')?;
    let len = run(name, 8, |c| is_alphabetic(c) || c == '_');
    (len > 0 && name.get(len..)?.starts_with(']')).then_some(len + 2)
}

/// Length of the mention `@name` that `text` begins with, a colon after it included.
fn mention(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
        return None; // an e-mail address
    }
    let name = text.strip_prefix('@')?;
    let len = run(name, NAME_LIMIT, is_name);
    let colon = usize::from(name.get(len..)?.starts_with(':'));
    (len > 0).then_some(1 + len + colon)
}

/// Length of the marker `//@name:` or `//name:` that `text` begins with.
fn forward(text: &str, before: Option<char>) -> Option<usize> {
    if before == Some(':') {
        return None; // the scheme of an address
    }
    let after = text.strip_prefix("//")?;
    let name = after.trim_start_matches(' ').trim_start_matches('@');
    let rest = name.get(run(name, NAME_LIMIT, is_name)..)?;
    if rest.len() == name.len() {
        return None;
    }
    let tail = rest.trim_start_matches(' ').strip_prefix(':')?;
    Some(text.len() - tail.len())
}

/// Bytes of the longest prefix of at most `limit` characters that all pass.
fn run(text: &str, limit: usize, pass: impl Fn(char) -> bool) -> usize {
    text.chars().take(limit).take_while(|&c| pass(c)).map(char::len_utf8).sum()
}

fn is_name(c: char) -> bool {
    is_letter(c) || matches!(c, '_' | '-' | '·')
}

fn has_own_words(text: &str) -> bool {
    let own = text.trim_matches(|c| !is_letter(c));
    !own.is_empty() && !BARE_FORWARDS.contains(&own)
}

/// Tells whether a mention has words of one sentence around it; a colon ends it as an address.
fn is_within_sentence(before: &str, (mention, after): (&str, &str)) -> bool {
    let own = before.ends_with(is_letter) && !REPLY_WORDS.iter().any(|word| before.ends_with(word));
    let after = after.trim_start();
    own && !mention.ends_with(':')
        && !after.starts_with(['@', ':', '/'])
        && !after.starts_with("http")
        && after.contains(is_letter)
}

/// Words that only announce the mention after them.
const REPLY_WORDS: [&str; 3] = ["rt", "回复", "回覆"];

/// Takes back the word that only announces the mention after it.
fn drop_reply_word(fold: &mut Folder<'_>) {
    for word in REPLY_WORDS {
        if let Some(head) = fold.text().strip_suffix(word)
            && !head.ends_with(is_letter)
        {
            let len = head.len();
            fold.truncate(len);
            return;
        }
    }
}

fn is_notice(line: &str) -> bool {
    const SIGNS: [&str; 6] = ["©", "版权所有", "版權所有", "icp备", "备案号", "公网安备"];
    // Byte length first: it settles most lines without counting.
    line.len() <= 4 * NOTICE_LIMIT
        && (line.starts_with("copyright")
            || line.contains("all rights reserved")
            || (!line.is_ascii() && SIGNS.iter().any(|sign| line.contains(sign))))
        && line.chars().count() <= NOTICE_LIMIT
}

#[cfg(test)]
mod tests;
