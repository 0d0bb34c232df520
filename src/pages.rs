//! Pages: large arrays on huge pages, so that scattered reads and writes find their place at once.
//!
//! An access somewhere in a hundred megabytes in pages of 4 KiB misses the processor's table of
//! addresses nearly every time; pages of 2 MiB are so few that it holds them all.

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;

/// Below the size of a huge page the heap serves as well.
const LARGE: usize = 2 << 20;

/// An array of fixed length that begins as zeros.
#[derive(Debug)]
pub(crate) enum Pages<T> {
    Heap(Vec<T>),
    Mapped(MmapMut, PhantomData<T>),
}

impl<T: Pod> Pages<T> {
    /// Takes room for so many items.
    pub(crate) fn zeroed(len: usize) -> Self {
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes >= LARGE
            && let Ok(mapped) = MmapMut::map_anon(bytes)
        {
            // Only a hint: where the system has no huge pages, small ones answer as well.
            #[cfg(target_os = "linux")]
            let _ = mapped.advise(memmap2::Advice::HugePage);
            return Self::Mapped(mapped, PhantomData);
        }
        Self::Heap(vec![T::zeroed(); len])
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::Heap(items) => items,
            // Mapped memory begins at a page and was sized in whole items.
            Self::Mapped(bytes, _) => bytemuck::cast_slice(bytes),
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::Heap(items) => items,
            Self::Mapped(bytes, _) => bytemuck::cast_slice_mut(bytes),
        }
    }

    /// Returns the bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_every_size_begin_as_zeros_and_keep_what_is_written() {
        for len in [0, 1, 1000, LARGE / 8, LARGE / 8 + 12_345] {
            let mut pages = Pages::<u64>::zeroed(len);
            assert_eq!(pages.as_slice(), vec![0; len]);
            assert_eq!(pages.bytes(), len * 8);
            pages.as_mut_slice().fill(u64::MAX);
            assert!(pages.as_slice().iter().all(|&item| item == u64::MAX));
            assert_eq!(Pages::<u128>::zeroed(len).as_slice().len(), len);
        }
    }
}
