//! A thread-local pool of `f32` buffers.
//!
//! A training step needs the same buffers again and again. Fresh allocations would cost a page fault every 4 kB, a third
//! of the time of a step.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The most free buffers and values of a thread: more than a chunk uses at once. Beyond that the oldest are freed.
const MAX_BUFFERS: usize = 128;
const MAX_VALUES: usize = 1 << 24;

#[derive(Default)]
struct Free {
    buffers: VecDeque<Vec<f32>>,
    n_values: usize,
}

impl Free {
    /// The smallest buffer that fits without wasting most of itself.
    fn take(&mut self, len: usize) -> Option<Vec<f32>> {
        let fits = |buffer: &Vec<f32>| (len..=4 * len + 1024).contains(&buffer.len());
        let fitting = (0..self.buffers.len()).filter(|&at| fits(&self.buffers[at]));
        let buffer = self.buffers.swap_remove_back(fitting.min_by_key(|&at| self.buffers[at].len())?)?;
        self.n_values -= buffer.len();
        Some(buffer)
    }

    fn put(&mut self, buffer: Vec<f32>) {
        self.n_values += buffer.len();
        self.buffers.push_back(buffer);
        while self.buffers.len() > MAX_BUFFERS || self.n_values > MAX_VALUES {
            self.n_values -= self.buffers.pop_front().map_or(0, |oldest| oldest.len());
        }
    }
}

thread_local! {
    static FREE: RefCell<Free> = RefCell::default();
}

/// A buffer that returns to the pool of the thread that drops it.
#[derive(Default)]
pub(crate) struct Scratch {
    values: Vec<f32>,
    len: usize,
}

/// A buffer of `len` arbitrary values.
pub(crate) fn take(len: usize) -> Scratch {
    if len == 0 {
        return Scratch::default();
    }
    let mut values = FREE.with_borrow_mut(|free| free.take(len)).unwrap_or_else(|| vec![0.0; len]);
    if cfg!(debug_assertions) {
        // Makes reads of unwritten values visible.
        values[..len].fill(f32::NAN);
    }
    Scratch { values, len }
}

/// A buffer of `len` values, all `value`.
pub(crate) fn take_full(len: usize, value: f32) -> Scratch {
    let mut scratch = take(len);
    scratch.fill(value);
    scratch
}

/// A buffer of `len` zeros.
pub(crate) fn take_zeros(len: usize) -> Scratch {
    take_full(len, 0.0)
}

/// A buffer with a copy of `values`.
pub(crate) fn copy_of(values: &[f32]) -> Scratch {
    let mut scratch = take(values.len());
    scratch.copy_from_slice(values);
    scratch
}

impl From<Vec<f32>> for Scratch {
    fn from(values: Vec<f32>) -> Self {
        Self { len: values.len(), values }
    }
}

impl Clone for Scratch {
    fn clone(&self) -> Self {
        copy_of(self)
    }
}

impl PartialEq for Scratch {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

impl Deref for Scratch {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[..self.len]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.len]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.values);
        if !values.is_empty() {
            // A thread that is ending has no pool any more: the buffer is freed.
            let _ = FREE.try_with(|free| free.borrow_mut().put(values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_reused_where_it_fits() {
        let (large, small) = (take(100_000), take(10));
        let (at_large, at_small) = (large.as_ptr(), small.as_ptr());
        drop((large, small));
        let again = take(8);
        assert_eq!((again.as_ptr(), again.len()), (at_small, 8));
        assert_eq!(take_zeros(90_000).as_ptr(), at_large);
        assert!(take_zeros(100_000).iter().all(|&value| value == 0.0));
    }

    #[test]
    fn the_pool_is_bounded_and_buffers_are_not_much_too_large() {
        let mut free = Free::default();
        for size in 1..1000 {
            free.put(vec![0.0; size * 1000]);
        }
        assert!(free.buffers.len() <= MAX_BUFFERS && free.n_values <= MAX_VALUES);
        assert_eq!(free.n_values, free.buffers.iter().map(Vec::len).sum::<usize>());
        assert_eq!(free.take(998_500).map(|buffer| buffer.len()), Some(999_000));
        assert_eq!(free.take(1000), None);
    }
}
