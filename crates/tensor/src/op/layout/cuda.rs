//! Layout operations on the GPU.

use std::sync::Arc;

use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, Grid, dim, kernels, one_warp_per_row};
use crate::{Result, Shape, Var};

kernels! {
    pub(crate) KERNELS:
    /// Up to four matrices into the columns `first..` of rows of `width`.
    fn concat_columns(
        part0: Ptr, part1: Ptr, part2: Ptr, part3: Ptr, ends: Ends, whole: Ptr, first: Int, width: Int, rows: Int,
    );
    /// The gradients of the parts; bit i of `add` accumulates into part i, and a null part is skipped.
    fn concat_columns_backward(
        whole: Ptr, part0: Ptr, part1: Ptr, part2: Ptr, part3: Ptr, ends: Ends, first: Int, width: Int, add: Int,
        rows: Int,
    );
    /// The columns `first..first + count` of rows of `width`.
    fn slice_columns(x: Ptr, to: Ptr, width: Int, first: Int, count: Int, n: U64);
    /// The gradient of the whole rows: zero outside the slice.
    fn slice_columns_backward(
        grad: Ptr, to: Ptr, width: Int, first: Int, count: Int, add: Int, n: U64,
    );
    /// The transpose of each matrix `[rows, cols]`.
    fn swap_axes(from: Ptr, to: Ptr, rows: Int, cols: Int, add: Int);
}

/// The most blocks for one matrix when it is transposed; beyond, a block has several tiles.
const MAX_TILE_BLOCKS: usize = 1024;

impl CudaTape<'_> {
    pub(crate) fn concat(&mut self, parts: &[Var], rows: usize) -> Result<Var> {
        self.check_deferred()?;
        let width: usize = parts.iter().map(|&part| self.shape(part).cols()).sum();
        let out = self.cuda().alloc_f32(rows * width)?;
        let mut first = 0;
        let mut groups = Vec::with_capacity(parts.len().div_ceil(4));
        for some in parts.chunks(4) {
            let four = FourParts::new(some, first, |part| self.shape(part).cols());
            let [a, b, c, d] = four.parts.map(|part| part.map_or(0, |part| self.ptr(part)));
            let call = concat_columns(a, b, c, d, four.ends, out.ptr(), dim(first), dim(width), dim(rows));
            self.cuda().launch(one_warp_per_row(rows), call)?;
            first = four.ends[3] as usize;
            groups.push(four);
        }
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            for four in groups {
                let (mut targets, mut add) = ([0; 4], 0);
                for (i, part) in four.parts.into_iter().enumerate() {
                    if let Some(target) = part.map(|part| ctx.grad_target(part)).transpose()?.flatten() {
                        targets[i] = target.ptr;
                        add |= u32::from(target.accumulate) << i;
                    }
                }
                let [a, b, c, d] = targets;
                let (first, width) = (dim(four.first), dim(width));
                let call = concat_columns_backward(grad.ptr(), a, b, c, d, four.ends, first, width, add, dim(rows));
                ctx.cuda().launch(one_warp_per_row(rows), call)?;
            }
            Ok(())
        };
        Ok(self.push(parts, Shape::Matrix(rows, width), out, backward))
    }

    pub(crate) fn concat_rows(&mut self, parts: &[Var], shape: Shape) -> Result<Var> {
        self.check_deferred()?;
        let out = self.cuda().alloc_f32(shape.len())?;
        let mut ranges = Vec::with_capacity(parts.len());
        let mut end = 0;
        for &part in parts.iter().filter(|&&part| !self.shape(part).is_empty()) {
            let count = self.shape(part).len();
            self.cuda().copy(self.ptr(part), out.ptr() + 4 * end as u64, 4 * count)?;
            ranges.push((part, end as u64, count));
            end += count;
        }
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let add = |(part, first, count)| ctx.accumulate_part(part, grad.ptr() + 4 * first, count);
            ranges.into_iter().try_for_each(add)
        };
        Ok(self.push(parts, shape, out, backward))
    }

    pub(crate) fn columns(&mut self, x: Var, first: usize, count: usize) -> Result<Var> {
        self.check_deferred()?;
        let (rows, width) = (self.shape(x).rows(), self.shape(x).cols());
        let (n, all) = (rows * count, rows * width);
        let out = self.cuda().alloc_f32(n)?;
        let (first, count_dim, width) = (dim(first), dim(count), dim(width));
        self.cuda().launch_1d(n, slice_columns(self.ptr(x), out.ptr(), width, first, count_dim, n as u64))?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let Some(target) = ctx.grad_target(x)? else { return Ok(()) };
            let (to, add) = (target.ptr, u32::from(target.accumulate));
            let call = slice_columns_backward(grad.ptr(), to, width, first, count_dim, add, all as u64);
            ctx.cuda().launch_1d(all, call)
        };
        Ok(self.push(&[x], Shape::Matrix(rows, count), out, backward))
    }

    pub(crate) fn swap_axes(&mut self, x: Var, rows: usize) -> Result<Var> {
        self.check_deferred()?;
        let shape = self.shape(x);
        let (groups, cols) = (shape.rows() / rows, shape.cols());
        let out = self.cuda().alloc_f32(shape.len())?;
        let n_tiles = rows.div_ceil(32) * cols.div_ceil(32);
        let blocks = (dim(groups), dim(n_tiles.min(MAX_TILE_BLOCKS)));
        let grid = Grid { blocks, threads: (32, 8), shared: 0 };
        let (r, c) = (dim(rows), dim(cols));
        self.cuda().launch(grid, swap_axes(self.ptr(x), out.ptr(), r, c, 0))?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let Some(target) = ctx.grad_target(x)? else { return Ok(()) };
            ctx.cuda().launch(grid, swap_axes(grad.ptr(), target.ptr, c, r, u32::from(target.accumulate)))
        };
        Ok(self.push(&[x], Shape::Matrix(groups * cols, rows), out, backward))
    }
}

/// Up to four neighbouring parts of a row, which one kernel copies together.
struct FourParts {
    parts: [Option<Var>; 4],
    first: usize,
    ends: [u32; 4],
}

impl FourParts {
    fn new(parts: &[Var], first: usize, cols: impl Fn(Var) -> usize) -> Self {
        let mut four = Self { parts: [None; 4], first, ends: [0; 4] };
        let mut end = first;
        for i in 0..4 {
            four.parts[i] = parts.get(i).copied();
            end += four.parts[i].map_or(0, &cols);
            four.ends[i] = dim(end);
        }
        four
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_parts_accumulate() {
        let parts = [Var(7), Var(8), Var(9)];
        let four = FourParts::new(&parts, 10, |part| part.0);
        assert_eq!(four.parts, [Some(Var(7)), Some(Var(8)), Some(Var(9)), None]);
        assert_eq!(four.ends, [17, 25, 34, 34]);
    }
}
