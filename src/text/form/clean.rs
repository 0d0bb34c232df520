//! Cleaning: removes noise around a text, such as URLs, mentions and copyright lines.
//!
//! All cleaners read and return normalised text: lower case, narrow punctuation, folded white
//! space.
#![expect(clippy::indexing_slicing, reason = "tables have an entry for every byte")]

use std::fmt;
use std::str::FromStr;

use super::letter::{is_alphabetic, is_letter, letters};
use super::normalise::Folder;
use crate::error::{Error, Result};

/// Maximum length of a mentioned or forwarded name, in characters (Weibo's limit).
const NAME_LIMIT: usize = 30;

/// Maximum length of a copyright line, in characters.
const NOTICE_LIMIT: usize = 200;

/// Texts that services put before a forwarded post without a comment.
const BARE_FORWARDS: [&str; 5] = ["转发微博", "轉發微博", "转发", "repost", "rt"];

/// The kinds of noise to remove from a text.
///
/// Parsed from `none`, or from a comma-separated list of `web`, `weibo` and `links`.
///
/// ```
/// use hamdex::text::Clean;
///
/// let clean: Clean = "web,links".parse()?;
/// assert_eq!(clean, Clean { links: true, ..Clean::WEB });
/// assert_eq!(clean.to_string(), "web,links");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Clean {
    /// URLs and copyright lines of pages; see [`clean_page`].
    pub web: bool,
    /// Emoticons, URLs, mentions and forwarded tails; see [`clean_post`].
    pub weibo: bool,
    /// URLs and mentions, with the `rt` before them; nothing that other texts use too.
    pub links: bool,
}

impl Clean {
    const NAMES: [&str; 3] = ["web", "weibo", "links"];

    /// No noise.
    pub const NONE: Self = Self { web: false, weibo: false, links: false };
    /// URLs and copyright lines of pages.
    pub const WEB: Self = Self { web: true, ..Self::NONE };
    /// Emoticons, URLs, mentions and forwarded tails of microblog posts.
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
                        reason: format!("unknown \"{other}\"; use web, weibo, links or none"),
                    });
                }
            }
        }
        Ok(clean)
    }
}

/// Returns a normalised microblog post without emoticons, links and mentions.
///
/// Removes emoticons (`[哈哈]`), URLs, mentions (`@name`), the forwarded tail (from `//@name:` or
/// `//name:` on) and trailing punctuation. If a post has no words before the forwarded tail, the
/// forwarded post is returned.
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
pub(in crate::text) fn is_short(text: &str, short: u32, clean: Clean) -> bool {
    let short = short as usize;
    // A character has at most four bytes, so most texts need no counting.
    if text.len() >= short.saturating_mul(4) {
        return false;
    }
    if clean == Clean::WEIBO {
        return short > 0 && text.chars().nth(short.saturating_sub(1)).is_none();
    }
    letters(text) < short
}

/// The treatment of mentioned names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::text) enum Mentions {
    Dropped,
    /// Kept between two words, because there a name is part of the sentence.
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

/// Replaces `out` by the cleaned post.
pub(in crate::text) fn clean_post_into(text: &str, mentions: Mentions, out: &mut String) {
    // Fast path: most posts have none of the characters that begin noise.
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

/// Replaces `out` by the text without URLs and mentions.
///
/// Keeps text in brackets and after two slashes, which is a subject in most texts.
pub(in crate::text) fn clean_links_into(text: &str, mentions: Mentions, out: &mut String) {
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

/// Writes the first character and all that follow it up to possible noise or white space.
///
/// Returns their length in bytes.
fn push_usual(text: &str, first: char, fold: &mut Folder<'_>) -> usize {
    let bytes = text.as_bytes();
    let mut at = first.len_utf8();
    loop {
        at += match bytes.get(at..) {
            Some([byte, ..]) if USUAL[usize::from(*byte)] => 1,
            // Each of these leading bytes has one white space character.
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

/// Bytes that do not begin noise, white space or invisible characters.
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

/// Returns true if a mention is a person, not `@scope/package`, `@decorator(...)` or `a/@b`.
fn is_person(text: &str, before: Option<char>, len: usize) -> bool {
    let mut after = text[len..].chars();
    let goes_on = match after.next() {
        Some('/' | '(' | '=') => true,
        Some('.') => after.next().is_some_and(is_letter),
        _ => false,
    };
    !goes_on && before.is_none_or(|c| !matches!(c, '/' | '.' | '_' | '-'))
}

/// Replaces `out` by the cleaned page.
pub(in crate::text) fn clean_page_into(text: &str, out: &mut String) {
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

/// Returns the length of the URL at the start of `text`.
fn url(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let scheme = ["https://", "http://", "www."].into_iter().find(|s| text.starts_with(s))?.len();
    let rest = text.get(scheme..)?;
    // Chinese text and forwarded tails follow a URL without a space.
    let stop = |c: char| !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '[' | ']');
    let end = rest.find(stop).unwrap_or(rest.len());
    let end = rest.get(..end)?.find("//").unwrap_or(end);
    (end > 0).then_some(scheme + end)
}

/// Returns the length of the emoticon `[name]` at the start of `text`.
fn emoticon(text: &str) -> Option<usize> {
    let name = text.strip_prefix('[')?;
    let len = run(name, 8, |c| is_alphabetic(c) || c == '_');
    (len > 0 && name.get(len..)?.starts_with(']')).then_some(len + 2)
}

/// Returns the length of the mention `@name` at the start of `text`, including a colon after it.
fn mention(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
        return None; // an e-mail address
    }
    let name = text.strip_prefix('@')?;
    let len = run(name, NAME_LIMIT, is_name);
    let colon = usize::from(name.get(len..)?.starts_with(':'));
    (len > 0).then_some(1 + len + colon)
}

/// Returns the length of the marker `//@name:` or `//name:` at the start of `text`.
fn forward(text: &str, before: Option<char>) -> Option<usize> {
    if before == Some(':') {
        return None; // the scheme of a URL
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

/// Returns the length in bytes of the longest prefix of up to `limit` characters that pass.
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

/// Returns true if words of the same sentence surround a mention; a colon makes it an address.
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

/// Removes a trailing word that only announces the mention after it.
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
    // Byte length first: most lines need no counting of characters.
    line.len() <= 4 * NOTICE_LIMIT
        && (line.starts_with("copyright")
            || line.contains("all rights reserved")
            || (!line.is_ascii() && SIGNS.iter().any(|sign| line.contains(sign))))
        && line.chars().count() <= NOTICE_LIMIT
}

#[cfg(test)]
mod tests;
