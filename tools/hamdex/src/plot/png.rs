//! PNG: a drawing becomes pixels, lettered with the font that the program brings along.

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
    let mut pixels =
        tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("it is too large for a PNG")?;
    let scale = tiny_skia::Transform::from_scale(FINENESS, FINENESS);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
