//! Attention between two packed batches: the queries of a group see the keys of the same group, all of them.
//!
//! Shared heads are nothing but more queries: `[T, H·a]` lies in memory as `[T·H, a]`, so that they are computed as H
//! times as many queries of a single head.

use super::attention::Heads;
use super::softmax::{softmax_rows, softmax_rows_backward};
use crate::gemm::{Into, View, product};
use crate::math::dot;
use crate::parallel::split;
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::vectorised;
use crate::{Dropout, Ragged, Result, Shape, Tape, Tensor, Threads, Var, cuda};

/// Up to so many queries of a group are taken one by one: packing keys for a product would cost more than it saves.
const FEW: usize = 4;

/// How [`Tape::attention`] works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionForm {
    /// The number of heads.
    pub heads: Heads,
    /// The factor of scores before the softmax.
    pub scale: f32,
    /// Whether every head reads all of each key and value, instead of a share of its own.
    pub shared: bool,
    /// Of the weights, after the softmax.
    pub dropout: Dropout,
}

impl Tape<'_> {
    /// softmax(scale · q·kᵀ)·v for each head and group, heads side by side, `[Tq, H·b]`.
    ///
    /// Group `i` has the rows `queries.range(i)` of `q` and `keys.range(i)` of `k` and `v`. Where the heads share keys and
    /// values, `q` is `[Tq, H·a]`, `k` `[Tk, a]` and `v` `[Tk, b]`; else they lie side by side there too: `k` is
    /// `[Tk, H·a]`, `v` `[Tk, H·b]`. A group without keys gives zeros. `k` and `v` may be the same variable.
    #[expect(clippy::too_many_arguments, reason = "three matrices, what divides them, and how")]
    pub fn attention(
        &mut self,
        q: Var,
        k: Var,
        v: Var,
        queries: &Ragged,
        keys: &Ragged,
        form: AttentionForm,
    ) -> Result<Var> {
        let sizes = self.checked_attention([q, k, v], queries, keys, form)?;
        let shape = Shape::Matrix(queries.total(), form.heads.0 * sizes.d_value);
        if let Some(record) = self.record() {
            let whole = |var: Var, cols: usize| cuda::Columns { var: var.0, first: 0, step: cols };
            let (q_cols, v_cols) = (sizes.n_heads * sizes.d_key, sizes.n_heads * sizes.d_value);
            let parts = [whole(q, q_cols), whole(k, q_cols), whole(v, v_cols)];
            let attend = cuda::Attend {
                parts,
                queries: queries.clone(),
                keys: keys.clone(),
                query_rows: sizes.query_rows,
                n_heads: sizes.n_heads,
                d_key: sizes.d_key,
                d_value: sizes.d_value,
                scale: sizes.scale,
                dropout: sizes.dropout,
            };
            return record.attention(attend, shape).map(Var);
        }
        let groups = sizes.groups(queries, keys);
        let mut values = scratch::take_zeros(shape.len());
        let (weights, dropped) = {
            let [q, k, v] = [q, k, v].map(|var| self.value(var).values());
            sizes.forward(&groups, [q, k, v], &mut values, self.threads())
        };
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let values = [q, k, v].map(|var| at.value(var).values());
            let used = dropped.as_ref().unwrap_or(&weights);
            let d_scores = if sink.wants(q) || sink.wants(k) {
                sizes.d_scores(&groups, (&grad, values[2]), &weights, at.threads)
            } else {
                Scratch::default()
            };
            sink.add(q, |sum| {
                sizes.each(&groups, Part::Queries, sum, at.threads, |g, sum| {
                    sizes.add_dq(g, &d_scores, values[1], sum);
                });
            });
            let add_dk = |g: &Group, sum: &mut [f32]| sizes.add_dk(g, &d_scores, values[0], sum);
            let add_dv = |g: &Group, sum: &mut [f32]| sizes.add_dv(g, used, &grad, sum);
            if k == v {
                // Both while the group's rows are near.
                sink.add(k, |sum| {
                    sizes.each(&groups, Part::Keys, sum, at.threads, |g, sum| {
                        add_dk(g, sum);
                        add_dv(g, sum);
                    });
                });
                return;
            }
            sink.add(k, |sum| sizes.each(&groups, Part::Keys, sum, at.threads, add_dk));
            sink.add(v, |sum| sizes.each(&groups, Part::Values, sum, at.threads, add_dv));
        };
        Ok(self.push(&[q, k, v], Tensor::from_parts(shape, values), backward))
    }

    fn checked_attention(
        &self,
        [q, k, v]: [Var; 3],
        queries: &Ragged,
        keys: &Ragged,
        form: AttentionForm,
    ) -> Result<Sizes> {
        let misfit = |what, var, needed: String| Err(self.misfit("attention", what, var, needed));
        let heads = form.heads.0;
        for (what, var, rows) in [("q", q, queries), ("k", k, keys), ("v", v, keys)] {
            if self.shape(var) != Shape::Matrix(rows.total(), self.shape(var).cols()) {
                return misfit(what, var, format!("[{}, D]", rows.total()));
            }
        }
        if queries.len() != keys.len() {
            return misfit("q", q, format!("a group of queries for each of {} groups of keys", keys.len()));
        }
        let [q_cols, k_cols, v_cols] = [q, k, v].map(|var| self.shape(var).cols());
        if heads == 0 || q_cols == 0 || !q_cols.is_multiple_of(heads) {
            return misfit("q", q, format!("[T, D] with D a multiple of {heads} heads"));
        }
        let n_heads = if form.shared { 1 } else { heads };
        let d_key = q_cols / heads;
        if k_cols != n_heads * d_key {
            return misfit("k", k, format!("[T, {}]", n_heads * d_key));
        }
        if v_cols == 0 || !v_cols.is_multiple_of(n_heads) {
            return misfit("v", v, format!("[T, D] with D a multiple of {n_heads} heads"));
        }
        let AttentionForm { scale, dropout, .. } = form;
        Ok(Sizes { n_heads, query_rows: heads / n_heads, d_key, d_value: v_cols / n_heads, scale, dropout })
    }
}

/// The sizes of an attention, shared heads counted as queries.
#[derive(Clone, Copy)]
struct Sizes {
    n_heads: usize,
    /// Rows that each row of the queries stands for.
    query_rows: usize,
    d_key: usize,
    d_value: usize,
    scale: f32,
    dropout: Dropout,
}

/// Where a group lies among the queries, the keys and the weights, which are `[heads, queries, keys]` of each group.
struct Group {
    first_query: usize,
    n_queries: usize,
    first_key: usize,
    n_keys: usize,
    first_weight: usize,
    n_weights: usize,
}

/// What the rows of a gradient are.
#[derive(Clone, Copy)]
enum Part {
    Queries,
    Keys,
    Values,
    Outputs,
}

impl Sizes {
    fn groups(self, queries: &Ragged, keys: &Ragged) -> Vec<Group> {
        let mut first_weight = 0;
        let group = |(query, key): (std::ops::Range<usize>, std::ops::Range<usize>)| {
            let (n_queries, n_keys) = (self.query_rows * query.len(), key.len());
            let n_weights = self.n_heads * n_queries * n_keys;
            first_weight += n_weights;
            Group {
                first_query: self.query_rows * query.start,
                n_queries,
                first_key: key.start,
                n_keys,
                first_weight: first_weight - n_weights,
                n_weights,
            }
        };
        queries.ranges().zip(keys.ranges()).map(group).collect()
    }

    /// First row, number of rows and width of a head of one group's part.
    fn place(self, group: &Group, part: Part) -> (usize, usize, usize) {
        match part {
            Part::Queries => (group.first_query, group.n_queries, self.d_key),
            Part::Keys => (group.first_key, group.n_keys, self.d_key),
            Part::Values => (group.first_key, group.n_keys, self.d_value),
            Part::Outputs => (group.first_query, group.n_queries, self.d_value),
        }
    }

    fn rows<'a>(self, group: &Group, part: Part, values: &'a [f32]) -> Rows<'a> {
        let (first, n, width) = self.place(group, part);
        let step = self.n_heads * width;
        Rows { values: &values[first * step..(first + n) * step], n, step, width }
    }

    /// Calls `work` for each group with its rows of `values`.
    fn each(
        self,
        groups: &[Group],
        part: Part,
        values: &mut [f32],
        threads: Threads,
        work: impl Fn(&Group, &mut [f32]) + Sync,
    ) {
        let length = |group: &Group| {
            let (_, n, width) = self.place(group, part);
            n * self.n_heads * width
        };
        let parts = split(values, groups.iter().map(length));
        threads.each(groups.iter().zip(parts).collect(), |(group, part)| work(group, part));
    }

    /// Adds to zeros in `values`. What is left for the way back are the weights before dropout and, where it acts, after.
    fn forward(
        self,
        groups: &[Group],
        [q, k, v]: [&[f32]; 3],
        values: &mut [f32],
        threads: Threads,
    ) -> (Scratch, Option<Scratch>) {
        let n_weights = groups.iter().map(|group| group.n_weights).sum();
        let mut weights = scratch::take(n_weights);
        let mut dropped = self.dropout.acts().then(|| scratch::take(n_weights));
        let places = split(&mut weights, groups.iter().map(|group| group.n_weights));
        let copies = dropped.as_deref_mut().map(|all| split(all, groups.iter().map(|group| group.n_weights)));
        let mut copies = copies.into_iter().flatten().collect::<Vec<_>>().into_iter();
        let items = groups.iter().zip(places).map(|(group, place)| (group, place, copies.next()));
        let outputs = split(values, groups.iter().map(|group| group.n_queries * self.n_heads * self.d_value));
        threads.each(items.zip(outputs).collect(), |((group, weights, dropped), output)| {
            if group.n_weights == 0 {
                return;
            }
            let [q, k] = [self.rows(group, Part::Queries, q), self.rows(group, Part::Keys, k)];
            products_of_rows(q, k, self.scale, weights);
            softmax_rows(weights, group.n_keys);
            let used = match dropped {
                None => weights,
                Some(dropped) => {
                    dropped.copy_from_slice(weights);
                    self.dropout.apply(group.first_weight, dropped);
                    dropped
                }
            };
            add_mixtures(group, (used, false), self.rows(group, Part::Values, v), 1.0, output);
        });
        (weights, dropped)
    }

    /// The gradients of the scores before they were scaled up: of all groups.
    fn d_scores(self, groups: &[Group], (grad, v): (&[f32], &[f32]), weights: &[f32], threads: Threads) -> Scratch {
        let mut d_scores = scratch::take(weights.len());
        let parts = split(&mut d_scores, groups.iter().map(|group| group.n_weights));
        threads.each(groups.iter().zip(parts).collect(), |(group, d_scores)| {
            if group.n_weights == 0 {
                return;
            }
            let [grad, v] = [self.rows(group, Part::Outputs, grad), self.rows(group, Part::Values, v)];
            products_of_rows(grad, v, 1.0, d_scores);
            self.dropout.apply(group.first_weight, d_scores);
            softmax_rows_backward(d_scores, &weights[group.first_weight..][..group.n_weights], group.n_keys);
        });
        d_scores
    }

    fn add_dq(self, group: &Group, d_scores: &[f32], k: &[f32], sum: &mut [f32]) {
        let d_scores = &d_scores[group.first_weight..][..group.n_weights];
        add_mixtures(group, (d_scores, false), self.rows(group, Part::Keys, k), self.scale, sum);
    }

    fn add_dk(self, group: &Group, d_scores: &[f32], q: &[f32], sum: &mut [f32]) {
        let d_scores = &d_scores[group.first_weight..][..group.n_weights];
        add_mixtures(group, (d_scores, true), self.rows(group, Part::Queries, q), self.scale, sum);
    }

    fn add_dv(self, group: &Group, weights: &[f32], grad: &[f32], sum: &mut [f32]) {
        let weights = &weights[group.first_weight..][..group.n_weights];
        add_mixtures(group, (weights, true), self.rows(group, Part::Outputs, grad), 1.0, sum);
    }
}

/// `out[head, i, j]` = scale · row i of `a` · row j of `b`.
fn products_of_rows(a: Rows<'_>, b: Rows<'_>, scale: f32, out: &mut [f32]) {
    for (head, out) in out.chunks_exact_mut(a.n * b.n).enumerate() {
        let [a, b] = [a.of(head), b.of(head)];
        if a.n <= FEW {
            dots(a, b, scale, out);
        } else {
            product(a.view(), b.view().t(), scale, Into::Replace, out, b.n);
        }
    }
}

/// Row i of `out` grows by scale · Σ weights[head, i, j] · row j of `rows`, or with the weights turned.
fn add_mixtures(group: &Group, (weights, turned): (&[f32], bool), rows: Rows<'_>, scale: f32, out: &mut [f32]) {
    if group.n_weights == 0 {
        return;
    }
    let (n_queries, n_keys) = (group.n_queries, group.n_keys);
    for (head, weights) in weights.chunks_exact(n_queries * n_keys).enumerate() {
        let rows_of_head = rows.of(head);
        let out = &mut out[head * rows.width..];
        if n_queries <= FEW {
            let steps = if turned { [1, n_keys] } else { [n_keys, 1] };
            let n_out = if turned { n_keys } else { n_queries };
            let target = Target { n: n_out, step: rows.step };
            mix(weights, steps, rows_of_head, scale, target, out);
        } else {
            let weights = View::new(weights, n_queries, n_keys);
            let weights = if turned { weights.t() } else { weights };
            product(weights, rows_of_head.view(), scale, Into::Add, out, rows.step);
        }
    }
}

/// Rows of one or of all heads, `step` apart, of which a head has `width` values.
#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f32],
    n: usize,
    step: usize,
    width: usize,
}

/// Rows that grow.
#[derive(Clone, Copy)]
struct Target {
    n: usize,
    step: usize,
}

impl<'a> Rows<'a> {
    fn of(self, head: usize) -> Self {
        Self { values: self.values.get(head * self.width..).unwrap_or_default(), ..self }
    }

    fn view(self) -> View<'a> {
        View::within(self.values, self.n, self.width, self.step)
    }

    #[expect(clippy::inline_always, reason = "it must be compiled with the loop around it, see `vector`")]
    #[inline(always)]
    fn row(self, i: usize) -> &'a [f32] {
        &self.values[i * self.step..i * self.step + self.width]
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

    /// Row i of `out` grows by scale · Σ weights[i · steps[0] + j · steps[1]] · row j of `rows`, in the order of j.
    fn mix(weights: &[f32], steps: [usize; 2], rows: Rows<'_>, scale: f32, to: Target, out: &mut [f32]) {
        let whole = rows.n / 4 * 4;
        for i in 0..to.n {
            let out = &mut out[i * to.step..i * to.step + rows.width];
            let weight = |j: usize| scale * weights[i * steps[0] + j * steps[1]];
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

#[cfg(test)]
mod tests;
