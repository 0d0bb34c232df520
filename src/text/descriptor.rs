//! Descriptor: one line that names everything the fingerprints of a pipeline depend on.
//!
//! Equal descriptors mean equal fingerprints for equal texts. Every change of fingerprints changes
//! the descriptor: a field, a digest, or the version in its head.

use std::str::FromStr;

use super::form::clean::Clean;
use super::form::{simplified, unicode};
use super::options::{Html, NormalForm, PipelineOptions};
use super::rarity::idf;
use super::resources::Resources;
use super::tokens::dictionary;
use super::tokens::segment::Segment;
use super::tokens::stop_words::{Kind, StopWords};
use super::tokens::word_list::Language;
use crate::error::{Error, Result};
use crate::sketch::SketchKind;

/// Head of every descriptor; the number rises if a step without a field changes.
pub(super) const HEAD: &str = "hamdex-text/1";

/// Value of a field that has no effect with the other options.
const UNUSED: &str = "-";

/// Prefix of the digest of the built-in stop words.
const BUILTIN: &str = "builtin,";

/// Prefix of the digest of a learnt table of rarities.
const LEARNT: &str = "learnt,";

/// Field with the digest of a secret; absent without one.
const SECRET: &str = "secret";

/// Field with the digest of a centre; absent without one.
const CENTRE: &str = "centre";

/// Returns the descriptor without its secret and its centre.
pub(crate) fn without_keys(descriptor: &str) -> &str {
    let field = |name: &str| descriptor.find(&format!(";{name}="));
    let end = [SECRET, CENTRE].into_iter().filter_map(field).min();
    end.map_or(descriptor, |end| &descriptor[..end])
}

/// Returns the descriptor that this version of the library writes for the same pipeline.
///
/// `None` if this version cannot read the descriptor, or if it names the caller's tables.
pub(crate) fn renewed(descriptor: &str) -> Option<String> {
    let none = Resources::default();
    let mut options = options(descriptor, &none)?;
    if describe(&options, &none) != descriptor {
        return None;
    }
    options.idle_unicode = false;
    if options.html == Html::Reader {
        options.html = Html::Reader1;
    }
    Some(describe(&options, &none))
}

/// Returns the options with their steps in the versions of a descriptor.
pub(super) fn in_versions_of(asked: &PipelineOptions, descriptor: &str) -> PipelineOptions {
    let mut asked = asked.clone();
    let Some(stored) = options(descriptor, &Resources::default()) else { return asked };
    if asked.segment == stored.segment {
        asked.lists = stored.lists;
    }
    if asked.html != Html::None && stored.html != Html::None {
        asked.html = stored.html;
    }
    asked.idle_unicode =
        stored.idle_unicode && asked.normal == NormalForm::Casefold && !cuts_words(&asked);
    asked
}

/// Prefix of the digest of a secret: the keyed hash.
const KEYED: &str = "siphash24,";

/// Returns the digest of the secret in a descriptor.
pub(super) fn secret_digest(descriptor: &str) -> Option<&str> {
    Fields::of(descriptor)?.get(SECRET)?.strip_prefix(KEYED)
}

/// Returns the descriptor of a pipeline; loads the tables that it names.
pub(super) fn describe(options: &PipelineOptions, resources: &Resources) -> String {
    let jieba_idf =
        options.weights.needs_idf() && options.segment.is_words() && options.idf.is_none();
    let digest = |used: bool, digest: fn() -> u32| {
        if used { format!("{:08x}", digest()) } else { UNUSED.to_owned() }
    };
    let own = |name| resources.digest(name).unwrap_or_else(|| UNUSED.to_owned());
    // jieba's rarities come from the dictionary file, so both uses depend on the dictionary.
    let jieba = digest(options.segment.needs_dictionary() || jieba_idf, dictionary::digest);
    format!(
        "{HEAD};html={html};normal={normal};unicode={unicode};simplified={simplified};\
         clean={clean};short={short};segment={segment};jieba={jieba};dictionary={dictionary};\
         stop-words={stop_words};ngram={ngram};weights={weights};idf={idf};given={given};\
         sketch={sketch};hash=xxh3;seed={seed:016x}{secret}{centre}",
        html = options.html.name(),
        normal = normal(options.normal),
        unicode = match options.normal {
            NormalForm::LowerFold => unicode(),
            NormalForm::Casefold if cuts_words(options) || options.idle_unicode => words(),
            NormalForm::Casefold => UNUSED.to_owned(),
        },
        simplified = digest(options.simplified, simplified::digest),
        clean = options.clean,
        short = short(options),
        segment = segment(options),
        dictionary = own("dictionary"),
        stop_words = match &options.stop_words.0 {
            Kind::None => UNUSED.to_owned(),
            Kind::Builtin => format!("{BUILTIN}{:08x}", options.stop_words.digest()),
            Kind::Own(_) => own("stop-words"),
        },
        ngram = options.ngram,
        weights = options.weights,
        idf = match &options.idf {
            Some(_) => format!("{LEARNT}{}", own("idf")),
            None => digest(jieba_idf, idf::digest),
        },
        given = own("weights"),
        sketch = options.sketch,
        seed = options.seed,
        // Only pipelines with a secret have this field, so that older descriptors stay equal.
        secret = options
            .secret
            .map_or_else(String::new, |secret| format!(";{SECRET}={KEYED}{}", secret.digest())),
        centre = resources
            .digest(CENTRE)
            .map_or_else(String::new, |digest| format!(";{CENTRE}={digest}")),
    )
}

/// Parses the options of a descriptor, with the caller's tables from the resources.
///
/// `None` if an option is missing or invalid. Tables missing from the resources are left out, so
/// that the descriptor of the result differs.
pub(super) fn options(descriptor: &str, resources: &Resources) -> Option<PipelineOptions> {
    let fields = Fields::of(descriptor)?;
    let (segment, lists) = segment_named(fields.get("segment")?)?;
    let mut options = PipelineOptions::new()
        .normal(match fields.get("normal")? {
            form if form == normal(NormalForm::Casefold) => NormalForm::Casefold,
            _ => NormalForm::LowerFold,
        })
        .clean(parse(fields.get("clean")?)?)
        .short(parse(fields.get("short")?.split(',').next()?)?)
        .short_clean(match fields.get("short")?.split_once(',') {
            None => Clean::WEIBO,
            Some((_, clean)) => parse(clean)?,
        })
        .segment(segment)
        .ngram(parse(fields.get("ngram")?)?)
        .weights(parse(fields.get("weights")?)?)
        .sketch(parse(fields.get("sketch")?)?)
        .simplified(fields.get("simplified")? != UNUSED)
        .seed(u64::from_str_radix(fields.get("seed")?, 16).ok()?);
    options.lists = lists;
    options.html = Html::named(fields.get("html")?)?;
    options.idle_unicode = options.normal == NormalForm::Casefold
        && !cuts_words(&options)
        && fields.get("unicode")? != UNUSED;
    let named = |name| fields.digest(name).is_some();
    options.dictionary = resources.dictionary.clone().filter(|_| named("dictionary"));
    options.idf = resources.idf.clone().filter(|_| named("idf"));
    options.secret = resources.secret.filter(|_| fields.get(SECRET).is_some());
    options.centre = resources.centre.clone().filter(|_| named(CENTRE));
    options.weight_table = resources.weights.clone().filter(|_| named("weights"));
    options.stop_words = match resources.stop_words.clone() {
        _ if fields.get("stop-words")?.starts_with(BUILTIN) => StopWords::builtin(),
        Some(own) if named("stop-words") => own,
        _ => StopWords::none(),
    };
    Some(options)
}

/// Compares stored resources with the digests that a stored descriptor names.
///
/// # Errors
///
/// Returns [`Error::Corrupt`] if one is missing, differs, or is not named.
pub(crate) fn require(descriptor: &str, resources: &Resources) -> Result<()> {
    let fields = Fields::of(descriptor).unwrap_or(Fields(""));
    for name in Resources::NAMES {
        let (wanted, found) = (fields.digest(name), resources.digest(name));
        if wanted != found.as_deref() {
            let (wanted, found) = (wanted.unwrap_or("none"), found.as_deref().unwrap_or("none"));
            return Err(Error::corrupt(
                "meta",
                format!("resource {name} has digest {found}, but the header names {wanted}"),
            ));
        }
    }
    Ok(())
}

/// The fields of a descriptor, after its head.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn of(descriptor: &'a str) -> Option<Self> {
        descriptor.strip_prefix(HEAD)?.strip_prefix(';').map(Self)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.split(';').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the digest of one of the caller's tables.
    fn digest(&self, resource: &str) -> Option<&'a str> {
        match resource {
            "idf" => self.get("idf")?.strip_prefix(LEARNT),
            "weights" => self.get("given").filter(|&digest| digest != UNUSED),
            "stop-words" => self
                .get("stop-words")
                .filter(|&digest| digest != UNUSED && !digest.starts_with(BUILTIN)),
            name => self.get(name).filter(|&digest| digest != UNUSED),
        }
    }
}

fn parse<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Returns the length of short texts, and their cleaning unless it is that of posts.
fn short(options: &PipelineOptions) -> String {
    match (options.short, options.short_clean) {
        (length, Clean::WEIBO) => length.to_string(),
        (length, clean) => format!("{length},{clean}"),
    }
}

/// Separates the name of a segmentation with word lists from their digest.
const LISTS: &str = "-2,";

/// Returns the name of a segmentation, and the digest of its word lists if it has any.
fn segment(options: &PipelineOptions) -> String {
    let segment = options.segment;
    if options.lists {
        format!("{segment}{LISTS}{:08x}", Language::digest(segment == Segment::Auto))
    } else {
        segment.to_string()
    }
}

/// Parses a segmentation, and whether it has word lists; does not check their digest.
fn segment_named(field: &str) -> Option<(Segment, bool)> {
    match field.split_once(LISTS) {
        None => Some((parse(field)?, false)),
        Some((name, _)) => {
            parse(name).filter(|segment: &Segment| segment.has_lists()).zip(Some(true))
        }
    }
}

/// Returns the name of a normal form, and the digest of its table if it has one.
fn normal(form: NormalForm) -> String {
    match form {
        NormalForm::LowerFold => "nfkc-lower-fold".to_owned(),
        NormalForm::Casefold => format!("casefold-1,{:016x}", unicode::digest()),
    }
}

/// Returns true if words or sentences depend on the tables of a crate.
fn cuts_words(options: &PipelineOptions) -> bool {
    options.segment.is_words() || matches!(options.sketch, SketchKind::Longest(_))
}

/// Returns the version of the Unicode tables for words and sentences.
///
/// Everything else depends on the table of the normal form.
fn words() -> String {
    let words = unicode_segmentation::UNICODE_VERSION;
    format!("{}.{}.{}", words.0, words.1, words.2)
}

/// Returns the versions of the Unicode tables for normal form, words and lower case.
fn unicode() -> String {
    let normal = unicode_normalization::UNICODE_VERSION;
    let words = unicode_segmentation::UNICODE_VERSION;
    let case = char::UNICODE_VERSION;
    format!(
        "{}.{}.{},{}.{}.{},{}.{}.{}",
        normal.0, normal.1, normal.2, words.0, words.1, words.2, case.0, case.1, case.2
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Weights;
    use crate::text::{Dictionary, IdfLearner, Secret, Segment, WeightTable};

    fn described(options: &PipelineOptions) -> String {
        describe(options, &Resources::of(options))
    }

    #[test]
    fn options_round_trip_through_their_descriptor() {
        let presets = PipelineOptions::PRESETS.map(|name| PipelineOptions::preset(name).unwrap());
        let other = PipelineOptions::new()
            .segment(Segment::Chars)
            .ngram(3)
            .weights(Weights::Levels)
            .sketch(SketchKind::Longest(3))
            .clean(Clean { links: true, ..Clean::WEB })
            .short(0)
            .html(true)
            .seed(u64::MAX);
        let tables = PipelineOptions::new()
            .simplified(true)
            .dictionary(Dictionary::parse("云计算 3").unwrap())
            .stop_words(StopWords::parse("的").unwrap())
            .weights(Weights::TfIdf)
            .idf(IdfLearner::new().finish());
        let given = PipelineOptions::new()
            .stop_words(StopWords::builtin())
            .weight_table(WeightTable::parse("美国\t4").unwrap());
        let folded = PipelineOptions::new().normal(NormalForm::Casefold);
        for preset in presets.into_iter().chain([other, tables, given, folded]) {
            let resources = Resources::of(&preset);
            let descriptor = describe(&preset, &resources);
            assert_eq!(options(&descriptor, &resources), Some(preset), "{descriptor}");
            require(&descriptor, &resources).unwrap();
        }
    }

    #[test]
    fn older_descriptors_are_kept_and_renewed() {
        let now = described(&PipelineOptions::preset("text").unwrap().html(true));
        assert!(now.contains(";html=reader-1;") && now.contains(";unicode=-;"), "{now}");
        let before = now.replace("reader-1", "reader").replace("unicode=-", "unicode=17.0.0");
        let options = options(&before, &Resources::default()).unwrap();
        assert_eq!(described(&options), before);
        assert_eq!(renewed(&before), Some(now));
        assert!(
            super::options(&before.replace("=reader", "=reader-2"), &Resources::default())
                .is_none()
        );
    }

    #[test]
    fn older_segmentations_are_read_without_word_lists() {
        let none = Resources::default();
        for segment in [Segment::Auto, Segment::Words] {
            let now = PipelineOptions::new().segment(segment);
            let name = described(&now);
            let (head, tail) = name.split_once("-2,").unwrap();
            let before = format!("{head}{}", &tail[8..]);
            assert!(before.contains(&format!(";segment={segment};")), "{before}");
            let old = options(&before, &none).unwrap();
            assert_eq!(described(&old), before);
            assert_eq!(in_versions_of(&now, &before), old);
            assert_eq!(in_versions_of(&old, &name), now);
            // Other lists have another digest; jieba alone has no lists.
            let other = format!("{head}-2,00000000{}", &tail[8..]);
            assert_ne!(described(&options(&other, &none).unwrap()), other);
            assert!(options(&name.replace(";segment=", ";segment=j"), &none).is_none());
            assert!(options(&name.replace("-2,", "-3,"), &none).is_none());
        }
        assert!(
            options(
                &described(&PipelineOptions::new().segment(Segment::Jieba))
                    .replace("=jieba;", "=jieba-2,8d83b1de;"),
                &none
            )
            .is_none()
        );
    }

    #[test]
    fn versions_apply_only_to_steps_of_both_pipelines() {
        let preset = |name| PipelineOptions::preset(name).unwrap();
        let stored = described(&preset("text").html(true)).replace("reader-1", "reader");
        let asked = preset("text").html(true).segment(Segment::Words);
        let taken = in_versions_of(&asked, &stored);
        assert_eq!((taken.html, taken.lists), (Html::Reader, true));
        assert_eq!(in_versions_of(&preset("text"), &stored), preset("text"));
        assert_eq!(in_versions_of(&asked, "no descriptor"), asked);
    }

    #[test]
    fn every_option_changes_the_descriptor() {
        let base = PipelineOptions::new();
        let changed = [
            base.clone(),
            base.clone().segment(Segment::Jieba),
            base.clone().segment(Segment::Words),
            PipelineOptions { lists: false, ..base.clone().segment(Segment::Words) },
            base.clone().ngram(2),
            base.clone().normal(NormalForm::Casefold),
            base.clone().weights(Weights::Tf),
            base.clone().sketch(SketchKind::MinHash),
            base.clone().clean(Clean::WEB),
            base.clone().short(0),
            base.clone().short_clean(Clean::LINKS),
            base.clone().segment(Segment::Mixed),
            base.clone().html(true),
            base.clone().seed(1),
            base.clone().secret(Secret::from_bytes(b"a secret of many letters").unwrap()),
            base.clone().secret(Secret::from_bytes(b"a secret of more letters").unwrap()),
            base.clone().simplified(true),
            base.clone().dictionary(Dictionary::parse("云计算").unwrap()),
            base.clone().dictionary(Dictionary::parse("云计算 3").unwrap()),
            base.clone().stop_words(StopWords::builtin()),
            base.clone().stop_words(StopWords::parse("the").unwrap()),
            base.clone().weights(Weights::TfIdf),
            base.clone().weights(Weights::TfIdf).idf(IdfLearner::new().finish()),
            base.clone().weight_table(WeightTable::parse("").unwrap()),
            base.weight_table(WeightTable::parse("*\t3").unwrap()),
        ];
        let descriptors: std::collections::BTreeSet<String> =
            changed.iter().map(described).collect();
        assert_eq!(descriptors.len(), changed.len());
    }

    #[test]
    fn tables_are_named_only_where_they_matter() {
        let words = PipelineOptions::new().segment(Segment::Words).weights(Weights::Tf);
        assert!(described(&words).contains(";jieba=-;"));
        assert!(described(&words).contains(";idf=-;"));
        let levels = described(&words.clone().weights(Weights::Levels));
        assert!(!levels.contains(";jieba=-;") && !levels.contains(";idf=-;"), "{levels}");
        let learnt = words.weights(Weights::Levels).idf(IdfLearner::new().finish());
        assert!(described(&learnt).contains(";jieba=-;"), "a learnt table needs no dictionary");
    }

    #[test]
    fn resources_that_do_not_match_the_descriptor_are_damage() {
        let of = |words| PipelineOptions::new().stop_words(StopWords::parse(words).unwrap());
        let descriptor = described(&of("the"));
        for other in [PipelineOptions::new(), of("a"), of("the").simplified(true)] {
            let other = other.dictionary(Dictionary::parse("云计算").unwrap());
            let damage = require(&descriptor, &Resources::of(&other));
            assert!(matches!(damage, Err(Error::Corrupt { .. })), "{damage:?}");
        }
        let missing = require(&descriptor, &Resources::default()).unwrap_err();
        assert!(missing.to_string().contains("resource stop-words has digest none"), "{missing}");
    }
}
