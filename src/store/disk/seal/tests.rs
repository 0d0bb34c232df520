use std::fs;

use super::*;

fn sealed(manifest: &[u8]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("CURRENT"), "MANIFEST-000005\n").unwrap();
    fs::write(directory.path().join("MANIFEST-000005"), manifest).unwrap();
    directory
}

fn require(path: &Path) -> Result<()> {
    Bounds::read(path)?.expect("a seal was written").require_files(path)
}

#[test]
fn records_have_the_length_of_a_slot() {
    assert_eq!(codec::encode(KEY, &Bounds::default()).len(), RECORD);
}

#[test]
fn a_manifest_may_grow_and_never_shrink_or_change() {
    let directory = sealed(b"first edits");
    let path = directory.path();
    let manifest = path.join("MANIFEST-000005");
    drop(Seal::begin(path, None).unwrap());
    require(path).unwrap();
    fs::write(&manifest, b"first edits and more").unwrap();
    require(path).unwrap();
    for bad in [&b"first edit"[..], b"first Edits and more", b""] {
        fs::write(&manifest, bad).unwrap();
        assert!(matches!(require(path), Err(Error::Corrupt { .. })), "{bad:?}");
    }
}

#[test]
fn what_is_written_while_the_seal_is_open_is_sealed_at_its_end() {
    let directory = sealed(b"first");
    let path = directory.path();
    let seal = Seal::begin(path, None).unwrap();
    fs::write(path.join("MANIFEST-000005"), b"first, second").unwrap();
    seal.synced(9).unwrap();
    fs::write(path.join("MANIFEST-000005"), b"first, second, third").unwrap();
    drop(seal);
    require(path).unwrap();
    let bounds = Bounds::read(path).unwrap().unwrap();
    assert_eq!((bounds.length, bounds.sequence), (20, 9));
    assert!(bounds.require_sequence(9).is_ok());
    assert!(matches!(bounds.require_sequence(8), Err(Error::Corrupt { .. })));
}

#[test]
fn an_older_or_missing_manifest_is_damage_and_a_newer_one_is_not() {
    let directory = sealed(b"edits");
    let path = directory.path();
    drop(Seal::begin(path, None).unwrap());
    for (current, sound) in [("MANIFEST-000004", false), ("MANIFEST-000006", true)] {
        fs::write(path.join("CURRENT"), format!("{current}\n")).unwrap();
        assert!(matches!(require(path), Err(Error::Corrupt { .. })), "{current} is missing");
        fs::write(path.join(current), b"edits").unwrap();
        assert_eq!(require(path).is_ok(), sound, "{current}");
    }
    fs::write(path.join("CURRENT"), "MANIFEST-000006").unwrap();
    assert!(matches!(require(path), Err(Error::Corrupt { .. })), "the line end is missing");
}

#[test]
fn a_damaged_slot_leaves_the_other_and_two_are_damage() {
    let directory = sealed(b"edits");
    let path = directory.path();
    let seal = Seal::begin(path, None).unwrap();
    seal.synced(7).unwrap();
    drop(seal);
    let name = path.join(SEAL_FILE);
    let sound = fs::read(&name).unwrap();
    for slot in [0, 4096] {
        let mut bad = sound.clone();
        bad[slot + 9] ^= 1;
        fs::write(&name, &bad).unwrap();
        require(path).unwrap();
        assert!(matches!(SealState::read(path), Ok(SealState::Damaged { .. })));
        bad[4096 - slot + 9] ^= 1;
        fs::write(&name, &bad).unwrap();
        assert!(matches!(Bounds::read(path), Err(Error::Corrupt { .. })));
    }
    fs::write(&name, &sound[..20]).unwrap();
    assert!(matches!(Bounds::read(path), Err(Error::Corrupt { .. })), "cut");
    fs::remove_file(&name).unwrap();
    assert_eq!(Bounds::read(path).unwrap(), None, "an index from before there were seals");
}

#[test]
fn after_a_regular_end_the_last_log_is_exact() {
    let directory = sealed(b"edits");
    let path = directory.path();
    let log = path.join("000004.log");
    fs::write(&log, b"records").unwrap();
    let seal = Seal::begin(path, None).unwrap();
    drop(seal);
    fs::write(&log, b"more records").unwrap();
    require(path).expect("the log may grow after an irregular end");

    let seal = Seal::begin(path, None).unwrap();
    seal.end();
    drop(seal);
    require(path).unwrap();
    for bad in [&b"more records."[..], b"more record", b"More records"] {
        fs::write(&log, bad).unwrap();
        assert!(matches!(require(path), Err(Error::Corrupt { .. })), "{bad:?}");
    }
    fs::write(&log, b"more records").unwrap();
    fs::write(path.join("000006.log"), b"").unwrap();
    require(path).expect("a process that stopped while opening the index made a later log");
    fs::remove_file(&log).unwrap();
    assert!(matches!(require(path), Err(Error::Corrupt { .. })), "no log");

    fs::write(path.join("MANIFEST-000009"), b"edits").unwrap();
    fs::write(path.join("CURRENT"), "MANIFEST-000009\n").unwrap();
    require(path).expect("a later process ended before sealing");
    fs::write(path.join("CURRENT"), "MANIFEST-000005\n").unwrap();

    fs::write(&log, b"more records").unwrap();
    let bounds = Bounds::read(path).unwrap();
    let _open = Seal::begin(path, bounds).unwrap();
    fs::write(&log, b"more records, and some").unwrap();
    require(path).expect("the log of an open index may grow");
}

/// Reads a byte at a time, interrupted before each.
struct Interrupted(bool, &'static [u8]);

impl Read for Interrupted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0 = !self.0;
        if self.0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let length = buffer.len().min(1);
        self.1.read(&mut buffer[..length])
    }
}

#[test]
fn interrupted_and_short_reads_give_the_same_checksum() {
    let bytes = b"edits of a MANIFEST";
    let mut hasher = crc32fast::Hasher::new();
    assert_eq!(hash(&mut Interrupted(false, bytes), &mut hasher).unwrap(), bytes.len() as u64);
    assert_eq!(hasher.finalize(), crc32fast::hash(bytes));
}

#[test]
fn a_seal_that_cannot_be_read_is_no_damage() {
    let directory = sealed(b"edits");
    // Reading a directory fails with an error of the system.
    fs::create_dir(directory.path().join(SEAL_FILE)).unwrap();
    let error = Bounds::read(directory.path()).unwrap_err();
    assert_eq!(error.fault(), crate::error::Fault::Environment, "{error}");
}
