//! A vector over all nodes that is zero almost everywhere, or almost nowhere.

use std::ops::Range;

/// Numbers by node id.
#[derive(Debug, Clone)]
pub(super) enum Column {
    /// Those that are not zero, by ascending id.
    Sparse { ids: Vec<u32>, values: Vec<f32> },
    /// Those of ids from `first` on; nothing outside.
    Dense { first: u32, values: Vec<f32> },
}

/// A window becomes dense when at least one in so many of its numbers is not zero: it then takes at most twice the
/// memory of a list, and adding to it is several times as fast.
const FULL: usize = 4;
/// It becomes a list again when, after growing, fewer than one in so many is not zero.
const EMPTY: usize = 2 * FULL;

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
            // An id before the window is far behind its end, once it has gone below zero.
            Self::Dense { first, values } => values.get(id.wrapping_sub(*first) as usize).copied().unwrap_or(0.0),
        }
    }

    /// Adds 1 at `id`.
    pub(super) fn increment(&mut self, id: u32) {
        self.add(&Self::Sparse { ids: vec![id], values: vec![1.0] });
    }

    /// Adds `other`, number by number.
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

    /// Ids outside of which there is nothing.
    fn window(&self) -> Range<u32> {
        match self {
            Self::Sparse { ids, .. } => ids.first().copied().unwrap_or(0)..ids.last().map_or(0, |last| last + 1),
            Self::Dense { first, values } => *first..first + u32::try_from(values.len()).expect("ids are u32"),
        }
    }

    /// Makes a dense window hold the ids of `more` as well, or makes it a list where it would be mostly empty.
    fn cover(&mut self, more: &Range<u32>) {
        let window = self.window();
        let Self::Dense { first, values } = self else { return };
        if window.start <= more.start && more.end <= window.end {
            return;
        }
        let (start, end) = (window.start.min(more.start), window.end.max(more.end));
        let n_present = values.iter().filter(|value| **value != 0.0).count();
        if (end - start) as usize > EMPTY * n_present {
            let ids = (window.start..window.end).zip(&*values).filter(|(_, value)| **value != 0.0).map(|(id, _)| id);
            let ids = ids.collect();
            *self = Self::Sparse { ids, values: values.iter().copied().filter(|value| *value != 0.0).collect() };
            return;
        }
        make_room(values, (end - start) as usize);
        values.splice(0..0, std::iter::repeat_n(0.0, (window.start - start) as usize));
        values.resize((end - start) as usize, 0.0);
        *first = start;
    }

    /// Makes a list a dense window where that is worth it.
    fn settle(&mut self) {
        let window = self.window();
        let Self::Sparse { ids, values } = self else { return };
        // Short lists are small and fast in any case.
        if ids.len() < 16 || window.len() > FULL * ids.len() {
            return;
        }
        let mut dense = vec![0.0; window.len()];
        for (id, value) in ids.iter().zip(values) {
            dense[(id - window.start) as usize] = *value;
        }
        *self = Self::Dense { first: window.start, values: dense };
    }
}

/// Adds ascending `entries` to an ascending list: makes room for those whose id is new, then fills it from the back.
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
    make_room(ids, end);
    make_room(values, end);
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

/// Room for `len` and an eighth more: there are many columns, and doubling would leave half of their memory unused.
fn make_room<T>(values: &mut Vec<T>, len: usize) {
    if len > values.capacity() {
        values.reserve_exact(len + len / 8 - values.len());
    }
}
