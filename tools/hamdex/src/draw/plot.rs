//! Plots: charts become a file, as SVG, PNG or HTML by its extension.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use maud::html;

use crate::draw::chart::{self, Chart};
use crate::draw::page;
use crate::failure::Result;
use crate::output::{Output, Overwrite};

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
            "png" => return Err("this hamdex was built without PNG; use .svg or .html"),
            "html" | "htm" => Form::Html,
            _ => return Err("expected a name that ends in .svg, .png or .html"),
        };
        Ok(Self { path: path.into(), form })
    }
}

/// Returns the extension in lower case, empty if there is none.
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
    /// Opens the file before the work, so that an unwritable one is reported first.
    pub(crate) fn open(&self, overwrite: Overwrite) -> Result<Plot> {
        Ok(Plot { form: self.form, output: Output::file(&self.path, overwrite)? })
    }
}

impl Plot {
    /// Draws the charts, `columns` in a row, and publishes the file.
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

/// PNG: a drawing becomes pixels, lettered with the font that the program has in it.
#[cfg(feature = "png")]
mod png {
    use std::sync::Arc;

    use resvg::{tiny_skia, usvg};

    /// Family of the font: no machine has to have one.
    const FONT: &str = "Ubuntu";

    /// Pixels for each pixel of the drawing.
    const FINENESS: f32 = 2.0;

    /// Renders a drawing.
    pub(super) fn render(svg: &str) -> Result<Vec<u8>, String> {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        fonts.set_sans_serif_family(FONT);
        let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
        let tree = usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
        let size = tree.size().to_int_size().scale_by(FINENESS).ok_or("it has no size")?;
        let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
            .ok_or("it is too large for a PNG")?;
        let scale = tiny_skia::Transform::from_scale(FINENESS, FINENESS);
        resvg::render(&tree, scale, &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}
