//! Scratch: the buffers that a thread reuses from text to text.

use std::any::Any;

use crate::text::features::Counted;
use crate::text::features::grams::Letters;
use crate::text::features::ngrams::Tokens;
use crate::text::features::numbered::Numbered;
use crate::text::features::seen::{Firsts, Seen};
use crate::text::rarity::idf::Rarities;
use crate::text::tokens::segment::Parts;

/// Largest buffer that a thread keeps between texts.
const KEPT_BYTES: usize = 4 << 20;

/// Buffers of one thread, reused so that a text needs no allocation.
#[derive(Default)]
pub(in crate::text) struct Scratch {
    pub(in crate::text) normal: String,
    pub(super) cleaned: String,
    pub(in crate::text) letters: Letters,
    pub(in crate::text) firsts: Firsts,
    pub(in crate::text) numbered: Numbered,
    pub(in crate::text) parts: Parts,
    pub(in crate::text) tokens: Tokens,
    pub(in crate::text) seen: Seen,
    pub(in crate::text) counted: Vec<Counted>,
    pub(in crate::text) rarities: Rarities,
    /// One signer of each kind and width in use.
    pub(super) signers: Vec<Box<dyn Any>>,
}

impl Scratch {
    /// Frees buffers that one huge text has grown.
    pub(super) fn release_huge(&mut self) {
        release(&mut self.normal, KEPT_BYTES);
        release(&mut self.cleaned, KEPT_BYTES);
        self.letters.release_above(KEPT_BYTES);
        self.parts.release_above(KEPT_BYTES);
        self.tokens.release_above(KEPT_BYTES);
        self.seen.release_above(KEPT_BYTES);
        self.firsts.release_above(KEPT_BYTES);
        self.numbered.release_above(KEPT_BYTES);
        if self.counted.capacity() * size_of::<Counted>() > KEPT_BYTES {
            self.counted = Vec::new();
        }
    }
}

/// Frees a string that holds more memory than `bytes`.
pub(in crate::text) fn release(text: &mut String, bytes: usize) {
    if text.capacity() > bytes {
        *text = String::new();
    }
}
