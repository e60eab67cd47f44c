//! Row operations on the CPU.

use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::add_to;
use crate::{Indices, Result, Shape, Tensor, Threads, Var};

impl CpuTape<'_> {
    pub(crate) fn gather(&mut self, x: Var, indices: Indices) -> Result<Var> {
        let cols = self.shape(x).cols();
        let mut values = scratch::take_zeros(indices.len() * cols);
        add_gathered(self.value(x).values(), &indices, cols, &mut values, self.threads());
        let shape = Shape::Matrix(indices.len(), cols);
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            sink.accumulate_with(x, |sum| add_scattered(&grad, &indices, cols, sum, ctx.threads));
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }

    pub(crate) fn scatter(&mut self, x: Var, indices: Indices, n_rows: usize) -> Result<Var> {
        let cols = self.shape(x).cols();
        let mut values = scratch::take_zeros(n_rows * cols);
        add_scattered(self.value(x).values(), &indices, cols, &mut values, self.threads());
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            sink.accumulate_with(x, |sum| add_gathered(&grad, &indices, cols, sum, ctx.threads));
        };
        Ok(self.push(&[x], Tensor::from_parts(Shape::Matrix(n_rows, cols), values), backward))
    }

    pub(crate) fn reshape(&mut self, x: Var, shape: Shape) -> Result<Var> {
        let values = scratch::copy_of(self.value(x).values());
        let backward = move |grad: Scratch, _: &BackwardCtx<'_>, sink: &mut GradSink<'_>| sink.accumulate(x, grad);
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }

    pub(crate) fn repeat_row(&mut self, x: Var, n_rows: usize) -> Result<Var> {
        let cols = self.shape(x).cols();
        let values = self.value(x).values().repeat(n_rows);
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let row = |row: usize| &grad[row * cols..(row + 1) * cols];
            sink.accumulate_with(x, |sum| ctx.threads.sum_rows(n_rows, sum, |i, sums| add_to(sums, row(i))));
        };
        Ok(self.push(&[x], Tensor::from_parts(Shape::Matrix(n_rows, cols), values), backward))
    }
}

/// `to[i] += from[indices[i]]`, row by row.
fn add_gathered(from: &[f32], indices: &[u32], cols: usize, to: &mut [f32], threads: Threads) {
    threads.rows(to, cols, |first, rows| {
        for (row, &index) in rows.chunks_exact_mut(cols).zip(&indices[first..]) {
            add_to(row, &from[index as usize * cols..][..cols]);
        }
    });
}

/// `to[indices[i]] += from[i]`, row by row. Rows that share an index are added in their order.
fn add_scattered(from: &[f32], indices: &[u32], cols: usize, to: &mut [f32], threads: Threads) {
    // Each thread owns some target rows and scans all indices for them.
    threads.pieces(to, cols, |first, rows| {
        for (i, &index) in indices.iter().enumerate() {
            let at = (index as usize).checked_sub(first).map(|row| row * cols);
            if let Some(row) = at.and_then(|at| rows.get_mut(at..at + cols)) {
                add_to(row, &from[i * cols..(i + 1) * cols]);
            }
        }
    });
}
