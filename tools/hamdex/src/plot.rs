//! Plots: charts become a file, as SVG, PNG or HTML by its extension.

#[cfg(feature = "png")]
mod png;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use maud::html;

use crate::chart::{self, Chart};
use crate::failure::Result;
use crate::output::{Output, Overwrite};
use crate::page;

/// A file to draw into, as named on the command line.
#[derive(Debug, Clone)]
pub(crate) struct PlotFile {
    path: PathBuf,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Svg,
    #[cfg(feature = "png")]
    Png,
    Html,
}

impl FromStr for PlotFile {
    type Err = &'static str;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        let form = match extension(Path::new(path)).as_str() {
            "svg" => Form::Svg,
            #[cfg(feature = "png")]
            "png" => Form::Png,
            #[cfg(not(feature = "png"))]
            "png" => return Err("this hamdex was built without PNG: use .svg or .html"),
            "html" | "htm" => Form::Html,
            _ => return Err("supported are names that end in .svg, .png or .html"),
        };
        Ok(Self { path: path.into(), form })
    }
}

/// The extension in small letters, empty where there is none.
pub(crate) fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// An open file that waits for its charts.
#[derive(Debug)]
pub(crate) struct Plot {
    form: Form,
    output: Output,
}

impl PlotFile {
    /// Opens the file, so that one that cannot be written is told before the work.
    pub(crate) fn open(&self, overwrite: Overwrite) -> Result<Plot> {
        Ok(Plot { form: self.form, output: Output::file(&self.path, overwrite)? })
    }
}

impl Plot {
    /// Draws the charts, so many in a row, and gives the file its name.
    pub(crate) fn write(
        mut self,
        title: &str,
        about: &str,
        charts: &[Chart],
        columns: usize,
    ) -> Result<()> {
        let sheet = || chart::sheet(title, charts, columns).map_err(|e| page::drawing(&e));
        let bytes = match self.form {
            Form::Svg => sheet()?.into_bytes(),
            #[cfg(feature = "png")]
            Form::Png => png::render(&sheet()?).map_err(|e| page::drawing(&e))?,
            Form::Html => {
                let figures = charts.iter().map(|chart| page::figure(chart, ""));
                let figures = figures.collect::<Result<Vec<_>>>()?;
                let class = if columns > 1 { "charts" } else { "" };
                page::shell(
                    title,
                    &html! {
                        p.quiet { (about) }
                        div class=(class) { @for figure in &figures { (figure) } }
                    },
                )
                .into_bytes()
            }
        };
        self.output.with(|out| out.write_all(&bytes))?;
        self.output.finish()
    }
}
