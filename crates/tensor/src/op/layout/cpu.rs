//! Layout operations on the CPU.

use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::add_to;
use crate::{Result, Shape, Tensor, Threads, Var};

impl CpuTape<'_> {
    pub(crate) fn concat(&mut self, parts: &[Var], rows: usize) -> Result<Var> {
        // The first column and the width of each part.
        let mut width = 0;
        let mut ranges = Vec::with_capacity(parts.len());
        for &part in parts {
            ranges.push((width, self.shape(part).cols(), part));
            width += self.shape(part).cols();
        }
        let mut values = scratch::take(rows * width);
        let parts_values: Vec<_> = ranges.iter().map(|&(first, cols, part)| (first, cols, self.value(part))).collect();
        self.threads().rows(&mut values, width, |first_row, rows| {
            for (i, to) in rows.chunks_exact_mut(width).enumerate() {
                for &(first, cols, from) in &parts_values {
                    to[first..first + cols].copy_from_slice(&from.values()[(first_row + i) * cols..][..cols]);
                }
            }
        });
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            for &(first, cols, part) in ranges.iter().filter(|(_, cols, _)| *cols > 0) {
                sink.accumulate_with(part, |sum| {
                    ctx.threads.rows(sum, cols, |first_row, rows| {
                        for (to, from) in rows.chunks_exact_mut(cols).zip(grad[first_row * width..].chunks_exact(width))
                        {
                            add_to(to, &from[first..first + cols]);
                        }
                    });
                });
            }
        };
        Ok(self.push(parts, Tensor::from_parts(Shape::Matrix(rows, width), values), backward))
    }

    pub(crate) fn concat_rows(&mut self, parts: &[Var], shape: Shape) -> Result<Var> {
        let mut values = scratch::take(shape.len());
        let mut end = 0;
        let mut ranges = Vec::with_capacity(parts.len());
        for &part in parts {
            let from = self.value(part).values();
            values[end..end + from.len()].copy_from_slice(from);
            ranges.push((end, from.len(), part));
            end += from.len();
        }
        let backward = move |grad: Scratch, _: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            for (first, count, part) in ranges {
                sink.accumulate_with(part, |sum| add_to(sum, &grad[first..first + count]));
            }
        };
        Ok(self.push(parts, Tensor::from_parts(shape, values), backward))
    }

    pub(crate) fn columns(&mut self, x: Var, first: usize, count: usize) -> Result<Var> {
        let (rows, width) = (self.shape(x).rows(), self.shape(x).cols());
        let mut values = scratch::take(rows * count);
        let from = self.value(x).values();
        self.threads().rows(&mut values, count, |first_row, rows| {
            for (i, row) in rows.chunks_exact_mut(count).enumerate() {
                row.copy_from_slice(&from[(first_row + i) * width + first..][..count]);
            }
        });
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            sink.accumulate_with(x, |sum| {
                ctx.threads.rows(sum, width, |first_row, rows| {
                    for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                        add_to(&mut row[first..first + count], &grad[(first_row + i) * count..][..count]);
                    }
                });
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(Shape::Matrix(rows, count), values), backward))
    }

    pub(crate) fn swap_axes(&mut self, x: Var, rows_per_group: usize) -> Result<Var> {
        let (rows, cols) = (self.shape(x).rows(), self.shape(x).cols());
        let n_groups = rows / rows_per_group;
        let mut values = scratch::take_zeros(rows * cols);
        add_transposed(self.value(x).values(), (rows_per_group, cols), &mut values, self.threads());
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            sink.accumulate_with(x, |sum| add_transposed(&grad, (cols, rows_per_group), sum, ctx.threads));
        };
        let shape = Shape::Matrix(n_groups * cols, rows_per_group);
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }
}

/// Adds the transpose of each matrix `[rows, cols]` of `from` to that of `to`.
fn add_transposed(from: &[f32], (rows, cols): (usize, usize), to: &mut [f32], threads: Threads) {
    let size = rows * cols;
    threads.rows(to, size, |first, groups| {
        for (to, from) in groups.chunks_exact_mut(size).zip(from[first * size..].chunks_exact(size)) {
            for (col, to) in to.chunks_exact_mut(rows).enumerate() {
                for (to, from) in to.iter_mut().zip(from[col..].iter().step_by(cols)) {
                    *to += from;
                }
            }
        }
    });
}
