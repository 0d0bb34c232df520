//! Datasets: the files that `datasets` of Hugging Face writes beside tables to describe them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::Value;

/// Names of descriptions, each with a field that it has.
const DESCRIPTIONS: [(&str, &str); 3] = [
    ("state.json", "_data_files"),
    ("dataset_info.json", "features"),
    ("dataset_dict.json", "splits"),
];

/// Most bytes of a description.
const LONGEST: u64 = 16 << 20;

/// Returns true if a file describes tables in its directory or below, by its name and its fields.
pub(super) fn is_description(path: &Path, tables: &[&Path]) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((_, field)) = DESCRIPTIONS.iter().find(|(known, _)| Some(*known) == name) else {
        return false;
    };
    let directory = path.parent().unwrap_or(path);
    tables.iter().any(|table| table.starts_with(directory)) && has(path, field)
}

fn has(path: &Path, field: &str) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let found: Result<Value, _> = serde_json::from_reader(BufReader::new(file.take(LONGEST)));
    found.is_ok_and(|found| found.get(field).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_known_by_name_and_field_beside_a_table() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("train")).unwrap();
        let table = dir.path().join("train/data-00000-of-00001.arrow");
        let described = |name: &str, content: &str, tables: &[&Path]| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            is_description(&path, tables)
        };
        let tables = [table.as_path()];
        let state = r#"{"_data_files":[{"filename":"data-00000-of-00001.arrow"}]}"#;
        assert!(described("train/state.json", state, &tables));
        assert!(described("train/dataset_info.json", r#"{"features":{}}"#, &tables));
        assert!(described("dataset_dict.json", r#"{"splits":["train"]}"#, &tables));
        assert!(!described("train/state.json", state, &[]), "there is no table");
        assert!(!described("train/state.json", r#"{"text":"of a row"}"#, &tables));
        assert!(!described("train/state.json", "[{\"_data_files\":1}]", &tables));
        assert!(!described("train/other.json", state, &tables));
        std::fs::create_dir(dir.path().join("train/of")).unwrap();
        assert!(!described("train/of/state.json", state, &tables), "the table is not below it");
    }
}
