//! Rows picked, put down, repeated and cut anew; columns side by side.

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::linear::{add_column_sums, size};
use super::memory::{Buffer, Staged};
use super::streams::Lane;
use super::tape::{Back, DeviceIndices, Record, Target};
use crate::indices::{ListSizes, StagedIndices};
use crate::{Error, Indices, Ragged, Result, Shape};

/// Where each row is named, on the card: [`crate::indices::Lists`].
struct Named {
    memory: Arc<Buffer>,
    /// Bytes before them there.
    before: u64,
    sizes: ListSizes,
}

impl Named {
    /// Those that came with the numbers, or else fresh ones.
    fn new(cuda: &Arc<Context>, indices: &Indices, brought: &DeviceIndices, n_rows: usize) -> Result<Self> {
        if let Some(sizes) = brought.lists.filter(|sizes| sizes.rows == n_rows) {
            return Ok(Self { memory: Arc::clone(&brought.numbers), before: 4 * indices.len() as u64, sizes });
        }
        let lists = indices.lists(n_rows);
        Ok(Self { memory: cuda.upload_all(&lists.parts())?, before: 0, sizes: lists.sizes() })
    }

    /// Sums rows of `from` into those that they are to go to, always in the same order.
    fn put(&self, cuda: &Arc<Context>, from: u64, cols: usize, to: Target) -> Result<()> {
        let ListSizes { rows, lists, positions: n_positions, is_cut } = self.sizes;
        let starts = self.memory.ptr() + self.before;
        let positions = starts + 4 * (lists as u64 + 1);
        let put = |from: u64, (starts, positions): (u64, u64), n: usize, to: Target| {
            let add = u32::from(to.add);
            cuda.each("put", n * cols, args![from, starts, positions, to.ptr, size(cols), size(n), add])
        };
        if !is_cut {
            return put(from, (starts, positions), rows, to);
        }
        // Pieces first, which many threads share; then those of each row, which lie side by side.
        let sums = cuda.floats(lists * cols)?;
        put(from, (starts, positions), lists, Target { ptr: sums.ptr(), add: false })?;
        let pieces = positions + 4 * n_positions as u64;
        put(sums.ptr(), (pieces, 0), rows, to)
    }
}

impl Context {
    /// Copies `indices` to where the card reads them by itself; with where each is named, if they are of so many rows.
    pub(crate) fn stage_indices(self: &Arc<Self>, indices: &Indices, n_rows: Option<usize>) -> Result<StagedIndices> {
        let Some(n_rows) = n_rows else {
            return Ok(StagedIndices { staged: self.stage::<u32>(&[indices])?, lists: None });
        };
        indices.check("stage", n_rows)?;
        let lists = indices.lists(n_rows);
        let [starts, positions, pieces] = lists.parts();
        let staged = self.stage(&[&**indices, starts, positions, pieces])?;
        Ok(StagedIndices { staged, lists: Some(lists.sizes()) })
    }

    /// The same of where sequences begin.
    pub(crate) fn stage_starts(self: &Arc<Self>, batch: &Ragged) -> Result<Staged> {
        self.stage(&[&starts(batch)])
    }
}

/// Where sequences begin, and the last one ends, as the card counts.
pub(super) fn starts(batch: &Ragged) -> Vec<u32> {
    batch.offsets().iter().map(|&at| size(at)).collect()
}

pub(super) fn pick(cuda: &Arc<Context>, from: u64, indices: &Buffer, n: usize, cols: usize, to: u64) -> Result<()> {
    cuda.each("gather", n * cols, args![from, indices.ptr(), to, size(cols), (n * cols) as u64])
}

impl Record<'_> {
    pub(crate) fn gather(&mut self, x: usize, indices: Indices) -> Result<usize> {
        self.check()?;
        let (rows, cols) = (self.shape(x).rows(), self.shape(x).cols());
        let out = self.cuda.floats(indices.len() * cols)?;
        let brought = self.indices(&indices)?;
        pick(&self.cuda, self.ptr(x), &brought.numbers, indices.len(), cols, out.ptr())?;
        let shape = Shape::Matrix(indices.len(), cols);
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| match back.target(x)? {
            None => Ok(()),
            Some(target) => {
                let named = Named::new(back.cuda(), &indices, &brought, rows)?;
                named.put(back.cuda(), grad.ptr(), cols, target)
            }
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    pub(crate) fn scatter(&mut self, x: usize, indices: Indices, n_rows: usize) -> Result<usize> {
        self.check()?;
        let cols = self.shape(x).cols();
        let out = self.cuda.floats(n_rows * cols)?;
        let brought = self.indices(&indices)?;
        if indices.is_rising() {
            // No row gets two: each is written where it goes.
            let n = indices.len() * cols;
            self.cuda.fill_zero(out.ptr(), 4 * n_rows * cols)?;
            self.cuda.each("spread", n, args![self.ptr(x), brought.numbers.ptr(), out.ptr(), size(cols), n as u64])?;
        } else {
            let named = Named::new(&self.cuda, &indices, &brought, n_rows)?;
            named.put(&self.cuda, self.ptr(x), cols, Target { ptr: out.ptr(), add: false })?;
        }
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let picked = back.cuda().floats(indices.len() * cols)?;
            pick(back.cuda(), grad.ptr(), &brought.numbers, indices.len(), cols, picked.ptr())?;
            back.give(x, picked)
        };
        Ok(self.push(&[x], Shape::Matrix(n_rows, cols), out, backward))
    }

    /// The same memory under another shape.
    pub(crate) fn reshape(&mut self, x: usize, shape: Shape) -> Result<usize> {
        self.check()?;
        let buffer = self.held(x)?;
        Ok(self.push(&[x], shape, buffer, move |grad, back| back.give(x, grad)))
    }

    pub(crate) fn repeat_row(&mut self, x: usize, n_rows: usize) -> Result<usize> {
        self.check()?;
        let cols = self.shape(x).cols();
        let n = n_rows * cols;
        let out = self.cuda.floats(n)?;
        self.cuda.each("repeat_row", n, args![self.ptr(x), out.ptr(), size(cols), n as u64])?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let to = back.sum_of(x)?;
            let cuda = Arc::clone(back.cuda());
            if to == 0 { Ok(()) } else { add_column_sums(&cuda, Lane::Main, grad.ptr(), (n_rows, cols), to) }
        };
        Ok(self.push(&[x], Shape::Matrix(n_rows, cols), out, backward))
    }

    pub(crate) fn concat(&mut self, parts: &[usize], rows: usize) -> Result<usize> {
        self.check()?;
        let width: usize = parts.iter().map(|&part| self.shape(part).cols()).sum();
        let out = self.cuda.floats(rows * width)?;
        let mut first = 0;
        let mut fours = Vec::with_capacity(parts.len().div_ceil(4));
        for some in parts.chunks(4) {
            let four = Four::new(some, first, |part| self.shape(part).cols());
            let [a, b, c, d] = four.parts.map(|part| part.map_or(0, |part| self.ptr(part)));
            let (from, width) = (size(first), size(width));
            let arguments = args![a, b, c, d, four.ends, out.ptr(), from, width, size(rows)];
            self.cuda.launch("columns_in", by_row(rows), arguments)?;
            first = four.ends[3] as usize;
            fours.push(four);
        }
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            for four in fours {
                let (mut places, mut add) = ([0; 4], 0);
                for (i, part) in four.parts.into_iter().enumerate() {
                    if let Some(target) = part.map(|part| back.target(part)).transpose()?.flatten() {
                        places[i] = target.ptr;
                        add |= u32::from(target.add) << i;
                    }
                }
                let [a, b, c, d] = places;
                let (first, width) = (size(four.first), size(width));
                let arguments = args![grad.ptr(), a, b, c, d, four.ends, first, width, add, size(rows)];
                back.cuda().launch("columns_out", by_row(rows), arguments)?;
            }
            Ok(())
        };
        Ok(self.push(parts, Shape::Matrix(rows, width), out, backward))
    }
}

/// Up to four neighbouring parts of a row, which one kernel moves together.
struct Four {
    parts: [Option<usize>; 4],
    first: usize,
    ends: [u32; 4],
}

impl Four {
    fn new(parts: &[usize], first: usize, cols: impl Fn(usize) -> usize) -> Self {
        let mut four = Self { parts: [None; 4], first, ends: [0; 4] };
        let mut end = first;
        for i in 0..4 {
            four.parts[i] = parts.get(i).copied();
            end += four.parts[i].map_or(0, &cols);
            four.ends[i] = size(end);
        }
        four
    }
}

/// One warp a row.
pub(super) fn by_row(rows: usize) -> Grid {
    Grid { blocks: (size(rows.div_ceil(8)), 1), threads: (32, 8), shared: 0 }
}

/// What kernels count in 32 bits must fit.
pub(super) fn check_rows(operation: &'static str, rows: usize) -> Result<()> {
    if i32::try_from(rows).is_ok() { Ok(()) } else { Err(Error::NotOnGpu { operation }) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn parts_stand_one_behind_another() {
        let four = super::Four::new(&[7, 8, 9], 10, |part| part);
        assert_eq!((four.parts, four.ends), ([Some(7), Some(8), Some(9), None], [17, 25, 34, 34]));
    }
}
