//! The document model of a report: sections, tables and plots.

/// The mark of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Plain,
    /// Our figure is worse than the peer's.
    Behind,
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) mark: Mark,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, mark: Mark::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&text| text.to_owned()).collect(), rows: Vec::new() }
    }
}

/// A plot and the name of its file.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) svg: String,
}

#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) text: Vec<String>,
    pub(crate) table: Table,
    pub(crate) plots: Vec<Plot>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>, text: &[&str], table: Table) -> Self {
        let text = text.iter().map(|&text| text.to_owned()).collect();
        Self { title: title.into(), text, table, plots: Vec::new() }
    }
}
