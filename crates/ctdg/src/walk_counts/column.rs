//! A vector indexed by node id, sparse or dense.

use std::ops::Range;

/// Values by node id.
#[derive(Debug, Clone)]
pub(super) enum Column {
    /// The non-zero values, by ascending id.
    Sparse { ids: Vec<u32>, values: Vec<f32> },
    /// A window of ids from `first` on; zero outside.
    Dense { first: u32, values: Vec<f32> },
}

/// A sparse column becomes dense when at least one value in this many of its window is non-zero: it then takes at most
/// twice the memory, and adding to it is several times faster.
const DENSE_RATIO: usize = 4;
/// A dense column becomes sparse again when, after growing, fewer than one value in this many is non-zero.
const SPARSE_RATIO: usize = 2 * DENSE_RATIO;

impl Default for Column {
    fn default() -> Self {
        Self::Sparse { ids: Vec::new(), values: Vec::new() }
    }
}

impl Column {
    #[inline]
    pub(super) fn get(&self, id: u32) -> f32 {
        match self {
            Self::Sparse { ids, values } => ids.binary_search(&id).map_or(0.0, |at| values[at]),
            // An id before the window wraps around to beyond its end.
            Self::Dense { first, values } => values.get(id.wrapping_sub(*first) as usize).copied().unwrap_or(0.0),
        }
    }

    /// Adds 1 at `id`.
    pub(super) fn increment(&mut self, id: u32) {
        self.add(&Self::Sparse { ids: vec![id], values: vec![1.0] });
    }

    /// Adds `other` element-wise.
    pub(super) fn add(&mut self, other: &Self) {
        let window = other.window();
        if window.is_empty() {
            return;
        }
        self.cover(&window);
        match (&mut *self, other) {
            (Self::Dense { first, values }, Self::Dense { values: more, .. }) => {
                let at = (window.start - *first) as usize;
                for (value, more) in values[at..at + more.len()].iter_mut().zip(more) {
                    *value += more;
                }
            }
            (Self::Dense { first, values }, Self::Sparse { ids, values: more }) => {
                for (id, more) in ids.iter().zip(more) {
                    values[(id - *first) as usize] += more;
                }
            }
            (Self::Sparse { ids, values }, Self::Sparse { ids: other, values: more }) => {
                merge(ids, values, other.iter().copied().zip(more.iter().copied()));
                self.settle();
            }
            (Self::Sparse { ids, values }, Self::Dense { values: more, .. }) => {
                let entries = (window.start..window.end).zip(more.iter().copied());
                merge(ids, values, entries.filter(|entry| entry.1 != 0.0));
                self.settle();
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Sparse { ids, values } => (ids.capacity() + values.capacity()) * size_of::<f32>(),
            Self::Dense { values, .. } => values.capacity() * size_of::<f32>(),
        }
    }

    /// Ids outside of which all values are zero.
    fn window(&self) -> Range<u32> {
        match self {
            Self::Sparse { ids, .. } => ids.first().copied().unwrap_or(0)..ids.last().map_or(0, |last| last + 1),
            Self::Dense { first, values } => *first..first + u32::try_from(values.len()).expect("ids are u32"),
        }
    }

    /// Extends a dense window to the ids of `more`, or makes it sparse if it would be mostly zero.
    fn cover(&mut self, more: &Range<u32>) {
        let window = self.window();
        let Self::Dense { first, values } = self else { return };
        if window.start <= more.start && more.end <= window.end {
            return;
        }
        let (start, end) = (window.start.min(more.start), window.end.max(more.end));
        let n_present = values.iter().filter(|value| **value != 0.0).count();
        if (end - start) as usize > SPARSE_RATIO * n_present {
            let ids = (window.start..window.end).zip(&*values).filter(|(_, value)| **value != 0.0).map(|(id, _)| id);
            let ids = ids.collect();
            *self = Self::Sparse { ids, values: values.iter().copied().filter(|value| *value != 0.0).collect() };
            return;
        }
        reserve(values, (end - start) as usize);
        values.splice(0..0, std::iter::repeat_n(0.0, (window.start - start) as usize));
        values.resize((end - start) as usize, 0.0);
        *first = start;
    }

    /// Makes a sparse column dense where that is worth it.
    fn settle(&mut self) {
        let window = self.window();
        let Self::Sparse { ids, values } = self else { return };
        // Short lists are fast anyway.
        if ids.len() < 16 || window.len() > DENSE_RATIO * ids.len() {
            return;
        }
        let mut dense = vec![0.0; window.len()];
        for (id, value) in ids.iter().zip(values) {
            dense[(id - window.start) as usize] = *value;
        }
        *self = Self::Dense { first: window.start, values: dense };
    }
}

/// Adds ascending `entries` to an ascending list: allocates slots for new ids, then merges from the back.
fn merge(ids: &mut Vec<u32>, values: &mut Vec<f32>, entries: impl DoubleEndedIterator<Item = (u32, f32)> + Clone) {
    let mut old = ids.len();
    let mut at = 0;
    let mut n_new = 0;
    for (id, _) in entries.clone() {
        while at < old && ids[at] < id {
            at += 1;
        }
        n_new += usize::from(ids.get(at) != Some(&id));
    }
    let mut end = old + n_new;
    reserve(ids, end);
    reserve(values, end);
    ids.resize(end, 0);
    values.resize(end, 0.0);
    for (id, value) in entries.rev() {
        while old > 0 && ids[old - 1] > id {
            old -= 1;
            end -= 1;
            ids[end] = ids[old];
            values[end] = values[old];
        }
        let mut sum = value;
        if old > 0 && ids[old - 1] == id {
            old -= 1;
            sum += values[old];
        }
        end -= 1;
        ids[end] = id;
        values[end] = sum;
    }
}

/// Reserves `len` and an eighth more: with many columns, doubling would waste up to half of the memory.
fn reserve<T>(values: &mut Vec<T>, len: usize) {
    if len > values.capacity() {
        values.reserve_exact(len + len / 8 - values.len());
    }
}
