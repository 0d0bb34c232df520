//! Pages: large arrays on huge pages, so that scattered reads find their address at once.
//!
//! A read at a random place of a hundred megabytes in pages of 4 KiB misses the processor's table
//! of addresses nearly every time; pages of 2 MiB are so few that it holds them all.

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::error::{Error, Result};

/// Below this size the allocator serves as well.
const LARGE: usize = 1 << 20;

/// An array of fixed length that begins as zeros.
#[derive(Debug)]
pub(super) struct Pages<T> {
    bytes: Bytes<T>,
    len: usize,
}

#[derive(Debug)]
enum Bytes<T> {
    Small(Vec<T>),
    Large(MmapMut, PhantomData<T>),
}

impl<T: Pod> Pages<T> {
    /// Takes memory for so many items, all of them zero.
    pub(super) fn zeroed(len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes < LARGE {
            return Ok(Self { bytes: Bytes::Small(vec![T::zeroed(); len]), len });
        }
        let no_memory = |error| Error::io("memory for resident tables", error);
        let map = MmapMut::map_anon(bytes).map_err(no_memory)?;
        // Where the system has no huge pages, or none left, small ones answer as well.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { bytes: Bytes::Large(map, PhantomData), len })
    }

    pub(super) fn as_slice(&self) -> &[T] {
        match &self.bytes {
            Bytes::Small(items) => items,
            Bytes::Large(map, _) => bytemuck::cast_slice(map),
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        match &mut self.bytes {
            Bytes::Small(items) => items,
            Bytes::Large(map, _) => bytemuck::cast_slice_mut(map),
        }
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}
