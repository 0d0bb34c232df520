//! Pages: titles, charts and tables become one HTML file that needs no other and no network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::draw::chart::{self, Chart};
use crate::failure::{Failure, Result};

/// Allows only the page's styles, for any text of a document.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("page.css");

/// Puts the parts of a page under its title.
pub(crate) fn shell(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

/// Returns a chart with a caption and its figures as a table.
pub(crate) fn figure(chart: &Chart, caption: &str) -> Result<Markup> {
    let svg = chart::inline(chart).map_err(|reason| drawing(&reason))?;
    let (heading, rows) = chart.table();
    Ok(html! {
        figure {
            (PreEscaped(svg))
            @if !caption.is_empty() { figcaption { (caption) } }
            details {
                summary { "The figures" }
                div.scroll { (table(&heading, &rows)) }
            }
        }
    })
}

/// Returns a table with a heading; every column but the first is aligned to the right.
pub(crate) fn table(heading: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        table {
            thead { tr { @for cell in heading { th scope="col" { (cell) } } } }
            tbody {
                @for row in rows {
                    tr { @for cell in row { td { (cell) } } }
                }
            }
        }
    }
}

/// Returns a list of names and values.
pub(crate) fn pairs(pairs: &[(String, String)]) -> Markup {
    html! {
        table.pairs {
            tbody {
                @for (name, value) in pairs {
                    tr { th scope="row" { (name) } td { bdi { (value) } } }
                }
            }
        }
    }
}

/// Returns the failure of a picture that cannot be drawn.
pub(crate) fn drawing(reason: &str) -> Failure {
    Failure::refused("chart", format!("cannot be drawn: {reason}"))
}
