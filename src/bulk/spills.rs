//! Spill directories: whose temporary files they hold, and which of them may be removed.
//!
//! Inside an index spill files need no proof: the staging directory goes where the index goes. A
//! directory elsewhere (`tmp`) is used and cleared by one index only. It is made by the build,
//! with a token file that holds a random token and names the index: its path and, on Unix, its
//! device and inode. The manifest in the index holds the token too. A copy of an index has the
//! token but is another directory, so it can neither use nor clear what the original still needs.
//!
//! Even then only files of names that a build gives are removed, one by one, and the directory
//! only once it is empty.

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

/// Most bytes that a token file may have: paths are shorter.
const LONGEST: u64 = 64 << 10;

/// Names of sorters and spools of a build.
const STEMS: [&str; 4] = ["documents", "postings", "distinct", "table"];

/// A directory outside the index, as the manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(super) struct Outside {
    directory: String,
    /// Empty where an earlier version wrote none, which fits no directory.
    token: String,
}

/// What the token file holds.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
struct Token {
    token: String,
    owner: Owner,
}

/// Which directory is the index that the spill files are of.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
struct Owner {
    path: Vec<u8>,
    /// Device and inode; a token without them names its index by the path alone.
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
    /// A moved index keeps its inode. Devices may be numbered anew by a reboot, so another device
    /// passes under the same path.
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
    /// Makes a directory for the spill files of an index.
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
        // The name in the manifest must not outlive the directory.
        let _ = made.keep();
        Ok(outside)
    }

    /// What an earlier version named: a path and nothing to prove it by.
    pub(super) fn without_token(directory: String) -> Self {
        Self { directory, token: String::new() }
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(&self.directory)
    }

    /// Returns true if the directory was made for the unfinished build of this very index.
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

    /// Fails unless the directory belongs to the index.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignSpills`].
    pub(super) fn require(&self, index: &Path) -> Result<()> {
        if self.belongs_to(index) {
            return Ok(());
        }
        Err(Error::ForeignSpills { path: self.path(), index: index.to_owned() })
    }

    /// Removes the build's files and the directory; returns its path if it is not the index's.
    ///
    /// A directory that is gone has nothing left to name.
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
        // What somebody else put there stays, and the directory with it.
        let _ = fs::remove_dir(&directory);
        Ok(None)
    }
}

/// Returns true for the names that a build gives to its spill files.
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

/// 128 random bits, which a process cannot meet again by accident.
fn random_token() -> String {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spill_files_are_known_by_name() {
        for name in ["documents-0000.run", "postings-12345.run", "table-0001.run", "distinct.spool"]
        {
            assert!(is_spill_file(name), "{name}");
        }
        for name in ["", "documents", "documents-.run", "documents-1x.run", "../table-1.run", "a"] {
            assert!(!is_spill_file(name), "{name}");
        }
    }

    #[test]
    fn a_directory_belongs_to_the_index_and_not_to_its_copy() {
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
            assert!(outside.require(&index).is_err(), "a copy in the original's place");
            fs::rename(&moved, &copy).unwrap();
            fs::write(outside.path().join("documents-0000.run"), "x").unwrap();
            fs::write(outside.path().join("mine.txt"), "x").unwrap();
            assert_eq!(outside.clear(&copy).unwrap(), None);
            let left: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "what is not a spill file stays: {left:?}");
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
