//! Directories: a tree becomes a sorted list of files, each named by its relative path.

use std::path::Path;

use ignore::WalkBuilder;

use crate::failure::{Failure, Result};

/// The files below a directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Relative paths with forward slashes, sorted by their bytes.
    pub(crate) files: Vec<String>,
    /// What could not be listed or named, with the reason.
    pub(crate) unreadable: Vec<(String, String)>,
    /// Sum of the file sizes.
    pub(crate) bytes: u64,
}

/// Lists every regular file; symbolic links are left alone, so no file comes twice.
pub(super) fn list(root: &Path) -> Result<Listing> {
    std::fs::read_dir(root).map_err(|e| Failure::io(root, e))?;
    let mut listing = Listing::default();
    for entry in WalkBuilder::new(root).standard_filters(false).follow_links(false).build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                listing.unreadable.push((root.display().to_string(), error.to_string()));
                continue;
            }
        };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        if let Some(name) = relative(root, entry.path()) {
            listing.files.push(name);
        } else {
            let name = entry.path().display().to_string();
            listing.unreadable.push((name, "file name is not UTF-8".to_owned()));
        }
        listing.bytes += entry.metadata().map_or(0, |found| found.len());
    }
    listing.files.sort_unstable();
    Ok(listing)
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    let parts = path.strip_prefix(root).ok()?.components();
    let parts = parts.map(|part| part.as_os_str().to_str()).collect::<Option<Vec<_>>>()?;
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_sorted_with_forward_slashes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("b/c")).unwrap();
        for name in ["b/c/1", "b.txt", ".hidden", "a"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let listing = list(dir.path()).unwrap();
        assert_eq!(listing.files, [".hidden", "a", "b.txt", "b/c/1"]);
        assert_eq!(listing.bytes, 4);
        assert!(list(&dir.path().join("absent")).is_err());
    }
}
