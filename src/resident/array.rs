//! Arrays of a table: in the memory of this process, or in a mapped file.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::pages::Pages;

/// A fixed-length array that is only read.
#[derive(Debug)]
pub(super) enum Array<T> {
    Own(Pages<T>),
    Saved(Section<T>),
}

/// A part of a mapped file, in whole items.
#[derive(Debug)]
pub(super) struct Section<T> {
    file: Arc<Mmap>,
    bytes: Range<usize>,
    items: PhantomData<T>,
}

impl<T: Pod> Section<T> {
    /// Returns `len` items from an offset on, `None` if the file ends before or it is not aligned.
    pub(super) fn new(file: &Arc<Mmap>, offset: usize, len: usize) -> Option<Self> {
        let bytes = offset..offset.checked_add(len.checked_mul(size_of::<T>())?)?;
        let whole = file.get(bytes.clone())?;
        bytemuck::try_cast_slice::<u8, T>(whole).ok()?;
        Some(Self { file: Arc::clone(file), bytes, items: PhantomData })
    }

    pub(super) fn as_slice(&self) -> &[T] {
        bytemuck::cast_slice(&self.file[self.bytes.clone()])
    }
}

impl<T: Pod> Array<T> {
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Self::Own(pages) => pages.as_slice(),
            Self::Saved(section) => section.as_slice(),
        }
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.as_slice())
    }
}
