//! Learning: a first pass over the inputs becomes a table of how rare each word is.

use std::sync::Arc;

use hamdex::text::{IdfLearner, IdfTable, Pipeline};
use rayon::prelude::*;

use super::chunk::{Body, Chunk, Rows, for_each_chunk};
use super::fields::Fields;
use super::inputs::Inputs;
use super::make::content;
use super::row;
use crate::console::Console;
use crate::failure::{Failure, Result};

/// Refuses inputs that can be read only once.
pub(crate) fn readable_twice(inputs: &Inputs, option: &str) -> Result<()> {
    match inputs.sources.iter().find(|source| source.is_live()) {
        None => Ok(()),
        Some(source) => Err(Failure::Usage(format!(
            "{}: {option} reads the inputs twice; save them to a file and give the file",
            source.name
        ))),
    }
}

/// Counts words as the pipeline cuts them; bad rows are left to the pass that reports them.
pub(crate) fn learn(
    inputs: &Arc<Inputs>,
    pipeline: &Pipeline,
    console: &Console,
) -> Result<IdfTable> {
    readable_twice(inputs, "--idf learn")?;
    console.begin_reading("learning", inputs.bytes());
    let mut learner = IdfLearner::new();
    for_each_chunk(inputs, Rows::Needed, None, console, |chunk| {
        let Some(source) = inputs.sources.get(chunk.source) else { return Ok(()) };
        for words in words_of(&chunk, &source.fields, pipeline) {
            learner.add_words(&words);
        }
        Ok(())
    })?;
    console.end_phase();
    Ok(learner.finish())
}

/// Returns the words of each document of a chunk, in their order.
fn words_of(chunk: &Chunk, fields: &Fields, pipeline: &Pipeline) -> Vec<Vec<u64>> {
    match &chunk.body {
        Body::Lines { bytes, lines } => lines
            .par_iter()
            .map(|line| {
                let line = bytes.get(line.bytes.clone()).unwrap_or_default();
                let text = row::parse(fields, line).ok().and_then(|row| row.text);
                text.map_or_else(Vec::new, |text| pipeline.word_hashes(&text))
            })
            .collect(),
        Body::Texts(texts) => texts
            .par_iter()
            .map(|text| {
                let bytes = text.bytes.as_deref().unwrap_or_default();
                let decoded = text.encoding(fields).decode_text(bytes);
                decoded.map_or_else(Vec::new, |decoded| {
                    pipeline.word_hashes(&content(pipeline, &decoded.text, text.is_html()))
                })
            })
            .collect(),
        Body::Raw { .. } => Vec::new(),
    }
}
