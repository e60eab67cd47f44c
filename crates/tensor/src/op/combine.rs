//! Several values into one: sum, product, columns side by side.

use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::add_to;
use crate::{Error, Result, Shape, Tape, Tensor, Var};

impl Tape<'_> {
    /// `a + b`, value by value.
    pub fn add(&mut self, a: Var, b: Var) -> Result<Var> {
        let shape = self.same_shape("add", a, b)?;
        if self.record().is_some() {
            return Err(Error::NotOnGpu { operation: "add" });
        }
        let mut values = scratch::copy_of(self.value(a).values());
        add_to(&mut values, self.value(b).values());
        let backward = move |grad: Scratch, _: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(a, |sum| add_to(sum, &grad));
            sink.give(b, grad);
        };
        Ok(self.push(&[a, b], Tensor::from_parts(shape, values), backward))
    }

    /// `a · b`, value by value.
    pub fn mul(&mut self, a: Var, b: Var) -> Result<Var> {
        let shape = self.same_shape("mul", a, b)?;
        if self.record().is_some() {
            return Err(Error::NotOnGpu { operation: "mul" });
        }
        let values: Vec<f32> = self.value(a).values().iter().zip(self.value(b).values()).map(|(a, b)| a * b).collect();
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            for (var, other) in [(a, b), (b, a)] {
                let other = at.value(other).values();
                sink.add(var, |sum| {
                    sum.iter_mut().zip(&grad[..]).zip(other).for_each(|((sum, grad), other)| *sum += grad * other);
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
        for &(first, cols, part) in places.iter().filter(|(_, cols, _)| *cols > 0) {
            let from = self.value(part).values().chunks_exact(cols);
            for (to, from) in values.chunks_exact_mut(width).zip(from) {
                to[first..first + cols].copy_from_slice(from);
            }
        }
        let backward = move |grad: Scratch, _: &At<'_>, sink: &mut Sink<'_>| {
            for &(first, cols, part) in places.iter().filter(|(_, cols, _)| *cols > 0) {
                sink.add(part, |sum| {
                    for (to, from) in sum.chunks_exact_mut(cols).zip(grad.chunks_exact(width)) {
                        add_to(to, &from[first..first + cols]);
                    }
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
