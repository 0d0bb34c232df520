//! Feeds the reader of rows with what libFuzzer makes up; the program's own modules once more.
#![no_main]
#![allow(dead_code, unused_imports, unsafe_code)] // most of the program is not called from here

mod advise;
mod bars;
mod chart;
mod cli;
mod console;
mod costs;
mod evidence;
mod failure;
mod input;
mod key;
mod options;
mod output;
mod page;
mod plot;
mod resource_options;
mod session;
mod size;
mod stored;
mod table;
mod verb;
mod verify_options;
mod width;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    input::fuzzing::rows(bytes);
});
