//! Files: everything on the disk is read anew, past all caches, and its checksums are compared.

use std::path::Path;

use rocksdb::DBRecoveryMode;

use super::cursor::sweeping;
use super::seal::{Bounds, SealState};
use super::tuning::MIN_MEMORY;
use super::{Opened, engine_error, open_families, require_database, settled};
use crate::error::{Error, Fault, Result};

/// Reads every block of every family, of unfinished generations too, the log and the seal.
///
/// Calls `note` with each damage and `tick` after each entry. The log must hold whole records
/// only, so nothing may write to it meanwhile; it is read before the first tick.
///
/// # Errors
///
/// What the callbacks return, and failures of the environment.
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

/// Opens all families with caches of its own, and takes no torn log for a power loss.
fn open(path: &Path) -> Result<Opened> {
    require_database(path)?;
    let bounds = Bounds::of_files(path)?;
    open_families(path, bounds, MIN_MEMORY, true, |tuning| {
        let mut options = tuning.database_as_it_is();
        options.set_wal_recovery_mode(DBRecoveryMode::AbsoluteConsistency);
        options
    })
}
