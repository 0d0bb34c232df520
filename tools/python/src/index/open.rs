//! Open indexes: one handle for three widths.

use std::path::Path;

use hamdex::inspect::Header;
use hamdex::{Fingerprint, IndexOptions, OpenOptions};

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

/// Runs an expression with the index of any width.
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

/// A fingerprint width and its kind of open index.
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

/// How an index processes texts.
#[derive(Debug, Clone)]
pub(crate) enum Texts {
    /// Computes their fingerprints.
    Read(hamdex::Pipeline),
    /// Needs a secret that was not passed; holds the descriptor.
    Secret(String),
    /// Has no pipeline, because its fingerprints were computed elsewhere.
    Refused,
}

impl Texts {
    /// For an index that was created with this pipeline.
    pub(super) fn with_pipeline(pipeline: Option<hamdex::Pipeline>) -> Self {
        pipeline.map_or(Self::Refused, Self::Read)
    }

    /// For an open index.
    pub(super) fn of(open: &Open, seed: Option<&Seed>) -> Result<Self> {
        let descriptor = &open.header().pipeline;
        if seed.is_none() && is_secret(descriptor) {
            return Ok(Self::Secret(descriptor.clone()));
        }
        let secret = seed.map(|seed| seed.secret);
        Ok(Self::with_pipeline(with_index!(open, index => index.pipeline_with(secret)?)))
    }

    /// Returns the pipeline; `None` if the index has none.
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

/// Returns true if the descriptor names a secret.
pub(super) fn is_secret(descriptor: &str) -> bool {
    descriptor.contains(";secret=")
}

/// Returns the failure of a text for an index whose secret was not passed.
pub(super) fn secret_missing() -> Failure {
    Failure::usage(
        "the index was created with a secret and needs it for texts; pass the file as \
         seed_file (fingerprints need no secret)",
    )
}
