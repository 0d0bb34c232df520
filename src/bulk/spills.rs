//! Spill directories: which index their temporary files belong to, and which may be removed.
//!
//! Spill files inside an index need no proof: the staging directory moves with the index. A
//! directory outside (`tmp`) is used and cleared by one index only. The build creates it with a
//! token file that has a random token and identifies the index by its path and, on Unix, its device
//! and inode. The manifest in the index also has the token. A copy of an index has the token but is
//! another directory, so it can neither use nor clear files that the original still needs.
//!
//! Only files with names that a build uses are removed, one by one, and the directory only if it is
//! empty then.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use crate::error::{Error, Result};
use crate::store::codec;

/// Name of the token file.
const TOKEN_FILE: &str = "hamdex.spills";
const KEY: &[u8] = b"spills";

/// Most bytes of a token file; paths are shorter.
const LONGEST: u64 = 64 << 10;

/// Name stems of the sorters and spools of a build.
const STEMS: [&str; 4] = ["documents", "postings", "distinct", "table"];

/// A directory outside the index, as the manifest records it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(super) struct Outside {
    directory: String,
    /// Empty if an earlier version wrote none; it then matches no directory.
    token: String,
}

/// Content of the token file.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
struct Token {
    token: String,
    owner: Owner,
}

/// The index that the spill files belong to.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
struct Owner {
    path: Vec<u8>,
    /// Device and inode; without them only the path identifies the index.
    place: Option<(u64, u64)>,
}

impl Owner {
    fn of(index: &Path) -> Result<Self> {
        let path = index.canonicalize().map_err(|e| Error::io(index, e))?;
        let found = path.metadata().map_err(|e| Error::io(&path, e))?;
        let place = Some((found.dev(), found.ino()));
        Ok(Self { path: path.as_os_str().as_encoded_bytes().to_vec(), place })
    }

    /// Returns true if both are the same directory.
    ///
    /// A moved index keeps its inode. A reboot may renumber devices, so another device is accepted
    /// under the same path.
    fn is(&self, other: &Self) -> bool {
        match (self.place, other.place) {
            (Some((device, inode)), Some((other_device, other_inode))) => {
                inode == other_inode && (device == other_device || self.path == other.path)
            }
            _ => self.path == other.path,
        }
    }
}

impl Outside {
    /// Creates a directory for the spill files of an index.
    pub(super) fn create(tmp: &Path, index: &Path) -> Result<Self> {
        let fail = |e| Error::io(tmp, e);
        let made =
            tempfile::Builder::new().prefix("hamdex-build-").tempdir_in(tmp).map_err(fail)?;
        let directory = made.path().canonicalize().map_err(fail)?;
        let name = directory.to_str().ok_or_else(|| Error::InvalidOption {
            name: "tmp",
            reason: format!("{} is not valid UTF-8", directory.display()),
        })?;
        let token = random_token();
        let record = Token { token: token.clone(), owner: Owner::of(index)? };
        let path = directory.join(TOKEN_FILE);
        File::create_new(&path)
            .and_then(|mut file| {
                file.write_all(&codec::encode(KEY, &record))?;
                file.sync_all()
            })
            .map_err(|e| Error::io(&path, e))?;
        let outside = Self { directory: name.to_owned(), token };
        // Keep the directory, since the manifest will name it.
        let _ = made.keep();
        Ok(outside)
    }

    /// The record of an earlier version: a path without a token.
    pub(super) fn without_token(directory: String) -> Self {
        Self { directory, token: String::new() }
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(&self.directory)
    }

    /// Returns true if the directory was created for the unfinished build of this index.
    fn belongs_to(&self, index: &Path) -> bool {
        !self.token.is_empty()
            && self.read_token().is_some_and(|found| {
                found.token == self.token && Owner::of(index).is_ok_and(|o| o.is(&found.owner))
            })
    }

    fn read_token(&self) -> Option<Token> {
        let path = self.path().join(TOKEN_FILE);
        let found = fs::symlink_metadata(&path).ok()?;
        if !found.is_file() || found.len() > LONGEST {
            return None;
        }
        codec::decode("spills", KEY, &fs::read(path).ok()?).ok()
    }

    /// Returns [`Error::ForeignSpills`] unless the directory belongs to the index.
    pub(super) fn require(&self, index: &Path) -> Result<()> {
        if self.belongs_to(index) {
            return Ok(());
        }
        Err(Error::ForeignSpills { path: self.path(), index: index.to_owned() })
    }

    /// Removes the build's files and the directory.
    ///
    /// Returns the directory's path if it belongs to another index. Does nothing if it is missing.
    pub(super) fn clear(&self, index: &Path) -> Result<Option<PathBuf>> {
        let directory = self.path();
        if !directory.try_exists().unwrap_or(true) {
            return Ok(None);
        }
        if !self.belongs_to(index) {
            return Ok(Some(directory));
        }
        let fail = |e| Error::io(&directory, e);
        for entry in fs::read_dir(&directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_name().to_str().is_some_and(is_spill_file) {
                remove_file(&entry.path())?;
            }
        }
        remove_file(&directory.join(TOKEN_FILE))?;
        // Other files stay, and so does their directory.
        let _ = fs::remove_dir(&directory);
        Ok(None)
    }
}

/// Returns true if a build uses this name for spill files.
pub(super) fn is_spill_file(name: &str) -> bool {
    STEMS.iter().any(|stem| match name.strip_prefix(stem) {
        Some(".spool") => true,
        Some(rest) => rest
            .strip_prefix('-')
            .and_then(|rest| rest.strip_suffix(".run"))
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())),
        None => false,
    })
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

/// Returns 128 random bits, so that no two builds get the same token by accident.
fn random_token() -> String {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spill_files_are_recognised_by_name() {
        for name in ["documents-0000.run", "postings-12345.run", "table-0001.run", "distinct.spool"]
        {
            assert!(is_spill_file(name), "{name}");
        }
        for name in ["", "documents", "documents-.run", "documents-1x.run", "../table-1.run", "a"] {
            assert!(!is_spill_file(name), "{name}");
        }
    }

    #[test]
    fn a_directory_belongs_to_its_index_and_not_to_a_copy() {
        let (tmp, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (index, copy) = (place.path().join("index"), place.path().join("copy"));
        fs::create_dir(&index).unwrap();
        fs::create_dir(&copy).unwrap();
        let outside = Outside::create(tmp.path(), &index).unwrap();
        outside.require(&index).unwrap();
        assert!(matches!(outside.require(&copy), Err(Error::ForeignSpills { .. })));
        assert_eq!(outside.clear(&copy).unwrap(), Some(outside.path()));
        assert!(outside.path().join(TOKEN_FILE).exists());
        if cfg!(unix) {
            let moved = place.path().join("moved");
            fs::rename(&index, &moved).unwrap();
            fs::rename(&copy, &index).unwrap();
            outside.require(&moved).unwrap();
            assert!(outside.require(&index).is_err(), "a copy at the original's path");
            fs::rename(&moved, &copy).unwrap();
            fs::write(outside.path().join("documents-0000.run"), "x").unwrap();
            fs::write(outside.path().join("mine.txt"), "x").unwrap();
            assert_eq!(outside.clear(&copy).unwrap(), None);
            let left: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "other files stay: {left:?}");
        }
    }

    #[test]
    fn a_directory_without_the_token_is_left_alone() {
        let (tmp, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(tmp.path().join("documents-0000.run"), "precious").unwrap();
        let name = tmp.path().to_str().unwrap().to_owned();
        let other = Outside::create(tmp.path(), index.path()).unwrap();
        for outside in [
            Outside::without_token(name.clone()),
            Outside { directory: name, token: other.token.clone() },
            Outside { token: random_token(), ..other.clone() },
        ] {
            assert_eq!(outside.clear(index.path()).unwrap(), Some(outside.path()));
        }
        assert!(tmp.path().join("documents-0000.run").exists());
        assert!(other.path().exists());
    }
}
