//! Spread: a join over many machines, each of which processes the groups of some keys.
//!
//! A fingerprint becomes one row per table of a plan. The key of a row is the table and the
//! fingerprint's prefix in it ([`Keys`]). A shuffle sorts the rows by key and passes them to
//! [`Groups`], which compares the members of one key at a time and keeps nothing of earlier keys.
//! Two near fingerprints share at least one key, so all groups together find what one machine
//! finds. Requires the feature `distributed`.
//!
//! A group with too many members is returned row by row, and each member gets longer keys: the bits
//! after the prefix are cut into blocks again, as [`join`](crate::join) does on one machine. No
//! group is truncated. For clusters a group returns a spanning forest, which has fewer links than
//! the group has members, for any number of pairs.
//!
//! ```
//! use hamdex::spread::{Found, Groups, Keys, Row, Wanted};
//!
//! let keys = Keys::<u64>::new(3, 1_000_000)?;
//! let mut rows = Vec::new();
//! for fingerprint in [0x00ff_u64, 0x00fe, 0xffff_0000_0000_0000] {
//!     rows.extend(keys.first(fingerprint).map(|key| Row { key, fingerprint, second: false }));
//! }
//! rows.sort_by_key(|row| row.key);
//!
//! let mut groups = Groups::new(keys, Wanted::Links, 1000);
//! let mut found = Found::default();
//! for row in rows {
//!     groups.push(row, &mut found)?;
//! }
//! let counts = groups.finish(&mut found)?;
//! assert!(found.pairs.iter().all(|link| (link.a, link.b) == (0x00fe, 0x00ff)));
//! assert_eq!((counts.rows, counts.skewed), (12, 0));
//! # Ok::<(), hamdex::Error>(())
//! ```
#![expect(
    clippy::indexing_slicing,
    reason = "tables and members are numbered here; a wrong index must panic, not lose pairs"
)]

mod groups;
mod keys;

#[cfg(test)]
mod tests;

pub use groups::{Counts, Found, Groups, Row, Wanted};
pub use keys::Keys;
