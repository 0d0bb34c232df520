//! Iteration over documents: decodes the store's records in order of keys.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::store::codec::{self, Document};
use crate::store::{Family, Snapshot};

/// Documents read from the store at a time.
const CHUNK: usize = 1024;

/// An iterator over the documents of a snapshot, in ascending order of keys.
///
/// Created by [`Reader::documents`](crate::Reader::documents). Stops after the first error.
///
/// ```
/// use hamdex::Documents;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// let documents: Documents<u64> = index.documents()?;
/// for document in documents {
///     let (key, fingerprint) = document?;
///     assert_eq!((&key[..], fingerprint), (&b"page"[..], 0xff));
/// }
/// # Ok::<(), hamdex::Error>(())
/// ```
pub struct Documents<F> {
    snapshot: Arc<Snapshot>,
    chunk: std::vec::IntoIter<Result<(Vec<u8>, F)>>,
    after: Option<Vec<u8>>,
    done: bool,
    width: PhantomData<fn() -> F>,
}

impl<F> std::fmt::Debug for Documents<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Documents").field("done", &self.done).finish_non_exhaustive()
    }
}

impl<F: Fingerprint> Documents<F> {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            chunk: Vec::new().into_iter(),
            after: None,
            done: false,
            width: PhantomData,
        }
    }

    /// Reads the next chunk after the last key. A new cursor costs little next to 1024 records.
    fn refill(&mut self) -> Result<()> {
        let mut cursor = self.snapshot.sweep(Family::Docs)?;
        if let Some(after) = self.after.take() {
            let mut next = after;
            next.push(0);
            cursor.seek(&next);
        }
        let mut chunk = Vec::with_capacity(CHUNK);
        while chunk.len() < CHUNK {
            let Some((key, bytes)) = cursor.entry()? else {
                self.done = true;
                break;
            };
            let record = codec::decode::<Document<F>>("docs", key, bytes);
            let failed = record.is_err();
            chunk.push(record.map(|document| (key.to_vec(), document.fingerprint)));
            if failed {
                self.done = true;
                break;
            }
            cursor.next();
        }
        self.after = chunk.last().and_then(|last| last.as_ref().ok()).map(|(key, _)| key.clone());
        self.chunk = chunk.into_iter();
        Ok(())
    }
}

impl<F: Fingerprint> Iterator for Documents<F> {
    type Item = Result<(Vec<u8>, F)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.chunk.len() == 0
            && !self.done
            && let Err(error) = self.refill()
        {
            self.done = true;
            return Some(Err(error));
        }
        self.chunk.next()
    }
}
