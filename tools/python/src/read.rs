//! Reading: rows become documents, made on all threads and taken in order.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt64Array};
use hamdex::{Fingerprint, Pipeline};
use rayon::prelude::*;

use crate::column::{Ids, Texts};
use crate::failure::Result;
use crate::interrupt::Watch;
use crate::name;
use crate::table::Table;

/// Rows that are read together, on all threads; what is made of them waits in memory.
const BATCH: usize = 1024;

/// The columns that count.
#[derive(Debug)]
pub(crate) struct Rows {
    text: String,
    id: String,
    pub(crate) texts: Vec<ArrayRef>,
    /// Pieces as those of the texts; `None` where rows are known by their numbers.
    ids: Option<Vec<ArrayRef>>,
    /// All ids in one piece.
    pub(crate) names: ArrayRef,
    pub(crate) len: usize,
}

impl Rows {
    pub(crate) fn of(table: &Table, text: &str, id: Option<&str>) -> Result<Self> {
        let texts = table.column(text)?;
        let len = table.rows();
        let ids = id.map(|id| table.column(id)).transpose()?;
        let names: ArrayRef = match id {
            Some(id) => table.whole(id)?,
            None => Arc::new(UInt64Array::from_iter_values(0..len as u64)),
        };
        let id = id.unwrap_or_default().to_owned();
        Ok(Self { text: text.to_owned(), id, texts, ids, names, len })
    }
}

/// What became of the rows.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// The row of every document.
    pub(crate) rows: Vec<u64>,
    /// Rows that are no documents, and why.
    pub(crate) rejects: Vec<(u64, String)>,
}

/// A row on its way to a document.
struct Made<F, X> {
    key: Option<Vec<u8>>,
    fingerprint: F,
    extra: X,
}

/// Reads all rows: `extra` makes of each text what is wanted besides its fingerprint, on all
/// threads, and `sink` takes key, fingerprint and that in the order of the rows.
#[allow(clippy::type_complexity)] // the sink is told all of a row
pub(crate) fn read<F: Fingerprint, X: Send>(
    rows: &Rows,
    pipeline: &Pipeline,
    watch: &Watch,
    extra: impl Fn(usize, &str) -> X + Sync,
    sink: &mut dyn FnMut(Option<&[u8]>, F, X) -> Result<()>,
) -> Result<Read> {
    let mut read = Read::default();
    let mut seen = Seen::default();
    let mut base = 0;
    for (at, piece) in rows.texts.iter().enumerate() {
        let texts = Texts::of(piece.as_ref(), &rows.text)?;
        let ids = rows.ids.as_ref().and_then(|ids| ids.get(at));
        let ids = ids.map(|ids| Ids::of(ids, &rows.id)).transpose()?;
        let make = |row: usize| -> Result<Made<F, X>, String> {
            let text = texts.get(row).ok_or("no text")?;
            let key = match &ids {
                Some(ids) => ids.key(row)?,
                None => None,
            };
            if text.trim().is_empty() {
                return Err("empty text".to_owned());
            }
            let sketch = pipeline.fingerprint::<F>(text).ok_or("text without features")?;
            Ok(Made { key, fingerprint: sketch.fingerprint, extra: extra(base + row, text) })
        };
        for first in (0..piece.len()).step_by(BATCH) {
            watch.check()?;
            let batch = first..piece.len().min(first + BATCH);
            let made: Vec<_> = batch.clone().into_par_iter().map(make).collect();
            for (row, made) in batch.zip(made) {
                let row = (base + row) as u64;
                match made {
                    Ok(Made { key: Some(key), .. }) if !seen.insert(&key) => {
                        let reason = format!("duplicate id {}", name::to_text(&key));
                        read.rejects.push((row, reason));
                    }
                    Ok(Made { key, fingerprint, extra }) => {
                        sink(key.as_deref(), fingerprint, extra)?;
                        read.rows.push(row);
                    }
                    Err(reason) => read.rejects.push((row, reason)),
                }
            }
        }
        base += piece.len();
    }
    Ok(read)
}

/// Keys seen so far, 16 bytes each: a hash whose accidental collisions may be neglected.
#[derive(Default)]
struct Seen {
    hashes: HashSet<u128>,
    seeds: (RandomState, RandomState),
}

impl Seen {
    /// Notes a key; returns false when it was there already.
    fn insert(&mut self, key: &[u8]) -> bool {
        let (high, low) = (self.seeds.0.hash_one(key), self.seeds.1.hash_one(key));
        self.hashes.insert(u128::from(high) << 64 | u128::from(low))
    }
}
