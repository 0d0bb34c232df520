//! What every test needs: a directory, the program, and what came of a call.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory in which the program runs, so that messages hold relative paths.
pub(crate) struct Bench {
    dir: TempDir,
}

/// What a call left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, making the directories above it.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hamdex"));
        command.current_dir(self.dir.path()).args(args.split_whitespace());
        command
    }

    /// Runs the program; words of the arguments are separated by white space.
    pub(crate) fn run(&self, args: &str) -> Outcome {
        outcome(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs the program with bytes on its standard input.
    pub(crate) fn feed(&self, args: &str, input: &[u8]) -> Outcome {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A program that stops early closes the pipe, which is its right.
            scope.spawn(move || stdin.write_all(input));
            outcome(child.wait_with_output().unwrap())
        })
    }

    /// Runs the program and expects success.
    pub(crate) fn ok(&self, args: &str) -> Outcome {
        let outcome = self.run(args);
        assert_eq!(outcome.status, 0, "hamdex {args}: {}", outcome.stderr);
        outcome
    }

    /// Every document of an index, as `export` shows it.
    pub(crate) fn export(&self, index: &str) -> String {
        let export = self.ok(&format!("export {index}")).stdout;
        let (header, rows) = export.split_once('\n').unwrap();
        assert!(header.starts_with("{\"hamdex_export\":1,"), "{header}");
        rows.to_owned()
    }
}

impl Outcome {
    /// Expects a failure with this status and every one of these words in its message.
    pub(crate) fn refused(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {:?}", self.stderr);
        }
        assert!(self.stdout.is_empty(), "{self:?}");
    }

    /// The lines of standard output as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        json_lines(&self.stdout)
    }
}

pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn outcome(output: Output) -> Outcome {
    Outcome {
        status: output.status.code().expect("the program ends by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Rows with fingerprints: `a` and `b` differ in one bit, `c` is far from both.
pub(crate) const PRINTS: &str = "\
{\"id\":\"a\",\"fingerprint\":\"00000000000000ff\"}
{\"id\":\"b\",\"fingerprint\":\"00000000000000fe\"}
{\"id\":\"c\",\"fingerprint\":\"ffffffff00000000\"}
";

/// The same as `export` writes it.
pub(crate) const EXPORTED: &str = PRINTS;

/// A bench with an index of [`PRINTS`] named `idx`.
pub(crate) fn stored() -> Bench {
    let bench = Bench::new();
    bench.file("prints.jsonl", PRINTS);
    bench.ok("build idx prints.jsonl");
    bench
}
