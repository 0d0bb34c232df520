//! Evaluation: measures precision and recall of all settings on labelled pairs.
//!
//! Near pairs are counted once, by distance and by similarity. The results of any distance and
//! verification follow from these counts.
//!
//! ```
//! use hamdex::verify::Verification;
//! use hamdex::evaluate::{Labels, Tally};
//!
//! let fingerprints = [0b0000_u64, 0b0001, 0b0111, 0xffff_ffff];
//! let labels = Labels { near: vec![(0, 1)], ignored: Vec::new() };
//! let tally = Tally::measure(&fingerprints, None, None, &labels, 3, &())?;
//! let count = tally.at(3, Verification::None).expect("distances are always counted");
//! assert_eq!((count.found, count.correct), (3, 1));
//! assert_eq!(count.recall(tally.positives()), Some(1.0));
//! assert_eq!(tally.at(1, Verification::None).expect("as above").precision(), Some(1.0));
//! # Ok::<(), hamdex::Error>(())
//! ```

mod tally;

pub use tally::{Count, Labels, Tally};
