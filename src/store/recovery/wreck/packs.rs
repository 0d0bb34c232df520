//! Packs of a wreck: keys separate the files of two generations.
//!
//! Files of packs that a build wrote never overlap within a generation. So a file that overlaps a
//! newer one is of an earlier generation and is left out. Packs that a repacking wrote are newer
//! than all of them.

use std::path::{Path, PathBuf};

use super::{Work, beneath, write};
use crate::error::{Error, Result};
use crate::store::bytes::codec::HeaderRecord;
use crate::store::bytes::pack::Layout;
use crate::store::data::cursor::in_order;
use crate::store::{Family, engine_error};

impl Work<'_> {
    /// Ingests files of packs behind what repackings wrote.
    ///
    /// A file that overlaps one before it is of another generation.
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
            if self.ingest_behind(name, &file, &family.name(generation))? {
                ranges.push((family, first, last));
            }
        }
        Family::PACKS.into_iter().try_for_each(|family| {
            self.merge_packs(&family.name(generation), Layout::of(family, header.bits))
        })
    }

    /// Adds packs of the family beneath that overlap none of the upper family.
    fn merge_packs(&mut self, upper: &str, layout: Layout) -> Result<()> {
        let Some(beneath) = self.db.cf_handle(&beneath(upper)) else { return Ok(()) };
        let mut above = self.db.raw_iterator_cf_opt(self.handle(upper)?, in_order());
        let mut entries = self.db.raw_iterator_cf_opt(beneath, in_order());
        let mut members = Vec::new();
        let mut first = |key: &[u8], value: &[u8]| {
            let first = layout.decode(key, value, &mut members).ok().and(members.last());
            first.map_or_else(|| key.to_vec(), |first| layout.key(*first).as_ref().to_vec())
        };
        entries.seek_to_first();
        while let Some((key, value)) = entries.item() {
            above.seek(first(key, value));
            let overlaps = above.item().is_some_and(|(above, value)| *first(above, value) <= *key);
            if !overlaps {
                write(&self.db, upper, key, Some(value))?;
            }
            entries.next();
        }
        if let Err(error) = entries.status().and(above.status()) {
            self.notes.push(engine_error(upper, error));
        }
        let detail = "files of builds beneath compacted ones; removed documents may be back";
        self.notes.push(Error::corrupt(upper, detail));
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
