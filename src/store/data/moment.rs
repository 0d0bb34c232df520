//! Names of a state of the index, by which a file that was made from it is recognised.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::store::{Snapshot, Store};

/// File with all fingerprints, which handles map instead of loading them.
pub(in crate::store) const RESIDENT_FILE: &str = "hamdex.resident";

/// Name of [`RESIDENT_FILE`] while it is being written.
pub(in crate::store) const NEW_RESIDENT_FILE: &str = "hamdex.resident.new";

impl Store {
    /// Returns the place of the file with all fingerprints, in the index's own directory.
    pub(crate) fn resident_file(&self) -> PathBuf {
        self.path.join(RESIDENT_FILE)
    }
}

impl Snapshot {
    /// Returns bytes that no other state of this or of another index has.
    ///
    /// They consist of the database's identity, the generation and the number of the last change.
    /// Changes include merges and repairs, which change no answer.
    pub(crate) fn moment(&self) -> Result<Vec<u8>> {
        let store = self.store();
        let path = store.path.join("IDENTITY");
        let mut moment = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|e| Error::io(&path, e))?,
        };
        moment.extend_from_slice(&store.generation.to_be_bytes());
        moment.extend_from_slice(&self.sequence().to_be_bytes());
        Ok(moment)
    }
}
