//! Operations by themselves, between products: value by value, row by row, sequence by sequence.

use std::sync::Arc;

use super::context::{Grid, args};
use super::linear::{STRIP, add_partials, kind, size};
use super::memory::Buffer;
use super::rows::by_row;
use super::tape::{Back, Record};
use crate::{Activation, Dropout, PadRagged, Ragged, Result, Shape, Tensor};

/// Tiles of a matrix that have a block of their own when it is transposed.
const MOST_TILES: usize = 1024;

impl Record<'_> {
    /// `a + b` of one shape.
    pub(crate) fn add(&mut self, a: usize, b: usize) -> Result<usize> {
        self.check()?;
        let shape = self.shape(a);
        let n = shape.len();
        let out = self.cuda.floats(n)?;
        self.cuda.each("add_two", n, args![self.ptr(a), self.ptr(b), out.ptr(), n as u64])?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            if !back.record.wants_gradient(b) {
                return back.give(a, grad);
            }
            back.add_part(a, grad.ptr(), n)?;
            back.give(b, grad)
        };
        Ok(self.push(&[a, b], shape, out, backward))
    }

    /// `a · b` of one shape.
    pub(crate) fn mul(&mut self, a: usize, b: usize) -> Result<usize> {
        self.check()?;
        let shape = self.shape(a);
        let n = shape.len();
        let out = self.cuda.floats(n)?;
        self.cuda.each("multiply_two", n, args![self.ptr(a), self.ptr(b), out.ptr(), 0_u32, n as u64])?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            for (var, other) in [(a, b), (b, a)] {
                let Some(target) = back.target(var)? else { continue };
                let (other, add) = (back.record.ptr(other), u32::from(target.add));
                back.cuda().each("multiply_two", n, args![grad.ptr(), other, target.ptr, add, n as u64])?;
            }
            Ok(())
        };
        Ok(self.push(&[a, b], shape, out, backward))
    }

    /// `function` of each value. Should it fail, the next operation says so; the same holds for the two below.
    pub(crate) fn activate(&mut self, x: usize, function: Activation) -> usize {
        let result = self.activated(x, function);
        self.or_fail(result, self.shape(x))
    }

    fn activated(&mut self, x: usize, function: Activation) -> Result<usize> {
        self.check()?;
        let shape = self.shape(x);
        let n = shape.len();
        let out = self.cuda.floats(n)?;
        let slopes = self.wants_gradient(x).then(|| self.cuda.floats(n)).transpose()?;
        let kept = slopes.as_ref().map_or(0, |slopes| slopes.ptr());
        self.cuda.each("activate", n, args![self.ptr(x), out.ptr(), kept, kind(Some(function)), n as u64])?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let Some(slopes) = &slopes else { return Ok(()) };
            let (from, by) = (grad.ptr(), slopes.ptr());
            back.cuda().each("multiply_two", n, args![from, by, from, 0_u32, n as u64])?;
            back.give(x, grad)
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    /// `x` with some values zeroed: the same as on the CPU.
    pub(crate) fn dropout(&mut self, x: usize, dropout: Dropout) -> usize {
        let result = self.dropped(x, dropout);
        self.or_fail(result, self.shape(x))
    }

    fn dropped(&mut self, x: usize, dropout: Dropout) -> Result<usize> {
        self.check()?;
        let (shape, mask) = (self.shape(x), dropout.words());
        let n = shape.len();
        let out = self.cuda.floats(n)?;
        self.cuda.each("drop", n, args![self.ptr(x), out.ptr(), mask, n as u64])?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            back.cuda().each("drop", n, args![grad.ptr(), grad.ptr(), mask, n as u64])?;
            back.give(x, grad)
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    /// The softmax of each row.
    pub(crate) fn softmax(&mut self, x: usize) -> usize {
        let result = self.softmaxed(x);
        self.or_fail(result, self.shape(x))
    }

    fn softmaxed(&mut self, x: usize) -> Result<usize> {
        self.check()?;
        let shape = self.shape(x);
        let (rows, cols) = (shape.rows(), size(shape.cols()));
        let out = self.cuda.floats(shape.len())?;
        self.cuda.launch("softmax_rows", by_row(rows), args![self.ptr(x), out.ptr(), size(rows), cols])?;
        let own = Arc::clone(&out);
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let arguments = args![grad.ptr(), own.ptr(), size(rows), cols];
            back.cuda().launch("softmax_rows_backward", by_row(rows), arguments)?;
            back.give(x, grad)
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    /// Rows normalised, scaled and shifted; shapes have been checked.
    pub(crate) fn layer_norm(&mut self, x: usize, [scale, shift]: [usize; 2]) -> Result<usize> {
        self.check()?;
        let shape = self.shape(x);
        let (rows, cols) = (shape.rows(), shape.cols());
        let (out, stats) = (self.cuda.floats(shape.len())?, self.cuda.floats(2 * rows)?);
        let (scale_ptr, shift_ptr, y) = (self.ptr(scale), self.ptr(shift), out.ptr());
        let arguments = args![self.ptr(x), scale_ptr, shift_ptr, y, stats.ptr(), size(rows), size(cols)];
        self.cuda.launch("norm_rows", by_row(rows), arguments)?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let cuda = Arc::clone(back.cuda());
            let (from, dy, stats) = (back.record.ptr(x), grad.ptr(), stats.ptr());
            let sizes = (size(rows), size(cols));
            if [scale, shift].into_iter().any(|var| back.record.wants_gradient(var)) {
                let strips = rows.div_ceil(STRIP);
                let partials = cuda.floats(strips * 2 * cols)?;
                let blocks = (size(cols.div_ceil(32)), size(strips));
                let grid = Grid { blocks, threads: (32, 8), shared: 0 };
                let arguments = args![dy, from, stats, partials.ptr(), sizes.0, sizes.1, size(STRIP)];
                cuda.launch("norm_sums", grid, arguments)?;
                let lane = back.lane(&[scale, shift])?;
                let to = [back.sum_on(lane, scale)?, back.sum_on(lane, shift)?];
                add_partials(&cuda, lane, &partials, (strips, cols), &to)?;
            }
            let Some(target) = back.target(x)? else { return Ok(()) };
            let (scale, add) = (back.record.ptr(scale), u32::from(target.add));
            let arguments = args![dy, from, stats, scale, target.ptr, add, sizes.0, sizes.1];
            cuda.launch("norm_rows_backward", by_row(rows), arguments)
        };
        Ok(self.push(&[x, scale, shift], shape, out, backward))
    }

    /// The sum, or the mean, of each sequence's rows, each times its weight if there are some.
    pub(crate) fn segments(
        &mut self,
        x: usize,
        weights: Option<&Arc<Tensor>>,
        mean: bool,
        batch: &Ragged,
    ) -> Result<usize> {
        self.check()?;
        let width = self.shape(x).cols();
        let shape = Shape::Matrix(batch.len(), width);
        let (n, cols, mean) = (shape.len(), size(width), u32::from(mean));
        let weights = weights.map(|weights| self.input(weights));
        self.check()?;
        let starts = self.starts(batch)?;
        let out = self.cuda.floats(n)?;
        let factors = weights.map_or(0, |weights| self.ptr(weights));
        let arguments = args![self.ptr(x), starts.ptr(), factors, mean, out.ptr(), cols, n as u64];
        self.cuda.each("segment_sum", n, arguments)?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let Some(target) = back.target(x)? else { return Ok(()) };
            let factors = weights.map_or(0, |weights| back.record.ptr(weights));
            let (to, add) = (target.ptr, u32::from(target.add));
            let arguments = args![grad.ptr(), starts.ptr(), factors, mean, to, cols, add, n as u64];
            back.cuda().each("segment_spread", n, arguments)
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    /// Rows under one another.
    pub(crate) fn stack(&mut self, parts: &[usize], shape: Shape) -> Result<usize> {
        self.check()?;
        let out = self.cuda.floats(shape.len())?;
        let mut places = Vec::with_capacity(parts.len());
        let mut end = 0;
        for &part in parts.iter().filter(|&&part| !self.shape(part).is_empty()) {
            let count = self.shape(part).len();
            self.cuda.copy(self.ptr(part), out.ptr() + 4 * end as u64, 4 * count)?;
            places.push((part, end as u64, count));
            end += count;
        }
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            places.into_iter().try_for_each(|(part, first, count)| back.add_part(part, grad.ptr() + 4 * first, count))
        };
        Ok(self.push(parts, shape, out, backward))
    }

    /// Some of the columns.
    pub(crate) fn columns(&mut self, x: usize, first: usize, count: usize) -> Result<usize> {
        self.check()?;
        let (rows, width) = (self.shape(x).rows(), self.shape(x).cols());
        let (n, all) = (rows * count, rows * width);
        let out = self.cuda.floats(n)?;
        let (first, count_arg, width) = (size(first), size(count), size(width));
        self.cuda.each("take_columns", n, args![self.ptr(x), out.ptr(), width, first, count_arg, n as u64])?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let Some(target) = back.target(x)? else { return Ok(()) };
            let (to, add) = (target.ptr, u32::from(target.add));
            back.cuda().each("put_columns", all, args![grad.ptr(), to, width, first, count_arg, add, all as u64])
        };
        Ok(self.push(&[x], Shape::Matrix(rows, count), out, backward))
    }

    /// Lists in places of their own.
    pub(crate) fn pad_ragged(&mut self, x: usize, lists: &Ragged, slots: PadRagged, shape: Shape) -> Result<usize> {
        self.check()?;
        let out = self.cuda.floats(shape.len())?;
        let starts = self.starts(lists)?;
        // Rows of no places are none.
        let (grid, rows) = (by_row(if shape.is_empty() { 0 } else { shape.rows() }), size(shape.rows()));
        let (places, per_row, width) = (size(slots.places), size(slots.per_row()), size(slots.width()));
        let arguments = args![self.ptr(x), starts.ptr(), out.ptr(), places, per_row, width, slots.filler, rows];
        self.cuda.launch("slots", grid, arguments)?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let Some(target) = back.target(x)? else { return Ok(()) };
            let (to, add) = (target.ptr, u32::from(target.add));
            let arguments = args![grad.ptr(), starts.ptr(), to, places, per_row, width, add, rows];
            back.cuda().launch("slots_back", grid, arguments)
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    /// Matrices of `rows` rows, each transposed.
    pub(crate) fn swap_axes(&mut self, x: usize, rows: usize) -> Result<usize> {
        self.check()?;
        let shape = self.shape(x);
        let (groups, cols) = (shape.rows() / rows, shape.cols());
        let out = self.cuda.floats(shape.len())?;
        let grid = Grid {
            blocks: (size(groups), size((rows.div_ceil(32) * cols.div_ceil(32)).min(MOST_TILES))),
            threads: (32, 8),
            shared: 0,
        };
        let (r, c) = (size(rows), size(cols));
        self.cuda.launch("swap_axes", grid, args![self.ptr(x), out.ptr(), r, c, 0_u32])?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let Some(target) = back.target(x)? else { return Ok(()) };
            back.cuda().launch("swap_axes", grid, args![grad.ptr(), target.ptr, c, r, u32::from(target.add)])
        };
        Ok(self.push(&[x], Shape::Matrix(groups * cols, rows), out, backward))
    }
}

impl Back<'_, '_> {
    /// Adds `count` values that others may still read to the gradient of `var`.
    fn add_part(&mut self, var: usize, from: u64, count: usize) -> Result<()> {
        match self.target(var)? {
            None => Ok(()),
            Some(_) if count == 0 => Ok(()),
            Some(to) if to.add => self.cuda().each("add_to", count, args![to.ptr, from, count as u64]),
            Some(to) => self.cuda().copy(from, to.ptr, 4 * count),
        }
    }
}
