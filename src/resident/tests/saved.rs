use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const SEED: u64 = 41;

/// Saves tables and maps them from a file, which stays open after it is removed.
pub(super) fn mapped<F: Fingerprint>(tables: &ResidentTables<F>) -> ResidentTables<F> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tables");
    tables.save(&path).unwrap();
    let opened = ResidentTables::open(&path).unwrap();
    assert!(opened.is_mapped() && !tables.is_mapped());
    assert_eq!(opened.len(), tables.len());
    opened
}

/// Tables with cells whose columns take several pages, their members, and the file of both.
fn saved_cells(directory: &Path) -> (Vec<u64>, PathBuf) {
    let mut random = Random(SEED);
    let set: Vec<u64> = (0..5000).map(|_| random.next()).collect();
    let path = directory.join("tables");
    let tables = in_cells(&set, 4, (4, 3));
    assert!(tables.own_blocks.is_none(), "all pages of flat sets are compared when opening");
    tables.save(&path).unwrap();
    (set, path)
}

fn mapped_tables_equal_the_linear_scan<F: Fingerprint>() {
    let mut random = Random(SEED);
    for len in [0, 1, 2, 33, 4000] {
        let mut of_this_size = sets::<F>(len, &mut random);
        of_this_size.push(skewed(len, &mut random));
        for set in of_this_size {
            for (tables, cells) in [(2, (9, 0)), (F::BITS / BLOCK_BITS, (4, 6))] {
                let opened = mapped(&in_cells(&set, tables, cells));
                compare_with_scan(&opened, &set, &mut random, &format!("seed {SEED}, {cells:?}"));
                opened.verify().unwrap();
            }
        }
    }
}

#[test]
fn mapped_tables_of_32_bits_equal_the_linear_scan() {
    mapped_tables_equal_the_linear_scan::<u32>();
}

#[test]
fn mapped_tables_of_64_bits_equal_the_linear_scan() {
    mapped_tables_equal_the_linear_scan::<u64>();
}

#[test]
fn mapped_tables_of_128_bits_equal_the_linear_scan() {
    mapped_tables_equal_the_linear_scan::<u128>();
}

#[test]
fn a_changed_byte_is_found_before_it_changes_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let (set, path) = saved_cells(directory.path());
    let bytes = fs::read(&path).unwrap();
    // Matches at the very distance, which a changed bit of any column loses.
    let three = 1 << 3 | 1 << 27 | 1 << 51;
    let queries: Vec<u64> = set.iter().step_by(5).map(|&member| member ^ three).collect();
    let tables = ResidentTables::<u64>::open(&path).unwrap();
    let wanted = tables.search_batch(&queries, 3).unwrap();
    let (mut opened, mut met, mut padding) = (0, 0, 0);
    for at in (0..bytes.len()).step_by(397).chain((0..200).step_by(7)) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let place = directory.path().join("changed");
        fs::write(&place, &changed).unwrap();
        let tables = match ResidentTables::<u64>::open(&place) {
            Err(Error::Corrupt { .. } | Error::FormatVersion { .. }) => continue,
            tables => tables.unwrap(),
        };
        opened += 1;
        match tables.search_batch(&queries, 3) {
            Ok(answers) => assert_eq!(answers, wanted, "byte {at}"),
            Err(error) => {
                assert!(matches!(error, Error::Corrupt { .. }), "byte {at}: {error}");
                met += 1;
                assert!(tables.search(set[0], 3).is_err(), "byte {at}: an error stays");
            }
        }
        assert!(tables.scan(queries[0], 3).is_ok() || tables.verify().is_err(), "byte {at}");
        match tables.verify() {
            Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "byte {at}: {error}"),
            // Between two parts and behind the last there are bytes that nobody reads.
            Ok(()) => padding += 1,
        }
    }
    assert!(met > 100 && opened >= met && padding < opened, "{met} of {opened}, {padding}");
}

#[test]
fn a_file_that_ends_early_or_late_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = saved_cells(directory.path());
    let bytes = fs::read(&path).unwrap();
    let lengths = [0, 1, 15, 4095, 4096, 8191, bytes.len() - 4096, bytes.len() - 1];
    let longer = [bytes.clone(), vec![0; 4096]].concat();
    for changed in lengths.iter().map(|&len| &bytes[..len]).chain([&longer[..]]) {
        fs::write(&path, changed).unwrap();
        let error = ResidentTables::<u64>::open(&path).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{} bytes: {error}", changed.len());
    }
}

#[test]
fn another_width_and_a_later_format_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = saved_cells(directory.path());
    let other = ResidentTables::<u32>::open(&path).unwrap_err();
    assert!(matches!(other, Error::WidthMismatch { stored: 64, wanted: 32 }), "{other}");
    let mut bytes = fs::read(&path).unwrap();
    bytes[11] = 2;
    fs::write(&path, bytes).unwrap();
    let later = ResidentTables::<u64>::open(&path).unwrap_err();
    assert!(matches!(later, Error::FormatVersion { stored: 2, supported: 1 }), "{later}");
}

#[test]
fn a_file_of_somebody_else_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let tables = ResidentTables::build(&[1_u64, 2]).unwrap();
    for name in ["tables", "tables.new"] {
        let (path, foreign) = (directory.path().join("tables"), directory.path().join(name));
        fs::write(&foreign, b"notes of somebody else").unwrap();
        let error = tables.save(&path).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert_eq!(fs::read(&foreign).unwrap(), b"notes of somebody else");
        fs::remove_file(&foreign).unwrap();
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_replaced_while_it_is_open_still_answers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tables");
    ResidentTables::build(&[1_u64, 2]).unwrap().save(&path).unwrap();
    let before = ResidentTables::<u64>::open(&path).unwrap();
    ResidentTables::build(&[4_u64]).unwrap().save(&path).unwrap();
    let after = ResidentTables::<u64>::open(&path).unwrap();
    assert_eq!(before.search(1, 0).unwrap().len(), 1);
    assert!(after.search(1, 0).unwrap().is_empty());
    assert_eq!(after.search(4, 0).unwrap().len(), 1);
}

#[test]
fn only_the_wanted_origin_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tables");
    let open = |origin: &[u8]| {
        ResidentTables::<u64>::open_of(&path, || Ok(origin.to_vec()), Costs::default())
    };
    assert!(open(b"a").unwrap().is_none(), "there is no file");
    let saved = ResidentTables::save_distinct(&[1_u64, 2], 1 << 20, &path, b"a".to_vec());
    assert_eq!(saved.unwrap(), Some(fs::metadata(&path).unwrap().len()));
    assert!(open(b"b").unwrap().is_none());
    assert_eq!(open(b"a").unwrap().unwrap().len(), 2);
    let small = ResidentTables::save_distinct(&[1_u64], 10, &path, b"b".to_vec());
    assert_eq!(small.unwrap(), None, "the budget is too small");
    assert!(open(b"a").unwrap().is_some(), "the earlier file stays");
}
