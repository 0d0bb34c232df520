//! Fail points: named places where a test kills the process or makes a step fail.
//!
//! They exist only with the feature `failpoints`; other builds do not even contain their names. A
//! failing point is reported as an I/O error of the operating system.

/// Marks a named place in an operation; returns the error that a test configured for it.
macro_rules! fail_point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::fail_point::pass($name)?;
    };
}

pub(crate) use fail_point;

/// Performs the action that a test configured for the fail point.
#[cfg(feature = "failpoints")]
pub(crate) fn pass(name: &'static str) -> crate::Result<()> {
    fail::fail_point!(name, |_| {
        let source = std::io::Error::other("a test made this fail point fail");
        Err(crate::Error::io(name, source))
    });
    Ok(())
}
