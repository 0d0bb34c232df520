//! Replays the inputs that fuzzing kept.

use hamdex::fuzzing;
use hamdex_fuzz::replay;

#[test]
fn the_corpora_of_the_decoders_hold() {
    replay("run", fuzzing::run);
    replay("pack", fuzzing::pack);
    replay("record", fuzzing::record);
    replay("header", fuzzing::header);
    replay("key", fuzzing::key);
}

#[test]
fn the_corpus_of_plans_holds() {
    replay("plan", hamdex_fuzz::plan);
}

#[test]
fn the_corpus_of_texts_holds() {
    replay("text", hamdex_fuzz::text);
}

#[test]
fn the_corpus_of_operations_holds() {
    replay("operations", hamdex_fuzz::operations);
}
