//! Checks for tests: a table of words that cannot be read names the line.

use crate::error::{Error, Result};

/// Checks that each text is refused, at that line, for a reason with those words in it.
pub(super) fn check<T>(
    table: &str,
    parse: impl Fn(&str) -> Result<T>,
    cases: &[(&str, u64, &str)],
) {
    for &(text, at, words) in cases {
        let Err(Error::InvalidLine { what, line, reason }) = parse(text) else {
            panic!("accepted {text}");
        };
        assert_eq!((what, line), (table, at), "{text}");
        assert!(reason.contains(words), "{text}: {reason}");
    }
}
