//! Self-attention on the CPU.

use super::Heads;
use crate::gemm::{View, WriteMode, gemm};
use crate::op::softmax::cpu::{softmax_rows, softmax_rows_backward};
use crate::parallel::split;
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::{Dropout, Ragged, Result, Shape, Tensor, Var};

impl CpuTape<'_> {
    pub(crate) fn self_attention(&mut self, qkv: Var, batch: &Ragged, heads: Heads, dropout: Dropout) -> Result<Var> {
        let width = self.shape(qkv).cols();
        let sizes = Sizes { d_model: width / 3, d_head: width / 3 / heads.0, n_heads: heads.0, dropout };
        let shape = Shape::Matrix(batch.total(), sizes.d_model);
        let mut values = scratch::take_zeros(shape.len());
        let mut weights = scratch::take(sizes.n_weights(batch));
        let qkv_values = self.value(qkv).values();
        let outputs = split(&mut values, batch.ranges().map(|range| range.len() * sizes.d_model));
        let sequences = sizes.sequences(batch);
        let all_weights = split(&mut weights, sequences.iter().map(|sequence| sequence.n_weights));
        self.threads().each(
            sequences.iter().zip(outputs.zip(all_weights)).collect(),
            |(sequence, (output, weights))| {
                sizes.forward(sequence, qkv_values, weights, output, |_, _| ());
            },
        );

        let batch = batch.clone();
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let qkv_values = ctx.value(qkv).values();
            sink.accumulate_with(qkv, |sum| {
                let sums = split(sum, batch.ranges().map(|range| range.len() * width));
                ctx.threads.each(sequences.iter().zip(sums).collect(), |(sequence, sum)| {
                    sizes.backward(
                        sequence,
                        Saved { qkv: qkv_values, weights: &weights, grad: &grad },
                        WriteMode::Accumulate,
                        sum,
                        |_, _| (),
                    );
                });
            });
        };
        Ok(self.push(&[qkv], Tensor::from_parts(shape, values), backward))
    }
}

/// The sizes of an attention and its dropout.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) d_model: usize,
    pub(crate) d_head: usize,
    pub(crate) n_heads: usize,
    pub(crate) dropout: Dropout,
}

/// The rows of a sequence and the position of its attention weights, `[heads, length, length]`.
pub(crate) struct Sequence {
    pub(crate) first: usize,
    pub(crate) length: usize,
    pub(crate) first_weight: usize,
    pub(crate) n_weights: usize,
}

impl Sequence {
    fn first_weight_of(&self, head: usize) -> usize {
        self.first_weight + head * self.length * self.length
    }
}

/// What the backward reads, for all sequences: `qkv`, attention weights before dropout, the gradient of the output.
#[derive(Clone, Copy)]
pub(crate) struct Saved<'a> {
    pub(crate) qkv: &'a [f32],
    pub(crate) weights: &'a [f32],
    pub(crate) grad: &'a [f32],
}

impl Sizes {
    pub(crate) fn n_weights(self, batch: &Ragged) -> usize {
        batch.ranges().map(|range| self.n_heads * range.len() * range.len()).sum()
    }

    pub(crate) fn sequences(self, batch: &Ragged) -> Vec<Sequence> {
        let mut first_weight = 0;
        let sequence = |range: std::ops::Range<usize>| {
            let n_weights = self.n_heads * range.len() * range.len();
            first_weight += n_weights;
            Sequence { first: range.start, length: range.len(), first_weight: first_weight - n_weights, n_weights }
        };
        batch.ranges().map(sequence).collect()
    }

    fn scale(self) -> f32 {
        Heads(self.n_heads).scale(self.d_model)
    }

    /// Queries (`part` 0), keys (1) or values (2) of a head of one sequence, `[length, d_head]`.
    fn part<'a>(self, qkv: &'a [f32], sequence: &Sequence, part: usize, head: usize) -> View<'a> {
        let step = 3 * self.d_model;
        let first = sequence.first * step + self.column(part, head);
        View::within(qkv.get(first..).unwrap_or_default(), sequence.length, self.d_head, step)
    }

    fn column(self, part: usize, head: usize) -> usize {
        part * self.d_model + head * self.d_head
    }

    /// The forward pass of one sequence; `add_bias` changes the scores of a head, `[length, length]`. `weights` are those before
    /// dropout, saved for backward.
    pub(crate) fn forward(
        self,
        sequence: &Sequence,
        qkv: &[f32],
        weights: &mut [f32],
        output: &mut [f32],
        add_bias: impl Fn(usize, &mut [f32]),
    ) {
        let n = sequence.length;
        if n == 0 {
            return;
        }
        let mut dropped = scratch::take(n * n);
        for (head, weights) in weights.chunks_exact_mut(n * n).enumerate() {
            let [q, k, v] = [0, 1, 2].map(|part| self.part(qkv, sequence, part, head));
            gemm(q, k.t(), self.scale(), WriteMode::Overwrite, weights, n);
            add_bias(head, weights);
            softmax_rows(weights, n);
            let used = self.after_dropout(sequence, head, weights, &mut dropped);
            let out = &mut output[head * self.d_head..];
            gemm(View::new(used, n, n), v, 1.0, WriteMode::Overwrite, out, self.d_model);
        }
    }

    /// The backward pass of one sequence: writes, or adds to, the gradient of its rows of `qkv`. `bias_gradients` is given those of the
    /// scores of a head, `[length, length]`.
    pub(crate) fn backward(
        self,
        sequence: &Sequence,
        saved: Saved<'_>,
        mode: WriteMode,
        sum: &mut [f32],
        mut bias_gradients: impl FnMut(usize, &[f32]),
    ) {
        let Saved { qkv, weights, grad } = saved;
        let n = sequence.length;
        if n == 0 {
            return;
        }
        let step = 3 * self.d_model;
        let weights = &weights[sequence.first_weight..][..sequence.n_weights];
        let (mut d_weights, mut dropped) = (scratch::take(n * n), scratch::take(n * n));
        for (head, weights) in weights.chunks_exact(n * n).enumerate() {
            let [q, k, v] = [0, 1, 2].map(|part| self.part(qkv, sequence, part, head));
            let [dq, dk, dv] = [0, 1, 2].map(|part| self.column(part, head));
            let first = sequence.first * self.d_model + head * self.d_head;
            let d_out = View::within(&grad[first..], n, self.d_head, self.d_model);

            let used = self.after_dropout(sequence, head, weights, &mut dropped);
            gemm(View::new(used, n, n).t(), d_out, 1.0, mode, &mut sum[dv..], step);
            gemm(d_out, v.t(), 1.0, WriteMode::Overwrite, &mut d_weights, n);
            self.dropout.apply(sequence.first_weight_of(head), &mut d_weights);
            softmax_rows_backward(&mut d_weights, weights, n);
            bias_gradients(head, &d_weights);
            let d_scores = View::new(&d_weights, n, n);
            gemm(d_scores, k, self.scale(), mode, &mut sum[dq..], step);
            gemm(d_scores.t(), q, self.scale(), mode, &mut sum[dk..], step);
        }
    }

    /// The weights, or where dropout is active a copy with the mask applied.
    fn after_dropout<'a>(self, sequence: &Sequence, head: usize, weights: &'a [f32], copy: &'a mut [f32]) -> &'a [f32] {
        if !self.dropout.is_active() {
            return weights;
        }
        copy.copy_from_slice(weights);
        self.dropout.apply(sequence.first_weight_of(head), copy);
        copy
    }
}
