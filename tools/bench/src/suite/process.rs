//! Processes of contenders: run one after the other, and killed if they are too slow.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::contender::{Contender, Host};
use crate::row::Row;

/// The inputs and settings of a contender's process.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) data: PathBuf,
    pub(crate) queries: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) driver: PathBuf,
    pub(crate) python: Option<PathBuf>,
    pub(crate) distances: String,
    pub(crate) repetitions: usize,
    pub(crate) budget: f64,
    /// Maximum time of a peer between two rows; the first row is its build.
    pub(crate) patience: Duration,
}

/// Maximum time of our engines between two rows.
const LONG_PATIENCE: Duration = Duration::from_hours(1);

/// Runs a contender at one size; reports a failure as a row.
pub(crate) fn run(contender: &Contender, n: u64, ground: &Ground) -> Vec<Row> {
    let absent = |note: String| vec![Row::absent(contender.name, n, note)];
    let mut command = match (contender.host, &ground.python) {
        (Host::Python, None) => return absent("no Python given".into()),
        (Host::Python, Some(python)) => {
            let mut command = Command::new(python);
            command.arg(&ground.driver);
            command
        }
        (Host::Rust, _) => match std::env::current_exe() {
            Ok(program) => {
                let mut command = Command::new(program);
                command.arg("measure");
                command
            }
            Err(error) => return absent(error.to_string()),
        },
    };
    let path = |path: &Path| path.as_os_str().to_owned();
    command
        .args(["--engine", contender.name])
        .args(["--data".into(), path(&ground.data)])
        .args(["--queries".into(), path(&ground.queries)])
        .args(["--dir".into(), path(&ground.dir)])
        .args(["--count", &n.to_string(), "--distances", &ground.distances])
        .args(["--repetitions", &ground.repetitions.to_string()])
        .args(["--budget", &ground.budget.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let patience = if contender.ours { LONG_PATIENCE } else { ground.patience };
    match command.spawn() {
        Ok(child) => read(child, contender, n, patience),
        Err(error) => absent(error.to_string()),
    }
}

fn read(mut child: Child, contender: &Contender, n: u64, patience: Duration) -> Vec<Row> {
    let (sender, receiver) = mpsc::channel();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Each pipe has its own thread, so that neither fills up.
    std::thread::spawn(move || {
        for line in stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        stderr.map(|mut pipe| pipe.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut rows = Vec::new();
    let slow = loop {
        match receiver.recv_timeout(patience) {
            Ok(line) => rows.extend(Row::parse(&line)),
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
            Err(mpsc::RecvTimeoutError::Timeout) => break true,
        }
    };
    if slow {
        // Fails only if the process has exited meanwhile.
        child.kill().unwrap_or_default();
    }
    let success = child.wait().is_ok_and(|status| status.success());
    let errors = errors.join().unwrap_or_default();
    if slow {
        let note = format!("took over {} s for a row", patience.as_secs());
        rows.push(Row::absent(contender.name, n, note));
    } else if !success {
        let last = errors.lines().rev().find(|line| !line.trim().is_empty());
        rows.push(Row::absent(contender.name, n, last.unwrap_or("failed without a message")));
    }
    rows
}
