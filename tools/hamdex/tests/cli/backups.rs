//! `backup`, `restore` and `repair`: what is lost comes back, and damage is reported.

use std::fs;

use serde_json::json;

use crate::support::{EXPORTED, PRINTS, stored};

#[test]
fn a_backup_restores_to_the_index_of_then() {
    let bench = stored();
    bench.file("more.jsonl", "{\"id\":\"d\",\"fingerprint\":\"0000000000000000\"}\n");
    let first = &bench.ok("backup idx backups --json").json()[0];
    assert_eq!((&first["id"], &first["removed"]), (&json!(1), &json!([])));
    assert_eq!(first["bytes"], first["copied_bytes"]);
    bench.ok("insert idx more.jsonl");
    let second = &bench.ok("backup idx backups --verify --json").json()[0];
    assert_eq!((&second["id"], &second["verified"]), (&json!(2), &json!(true)));
    assert!(second["copied_files"].as_u64() < second["files"].as_u64(), "{second}");
    let restored = &bench.ok("restore backups new --json").json()[0];
    assert_eq!((&restored["id"], &restored["documents"]), (&json!(2), &json!(4)));
    assert_eq!(bench.export("new"), bench.export("idx"));
    bench.ok("check new --deep");
    bench.ok("restore backups old --backup-id 1");
    assert_eq!(bench.export("old"), EXPORTED);
    let table = bench.ok("backup idx backups").stdout;
    for name in ["backup", "files copied", "bytes copied", "backups removed", "seconds"] {
        assert!(table.contains(name), "{table}");
    }
}

#[test]
fn backups_are_listed_verified_and_kept_by_number() {
    let bench = stored();
    for _ in 0..3 {
        bench.ok("backup idx backups");
    }
    let last = &bench.ok("backup idx backups --keep 2 --json").json()[0];
    assert_eq!(last["removed"], json!([1, 2]));
    for list in ["restore backups --list --json", "backup idx backups --list --json"] {
        let rows = bench.ok(list).json();
        assert_eq!(rows.iter().map(|row| &row["id"]).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(rows[1]["damage"], json!(null));
        assert!(rows[1]["created"].as_u64() > Some(1_600_000_000));
    }
    let table = bench.ok("restore backups --list").stdout;
    assert!(table.starts_with("backup") && table.contains("none seen"), "{table}");
    let verified = &bench.ok("restore backups --verify --json").json()[0];
    assert_eq!((&verified["id"], &verified["verified"]), (&json!(4), &json!(true)));
    bench.run("restore backups new --backup-id 1").refused(6, &["no backup 1", "--list"]);
    bench.run("backup idx backups --keep 0").refused(2, &["keep"]);
}

#[test]
fn a_damaged_backup_is_refused_with_the_remedy() {
    let bench = stored();
    bench.ok("backup idx backups");
    bench.ok("backup idx backups");
    let current = bench.read("backups/private/2/CURRENT");
    bench.file("backups/private/2/CURRENT", current.replacen("MANIFEST", "MANIFESU", 1));
    for call in ["restore backups new", "restore backups --verify"] {
        bench.run(call).refused(4, &["backup 2", "--backup-id", "--list"]);
    }
    assert!(!bench.path("new").exists());
    bench.run("restore backups idx --replace").refused(4, &["backup 2"]);
    assert_eq!(bench.export("idx"), EXPORTED);
    bench.ok("restore backups new --backup-id 1");
    assert_eq!(bench.export("new"), EXPORTED);
}

#[test]
fn what_is_there_is_given_up_only_by_replace() {
    let bench = stored();
    bench.ok("backup idx backups");
    bench.ok("remove idx --id a");
    bench.run("restore backups idx").refused(1, &["idx", "--replace"]);
    assert_eq!(bench.export("idx").lines().count(), 2);
    bench.ok("restore backups idx --replace");
    assert_eq!(bench.export("idx"), EXPORTED);
    bench.run("backup idx idx").refused(2, &["contain each other"]);
    bench.file("thesis/thesis.txt", "years of work");
    bench.run("backup idx thesis").refused(1, &["thesis", "already holds"]);
    bench.run("restore thesis new").refused(6, &["thesis", "no backup"]);
    bench.run("restore backups").refused(2, &["INDEX"]);
}

#[test]
fn an_index_that_another_process_writes_is_backed_up() {
    let bench = stored();
    let index = hamdex::Index::<u64>::open(bench.path("idx")).unwrap();
    index.insert(b"d", 0).unwrap();
    bench.run("remove idx --id a").refused(5, &["in use"]);
    bench.ok("backup idx backups");
    index.insert(b"e", 1).unwrap();
    bench.ok("backup idx backups");
    for (id, lines) in [(1, 4), (2, 5)] {
        bench.ok(&format!("restore backups new-{id} --backup-id {id}"));
        assert_eq!(bench.export(&format!("new-{id}")).lines().count(), lines);
    }
}

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
