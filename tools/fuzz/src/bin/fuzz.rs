//! Runs the target that `HAMDEX_FUZZ` names on inputs from libFuzzer.
#![no_main]
#![allow(missing_docs, unsafe_code)] // the macro defines the entry point that C++ calls

use std::sync::OnceLock;

use hamdex::fuzzing;
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fn chosen() -> fn(&[u8]) {
    let name = std::env::var("HAMDEX_FUZZ").unwrap_or_default();
    match name.as_str() {
        "run" => fuzzing::run,
        "pack" => fuzzing::pack,
        "record" => fuzzing::record,
        "header" => fuzzing::header,
        "key" => fuzzing::key,
        "plan" => hamdex_fuzz::plan,
        "text" => hamdex_fuzz::text,
        "operations" => hamdex_fuzz::operations,
        _ => panic!("HAMDEX_FUZZ={name} is not a target"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    TARGET.get_or_init(chosen)(bytes);
});
