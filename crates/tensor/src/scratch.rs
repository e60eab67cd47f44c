//! Memory that is used again: each thread keeps the buffers it is done with.
//!
//! A training step takes the same buffers over and over. Fresh ones would cost a page fault every 4 kB, which is a third
//! of the time of a step.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// More than a chunk ever holds at once; what is given back beyond that is freed.
const MOST_KEPT: usize = 128;

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that goes back to the thread that drops it.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    values: Vec<f32>,
    len: usize,
}

/// A buffer of `len` values, whatever they are.
pub(crate) fn take(len: usize) -> Scratch {
    let mut values = FREE.with_borrow_mut(|free| {
        let fitting = (0..free.len()).filter(|&at| free[at].len() >= len).min_by_key(|&at| free[at].len());
        // A buffer that is too small makes room for a larger one, so that sizes settle after a few uses.
        let chosen = fitting.or_else(|| (0..free.len()).max_by_key(|&at| free[at].len()));
        chosen.map_or_else(Vec::new, |at| free.swap_remove(at))
    });
    if values.len() < len {
        values = vec![0.0; len];
    }
    if cfg!(debug_assertions) {
        // Whoever reads what it has not written shall notice.
        values[..len].fill(f32::NAN);
    }
    Scratch { values, len }
}

/// A buffer of `len` zeros.
pub(crate) fn take_zeros(len: usize) -> Scratch {
    let mut scratch = take(len);
    scratch.fill(0.0);
    scratch
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
        // A thread that is ending has no list any more: the buffer is freed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MOST_KEPT && !values.is_empty() {
                free.push(values);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_by_the_next_that_fits() {
        let (large, small) = (take(1000), take(10));
        let (at_large, at_small) = (large.as_ptr(), small.as_ptr());
        drop((large, small));
        let again = take(8);
        assert_eq!((again.as_ptr(), again.len()), (at_small, 8));
        assert_eq!(take_zeros(900).as_ptr(), at_large);
        assert!(take_zeros(1000).iter().all(|&value| value == 0.0));
    }
}
