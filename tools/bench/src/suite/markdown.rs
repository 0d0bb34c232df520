//! The report as Markdown, with its plots in files beside it.

use std::fmt::Write;

use super::document::{Section, Table};

pub(crate) fn render(title: &str, sections: &[Section]) -> Result<String, std::fmt::Error> {
    let mut text = format!("# {title}\n");
    for section in sections {
        write!(text, "\n## {}\n\n", section.title)?;
        for paragraph in &section.text {
            write!(text, "{paragraph}\n\n")?;
        }
        for plot in &section.plots {
            write!(text, "![{}]({}.svg)\n\n", plot.title, plot.name)?;
        }
        table(&mut text, &section.table)?;
    }
    Ok(text)
}

fn table(text: &mut String, table: &Table) -> std::fmt::Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    writeln!(text, "| {} |", table.head.join(" | "))?;
    writeln!(text, "|{}", "---|".repeat(table.head.len()))?;
    for row in &table.rows {
        let cells: Vec<_> = row.iter().map(|cell| cell.text.replace('|', "\\|")).collect();
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}
