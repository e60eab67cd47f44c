//! One pre-norm block: each half adds to the residual stream, and on the way back to its gradient.
//!
//! Shapes: T tokens, D model width, F width of the feed-forward layer.

use super::mean;
use super::{BlockVars, EncoderForm};
use crate::gemm::{Into, View, Weight, product};
use crate::op::attention::{self, Place};
use crate::op::norm::{add_products, normalise_rows, normalise_rows_backward, scale_and_shift};
use crate::parallel::split;
use crate::scratch::{Scratch, take, take_zeros};
use crate::tape::Sink;
use crate::vector::{add_row, add_to, multiply, vectorised};
use crate::{Dropout, Ragged, Threads, Var, math};

/// A block's variables and their values.
pub(super) struct Weights<'a> {
    pub(super) vars: BlockVars,
    pub(super) norm1: [&'a [f32]; 2],
    pub(super) qkv: Linear<'a>,
    pub(super) out: Linear<'a>,
    pub(super) norm2: [&'a [f32]; 2],
    pub(super) up: Linear<'a>,
    pub(super) down: Linear<'a>,
}

/// The weight and the bias of a linear layer.
#[derive(Clone, Copy)]
pub(super) struct Linear<'a> {
    pub(super) weight: Weight<'a>,
    pub(super) bias: &'a [f32],
}

/// The sizes of a block and its dropouts.
pub(super) struct Form {
    pub(super) d_model: usize,
    pub(super) d_hidden: usize,
    pub(super) attention: attention::Form,
    out_dropout: Dropout,
    hidden_dropout: Dropout,
    down_dropout: Dropout,
}

/// What the attention half keeps.
pub(super) struct AttentionKept {
    normal: Normal,
    /// `[T, 3D]`
    qkv: Scratch,
    /// Of all sequences, before dropout.
    weights: Scratch,
    /// `[T, D]`
    attended: Scratch,
}

/// What the feed-forward half keeps.
pub(super) struct FeedKept {
    normal: Normal,
    /// The slopes of GELU times dropout's factors, `[T, F]`.
    slopes: Scratch,
    /// GELU's values after dropout, `[T, F]`, or the means of their pools, `[pools, F]`.
    pub(super) hidden: Scratch,
}

impl Form {
    pub(super) fn new(form: EncoderForm, index: u64, d_model: usize, d_hidden: usize) -> Self {
        let [weights, out_dropout, hidden_dropout, down_dropout] =
            [0, 1, 2, 3].map(|place| form.dropout.site(4 * index + place));
        let n_heads = form.heads.0;
        let attention = attention::Form { d_model, d_head: d_model / n_heads, n_heads, dropout: weights };
        Self { d_model, d_hidden, attention, out_dropout, hidden_dropout, down_dropout }
    }

    /// On attention's weights, behind attention, on the hidden rows, behind the second layer.
    pub(super) fn dropouts(&self) -> [Dropout; 4] {
        [self.attention.dropout, self.out_dropout, self.hidden_dropout, self.down_dropout]
    }

    /// x += drop(out(attention(norm1(x)))).
    pub(super) fn attend(&self, w: &Weights<'_>, places: &[Place], x: &mut [f32]) -> AttentionKept {
        let d = self.d_model;
        let normal = Normal::of(x, d);
        let y = normal.scaled(w.norm1); // [T, D]
        let mut qkv = take(3 * x.len());
        linear(&y, w.qkv, d, &mut qkv); // [T, 3D]
        let mut weights = take(places.iter().map(|place| place.n_weights).sum());
        let mut attended = take(x.len());
        let outputs = split(&mut attended, places.iter().map(|place| place.length * d));
        let all_weights = split(&mut weights, places.iter().map(|place| place.n_weights));
        for (place, (output, weights)) in places.iter().zip(outputs.zip(all_weights)) {
            self.attention.forward(place, &qkv, weights, output);
        }
        let mut out = y;
        linear(&attended, w.out, d, &mut out); // [T, D]
        self.out_dropout.apply(0, &mut out);
        add_to(x, &out);
        AttentionKept { normal, qkv, weights, attended }
    }

    /// `dx` grows by what [`attend`](Self::attend) adds to it.
    pub(super) fn attend_backward(
        &self,
        w: &Weights<'_>,
        (kept, places): (&AttentionKept, &[Place]),
        dx: &mut [f32],
        sink: &mut Sink<'_>,
    ) {
        let d = self.d_model;
        let mut dropped = Scratch::default();
        let d_out = after_dropout(self.out_dropout, dx, &mut dropped);
        linear_backward((d_out, &kept.attended), dx.len() / d, w.vars.out, sink);
        let mut d_attended = take(dx.len());
        w.out.weight.back(View::new(d_out, d_out.len() / d, d), Into::Replace, &mut d_attended);

        let mut d_qkv = take(kept.qkv.len());
        let from = attention::From { qkv: &kept.qkv, weights: &kept.weights, grad: &d_attended };
        let sums = split(&mut d_qkv, places.iter().map(|place| place.length * 3 * d));
        for (place, sum) in places.iter().zip(sums) {
            self.attention.backward(place, from, Into::Replace, sum);
        }
        kept.normal.layer_backward((&d_qkv, w.norm1, w.qkv.weight), (w.vars.norm1, w.vars.qkv), dx, sink);
    }

    /// x += drop(down(drop(gelu(up(norm2(x)))))).
    pub(super) fn feed(&self, w: &Weights<'_>, x: &mut [f32]) -> FeedKept {
        let normal = Normal::of(x, self.d_model);
        let y = normal.scaled(w.norm2); // [T, D]
        let mut slopes = self.up(w, &y); // [T, F]
        let mut hidden = take(slopes.len());
        gelu_rows(w.up.bias, &mut slopes, &mut hidden);
        self.hidden_dropout.apply_to_both(0, &mut hidden, &mut slopes);
        let mut out = y;
        self.down(w, &hidden, &mut out); // [T, D]
        self.down_dropout.apply(0, &mut out);
        add_to(x, &out);
        FeedKept { normal, slopes, hidden }
    }

    /// The same without the last layer: the mean hidden rows of `pools`, `[pools, F]`.
    pub(super) fn feed_means(&self, w: &Weights<'_>, x: &[f32], pools: &Ragged) -> FeedKept {
        let f = self.d_hidden;
        let normal = Normal::of(x, self.d_model);
        let mut slopes = self.up(w, &normal.scaled(w.norm2)); // [T, F]
        let (mut hidden, mut means) = (take(f), take_zeros(pools.len() * f));
        for (range, mean) in pools.ranges().zip(means.chunks_exact_mut(f.max(1))) {
            for row in range.clone() {
                let slopes = &mut slopes[row * f..(row + 1) * f];
                gelu_rows(w.up.bias, slopes, &mut hidden);
                self.hidden_dropout.apply_to_both(row * f, &mut hidden, slopes);
                add_to(mean, &hidden);
            }
            for value in mean.iter_mut() {
                *value *= mean::share(range.len());
            }
        }
        FeedKept { normal, slopes, hidden: means }
    }

    /// y·Wᵀ of the first feed-forward layer, without its bias.
    fn up(&self, w: &Weights<'_>, y: &[f32]) -> Scratch {
        let (d, f) = (self.d_model, self.d_hidden);
        let rows = y.len() / d;
        let mut out = take(rows * f);
        w.up.weight.forward(View::new(y, rows, d), Into::Replace, &mut out);
        out
    }

    /// The second feed-forward layer.
    pub(super) fn down(&self, w: &Weights<'_>, hidden: &[f32], out: &mut [f32]) {
        linear(hidden, w.down, self.d_hidden, out);
    }

    /// `dx` grows by what [`feed`](Self::feed) adds to it.
    pub(super) fn feed_backward(&self, w: &Weights<'_>, mut kept: FeedKept, dx: &mut [f32], sink: &mut Sink<'_>) {
        let d = self.d_model;
        let mut dropped = Scratch::default();
        let d_out = after_dropout(self.down_dropout, dx, &mut dropped);
        linear_backward((d_out, &kept.hidden), dx.len() / d, w.vars.down, sink);
        // The hidden rows have been read for the last time: their gradient takes their place.
        let mut d_hidden = std::mem::take(&mut kept.hidden);
        w.down.weight.back(View::new(d_out, d_out.len() / d, d), Into::Replace, &mut d_hidden);
        multiply(&mut d_hidden, &kept.slopes);
        kept.normal.layer_backward((&d_hidden, w.norm2, w.up.weight), (w.vars.norm2, w.vars.up), dx, sink);
    }

    /// `dx` grows by what the last block's means add to it.
    pub(super) fn feed_means_backward(
        &self,
        w: &Weights<'_>,
        mut kept: FeedKept,
        (pools, grad): (&Ragged, &[f32]),
        dx: &mut [f32],
        sink: &mut Sink<'_>,
    ) {
        let (d, f) = (self.d_model, self.d_hidden);
        linear_backward((grad, &kept.hidden), pools.len(), w.vars.down, sink);
        let mut d_means = take(kept.hidden.len());
        w.down.weight.back(View::new(grad, pools.len(), d), Into::Replace, &mut d_means);
        for (range, d_mean) in pools.ranges().zip(d_means.chunks_exact_mut(f.max(1))) {
            for value in d_mean.iter_mut() {
                *value *= mean::share(range.len());
            }
            for row in range {
                multiply(&mut kept.slopes[row * f..(row + 1) * f], d_mean);
            }
        }
        kept.normal.layer_backward((&kept.slopes, w.norm2, w.up.weight), (w.vars.norm2, w.vars.up), dx, sink);
    }
}

/// The normalised rows of a LayerNorm, `[T, D]`, and 1/σ of each.
struct Normal {
    rows: Scratch,
    inv_std: Scratch,
}

impl Normal {
    fn of(x: &[f32], cols: usize) -> Self {
        let (mut rows, mut inv_std) = (take(x.len()), take(x.len() / cols));
        rows.copy_from_slice(x);
        normalise_rows(&mut rows, &mut inv_std);
        Self { rows, inv_std }
    }

    /// The LayerNorm's result: cheaper to make again than to keep.
    fn scaled(&self, [scale, shift]: [&[f32]; 2]) -> Scratch {
        let mut y = take(self.rows.len());
        y.copy_from_slice(&self.rows);
        scale_and_shift(&mut y, scale, shift);
        y
    }

    /// The way back of a linear layer on the LayerNorm, given the layer's gradient; adds to that of what was normalised.
    fn layer_backward(
        &self,
        (grad, norm, weight): (&[f32], [&[f32]; 2], Weight<'_>),
        (norm_vars, vars): ([Var; 2], [Var; 2]),
        dx: &mut [f32],
        sink: &mut Sink<'_>,
    ) {
        let (d, rows) = (norm[0].len(), self.inv_std.len());
        if rows == 0 {
            return;
        }
        let mut dy = self.scaled(norm);
        linear_backward((grad, &dy), rows, vars, sink);
        let n = grad.len() / rows;
        weight.back(View::new(grad, rows, n), Into::Replace, &mut dy);
        let row = |row: usize| row * d..(row + 1) * d;
        sink.add(norm_vars[0], |sums| {
            Threads::Caller.sum_rows(rows, sums, |i, sums| add_products(sums, &dy[row(i)], &self.rows[row(i)]));
        });
        sink.add(norm_vars[1], |sums| Threads::Caller.sum_rows(rows, sums, |i, sums| add_to(sums, &dy[row(i)])));
        normalise_rows_backward(&mut dy, &self.rows, &self.inv_std, norm[0]);
        add_to(dx, &dy);
    }
}

/// x·Wᵀ + b for rows of `n_in` values.
fn linear(x: &[f32], Linear { weight, bias }: Linear<'_>, n_in: usize, out: &mut [f32]) {
    weight.forward(View::new(x, out.len() / bias.len(), n_in), Into::Replace, out);
    add_row(out, bias);
}

/// Adds the gradients of a linear layer's weight and bias, given that of its result and what it read, `rows` of each.
fn linear_backward((grad, x): (&[f32], &[f32]), rows: usize, [weight, bias]: [Var; 2], sink: &mut Sink<'_>) {
    if rows == 0 {
        return;
    }
    let (n_in, n_out) = (x.len() / rows, grad.len() / rows);
    sink.add(weight, |sum| {
        product(View::new(grad, rows, n_out).t(), View::new(x, rows, n_in), 1.0, Into::Add, sum, n_in);
    });
    sink.add(bias, |sums| {
        Threads::Caller.sum_rows(rows, sums, |i, sums| add_to(sums, &grad[i * n_out..(i + 1) * n_out]));
    });
}

/// `grad` itself, or a copy of it with some values zeroed.
fn after_dropout<'a>(dropout: Dropout, grad: &'a [f32], copy: &'a mut Scratch) -> &'a [f32] {
    if !dropout.acts() {
        return grad;
    }
    *copy = take(grad.len());
    copy.copy_from_slice(grad);
    dropout.apply(0, copy);
    copy
}

vectorised! {
    /// For rows of what the bias is to be added to: GELU into `hidden`, its slope in their place.
    fn gelu_rows(bias: &[f32], rows: &mut [f32], hidden: &mut [f32]) {
        let cols = bias.len().max(1);
        for (row, hidden) in rows.chunks_exact_mut(cols).zip(hidden.chunks_exact_mut(cols)) {
            for ((x, hidden), bias) in row.iter_mut().zip(hidden).zip(bias) {
                (*hidden, *x) = math::gelu(*x + bias);
            }
        }
    }
}
