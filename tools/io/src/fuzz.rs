//! Feeds the reader of rows with the inputs of libFuzzer.
#![no_main]
#![allow(unsafe_code)] // what the macro makes exports a symbol

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hamdex_io::fuzz_rows(bytes);
});
