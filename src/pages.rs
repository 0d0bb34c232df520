//! Large arrays on huge pages, which make random access cheaper.
//!
//! With pages of 4 KiB nearly every random access to a hundred megabytes misses the TLB. With pages
//! of 2 MiB the TLB covers the whole array.

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;

/// Smaller arrays are allocated on the heap: the size of a huge page.
const LARGE: usize = 2 << 20;

/// A fixed-length array that is zeroed at first.
#[derive(Debug)]
pub(crate) enum Pages<T> {
    Heap(Vec<T>),
    Mapped(MmapMut, PhantomData<T>),
}

impl<T: Pod> Pages<T> {
    /// Allocates `len` zeroed items.
    pub(crate) fn zeroed(len: usize) -> Self {
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes >= LARGE
            && let Ok(mapped) = MmapMut::map_anon(bytes)
        {
            // Only a hint: without huge pages small ones are used.
            #[cfg(target_os = "linux")]
            let _ = mapped.advise(memmap2::Advice::HugePage);
            return Self::Mapped(mapped, PhantomData);
        }
        Self::Heap(vec![T::zeroed(); len])
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::Heap(items) => items,
            // A mapping is page-aligned and was sized in whole items.
            Self::Mapped(bytes, _) => bytemuck::cast_slice(bytes),
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::Heap(items) => items,
            Self::Mapped(bytes, _) => bytemuck::cast_slice_mut(bytes),
        }
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_every_size_are_zeroed_and_keep_what_is_written() {
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
