//! Several values into one: sum, product, columns side by side.

use super::norm::add_products;
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::{add_to, multiply};
use crate::{Result, Shape, Tape, Tensor, Threads, Var};

impl Tape<'_> {
    /// `a + b`, value by value.
    pub fn add(&mut self, a: Var, b: Var) -> Result<Var> {
        let shape = self.same_shape("add", a, b)?;
        if let Some(record) = self.record() {
            return record.add(a.0, b.0).map(Var);
        }
        let cols = shape.cols();
        let mut values = scratch::copy_of(self.value(a).values());
        add_rows(&mut values, self.value(b).values(), cols, self.threads());
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(a, |sum| add_rows(sum, &grad, cols, at.threads));
            sink.give(b, grad);
        };
        Ok(self.push(&[a, b], Tensor::from_parts(shape, values), backward))
    }

    /// `a · b`, value by value.
    pub fn mul(&mut self, a: Var, b: Var) -> Result<Var> {
        let shape = self.same_shape("mul", a, b)?;
        if let Some(record) = self.record() {
            return record.mul(a.0, b.0).map(Var);
        }
        let cols = shape.cols();
        let mut values = scratch::copy_of(self.value(a).values());
        let factors = self.value(b).values();
        self.threads().rows(&mut values, cols, |first, rows| multiply(rows, &factors[first * cols..]));
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            for (var, other) in [(a, b), (b, a)] {
                let other = at.value(other).values();
                sink.add(var, |sum| {
                    let add = |first: usize, sums: &mut [f32]| {
                        add_products(sums, &grad[first * cols..], &other[first * cols..]);
                    };
                    at.threads.rows(sum, cols, add);
                });
            }
        };
        Ok(self.push(&[a, b], Tensor::from_parts(shape, values), backward))
    }

    /// The columns of all `parts` side by side, `[M, ΣN]`. All have the same number of rows.
    pub fn concat(&mut self, parts: &[Var]) -> Result<Var> {
        let rows = parts.first().map_or(0, |&part| self.shape(part).rows());
        if let Some(&odd) = parts.iter().find(|&&part| self.shape(part).rows() != rows) {
            return Err(self.misfit("concat", "a part", odd, format_args!("[{rows}, N]")));
        }
        if let Some(record) = self.record() {
            let parts: Vec<usize> = parts.iter().map(|part| part.0).collect();
            return record.concat(&parts, rows).map(Var);
        }
        // The first column of each part, its width, and the part.
        let mut width = 0;
        let mut places = Vec::with_capacity(parts.len());
        for &part in parts {
            places.push((width, self.shape(part).cols(), part));
            width += self.shape(part).cols();
        }
        let mut values = scratch::take(rows * width);
        let parts_values: Vec<_> = places.iter().map(|&(first, cols, part)| (first, cols, self.value(part))).collect();
        self.threads().rows(&mut values, width, |first_row, rows| {
            for (i, to) in rows.chunks_exact_mut(width).enumerate() {
                for &(first, cols, from) in &parts_values {
                    to[first..first + cols].copy_from_slice(&from.values()[(first_row + i) * cols..][..cols]);
                }
            }
        });
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            for &(first, cols, part) in places.iter().filter(|(_, cols, _)| *cols > 0) {
                sink.add(part, |sum| {
                    at.threads.rows(sum, cols, |first_row, rows| {
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

    fn same_shape(&self, operation: &'static str, a: Var, b: Var) -> Result<Shape> {
        let shape = self.shape(a);
        if self.shape(b) == shape { Ok(shape) } else { Err(self.misfit(operation, "the second operand", b, shape)) }
    }
}

/// `sums += terms` in rows of `cols`.
fn add_rows(sums: &mut [f32], terms: &[f32], cols: usize, threads: Threads) {
    threads.rows(sums, cols, |first, rows| add_to(rows, &terms[first * cols..]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{Case, check_gradients, matrix};

    #[test]
    fn gradients_match_differences() {
        let inputs = [matrix(1, 4, 3), matrix(2, 4, 3)];
        check_gradients(&inputs, |tape, x| tape.add(x[0], x[1]));
        check_gradients(&inputs, |tape, x| tape.mul(x[0], x[1]));
        let inputs = [matrix(1, 4, 3), matrix(2, 4, 1), matrix(3, 4, 0), matrix(4, 4, 2)];
        check_gradients(&inputs, |tape, x| tape.concat(&[x[0], x[1], x[2], x[3]]));
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        Case::load("add").check(&["a", "b"], |tape, x| tape.add(x[0], x[1]));
        Case::load("mul").check(&["a", "b"], |tape, x| tape.mul(x[0], x[1]));
        Case::load("concat").check(&["a", "b", "c"], |tape, x| tape.concat(&[x[0], x[1], x[2]]));
    }

    #[test]
    fn unequal_shapes_are_refused() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let (a, b) = (tape.input(matrix(1, 4, 3)), tape.input(matrix(1, 3, 4)));
        let error = tape.add(a, b).unwrap_err();
        assert_eq!(error.to_string(), "add: the second operand has shape [3, 4], but [4, 3] is needed");
        let error = tape.concat(&[a, b]).unwrap_err();
        assert_eq!(error.to_string(), "concat: a part has shape [3, 4], but [4, N] is needed");
    }
}
