//! Packs of a wreck: keys separate the files of two generations.
//!
//! Files of packs never overlap within a generation. So a file that overlaps a newer one is of an
//! earlier generation and is left out.

use std::path::{Path, PathBuf};

use super::Work;
use crate::error::{Error, Result};
use crate::store::codec::HeaderRecord;
use crate::store::pack::Layout;
use crate::store::{Family, engine_error};

impl Work<'_> {
    /// Ingests files of packs. One that overlaps a file before it is of another generation.
    ///
    /// Packs are ingested only into families of packs, which nothing else is written to. So `RocksDB`
    /// finds a file whose keys are between those of another, and the packs at its ends are compared
    /// here.
    pub(super) fn ingest_packs(
        &mut self,
        files: Vec<(Family, String, PathBuf)>,
        header: &HeaderRecord,
        generation: u32,
    ) -> Result<()> {
        let mut ranges: Vec<(Family, Vec<u8>, Vec<u8>)> = Vec::new();
        for (family, name, file) in files {
            let (first, last) = match self.pack_range(&file, family, header) {
                Ok(range) => range,
                Err(error @ Error::Io { .. }) => return Err(error),
                Err(error) => {
                    self.notes.push(Error::corrupt(name, error.to_string()));
                    continue;
                }
            };
            let overlaps = ranges
                .iter()
                .any(|(of, low, high)| *of == family && *low <= last && first <= *high);
            if overlaps {
                let detail = "packs of another generation; the file is left out";
                self.notes.push(Error::corrupt(name, detail));
                continue;
            }
            match self.ingest_linked(&file, &family.name(generation), false) {
                Ok(()) => ranges.push((family, first, last)),
                Err(error) => self.notes.push(Error::corrupt(name, error.to_string())),
            }
        }
        Ok(())
    }

    /// Returns the first and last key of the members of a file of packs.
    fn pack_range(
        &mut self,
        file: &Path,
        family: Family,
        header: &HeaderRecord,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let layout = Layout::of(family, header.bits);
        self.probe(file, |entries| {
            let mut members = Vec::new();
            entries.seek_to_first();
            let first = entries.item().and_then(|(key, value)| {
                layout.decode(key, value, &mut members).ok()?;
                members.last().map(|first| layout.key(*first).as_ref().to_vec())
            });
            // Without its beginning, the range of a pack is at least its own key.
            let first = first.or_else(|| entries.key().map(<[u8]>::to_vec));
            entries.seek_to_last();
            let last = entries.key().map(<[u8]>::to_vec);
            entries.status().map_err(|e| engine_error("file", e))?;
            first.zip(last).ok_or_else(|| Error::corrupt("file", "no pack can be read"))
        })
    }
}

/// Returns the family of a valid pack.
pub(super) fn family_of(header: &HeaderRecord, key: &[u8], value: &[u8]) -> Option<Family> {
    let valid = |family: &Family| {
        let layout = Layout::of(*family, header.bits);
        layout.decode(key, value, &mut Vec::new()).is_ok()
    };
    Family::PACKS.into_iter().find(valid)
}
