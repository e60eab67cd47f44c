//! A block of memory with room at its end, and a column made of such blocks.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};

/// Set in [`Block::len`] while a value is written.
const WRITING: usize = 1 << (usize::BITS - 1);

/// Values with room for more. Those that are there are never written again.
pub(crate) struct Block<T> {
    /// Zero from [`Block::len`] on.
    values: Box<[UnsafeCell<T>]>,
    len: AtomicUsize,
}

// SAFETY: `as_slice` lends the values before `len` only. `extend` writes only at and behind it, in one thread at a time, which `WRITING`
// enforces, and publishes what it wrote with `Release`, which pairs with the `Acquire` of `as_slice`.
#[expect(unsafe_code, reason = "readers and one writer share a block")]
unsafe impl<T: Send + Sync> Sync for Block<T> {}

impl<T: Pod> Block<T> {
    /// A block that begins with `values` and has room for `capacity` in all. Memory that is not written to is not taken from the system.
    pub(crate) fn new(values: &[T], capacity: usize) -> Self {
        let block = Self {
            values: bytemuck::zeroed_slice_box::<Slot<T>>(capacity.max(values.len())).into_cells(),
            len: AtomicUsize::new(0),
        };
        block.extend(values);
        block
    }

    /// The values so far.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        let len = self.len.load(Ordering::Acquire) & !WRITING;
        // SAFETY: `UnsafeCell<T>` has the layout of `T`, the first `len` values are initialised, and none of them is written again.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            std::slice::from_raw_parts(self.values.as_ptr().cast::<T>(), len)
        }
    }

    /// Appends `values`, unless there is no room for all of them.
    ///
    /// # Panics
    /// When another thread appends at the same time: each block has one writer.
    pub(crate) fn extend(&self, values: &[T]) -> bool {
        let len = self.len.fetch_or(WRITING, Ordering::Acquire);
        assert!(len & WRITING == 0, "a block has one writer at a time");
        let has_room = values.len() <= self.values.len() - len;
        if has_room {
            for (cell, value) in self.values[len..].iter().zip(values) {
                // SAFETY: no slice reaches behind `len`, and this is the only writer.
                #[expect(unsafe_code, reason = "see above")]
                unsafe {
                    *cell.get() = *value;
                }
            }
        }
        self.len.store(if has_room { len + values.len() } else { len }, Ordering::Release);
        has_room
    }
}

/// A cell whose zero bytes are a value.
#[repr(transparent)]
struct Slot<T>(UnsafeCell<T>);

// SAFETY: a transparent wrapper of a type whose zero bytes are a value.
#[expect(unsafe_code, reason = "see above")]
unsafe impl<T: Zeroable> Zeroable for Slot<T> {}

trait IntoCells<T> {
    fn into_cells(self) -> Box<[UnsafeCell<T>]>;
}

impl<T> IntoCells<T> for Box<[Slot<T>]> {
    fn into_cells(self) -> Box<[UnsafeCell<T>]> {
        // SAFETY: `Slot<T>` is a transparent wrapper of `UnsafeCell<T>`.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            Box::from_raw(Box::into_raw(self) as *mut [UnsafeCell<T>])
        }
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Block<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// A column that grows at its end. What it lent stays as it was.
pub(crate) struct GrowingColumn<T> {
    block: Arc<Block<T>>,
}

impl<T: Pod> GrowingColumn<T> {
    /// A column that begins with `values`.
    pub(crate) fn new(values: &[T]) -> Self {
        Self { block: Arc::new(Block::new(values, values.len() + values.len() / 2 + 16)) }
    }

    /// The values so far.
    pub(crate) fn values(&self) -> &[T] {
        self.block.as_slice()
    }

    /// The block that holds them, to read while the column grows.
    pub(crate) fn block(&self) -> &Arc<Block<T>> {
        &self.block
    }

    /// Appends `values`.
    pub(crate) fn extend(&mut self, values: &[T]) {
        if !self.block.extend(values) {
            let mut grown = Self::new(self.values());
            if !grown.block.extend(values) {
                grown = Self::new(&[self.values(), values].concat());
            }
            *self = grown;
        }
    }

    /// Appends a value.
    pub(crate) fn push(&mut self, value: T) {
        self.extend(&[value]);
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for GrowingColumn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lent_stays_while_a_column_grows() {
        let mut column = GrowingColumn::new(&[1_u32, 2]);
        let lent = Arc::clone(column.block());
        let first = lent.as_slice();
        for value in 3..=100 {
            column.push(value);
        }
        column.extend(&[0; 1000]);
        assert_eq!(first, [1, 2]);
        assert_eq!(column.values()[..100], (1..=100).collect::<Vec<u32>>());
        assert_eq!(column.values().len(), 1100);
    }

    #[test]
    fn a_full_block_takes_nothing() {
        let block = Block::new(&[1.5_f64], 2);
        assert!(!block.extend(&[2.0, 3.0]) && block.extend(&[2.0]) && !block.extend(&[3.0]) && block.extend(&[]));
        assert_eq!(block.as_slice(), [1.5, 2.0]);
    }

    #[test]
    fn readers_see_a_prefix_of_what_one_thread_appends() {
        const N: u32 = 20_000;
        let block = Block::new(&[], N as usize);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..N).for_each(|value| assert!(block.extend(&[value]))));
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut n = 0;
                    while n < N as usize {
                        let seen = block.as_slice();
                        assert!(seen.len() >= n);
                        assert!((0..).zip(&seen[n..]).all(|(at, &value)| value as usize == n + at));
                        n = seen.len();
                    }
                });
            }
        });
    }
}
