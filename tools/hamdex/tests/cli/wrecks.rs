//! Damage: the doctor sees a bad seal, and a repair does without the list of files.

use std::fs;

use crate::support::{PRINTS, stored};

#[test]
fn the_doctor_tells_a_missing_a_damaged_and_a_foreign_seal() {
    let bench = stored();
    bench.file("more.jsonl", "{\"id\":\"d\",\"fingerprint\":\"0000000000000000\"}\n");
    bench.ok("build other prints.jsonl");
    let foreign = fs::read(bench.path("other/hamdex.seal")).unwrap();
    for _ in 0..3 {
        bench.ok("insert idx more.jsonl");
    }
    let seal = bench.path("idx/hamdex.seal");
    let whole = fs::read(&seal).unwrap();
    let graded = || {
        let outcome = bench.run("doctor idx --json");
        let line = outcome.json().into_iter().find(|line| line["check"] == "seal").unwrap();
        let found = line["found"].as_str().unwrap().to_owned();
        (outcome.status, line["grade"].as_str().unwrap().to_owned(), found)
    };
    assert_eq!(graded().1, "good");
    for at in [0, 1, 8, 20, 100, 1000, 4000] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&seal, bytes).unwrap();
        let (status, grade, found) = graded();
        assert_eq!((status, &*grade), (1, "bad"), "byte {at}: {found}");
        assert!(found.contains("damaged"), "{found}");
        for verb in ["check", "stats"] {
            let outcome = bench.ok(&format!("{verb} idx"));
            assert!(outcome.stderr.contains("hamdex.seal"), "{verb}: {}", outcome.stderr);
        }
    }
    fs::write(&seal, foreign).unwrap();
    let (status, grade, found) = graded();
    assert_eq!((status, &*grade), (1, "bad"), "{found}");
    fs::remove_file(&seal).unwrap();
    let (status, grade, found) = graded();
    assert_eq!((status, &*grade), (1, "bad"), "{found}");
    assert!(found.contains("missing"), "{found}");
}

#[test]
fn a_repair_does_without_the_list_of_files() {
    for name in ["CURRENT", "MANIFEST"] {
        let bench = stored();
        let files = fs::read_dir(bench.path("idx")).unwrap().map(|entry| entry.unwrap().path());
        let file = files
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name))
            .max()
            .unwrap();
        let mut bytes = fs::read(&file).unwrap();
        bytes[2] ^= 0xff;
        fs::write(&file, bytes).unwrap();
        assert_ne!(bench.run("stats idx").status, 0, "{name}");
        let outcome = bench.ok("repair idx repaired --json");
        let summary = &outcome.json()[0];
        assert_eq!((&summary["documents"], &summary["from_files"]), (&3.into(), &true.into()));
        assert_eq!(bench.export("repaired"), PRINTS);
    }
}

#[test]
fn what_cannot_be_repaired_is_not_sent_back_to_repair() {
    let bench = stored();
    for entry in fs::read_dir(bench.path("idx")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst" || extension == "log") {
            fs::remove_file(&path).unwrap();
        }
    }
    let outcome = bench.run("repair idx repaired");
    assert_ne!(outcome.status, 0);
    assert!(!outcome.stderr.contains("'hamdex index repair'"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("'hamdex index restore'"), "{}", outcome.stderr);
    assert!(!bench.path("repaired").exists());
}
