//! What a fuzzer feeds: bytes of any kind go into each decoder, and what comes out must hold.
//!
//! Under the feature `fuzzing` only. A target panics where the library is wrong; damage that is
//! refused is right.

use crate::fingerprint::Fingerprint;
use crate::index::Header;
use crate::store::codec::{self, Document, HeaderRecord, Lane, ResourcePart, State};
use crate::store::{decode_header, keys, run};
use crate::text::{IdfTable, Pipeline};
use crate::verify::FeatureSet;

/// Takes the next byte as a choice.
fn choice(bytes: &mut &[u8]) -> u8 {
    let Some((&first, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    first
}

/// Takes a fingerprint of any value.
fn fingerprint<F: Fingerprint>(bytes: &mut &[u8]) -> F {
    match bytes.split_at_checked(F::BYTES) {
        Some((head, rest)) => {
            *bytes = rest;
            F::from_bytes(head).unwrap_or(F::ZERO)
        }
        None => F::ONES,
    }
}

/// Decodes a run: what decodes rises, comes back the same, and begins alike when cut short.
pub fn run(mut bytes: &[u8]) {
    match choice(&mut bytes) % 3 {
        0 => run_of::<u32>(bytes),
        1 => run_of::<u64>(bytes),
        _ => run_of::<u128>(bytes),
    }
}

fn run_of<F: Fingerprint>(mut bytes: &[u8]) {
    let low = fingerprint::<F>(&mut bytes);
    let last = fingerprint::<F>(&mut bytes);
    let (mut whole, mut part) = (Vec::new(), Vec::new());
    let decoded = run::decode(last, bytes, 0, &mut whole);
    let cut = run::decode_down_to(low, last, bytes, 0, &mut part);
    if decoded.is_err() {
        return;
    }
    assert!(whole.is_sorted_by(|a, b| a > b), "members fall from the last one on: {whole:?}");
    assert_eq!(whole.first(), Some(&last));
    cut.expect("a part of a sound run decodes");
    assert!(whole.starts_with(&part), "a part is the beginning of the whole");
    let missing = whole.get(part.len()..).unwrap_or_default();
    assert!(missing.iter().all(|&member| member < low), "what lies in the range was left out");
    whole.reverse();
    let mut value = Vec::new();
    run::encode(&whole, &mut value);
    run::decode(last, &value, 0, &mut part).expect("an encoded run decodes");
    part.reverse();
    assert_eq!(part, whole);
}

/// Decodes a record of each kind: what decodes has one form only.
pub fn record(mut bytes: &[u8]) {
    let kind = choice(&mut bytes);
    // A checksum is not found by trying, so every second time it is the right one.
    let bytes = if kind & 1 == 1 { codec::sealed(b"key", bytes) } else { bytes.to_vec() };
    let bytes = &bytes[..];
    match (kind >> 1) % 7 {
        0 => one_form::<Document<u32>>(bytes),
        1 => one_form::<Document<u64>>(bytes),
        2 => one_form::<Document<u128>>(bytes),
        3 => one_form::<State>(bytes),
        4 => one_form::<Lane>(bytes),
        5 => one_form::<ResourcePart>(bytes),
        _ => one_form::<HeaderRecord>(bytes),
    }
    if let Ok(Document { features: Some(set), .. }) =
        codec::decode::<Document<u64>>("docs", b"key", bytes)
        && let Ok(decoded) = FeatureSet::decode(&set)
    {
        assert_eq!(decoded.encode(), set, "a feature set has one form");
    }
}

fn one_form<T: bincode::Encode + bincode::Decode<()>>(bytes: &[u8]) {
    if let Ok(record) = codec::decode::<T>("docs", b"key", bytes) {
        assert_eq!(codec::encode(b"key", &record), bytes, "a record has one form");
    }
}

/// Decodes a header and all that it names: plan, pipeline, tables of words.
pub fn header(bytes: &[u8]) {
    let _ = decode_header(bytes);
    if let Ok(record) = decode_header(&codec::sealed(b"header", bytes)) {
        let header = Header::of(&record);
        if let Ok(plan) = crate::index::plan_of(&record) {
            assert!(plan.require(header.distance).is_ok(), "{plan} does not answer its distance");
        }
        if let Ok(pipeline) = Pipeline::from_descriptor(&header.pipeline) {
            assert_eq!(pipeline.descriptor(), header.pipeline);
        }
    }
    if let Ok(table) = IdfTable::from_bytes(bytes) {
        assert_eq!(table.to_bytes(), bytes, "a table of rarity has one form");
    }
}

/// Decodes keys of all families: what decodes is what would be written.
pub fn key(mut bytes: &[u8]) {
    match choice(&mut bytes) % 3 {
        0 => key_of::<u32>(bytes),
        1 => key_of::<u64>(bytes),
        _ => key_of::<u128>(bytes),
    }
}

fn key_of<F: Fingerprint>(bytes: &[u8]) {
    for kind in [keys::Kind::Run, keys::Kind::Single] {
        if let Ok(Some(permuted)) = keys::permuted::<F>(bytes, kind, 0) {
            assert_eq!(keys::TableKey::new(kind, permuted).as_ref(), bytes);
            assert!(bytes < &keys::TableKey::end(kind)[..]);
        }
    }
    if let Ok((fingerprint, document)) = keys::split_posting::<F>(bytes) {
        assert_eq!(keys::posting(fingerprint, document), bytes);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(fingerprint) = F::from_hex(text)
    {
        assert!(fingerprint.hex().to_string().eq_ignore_ascii_case(text));
    }
    let _ = keys::check_document(bytes);
}
