//! Rows picked, put down, repeated and cut anew; columns side by side.

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::linear::{add_column_sums, size};
use super::memory::{Buffer, Staged};
use super::record::{Back, Record, Target};
use super::side::Lane;
use crate::indices::StagedIndices;
use crate::{Error, Indices, Ragged, Result, Shape};

/// Where each row is named, on the card.
struct Lists {
    starts: u64,
    positions: u64,
    #[expect(dead_code, reason = "what keeps them there")]
    memory: [Arc<Buffer>; 2],
}

impl Lists {
    /// Those that came with the numbers, or else fresh ones.
    fn new(cuda: &Arc<Context>, indices: &Indices, brought: &Arc<Buffer>, n_rows: usize) -> Result<Self> {
        let staged = indices.staged().filter(|ready| ready.staged.is_for(cuda) && ready.lists_of == Some(n_rows));
        if staged.is_some() {
            let starts = brought.ptr() + 4 * indices.len() as u64;
            let positions = starts + 4 * (n_rows as u64 + 1);
            return Ok(Self { starts, positions, memory: [Arc::clone(brought), Arc::clone(brought)] });
        }
        let (starts, positions) = indices.lists(n_rows);
        let memory = [cuda.upload(&starts)?, cuda.upload(&positions)?];
        Ok(Self { starts: memory[0].ptr(), positions: memory[1].ptr(), memory })
    }

    /// Sums rows of `from` into those that they are to go to, always in the same order.
    fn put(&self, cuda: &Arc<Context>, from: u64, n_rows: usize, cols: usize, to: Target) -> Result<()> {
        let (n, add) = (n_rows * cols, u32::from(to.add));
        let arguments = args![from, self.starts, self.positions, to.ptr, size(cols), size(n_rows), add];
        cuda.each("put", n, arguments)
    }
}

impl Context {
    /// Copies `indices` to where the card reads them by itself; with their lists, if they are rows of so many.
    pub(crate) fn stage_indices(self: &Arc<Self>, indices: &Indices, lists_of: Option<usize>) -> Result<StagedIndices> {
        let staged = match lists_of {
            Some(n_rows) => {
                indices.check("stage", n_rows)?;
                let (starts, positions) = indices.lists(n_rows);
                self.stage(&[indices, &starts, &positions])?
            }
            None => self.stage::<u32>(&[indices])?,
        };
        Ok(StagedIndices { staged, lists_of })
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
        let uploaded = self.indices(&indices)?;
        pick(&self.cuda, self.ptr(x), &uploaded, indices.len(), cols, out.ptr())?;
        let shape = Shape::Matrix(indices.len(), cols);
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| match back.target(x)? {
            None => Ok(()),
            Some(target) => {
                let lists = Lists::new(back.cuda(), &indices, &uploaded, rows)?;
                lists.put(back.cuda(), grad.ptr(), rows, cols, target)
            }
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    pub(crate) fn scatter(&mut self, x: usize, indices: Indices, n_rows: usize) -> Result<usize> {
        self.check()?;
        let cols = self.shape(x).cols();
        let out = self.cuda.floats(n_rows * cols)?;
        let uploaded = self.indices(&indices)?;
        if indices.is_rising() {
            // No row gets two: each is written where it goes.
            let n = indices.len() * cols;
            self.cuda.fill_zero(out.ptr(), 4 * n_rows * cols)?;
            self.cuda.each("spread", n, args![self.ptr(x), uploaded.ptr(), out.ptr(), size(cols), n as u64])?;
        } else {
            let lists = Lists::new(&self.cuda, &indices, &uploaded, n_rows)?;
            lists.put(&self.cuda, self.ptr(x), n_rows, cols, Target { ptr: out.ptr(), add: false })?;
        }
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let picked = back.cuda().floats(indices.len() * cols)?;
            pick(back.cuda(), grad.ptr(), &uploaded, indices.len(), cols, picked.ptr())?;
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
