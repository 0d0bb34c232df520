//! Detection of source code, web pages and posts from the first bytes of a text.

/// Maximum number of bytes that are read.
const HEAD: usize = 8 << 10;

/// Minimum share of symbols of programming languages among the characters of code.
const SYMBOLS: f64 = 0.08;

/// Minimum share of lines of code that begin or end with a typical character.
const CODE_LINES: f64 = 0.6;

/// Maximum share of Han characters among the letters of code; documentation has more.
const HAN: f64 = 0.1;

/// Returns the beginning of a text, cut between characters.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(HEAD)]
}

/// Returns true if a text is mostly source code.
pub(super) fn like_code(text: &str) -> bool {
    let text = head(text);
    let (mut characters, mut symbols) = (0_u32, 0_u32);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        characters += 1;
        symbols += u32::from("{}()[];=<>_*&|+\\#$@`~^".contains(c));
    }
    let (mut lines, mut of_code) = (0_u32, 0_u32);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        lines += 1;
        let begins = line.starts_with(['#', '@', '}', '*', '/', '<']);
        of_code += u32::from(
            begins || line.ends_with([';', '{', '}', '(', ')', ',', ':', '[', ']', '\\', '>']),
        );
    }
    lines >= 3
        && f64::from(symbols) >= SYMBOLS * f64::from(characters)
        && f64::from(of_code) >= CODE_LINES * f64::from(lines)
        && han_share(text) < HAN
}

/// Returns true if a text is a web page with tags.
pub(super) fn like_page(text: &str) -> bool {
    let head = head(text).trim_start();
    let begins =
        |tag: &str| head.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    begins("<!doctype html") || begins("<html") || (begins("<") && closed_tags(head) >= 3)
}

/// Returns true if a text mentions a person or holds a shortened URL.
pub(super) fn like_post(text: &str) -> bool {
    let head = head(text);
    let cut = ["://t.co/", "://t.cn/", "://bit.ly/"].iter().any(|address| head.contains(address));
    let person = |word: &str| {
        let name = word.trim_start_matches(['(', '.', '"', ':']).strip_prefix('@');
        let name = name.map(|name| name.trim_end_matches([':', ',', '.', '!', '?', ')', '"']));
        name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        })
    };
    cut || head.split_whitespace().any(person)
}

/// Returns true if a text has a forward or an emoticon of Weibo.
pub(super) fn like_weibo(text: &str) -> bool {
    let head = head(text);
    let emoticon = |part: &str| {
        let name = part.split(']').next().filter(|name| name.len() < part.len());
        name.is_some_and(|name| (1..=8).contains(&name.chars().count()) && han_share(name) > 0.99)
    };
    head.contains("//@") || head.split('[').skip(1).any(emoticon)
}

fn closed_tags(text: &str) -> usize {
    ["</p>", "</div>", "</head>", "</title>", "</a>", "</li>"]
        .iter()
        .map(|tag| text.matches(tag).count())
        .sum()
}

/// Returns the share of Han characters among the letters at the beginning of a text.
pub(super) fn han_share(text: &str) -> f64 {
    let (mut letters, mut han) = (0_u32, 0_u32);
    for c in head(text).chars().filter(|c| c.is_alphabetic()) {
        letters += 1;
        han += u32::from(
            matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}'),
        );
    }
    f64::from(han) / f64::from(letters.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_code_is_distinguished_from_prose_and_documentation() {
        assert!(like_code(include_str!("looks.rs")));
        assert!(like_code("int main(void) {\n  int n = 0;\n  return f(n);\n}\n"));
        for prose in [
            "",
            "It rained; he stayed at home (as always).\nThen it stopped, and he went out.\nThe end.",
            "# 安装\n\n用以下命令安装：\n\n```js\nnpm install()\n```\n然后创建一个新的组件，\n它会在页面上显示。",
            "f(x);",
        ] {
            assert!(!like_code(prose), "{prose}");
        }
    }

    #[test]
    fn pages_with_tags_are_distinguished_from_text() {
        assert!(like_page("\n<!DOCTYPE html><title>a</title>"));
        assert!(like_page("<HTML><body>"));
        assert!(like_page("<div><p>a</p><p>b</p></div>"));
        for text in ["", "a < b", "<3 you all", "<b>bold</b> words", "see https://a.example/"] {
            assert!(!like_page(text), "{text}");
        }
    }

    #[test]
    fn posts_are_detected_by_mentions_and_shortened_urls() {
        for post in ["@bob: hi", "RT @bob_1 sunny", "(@amy)", "see http://t.co/x", "at .@bob!"] {
            assert!(like_post(post), "{post}");
        }
        for other in ["bump @types/node", "@Override()", "a@b.c", "see https://a.org/", "@", ""] {
            assert!(!like_post(other), "{other}");
        }
    }

    #[test]
    fn weibo_is_detected_by_forwards_and_chinese_emoticons() {
        for post in ["今天是晴天//@张三:哈哈", "好[哈哈]", "[太阳] 早"] {
            assert!(like_weibo(post), "{post}");
        }
        for other in ["[python] how to read a file", "// name: a", "好[", "[1] 好", "【公告】", ""]
        {
            assert!(!like_weibo(other), "{other}");
        }
    }

    #[test]
    fn han_characters_are_counted_among_letters() {
        let share = |text: &str| (100.0 * han_share(text)).round().to_string();
        assert_eq!([share("中文 ab 12"), share("123")], ["50", "0"]);
    }
}
