//! Learning: a first pass over the inputs becomes a table of how rare each word is.

use std::borrow::Cow;
use std::sync::Arc;

use hamdex::text::{IdfLearner, IdfTable, Pipeline};

use super::chunk::{Body, Chunk, Line, Rows, Text};
use super::fields::Fields;
use super::flow::for_each_made;
use super::inputs::Inputs;
use super::make::content;
use super::row;
use crate::failure::{Failure, Result};
use crate::host::Host;

/// Refuses inputs that can be read only once.
pub fn readable_twice(inputs: &Inputs, option: &str) -> Result<()> {
    match inputs.sources.iter().find(|source| source.is_live()) {
        None => Ok(()),
        Some(source) => Err(Failure::Usage(format!(
            "{}: {option} reads the inputs twice; save them to a file and give the file",
            source.name
        ))),
    }
}

/// Counts words as the pipeline cuts them; bad rows are left to the pass that reports them.
pub fn learn(inputs: &Arc<Inputs>, pipeline: &Pipeline, console: &dyn Host) -> Result<IdfTable> {
    readable_twice(inputs, "--idf learn")?;
    console.begin_reading("learning", inputs.bytes());
    let mut learner = IdfLearner::new();
    let make = |chunk: Chunk| {
        let Some(source) = inputs.sources.get(chunk.source) else { return Ok((Vec::new(), 0)) };
        let words = words_of(&chunk, &source.fields, pipeline)?;
        let bytes = words.iter().map(|words| size_of_val(words.as_slice())).sum();
        Ok((words, bytes))
    };
    for_each_made(inputs, Rows::Needed, None, console, make, |_, _, documents| {
        for words in &documents {
            learner.add_words(words);
        }
        Ok(())
    })?;
    console.end_phase();
    Ok(learner.finish())
}

/// Returns the words of each document of a chunk, in their order.
fn words_of(chunk: &Chunk, fields: &Fields, pipeline: &Pipeline) -> Result<Vec<Vec<u64>>> {
    let words =
        |text: Option<Cow<'_, str>>| text.map_or_else(Vec::new, |text| pipeline.word_hashes(&text));
    Ok(match &chunk.body {
        Body::Lines { bytes, lines } => {
            let line = |line: &Line| {
                let line = bytes.get(line.bytes.clone()).unwrap_or_default();
                words(row::parse(fields, line).ok().and_then(|row| row.text))
            };
            lines.iter().map(line).collect()
        }
        Body::Table(batch) => {
            batch.each(fields, |_, row| words(row.ok().and_then(|row| row.text)))?
        }
        Body::Texts(texts) => {
            let text = |text: &Text| {
                let bytes = text.bytes.as_deref().unwrap_or_default();
                let decoded = text.encoding(fields).decode_text(bytes);
                words(
                    decoded
                        .as_ref()
                        .map(|text_of| content(pipeline, &text_of.text, text.is_html())),
                )
            };
            texts.iter().map(text).collect()
        }
        Body::Raw { .. } => Vec::new(),
    })
}
