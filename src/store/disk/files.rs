//! Files: finds the MANIFEST and the logs, and reads all files again, bypassing all caches.

use std::io::{ErrorKind, Read};
use std::path::Path;

use rocksdb::DBRecoveryMode;

use super::directory::exists;
use super::seal::{Bounds, SealState};
use crate::error::{Error, Fault, Result};
use crate::store::data::cursor::sweeping;
use crate::store::open::settled;
use crate::store::open::tuning::MIN_MEMORY;
use crate::store::{Opened, engine_error, open_families, require_database};

/// Reads every block of every family, including unfinished generations, the log and the seal.
///
/// Calls `note` for each damage and `tick` after each entry. The log must end in a whole record, so
/// nothing may write to it meanwhile. The log is read before the first tick.
///
/// # Errors
///
/// Returns the errors of the callbacks and of the environment.
pub(crate) fn read_files(
    path: &Path,
    note: &mut dyn FnMut(Error) -> Result<()>,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    match SealState::read(path) {
        Ok(state) => state.damage().map_or(Ok(()), &mut *note)?,
        Err(error) if error.fault() == Fault::Damage => note(error)?,
        Err(error) => return Err(error),
    }
    let Opened { names, db, .. } = match settled::when_settled(path, || open(path)) {
        Err(error) if error.fault() == Fault::Damage => return note(error),
        opened => opened?,
    };
    for name in &names {
        let Some(handle) = db.cf_handle(name) else { continue };
        let mut entries = db.raw_iterator_cf_opt(handle, sweeping());
        entries.seek_to_first();
        while entries.valid() {
            tick()?;
            entries.next();
        }
        if let Err(error) = entries.status() {
            note(engine_error(name, error))?;
        }
    }
    Ok(())
}

/// Opens all families with separate caches, and reports a torn log as damage.
fn open(path: &Path) -> Result<Opened> {
    require_database(path)?;
    let bounds = Bounds::of_files(path)?;
    open_families(path, bounds, MIN_MEMORY, true, |tuning| {
        let mut options = tuning.database_as_it_is();
        options.set_wal_recovery_mode(DBRecoveryMode::AbsoluteConsistency);
        options
    })
}

/// Reads some bytes, also if signals interrupt it; returns 0 at the end.
pub(crate) fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            read => return read,
        }
    }
}

/// Returns name and number of the current MANIFEST, which must exist.
pub(super) fn current(path: &Path) -> Result<(String, u64)> {
    let (name, number) = named(path)?;
    if !exists(path, &name)? {
        return Err(Error::corrupt(name, "is missing"));
    }
    Ok((name, number))
}

/// Returns name and number of the MANIFEST that `CURRENT` names.
pub(super) fn named(path: &Path) -> Result<(String, u64)> {
    let file = path.join("CURRENT");
    let bytes = std::fs::read(&file).map_err(|e| Error::io(&file, e))?;
    let name = std::str::from_utf8(&bytes).ok().and_then(|name| name.strip_suffix('\n'));
    let number = name.and_then(|name| name.strip_prefix("MANIFEST-")?.parse().ok());
    match (name, number) {
        (Some(name), Some(number)) => Ok((name.to_owned(), number)),
        _ => Err(Error::corrupt("CURRENT", "names no MANIFEST")),
    }
}

/// Returns the names of the logs, oldest first.
pub(in crate::store) fn logs(path: &Path) -> Result<Vec<String>> {
    let fail = |e| Error::io(path, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        names.extend(name.to_str().filter(|name| log_number(name).is_some()).map(str::to_owned));
    }
    names.sort_unstable_by_key(|name| log_number(name));
    Ok(names)
}

pub(in crate::store) fn log_number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

pub(super) fn log_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// Returns the number of the last log, or 0 if there is none.
pub(super) fn last_log(path: &Path) -> Result<u64> {
    Ok(logs(path)?.last().and_then(|name| log_number(name)).unwrap_or(0))
}
