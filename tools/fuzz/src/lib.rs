//! Fuzz targets over the public API: bytes of any kind go in, a panic is a finding.
//!
//! `tools/fuzz/run` feeds them under coverage; the tests feed them what that found worth keeping.
#![allow(clippy::indexing_slicing)] // a target that fails may panic

mod operations;
mod text;

use std::path::PathBuf;

use hamdex::plan::Plan;
use hamdex::plan::defeat;

pub use operations::operations;
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

/// Parses a plan and checks that it answers its distance.
///
/// Two bytes choose width and distance, the rest is the plan's text.
pub fn plan(bytes: &[u8]) {
    let [width, distance, text @ ..] = bytes else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let bits = [32, 64, 128, 7][usize::from(width % 4)];
    let distance = u32::from(distance % 40);
    let count = (width & 0x80 != 0).then(|| 1 << (u64::from(*width) >> 2 & 31));
    let Ok(plan) = Plan::parse(text, bits, distance, count) else { return };
    assert!(distance <= bits / 4, "{plan} takes a distance that no search may ask for");
    assert!((1..=128).contains(&plan.tables().len()), "{plan}");
    if text.contains('r') {
        assert!(plan.complete_to() >= distance, "{plan} misses what it promises");
    }
    let tables: Vec<_> = plan.tables().iter().map(|table| (table.lead(), plan.radius())).collect();
    let beyond = defeat(&tables, bits, plan.complete_to() + 1);
    assert!(beyond.is_none_or(|flips| flips > plan.complete_to()), "{plan} can be got past");
    let again = Plan::parse(&plan.to_string(), bits, distance, None).expect("what was printed");
    assert_eq!(again, plan);
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
