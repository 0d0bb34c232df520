//! Variable-length integers: seven bits per byte, low bits first (LEB128).
//!
//! Every number has exactly one encoding; a superfluous zero byte at the end is refused. Ascending
//! numbers are stored as gaps.

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut value: u32) {
    while let Err(_) | Ok(0x80..) = u8::try_from(value) {
        out.push(0x80 | low_bits(value));
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: u32) -> u8 {
    u8::try_from(value & 0x7f).expect("seven bits")
}

/// Decodes a number and advances; `None` if the bytes are not an encoding.
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

/// Appends ascending numbers, each as its gap to the smallest value that could follow.
pub(super) fn put_rising(out: &mut Vec<u8>, values: &[u32]) {
    let mut least = 0;
    for &value in values {
        put(out, value - least);
        least = value.saturating_add(1);
    }
}

/// Decodes ascending numbers one by one.
#[derive(Debug)]
pub(super) struct Rising<'a> {
    rest: &'a [u8],
    /// Smallest value of the next number.
    least: u64,
    /// How many numbers were read.
    pub(super) read: u32,
}

impl<'a> Rising<'a> {
    /// Reads bytes that [`put_rising`] appended.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, least: 0, read: 0 }
    }

    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next number, which must fit in `bits` bits.
    ///
    /// # Errors
    ///
    /// A description of what is wrong with the bytes.
    #[inline]
    pub(super) fn take(&mut self, bits: u32) -> Result<u32, &'static str> {
        let gap = take(&mut self.rest).ok_or("has a truncated gap")?;
        let value = self.least + u64::from(gap);
        let small = u32::try_from(value).ok().filter(|_| value >> bits == 0);
        let small = small.ok_or("has a hash that is too large")?;
        self.least = value + 1;
        self.read += 1;
        Ok(small)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rising_numbers_read_back_and_damage_is_refused() {
        let values = [0, 1, 200, 1 << 24, u32::MAX - 1, u32::MAX];
        let mut bytes = Vec::new();
        put_rising(&mut bytes, &values);
        assert_eq!(bytes[..4], [0, 0, 0xc6, 1]);
        let mut rising = Rising::new(&bytes);
        for value in values {
            assert!(!rising.is_at_end());
            assert_eq!(rising.take(32), Ok(value));
        }
        assert!(rising.is_at_end() && rising.read == 6);
        assert_eq!(rising.take(32), Err("has a truncated gap"));
        // No number is above the largest one.
        bytes.push(0);
        let mut rising = Rising::new(&bytes);
        assert!((0..6).all(|_| rising.take(32).is_ok()));
        assert_eq!(rising.take(32), Err("has a hash that is too large"));
        let mut rising = Rising::new(&bytes);
        assert_eq!([0, 1, 200].map(Ok), [24; 3].map(|bits| rising.take(bits)));
        assert_eq!(rising.take(24), Err("has a hash that is too large"));
    }

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
