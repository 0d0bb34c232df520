//! Feeds the reader of rows with what libFuzzer makes up.
#![no_main]
#![allow(unsafe_code)] // what the macro makes exports a symbol

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hamdex_cli::fuzz_rows(bytes);
});
