//! Values put elsewhere: rows under one another, some of the columns, axes that change places.

use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::add_to;
use crate::{Result, Shape, Tape, Tensor, Threads, Var};

impl Tape<'_> {
    /// The rows of all `parts` under one another, `[ΣM, N]`. All have the same number of columns.
    pub fn stack(&mut self, parts: &[Var]) -> Result<Var> {
        let cols = parts.first().map_or(0, |&part| self.shape(part).cols());
        if let Some(&odd) = parts.iter().find(|&&part| self.shape(part).cols() != cols) {
            return Err(self.misfit("stack", "a part", odd, format_args!("[M, {cols}]")));
        }
        let rows = parts.iter().map(|&part| self.shape(part).rows()).sum();
        let shape = Shape::Matrix(rows, cols);
        if let Some(record) = self.record() {
            let parts: Vec<usize> = parts.iter().map(|part| part.0).collect();
            return record.stack(&parts, shape).map(Var);
        }
        let mut values = scratch::take(shape.len());
        let mut end = 0;
        let mut places = Vec::with_capacity(parts.len());
        for &part in parts {
            let from = self.value(part).values();
            values[end..end + from.len()].copy_from_slice(from);
            places.push((end, from.len(), part));
            end += from.len();
        }
        let backward = move |grad: Scratch, _: &At<'_>, sink: &mut Sink<'_>| {
            for (first, count, part) in places {
                sink.add(part, |sum| add_to(sum, &grad[first..first + count]));
            }
        };
        Ok(self.push(parts, Tensor::from_parts(shape, values), backward))
    }

    /// The `count` columns of `x` `[M, N]` from `first` on, `[M, count]`.
    pub fn columns(&mut self, x: Var, first: usize, count: usize) -> Result<Var> {
        let (rows, width) = (self.shape(x).rows(), self.shape(x).cols());
        if first.checked_add(count).is_none_or(|end| end > width) {
            let needed = format!("[M, N] with {count} columns from column {first} on");
            return Err(self.misfit("columns", "x", x, needed));
        }
        if let Some(record) = self.record() {
            return record.columns(x.0, first, count).map(Var);
        }
        let mut values = scratch::take(rows * count);
        let from = self.value(x).values();
        self.threads().rows(&mut values, count, |first_row, rows| {
            for (i, row) in rows.chunks_exact_mut(count).enumerate() {
                row.copy_from_slice(&from[(first_row + i) * width + first..][..count]);
            }
        });
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(x, |sum| {
                at.threads.rows(sum, width, |first_row, rows| {
                    for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                        add_to(&mut row[first..first + count], &grad[(first_row + i) * count..][..count]);
                    }
                });
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(Shape::Matrix(rows, count), values), backward))
    }

    /// `x` `[G·R, C]` as G matrices of `rows_per_group` R rows, each transposed, `[G·C, R]`.
    pub fn swap_axes(&mut self, x: Var, rows_per_group: usize) -> Result<Var> {
        let (rows, cols) = (self.shape(x).rows(), self.shape(x).cols());
        if rows_per_group == 0 || !rows.is_multiple_of(rows_per_group) {
            return Err(self.misfit("swap axes", "x", x, format_args!("[G · {rows_per_group}, C]")));
        }
        if let Some(record) = self.record() {
            return record.swap_axes(x.0, rows_per_group).map(Var);
        }
        let n_groups = rows / rows_per_group;
        let mut values = scratch::take_zeros(rows * cols);
        add_swapped(self.value(x).values(), (rows_per_group, cols), &mut values, self.threads());
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(x, |sum| add_swapped(&grad, (cols, rows_per_group), sum, at.threads));
        };
        let shape = Shape::Matrix(n_groups * cols, rows_per_group);
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }
}

/// Adds each matrix `[rows, cols]` of `from`, transposed, to the one of `to` in its place.
fn add_swapped(from: &[f32], (rows, cols): (usize, usize), to: &mut [f32], threads: Threads) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{Case, check_gradients, matrix, vector};

    #[test]
    fn gradients_match_differences() {
        let inputs = [matrix(1, 4, 3), matrix(2, 0, 3), vector(3, 3), matrix(4, 70, 3)];
        check_gradients(&inputs, |tape, x| tape.stack(&[x[0], x[1], x[2], x[3]]));
        check_gradients(&inputs[..1], |tape, x| tape.stack(&[x[0], x[0]]));
        for rows in [0, 1, 70] {
            for (first, count) in [(0, 5), (1, 3), (4, 1), (5, 0), (0, 0)] {
                check_gradients(&[matrix(1, rows, 5)], |tape, x| tape.columns(x[0], first, count));
            }
        }
        for (rows, cols, per_group) in [(6, 4, 3), (6, 4, 6), (6, 4, 1), (0, 4, 3), (4, 0, 2), (140, 2, 2)] {
            check_gradients(&[matrix(1, rows, cols)], |tape, x| tape.swap_axes(x[0], per_group));
        }
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        Case::load("stack").check(&["a", "b", "c"], |tape, x| tape.stack(&[x[0], x[1], x[2]]));
        Case::load("columns").check(&["x"], |tape, x| tape.columns(x[0], 1, 3));
        Case::load("swap_axes").check(&["x"], |tape, x| tape.swap_axes(x[0], 3));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let (a, b) = (tape.input(matrix(1, 4, 3)), tape.input(matrix(1, 4, 2)));
        let nothing = tape.stack(&[]).unwrap();
        assert_eq!(tape.shape(nothing), Shape::Matrix(0, 0));
        let error = tape.stack(&[a, b]).unwrap_err();
        assert_eq!(error.to_string(), "stack: a part has shape [4, 2], but [M, 3] is needed");
        let error = tape.columns(a, 2, 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "columns: x has shape [4, 3], but [M, N] with 2 columns from column 2 on is needed"
        );
        assert!(tape.columns(a, usize::MAX, 2).is_err());
        let error = tape.swap_axes(a, 3).unwrap_err();
        assert_eq!(error.to_string(), "swap axes: x has shape [4, 3], but [G · 3, C] is needed");
        assert!(tape.swap_axes(a, 0).is_err());
    }
}
