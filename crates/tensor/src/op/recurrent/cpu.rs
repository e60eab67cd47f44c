//! Recurrent cells on the CPU.

use crate::math::{sigmoid, tanh};
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::{multiply, vectorised};
use crate::{Result, Shape, Tensor, Var};

impl CpuTape<'_> {
    pub(crate) fn gru(&mut self, input: Var, hidden: Var, h: Var) -> Result<Var> {
        let d = self.shape(h).cols();
        // r, z, n of each row, `[M, 3D]`.
        let mut gates = scratch::copy_of(self.value(input).values());
        let mut values = scratch::copy_of(self.value(h).values());
        let hidden_values = self.value(hidden).values();
        self.threads().rows_of_two((&mut gates, 3 * d), (&mut values, d), |first, gates, values| {
            gru_rows(gates, &hidden_values[first * 3 * d..], values, d);
        });
        let backward = move |mut grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let (hidden_values, h_values) = (ctx.value(hidden).values(), ctx.value(h).values());
            let mut d_input = gates.clone();
            let mut d_hidden = scratch::take(gates.len());
            ctx.threads.rows_of_two((&mut d_input, 3 * d), (&mut d_hidden, 3 * d), |first, d_input, d_hidden| {
                let [gate_start, start] = [3 * d * first, d * first];
                let saved =
                    GruSaved { hidden: &hidden_values[gate_start..], h: &h_values[start..], grad: &grad[start..] };
                gru_rows_backward(d_input, d_hidden, saved, d);
            });
            sink.accumulate(input, d_input);
            sink.accumulate(hidden, d_hidden);
            if sink.requires_grad(h) {
                ctx.threads.rows(&mut grad, d, |first, rows| {
                    for (i, row) in rows.chunks_exact_mut(d).enumerate() {
                        let z = &gates[(first + i) * 3 * d + d..][..d];
                        multiply(row, z);
                    }
                });
                sink.accumulate(h, grad);
            }
        };
        let shape = self.shape(h);
        Ok(self.push(&[input, hidden, h], Tensor::from_parts(shape, values), backward))
    }

    pub(crate) fn lstm(&mut self, gates: Var, c: Option<Var>) -> Result<Var> {
        let (rows, width) = (self.shape(gates).rows(), self.shape(gates).cols());
        let d = width / 4;
        let mut acts = scratch::copy_of(self.value(gates).values());
        let mut values = scratch::take(rows * 2 * d);
        let c_values = c.map_or(&[][..], |c| self.value(c).values());
        self.threads().rows_of_two((&mut acts, width), (&mut values, 2 * d), |first, acts, values| {
            lstm_rows(acts, c_values.get(first * d..).unwrap_or_default(), values, d);
        });
        let operands: Vec<Var> = std::iter::once(gates).chain(c).collect();
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let c_values = c.map_or(&[][..], |c| ctx.value(c).values());
            let output = ctx.output().values();
            let mut d_gates = acts;
            let mut d_c = scratch::take(rows * d);
            ctx.threads.rows_of_two((&mut d_gates, width), (&mut d_c, d), |first, d_gates, d_c| {
                let c = c_values.get(first * d..).unwrap_or_default();
                let saved = LstmSaved { c, output: &output[first * 2 * d..], grad: &grad[first * 2 * d..] };
                lstm_rows_backward(d_gates, d_c, saved, d);
            });
            sink.accumulate(gates, d_gates);
            if let Some(c) = c {
                sink.accumulate(c, d_c);
            }
        };
        Ok(self.push(&operands, Tensor::from_parts(Shape::Matrix(rows, 2 * d), values), backward))
    }
}

/// What the backward of a GRU reads besides its gates.
#[derive(Clone, Copy)]
struct GruSaved<'a> {
    hidden: &'a [f32],
    h: &'a [f32],
    grad: &'a [f32],
}

/// What the backward of an LSTM reads besides its gates; `c` is empty where it was zero.
#[derive(Clone, Copy)]
struct LstmSaved<'a> {
    c: &'a [f32],
    output: &'a [f32],
    grad: &'a [f32],
}

/// A row of `N · d` values as N parts.
#[expect(clippy::inline_always, reason = "must be inlined into the loop, see `vector`")]
#[inline(always)]
fn parts<const N: usize>(row: &mut [f32], d: usize) -> [&mut [f32]; N] {
    let mut rest = row;
    std::array::from_fn(|_| {
        let (part, tail) = std::mem::take(&mut rest).split_at_mut(d);
        rest = tail;
        part
    })
}

vectorised! {
    /// Turns the input layer's output `gates` into r, z, n, and the state `values` into the next one.
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

    /// Turns the gates into the gradient of the input.
    fn gru_rows_backward(gates: &mut [f32], d_hidden: &mut [f32], saved: GruSaved<'_>, d: usize) {
        let rows = gates.chunks_exact_mut(3 * d).zip(d_hidden.chunks_exact_mut(3 * d));
        for (row, (gates, d_hidden)) in rows.enumerate() {
            let [r, z, n] = parts(gates, d);
            let [d_r, d_z, d_n] = parts(d_hidden, d);
            let hidden_n = &saved.hidden[row * 3 * d + 2 * d..][..d];
            let (h, grad) = (&saved.h[row * d..][..d], &saved.grad[row * d..][..d]);
            for i in 0..d {
                let before_tanh = grad[i] * (1.0 - z[i]) * (1.0 - n[i] * n[i]);
                d_n[i] = before_tanh * r[i];
                d_r[i] = before_tanh * hidden_n[i] * r[i] * (1.0 - r[i]);
                d_z[i] = grad[i] * (h[i] - n[i]) * z[i] * (1.0 - z[i]);
                (r[i], z[i], n[i]) = (d_r[i], d_z[i], before_tanh);
            }
        }
    }

    /// Turns `gates` into i, f, g, o.
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

    /// Turns the gates into the gradients of their arguments.
    fn lstm_rows_backward(gates: &mut [f32], d_c: &mut [f32], saved: LstmSaved<'_>, d: usize) {
        for (row, (gates, d_c)) in gates.chunks_exact_mut(4 * d).zip(d_c.chunks_exact_mut(d)).enumerate() {
            let [i, f, g, o] = parts(gates, d);
            let next = &saved.output[row * 2 * d + d..][..d];
            let (d_h, d_next) = saved.grad[row * 2 * d..][..2 * d].split_at(d);
            for at in 0..d {
                let tanh_c = tanh(next[at]);
                let d_cell = d_next[at] + d_h[at] * o[at] * (1.0 - tanh_c * tanh_c);
                o[at] = d_h[at] * tanh_c * o[at] * (1.0 - o[at]);
                d_c[at] = d_cell;
                let (in_gate, new) = (i[at], g[at]);
                i[at] = d_cell * new * in_gate * (1.0 - in_gate);
                g[at] = d_cell * in_gate * (1.0 - new * new);
            }
            if let Some(c) = saved.c.get(row * d..(row + 1) * d) {
                for at in 0..d {
                    let (d_cell, forget) = (d_c[at], f[at]);
                    d_c[at] = d_cell * forget;
                    f[at] = d_cell * c[at] * forget * (1.0 - forget);
                }
            } else {
                f.fill(0.0);
            }
        }
    }
}
