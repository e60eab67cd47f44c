//! Deterministic data parallelism: results do not depend on the number of threads.
//!
//! The order of every sum is fixed by shapes alone. Independent rows are split into chunks; sums over rows are taken in
//! groups of fixed size whose partial sums are added in order.

use rayon::prelude::*;

use crate::vector::add_to;
use crate::{Ragged, scratch};

/// Rows of a chunk and of a group of partial sums.
const CHUNK: usize = 64;

/// The threads that compute an operation. The result is the same, bit for bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// The threads of the current `rayon` pool.
    #[default]
    Pool,
    /// The calling thread alone, for callers that are parallel themselves.
    Caller,
}

impl Threads {
    fn is_worth_splitting(self, rows: usize) -> bool {
        self == Self::Pool && rows > CHUNK
    }

    /// Calls `work(first_row, rows)` for chunks of `out`, whose rows are `cols` wide.
    pub(crate) fn rows(self, out: &mut [f32], cols: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
        if out.is_empty() {
            return;
        }
        if self.is_worth_splitting(out.len() / cols) {
            out.par_chunks_mut(CHUNK * cols).enumerate().for_each(|(chunk, rows)| work(chunk * CHUNK, rows));
        } else {
            work(0, out);
        }
    }

    /// [`rows`](Self::rows) for two outputs with the same number of rows.
    pub(crate) fn rows_of_two(
        self,
        (a, a_cols): (&mut [f32], usize),
        (b, b_cols): (&mut [f32], usize),
        work: impl Fn(usize, &mut [f32], &mut [f32]) + Sync,
    ) {
        if a.is_empty() || b.is_empty() {
            return;
        }
        if self.is_worth_splitting(a.len() / a_cols) {
            let pairs = a.par_chunks_mut(CHUNK * a_cols).zip(b.par_chunks_mut(CHUNK * b_cols));
            pairs.enumerate().for_each(|(chunk, (a, b))| work(chunk * CHUNK, a, b));
        } else {
            work(0, a, b);
        }
    }

    /// Calls `work(first_row, rows)` for as many pieces of `out` as there are threads: for work with a cost for each piece,
    /// whose result does not depend on how `out` is split.
    pub(crate) fn pieces(self, out: &mut [f32], cols: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
        if out.is_empty() {
            return;
        }
        let rows = out.len() / cols;
        if self.is_worth_splitting(rows) {
            let share = rows.div_ceil(rayon::current_num_threads()).max(CHUNK);
            out.par_chunks_mut(share * cols).enumerate().for_each(|(piece, rows)| work(piece * share, rows));
        } else {
            work(0, out);
        }
    }

    /// Calls `work(sequence, rows)` for the rows of each sequence of `out`.
    pub(crate) fn segments(
        self,
        out: &mut [f32],
        cols: usize,
        batch: &Ragged,
        work: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        if out.is_empty() {
            return;
        }
        let parts = split(out, batch.ranges().map(|range| range.len() * cols));
        self.each(parts.enumerate().collect(), |(sequence, rows)| work(sequence, rows));
    }

    /// Calls `work` for each item, in any order.
    pub(crate) fn each<T: Send>(self, items: Vec<T>, work: impl Fn(T) + Sync) {
        if self == Self::Pool && items.len() > 1 {
            items.into_par_iter().for_each(&work);
        } else {
            items.into_iter().for_each(work);
        }
    }

    /// Adds up `add(row, sums)` over `rows`, group by group, and adds the groups to `sums` in order.
    pub(crate) fn sum_rows(self, rows: usize, sums: &mut [f32], add: impl Fn(usize, &mut [f32]) + Sync) {
        let n_groups = rows.div_ceil(CHUNK);
        let fill = |group: usize, partial: &mut [f32]| {
            for row in group * CHUNK..rows.min((group + 1) * CHUNK) {
                add(row, partial);
            }
        };
        if self.is_worth_splitting(rows) {
            let mut partials = vec![0.0; n_groups * sums.len()];
            let parts = partials.par_chunks_mut(sums.len().max(1)).enumerate();
            parts.for_each(|(group, partial)| fill(group, partial));
            partials.chunks_exact(sums.len().max(1)).for_each(|partial| add_to(sums, partial));
        } else {
            let mut partial = scratch::take(sums.len());
            for group in 0..n_groups {
                partial.fill(0.0);
                fill(group, &mut partial);
                add_to(sums, &partial);
            }
        }
    }
}

/// Splits `values` into consecutive parts of the given lengths.
pub(crate) fn split(
    mut values: &mut [f32],
    lengths: impl IntoIterator<Item = usize>,
) -> impl Iterator<Item = &mut [f32]> {
    lengths.into_iter().map(move |length| {
        let (part, rest) = std::mem::take(&mut values).split_at_mut(length);
        values = rest;
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_rows_do_not_depend_on_threads() {
        let term = |row: usize| (row as f32).sin() * 1e3;
        let sum = |threads: Threads| {
            let mut sums = [0.5, 0.25];
            threads.sum_rows(1000, &mut sums, |row, sums| {
                sums[0] += term(row);
                sums[1] -= term(row + 7);
            });
            sums.map(f32::to_bits)
        };
        assert_eq!(sum(Threads::Pool), sum(Threads::Caller));
    }

    #[test]
    fn every_row_is_visited_once_with_its_index() {
        for threads in [Threads::Pool, Threads::Caller] {
            let mut out = vec![0.0; 3 * 150];
            threads.rows(&mut out, 3, |first, rows| {
                for (i, row) in rows.chunks_mut(3).enumerate() {
                    row.fill((first + i) as f32 + row[0]);
                }
            });
            assert!(out.chunks(3).enumerate().all(|(i, row)| row == [i as f32; 3]));
            threads.pieces(&mut out, 3, |first, rows| {
                for (i, row) in rows.chunks_mut(3).enumerate() {
                    row.fill((first + i) as f32 + row[0]);
                }
            });
            assert!(out.chunks(3).enumerate().all(|(i, row)| row == [2.0 * i as f32; 3]));
        }
    }
}
