//! Buffer: room for a copy of a set, in huge pages where the system has them.
//!
//! Scattering into many places at once misses the address cache on every write when pages are
//! small, and touching fresh small pages costs as much as the scattering itself.

use memmap2::MmapMut;

use crate::fingerprint::Fingerprint;

/// Below this the heap has the memory at hand and its pages are in use.
const MAPPED_MIN: usize = 4 << 20;

/// Room for a number of fingerprints, all zero at first.
#[derive(Debug)]
pub(super) enum Buffer<F> {
    Heap(Vec<F>),
    Mapped(MmapMut),
}

impl<F: Fingerprint> Buffer<F> {
    /// Takes room for at least so many.
    pub(super) fn new(len: usize) -> Self {
        let bytes = len.saturating_mul(F::BYTES);
        if bytes >= MAPPED_MIN
            && let Ok(mapped) = MmapMut::map_anon(bytes)
        {
            // Only a hint: without huge pages everything works, more slowly.
            #[cfg(target_os = "linux")]
            mapped.advise(memmap2::Advice::HugePage).unwrap_or_default();
            return Self::Mapped(mapped);
        }
        Self::Heap(vec![F::ZERO; len])
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [F] {
        match self {
            Self::Heap(members) => members,
            // Mapped memory begins at a page, so only its end could fail to be whole.
            Self::Mapped(bytes) => bytemuck::try_cast_slice_mut(bytes).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_every_size_begin_as_zeros() {
        for len in [0, 1, 1000, MAPPED_MIN / 8, MAPPED_MIN / 8 + 12_345] {
            let mut buffer = Buffer::<u64>::new(len);
            assert_eq!(buffer.as_mut_slice(), vec![0; len]);
            buffer.as_mut_slice().fill(u64::MAX);
            assert!(buffer.as_mut_slice().iter().all(|&member| member == u64::MAX));
            assert_eq!(Buffer::<u128>::new(len).as_mut_slice().len(), len);
        }
    }
}
