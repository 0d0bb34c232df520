//! Spread: a join over many machines, of which each sees the groups of some keys only.
//!
//! A fingerprint becomes a few rows, one for each table of a plan, whose key is the table and the
//! prefix in it ([`Keys`]). Whatever brings rows of equal keys together and sorts them by key, a
//! shuffle for instance, gives them to [`Groups`], which compares the members of one key at a time
//! and keeps nothing of those before. Two fingerprints within the distance meet under one key at
//! least, so the union of what all groups find is what one machine finds.
//!
//! A group of too many members is handed back, and each member becomes rows of longer keys:
//! the bits behind the prefix are cut into blocks again, as [`join`](crate::join) does within one
//! machine. No group is cut short. For clusters a group answers with a spanning forest, which has
//! fewer links than the group has members, however many pairs it has.
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
//! assert_eq!((counts.rows, counts.heavy), (12, 0));
//! # Ok::<(), hamdex::Error>(())
//! ```
#![expect(
    clippy::indexing_slicing,
    reason = "tables and members are numbered here; one that slips must panic, not lose pairs"
)]

mod groups;
mod keys;

#[cfg(test)]
mod tests;

pub use groups::{Counts, Found, Groups, Row, Wanted};
pub use keys::Keys;
