//! Fingerprint widths: what was asked for, stored and read becomes one of three types.

use hamdex::Fingerprint;
use hamdex::inspect::Header;

use crate::failure::{Failure, Result};

/// Default width.
pub(crate) const DEFAULT: u32 = 64;

/// Parses a fingerprint in hexadecimal; `0x` before it is allowed.
pub(crate) fn from_hex<F: Fingerprint>(text: &str) -> hamdex::Result<F> {
    F::from_hex(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text))
}

/// Resolves the width from the option, the index and the raw files; any two must agree.
pub(crate) fn resolve(
    asked: Option<u32>,
    stored: Option<&Header>,
    raw: Option<(u32, &str)>,
) -> Result<u32> {
    let stored = stored.map(|header| header.bits);
    if let (Some(wanted), Some(stored)) = (asked, stored)
        && wanted != stored
    {
        return Err(hamdex::Error::WidthMismatch { stored, wanted }.into());
    }
    let bits = stored.or(asked);
    if let (Some(bits), Some((width, file))) = (bits, raw)
        && width != bits
    {
        let whose = if stored.is_some() { "the index has" } else { "--bits asks for" };
        return Err(Failure::refused(
            file,
            format!(
                "has {width}-bit fingerprints, but {whose} {bits}-bit ones; give a .u{bits} file"
            ),
        ));
    }
    Ok(bits.or(raw.map(|(width, _)| width)).unwrap_or(DEFAULT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_may_be_prefixed() {
        for text in ["00000000000000ff", "0x00000000000000ff", "0X00000000000000FF"] {
            assert_eq!(from_hex::<u64>(text).unwrap(), 255);
        }
        assert!(from_hex::<u64>("0x0x000000000000ff").is_err());
    }

    #[test]
    fn widths_must_agree() {
        assert_eq!(resolve(None, None, None).unwrap(), 64);
        assert_eq!(resolve(Some(32), None, None).unwrap(), 32);
        assert_eq!(resolve(None, None, Some((128, "a.u128"))).unwrap(), 128);
        let error = resolve(Some(64), None, Some((32, "a.u32"))).unwrap_err().to_string();
        assert!(
            error.contains("a.u32") && error.contains("32-bit") && error.contains("64-bit"),
            "{error}"
        );
    }
}
