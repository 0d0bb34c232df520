//! Texts from templates: notices, weather lines and copies of a licence, as JSON Lines.
//!
//! Such texts are near each other without being copies, the most work for a verification.

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
}

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
