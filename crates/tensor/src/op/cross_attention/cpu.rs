//! Cross-attention on the CPU.

use super::Sizes;
use crate::gemm::{View, WriteMode, gemm};
use crate::math::dot;
use crate::op::softmax::cpu::{softmax_rows, softmax_rows_backward};
use crate::parallel::split;
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::vectorised;
use crate::{Ragged, Result, Tensor, Threads, Var};

/// Up to this many queries of a group are computed one by one: packing keys for a GEMM would cost more than it saves.
const FEW_QUERIES: usize = 4;

impl CpuTape<'_> {
    pub(crate) fn attention(
        &mut self,
        [q, k, v]: [Var; 3],
        queries: &Ragged,
        keys: &Ragged,
        sizes: Sizes,
    ) -> Result<Var> {
        let shape = sizes.output_shape(queries);
        let groups = sizes.groups(queries, keys);
        let mut values = scratch::take_zeros(shape.len());
        let (weights, dropped) = {
            let [q, k, v] = [q, k, v].map(|var| self.value(var).values());
            sizes.forward(&groups, [q, k, v], &mut values, self.threads())
        };
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let values = [q, k, v].map(|var| ctx.value(var).values());
            let used = dropped.as_ref().unwrap_or(&weights);
            let d_scores = if sink.requires_grad(q) || sink.requires_grad(k) {
                sizes.d_scores(&groups, (&grad, values[2]), &weights, ctx.threads)
            } else {
                Scratch::default()
            };
            sink.accumulate_with(q, |sum| {
                sizes.each(&groups, Matrix::Queries, sum, ctx.threads, |g, sum| {
                    sizes.add_dq(g, &d_scores, values[1], sum);
                });
            });
            let add_dk = |g: &Group, sum: &mut [f32]| sizes.add_dk(g, &d_scores, values[0], sum);
            let add_dv = |g: &Group, sum: &mut [f32]| sizes.add_dv(g, used, &grad, sum);
            if k == v {
                // Both while the rows of the group are in the cache.
                sink.accumulate_with(k, |sum| {
                    sizes.each(&groups, Matrix::Keys, sum, ctx.threads, |g, sum| {
                        add_dk(g, sum);
                        add_dv(g, sum);
                    });
                });
                return;
            }
            sink.accumulate_with(k, |sum| sizes.each(&groups, Matrix::Keys, sum, ctx.threads, add_dk));
            sink.accumulate_with(v, |sum| sizes.each(&groups, Matrix::Values, sum, ctx.threads, add_dv));
        };
        Ok(self.push(&[q, k, v], Tensor::from_parts(shape, values), backward))
    }
}

/// The queries, keys and attention weights of a group; the weights are `[heads, queries, keys]`.
struct Group {
    first_query: usize,
    n_queries: usize,
    first_key: usize,
    n_keys: usize,
    first_weight: usize,
    n_weights: usize,
}

/// A matrix of the attention.
#[derive(Clone, Copy)]
enum Matrix {
    Queries,
    Keys,
    Values,
    Outputs,
}

impl Sizes {
    fn groups(self, queries: &Ragged, keys: &Ragged) -> Vec<Group> {
        let mut first_weight = 0;
        let group = |(query, key): (std::ops::Range<usize>, std::ops::Range<usize>)| {
            let (n_queries, n_keys) = (self.heads_as_queries * query.len(), key.len());
            let n_weights = self.n_heads * n_queries * n_keys;
            first_weight += n_weights;
            Group {
                first_query: self.heads_as_queries * query.start,
                n_queries,
                first_key: key.start,
                n_keys,
                first_weight: first_weight - n_weights,
                n_weights,
            }
        };
        queries.ranges().zip(keys.ranges()).map(group).collect()
    }

    /// First row, number of rows and width of a head of one group.s matrix.
    fn extent(self, group: &Group, matrix: Matrix) -> (usize, usize, usize) {
        match matrix {
            Matrix::Queries => (group.first_query, group.n_queries, self.d_key),
            Matrix::Keys => (group.first_key, group.n_keys, self.d_key),
            Matrix::Values => (group.first_key, group.n_keys, self.d_value),
            Matrix::Outputs => (group.first_query, group.n_queries, self.d_value),
        }
    }

    fn rows<'a>(self, group: &Group, matrix: Matrix, values: &'a [f32]) -> Rows<'a> {
        let (first, n, width) = self.extent(group, matrix);
        let stride = self.n_heads * width;
        Rows { values: &values[first * stride..(first + n) * stride], n, stride, width }
    }

    /// Calls `work` for each group with its rows of `values`.
    fn each(
        self,
        groups: &[Group],
        matrix: Matrix,
        values: &mut [f32],
        threads: Threads,
        work: impl Fn(&Group, &mut [f32]) + Sync,
    ) {
        let length = |group: &Group| {
            let (_, n, width) = self.extent(group, matrix);
            n * self.n_heads * width
        };
        let parts = split(values, groups.iter().map(length));
        threads.each(groups.iter().zip(parts).collect(), |(group, part)| work(group, part));
    }

    /// Adds the result to `values`. Returns what backward needs: the weights before dropout and, where it is active, after.
    fn forward(
        self,
        groups: &[Group],
        [q, k, v]: [&[f32]; 3],
        values: &mut [f32],
        threads: Threads,
    ) -> (Scratch, Option<Scratch>) {
        let n_weights = groups.iter().map(|group| group.n_weights).sum();
        let mut weights = scratch::take(n_weights);
        let mut dropped = self.dropout.is_active().then(|| scratch::take(n_weights));
        let places = split(&mut weights, groups.iter().map(|group| group.n_weights));
        let copies = dropped.as_deref_mut().map(|all| split(all, groups.iter().map(|group| group.n_weights)));
        let mut copies = copies.into_iter().flatten().collect::<Vec<_>>().into_iter();
        let items = groups.iter().zip(places).map(|(group, place)| (group, place, copies.next()));
        let outputs = split(values, groups.iter().map(|group| group.n_queries * self.n_heads * self.d_value));
        threads.each(items.zip(outputs).collect(), |((group, weights, dropped), output)| {
            if group.n_weights == 0 {
                return;
            }
            let [q, k] = [self.rows(group, Matrix::Queries, q), self.rows(group, Matrix::Keys, k)];
            row_dot_products(q, k, self.scale, weights);
            softmax_rows(weights, group.n_keys);
            let used = match dropped {
                None => weights,
                Some(dropped) => {
                    dropped.copy_from_slice(weights);
                    self.dropout.apply(group.first_weight, dropped);
                    dropped
                }
            };
            add_weighted_rows(group, (used, false), self.rows(group, Matrix::Values, v), 1.0, output);
        });
        (weights, dropped)
    }

    /// The gradients of the scaled scores of all groups.
    fn d_scores(self, groups: &[Group], (grad, v): (&[f32], &[f32]), weights: &[f32], threads: Threads) -> Scratch {
        let mut d_scores = scratch::take(weights.len());
        let parts = split(&mut d_scores, groups.iter().map(|group| group.n_weights));
        threads.each(groups.iter().zip(parts).collect(), |(group, d_scores)| {
            if group.n_weights == 0 {
                return;
            }
            let [grad, v] = [self.rows(group, Matrix::Outputs, grad), self.rows(group, Matrix::Values, v)];
            row_dot_products(grad, v, 1.0, d_scores);
            self.dropout.apply(group.first_weight, d_scores);
            softmax_rows_backward(d_scores, &weights[group.first_weight..][..group.n_weights], group.n_keys);
        });
        d_scores
    }

    fn add_dq(self, group: &Group, d_scores: &[f32], k: &[f32], sum: &mut [f32]) {
        let d_scores = &d_scores[group.first_weight..][..group.n_weights];
        add_weighted_rows(group, (d_scores, false), self.rows(group, Matrix::Keys, k), self.scale, sum);
    }

    fn add_dk(self, group: &Group, d_scores: &[f32], q: &[f32], sum: &mut [f32]) {
        let d_scores = &d_scores[group.first_weight..][..group.n_weights];
        add_weighted_rows(group, (d_scores, true), self.rows(group, Matrix::Queries, q), self.scale, sum);
    }

    fn add_dv(self, group: &Group, weights: &[f32], grad: &[f32], sum: &mut [f32]) {
        let weights = &weights[group.first_weight..][..group.n_weights];
        add_weighted_rows(group, (weights, true), self.rows(group, Matrix::Outputs, grad), 1.0, sum);
    }
}

/// `out[head, i, j]` = scale · row i of `a` · row j of `b`.
fn row_dot_products(a: Rows<'_>, b: Rows<'_>, scale: f32, out: &mut [f32]) {
    for (head, out) in out.chunks_exact_mut(a.n * b.n).enumerate() {
        let [a, b] = [a.of(head), b.of(head)];
        if a.n <= FEW_QUERIES {
            dots(a, b, scale, out);
        } else {
            gemm(a.view(), b.view().t(), scale, WriteMode::Overwrite, out, b.n);
        }
    }
}

/// Adds scale · Σⱼ weights[head, i, j] · row j of `rows` to row i of `out`, or the same with the weights transposed.
fn add_weighted_rows(
    group: &Group,
    (weights, transposed): (&[f32], bool),
    rows: Rows<'_>,
    scale: f32,
    out: &mut [f32],
) {
    if group.n_weights == 0 {
        return;
    }
    let (n_queries, n_keys) = (group.n_queries, group.n_keys);
    for (head, weights) in weights.chunks_exact(n_queries * n_keys).enumerate() {
        let rows_of_head = rows.of(head);
        let out = &mut out[head * rows.width..];
        if n_queries <= FEW_QUERIES {
            let strides = if transposed { [1, n_keys] } else { [n_keys, 1] };
            let n_out = if transposed { n_keys } else { n_queries };
            let target = Target { n: n_out, stride: rows.stride };
            add_weighted_row_sums(weights, strides, rows_of_head, scale, target, out);
        } else {
            let weights = View::new(weights, n_queries, n_keys);
            let weights = if transposed { weights.t() } else { weights };
            gemm(weights, rows_of_head.view(), scale, WriteMode::Accumulate, out, rows.stride);
        }
    }
}

/// Rows of one or of all heads, `stride` values apart; a head has `width` of them.
#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f32],
    n: usize,
    stride: usize,
    width: usize,
}

/// The rows that are added to.
#[derive(Clone, Copy)]
struct Target {
    n: usize,
    stride: usize,
}

impl<'a> Rows<'a> {
    fn of(self, head: usize) -> Self {
        Self { values: self.values.get(head * self.width..).unwrap_or_default(), ..self }
    }

    fn view(self) -> View<'a> {
        View::within(self.values, self.n, self.width, self.stride)
    }

    #[expect(clippy::inline_always, reason = "must be inlined into the loop, see `vector`")]
    #[inline(always)]
    fn row(self, i: usize) -> &'a [f32] {
        &self.values[i * self.stride..i * self.stride + self.width]
    }
}

vectorised! {
    /// `out[i, j]` = scale · row i of `a` · row j of `b`, for few rows of `a`.
    fn dots(a: Rows<'_>, b: Rows<'_>, scale: f32, out: &mut [f32]) {
        for j in 0..b.n {
            for i in 0..a.n {
                out[i * b.n + j] = scale * dot(a.row(i), b.row(j));
            }
        }
    }

    /// Adds scale · Σⱼ weights[i · strides[0] + j · strides[1]] · row j of `rows` to row i of `out`, in the order of j.
    fn add_weighted_row_sums(weights: &[f32], strides: [usize; 2], rows: Rows<'_>, scale: f32, to: Target, out: &mut [f32]) {
        let whole = rows.n / 4 * 4;
        for i in 0..to.n {
            let out = &mut out[i * to.stride..i * to.stride + rows.width];
            let weight = |j: usize| scale * weights[i * strides[0] + j * strides[1]];
            for j in (0..whole).step_by(4) {
                let [a, b, c, d] = [weight(j), weight(j + 1), weight(j + 2), weight(j + 3)];
                let four = rows.row(j).iter().zip(rows.row(j + 1)).zip(rows.row(j + 2)).zip(rows.row(j + 3));
                for (out, (((w, x), y), z)) in out.iter_mut().zip(four) {
                    *out = *out + a * w + b * x + c * y + d * z;
                }
            }
            for j in whole..rows.n {
                let weight = weight(j);
                for (out, x) in out.iter_mut().zip(rows.row(j)) {
                    *out += weight * x;
                }
            }
        }
    }
}
