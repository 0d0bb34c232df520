//! Manifest: the progress of a build, in one small file that is replaced atomically.
//!
//! An index may be from an untrusted source, so no file is read or removed by a path in its
//! manifest. Spill files are plain names, and a directory outside the index is used only if its
//! token file matches (see [`super::spills`]).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use super::spills::{self, Outside};
use crate::error::{Error, Result};
use crate::sort::spill::SpillFile;
use crate::store::{codec, sync_directory};

const NAME: &str = "manifest";

/// Keys that the checksum covers, so that no layout decodes as another.
const KEY: &[u8] = b"manifest/3";
const SECOND_KEY: &[u8] = b"manifest/2";
const OLD_KEY: &[u8] = b"manifest";

/// What resuming a build requires.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub(super) struct Manifest {
    /// Directory of the spill files; `None` is inside the index.
    pub(super) outside: Option<Outside>,
    /// Spill files in push order: name, records, bytes.
    pub(super) files: Vec<(String, u64, u64)>,
    /// Origin of the last document in those files.
    pub(super) last_origin: Option<u64>,
    /// The caller's description of the inputs.
    pub(super) inputs: Option<String>,
    /// Whether this build created the index.
    pub(super) made_index: bool,
    /// Set once the families of documents are complete. Then the spill files are not needed.
    pub(super) written: Option<Written>,
}

/// The documents that a build has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub(super) struct Written {
    pub(super) documents: u64,
    pub(super) duplicates: u64,
    pub(super) replaced: u64,
    pub(super) bytes: u64,
    /// Whether any documents are packed.
    pub(super) packed: bool,
}

/// The second layout, from before builds recorded what they had written.
#[derive(Encode, Decode)]
struct SecondManifest {
    outside: Option<Outside>,
    files: Vec<(String, u64, u64)>,
    last_origin: Option<u64>,
    inputs: Option<String>,
    made_index: bool,
}

impl From<SecondManifest> for Manifest {
    fn from(second: SecondManifest) -> Self {
        let SecondManifest { outside, files, last_origin, inputs, made_index } = second;
        Self { outside, files, last_origin, inputs, made_index, written: None }
    }
}

/// The layout of hamdex 0.1.0, which stored the directory as an absolute path.
#[derive(Encode, Decode)]
struct OldManifest {
    spills: String,
    files: Vec<(String, u64, u64)>,
    last_origin: Option<u64>,
}

impl From<OldManifest> for Manifest {
    fn from(old: OldManifest) -> Self {
        // Inside means the staging directory, which always had the same name. Nothing else of the
        // path is used, because it may be that of the index that this one was copied from.
        let inside = Path::new(&old.spills).file_name().is_some_and(|name| name == super::STAGING);
        Self {
            outside: (!inside).then(|| Outside::without_token(old.spills)),
            files: old.files,
            last_origin: old.last_origin,
            inputs: None,
            made_index: false,
            written: None,
        }
    }
}

impl Manifest {
    /// Reads the manifest of a staging directory; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if it is damaged.
    pub(super) fn read(staging: &Path) -> Result<Option<Self>> {
        let path = staging.join(NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path, error)),
        };
        let manifest = codec::decode("build manifest", KEY, &bytes).or_else(|error| {
            codec::decode::<SecondManifest>("build manifest", SECOND_KEY, &bytes)
                .map(Self::from)
                .or_else(|_| {
                    codec::decode::<OldManifest>("build manifest", OLD_KEY, &bytes).map(Self::from)
                })
                .map_err(|_| error)
        })?;
        match manifest.files.iter().find(|(name, ..)| !spills::is_spill_file(name)) {
            Some((name, ..)) => Err(Error::corrupt(
                "build manifest",
                format!("\"{}\" is not the name of a spill file", name.escape_debug()),
            )),
            None => Ok(Some(manifest)),
        }
    }

    /// Replaces the manifest and syncs it.
    pub(super) fn write(&self, staging: &Path) -> Result<()> {
        let path = staging.join(NAME);
        let fail = |e| Error::io(&path, e);
        let mut file = tempfile::NamedTempFile::new_in(staging).map_err(fail)?;
        file.write_all(&codec::encode(KEY, self)).map_err(fail)?;
        file.as_file().sync_all().map_err(fail)?;
        file.persist(&path).map_err(|e| Error::io(&path, e.error))?;
        // The new name is durable only once the directory is synced.
        sync_directory(staging)
    }

    pub(super) fn add(&mut self, files: &[SpillFile]) {
        self.files.extend(files.iter().map(|file| {
            let name = file.path.file_name().and_then(|name| name.to_str());
            let name = name.expect("spill files have ASCII names");
            (name.to_owned(), file.records, file.bytes)
        }));
    }

    pub(super) fn records(&self) -> u64 {
        self.files.iter().map(|(_, records, _)| records).sum()
    }

    /// Returns the directory of the spill files, given the staging directory of this manifest.
    pub(super) fn directory(&self, staging: &Path) -> PathBuf {
        self.outside.as_ref().map_or_else(|| staging.to_owned(), Outside::path)
    }

    pub(super) fn spill_files(&self, directory: &Path) -> Vec<SpillFile> {
        self.files
            .iter()
            .map(|(name, records, bytes)| SpillFile {
                path: directory.join(name),
                records: *records,
                bytes: *bytes,
            })
            .collect()
    }

    /// Returns the number of spill files.
    pub(super) fn file_count(&self) -> usize {
        self.files.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a manifest as hamdex 0.1.0 did.
    fn old(staging: &Path, spills: &str, files: Vec<(String, u64, u64)>) {
        let manifest = OldManifest { spills: spills.to_owned(), files, last_origin: Some(7) };
        fs::write(staging.join(NAME), codec::encode(OLD_KEY, &manifest)).unwrap();
    }

    #[test]
    fn an_old_manifest_uses_files_inside_the_index_for_any_path() {
        let staging = tempfile::tempdir().unwrap();
        let files = vec![("documents-0000.run".to_owned(), 3, 90)];
        old(staging.path(), "/elsewhere/index/bulk", files.clone());
        let read = Manifest::read(staging.path()).unwrap().unwrap();
        assert_eq!(read, Manifest { files, last_origin: Some(7), ..Manifest::default() });
        let file = &read.spill_files(&read.directory(staging.path()))[0];
        assert_eq!(file.path, staging.path().join("documents-0000.run"));
    }

    #[test]
    fn a_manifest_of_the_second_layout_has_written_no_documents() {
        let staging = tempfile::tempdir().unwrap();
        let (inputs, files) =
            (Some("may".to_owned()), vec![("documents-0001.run".to_owned(), 2, 60)]);
        let second = SecondManifest {
            outside: None,
            files: files.clone(),
            last_origin: Some(9),
            inputs: inputs.clone(),
            made_index: true,
        };
        fs::write(staging.path().join(NAME), codec::encode(SECOND_KEY, &second)).unwrap();
        let read = Manifest::read(staging.path()).unwrap().unwrap();
        let (last_origin, made_index) = (Some(9), true);
        let expected = Manifest { files, last_origin, inputs, made_index, ..Manifest::default() };
        assert_eq!(read, expected);
        read.write(staging.path()).unwrap();
        assert_eq!(Manifest::read(staging.path()).unwrap(), Some(expected));
    }

    #[test]
    fn an_old_manifest_of_another_directory_has_no_token() {
        let staging = tempfile::tempdir().unwrap();
        old(staging.path(), "/home/somebody", Vec::new());
        let read = Manifest::read(staging.path()).unwrap().unwrap();
        assert_eq!(read.outside, Some(Outside::without_token("/home/somebody".to_owned())));
    }

    #[test]
    fn names_that_lead_elsewhere_are_damage() {
        let staging = tempfile::tempdir().unwrap();
        for name in ["../documents-0000.run", "/etc/passwd", "documents-0000.run/../x", "", "x"] {
            old(staging.path(), "/a/bulk", vec![(name.to_owned(), 1, 1)]);
            let error = Manifest::read(staging.path()).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{name:?}: {error}");
        }
    }
}
