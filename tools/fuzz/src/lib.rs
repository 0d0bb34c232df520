//! Fuzz targets over the public API: bytes of any kind go in, a panic is a finding.
//!
//! `tools/fuzz/run` feeds them under coverage; the tests feed them what that found worth keeping.
#![allow(clippy::indexing_slicing)] // a target that fails may panic

mod operations;
mod plan;
mod text;

use std::path::PathBuf;

pub use operations::operations;
pub use plan::plan;
pub use text::text;

/// Feeds a target all inputs that were kept for it, and the empty one.
///
/// Each line of `corpus.hex` is the name of a target and an input, hexadecimal.
///
/// # Panics
///
/// Whatever the target panics at, and if the inputs cannot be read or are fewer than four.
pub fn replay(name: &str, target: fn(&[u8])) {
    // Asked at run time, since clones that share a target directory share what was compiled there.
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo"));
    let path = package.join("../../tools/fuzz/corpus.hex");
    let pack = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let inputs = pack.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let inputs: Vec<Vec<u8>> = inputs.map(from_hex).collect();
    assert!(inputs.len() > 3, "{} inputs of {name}", inputs.len());
    for input in inputs {
        target(&input);
    }
    target(b"");
}

/// Returns the bytes that hexadecimal digits stand for.
///
/// # Panics
///
/// If they are not digits, or half a byte is left.
pub fn from_hex(line: &str) -> Vec<u8> {
    let digit = |digit: u8| u8::try_from(char::from(digit).to_digit(16)?).ok();
    let (pairs, rest) = line.as_bytes().as_chunks::<2>();
    assert!(rest.is_empty(), "half a byte in {line}");
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    let whole: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    whole.unwrap_or_else(|| panic!("not hexadecimal: {line}"))
}
