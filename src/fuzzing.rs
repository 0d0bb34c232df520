//! Fuzz targets: decode arbitrary bytes and check the invariants of what decodes.
//!
//! Only with the feature `fuzzing`. A target panics if the library is wrong; an error for invalid
//! bytes is correct.

use crate::fingerprint::Fingerprint;
use crate::index::Header;
use crate::store::codec::{self, Document, HeaderRecord, Lane, ResourcePart, State};
use crate::store::{Family, decode_header, delta_run, keys, pack, run};
use crate::text::{IdfTable, Pipeline};
use crate::verify::FeatureSet;

/// Consumes one byte that selects a case.
fn choice(bytes: &mut &[u8]) -> u8 {
    let Some((&first, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    first
}

/// Consumes one fingerprint.
fn fingerprint<F: Fingerprint>(bytes: &mut &[u8]) -> F {
    match bytes.split_at_checked(F::BYTES) {
        Some((head, rest)) => {
            *bytes = rest;
            F::from_bytes(head).unwrap_or(F::ZERO)
        }
        None => F::ONES,
    }
}

/// Decodes a run: members descend, encode to the same run, and a partial decode is a prefix.
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
    assert!(whole.is_sorted_by(|a, b| a > b), "members descend from the last one: {whole:?}");
    assert_eq!(whole.first(), Some(&last));
    cut.expect("a part of a valid run decodes");
    assert!(whole.starts_with(&part), "a partial decode is a prefix");
    let missing = whole.get(part.len()..).unwrap_or_default();
    assert!(missing.iter().all(|&member| member < low), "a member within the range is missing");
    whole.reverse();
    let mut value = Vec::new();
    run::encode(&whole, &mut value);
    run::decode(last, &value, 0, &mut part).expect("an encoded run decodes");
    part.reverse();
    assert_eq!(part, whole);
    delta_run::decode(&delta_run::encode(&whole), &mut part).expect("a delta run decodes");
    part.reverse();
    assert_eq!(part, whole);
    let _ = delta_run::decode::<F>(bytes, &mut part);
}

/// Decodes a pack: what decodes encodes to a pack of the same members under the same key.
pub fn pack(mut bytes: &[u8]) {
    let kind = choice(&mut bytes);
    let family = if kind & 1 == 0 { Family::DocPacks } else { Family::PostingPacks };
    let bits = [32, 64, 128].into_iter().cycle().nth(usize::from(kind >> 1)).unwrap_or(64);
    let layout = pack::Layout::of(family, bits);
    let Some((key, body)) = bytes.split_at_checked(layout.key_bytes()) else { return };
    let mut value = body.to_vec();
    if kind & 0x80 == 0 {
        value.extend_from_slice(&codec::checksum(key, body).to_be_bytes());
    }
    let mut members = Vec::new();
    if layout.decode(key, &value, &mut members).is_err() {
        return;
    }
    members.reverse();
    let again = layout.encode(&members, &mut value).expect("a pack has members");
    assert_eq!(again.as_ref(), key);
    let mut back = Vec::new();
    layout.decode(key, &value, &mut back).expect("an encoded pack decodes");
    back.reverse();
    assert_eq!(back, members);
}

/// Decodes a record of each kind and checks that its encoding is unique.
pub fn record(mut bytes: &[u8]) {
    let kind = choice(&mut bytes);
    // A fuzzer cannot guess a checksum, so half of the inputs get the right one.
    let bytes = if kind & 1 == 1 { codec::sealed(b"key", bytes) } else { bytes.to_vec() };
    let bytes = &bytes[..];
    match (kind >> 1) % 7 {
        0 => check_unique_encoding::<Document<u32>>(bytes),
        1 => check_unique_encoding::<Document<u64>>(bytes),
        2 => check_unique_encoding::<Document<u128>>(bytes),
        3 => check_unique_encoding::<State>(bytes),
        4 => check_unique_encoding::<Lane>(bytes),
        5 => check_unique_encoding::<ResourcePart>(bytes),
        _ => check_unique_encoding::<HeaderRecord>(bytes),
    }
    if let Ok(Document { features: Some(set), .. }) =
        codec::decode::<Document<u64>>("docs", b"key", bytes)
        && let Ok(decoded) = FeatureSet::decode(&set)
    {
        assert_eq!(decoded.encode(), set, "the encoding of a feature set is unique");
    }
}

fn check_unique_encoding<T: bincode::Encode + bincode::Decode<()>>(bytes: &[u8]) {
    if let Ok(record) = codec::decode::<T>("docs", b"key", bytes) {
        assert_eq!(codec::encode(b"key", &record), bytes, "the encoding of a record is unique");
    }
}

/// Decodes a header and everything it names: plan, pipeline, word tables.
pub fn header(bytes: &[u8]) {
    let _ = decode_header(bytes);
    if let Ok(record) = decode_header(&codec::sealed(b"header", bytes)) {
        let header = Header::of(&record);
        if let Ok(plan) = crate::index::plan_of(&record) {
            assert!(
                plan.require(header.distance).is_ok(),
                "{plan} is incomplete at the header's distance"
            );
        }
        if let Ok(pipeline) = Pipeline::from_descriptor(&header.pipeline) {
            assert_eq!(pipeline.descriptor(), header.pipeline);
        }
    }
    if let Ok(table) = IdfTable::from_bytes(bytes) {
        assert_eq!(table.to_bytes(), bytes, "the encoding of an IDF table is unique");
    }
}

/// Decodes the keys of all families and checks that they encode to the same bytes.
pub fn key(mut bytes: &[u8]) {
    match choice(&mut bytes) % 3 {
        0 => key_of::<u32>(bytes),
        1 => key_of::<u64>(bytes),
        _ => key_of::<u128>(bytes),
    }
}

fn key_of<F: Fingerprint>(bytes: &[u8]) {
    if let Ok(Some(name)) = delta_run::Name::of(bytes) {
        assert_eq!(name.key(), bytes);
    }
    for kind in [keys::Kind::Run, keys::Kind::Delta] {
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
