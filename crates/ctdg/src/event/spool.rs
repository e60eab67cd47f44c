//! A column that is appended to: in memory up to a limit, in a temporary file beyond it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;

use super::{Column, map_file};

/// Bytes that are written at once.
const CHUNK: usize = 1 << 20;

/// Where columns go that outgrow the memory they may take: to temporary files without a name, which vanish with the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spill {
    /// The folder of the files, on a disk with room for the columns.
    pub folder: PathBuf,
    /// Bytes of each column that stay in memory.
    pub memory: usize,
}

/// Values in order. The file has no name: it vanishes with the process.
#[derive(Debug)]
pub(crate) struct Spool<T> {
    folder: PathBuf,
    values: Vec<T>,
    /// Values that stay in memory until they are written.
    most: usize,
    file: Option<File>,
    n_written: usize,
}

impl<T: Pod> Spool<T> {
    /// Empty; more than `bytes` go to a file in `folder`.
    pub(crate) fn new(folder: &Path, bytes: usize) -> Self {
        let most = (bytes / size_of::<T>()).max(1);
        Self { folder: folder.to_path_buf(), values: Vec::new(), most, file: None, n_written: 0 }
    }

    /// Empty; spilling as asked, or never.
    pub(crate) fn with(spill: Option<&Spill>) -> Self {
        match spill {
            Some(Spill { folder, memory }) => Self::new(folder, *memory),
            None => Self::new(Path::new(""), usize::MAX),
        }
    }

    /// Takes memory for `n` more values at once, unless they go to a file.
    pub(crate) fn reserve(&mut self, n: usize) {
        if self.values.len().saturating_add(n) <= self.most {
            self.values.reserve_exact(n);
        }
    }

    /// Replaces every value.
    pub(crate) fn map(&mut self, mut change: impl FnMut(T) -> T) -> io::Result<()> {
        if self.file.is_none() {
            self.values.iter_mut().for_each(|value| *value = change(*value));
            return Ok(());
        }
        let changed = Self::new(&self.folder, self.most * size_of::<T>());
        let before = std::mem::replace(self, changed).finish()?;
        before.iter().try_for_each(|&value| self.push(change(value)))
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.n_written + self.values.len()
    }

    pub(crate) fn push(&mut self, value: T) -> io::Result<()> {
        if self.values.len() >= self.most {
            self.write()?;
        }
        self.values.push(value);
        Ok(())
    }

    /// Appends `values`, past the memory if they are many.
    pub(crate) fn extend(&mut self, values: &[T]) -> io::Result<()> {
        if self.values.len() + values.len() <= self.most {
            self.values.extend_from_slice(values);
            return Ok(());
        }
        self.write()?;
        self.write_through(values)
    }

    /// Writes what is in memory.
    fn write(&mut self) -> io::Result<()> {
        let values = std::mem::take(&mut self.values);
        self.write_through(&values)?;
        // From now on only what is written at once is kept.
        self.most = self.most.min((CHUNK / size_of::<T>()).max(1));
        self.values = values;
        self.values.clear();
        self.values.shrink_to(self.most);
        Ok(())
    }

    fn write_through(&mut self, values: &[T]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(&self.folder)?),
        };
        file.write_all(bytemuck::cast_slice(values))?;
        self.n_written += values.len();
        Ok(())
    }

    /// The column, which keeps the file.
    pub(crate) fn finish(mut self) -> io::Result<Column<T>> {
        if self.file.is_none() {
            self.values.shrink_to_fit();
            return Ok(self.values.into());
        }
        self.write()?;
        let bytes = 0..self.n_written * size_of::<T>();
        let file = self.file.ok_or_else(|| io::Error::other("no temporary file"))?;
        Column::mapped(&Arc::new(map_file(&file)?), bytes)
            .ok_or_else(|| io::Error::other("a temporary file of another length"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_limit_are_in_a_file_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [0, 4, 12, 40, 4_000] {
            let mut spool = Spool::new(folder.path(), bytes);
            for value in 0..100_u32 {
                spool.push(value).unwrap();
            }
            spool.map(|value| value + 1).unwrap();
            spool.map(|value| value - 1).unwrap();
            spool.extend(&[7; 20]).unwrap();
            spool.push(8).unwrap();
            assert_eq!((spool.len(), spool.file.is_some()), (121, bytes < 4_000));
            let column = spool.finish().unwrap();
            assert_eq!(column[..100], (0..100).collect::<Vec<u32>>());
            assert_eq!(column[100..], [[7; 20].as_slice(), &[8]].concat());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the files have no names");
        assert!(Spool::<f64>::new(folder.path(), 0).finish().unwrap().is_empty());
    }
}
