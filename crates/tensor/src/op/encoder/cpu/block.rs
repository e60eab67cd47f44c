//! One pre-norm block: each half adds to the residual stream, and in backward to its gradient.
//!
//! Shapes: T tokens, D model width, F width of the feed-forward layer.

use super::super::{Block, BlockVars};
use super::bias::SequenceBias;
use super::mean;
use crate::gemm::{View, Weight, WriteMode, gemm};
use crate::op::layer_norm::cpu::{normalise_rows, normalise_rows_backward, scale_and_shift};
use crate::op::self_attention::cpu::{self as self_attention, Sequence};
use crate::parallel::split;
use crate::scratch::{Scratch, take, take_zeros};
use crate::tape::GradSink;
use crate::vector::{add_products, add_row, add_to, multiply, vectorised};
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
pub(super) struct BlockSizes {
    pub(super) d_model: usize,
    pub(super) d_hidden: usize,
    pub(super) attention: self_attention::Sizes,
    out_dropout: Dropout,
    hidden_dropout: Dropout,
    down_dropout: Dropout,
}

/// What the attention half saves for backward.
pub(super) struct SavedAttention {
    normal: Normal,
    /// `[T, 3D]`
    qkv: Scratch,
    /// Attention weights of all sequences, before dropout.
    weights: Scratch,
    /// `[T, D]`
    attended: Scratch,
}

/// What the feed-forward half saves for backward.
pub(super) struct SavedFeedForward {
    normal: Normal,
    /// The derivatives of GELU times the dropout mask, `[T, F]`.
    slopes: Scratch,
    /// The hidden rows after GELU and dropout, `[T, F]`, or their means over pools, `[pools, F]`.
    pub(super) hidden: Scratch,
}

impl BlockSizes {
    pub(super) fn new(block: &Block, n_heads: usize, d_model: usize) -> Self {
        let [dropout, out_dropout, hidden_dropout, down_dropout] = block.dropouts;
        let attention = self_attention::Sizes { d_model, d_head: d_model / n_heads, n_heads, dropout };
        Self { d_model, d_hidden: block.d_hidden, attention, out_dropout, hidden_dropout, down_dropout }
    }

    /// x += drop(out(attention(norm1(x)))). `biases` has an element for each sequence, or is empty.
    pub(super) fn attention_forward(
        &self,
        w: &Weights<'_>,
        (sequences, biases): (&[Sequence], &[SequenceBias<'_>]),
        x: &mut [f32],
    ) -> SavedAttention {
        let d = self.d_model;
        let normal = Normal::of(x, d);
        let y = normal.scaled(w.norm1); // [T, D]
        let mut qkv = take(3 * x.len());
        linear(&y, w.qkv, d, &mut qkv); // [T, 3D]
        let mut weights = take(sequences.iter().map(|sequence| sequence.n_weights).sum());
        let mut attended = take(x.len());
        let outputs = split(&mut attended, sequences.iter().map(|sequence| sequence.length * d));
        let all_weights = split(&mut weights, sequences.iter().map(|sequence| sequence.n_weights));
        for (at, (sequence, (output, weights))) in sequences.iter().zip(outputs.zip(all_weights)).enumerate() {
            match biases.get(at) {
                None => self.attention.forward(sequence, &qkv, weights, output, |_, _| ()),
                Some(bias) => self.attention.forward(sequence, &qkv, weights, output, |head, scores| {
                    bias.add(head, scores);
                }),
            }
        }
        let mut out = y;
        linear(&attended, w.out, d, &mut out); // [T, D]
        self.out_dropout.apply(0, &mut out);
        add_to(x, &out);
        SavedAttention { normal, qkv, weights, attended }
    }

    /// Adds the input gradient of [`attention_forward`](Self::attention_forward) to `dx`, and the gradients of `biases` to `d_table`.
    pub(super) fn attention_backward(
        &self,
        w: &Weights<'_>,
        (saved, sequences): (&SavedAttention, &[Sequence]),
        (biases, d_table): (&[SequenceBias<'_>], &mut [f32]),
        dx: &mut [f32],
        sink: &mut GradSink<'_>,
    ) {
        let d = self.d_model;
        let mut dropped = Scratch::default();
        let d_out = with_dropout(self.out_dropout, dx, &mut dropped);
        linear_backward((d_out, &saved.attended), dx.len() / d, w.vars.out, sink);
        let mut d_attended = take(dx.len());
        w.out.weight.backward(View::new(d_out, d_out.len() / d, d), WriteMode::Overwrite, &mut d_attended);

        let mut d_qkv = take(saved.qkv.len());
        let attention_saved = self_attention::Saved { qkv: &saved.qkv, weights: &saved.weights, grad: &d_attended };
        let sums = split(&mut d_qkv, sequences.iter().map(|sequence| sequence.length * 3 * d));
        for (at, (sequence, sum)) in sequences.iter().zip(sums).enumerate() {
            self.attention.backward(sequence, attention_saved, WriteMode::Overwrite, sum, |head, d_scores| {
                if let Some(bias) = biases.get(at) {
                    bias.add_gradients(head, d_scores, d_table);
                }
            });
        }
        saved.normal.linear_after_norm_backward((&d_qkv, w.norm1, w.qkv.weight), (w.vars.norm1, w.vars.qkv), dx, sink);
    }

    /// x += drop(down(drop(gelu(up(norm2(x)))))).
    pub(super) fn ffn(&self, w: &Weights<'_>, x: &mut [f32]) -> SavedFeedForward {
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
        SavedFeedForward { normal, slopes, hidden }
    }

    /// [`ffn`](Self::ffn) without its last layer: the mean hidden rows of `pools`, `[pools, F]`.
    pub(super) fn ffn_means(&self, w: &Weights<'_>, x: &[f32], pools: &Ragged) -> SavedFeedForward {
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
        SavedFeedForward { normal, slopes, hidden: means }
    }

    /// y·Wᵀ of the first feed-forward layer, without its bias.
    fn up(&self, w: &Weights<'_>, y: &[f32]) -> Scratch {
        let (d, f) = (self.d_model, self.d_hidden);
        let rows = y.len() / d;
        let mut out = take(rows * f);
        w.up.weight.forward(View::new(y, rows, d), WriteMode::Overwrite, &mut out);
        out
    }

    /// The second feed-forward layer.
    pub(super) fn down(&self, w: &Weights<'_>, hidden: &[f32], out: &mut [f32]) {
        linear(hidden, w.down, self.d_hidden, out);
    }

    /// Adds the input gradient of [`ffn`](Self::ffn) to `dx`.
    pub(super) fn ffn_backward(
        &self,
        w: &Weights<'_>,
        mut saved: SavedFeedForward,
        dx: &mut [f32],
        sink: &mut GradSink<'_>,
    ) {
        let d = self.d_model;
        let mut dropped = Scratch::default();
        let d_out = with_dropout(self.down_dropout, dx, &mut dropped);
        linear_backward((d_out, &saved.hidden), dx.len() / d, w.vars.down, sink);
        // The hidden rows are not read again: their gradient reuses the buffer.
        let mut d_hidden = std::mem::take(&mut saved.hidden);
        w.down.weight.backward(View::new(d_out, d_out.len() / d, d), WriteMode::Overwrite, &mut d_hidden);
        multiply(&mut d_hidden, &saved.slopes);
        saved.normal.linear_after_norm_backward((&d_hidden, w.norm2, w.up.weight), (w.vars.norm2, w.vars.up), dx, sink);
    }

    /// Adds the input gradient of [`ffn_means`](Self::ffn_means) to `dx`.
    pub(super) fn ffn_means_backward(
        &self,
        w: &Weights<'_>,
        mut saved: SavedFeedForward,
        (pools, grad): (&Ragged, &[f32]),
        dx: &mut [f32],
        sink: &mut GradSink<'_>,
    ) {
        let (d, f) = (self.d_model, self.d_hidden);
        linear_backward((grad, &saved.hidden), pools.len(), w.vars.down, sink);
        let mut d_means = take(saved.hidden.len());
        w.down.weight.backward(View::new(grad, pools.len(), d), WriteMode::Overwrite, &mut d_means);
        for (range, d_mean) in pools.ranges().zip(d_means.chunks_exact_mut(f.max(1))) {
            for value in d_mean.iter_mut() {
                *value *= mean::share(range.len());
            }
            for row in range {
                multiply(&mut saved.slopes[row * f..(row + 1) * f], d_mean);
            }
        }
        saved.normal.linear_after_norm_backward(
            (&saved.slopes, w.norm2, w.up.weight),
            (w.vars.norm2, w.vars.up),
            dx,
            sink,
        );
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

    /// The output of the LayerNorm: cheaper to recompute than to save.
    fn scaled(&self, [scale, shift]: [&[f32]; 2]) -> Scratch {
        let mut y = take(self.rows.len());
        y.copy_from_slice(&self.rows);
        scale_and_shift(&mut y, scale, shift);
        y
    }

    /// The backward of a linear layer after the LayerNorm, given the gradient of the layer's output: adds the gradient of
    /// the LayerNorm's input to `dx`.
    fn linear_after_norm_backward(
        &self,
        (grad, norm, weight): (&[f32], [&[f32]; 2], Weight<'_>),
        (norm_vars, vars): ([Var; 2], [Var; 2]),
        dx: &mut [f32],
        sink: &mut GradSink<'_>,
    ) {
        let (d, rows) = (norm[0].len(), self.inv_std.len());
        if rows == 0 {
            return;
        }
        let mut dy = self.scaled(norm);
        linear_backward((grad, &dy), rows, vars, sink);
        let n = grad.len() / rows;
        weight.backward(View::new(grad, rows, n), WriteMode::Overwrite, &mut dy);
        let row = |row: usize| row * d..(row + 1) * d;
        sink.accumulate_with(norm_vars[0], |sums| {
            Threads::Caller.sum_rows(rows, sums, |i, sums| add_products(sums, &dy[row(i)], &self.rows[row(i)]));
        });
        sink.accumulate_with(norm_vars[1], |sums| {
            Threads::Caller.sum_rows(rows, sums, |i, sums| add_to(sums, &dy[row(i)]));
        });
        normalise_rows_backward(&mut dy, &self.rows, &self.inv_std, norm[0]);
        add_to(dx, &dy);
    }
}

/// x·Wᵀ + b for rows of `n_in` values.
fn linear(x: &[f32], Linear { weight, bias }: Linear<'_>, n_in: usize, out: &mut [f32]) {
    weight.forward(View::new(x, out.len() / bias.len(), n_in), WriteMode::Overwrite, out);
    add_row(out, bias);
}

/// Adds the gradients of a linear layer's weight and bias, given its output gradient and its input, `rows` of each.
fn linear_backward((grad, x): (&[f32], &[f32]), rows: usize, [weight, bias]: [Var; 2], sink: &mut GradSink<'_>) {
    if rows == 0 {
        return;
    }
    let (n_in, n_out) = (x.len() / rows, grad.len() / rows);
    sink.accumulate_with(weight, |sum| {
        gemm(View::new(grad, rows, n_out).t(), View::new(x, rows, n_in), 1.0, WriteMode::Accumulate, sum, n_in);
    });
    sink.accumulate_with(bias, |sums| {
        Threads::Caller.sum_rows(rows, sums, |i, sums| add_to(sums, &grad[i * n_out..(i + 1) * n_out]));
    });
}

/// `grad`, or where dropout is active a copy with the mask applied.
fn with_dropout<'a>(dropout: Dropout, grad: &'a [f32], copy: &'a mut Scratch) -> &'a [f32] {
    if !dropout.is_active() {
        return grad;
    }
    *copy = take(grad.len());
    copy.copy_from_slice(grad);
    dropout.apply(0, copy);
    copy
}

vectorised! {
    /// GELU of `rows + bias` into `hidden`; its derivatives replace `rows`.
    fn gelu_rows(bias: &[f32], rows: &mut [f32], hidden: &mut [f32]) {
        let cols = bias.len().max(1);
        for (row, hidden) in rows.chunks_exact_mut(cols).zip(hidden.chunks_exact_mut(cols)) {
            for ((x, hidden), bias) in row.iter_mut().zip(hidden).zip(bias) {
                (*hidden, *x) = math::gelu(*x + bias);
            }
        }
    }
}
