//! Ingestion: moves finished SST files into a family, and takes back what failed halfway.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use rocksdb::IngestExternalFileOptions;

use super::files::current;
use super::seal::open_current;
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::store::data::generation::Family;
use crate::store::open::database::Database;
use crate::store::{Store, engine_error};

impl Store {
    /// Moves finished SST files into one family of a generation, atomically.
    ///
    /// After an error only the closing of the store may follow.
    pub(crate) fn ingest(&self, family: Family, generation: u32, files: &[PathBuf]) -> Result<()> {
        let name = family.name(generation);
        if files.is_empty() {
            return Ok(());
        }
        let handle =
            self.db.cf_handle(&name).ok_or_else(|| Error::corrupt(&name, "family is missing"))?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        let end = ManifestEnd::of(&self.path, &self.db)?;
        if let Err(error) = self.db.ingest_external_file_cf_opts(handle, &options, files.to_vec()) {
            end.restore(&self.path, &self.db)?;
            return Err(engine_error(&name, error));
        }
        fail_point!("build.ingested");
        self.follow()
    }
}

/// Where the MANIFEST ends before an ingestion.
///
/// `RocksDB` writes the ingested files into the MANIFEST, then syncs it. If the sync fails, it
/// deletes the files, although the MANIFEST names them: the database would not open any more.
/// Without these last bytes the MANIFEST is as a power loss could have left it, which is sound.
/// A process that is killed before it removes them leaves an index that only a repair opens.
struct ManifestEnd {
    number: u64,
    length: u64,
    /// Family, name and level of all files.
    files: Vec<(String, String, i32)>,
}

impl ManifestEnd {
    fn of(directory: &Path, db: &Database) -> Result<Self> {
        let files = files(db)?;
        let (manifest, number) = open_current(directory)?;
        let length = manifest.metadata().map_err(|e| Error::io(directory, e))?.len();
        Ok(Self { number, length, files })
    }

    /// Removes what was written since, if nothing but the failed ingestion was.
    ///
    /// Other changes alter the files of the database. Without them, a longer MANIFEST is one whose
    /// writing failed: `RocksDB` has closed it, and begins another one with its next change.
    fn restore(&self, directory: &Path, db: &Database) -> Result<()> {
        let (name, number) = current(directory)?;
        if number != self.number || files(db)? != self.files {
            return Ok(());
        }
        let name = directory.join(name);
        let fail = |e| Error::io(&name, e);
        let manifest = OpenOptions::new().write(true).open(&name).map_err(fail)?;
        if manifest.metadata().map_err(fail)?.len() > self.length {
            manifest.set_len(self.length).map_err(fail)?;
            manifest.sync_all().map_err(fail)?;
        }
        Ok(())
    }
}

fn files(db: &Database) -> Result<Vec<(String, String, i32)>> {
    let files = db.live_files().map_err(|e| engine_error("files", e))?;
    let mut files: Vec<_> =
        files.into_iter().map(|file| (file.column_family_name, file.name, file.level)).collect();
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::Index;
    use crate::index::IndexOptions;
    use crate::store::{Access, MIN_MEMORY, Opening};

    #[test]
    fn what_a_failed_ingestion_wrote_is_removed_and_other_changes_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let index = Index::<u64>::create(&path, &IndexOptions::new()).unwrap();
        index.insert(b"page", 7).unwrap();
        drop(index);

        let opening = Opening::new(&path, MIN_MEMORY, Access::Write).unwrap();
        let mut store = opening.with_tables(4).unwrap();
        let end = ManifestEnd::of(&path, &store.db).unwrap();
        let manifest = path.join(current(&path).unwrap().0);
        let before = std::fs::read(&manifest).unwrap();
        let mut file = OpenOptions::new().append(true).open(&manifest).unwrap();
        file.write_all(b"names files that were deleted").unwrap();
        end.restore(&path, &store.db).unwrap();
        assert_eq!(std::fs::read(&manifest).unwrap(), before);

        store.begin_build().unwrap();
        store.flush().unwrap();
        let flushed = std::fs::read(&manifest).unwrap();
        assert!(flushed.len() > before.len());
        end.restore(&path, &store.db).unwrap();
        assert_eq!(std::fs::read(&manifest).unwrap(), flushed);
    }
}
