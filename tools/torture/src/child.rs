//! Children: this program started again, to be killed, to hang or to abort in its parent's place.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::report::{Finding, Verdict};

/// How long a child may be silent before it counts as hanging.
///
/// Waited for second by second: a machine that stands still in between is not the child's fault.
const PATIENCE: u32 = 120;

/// A running child and the lines that it tells.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with its work done.
    Done,
    /// By the signal that it was sent.
    Killed,
}

/// This program, also when another build took the place of its file in the meantime.
fn program() -> std::io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

/// Tells the parent a line.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone has killed this process, or is about to.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl Running {
    /// Starts this program again with a task for a child.
    pub(crate) fn start(task: &str, directory: &Path, arguments: &[String]) -> Verdict<Self> {
        let mut child = Command::new(program()?)
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

    /// Waits for the next line; `None` when the child has ended.
    ///
    /// # Errors
    ///
    /// A child that stays silent for too long, which is then killed.
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

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// A child that ended in any other way than by itself with success, or by SIGKILL.
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
        // A child that already ended is neither killed nor waited for twice.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
