//! Drawing: results become tables and bars on a terminal, and charts and pages in files.

pub(crate) mod bars;
pub(crate) mod chart;
pub(crate) mod page;
pub(crate) mod plot;
pub(crate) mod table;
