//! The body of the page: counts, settings, charts, and the largest groups with their texts.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::difference::{self, Part, Piece};
use super::seen::{Caught, MOST};
use super::{Group, Page, figures};
use crate::draw::page;
use crate::failure::Result;
use crate::size;
use crate::verb::dedup::report::Report;
use crate::verb::dedup::sources::SourceRow;

/// Writes the whole page.
pub(super) fn page(
    page: &Page,
    report: &Report<'_>,
    sizes: &BTreeMap<usize, u64>,
) -> Result<String> {
    let figures = figures::all(page, sizes).into_iter();
    let figures = figures.map(|(chart, about)| page::figure(&chart, &about));
    let figures = figures.collect::<Result<Vec<_>>>()?;
    let texts = page.seen.lengths().next().is_some();
    let verified = !page.notes.similarities().is_empty();
    let body = html! {
        (counts(report))
        @if let Some(advice) = report.advice {
            @for warning in &advice.warnings { p.warn { "Warning: " (warning) } }
        }
        @for warning in &report.warnings { p.warn { "Warning: " (warning) } }
        h2 { "Settings" }
        (settings(report))
        @if report.sources.len() > 1 {
            h2 { "Sources" }
            (sources(report))
        }
        h2 { "Figures" }
        @if !texts && report.documents > 0 {
            p.quiet { "The inputs have fingerprints but no texts, so there are no lengths of \
                       texts." }
        }
        @if !verified && report.removed > 0 {
            p.quiet { "Nothing was verified, so there are no similarities." }
        }
        @if figures.is_empty() { p.quiet { "There were no documents." } }
        div.charts { @for figure in &figures { (figure) } }
        h2 { "Largest groups" }
        (groups(page))
    };
    Ok(page::shell("Deduplication", &body))
}

fn counts(report: &Report<'_>) -> Markup {
    let share = |part: u64| 100.0 * part as f64 / report.documents.max(1) as f64;
    let count = |count: u64, name: &str| {
        html! {
            div { b { (size::thousands(count)) } span { (name) } }
        }
    };
    html! {
        div.counts {
            (count(report.documents, "documents"))
            (count(report.kept, &format!("kept, {:.1} %", share(report.kept))))
            (count(report.removed, &format!("removed, {:.1} %", share(report.removed))))
            @if report.removed_against_index > 0 {
                (count(report.removed_against_index, "of them near the index"))
            }
            @if report.removed_unique_by > 0 {
                (count(report.removed_unique_by, "of them of equal value"))
            }
            @for (kind, number) in &report.not_compared {
                (count(*number, &format!("kept, {kind}")))
            }
            (count(report.clusters, "groups"))
            (count(report.rejects, "bad rows skipped"))
            @if report.skipped_binary > 0 {
                (count(report.skipped_binary, "binary files skipped"))
            }
        }
    }
}

fn settings(report: &Report<'_>) -> Markup {
    let settings = &report.settings;
    let mut pairs = vec![
        ("inputs", inputs(&settings.inputs)),
        ("fingerprints", format!("{} bits", settings.bits)),
        ("distance", format!("up to {} bits", settings.distance)),
        ("verification", settings.verification.clone()),
        (
            "what was removed",
            if settings.verified_with_kept {
                "has passed the verification with the kept document"
            } else {
                "is connected with the kept document by a chain of near pairs"
            }
            .to_owned(),
        ),
        (
            "kept of a group",
            if settings.verification.starts_with("contains:") {
                format!("the longest, of equally long ones {}", settings.keep)
            } else {
                settings.keep.clone()
            },
        ),
    ];
    if !settings.pipeline.is_empty() {
        pairs.push(("pipeline", settings.pipeline.to_owned()));
    }
    if let Some(index) = &settings.against {
        pairs.push(("against the index", index.clone()));
    }
    if let Some(advice) = report.advice {
        let chosen = format!(
            "{}: {}; pipeline {}, distance {}, verification {}",
            advice.kind, advice.reason, advice.pipeline, advice.distance, advice.verification
        );
        pairs.push(("chosen from a sample of the texts", chosen));
    }
    pairs.push(("time", format!("{:.2} s", report.seconds)));
    let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    page::pairs(&pairs)
}

/// Returns the table of sources, those with the largest loss first.
fn sources(report: &Report<'_>) -> Markup {
    const SHOWN: usize = 50;
    let heading = [
        "source",
        "documents",
        "kept",
        "removed",
        "share removed",
        "largest group",
        "farthest pair",
    ];
    let row = |source: &SourceRow<'_>| {
        let group = source.largest_group.map_or_else(String::new, |group| {
            format!("{} in group {}", size::thousands(group.documents), group.cluster)
        });
        let pair = source.farthest.as_ref().map_or_else(String::new, |pair| {
            let apart = pair
                .similarity
                .map_or_else(String::new, |similarity| format!(", similarity {similarity}"));
            format!("{} for {}: {} bits{apart}", pair.id, pair.kept_id, pair.distance)
        });
        vec![
            source.name.clone(),
            size::thousands(source.documents),
            size::thousands(source.kept),
            size::thousands(source.removed),
            format!("{:.1} %", 100.0 * source.removed_share),
            group,
            pair,
        ]
    };
    let rows: Vec<Vec<String>> = report.sources.iter().take(SHOWN).map(row).collect();
    let more = report.sources.len().saturating_sub(SHOWN);
    html! {
        p.quiet {
            @match &report.gone {
                Some(gone) => { "Nearly all documents were removed from: " (gone) "." }
                None => { "No source lost nearly all of its documents." }
            }
            @if more > 0 { " " (size::thousands(more as u64)) " more sources lost a smaller share." }
        }
        div.scroll { (page::table(&heading.map(str::to_owned), &rows)) }
    }
}

/// Names some inputs and counts the others.
fn inputs(names: &[&str]) -> String {
    const NAMED: usize = 8;
    let text = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        let others = size::thousands((names.len() - NAMED) as u64);
        return format!("{text} and {others} more");
    }
    text
}

fn groups(page: &Page) -> Markup {
    html! {
        @if page.groups.is_empty() {
            p.quiet { "No two documents were near each other." }
        } @else {
            p.quiet {
                "Each group: the kept document, and the removed one whose fingerprint is \
                    farthest "
                "from it. Parts that only one of the two has are marked."
            }
        }
        @for group in &page.groups { (group_of(page, group)) }
    }
}

fn group_of(page: &Page, group: &Group) -> Markup {
    let Group { cluster, size, kept, far, distance } = *group;
    let (kept, far) = (page.seen.get(kept), page.seen.get(far));
    let bits = if distance == 1 { "bit" } else { "bits" };
    html! {
        h3 { "Group " (cluster) ": " (size::thousands(size)) " documents" }
        @if let (Some(kept), Some(far)) = (kept, far) {
            table.texts {
                thead {
                    tr {
                        th scope="col" { "kept: " bdi { (kept.id) } }
                        th scope="col" { "removed: " bdi { (far.id) } ", " (distance) " " (bits) " away" }
                    }
                }
                tbody { (texts(kept, far)) }
            }
        }
    }
}

fn texts(kept: &Caught, far: &Caught) -> Markup {
    let (Some(ours), Some(theirs)) = (&kept.text, &far.text) else {
        return note("The texts cannot be compared: these inputs have only fingerprints.");
    };
    let parts = difference::parts(ours, theirs);
    let equal = ours == theirs;
    html! {
        @if equal { (note("The texts are equal.")) }
        @for part in &parts {
            @match part {
                Part::Alike(_) if equal => {
                    tr { td.same colspan="2" { (start(ours)) } }
                }
                Part::Alike(count) => {
                    (note(&format!("{} equal characters", size::thousands(*count as u64))))
                }
                Part::Stretch { kept, removed } => {
                    tr { td.kept { (pieces(kept)) } td.gone { (pieces(removed)) } }
                }
                Part::More(count) => {
                    (note(&format!("{} more places differ", size::thousands(*count as u64))))
                }
            }
        }
        @if kept.length.max(far.length) > MOST {
            (note(&format!(
                "Only the first {} characters are compared; the kept text has {}, the removed \
                    one {}.",
                size::thousands(MOST as u64),
                size::thousands(kept.length as u64),
                size::thousands(far.length as u64),
            )))
        }
    }
}

/// Returns a line across both texts.
fn note(text: &str) -> Markup {
    html! { tr { td.same colspan="2" { (text) } } }
}

fn pieces(pieces: &[Piece]) -> Markup {
    html! {
        @for piece in pieces {
            @if piece.own { mark { (piece.text) } } @else { (piece.text) }
        }
    }
}

/// Returns the beginning of a text that is not shown otherwise.
fn start(text: &str) -> String {
    const SHOWN: usize = 300;
    let start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() { format!("{start} \u{2026}") } else { start }
}
