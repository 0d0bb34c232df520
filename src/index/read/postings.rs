//! Postings: the documents of a fingerprint, from memory or from the store.

use super::ranges::OfPacks;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::store::{Postings, keys};

/// Calls `visit` with each document key of a fingerprint, ascending, until it returns false.
///
/// `packs` are those of the snapshot that `postings` read.
pub(in crate::index) fn each_document<F: Fingerprint>(
    postings: &mut Postings,
    packs: Option<OfPacks<'_, F>>,
    fingerprint: F,
    mut visit: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    postings.with(|cursor| {
        if let Some(packs) = packs
            && cursor.has_packs()
            && packs.each_document(cursor, fingerprint, &mut visit)?
        {
            return Ok(());
        }
        cursor.seek(fingerprint.to_bytes().as_ref());
        while let Some((key, _)) = cursor.entry()? {
            let (owner, document) = keys::split_posting::<F>(key)?;
            if owner != fingerprint || !visit(document) {
                break;
            }
            cursor.next();
        }
        Ok(())
    })
}
