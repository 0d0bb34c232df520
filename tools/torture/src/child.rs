//! Child processes: this program started again, so that a kill, hang or abort spares the parent.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::report::{Finding, Verdict};

/// Seconds without a line after which a child is treated as hanging.
///
/// Waited for in steps of a second, so that a suspended machine is not mistaken for a hang.
const PATIENCE: u32 = 120;

/// A running child and the lines that it prints.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

/// The exit of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It finished its work.
    Done,
    /// It was killed by SIGKILL.
    Killed,
}

/// Returns this program, even if another build has replaced its file.
fn program() -> std::io::Result<PathBuf> {
    let running = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    if running.exists() { Ok(running) } else { std::env::current_exe() }
}

/// Sends a line to the parent.
pub(crate) fn send(line: &str) {
    let mut out = std::io::stdout().lock();
    // Without a parent, nobody reads the line.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl Running {
    /// Starts this program with a child task.
    pub(crate) fn start(task: &str, directory: &Path, arguments: &[String]) -> Verdict<Self> {
        Self::run(Command::new(program()?), task, directory, arguments)
    }

    /// Starts a child with variables for the shim.
    pub(crate) fn start_with(
        variables: &[(&str, String)],
        task: &str,
        directory: &Path,
        arguments: &[String],
    ) -> Verdict<Self> {
        let mut command = Command::new(program()?);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Self::run(command, task, directory, arguments)
    }

    /// Starts a child whose data segment has a limit, in KiB.
    pub(crate) fn start_within(
        kib: u64,
        task: &str,
        directory: &Path,
        arguments: &[String],
    ) -> Verdict<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -d {kib} && exec \"$0\" \"$@\"")]).arg(program()?);
        Self::run(command, task, directory, arguments)
    }

    fn run(
        mut command: Command,
        task: &str,
        directory: &Path,
        arguments: &[String],
    ) -> Verdict<Self> {
        let mut child = command
            .args(["child", task, "--directory"])
            .arg(directory)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let (sender, lines) = channel();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { child, lines })
    }

    /// Waits for the next line; returns `None` after the exit of the child.
    ///
    /// # Errors
    ///
    /// Returns a finding if the child prints nothing for too long, and kills it.
    pub(crate) fn line(&mut self) -> Verdict<Option<String>> {
        for _ in 0..PATIENCE {
            match self.lines.recv_timeout(Duration::from_secs(1)) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => (),
            }
        }
        self.kill()?;
        Err(Finding::wrong(format!("hangs: nothing for {PATIENCE} s")))
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&mut self) -> std::io::Result<()> {
        self.child.kill()
    }

    /// Waits for the exit of the child.
    ///
    /// # Errors
    ///
    /// Returns a finding unless it succeeded or was killed by SIGKILL.
    pub(crate) fn end(mut self) -> Verdict<End> {
        use std::os::unix::process::ExitStatusExt;

        let status = self.child.wait()?;
        if status.success() {
            Ok(End::Done)
        } else if status.signal() == Some(9) {
            Ok(End::Killed)
        } else {
            Err(Finding::wrong(format!("the process ended with {status}")))
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing if the child has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
