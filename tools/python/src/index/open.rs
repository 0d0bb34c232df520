//! Open indexes: three widths behind one handle.

use std::path::Path;

use hamdex::{Fingerprint, Header, IndexOptions, OpenOptions};

use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::tables::Seed;

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
}

/// What an index does with texts.
#[derive(Debug, Clone)]
pub(crate) enum Texts {
    /// Makes fingerprints of them.
    Read(hamdex::Pipeline),
    /// Would do so with the secret, which it was opened without; the descriptor.
    Secret(String),
    /// It holds fingerprints that were made elsewhere.
    Refused,
}

impl Texts {
    /// Of an index that was made with this pipeline.
    pub(super) fn made(pipeline: Option<hamdex::Pipeline>) -> Self {
        pipeline.map_or(Self::Refused, Self::Read)
    }

    /// Of an open index.
    pub(super) fn of(open: &Open, seed: Option<&Seed>) -> Result<Self> {
        let descriptor = &open.header().pipeline;
        if seed.is_none() && is_secret(descriptor) {
            return Ok(Self::Secret(descriptor.clone()));
        }
        let secret = seed.map(|seed| seed.secret);
        Ok(Self::made(with_index!(open, index => index.pipeline_with(secret)?)))
    }

    /// Returns the pipeline, or nothing for an index of fingerprints.
    pub(crate) fn pipeline(&self) -> Result<Option<&hamdex::Pipeline>> {
        match self {
            Self::Read(pipeline) => Ok(Some(pipeline)),
            Self::Refused => Ok(None),
            Self::Secret(_) => Err(secret_missing()),
        }
    }

    pub(super) fn descriptor(&self) -> Option<&str> {
        match self {
            Self::Read(pipeline) => Some(pipeline.descriptor()),
            Self::Secret(descriptor) => Some(descriptor),
            Self::Refused => None,
        }
    }
}

/// Returns whether a descriptor names a secret.
pub(super) fn is_secret(descriptor: &str) -> bool {
    descriptor.contains(";secret=")
}

/// The failure of a text for an index whose secret is not known.
pub(super) fn secret_missing() -> Failure {
    Failure::usage(
        "the index was made with a secret, so it takes texts only with it: give the file as \
         seed_file; fingerprints need none",
    )
}
