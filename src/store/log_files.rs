//! Names of the files that decide what is stored: the MANIFEST that counts, and the logs.

use std::path::Path;

use crate::error::{Error, Result};

/// Name and number of the MANIFEST that counts.
pub(super) fn current(path: &Path) -> Result<(String, u64)> {
    let file = path.join("CURRENT");
    let bytes = std::fs::read(&file).map_err(|e| Error::io(&file, e))?;
    let name = std::str::from_utf8(&bytes).ok().and_then(|name| name.strip_suffix('\n'));
    let number = name.and_then(|name| name.strip_prefix("MANIFEST-")?.parse().ok());
    match (name, number) {
        (Some(name), Some(number)) => Ok((name.to_owned(), number)),
        _ => Err(Error::corrupt("CURRENT", "names no MANIFEST")),
    }
}

/// Names of the logs, oldest first.
pub(super) fn logs(path: &Path) -> Result<Vec<String>> {
    let fail = |e| Error::io(path, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        names.extend(name.to_str().filter(|name| log_number(name).is_some()).map(str::to_owned));
    }
    names.sort_unstable_by_key(|name| log_number(name));
    Ok(names)
}

pub(super) fn log_number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

pub(super) fn log_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// Number of the last log; 0 where there is none.
pub(super) fn last_log(path: &Path) -> Result<u64> {
    Ok(logs(path)?.last().and_then(|name| log_number(name)).unwrap_or(0))
}
