//! Full disk: calls fail for want of space or at a step; reads and later calls still work.
//!
//! The index is on a small separate file system, if this user may mount one. Otherwise only failing
//! steps are tested; tests/faults simulates a full disk by a limit of file sizes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastrand::Rng;
use hamdex::any::AnyBuilder;
use hamdex::{Error, Fault};

use crate::copies;
use crate::operation::{CYCLE, Operation, Size, operation, resume};
use crate::oracle::{Model, compare, documents, search, verify};
use crate::points::{self, POINTS, Point};
use crate::report::{Account, Finding, Limit, Verdict};
use crate::setup::{Handle, Setup};

/// Size of the file system in MiB.
const SPACE: u64 = 24;

/// A mounted file system in memory, unmounted on drop.
struct Mount(PathBuf);

impl Mount {
    /// Mounts the file system; returns `None` if that is not permitted.
    fn new(path: PathBuf) -> std::io::Result<Option<Self>> {
        fs::create_dir_all(&path)?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={SPACE}m"), "tmpfs"])
            .arg(&path)
            .stderr(Stdio::null())
            .status();
        Ok(mounted.is_ok_and(|status| status.success()).then_some(Self(path)))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If this fails, removing the temporary directory fails too and reports it.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A file that fills the file system.
struct Filler {
    path: PathBuf,
}

impl Filler {
    /// Leaves up to `kib` KiB free.
    fn leave(&self, kib: u64) -> std::io::Result<()> {
        self.remove()?;
        let mut length = SPACE << 10;
        let block = vec![7_u8; 1 << 10];
        let mut bytes = Vec::new();
        // Fills all free space, then truncates the file by `kib`.
        while length > 0 {
            bytes.extend_from_slice(&block);
            length -= 1;
        }
        let full = fs::write(&self.path, &bytes);
        let written = fs::metadata(&self.path)?.len();
        if full.is_ok() {
            return Ok(());
        }
        fs::File::options().write(true).open(&self.path)?.set_len(written.saturating_sub(kib << 10))
    }

    fn remove(&self) -> std::io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// An index to which calls may fail.
pub(crate) struct Patient {
    pub(crate) path: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) seed: u64,
    pub(crate) next: u64,
    pub(crate) model: Model,
}

impl Patient {
    /// Creates an index.
    pub(crate) fn new(path: PathBuf, seed: u64) -> hamdex::Result<Self> {
        let setup = Setup::drawn(seed).own();
        drop(setup.create(&path)?);
        Ok(Self { path, setup, seed, next: 0, model: Model::new() })
    }

    fn operation(&self) -> Operation {
        operation(self.setup, self.seed, self.next, Size::Small)
    }

    /// Makes the next call; an error must be a fault of the environment.
    ///
    /// Returns true if the call failed.
    pub(crate) fn call(&mut self, index: Handle) -> Verdict<bool> {
        let operation = self.operation();
        // A reader keeps the index open, but some calls need it closed.
        let reader = if operation.closes() { None } else { Some(index.reader()?) };
        let outcome = operation.run(index, &self.path);
        if let Some(reader) = reader {
            // The reader keeps the state before the call, even if the call failed.
            let before = reader.documents()?.collect::<hamdex::Result<Model>>()?;
            compare(&before, &self.model).map_err(|found| found.within("reading on"))?;
        }
        match outcome {
            Ok(index) => {
                operation.apply(&mut self.model);
                self.next += 1;
                compare(&documents(&index)?, &self.model)?;
                Ok(false)
            }
            Err(error) => {
                environment(&error)?;
                Ok(true)
            }
        }
    }

    /// Fails unless the call in flight may cause this error at the next opening.
    pub(crate) fn expected(&self, error: &Error) -> Verdict {
        match (error, self.operation()) {
            (Error::BuildUnfinished { .. }, Operation::Build(_))
            | (Error::RestoreUnfinished { .. }, Operation::Return(_)) => Ok(()),
            _ => environment(error),
        }
    }

    /// Opens with the cause removed: all acknowledged data is there, and the call succeeds.
    pub(crate) fn recover(&mut self, rng: &mut Rng) -> Verdict {
        let operation = self.operation();
        let index = match self.setup.open(&self.path) {
            Err(Error::BuildUnfinished { .. }) => {
                let Operation::Build(documents) = &operation else {
                    return Err(Finding::wrong(format!("{operation:?} left a build")));
                };
                if rng.bool() {
                    AnyBuilder::abandon(&self.path)?;
                    let index = self.setup.open(&self.path)?;
                    verify(&index, &self.model, rng)?;
                } else {
                    resume(self.setup, &self.path, documents)?;
                    operation.apply(&mut self.model);
                    self.next += 1;
                }
                self.setup.open(&self.path)?
            }
            Err(Error::RestoreUnfinished { .. }) if matches!(operation, Operation::Return(_)) => {
                copies::restore(&self.path)?;
                self.setup.open(&self.path)?
            }
            opened => opened?,
        };
        let stored = documents(&index)?;
        if stored != self.model {
            // A call that failed after its batch was written may be stored completely.
            let mut with_call = self.model.clone();
            operation.apply(&mut with_call);
            if stored == with_call {
                self.model = with_call;
                self.next += 1;
            }
        }
        verify(&index, &self.model, rng)?;
        if self.call(index)? {
            return Err(Finding::wrong("the call fails again without a cause"));
        }
        verify(&self.setup.open(&self.path)?, &self.model, rng)
    }
}

fn environment(error: &Error) -> Verdict {
    if error.fault() == Fault::Environment {
        return Ok(());
    }
    Err(Finding::wrong(format!("not reported as a fault of the environment: {error}")))
}

/// Fills the disk at a random moment in a sequence of calls.
fn fill(patient: &mut Patient, filler: &Filler, rng: &mut Rng) -> Verdict<&'static str> {
    filler.remove()?;
    let mut index = Some(patient.setup.open(&patient.path)?);
    for _ in 0..rng.u64(0..CYCLE) {
        if let Some(open_index) = index.take() {
            if patient.call(open_index)? {
                return Err(Finding::wrong("a call failed on a disk with space"));
            }
            index = Some(patient.setup.open(&patient.path)?);
        }
    }
    filler.leave(rng.u64(0..1500))?;
    for _ in 0..4 * CYCLE {
        let opened = match index.take() {
            Some(index) => Ok(index),
            None => patient.setup.open(&patient.path),
        };
        let failed = match opened {
            Ok(index) => patient.call(index)?,
            Err(error) => {
                patient.expected(&error)?;
                true
            }
        };
        if failed {
            if let Ok(index) = patient.setup.open_read_only(&patient.path) {
                search(&index, &documents(&index)?, rng, 4)?;
            }
            filler.remove()?;
            patient.recover(rng)?;
            return Ok("calls failed for want of space");
        }
        filler.leave(rng.u64(0..200))?;
    }
    filler.remove()?;
    Ok("space sufficed")
}

/// Makes one step fail, as with a failing disk.
fn break_step(patient: &mut Patient, name: &str, rng: &mut Rng) -> Verdict<&'static str> {
    let mut index = patient.setup.open(&patient.path)?;
    points::fail_once(name);
    for _ in 0..CYCLE + 2 {
        if patient.call(index)? {
            points::pass_again(name);
            patient.recover(rng)?;
            return Ok("calls failed at a step");
        }
        index = match patient.setup.open(&patient.path) {
            Ok(index) => index,
            Err(error) => {
                patient.expected(&error)?;
                points::pass_again(name);
                patient.recover(rng)?;
                return Ok("calls failed at a step");
            }
        };
    }
    points::pass_again(name);
    Ok("steps not reached")
}

/// Fills disks and breaks steps until the limit.
pub(crate) fn run(directory: &Path, seed: u64, limit: Limit) -> Account {
    let mut account = Account::new("full disk");
    let rng = &mut Rng::with_seed(seed);
    let mount = match Mount::new(directory.join("small")) {
        Ok(mount) => mount,
        Err(error) => {
            account.find(error.into());
            return account;
        }
    };
    if mount.is_none() {
        account.count("mounts not permitted");
    }
    let reached =
        |point: &&Point| !point.creates && point.after.is_none() && !point.spills && !point.shards;
    let mut names = POINTS.iter().filter(reached).cycle();
    while limit.goes_on(&account) {
        account.tried();
        let round = account.tries();
        let setup = Setup::drawn(seed + round).own();
        let context = format!("full disk, seed {seed}, round {round} ({setup})");
        let place = mount.as_ref().map_or(directory, |mount| &mount.0);
        let path = place.join("patient");
        let outcome = Patient::new(path.clone(), seed + round).map_err(Finding::from).and_then(
            |mut patient| {
                if let Some(mount) = &mount {
                    let filler = Filler { path: mount.0.join("filler") };
                    account.count(fill(&mut patient, &filler, rng)?);
                }
                if points::ENABLED {
                    for point in names.by_ref().take(4) {
                        let broken = break_step(&mut patient, point.name, rng);
                        account.count(broken.map_err(|found| found.within(point.name))?);
                    }
                }
                Ok(())
            },
        );
        account.judge(outcome.map_err(|found| found.within(&context)));
        copies::remove(&path);
    }
    account.end();
    account
}
