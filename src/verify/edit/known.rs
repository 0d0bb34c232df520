//! A cache per thread of the edits between parts of texts, by their contents.
//!
//! Texts of one template are compared with each other again and again, and where they differ, one
//! of them usually has the template's text.
#![expect(clippy::indexing_slicing, reason = "there is an entry for every remainder")]

use std::cell::RefCell;

use crate::error::Result;

/// Entries per thread; they take 2 MiB.
const ENTRIES: usize = 1 << 17;

/// The key of a part, and its edits.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    key: u64,
    edits: u32,
    /// False if only a lower bound is known: there are more edits.
    exact: bool,
}

thread_local! {
    /// Direct-mapped: each key has one slot and evicts the key there.
    static KNOWN: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Returns the edits of a part if there are at most `most`, counting them unless cached.
///
/// `count` gets the number up to which it must count; it may return more. Keys are well-mixed
/// hashes.
pub(super) fn edits(
    key: u64,
    most: usize,
    count: impl FnOnce(usize) -> Result<Option<usize>>,
) -> Result<Option<usize>> {
    KNOWN.with_borrow_mut(|known| {
        if known.is_empty() {
            known.resize(ENTRIES, Entry::default());
        }
        let place = usize::try_from(key % ENTRIES as u64).expect("there are few entries");
        let entry = &mut known[place];
        let edits = entry.edits as usize;
        if entry.key == key && key != 0 && (entry.exact || edits >= most) {
            return Ok(Some(edits).filter(|edits| entry.exact && *edits <= most));
        }
        let found = count(most)?;
        let edits = u32::try_from(found.unwrap_or(most)).unwrap_or(u32::MAX);
        *entry = Entry { key, edits, exact: found.is_some() };
        Ok(found.filter(|found| *found <= most))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests the edits of a part that has `has`; returns them and whether they were counted.
    fn ask(key: u64, most: usize, has: usize) -> (Option<usize>, bool) {
        let mut counted = false;
        let found = edits(key, most, |most| {
            counted = true;
            Ok(Some(has).filter(|has| *has <= most))
        });
        (found.unwrap(), counted)
    }

    #[test]
    fn edits_are_counted_once_until_another_key_takes_the_place() {
        let [one, other] = [3, 3 + ENTRIES as u64];
        assert_eq!([ask(one, 9, 7), ask(one, 9, 7)], [(Some(7), true), (Some(7), false)]);
        assert_eq!([ask(one, 7, 7), ask(one, 6, 7)], [(Some(7), false), (None, false)]);
        assert_eq!([ask(other, 9, 5), ask(one, 9, 7)], [(Some(5), true), (Some(7), true)]);
        assert_eq!([ask(0, 9, 1), ask(0, 9, 2)], [(Some(1), true), (Some(2), true)]);
    }

    #[test]
    fn too_many_edits_are_counted_again_when_more_are_allowed() {
        let key = 1 << 40;
        assert_eq!([ask(key, 5, 6), ask(key, 4, 6)], [(None, true), (None, false)]);
        assert_eq!([ask(key, 6, 6), ask(key, 5, 6)], [(Some(6), true), (None, false)]);
    }

    #[test]
    fn a_cancelled_count_is_not_cached() {
        let key = 1 << 41;
        assert!(edits(key, 5, |_| Err(crate::Error::Cancelled)).is_err());
        assert_eq!(ask(key, 5, 4), (Some(4), true));
    }

    #[test]
    fn a_count_above_the_limit_is_cached() {
        let key = 1 << 42;
        assert_eq!(edits(key, 5, |_| Ok(Some(8))).unwrap(), None);
        assert_eq!(ask(key, 8, 8), (Some(8), false));
    }
}
