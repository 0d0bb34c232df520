//! The report of a soak: a self-contained HTML file with plots, and the samples as CSV.

use std::fmt::Write;
use std::path::Path;

use plotters::prelude::*;

use super::Settings;
use super::phases::Phases;
use super::sample::{Flatness, Sample};
use crate::report::{Finding, Verdict};

const MIB: f64 = 1_048_576.0;

const SIZE: (u32, u32) = (900, 320);

const COLORS: [RGBColor; 3] =
    [RGBColor(200, 30, 30), RGBColor(31, 119, 180), RGBColor(44, 140, 44)];

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:960px;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse}td,th{border-bottom:1px solid #ddd;padding:3px 10px;\
text-align:right}td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}";

type Figure = fn(&Sample) -> f64;

/// One plot: title with unit, whether the scale is logarithmic, and curves.
type Shown<'a> = (&'static str, bool, &'a [(&'static str, Figure)]);

const SHOWN: [Shown<'_>; 5] = [
    ("resident memory (MiB)", false, &[("resident", |s| s.memory as f64 / MIB)]),
    ("open files", false, &[("open", |s| s.open_files as f64)]),
    ("bytes of the index (MiB)", false, &[("disk", |s| s.disk as f64 / MIB)]),
    (
        "search at distance 3 (microseconds)",
        true,
        &[
            ("median", |s| s.searches.median),
            ("p99", |s| s.searches.p99),
            ("p99.9", |s| s.searches.p999),
        ],
    ),
    (
        "writing call of 50 documents (microseconds)",
        true,
        &[("median", |s| s.writes.median), ("p99", |s| s.writes.p99), ("p99.9", |s| s.writes.p999)],
    ),
];

/// Writes `soak.csv` and `soak.html` into a directory.
pub(super) fn write(
    directory: &Path,
    settings: &Settings,
    samples: &[Sample],
    flatness: &[Flatness],
    phases: &Phases,
    (before, after): (u64, u64),
) -> Verdict {
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("soak.csv"), csv(samples))?;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Soak</title>\n\
         <style>{STYLE}</style></head><body>\n<h1>Soak</h1>\n<p>{} documents, {} s of inserts, \
         replacements, removals, searches, folds and flushes. Removing nine in ten documents took \
         the index from {before} to {after} bytes.</p>\n<table><tr><th>figure</th>\
         <th>first third</th><th>last third</th><th>ratio</th><th>allowed</th></tr>\n",
        settings.documents,
        settings.time.as_secs()
    );
    for flat in flatness {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{:.0}</td><td>{:.0}</td><td>{:.2}</td><td>{:.2}</td></tr>",
            flat.name,
            flat.first,
            flat.last,
            flat.ratio(),
            flat.allowed
        );
    }
    page.push_str("</table>\n");
    page.push_str(&phases.html());
    for shown in SHOWN {
        let svg = draw(shown, samples).map_err(|error| {
            Finding::wrong(format!("the torture itself failed to draw {}: {error}", shown.0))
        })?;
        let _ = writeln!(page, "<figure>{svg}</figure>");
    }
    page.push_str("</body></html>\n");
    std::fs::write(directory.join("soak.html"), page)?;
    Ok(())
}

fn csv(samples: &[Sample]) -> String {
    let mut text = "second,resident_bytes,open_files,disk_bytes,searches,search_median_us,\
                    search_p99_us,search_p999_us,writes,write_median_us,write_p99_us,\
                    write_p999_us\n"
        .to_owned();
    for s in samples {
        let _ = write!(text, "{:.1},{},{},{}", s.at, s.memory, s.open_files, s.disk);
        for latency in [s.searches, s.writes] {
            let (median, p99, p999) = (latency.median, latency.p99, latency.p999);
            let _ = write!(text, ",{},{median:.0},{p99:.0},{p999:.0}", latency.count);
        }
        text.push('\n');
    }
    text
}

fn draw((title, logarithmic, curves): Shown<'_>, samples: &[Sample]) -> Result<String, String> {
    let text = |error: DrawingAreaErrorKind<std::io::Error>| error.to_string();
    let values = || curves.iter().flat_map(|(_, figure)| samples.iter().map(figure));
    let end = samples.last().map_or(1.0, |sample| sample.at.max(1.0));
    let high = values().fold(1.0, f64::max) * 1.1;
    let low = values().filter(|value| *value > 0.0).fold(high, f64::min) / 1.3;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(text)?;
        let mut chart = ChartBuilder::on(&root);
        chart.caption(title, ("sans-serif", 17)).margin(10).margin_right(90);
        chart.x_label_area_size(36).y_label_area_size(72);
        if logarithmic {
            let mut chart =
                chart.build_cartesian_2d(0.0..end, (low..high).log_scale()).map_err(text)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_desc("seconds").light_line_style(WHITE).draw().map_err(text)?;
            for ((_, figure), color) in curves.iter().zip(COLORS) {
                let line = samples.iter().map(|s| (s.at, figure(s).max(low)));
                chart.draw_series(LineSeries::new(line, &color)).map_err(text)?;
            }
        } else {
            let mut chart = chart.build_cartesian_2d(0.0..end, 0.0..high).map_err(text)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_desc("seconds").light_line_style(WHITE).draw().map_err(text)?;
            for ((_, figure), color) in curves.iter().zip(COLORS) {
                let line = samples.iter().map(|s| (s.at, figure(s)));
                chart.draw_series(LineSeries::new(line, &color)).map_err(text)?;
            }
        }
        let right = i32::try_from(SIZE.0).unwrap_or(900) - 80;
        for (((name, _), color), down) in curves.iter().zip(COLORS).zip((50..).step_by(20)) {
            let style = ("sans-serif", 14).into_font().color(&color);
            root.draw(&Text::new((*name).to_owned(), (right, down), style)).map_err(text)?;
        }
        root.present().map_err(text)?;
    }
    Ok(svg)
}
