//! Rows picked, put down, repeated and cut anew; columns side by side.

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::linear::{add_column_sums, size};
use super::memory::Buffer;
use super::record::{Back, Record, Target};
use super::side::Lane;
use crate::{Error, Result, Shape};

/// For each of `n_rows` targets the positions in `indices` that name it, in order: where each list begins, and the
/// lists.
fn lists(indices: &[u32], n_rows: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; n_rows + 1];
    for &index in indices {
        starts[index as usize + 1] += 1;
    }
    for row in 0..n_rows {
        starts[row + 1] += starts[row];
    }
    let mut next = starts.clone();
    let mut positions = vec![0_u32; indices.len()];
    for (position, &index) in (0..).zip(indices) {
        let place = &mut next[index as usize];
        positions[*place as usize] = position;
        *place += 1;
    }
    (starts, positions)
}

/// Sums rows of `from` into those that `indices` name, always in the same order.
fn put(cuda: &Arc<Context>, from: u64, indices: &[u32], n_rows: usize, cols: usize, to: Target) -> Result<()> {
    let (starts, positions) = lists(indices, n_rows);
    let (starts, positions) = (cuda.upload(&starts)?, cuda.upload(&positions)?);
    let (n, add) = (n_rows * cols, u32::from(to.add));
    let arguments = args![from, starts.ptr(), positions.ptr(), to.ptr, size(cols), size(n_rows), add];
    cuda.each("put", n, arguments)
}

pub(super) fn pick(cuda: &Arc<Context>, from: u64, indices: &Buffer, n: usize, cols: usize, to: u64) -> Result<()> {
    cuda.each("gather", n * cols, args![from, indices.ptr(), to, size(cols), (n * cols) as u64])
}

impl Record<'_> {
    pub(crate) fn gather(&mut self, x: usize, indices: Arc<[u32]>) -> Result<usize> {
        self.check()?;
        let (rows, cols) = (self.shape(x).rows(), self.shape(x).cols());
        let out = self.cuda.floats(indices.len() * cols)?;
        let uploaded = self.indices(&indices)?;
        pick(&self.cuda, self.ptr(x), &uploaded, indices.len(), cols, out.ptr())?;
        let shape = Shape::Matrix(indices.len(), cols);
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| match back.target(x)? {
            None => Ok(()),
            Some(target) => put(back.cuda(), grad.ptr(), &indices, rows, cols, target),
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    pub(crate) fn scatter(&mut self, x: usize, indices: Arc<[u32]>, n_rows: usize) -> Result<usize> {
        self.check()?;
        let cols = self.shape(x).cols();
        let out = self.cuda.floats(n_rows * cols)?;
        let uploaded = self.indices(&indices)?;
        if indices.is_sorted_by(|one, next| one < next) {
            // No row gets two: each is written where it goes.
            let n = indices.len() * cols;
            self.cuda.fill_zero(out.ptr(), 4 * n_rows * cols)?;
            self.cuda.each("spread", n, args![self.ptr(x), uploaded.ptr(), out.ptr(), size(cols), n as u64])?;
        } else {
            put(&self.cuda, self.ptr(x), &indices, n_rows, cols, Target { ptr: out.ptr(), add: false })?;
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

    #[test]
    fn lists_name_every_position_once_in_order() {
        let (starts, positions) = super::lists(&[2, 0, 2, 3, 2, 0], 5);
        assert_eq!(starts, [0, 2, 2, 5, 6, 6]);
        assert_eq!(positions, [1, 5, 0, 2, 4, 3]);
    }
}
