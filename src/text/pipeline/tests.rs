//! Tests of whole pipelines: golden fingerprints, near and far sentences, refusals, odd texts.

use super::*;
use crate::sketch::{Weights, feature_hash};
use crate::text::{Clean, SketchKind};

const CALLS: &str = "你妈妈喊你回家吃饭哦,回家罗回家罗";
const SHOUTS: &str = "你妈妈叫你回家吃饭啦,回家罗回家罗";
const SAUCER: &str = "美国\"51区\"雇员称内部有9架飞碟,曾看见灰色外星人";

fn preset(name: &str) -> Pipeline {
    Pipeline::new(&PipelineOptions::preset(name).unwrap()).unwrap()
}

fn hash(pipeline: &Pipeline, text: &str) -> u64 {
    pipeline.fingerprint::<u64>(text).unwrap().fingerprint
}

#[test]
fn sentences_that_differ_in_two_characters_are_near_and_others_far() {
    let post = preset("post");
    let near = hash(&post, CALLS).distance(hash(&post, SHOUTS));
    let far = hash(&post, CALLS).distance(hash(&post, SAUCER));
    assert!(near <= 12, "{near}");
    assert!(far >= 24, "{far}");
}

#[test]
fn unrelated_short_sentences_are_far_from_each_other() {
    let sentences = [
        CALLS,
        "明天下午三点在图书馆开会,请带上笔记本",
        "这家餐厅的红烧肉做得很好,价格也不贵",
        "地铁二号线今天早上晚点了二十分钟左右",
        "他昨天买了一台新电脑,准备写毕业论文",
        "北京今天有大风和沙尘,出门记得戴口罩",
        "周末我们去爬山看日出,六点在校门口集合",
        "她的第一本小说下个月就要正式出版发行了",
        "球队客场输了两个球,主教练赛后宣布辞职",
        "冰箱里还有牛奶和鸡蛋,面包已经吃完了",
    ];
    let post = preset("post");
    let hashes = sentences.map(|sentence| hash(&post, sentence));
    let mut distances = Vec::new();
    for (at, a) in hashes.iter().enumerate() {
        distances.extend(hashes[..at].iter().map(|b| a.distance(*b)));
    }
    let mean = f64::from(distances.iter().sum::<u32>()) / distances.len() as f64;
    assert!(mean >= 20.0, "{mean}: {distances:?}");
}

#[test]
fn golden_fingerprints_hold_for_every_preset_and_width() {
    let text = format!("{SAUCER}. The saucer's 9 pilots, SEEN at http://t.cn/x @bob");
    let golden = ["auto", "page", "post", "code"].map(|name| {
        let pipeline = preset(name);
        format!(
            "{:016x} {}",
            hash(&pipeline, &text),
            pipeline.fingerprint::<u64>(&text).unwrap().features
        )
    });
    let expected = [
        "73dafc8d1ad25dd5 74",
        "f211712458f1fd15 57",
        "73dafc8d1ad25dd5 74",
        "384432b5921d4844 30",
    ];
    assert_eq!(golden, expected);
    let auto = preset("auto");
    assert_eq!(auto.fingerprint::<u32>(&text).unwrap().fingerprint, 0x1ad2_5dd5);
    assert_eq!(
        auto.fingerprint::<u128>(&text).unwrap().fingerprint,
        0x912a_c06c_fb07_78f6_7e7a_789d_9c82_5198
    );
}

#[test]
fn golden_descriptor_holds_until_the_version_rises() {
    let descriptor = preset("page").descriptor().to_owned();
    // The lower-case tables are the compiler's.
    let case = char::UNICODE_VERSION;
    let case = format!(",{}.{}.{};simplified", case.0, case.1, case.2);
    assert!(descriptor.contains(&case), "{descriptor}");
    assert_eq!(
        descriptor.replace(&case, ",*;simplified"),
        "hamdex-text/1;html=none;normal=nfkc-lower-fold;unicode=18.0.0,17.0.0,*;\
         simplified=-;clean=web;short=0;segment=grams;jieba=-;dictionary=-;stop-words=-;ngram=4;\
         weights=uniform;idf=-;given=-;sketch=simhash;hash=xxh3;seed=0000000000000000"
    );
}

#[test]
fn text_without_features_has_no_fingerprint() {
    for name in PipelineOptions::PRESETS {
        for text in ["", " \n", "。。。", "!?", "😀", "\0"] {
            assert_eq!(preset(name).fingerprint::<u64>(text), None, "{name} {text:?}");
            assert!(preset(name).features(text).is_empty());
        }
    }
}

#[test]
fn text_of_noise_alone_is_compared_by_its_noise() {
    let post = preset("post");
    assert_eq!(post.features("[哈哈]").first().unwrap().text, "哈");
    assert_ne!(hash(&post, "http://t.cn/aa"), hash(&post, "http://t.cn/bb"));
}

#[test]
fn one_token_is_one_feature_whatever_the_ngram() {
    for ngram in [1, 2, PipelineOptions::MAX_NGRAM] {
        let pipeline =
            Pipeline::new(&PipelineOptions::new().segment(Segment::Words).ngram(ngram)).unwrap();
        let sketch = pipeline.fingerprint::<u64>("word").unwrap();
        assert_eq!(sketch, Sketch { fingerprint: feature_hash(b"word", 0), features: 1 });
    }
}

#[test]
fn fingerprint_is_the_simhash_of_the_features() {
    let text = format!("{CALLS} {SAUCER} the the the end");
    for weights in [Weights::Uniform, Weights::Tf, Weights::TfIdf, Weights::Levels] {
        let words = PipelineOptions::new().segment(Segment::Auto);
        let pipeline = Pipeline::new(&words.weights(weights).seed(3)).unwrap();
        let features = pipeline.features(&text);
        let hashed = features.iter().map(|f| (feature_hash(f.text.as_bytes(), 3), f.weight));
        let sketch = pipeline.fingerprint::<u128>(&text).unwrap();
        assert_eq!(Some(sketch.fingerprint), crate::sketch::simhash(hashed), "{weights}");
        let repeats = matches!(weights, Weights::Tf | Weights::TfIdf);
        assert_eq!(sketch.features > features.len(), repeats, "{weights}");
    }
}

#[test]
fn weights_follow_counts_and_rarity() {
    let weight = |weights, word: &str| {
        let words = PipelineOptions::new().segment(Segment::Auto);
        let pipeline = Pipeline::new(&words.weights(weights)).unwrap();
        let features = pipeline.features("飞碟飞碟飞碟的");
        features.iter().find(|feature| feature.text == word).map(|feature| feature.weight)
    };
    assert_eq!(weight(Weights::Uniform, "飞碟"), Some(1));
    assert_eq!(weight(Weights::Tf, "飞碟"), Some(3));
    assert_eq!(weight(Weights::TfIdf, "飞碟"), Some(3 * 85));
    assert_eq!(weight(Weights::Levels, "飞碟"), Some(5));
    assert_eq!(weight(Weights::Levels, "的"), Some(1));
}

#[test]
fn short_texts_are_cleaned_as_posts_and_long_ones_are_not() {
    let options = PipelineOptions::preset("auto").unwrap();
    assert_eq!(options.short, 200);
    let auto = Pipeline::new(&options).unwrap();
    let bare = hash(&auto, "今天是晴天");
    assert_eq!(hash(&auto, "今天是晴天.//A:xxx//B:xxx"), bare);
    let names = |text: &str| auto.features(text).iter().any(|feature| feature.text == "bob");
    let exact = format!("@bob {}", "晴".repeat(195));
    assert!(names(&exact), "200 characters are long");
    assert!(!names(&exact[..exact.len() - 3]), "199 characters are short");
}

#[test]
fn page_counts_main_content_only() {
    let options = PipelineOptions::preset("page").unwrap().html(true);
    let pipeline = Pipeline::new(&options).unwrap();
    let page = |menu: &str| {
        let body = format!("<p>{CALLS}, {SAUCER}。</p>").repeat(10);
        format!(
            "<html><body><nav><a href=a>{menu}</a></nav><article>{body}</article></body></html>"
        )
    };
    assert_eq!(hash(&pipeline, &page("首页登录")), hash(&pipeline, &page("home page")));
}

#[test]
fn descriptor_rebuilds_the_same_pipeline() {
    for name in PipelineOptions::PRESETS {
        let pipeline = preset(name);
        let same = Pipeline::from_descriptor(pipeline.descriptor()).unwrap();
        assert_eq!(same.descriptor(), pipeline.descriptor());
        assert_eq!(hash(&same, SAUCER), hash(&pipeline, SAUCER));
    }
}

#[test]
fn descriptors_of_other_pipelines_are_refused_with_both_sides_named() {
    let ours = preset("page").descriptor().to_owned();
    let others = [
        String::new(),
        "words".to_owned(),
        ours.replace("text/1", "text/2"),
        ours.replace("jieba=-", "jieba=0"),
        ours.replace("unicode=", "unicode=1"),
        ours.replace("weights=uniform", "weights=bm25"),
        ours.replace("hash=xxh3", "hash=fnv"),
        format!("{ours};more=1"),
    ];
    for other in others {
        let Err(Error::HeaderMismatch { what, stored, wanted }) = Pipeline::from_descriptor(&other)
        else {
            panic!("accepted {other}");
        };
        assert_eq!((what, stored.as_str()), ("pipeline", other.as_str()));
        assert!(wanted.starts_with("hamdex-text/1;"), "{wanted}");
        assert_ne!(wanted, stored);
    }
    let bad = ours.replace("ngram=4", "ngram=0");
    assert!(matches!(Pipeline::from_descriptor(&bad), Err(Error::InvalidOption { .. })));
}

#[test]
fn threads_agree_with_each_other() {
    let pipeline = preset("page");
    let expected = hash(&pipeline, SAUCER);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let pipeline = pipeline.clone();
                scope.spawn(move || (0..50).map(|_| hash(&pipeline, SAUCER)).collect::<Vec<_>>())
            })
            .collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|&got| got == expected));
        }
    });
}

#[test]
fn pages_of_a_hundred_thousand_characters_and_odd_bytes_work() {
    let page = format!("{SAUCER}, the end; ").repeat(2_000);
    let odd: String = (0..=0x0002_ffff).filter_map(char::from_u32).collect();
    for name in PipelineOptions::PRESETS {
        let pipeline = preset(name);
        assert!(pipeline.fingerprint::<u64>(&page).is_some(), "{name}");
        assert!(pipeline.fingerprint::<u64>(&odd).is_some(), "{name}");
        let html = Pipeline::new(&PipelineOptions::preset(name).unwrap().html(true)).unwrap();
        assert!(html.fingerprint::<u64>(&odd).is_some(), "{name}");
    }
}

#[test]
fn forwarded_post_equals_its_original_under_weibo_cleaning() {
    let options = PipelineOptions::new().clean(Clean::WEIBO).short(0);
    let pipeline = Pipeline::new(&options).unwrap();
    assert_eq!(hash(&pipeline, "今天是晴天.//A:xxx//B:xxx"), hash(&pipeline, "今天是晴天"));
    assert_eq!(hash(&pipeline, "转发微博//＠Ａ：今天是晴天[哈哈]"), hash(&pipeline, "今天是晴天"));
}

#[test]
fn pipelines_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Pipeline>();
}

/// Texts that break other pipelines, and whether they have features.
fn hostile() -> Vec<(String, bool)> {
    let zalgo: String =
        "zalgo".chars().flat_map(|c| [c, '\u{334}', '\u{35c}', '\u{489}']).collect();
    let texts = [
        ("", false),
        (" \r\n\t\u{3000}\u{200b}", false),
        ("。，！？…——", false),
        ("😀👩‍👩‍👧‍👦🇩🇪", false),
        ("\0\0\0", false),
        ("\u{301}\u{334}", false),
        ("\u{202e}\u{2066}\u{feff}", false),
        ("a", true),
        ("中", true),
        ("a\0b\0", true),
        ("مرحبا بالعالم", true),
        ("שלום עולם", true),
        ("\u{202e}dlrow olleh", true),
        ("สวัสดีชาวโลก", true),
        ("नमस्ते दुनिया", true),
        ("こんにちは세계, мир and 世界!", true),
        ("\u{fffd}a\u{fffd}", true),
        ("ﷺ ﬃ Ⅷ ½", true),
    ];
    let texts = texts.map(|(text, says)| (text.to_owned(), says));
    texts.into_iter().chain([(zalgo, true), ("晴天x ".repeat(50_000), true)]).collect()
}

#[test]
fn hostile_texts_give_a_fingerprint_or_none_and_never_zero_by_accident() {
    let segments = ["auto", "jieba", "words", "chars", "grams"].map(str::parse::<Segment>);
    let sketches = ["simhash", "minhash", "longest:3"].map(str::parse::<SketchKind>);
    for (segment, sketch) in segments.iter().flat_map(|a| sketches.iter().map(move |b| (a, b))) {
        let options = PipelineOptions::preset("auto").unwrap();
        let options = options.segment(*segment.as_ref().unwrap()).sketch(*sketch.as_ref().unwrap());
        for weights in [Weights::Uniform, Weights::Tf] {
            let pipeline = Pipeline::new(&options.clone().weights(weights)).unwrap();
            for (text, says) in hostile() {
                let shown: String = text.chars().take(20).collect();
                let what = format!("{shown:?} by {}", pipeline.descriptor());
                let narrow = pipeline.fingerprint::<u32>(&text).map(|s| u128::from(s.fingerprint));
                let usual = pipeline.fingerprint::<u64>(&text).map(|s| u128::from(s.fingerprint));
                let wide = pipeline.fingerprint::<u128>(&text).map(|s| s.fingerprint);
                for fingerprint in [narrow, usual, wide] {
                    assert_eq!(fingerprint.is_some(), says, "{what}");
                    assert_ne!(fingerprint, Some(0), "{what}");
                }
                assert_eq!(pipeline.distinct_hashes(&text).is_empty(), !says, "{what}");
                assert_eq!(pipeline.features(&text).is_empty(), !says, "{what}");
            }
        }
    }
}

#[test]
fn stacked_marks_do_not_change_the_text_below() {
    let auto = preset("auto");
    let (plain, heaped) = ("zalgo is here", hostile()[18].0.clone() + " is here");
    assert_eq!(hash(&auto, plain), hash(&auto, &heaped));
}

#[test]
fn raw_text_is_taken_as_it_is() {
    let pipeline =
        Pipeline::new(&PipelineOptions::new().segment(Segment::Raw).weights(Weights::Tf)).unwrap();
    let text = "Ａ b\n。";
    let windows = ["Ａ b", " b\n", "b\n。"].map(|w| (feature_hash(w.as_bytes(), 0), 1));
    assert_eq!(Some(hash(&pipeline, text)), crate::sketch::simhash(windows));
}
