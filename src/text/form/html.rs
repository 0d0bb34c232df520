//! Main content: extracts the main text of an HTML page.
//!
//! Navigation, advertisements and footers must not decide whether two pages are alike. If no main
//! content is found, all text of the page is used.

use dom_smoothie::{Config, Readability, TextMode};

use super::letter::is_letter;

/// Maximum nesting depth for the extractor, which is recursive.
const DEPTH_LIMIT: usize = 256;

/// Maximum number of elements for the extractor, whose work can grow faster than the page.
const ELEMENT_LIMIT: usize = 50_000;

/// Maximum number of bytes that the extractor copies to join texts; about 0.3 seconds.
const COPY_LIMIT: u64 = 1 << 33;

/// Elements with optional or no closing tags, which do not add depth.
const NO_DEPTH: [&str; 26] = [
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta",
    "option", "p", "param", "rp", "rt", "source", "tbody", "td", "th", "thead", "tr", "track",
    "wbr",
];

/// Elements whose content is skipped.
const SKIPPED: [&str; 6] = ["script", "style", "noscript", "template", "svg", "head"];

/// Elements within a line; all others end the line.
const INLINE: [&str; 20] = [
    "a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "img", "label", "mark", "s",
    "small", "span", "strong", "sub", "sup", "u", "wbr",
];

/// Returns the main text of an HTML page.
///
/// Uses the method of browsers' reader views. If that finds nothing, or the page is nested too
/// deeply or too large, returns all text of the page without its tags. Text without tags is
/// unchanged except for its character references, which are replaced.
///
/// ```
/// use hamdex::text::main_text;
///
/// assert_eq!(main_text("<p>today &amp; <b>sun</b>ny</p><script>x()</script>").trim(), "today & sunny");
/// ```
pub fn main_text(html: &str) -> String {
    article(html).filter(|text| text.contains(is_letter)).unwrap_or_else(|| strip_tags(html))
}

fn article(html: &str) -> Option<String> {
    let Shape { elements, depth, copied } = Shape::of(html);
    if elements == 0 || elements > ELEMENT_LIMIT || depth > DEPTH_LIMIT || copied > COPY_LIMIT {
        return None;
    }
    let config =
        Config { disable_json_ld: true, text_mode: TextMode::Formatted, ..Config::default() };
    let article = Readability::new(html, None, Some(config)).ok()?.parse().ok()?;
    Some(article.text_content.to_string())
}

/// One piece of a page.
enum Piece<'h> {
    Text(&'h str),
    Tag { name: &'h str, closes: bool },
}

/// Splits a page into text and tags; skips comments and declarations.
fn pieces(html: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let Some(inside) = rest.strip_prefix('<') else {
                if rest.is_empty() {
                    return None;
                }
                let (text, tail) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
                rest = tail;
                return Some(Piece::Text(text));
            };
            if let Some(comment) = inside.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, tail)| tail);
                continue;
            }
            let closes = inside.starts_with('/');
            let name = inside.trim_start_matches('/');
            if !name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '!' | '?')) {
                rest = inside;
                return Some(Piece::Text("<")); // a plain less-than sign
            }
            rest = inside.split_once('>').map_or("", |(_, behind)| behind);
            let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
            let name = &name[..end];
            if !closes && is_one_of(name, &["script", "style"]) {
                rest = &rest[raw_text(rest, name)..];
            }
            return Some(Piece::Tag { name, closes });
        }
    })
}

/// Returns the number of bytes up to the closing tag of an element with raw text.
fn raw_text(rest: &str, name: &str) -> usize {
    let closes = |at: usize| {
        let found = rest.get(at + 2..).and_then(|after| after.get(..name.len()));
        found.is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    rest.match_indices("</").map(|(at, _)| at).find(|&at| closes(at)).unwrap_or(rest.len())
}

/// The cost of a page for the extractor.
#[derive(Default)]
struct Shape {
    elements: usize,
    /// Maximum nesting depth.
    depth: usize,
    /// Number of bytes copied to join texts piece by piece.
    copied: u64,
}

impl Shape {
    fn of(html: &str) -> Self {
        let mut shape = Self::default();
        let (mut depth, mut length, mut breaks) = (0_usize, 0_u64, 0_u64);
        for piece in pieces(html) {
            match piece {
                Piece::Text(text) => {
                    // The parser stops at these bytes and appends the rest to the text so far.
                    let stops =
                        text.bytes().filter(|b| matches!(b, b'&' | b'<' | b'\n' | b'\r' | 0));
                    breaks += stops.count() as u64;
                    length += text.len() as u64;
                    continue;
                }
                Piece::Tag { name, .. } if is_one_of(name, &NO_DEPTH) => shape.elements += 1,
                Piece::Tag { closes: true, .. } => depth = depth.saturating_sub(1),
                Piece::Tag { name: "", .. } => {}
                Piece::Tag { .. } => {
                    shape.elements += 1;
                    depth += 1;
                    shape.depth = shape.depth.max(depth);
                }
            }
            shape.copied = shape.copied.saturating_add(length.saturating_mul(breaks));
            (length, breaks) = (0, 0);
        }
        shape.copied = shape.copied.saturating_add(length.saturating_mul(breaks));
        shape
    }
}

/// Returns all text of a page; each element that is not inline ends a line.
fn strip_tags(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut skipped: Option<&str> = None;
    for piece in pieces(html) {
        match (piece, skipped) {
            (Piece::Tag { name, closes: true }, Some(open)) if name.eq_ignore_ascii_case(open) => {
                skipped = None;
            }
            (Piece::Tag { name, closes: false }, None) if is_one_of(name, &SKIPPED) => {
                skipped = Some(name);
            }
            (Piece::Tag { name, .. }, None) if !is_one_of(name, &INLINE) => out.push('\n'),
            (Piece::Text(text), None) => push_decoded(text, &mut out),
            _ => {}
        }
    }
    out
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Appends text and replaces its character references; unknown ones are kept.
fn push_decoded(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((plain, reference)) = rest.split_once('&') {
        out.push_str(plain);
        // All known references end within ten bytes, so the search is linear.
        let end = reference.bytes().take(10).position(|byte| byte == b';');
        let decoded = end
            .and_then(|end| Some((character(reference.get(..end)?)?, reference.get(end + 1..)?)));
        rest = if let Some((c, tail)) = decoded {
            out.push(c);
            tail
        } else {
            out.push('&');
            reference
        };
    }
    out.push_str(rest);
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "copy" => Some('©'),
        "hellip" => Some('…'),
        "mdash" => Some('—'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(navigation: &str, footer: &str) -> String {
        let body =
            "<p>今天是晴天, 我们去公园散步, 看见了很多花, 还有很多人在放风筝。</p>".repeat(12);
        format!(
            "<html><head><title>晴天</title><style>p{{}}</style></head><body>\
             <nav><ul><li><a href='/'>{navigation}</a></li></ul></nav>\
             <article><h1>晴天</h1>{body}</article><footer>{footer}</footer></body></html>"
        )
    }

    #[test]
    fn main_text_leaves_navigation_and_footer_out() {
        let text = main_text(&page("首页导航登录", "广告联系我们"));
        assert!(text.contains("看见了很多花"), "{text}");
        assert!(!text.contains("导航") && !text.contains("广告"), "{text}");
        assert_eq!(text, main_text(&page("别的菜单", "别的页脚")));
    }

    /// If this fails after an update of the extractor, the reader needs a new number.
    #[test]
    fn reader_1_keeps_its_results() {
        let list = format!("<ul>{}</ul>", "<li><a href=x>link</a> to a page".repeat(30));
        let prose = "One sentence, of some length, that a reader came for &mdash; and one more. ";
        let blog = format!(
            "<!doctype html><html><head><title>A day</title><meta name=author content=Amy></head>\
             <body><header><a href=/>home</a></header>{list}<div class='post entry'><h2>A day</h2>\
             <p>{0}</p><blockquote>{0}</blockquote><pre>let a = 1;\n  b</pre><table><tr><td>1<td>2\
             </table><p>{0}<br>{0}</p><div class=share>share this</div></div>\
             <aside class=sidebar>{list}</aside><div id=comments><p>First!</p></div></body></html>",
            prose.repeat(4),
        );
        let short = "<html><body><nav>menu</nav><p>Three short words.</p></body></html>";
        let pages = [page("首页导航登录", "广告联系我们"), blog, list, short.to_owned()];
        let texts = pages.map(|page| {
            let text = main_text(&page);
            format!("{} {:016x}", text.len(), xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
        });
        let expected = [
            "1102 cf2e110d92d424db",
            "1171 5e944a2bcfc304a5",
            "449 1d26950a0b9d9e4d",
            "23 2d3a17fe5344f044",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn page_without_main_content_falls_back_to_all_its_text() {
        assert_eq!(strip_tags("<nav>a</nav>").trim(), "a");
        for html in ["", "plain & simple", "1 < 2 > 0", "<a>x</a", "<", "<!-- unseen", "<>", "</"] {
            let text = main_text(html);
            let letters = html.contains(['x', '1', 'p']);
            assert_eq!(text.contains(char::is_alphanumeric), letters, "{html} {text}");
        }
    }

    #[test]
    fn stripping_skips_scripts_and_ends_lines_at_blocks() {
        let html = "<head><title>t</title></head><P>one<b>two</b><br/>three</P>\
                    <script>if (a<b) {}</SCRIPT><!-- no --><div>4&lt;5 &#x4e2d;&#25991; &unknown; &</div>";
        let text = strip_tags(html);
        let lines: Vec<&str> = text.split('\n').filter(|line| !line.trim().is_empty()).collect();
        assert_eq!(lines, ["onetwo", "three", "4<5 中文 &unknown; &"]);
    }

    #[test]
    fn hostile_pages_are_read_without_overflow() {
        let deep = format!("{}sun{}", "<div>".repeat(40_000), "</div>".repeat(40_000));
        assert_eq!(main_text(&deep).trim(), "sun");
        let bold = format!("{}sun", "<b><i>".repeat(20_000));
        assert_eq!(main_text(&bold).trim(), "sun");
        let wide = format!("<div>{}</div>", "<p>sun".repeat(ELEMENT_LIMIT));
        assert_eq!(main_text(&wide).matches("sun").count(), ELEMENT_LIMIT);
        let signs = "<p>&".to_owned() + &"&".repeat(1_000_000);
        assert_eq!(main_text(&signs).trim().len(), 1_000_001);
        let allowed = "<div>".repeat(DEPTH_LIMIT) + &"sunny today, ".repeat(50);
        assert!(main_text(&allowed).contains("sunny"));
    }
}
