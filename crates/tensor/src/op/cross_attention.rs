//! Attention between two packed batches: the queries of a group attend to all keys of the same group.
//!
//! Heads that share keys and values are computed as more queries of a single head: `[T, H·a]` has the memory layout of
//! `[T·H, a]`.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Dropout, Heads, Ragged, Result, Shape, Tape, Var};
pub(crate) use cuda::{AttentionCall, CachedGroups, ColumnSlice, KERNELS};

/// The options of [`Tape::attention`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionConfig {
    /// The number of heads.
    pub heads: Heads,
    /// The factor of scores before the softmax.
    pub scale: f32,
    /// Whether all heads read the same keys and values, instead of a share each.
    pub shared: bool,
    /// Dropout of the attention weights, after the softmax.
    pub dropout: Dropout,
}

impl Tape<'_> {
    /// softmax(scale · q·kᵀ)·v for each head and group, the heads side by side, `[Tq, H·b]`.
    ///
    /// Group `i` has the rows `queries.range(i)` of `q` and `keys.range(i)` of `k` and `v`. Where the heads share keys and
    /// values, `q` is `[Tq, H·a]`, `k` `[Tk, a]` and `v` `[Tk, b]`; else `k` is `[Tk, H·a]` and `v` `[Tk, H·b]`. A group
    /// without keys gives zeros. `k` and `v` may be the same variable.
    #[expect(clippy::too_many_arguments, reason = "three matrices, two divisions into groups, and the options")]
    pub fn attention(
        &mut self,
        q: Var,
        k: Var,
        v: Var,
        queries: &Ragged,
        keys: &Ragged,
        config: AttentionConfig,
    ) -> Result<Var> {
        let sizes = self.check_attention([q, k, v], queries, keys, config)?;
        dispatch!(self.attention([q, k, v], queries, keys, sizes))
    }

    fn check_attention(
        &self,
        [q, k, v]: [Var; 3],
        queries: &Ragged,
        keys: &Ragged,
        config: AttentionConfig,
    ) -> Result<Sizes> {
        let error = |what, var, needed: String| Err(self.shape_error("attention", what, var, needed));
        let heads = config.heads.0;
        for (what, var, rows) in [("q", q, queries), ("k", k, keys), ("v", v, keys)] {
            if self.shape(var) != Shape::Matrix(rows.total(), self.shape(var).cols()) {
                return error(what, var, format!("[{}, D]", rows.total()));
            }
        }
        if queries.len() != keys.len() {
            return error("q", q, format!("a group of queries for each of {} groups of keys", keys.len()));
        }
        let [q_cols, k_cols, v_cols] = [q, k, v].map(|var| self.shape(var).cols());
        if heads == 0 || q_cols == 0 || !q_cols.is_multiple_of(heads) {
            return error("q", q, format!("[T, D] with D a multiple of {heads} heads"));
        }
        let n_heads = if config.shared { 1 } else { heads };
        let d_key = q_cols / heads;
        if k_cols != n_heads * d_key {
            return error("k", k, format!("[T, {}]", n_heads * d_key));
        }
        if v_cols == 0 || !v_cols.is_multiple_of(n_heads) {
            return error("v", v, format!("[T, D] with D a multiple of {n_heads} heads"));
        }
        let AttentionConfig { scale, dropout, .. } = config;
        let (heads_as_queries, d_value) = (heads / n_heads, v_cols / n_heads);
        Ok(Sizes { n_heads, heads_as_queries, d_key, d_value, scale, dropout })
    }
}

/// The sizes of an attention. Shared heads count as queries.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    n_heads: usize,
    /// Queries in each row of `q`: the number of heads where they are shared, else 1.
    heads_as_queries: usize,
    d_key: usize,
    d_value: usize,
    scale: f32,
    dropout: Dropout,
}

impl Sizes {
    /// The shape of the result.
    fn output_shape(self, queries: &Ragged) -> Shape {
        Shape::Matrix(queries.total(), self.n_heads * self.heads_as_queries * self.d_value)
    }
}
