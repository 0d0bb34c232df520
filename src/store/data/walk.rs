//! Walks over an overlay, in steps: each one continues where the last one stopped.

use rocksdb::ReadOptions;

use crate::error::Result;
use crate::store::{Family, Store, engine_error};

/// A walk over `docs` or `postings` alone, without the packs beneath.
pub(super) struct Walk {
    family: Family,
    /// The key at which it continues, until its end.
    from: Option<Vec<u8>>,
}

impl Walk {
    pub(super) fn over(family: Family) -> Self {
        Self { family, from: Some(Vec::new()) }
    }

    /// Passes the next entries to `visit`, at most `most`, until it returns false.
    ///
    /// Returns false if the walk had ended before. One whose step fails has ended too.
    pub(super) fn step(
        &mut self,
        store: &Store,
        options: ReadOptions,
        most: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<bool> {
        let Some(from) = self.from.take() else { return Ok(false) };
        let mut overlay = store.db.raw_iterator_cf_opt(store.handle(self.family)?, options);
        overlay.seek(&from);
        let (mut left, mut wants_more) = (most, true);
        while let Some((key, value)) = overlay.item() {
            if left == 0 || !wants_more {
                self.from = Some(key.to_vec());
                break;
            }
            wants_more = visit(key, value)?;
            left -= 1;
            overlay.next();
        }
        overlay.status().map_err(|e| engine_error(&self.family.to_string(), e))?;
        Ok(true)
    }
}
