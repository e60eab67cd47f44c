//! Multi-head self-attention inside each sequence of a packed batch.

use super::softmax::{softmax_rows, softmax_rows_backward};
use crate::gemm::{Into, View, product};
use crate::parallel::split;
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::{Dropout, Ragged, Result, Shape, Tape, Tensor, Var, cuda};

/// The number of heads; each sees an equal share of the width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads(pub usize);

impl Heads {
    /// What scores are multiplied by where the heads share `width`: 1/√ of the width of one.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the scale is rounded once")]
    pub fn scale(self, width: usize) -> f32 {
        (1.0 / ((width / self.0.max(1)) as f64).sqrt()) as f32
    }
}

impl Tape<'_> {
    /// softmax(q·kᵀ/√d)·v for each head and sequence, heads side by side, `[T, D]`.
    ///
    /// `qkv` is `[T, 3D]`: queries, keys and values side by side, as one linear layer makes them. A token sees the tokens
    /// of its own sequence, all of them. `dropout` acts on the weights after the softmax.
    pub fn self_attention(&mut self, qkv: Var, batch: &Ragged, heads: Heads, dropout: Dropout) -> Result<Var> {
        let width = self.shape(qkv).cols();
        if self.shape(qkv).rows() != batch.total() {
            return Err(self.misfit("attention", "qkv", qkv, format_args!("[{}, 3D]", batch.total())));
        }
        if heads.0 == 0 || !width.is_multiple_of(3 * heads.0) || width == 0 {
            let needed = format!("[T, 3D] with D a multiple of {} heads", heads.0);
            return Err(self.misfit("attention", "qkv", qkv, needed));
        }
        let form = Form { d_model: width / 3, d_head: width / 3 / heads.0, n_heads: heads.0, dropout };
        let shape = Shape::Matrix(batch.total(), form.d_model);
        if let Some(record) = self.record() {
            let part = |part: usize| cuda::Columns { var: qkv.0, first: part * form.d_model, step: width };
            let attend = cuda::Attend {
                parts: [part(0), part(1), part(2)],
                queries: batch.clone(),
                keys: batch.clone(),
                query_rows: 1,
                n_heads: form.n_heads,
                d_key: form.d_head,
                d_value: form.d_head,
                scale: form.scale(),
                dropout,
            };
            return record.attention(attend, shape).map(Var);
        }
        let mut values = scratch::take_zeros(shape.len());
        let mut weights = scratch::take(form.n_weights(batch));
        let qkv_values = self.value(qkv).values();
        let outputs = split(&mut values, batch.ranges().map(|range| range.len() * form.d_model));
        let places = form.places(batch);
        let all_weights = split(&mut weights, places.iter().map(|place| place.n_weights));
        self.threads().each(places.iter().zip(outputs.zip(all_weights)).collect(), |(place, (output, weights))| {
            form.forward(place, qkv_values, weights, output);
        });

        let batch = batch.clone();
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let qkv_values = at.value(qkv).values();
            sink.add(qkv, |sum| {
                let sums = split(sum, batch.ranges().map(|range| range.len() * width));
                at.threads.each(places.iter().zip(sums).collect(), |(place, sum)| {
                    form.backward(place, From { qkv: qkv_values, weights: &weights, grad: &grad }, Into::Add, sum);
                });
            });
        };
        Ok(self.push(&[qkv], Tensor::from_parts(shape, values), backward))
    }
}

/// The sizes of an attention and its dropout.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) d_model: usize,
    pub(super) d_head: usize,
    pub(super) n_heads: usize,
    pub(super) dropout: Dropout,
}

/// Where a sequence lies among the rows and where its weights begin, `[heads, length, length]`.
pub(super) struct Place {
    pub(super) first: usize,
    pub(super) length: usize,
    pub(super) first_weight: usize,
    pub(super) n_weights: usize,
}

impl Place {
    fn first_weight_of(&self, head: usize) -> usize {
        self.first_weight + head * self.length * self.length
    }
}

/// What the way back reads, of all sequences: queries, keys and values, weights before dropout, the result's gradient.
#[derive(Clone, Copy)]
pub(super) struct From<'a> {
    pub(super) qkv: &'a [f32],
    pub(super) weights: &'a [f32],
    pub(super) grad: &'a [f32],
}

impl Form {
    pub(super) fn n_weights(self, batch: &Ragged) -> usize {
        batch.ranges().map(|range| self.n_heads * range.len() * range.len()).sum()
    }

    pub(super) fn places(self, batch: &Ragged) -> Vec<Place> {
        let mut first_weight = 0;
        let place = |range: std::ops::Range<usize>| {
            let n_weights = self.n_heads * range.len() * range.len();
            first_weight += n_weights;
            Place { first: range.start, length: range.len(), first_weight: first_weight - n_weights, n_weights }
        };
        batch.ranges().map(place).collect()
    }

    fn scale(self) -> f32 {
        Heads(self.n_heads).scale(self.d_model)
    }

    /// Queries (`part` 0), keys (1) or values (2) of a head of one sequence, `[length, d_head]`.
    fn part<'a>(self, qkv: &'a [f32], place: &Place, part: usize, head: usize) -> View<'a> {
        let step = 3 * self.d_model;
        let first = place.first * step + self.column(part, head);
        View::within(qkv.get(first..).unwrap_or_default(), place.length, self.d_head, step)
    }

    fn column(self, part: usize, head: usize) -> usize {
        part * self.d_model + head * self.d_head
    }

    /// One sequence: leaves the weights before dropout for the way back.
    pub(super) fn forward(self, place: &Place, qkv: &[f32], weights: &mut [f32], output: &mut [f32]) {
        let n = place.length;
        if n == 0 {
            return;
        }
        let mut dropped = scratch::take(n * n);
        for (head, weights) in weights.chunks_exact_mut(n * n).enumerate() {
            let [q, k, v] = [0, 1, 2].map(|part| self.part(qkv, place, part, head));
            product(q, k.t(), self.scale(), Into::Replace, weights, n);
            softmax_rows(weights, n);
            let used = self.after_dropout(place, head, weights, &mut dropped);
            let out = &mut output[head * self.d_head..];
            product(View::new(used, n, n), v, 1.0, Into::Replace, out, self.d_model);
        }
    }

    /// One sequence: `sum` is, or grows by, the gradient of its rows of `qkv`.
    pub(super) fn backward(self, place: &Place, from: From<'_>, into: Into, sum: &mut [f32]) {
        let From { qkv, weights, grad } = from;
        let n = place.length;
        if n == 0 {
            return;
        }
        let step = 3 * self.d_model;
        let weights = &weights[place.first_weight..][..place.n_weights];
        let (mut d_weights, mut dropped) = (scratch::take(n * n), scratch::take(n * n));
        for (head, weights) in weights.chunks_exact(n * n).enumerate() {
            let [q, k, v] = [0, 1, 2].map(|part| self.part(qkv, place, part, head));
            let [dq, dk, dv] = [0, 1, 2].map(|part| self.column(part, head));
            let first = place.first * self.d_model + head * self.d_head;
            let d_out = View::within(&grad[first..], n, self.d_head, self.d_model);

            let used = self.after_dropout(place, head, weights, &mut dropped);
            product(View::new(used, n, n).t(), d_out, 1.0, into, &mut sum[dv..], step);
            product(d_out, v.t(), 1.0, Into::Replace, &mut d_weights, n);
            self.dropout.apply(place.first_weight_of(head), &mut d_weights);
            softmax_rows_backward(&mut d_weights, weights, n);
            let d_scores = View::new(&d_weights, n, n);
            product(d_scores, k, self.scale(), into, &mut sum[dq..], step);
            product(d_scores.t(), q, self.scale(), into, &mut sum[dk..], step);
        }
    }

    /// The weights themselves, or a copy of them with some zeroed.
    fn after_dropout<'a>(self, place: &Place, head: usize, weights: &'a [f32], copy: &'a mut [f32]) -> &'a [f32] {
        if !self.dropout.acts() {
            return weights;
        }
        copy.copy_from_slice(weights);
        self.dropout.apply(place.first_weight_of(head), copy);
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Case, check_gradients, matrix};
    use crate::{Mode, Parameters};

    #[test]
    fn gradients_match_differences() {
        let batch = Ragged::from_lengths([3, 0, 1, 4]);
        for dropout in [Dropout::NONE, Dropout::new(0.4, 5, Mode::Train).unwrap()] {
            let attend = |tape: &mut Tape<'_>, x: &[Var]| tape.self_attention(x[0], &batch, Heads(2), dropout);
            check_gradients(&[matrix(1, 8, 3 * 6)], attend);
        }
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        // The whole of `torch.nn.MultiheadAttention`, each sequence run alone there.
        let batch = Ragged::from_lengths([3, 1, 5]);
        let names = ["x", "in_weight", "in_bias", "out_weight", "out_bias"];
        Case::load("attention").check(&names, |tape, x| {
            let qkv = tape.linear(x[0], x[1], Some(x[2]), None)?;
            let attended = tape.self_attention(qkv, &batch, Heads(2), Dropout::NONE)?;
            tape.linear(attended, x[3], Some(x[4]), None)
        });
    }

    #[test]
    fn a_sequence_does_not_feel_its_neighbours() {
        let parameters = Parameters::default();
        let run = |x: Tensor, lengths: &[usize]| {
            let mut tape = Tape::new(&parameters);
            let x = tape.input(x);
            let batch = Ragged::from_lengths(lengths.iter().copied());
            let y = tape.self_attention(x, &batch, Heads(3), Dropout::NONE).unwrap();
            tape.value(y).values().to_vec()
        };
        let x = matrix(1, 20, 3 * 9);
        let alone = Tensor::matrix(7, 27, x.values()[5 * 27..12 * 27].to_vec()).unwrap();
        let together = run(x, &[5, 7, 8]);
        assert_eq!(together[5 * 9..12 * 9], run(alone, &[7])[..]);
    }

    #[test]
    fn heads_share_the_width_equally() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(matrix(1, 4, 12));
        let batch = Ragged::from_lengths([4]);
        let error = tape.self_attention(x, &batch, Heads(3), Dropout::NONE).unwrap_err();
        assert_eq!(
            error.to_string(),
            "attention: qkv has shape [4, 12], but [T, 3D] with D a multiple of 3 heads is needed"
        );
        assert!(tape.self_attention(x, &batch, Heads(0), Dropout::NONE).is_err());
    }
}
