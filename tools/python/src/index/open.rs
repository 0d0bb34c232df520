//! Open indexes: three widths behind one handle.

use std::path::Path;

use hamdex::{Fingerprint, Header, IndexOptions, OpenOptions};

use crate::failure::Result;
use crate::fingerprints::for_width;

/// An open index of any width.
#[derive(Debug)]
pub(crate) enum Open {
    Bits32(hamdex::Index<u32>),
    Bits64(hamdex::Index<u64>),
    Bits128(hamdex::Index<u128>),
}

/// Does something with the index, whatever its width.
macro_rules! with_index {
    ($open:expr, $index:ident => $body:expr) => {
        match $open {
            $crate::index::Open::Bits32($index) => $body,
            $crate::index::Open::Bits64($index) => $body,
            $crate::index::Open::Bits128($index) => $body,
        }
    };
}
pub(super) use with_index;

/// A width of fingerprints and its kind of open index.
pub(crate) trait Width: Fingerprint {
    fn of(open: &Open) -> Option<&hamdex::Index<Self>>;
    fn open(index: hamdex::Index<Self>) -> Open;
}

macro_rules! width {
    ($int:ty, $variant:ident) => {
        impl Width for $int {
            fn of(open: &Open) -> Option<&hamdex::Index<Self>> {
                if let Open::$variant(index) = open { Some(index) } else { None }
            }

            fn open(index: hamdex::Index<Self>) -> Open {
                Open::$variant(index)
            }
        }
    };
}

width!(u32, Bits32);
width!(u64, Bits64);
width!(u128, Bits128);

impl Open {
    pub(super) fn create(path: &Path, bits: u32, options: &IndexOptions) -> Result<Self> {
        for_width!(bits, F => Ok(F::open(hamdex::Index::<F>::create(path, options)?)))
    }

    pub(super) fn existing(path: &Path, options: &OpenOptions) -> Result<Self> {
        let bits = Header::read(path)?.bits;
        for_width!(bits, F => Ok(F::open(hamdex::Index::<F>::open_with(path, options)?)))
    }

    pub(crate) fn header(&self) -> &Header {
        with_index!(self, index => index.header())
    }

    pub(crate) fn bits(&self) -> u32 {
        self.header().bits
    }

    /// The pipeline of the index; `None` where fingerprints come from outside.
    pub(crate) fn pipeline(&self) -> Result<Option<hamdex::Pipeline>> {
        if self.header().pipeline.is_empty() {
            return Ok(None);
        }
        Ok(with_index!(self, index => index.pipeline()?))
    }
}
