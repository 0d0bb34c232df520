//! The jieba dictionary: loaded once per process, named by a digest of what it does.

use std::sync::OnceLock;

use jieba_rs::Jieba;

static JIEBA: OnceLock<Jieba> = OnceLock::new();

/// Returns the dictionary, loading it on the first call.
pub(super) fn jieba() -> &'static Jieba {
    JIEBA.get_or_init(Jieba::new)
}

/// Text whose cutting takes known words, ambiguous ones, names that only the hidden Markov model
/// joins, other scripts, and characters outside the main block.
const PROBE: &str = "小明硕士毕业于中国科学院计算所后在日本京都大学深造他来到了网易杭研大厦\
    南京市长江大桥研究生命的起源结婚的和尚未结婚的工信处女干事每月经过下属科室都要亲口交代\
    李小福是创新办主任也是云计算方面的专家韩玉赏鉴乒乓球拍卖完了永和服装饰品有限公司\
    長春市長春節講話臺灣大學繁體字㐀𠀀外星人開著T恤和卡拉OK去第3届2026年微博转发";

/// Returns a digest that changes when the dictionary or the cutting changes.
///
/// It is taken from behaviour, the cut of a fixed text and the frequencies of its words, because
/// the words themselves are sealed in the segmenter.
pub(super) fn digest() -> u32 {
    let jieba = jieba();
    let mut crc = crc32fast::Hasher::new();
    for hmm in [false, true] {
        for token in jieba.cut(PROBE, hmm) {
            crc.update(token.word.as_bytes());
            crc.update(&[0xff]);
            let frequency = u64::try_from(jieba.suggest_freq(token.word)).unwrap_or(u64::MAX);
            crc.update(&frequency.to_be_bytes());
        }
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_digest_holds_until_the_dictionary_changes() {
        assert_eq!(digest(), 0x30e2_eaf6);
    }

    #[test]
    fn other_words_give_another_digest() {
        let mut other = Jieba::new();
        other.add_word("下属科室", None, None);
        assert_ne!(other.cut(PROBE, true), jieba().cut(PROBE, true));
    }
}
