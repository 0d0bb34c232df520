//! Variable-length integers: small numbers become few bytes, seven bits in each (LEB128).
//!
//! Every number has one form only: what ends in a needless zero byte is refused.

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut value: u32) {
    while let Err(_) | Ok(0x80..) = u8::try_from(value) {
        out.push(0x80 | low_bits(value));
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: u32) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or(0)
}

/// Takes a number off the front; `None` where there is none in its only form.
#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..u32::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u32::from(byte & 0x7f);
        if (part << shift) >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return (byte != 0 || shift == 0).then_some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_from_as_few_bytes_as_they_need() {
        for (value, len) in
            [(0, 1), (127, 1), (128, 2), (1 << 14, 3), (1 << 21, 4), (1 << 28, 5), (u32::MAX, 5)]
        {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(bytes.len(), len);
            bytes.push(7);
            let mut rest = bytes.as_slice();
            assert_eq!(take(&mut rest), Some(value));
            assert_eq!(rest, [7]);
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0x80, 0],
            &[0xff, 0x80, 0],
            &[0xff, 0xff, 0xff, 0xff, 0x10],
            &[0xff, 0xff, 0xff, 0xff, 0x8f, 0],
        ] {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
