//! Permissions and disk space: a child of this binary runs without permission or on a full disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use hamdex::build::{BuildOptions, Builder};
use hamdex::inspect::Header;
use hamdex::{Durability, Error, Fault, Index, IndexOptions, Result};

use crate::support::{Model, Rng, assert_holds, options};

const TASK: &str = "HAMDEX_FAULTS_TASK";
const DIRECTORY: &str = "HAMDEX_FAULTS_DIRECTORY";

#[test]
#[ignore = "the child that other tests start with fewer rights"]
fn child() {
    let (Ok(task), Ok(directory)) = (std::env::var(TASK), std::env::var(DIRECTORY)) else {
        return;
    };
    let directory = Path::new(&directory);
    match task.as_str() {
        "without permission" => without_permission(directory),
        "fill the disk" => fill_the_disk(directory),
        task => panic!("unknown task {task}"),
    }
}

/// Starts this binary again under a shell that first removes permissions.
fn child_process(shell: &str, task: &str, directory: &Path) -> Command {
    // Another user may not be able to read the directory that the binary was built in.
    let binary = directory.join("tests");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(format!("{shell}\nexec \"$0\" --exact rights::child --ignored --nocapture"))
        .arg(binary)
        .env(TASK, task)
        .env(DIRECTORY, directory);
    command
}

fn assert_success(output: &Output) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "child: {}\n{out}\n{err}", output.status);
    assert!(out.contains("1 passed"), "the child did nothing:\n{out}\n{err}");
}

/// Runs as a user who may read the directories but not change them.
fn without_permission(directory: &Path) {
    let denied = |error: Error| {
        let Error::Io { path, source } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
        assert!(path.starts_with(directory), "{error}");
        assert_eq!(error.fault(), Fault::Environment);
    };
    let build = BuildOptions::new();
    denied(Index::<u64>::create(directory.join("new"), &IndexOptions::new()).unwrap_err());
    let new = directory.join("new");
    denied(Builder::<u64>::create(new, &IndexOptions::new(), &build).unwrap_err());
    denied(Index::<u64>::open(directory.join("index")).unwrap_err());
    denied(Index::<u64>::create(directory.join("shut"), &IndexOptions::new()).unwrap_err());
    denied(Index::<u64>::open(directory.join("shut")).unwrap_err());
    denied(Header::read(directory.join("shut")).unwrap_err());
}

#[test]
fn directories_without_permission_are_refused_by_name() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    Index::<u64>::create(path.join("index"), &options::<u64>("4"))?.insert(b"a", 1)?;
    fs::create_dir(path.join("shut")).unwrap();
    let mode = |name: &str, mode| {
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("shut", 0o000);
    mode("index", 0o555);
    let mut child = child_process(":", "without permission", path);
    mode("", 0o555);
    if fs::write(path.join("probe"), []).is_ok() {
        // The superuser has all permissions, so the child runs as another user.
        child.uid(65_534).gid(65_534);
    }
    let output = child.output().unwrap();
    for name in ["", "shut", "index"] {
        mode(name, 0o755);
    }
    assert_success(&output);
    assert_eq!(Index::<u64>::open(path.join("index"))?.get(b"a")?, Some(1));
    Ok(())
}

fn batch(number: u64) -> Vec<(Vec<u8>, u64)> {
    let rng = &mut Rng::new(number);
    (0..50_u64).map(|at| ((number * 50 + at).to_be_bytes().to_vec(), rng.number())).collect()
}

/// Writes until the files reach their size limit.
fn fill_the_disk(directory: &Path) {
    let index = Index::<u64>::open(directory.join("index")).unwrap();
    for number in 0.. {
        if let Err(error) = index.insert_batch(&batch(number), Durability::Buffered) {
            assert_eq!(error.fault(), Fault::Environment, "{error}");
            fs::write(directory.join("acknowledged"), number.to_string()).unwrap();
            let again = index.insert_batch(&batch(number + 1), Durability::Buffered);
            assert!(again.is_err(), "a log with a hole was extended");
            assert_eq!(index.len().unwrap(), number * 50, "reading still works");
            return;
        }
        assert!(number < 10_000, "the disk never fills");
    }
}

#[test]
fn a_full_disk_is_a_typed_error_and_loses_nothing_acknowledged() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    drop(Index::<u64>::create(path.join("index"), &options::<u64>("4"))?);
    // Above some hundred kilobytes writes fail as on a full disk.
    let shell = "trap '' XFSZ\nulimit -f 600";
    let output = child_process(shell, "fill the disk", path).output().unwrap();
    assert_success(&output);
    let acknowledged = fs::read_to_string(path.join("acknowledged")).unwrap();
    let acknowledged: u64 = acknowledged.parse().unwrap();
    assert!(acknowledged > 3, "{acknowledged} batches");
    let index = Index::<u64>::open(path.join("index"))?;
    let model: Model<u64> = (0..acknowledged).flat_map(batch).collect();
    assert_holds(&index, &model, "after the full disk");
    index.insert_batch(&batch(acknowledged), Durability::Synced)?;
    assert_eq!(index.len()?, (acknowledged + 1) * 50);
    Ok(())
}
