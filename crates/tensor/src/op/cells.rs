//! The recurrent cells behind their products: GRU and LSTM as PyTorch defines them.

use crate::math::{sigmoid, tanh};
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::{multiply, vectorised};
use crate::{Result, Shape, Tape, Tensor, Var};

impl Tape<'_> {
    /// The next state of a GRU, `[M, D]`, from its state `h` `[M, D]` and what its two layers made: `input` of the
    /// message and `hidden` of the state, `[M, 3D]` each, the reset gate first, then the update gate, then the new state.
    ///
    /// ```text
    /// r = σ(input_r + hidden_r),  z = σ(input_z + hidden_z),  n = tanh(input_n + r · hidden_n)
    /// (1 − z) · n + z · h
    /// ```
    pub fn gru(&mut self, input: Var, hidden: Var, h: Var) -> Result<Var> {
        let (rows, d) = (self.shape(h).rows(), self.shape(h).cols());
        for (what, var) in [("the input", input), ("the hidden part", hidden)] {
            if self.shape(var) != Shape::Matrix(rows, 3 * d) {
                return Err(self.misfit("gru", what, var, Shape::Matrix(rows, 3 * d)));
            }
        }
        if let Some(record) = self.record() {
            return record.gru([input.0, hidden.0, h.0]).map(Var);
        }
        // r, z and n side by side, as the layers have them.
        let mut gates = scratch::copy_of(self.value(input).values());
        let mut values = scratch::copy_of(self.value(h).values());
        let hidden_values = self.value(hidden).values();
        self.threads().rows_of_two((&mut gates, 3 * d), (&mut values, d), |first, gates, values| {
            gru_rows(gates, &hidden_values[first * 3 * d..], values, d);
        });
        let backward = move |mut grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let (hidden_values, h_values) = (at.value(hidden).values(), at.value(h).values());
            let mut d_input = gates.clone();
            let mut d_hidden = scratch::take(gates.len());
            at.threads.rows_of_two((&mut d_input, 3 * d), (&mut d_hidden, 3 * d), |first, d_input, d_hidden| {
                let [wide, narrow] = [3 * d * first, d * first];
                let from = GruFrom { hidden: &hidden_values[wide..], h: &h_values[narrow..], grad: &grad[narrow..] };
                gru_rows_backward(d_input, d_hidden, from, d);
            });
            sink.give(input, d_input);
            sink.give(hidden, d_hidden);
            if sink.wants(h) {
                at.threads.rows(&mut grad, d, |first, rows| {
                    for (i, row) in rows.chunks_exact_mut(d).enumerate() {
                        let z = &gates[(first + i) * 3 * d + d..][..d];
                        multiply(row, z);
                    }
                });
                sink.give(h, grad);
            }
        };
        let shape = self.shape(h);
        Ok(self.push(&[input, hidden, h], Tensor::from_parts(shape, values), backward))
    }

    /// The next state of an LSTM, `[M, 2D]`: h, and c beside it. `gates` `[M, 4D]` are what its layers made, summed: those
    /// of input, forgetting, the new part and output. Without `c` `[M, D]`, it was zero.
    ///
    /// ```text
    /// c = σ(f) · c + σ(i) · tanh(g),  h = σ(o) · tanh(c)
    /// ```
    pub fn lstm(&mut self, gates: Var, c: Option<Var>) -> Result<Var> {
        let (rows, width) = (self.shape(gates).rows(), self.shape(gates).cols());
        if !width.is_multiple_of(4) {
            return Err(self.misfit("lstm", "what the gates are made of", gates, "[M, 4D]"));
        }
        let d = width / 4;
        if let Some(c) = c.filter(|&c| self.shape(c) != Shape::Matrix(rows, d)) {
            return Err(self.misfit("lstm", "the state", c, Shape::Matrix(rows, d)));
        }
        if let Some(record) = self.record() {
            return record.lstm(gates.0, c.map(|c| c.0)).map(Var);
        }
        let mut acts = scratch::copy_of(self.value(gates).values());
        let mut values = scratch::take(rows * 2 * d);
        let c_values = c.map_or(&[][..], |c| self.value(c).values());
        self.threads().rows_of_two((&mut acts, width), (&mut values, 2 * d), |first, acts, values| {
            lstm_rows(acts, c_values.get(first * d..).unwrap_or_default(), values, d);
        });
        let operands: Vec<Var> = std::iter::once(gates).chain(c).collect();
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let c_values = c.map_or(&[][..], |c| at.value(c).values());
            let output = at.output().values();
            let mut d_gates = acts;
            let mut d_c = scratch::take(rows * d);
            at.threads.rows_of_two((&mut d_gates, width), (&mut d_c, d), |first, d_gates, d_c| {
                let c = c_values.get(first * d..).unwrap_or_default();
                let from = LstmFrom { c, output: &output[first * 2 * d..], grad: &grad[first * 2 * d..] };
                lstm_rows_backward(d_gates, d_c, from, d);
            });
            sink.give(gates, d_gates);
            if let Some(c) = c {
                sink.give(c, d_c);
            }
        };
        Ok(self.push(&operands, Tensor::from_parts(Shape::Matrix(rows, 2 * d), values), backward))
    }
}

/// What the way back of a GRU reads beside its gates.
#[derive(Clone, Copy)]
struct GruFrom<'a> {
    hidden: &'a [f32],
    h: &'a [f32],
    grad: &'a [f32],
}

/// What the way back of an LSTM reads beside its gates; no `c` where it was zero.
#[derive(Clone, Copy)]
struct LstmFrom<'a> {
    c: &'a [f32],
    output: &'a [f32],
    grad: &'a [f32],
}

/// A row of `n · d` values as n parts.
#[expect(clippy::inline_always, reason = "it must be compiled with the loop around it, see `vector`")]
#[inline(always)]
fn parts<const N: usize>(row: &mut [f32], d: usize) -> [&mut [f32]; N] {
    let mut rest = row;
    std::array::from_fn(|_| {
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(d);
        rest = behind;
        part
    })
}

vectorised! {
    /// `gates`, of the input, become r, z and n; `values`, the state, the next one.
    fn gru_rows(gates: &mut [f32], hidden: &[f32], values: &mut [f32], d: usize) {
        let rows = gates.chunks_exact_mut(3 * d).zip(hidden.chunks_exact(3 * d));
        for ((gates, hidden), values) in rows.zip(values.chunks_exact_mut(d)) {
            let [r, z, n] = parts(gates, d);
            let (hidden_r, hidden) = hidden.split_at(d);
            let (hidden_z, hidden_n) = hidden.split_at(d);
            for i in 0..d {
                r[i] = sigmoid(r[i] + hidden_r[i]);
                z[i] = sigmoid(z[i] + hidden_z[i]);
                n[i] = tanh(n[i] + r[i] * hidden_n[i]);
                values[i] = n[i] + z[i] * (values[i] - n[i]);
            }
        }
    }

    /// The gates become the gradient of the input.
    fn gru_rows_backward(gates: &mut [f32], d_hidden: &mut [f32], from: GruFrom<'_>, d: usize) {
        let rows = gates.chunks_exact_mut(3 * d).zip(d_hidden.chunks_exact_mut(3 * d));
        for (row, (gates, d_hidden)) in rows.enumerate() {
            let [r, z, n] = parts(gates, d);
            let [d_r, d_z, d_n] = parts(d_hidden, d);
            let hidden_n = &from.hidden[row * 3 * d + 2 * d..][..d];
            let (h, grad) = (&from.h[row * d..][..d], &from.grad[row * d..][..d]);
            for i in 0..d {
                let before_tanh = grad[i] * (1.0 - z[i]) * (1.0 - n[i] * n[i]);
                d_n[i] = before_tanh * r[i];
                d_r[i] = before_tanh * hidden_n[i] * r[i] * (1.0 - r[i]);
                d_z[i] = grad[i] * (h[i] - n[i]) * z[i] * (1.0 - z[i]);
                (r[i], z[i], n[i]) = (d_r[i], d_z[i], before_tanh);
            }
        }
    }

    /// `gates` become i, f, g and o.
    fn lstm_rows(gates: &mut [f32], c: &[f32], values: &mut [f32], d: usize) {
        for (row, (gates, values)) in gates.chunks_exact_mut(4 * d).zip(values.chunks_exact_mut(2 * d)).enumerate() {
            let [i, f, g, o] = parts(gates, d);
            let [out, next] = parts(values, d);
            for at in 0..d {
                (i[at], f[at]) = (sigmoid(i[at]), sigmoid(f[at]));
                (g[at], o[at]) = (tanh(g[at]), sigmoid(o[at]));
                next[at] = i[at] * g[at];
            }
            if let Some(c) = c.get(row * d..(row + 1) * d) {
                for at in 0..d {
                    next[at] += f[at] * c[at];
                }
            }
            for at in 0..d {
                out[at] = o[at] * tanh(next[at]);
            }
        }
    }

    /// The gates become their gradients before their functions.
    fn lstm_rows_backward(gates: &mut [f32], d_c: &mut [f32], from: LstmFrom<'_>, d: usize) {
        for (row, (gates, d_c)) in gates.chunks_exact_mut(4 * d).zip(d_c.chunks_exact_mut(d)).enumerate() {
            let [i, f, g, o] = parts(gates, d);
            let next = &from.output[row * 2 * d + d..][..d];
            let (d_h, d_next) = from.grad[row * 2 * d..][..2 * d].split_at(d);
            for at in 0..d {
                let top = tanh(next[at]);
                let down = d_next[at] + d_h[at] * o[at] * (1.0 - top * top);
                o[at] = d_h[at] * top * o[at] * (1.0 - o[at]);
                d_c[at] = down;
                let (in_gate, new) = (i[at], g[at]);
                i[at] = down * new * in_gate * (1.0 - in_gate);
                g[at] = down * in_gate * (1.0 - new * new);
            }
            if let Some(c) = from.c.get(row * d..(row + 1) * d) {
                for at in 0..d {
                    let (down, keep) = (d_c[at], f[at]);
                    d_c[at] = down * keep;
                    f[at] = down * c[at] * keep * (1.0 - keep);
                }
            } else {
                f.fill(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{Case, check_gradients, matrix};

    #[test]
    fn gradients_match_differences() {
        for (rows, d) in [(5, 3), (0, 3), (1, 1), (3, 0), (70, 2)] {
            let inputs = [matrix(1, rows, 3 * d), matrix(2, rows, 3 * d), matrix(3, rows, d)];
            check_gradients(&inputs, |tape, x| tape.gru(x[0], x[1], x[2]));
            let inputs = [matrix(1, rows, 4 * d), matrix(2, rows, d)];
            check_gradients(&inputs, |tape, x| tape.lstm(x[0], Some(x[1])));
            check_gradients(&inputs[..1], |tape, x| tape.lstm(x[0], None));
        }
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        let names = ["x", "h", "weight_ih", "weight_hh", "bias_ih", "bias_hh"];
        Case::load("gru").check(&names, |tape, x| {
            let input = tape.linear(x[0], x[2], Some(x[4]), None)?;
            let hidden = tape.linear(x[1], x[3], Some(x[5]), None)?;
            tape.gru(input, hidden, x[1])
        });
        let names = ["x", "h", "c", "weight_ih", "weight_hh", "bias_ih", "bias_hh"];
        Case::load("lstm").check(&names, |tape, x| {
            let input = tape.linear(x[0], x[3], Some(x[5]), None)?;
            let hidden = tape.linear(x[1], x[4], Some(x[6]), None)?;
            let gates = tape.add(input, hidden)?;
            tape.lstm(gates, Some(x[2]))
        });
        Case::load("lstm_first").check(&["x", "weight_ih", "bias_ih", "bias_hh"], |tape, x| {
            let input = tape.linear(x[0], x[1], Some(x[2]), None)?;
            let rows = tape.shape(input).rows();
            let hidden = tape.repeat_row(x[3], rows)?;
            let gates = tape.add(input, hidden)?;
            tape.lstm(gates, None)
        });
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let (wide, h) = (tape.input(matrix(1, 2, 9)), tape.input(matrix(1, 2, 3)));
        let error = tape.gru(wide, h, h).unwrap_err();
        assert_eq!(error.to_string(), "gru: the hidden part has shape [2, 3], but [2, 9] is needed");
        let error = tape.lstm(wide, None).unwrap_err();
        assert_eq!(error.to_string(), "lstm: what the gates are made of has shape [2, 9], but [M, 4D] is needed");
        let gates = tape.input(matrix(1, 2, 8));
        let error = tape.lstm(gates, Some(h)).unwrap_err();
        assert_eq!(error.to_string(), "lstm: the state has shape [2, 3], but [2, 2] is needed");
    }
}
