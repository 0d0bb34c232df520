//! Rendering of a report as Markdown and HTML.

use std::fmt::Write;

use super::document::{Mark, Section, Table};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse;margin:1em 0;font-size:13px}\
td,th{border-bottom:1px solid #ddd;padding:3px 8px;text-align:right}\
td:first-child,th:first-child{text-align:left}\
.ours{background:#fdf1ef}.behind{color:#b00020;font-weight:bold}svg{max-width:100%;height:auto}";

/// Renders the report as Markdown, with plots in separate files.
pub(crate) fn markdown(title: &str, sections: &[Section]) -> Result<String, std::fmt::Error> {
    let mut text = format!("# {title}\n");
    for section in sections {
        write!(text, "\n## {}\n\n", section.title)?;
        for paragraph in &section.text {
            write!(text, "{paragraph}\n\n")?;
        }
        for plot in &section.plots {
            write!(text, "![{}]({}.svg)\n\n", plot.title, plot.name)?;
        }
        markdown_table(&mut text, &section.table)?;
    }
    Ok(text)
}

/// Renders one table as Markdown.
pub(crate) fn table(table: &Table) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    markdown_table(&mut text, table)?;
    Ok(text)
}

fn markdown_table(text: &mut String, table: &Table) -> std::fmt::Result {
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

/// Renders the report as one self-contained HTML file.
pub(crate) fn html(title: &str, sections: &[Section]) -> Result<String, std::fmt::Error> {
    let title = escape(title);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
    );
    for section in sections {
        writeln!(text, "<h2>{}</h2>", escape(&section.title))?;
        for paragraph in &section.text {
            writeln!(text, "<p>{}</p>", escape(paragraph))?;
        }
        for plot in &section.plots {
            writeln!(text, "<figure>{}</figure>", plot.svg)?;
        }
        html_table(&mut text, &section.table)?;
    }
    text.push_str("</body></html>\n");
    Ok(text)
}

fn html_table(text: &mut String, table: &Table) -> std::fmt::Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    text.push_str("<table><tr>");
    for head in &table.head {
        write!(text, "<th>{}</th>", escape(head))?;
    }
    text.push_str("</tr>\n");
    for row in &table.rows {
        let ours = row.first().is_some_and(|cell| cell.text.starts_with("hamdex"));
        text.push_str(if ours { "<tr class=\"ours\">" } else { "<tr>" });
        for cell in row {
            let class = if cell.mark == Mark::Behind { " class=\"behind\"" } else { "" };
            write!(text, "<td{class}>{}</td>", escape(&cell.text))?;
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table>\n");
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
