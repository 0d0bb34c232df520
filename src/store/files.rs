//! Files: everything on the disk is read anew, past all caches, and its checksums are compared.

use std::path::Path;

use rocksdb::{DB, DBRecoveryMode, Options, ReadOptions};

use super::seal::{self, Bounds};
use super::tuning::{MIN_MEMORY, Tuning};
use super::{engine_error, require_database, require_meta, settled};
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
    let damaged = seal::damaged_slots(path)?;
    if damaged > 0 {
        note(Error::corrupt(seal::SEAL_FILE, format!("{damaged} of 2 slots do not decode")))?;
    }
    let (names, db) = match settled::when_settled(path, || open(path)) {
        Err(error) if error.fault() == Fault::Damage => return note(error),
        opened => opened?,
    };
    for name in &names {
        let Some(handle) = db.cf_handle(name) else { continue };
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        options.set_readahead_size(2 << 20);
        let mut entries = db.raw_iterator_cf_opt(handle, options);
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
fn open(path: &Path) -> Result<(Vec<String>, DB)> {
    require_database(path)?;
    let bounds = Bounds::of_files(path)?;
    let names = DB::list_cf(&Options::default(), path).map_err(|e| engine_error("meta", e))?;
    require_meta(path, &names)?;
    let tuning = Tuning::new(MIN_MEMORY, names.len());
    let mut options = tuning.database_as_it_is();
    options.set_wal_recovery_mode(DBRecoveryMode::AbsoluteConsistency);
    let descriptors = names.iter().map(|name| tuning.descriptor(name));
    let db = DB::open_cf_descriptors_read_only(&options, path, descriptors, false)
        .map_err(|e| engine_error("database", e))?;
    if let Some(bounds) = &bounds {
        bounds.require_sequence(db.latest_sequence_number())?;
    }
    Ok((names, db))
}
