//! Costs: prices measured on this machine, kept in a file of the user's for later calls.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use hamdex::plan::Costs;

use crate::failure::{Failure, Result};

/// Names the file outright, for tests and for machines without home directories.
const VARIABLE: &str = "HAMDEX_COSTS";

/// Returns the file of the costs; `None` if the user has no directory for settings.
fn place() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let settings = || set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    set(VARIABLE).or_else(|| Some(settings()?.join("hamdex").join("costs")))
}

/// Returns the costs measured earlier, or the default ones.
pub(crate) fn kept() -> Result<Costs> {
    let Some(place) = place() else { return Ok(Costs::default()) };
    let text = match fs::read_to_string(&place) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Costs::default()),
        Err(error) => return Err(Failure::io(&place, error)),
    };
    text.parse().map_err(|error| {
        Failure::file(&place, format!("{error}; delete the file, or run 'hamdex plan --calibrate'"))
    })
}

/// Returns the file of costs and its age; `None` if there is none.
pub(crate) fn age() -> Result<Option<(PathBuf, Duration)>> {
    let Some(place) = place() else { return Ok(None) };
    match fs::metadata(&place).and_then(|found| found.modified()) {
        Ok(written) => Ok(Some((place, written.elapsed().unwrap_or_default()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::io(&place, error)),
    }
}

/// Saves costs for later calls and returns the file.
pub(crate) fn keep(costs: &Costs) -> Result<PathBuf> {
    let place = place().ok_or_else(|| {
        Failure::Usage(format!(
            "no directory for settings found; set {VARIABLE} to the path of a \
                                file"
        ))
    })?;
    if let Some(directory) = place.parent() {
        fs::create_dir_all(directory).map_err(|error| Failure::io(directory, error))?;
    }
    fs::write(&place, format!("{costs}\n")).map_err(|error| Failure::io(&place, error))?;
    Ok(place)
}
