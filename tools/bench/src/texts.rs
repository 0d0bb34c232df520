//! Texts from templates: notices, weather lines, copies of a licence, and rows, as JSON Lines.
//!
//! Most such texts are near each other without being copies, the most work for a verification.
//! Rows are for runs of any length: one in ten is a copy of an earlier one, three in twenty have
//! one to three other words, and one in ten is of one of 100,000 templates.

use std::io::{self, BufWriter, Write};

/// Options of the subcommand.
#[derive(clap::Args, Debug)]
pub(crate) struct Texts {
    /// Template of the texts
    #[arg(value_enum)]
    template: Template,
    /// Number of texts
    #[arg(long, default_value_t = 200_000)]
    count: u32,
    /// Seed of all choices
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// A template.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Template {
    /// Messages of a parcel service that differ in names, numbers, hours and streets
    Notices,
    /// Lines of weather that differ in towns, days, skies and figures
    Weather,
    /// The first 600 words of a licence with up to 60 changed
    Licences,
    /// Sentences of 200 characters, a quarter of them copies and near-duplicates
    Rows,
}

/// Characters of a row.
const ROW: usize = 200;

/// Templates of rows.
const TEMPLATES: u32 = 100_000;

/// Different words of rows.
const WORDS: usize = 30_000;

/// Words of a row of a template that are not the template's.
const SLOTS: usize = 6;

const LICENCE: &str = include_str!("../../../LICENSE-APACHE");

/// Number of words of the licence.
const LICENCE_WORDS: usize = 600;

/// Maximum number of changed words.
const CHANGED_WORDS: usize = 60;

const NAMES: [&str; 12] = [
    "Anna", "Bashir", "Chen", "Dolores", "Emeka", "Fatima", "Giulia", "Hiro", "Ines", "Jonas",
    "Kavita", "Lars",
];
const SHOPS: [&str; 8] = [
    "Bluebird Books",
    "Corner Garden",
    "Delta Bikes",
    "Fine Tea House",
    "Harbour Shoes",
    "Northern Lamps",
    "Paper and Ink",
    "Tool Barn",
];
const STREETS: [&str; 8] = [
    "Mill Lane",
    "Station Road",
    "Cedar Street",
    "Bridge Street",
    "Church Hill",
    "Long Acre",
    "Park View",
    "Orchard Close",
];
const TOWNS: [&str; 16] = [
    "Aberdeen",
    "Bergen",
    "Cork",
    "Dresden",
    "Esbjerg",
    "Faro",
    "Ghent",
    "Haarlem",
    "Innsbruck",
    "Jena",
    "Krakow",
    "Leeds",
    "Malaga",
    "Nantes",
    "Odense",
    "Porto",
];
const SKIES: [&str; 6] =
    ["clear sky", "light rain", "heavy showers", "overcast", "fog patches", "scattered clouds"];
const WINDS: [&str; 4] = ["north", "east", "south", "west"];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Prints the texts.
pub(crate) fn run(texts: &Texts) -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = fastrand::Rng::with_seed(texts.seed);
    let words: Vec<&str> = LICENCE.split_whitespace().take(LICENCE_WORDS).collect();
    let mut out = BufWriter::new(io::stdout().lock());
    for id in 0..texts.count {
        let text = match texts.template {
            Template::Notices => notice(&mut rng),
            Template::Weather => weather(&mut rng),
            Template::Licences => licence(&mut rng, &words),
            Template::Rows => row(texts.seed, id),
        };
        serde_json::to_writer(&mut out, &serde_json::json!({ "id": id, "text": text }))?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

fn any<'a>(rng: &mut fastrand::Rng, of: &[&'a str]) -> &'a str {
    rng.choice(of).copied().unwrap_or_default()
}

fn notice(rng: &mut fastrand::Rng) -> String {
    let hour = rng.u32(8..18);
    format!(
        "Hello {}, your parcel {:08} from {} is on its way and will arrive on {}, {} {}, between \
         {hour}:00 and {}:00 at {} {}. If you are not at home, our driver {} leaves it with a \
         neighbour or at parcel shop {}. To change the day, answer with code {:04}. Thank you!",
        any(rng, &NAMES),
        rng.u32(0..100_000_000),
        any(rng, &SHOPS),
        any(rng, &DAYS),
        rng.u32(1..29),
        any(rng, &["January", "March", "May", "July", "September", "November"]),
        hour + 2,
        rng.u32(1..200),
        any(rng, &STREETS),
        any(rng, &NAMES),
        rng.u32(100..999),
        rng.u32(0..10_000),
    )
}

fn weather(rng: &mut fastrand::Rng) -> String {
    format!(
        "Weather report for {} on {} {}: {}, {} degrees, wind {} km/h from the {}, humidity {} %.",
        any(rng, &TOWNS),
        any(rng, &DAYS),
        rng.u32(1..29),
        any(rng, &SKIES),
        rng.i32(-12..36),
        rng.u32(0..90),
        any(rng, &WINDS),
        rng.u32(20..100),
    )
}

fn licence(rng: &mut fastrand::Rng, words: &[&str]) -> String {
    let mut words: Vec<&str> = words.to_vec();
    for _ in 0..rng.usize(0..=CHANGED_WORDS) {
        let (to, from) = (rng.usize(0..words.len()), any(rng, &words));
        if let Some(word) = words.get_mut(to) {
            *word = from;
        }
    }
    words.join(" ")
}

/// Returns a row; equal seeds and numbers give equal rows, so that any earlier one can be repeated.
fn row(seed: u64, id: u32) -> String {
    let mut rng =
        fastrand::Rng::with_seed(seed ^ u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let kind = rng.u32(0..20);
    if kind < 5 && id > 0 {
        // Only fresh rows and those of templates are repeated, so that no chain of repeats is long.
        let mut other = rng.u32(0..id);
        while other > 0 && is_repeat(seed, other) {
            other -= 1;
        }
        let mut words: Vec<String> = row(seed, other).split(' ').map(str::to_owned).collect();
        if kind > 1 {
            change(&mut rng, &mut words, kind as usize - 1);
        }
        return cut(&words);
    }
    if kind < 7 {
        let template = u64::from(rng.u32(0..TEMPLATES));
        let mut words = sentence(&mut fastrand::Rng::with_seed(!seed ^ template));
        change(&mut rng, &mut words, SLOTS);
        return cut(&words);
    }
    cut(&sentence(&mut rng))
}

fn is_repeat(seed: u64, id: u32) -> bool {
    let mixed = seed ^ u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fastrand::Rng::with_seed(mixed).u32(0..20) < 5
}

fn change(rng: &mut fastrand::Rng, words: &mut [String], count: usize) {
    for _ in 0..count {
        let (at, word) = (rng.usize(0..words.len()), word(rng));
        if let Some(changed) = words.get_mut(at) {
            *changed = word;
        }
    }
}

/// Returns words of more than a row, frequent ones more often.
fn sentence(rng: &mut fastrand::Rng) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = 0;
    while chars < ROW + 40 {
        let word = word(rng);
        chars += word.len() + 1;
        words.push(word);
    }
    words
}

/// Returns one of 30,000 words of one to three syllables.
fn word(rng: &mut fastrand::Rng) -> String {
    const HEADS: [&str; 16] =
        ["b", "br", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v", "w"];
    const TAILS: [&str; 12] = ["a", "an", "e", "en", "er", "i", "in", "o", "on", "or", "u", "us"];
    // The product is small more often than large.
    let mut number = rng.usize(0..WORDS) * rng.usize(0..WORDS) / WORDS;
    let mut word = String::new();
    loop {
        word.push_str(HEADS.get(number % 16).copied().unwrap_or_default());
        word.push_str(TAILS.get(number / 16 % 12).copied().unwrap_or_default());
        number /= 16 * 12;
        if number == 0 {
            return word;
        }
    }
}

fn cut(words: &[String]) -> String {
    words.join(" ").chars().take(ROW).collect()
}
