//! Manifest: how far a build has come, in one small file that is replaced as a whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use super::spill::SpillFile;
use crate::error::{Error, Result};
use crate::store::codec;

const NAME: &str = "manifest";
const KEY: &[u8] = b"manifest";

/// What a resumed build needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(super) struct Manifest {
    /// Directory of the spill files.
    pub(super) spills: String,
    /// Spill files in push order: name, records, bytes.
    files: Vec<(String, u64, u64)>,
    /// Origin of the last document in those files.
    pub(super) last_origin: Option<u64>,
}

impl Manifest {
    /// Begins without spill files, which will be in the directory named.
    pub(super) fn new(spills: &str) -> Self {
        Self { spills: spills.to_owned(), files: Vec::new(), last_origin: None }
    }

    /// Reads the manifest of a staging directory, if one was written.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for a damaged one.
    pub(super) fn read(staging: &Path) -> Result<Option<Self>> {
        let path = staging.join(NAME);
        match fs::read(&path) {
            Ok(bytes) => codec::decode("build manifest", KEY, &bytes).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(&path, error)),
        }
    }

    /// Replaces the manifest; on return it is on the disk.
    pub(super) fn write(&self, staging: &Path) -> Result<()> {
        let path = staging.join(NAME);
        let fail = |e| Error::io(&path, e);
        let mut file = tempfile::NamedTempFile::new_in(staging).map_err(fail)?;
        file.write_all(&codec::encode(KEY, self)).map_err(fail)?;
        file.as_file().sync_all().map_err(fail)?;
        file.persist(&path).map_err(|e| Error::io(&path, e.error))?;
        // The new name is durable only once its directory is.
        File::open(staging).and_then(|directory| directory.sync_all()).map_err(fail)
    }

    pub(super) fn add(&mut self, files: &[SpillFile]) {
        self.files.extend(files.iter().filter_map(|file| {
            let name = file.path.file_name()?.to_str()?;
            Some((name.to_owned(), file.records, file.bytes))
        }));
    }

    pub(super) fn records(&self) -> u64 {
        self.files.iter().map(|(_, records, _)| records).sum()
    }

    pub(super) fn spill_files(&self) -> Vec<SpillFile> {
        let directory = PathBuf::from(&self.spills);
        self.files
            .iter()
            .map(|(name, records, bytes)| SpillFile {
                path: directory.join(name),
                records: *records,
                bytes: *bytes,
            })
            .collect()
    }
}
