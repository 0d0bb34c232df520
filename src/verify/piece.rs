//! Pieces: where the evidence of a document is, and what is known without reading it.

use super::Evidence;
use super::outline::Outline;
use super::phrase_set::PhraseOutline;

/// Bytes of a record before the outline.
const PLACE: usize = 32;

/// Bytes of the longest record.
pub(super) const LONGEST: usize = PLACE + PhraseOutline::BYTES;

/// The evidence of a document, known without reading it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Only equal pieces have equal hashes.
    pub(super) hash: u128,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) summary: Summary,
}

/// The outline of a piece, by its kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Summary {
    Nothing,
    Text(Outline),
    Phrases(PhraseOutline),
}

impl Piece {
    /// The piece of a position out of range.
    pub(super) const NOWHERE: Self =
        Self { hash: u128::MAX, start: 0, end: 0, summary: Summary::Nothing };

    /// Returns the bytes of a record.
    pub(super) fn bytes(kind: Evidence) -> usize {
        PLACE
            + match kind {
                Evidence::Text => Outline::BYTES,
                Evidence::Phrases => PhraseOutline::BYTES,
                Evidence::Nothing | Evidence::Features => 0,
            }
    }

    /// Writes the record in place of what is in the buffer.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.hash.to_be_bytes());
        out.extend_from_slice(&self.start.to_be_bytes());
        out.extend_from_slice(&self.end.to_be_bytes());
        match &self.summary {
            Summary::Nothing => {}
            Summary::Text(outline) => outline.encode(out),
            Summary::Phrases(outline) => outline.encode(out),
        }
    }

    pub(super) fn decode(bytes: &[u8], kind: Evidence) -> Option<Self> {
        let (hash, bytes) = bytes.split_first_chunk()?;
        let (start, bytes) = bytes.split_first_chunk()?;
        let (end, bytes) = bytes.split_first_chunk()?;
        let summary = match kind {
            Evidence::Text => Summary::Text(Outline::decode(bytes.first_chunk()?)),
            Evidence::Phrases => Summary::Phrases(PhraseOutline::decode(bytes.first_chunk()?)),
            Evidence::Nothing | Evidence::Features => Summary::Nothing,
        };
        let hash = u128::from_be_bytes(*hash);
        let (start, end) = (u64::from_be_bytes(*start), u64::from_be_bytes(*end));
        Some(Self { hash, start, end, summary })
    }

    #[expect(clippy::cast_possible_truncation, reason = "half of the hash is a hash")]
    pub(super) fn digest(&self) -> u64 {
        self.hash as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn len(&self) -> u64 {
        self.end - self.start
    }

    pub(super) fn outline(&self) -> Option<&Outline> {
        match &self.summary {
            Summary::Text(outline) => Some(outline),
            Summary::Nothing | Summary::Phrases(_) => None,
        }
    }

    pub(super) fn phrases(&self) -> Option<&PhraseOutline> {
        match &self.summary {
            Summary::Phrases(outline) => Some(outline),
            Summary::Nothing | Summary::Text(_) => None,
        }
    }
}
