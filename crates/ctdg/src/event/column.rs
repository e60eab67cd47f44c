//! A column of plain values that lives in memory, perhaps growing, or in a memory-mapped file.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::growing::{Block, GrowingColumn};

/// Maps a file that is written no more: those with a name are replaced by renaming, others belong to one process.
pub(crate) fn map_file(file: &File) -> io::Result<Mmap> {
    #[expect(unsafe_code, reason = "mapping a file is unsafe because another process may change it underneath")]
    // SAFETY: the map is read-only, and the files of this crate are not modified in place.
    unsafe {
        Mmap::map(file)
    }
}

/// A read-only slice of `T` in memory or in a mapped file. Clones share the storage.
#[derive(Clone)]
pub struct Column<T>(Storage<T>);

#[derive(Clone)]
enum Storage<T> {
    Owned(Arc<Vec<T>>),
    /// Byte range of a mapped file; size and alignment are checked on construction.
    Mapped(Arc<Mmap>, Range<usize>),
    /// So many first values of a column that may have grown since.
    Growing(Arc<Block<T>>, usize),
}

impl<T: Pod> Column<T> {
    /// The values; copied only if they are shared or mapped.
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self.0 {
            Storage::Owned(values) => Arc::unwrap_or_clone(values),
            Storage::Mapped(..) | Storage::Growing(..) => self.to_vec(),
        }
    }

    /// What `column` holds now; values that are appended later are not in it.
    pub(crate) fn of_growing(column: &GrowingColumn<T>) -> Self {
        Self(Storage::Growing(Arc::clone(column.block()), column.values().len()))
    }

    /// The values in `bytes` of `file`, or `None` when the range or its alignment does not fit `T`.
    pub(crate) fn mapped(file: &Arc<Mmap>, bytes: Range<usize>) -> Option<Self> {
        bytemuck::try_cast_slice::<u8, T>(file.get(bytes.clone())?).ok()?;
        Some(Self(Storage::Mapped(Arc::clone(file), bytes)))
    }
}

impl<T: Pod> Deref for Column<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Owned(values) => values,
            Storage::Mapped(file, bytes) => bytemuck::cast_slice(&file[bytes.clone()]),
            Storage::Growing(block, len) => &block.as_slice()[..*len],
        }
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Storage::Owned(Arc::new(values)))
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Pod + Eq> Eq for Column<T> {}

impl<T: Pod + PartialEq> PartialEq for Column<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
