//! Fail points: named moments at which a test ends the process or makes a step fail.
//!
//! They exist only with the feature `failpoints`; without it not even their names are compiled.
//! A failing point is reported as the system's input/output error would be.

/// Passes a named moment inside an operation of several steps; returns early when it fails.
macro_rules! fail_point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::fail_point::pass($name)?;
    };
}

pub(crate) use fail_point;

/// Does what a test has set for the moment.
#[cfg(feature = "failpoints")]
pub(crate) fn pass(name: &'static str) -> crate::Result<()> {
    fail::fail_point!(name, |_| {
        let source = std::io::Error::other("the fail point was told to fail");
        Err(crate::Error::io(name, source))
    });
    Ok(())
}
