//! External sorting: runs that fit in memory are sorted and spilled to a temporary file, then merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::path::Path;

use bytemuck::Pod;
use rayon::prelude::*;

use crate::event::{Column, Spool};

/// What is sorted.
pub(super) trait Record: Pod + Send + Sync {
    /// Records of equal keys are equal.
    type Key: Ord + Copy + Send;

    fn key(&self) -> Self::Key;
}

/// Takes records in any order and returns them in that of their keys.
///
/// # Complexity
/// O(n log n) time; memory for one run. Everything is written and read once beside it.
#[derive(Debug)]
pub(super) struct Sorter<R> {
    run: Vec<R>,
    /// Records of a run.
    most: usize,
    spilled: Spool<R>,
    /// Where each spilled run ends.
    ends: Vec<usize>,
}

impl<R: Record> Sorter<R> {
    /// For `n` records in runs of so many bytes; runs go to a temporary file in `folder`.
    pub(super) fn new(folder: &Path, n: usize, bytes: usize) -> Self {
        let most = (bytes / size_of::<R>()).clamp(2, n.max(2));
        Self { run: Vec::with_capacity(most), most, spilled: Spool::new(folder, 0), ends: Vec::new() }
    }

    pub(super) fn push(&mut self, record: R) -> io::Result<()> {
        if self.run.len() == self.most {
            self.spill()?;
        }
        self.run.push(record);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.run.par_sort_unstable_by_key(Record::key);
        self.spilled.extend(&self.run)?;
        self.ends.push(self.spilled.len());
        self.run.clear();
        Ok(())
    }

    /// All records in order.
    pub(super) fn finish(mut self) -> io::Result<Sorted<R>> {
        if self.ends.is_empty() {
            self.run.par_sort_unstable_by_key(Record::key);
            let runs = std::iter::once(0..self.run.len());
            return Ok(Sorted::new(self.run.into(), runs));
        }
        self.spill()?;
        drop(self.run);
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        Ok(Sorted::new(self.spilled.finish()?, starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)))
    }
}

/// The merged runs.
#[derive(Debug)]
pub(super) struct Sorted<R: Record> {
    records: Column<R>,
    /// The next record of each run that has one, the smallest first.
    heads: BinaryHeap<Reverse<Head<R::Key>>>,
}

/// Compared by key; runs of equal keys hold equal records.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head<K> {
    key: K,
    next: usize,
    end: usize,
}

impl<R: Record> Sorted<R> {
    fn new(records: Column<R>, runs: impl Iterator<Item = std::ops::Range<usize>>) -> Self {
        let heads = runs.filter(|run| !run.is_empty());
        let heads = heads.map(|run| Reverse(Head { key: records[run.start].key(), next: run.start, end: run.end }));
        let heads = heads.collect();
        Self { records, heads }
    }
}

impl<R: Record> Iterator for Sorted<R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        let mut head = self.heads.peek_mut()?;
        let record = self.records[head.0.next];
        head.0.next += 1;
        if head.0.next == head.0.end {
            PeekMut::pop(head);
        } else {
            head.0.key = self.records[head.0.next].key();
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Record for u64 {
        type Key = u64;

        fn key(&self) -> u64 {
            *self
        }
    }

    proptest! {
        #[test]
        fn any_number_of_runs_gives_the_order_of_a_sort(values in proptest::collection::vec(0_u64..50, 0..300), run in 1_usize..400) {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(folder.path(), values.len(), run * size_of::<u64>());
            for &value in &values {
                sorter.push(value).unwrap();
            }
            let n_runs = sorter.ends.len() + 1;
            prop_assert_eq!(n_runs, values.len().div_ceil(run.max(2)).max(1));
            let sorted: Vec<u64> = sorter.finish().unwrap().collect();
            let mut expected = values;
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }
}
