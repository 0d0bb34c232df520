//! Tests of cleaning: what is removed, what is kept, and the fast path for runs.

use super::*;

#[test]
fn forwarded_tails_are_cut_at_the_first_marker() {
    let posts = [
        ("今天是晴天.//a:xxx//b:xxx", "今天是晴天"),
        ("今天是晴天//@张三:哈哈", "今天是晴天"),
        ("今天是晴天 // @张三 : 哈哈", "今天是晴天"),
        ("看 http://t.cn/ab//@张三:哈哈", "看"),
        ("//@张三:今天是晴天", "今天是晴天"),
        ("//@张三://@李四:今天是晴天//@王五:x", "今天是晴天"),
        ("转发微博。//@张三:今天是晴天", "今天是晴天"),
    ];
    for (post, own) in posts {
        assert_eq!(clean_post(post), own, "{post}");
    }
}

#[test]
fn slashes_that_forward_nothing_stay() {
    for post in ["a//b", "http: //", "x // y z", "1//2//3", "ftp://host:21"] {
        assert_eq!(clean_post(post), post.trim_end_matches(['/', ' ', ':']), "{post}");
    }
}

#[test]
fn mentions_urls_and_emoticons_are_removed_and_the_rest_is_kept() {
    let posts = [
        ("@bob_1 你好", "你好"),
        ("回复@张三:你好", "你好"),
        ("rt @a: rt @b: sunny", "sunny"),
        ("smart @home", "smart"),
        ("mail bob@example.org now", "mail bob@example.org now"),
        ("好[哈哈][doge]啊", "好 啊"),
        ("see [1] and [a b] and []", "see [1] and [a b] and"),
        ("看https://t.cn/a1b2今天www.x.org 好", "看 今天 好"),
        ("swww.x and http:// end", "swww.x and http:// end"),
        ("what? yes!!! :)", "what? yes"),
    ];
    for (post, own) in posts {
        assert_eq!(clean_post(post), own, "{post}");
    }
}

#[test]
fn names_within_sentences_are_kept_on_request() {
    let posts = [
        ("i'm at @equinox (boston)", "i'm at equinox (boston"),
        ("我和@张三 去公园", "我和张三 去公园"),
        ("@bob you and @amy: hi", "you and hi"),
        ("rt @bob: sunny today with @amy http://t.co/x", "sunny today with"),
        ("回复@张三 你好", "你好"),
        ("sunny! @bob", "sunny"),
    ];
    for (post, own) in posts {
        let mut out = String::new();
        clean_post_into(post, Mentions::WithinSentences, &mut out);
        assert_eq!(out, own, "{post}");
    }
}

#[test]
fn urls_and_mentions_are_removed_and_subjects_are_kept() {
    let texts = [
        ("rt @bob: sunny today! http://t.co/x", "sunny today!"),
        ("[python] how to read a file", "[python] how to read a file"),
        ("// name: a note", "// name: a note"),
        ("bump @types/node to 2", "bump @types/node to 2"),
        ("@override() is kept", "@override() is kept"),
        ("thanks @amy. see you", "thanks . see you"),
        ("@app.route stays", "@app.route stays"),
        ("a@b.org, see www.x.org", "a@b.org, see"),
    ];
    for (text, kept) in texts {
        let mut out = String::new();
        clean_links_into(text, Mentions::Dropped, &mut out);
        assert_eq!(out, kept, "{text}");
    }
    let mut out = String::new();
    clean_links_into("i'm at @equinox (boston)", Mentions::WithinSentences, &mut out);
    assert_eq!(out, "i'm at equinox (boston)");
}

#[test]
fn short_texts_are_measured_in_characters_or_in_letters() {
    let (latin, han) = ("a".repeat(199), "晴".repeat(100));
    assert!(is_short(&latin, 200, Clean::WEIBO) && is_short(&latin, 200, Clean::LINKS));
    assert!(is_short(&han, 200, Clean::WEIBO) && !is_short(&han, 200, Clean::LINKS));
    assert!(!is_short(&"a".repeat(200), 200, Clean::LINKS) && !is_short("", 0, Clean::WEIBO));
}

#[test]
fn runs_are_written_like_their_characters_one_by_one() {
    let usual: Vec<char> =
        "aZ9.hw/@[]: \n\t\u{a0}é·\u{ad}。かな\u{3000}\u{1680}ế\u{200b}\u{feff}ｱ晴🌞"
            .chars()
            .collect();
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..50_000 {
        let text: String =
            (0..random.usize(1..12)).map(|_| usual[random.usize(..usual.len())]).collect();
        let (mut run, mut single) = (String::new(), String::new());
        let first = text.chars().next().unwrap();
        let mut fold = Folder::new(&mut run);
        let read = push_usual(&text, first, &mut fold);
        fold.push('x');
        let mut fold = Folder::new(&mut single);
        text[..read].chars().for_each(|c| fold.push(c));
        fold.push('x');
        assert_eq!(run, single, "{text:?}");
        let after = text[first.len_utf8()..read].chars();
        let noise = |c: char| c.is_whitespace() || matches!(c, 'h' | 'w' | '[' | '@' | '/');
        assert_eq!(after.filter(|&c| noise(c)).count(), 0, "{text:?}");
    }
}

#[test]
fn noise_alone_leaves_nothing() {
    for post in ["", "[哈哈]", "@a @b", "http://t.cn/x", "//a:", "rt @bob", "...//a:!"] {
        assert_eq!(clean_post(post), "", "{post}");
    }
}

#[test]
fn page_keeps_its_lines_but_not_its_copyright_line() {
    let page = "标题\n正文 https://a.org/b, www.c.org\n版权所有 2026 某公司\ncopyright x\n完";
    assert_eq!(clean_page(page), "标题\n正文 \n完".replace(" \n", "\n"));
    let long = format!("© {}", "x".repeat(NOTICE_LIMIT));
    assert_eq!(clean_page(&long), long);
    assert_eq!(clean_page(""), "");
}
