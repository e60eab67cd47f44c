//! Cross-attention on the GPU.

use std::sync::Arc;

use super::Sizes;
use crate::cuda::{
    Buffer, Call, Context, CudaBackwardCtx, CudaTape, GradTarget, Grid, check_row_count, dim, kernels,
    param::{Float, Int, Mask, Ptr, Strides},
};
use crate::{Dropout, Ragged, Result, Shape, Var};

kernels! {
    pub(crate) KERNELS:
    /// Attention with one warp for each query and head.
    fn cross_attention_forward(
        q: Ptr, k: Ptr, v: Ptr, groups: Ptr, mask: Mask, weights: Ptr, out: Ptr, strides: Strides, n_heads: Int,
        d_key: Int, d_value: Int, scale: Float,
    );
    /// The gradients of scores and queries.
    fn cross_attention_queries_backward(
        d_out: Ptr, k: Ptr, v: Ptr, groups: Ptr, mask: Mask, weights: Ptr, d_scores: Ptr, dq: Ptr, add: Int,
        strides: Strides, n_heads: Int, d_key: Int, d_value: Int, scale: Float,
    );
    /// The gradients of keys and values, after those of the scores.
    fn cross_attention_keys_backward(
        d_out: Ptr, q: Ptr, groups: Ptr, mask: Mask, weights: Ptr, d_scores: Ptr, dk: Ptr, dv: Ptr, add: Int,
        strides: Strides, n_heads: Int, d_key: Int, d_value: Int, scale: Float,
    );
    /// Attention with one block for a head of 32 queries.
    fn cross_attention_tile_forward(
        q: Ptr, k: Ptr, v: Ptr, groups: Ptr, mask: Mask, weights: Ptr, out: Ptr, strides: Strides, n_heads: Int,
        d_key: Int, d_value: Int, scale: Float,
    );
    /// The gradients of scores and queries, in tiles.
    fn cross_attention_tile_queries_backward(
        d_out: Ptr, k: Ptr, v: Ptr, groups: Ptr, mask: Mask, weights: Ptr, d_scores: Ptr, dq: Ptr, add: Int,
        strides: Strides, n_heads: Int, d_key: Int, d_value: Int, scale: Float,
    );
    /// The gradients of keys and values, in tiles.
    fn cross_attention_tile_keys_backward(
        d_out: Ptr, q: Ptr, groups: Ptr, mask: Mask, weights: Ptr, d_scores: Ptr, dk: Ptr, dv: Ptr, add: Int,
        strides: Strides, n_heads: Int, d_key: Int, d_value: Int, scale: Float,
    );
}

type Forward = fn(Ptr, Ptr, Ptr, Ptr, Mask, Ptr, Ptr, Strides, Int, Int, Int, Float) -> Call<12>;
type QueriesBackward = fn(Ptr, Ptr, Ptr, Ptr, Mask, Ptr, Ptr, Ptr, Int, Strides, Int, Int, Int, Float) -> Call<14>;
type KeysBackward = fn(Ptr, Ptr, Ptr, Mask, Ptr, Ptr, Ptr, Ptr, Int, Strides, Int, Int, Int, Float) -> Call<14>;

/// An attention whose shapes have been checked. Shared heads count as queries.
pub(crate) struct AttentionCall {
    /// Queries, keys and values.
    pub(crate) parts: [ColumnSlice; 3],
    pub(crate) queries: Ragged,
    pub(crate) keys: Ragged,
    /// Queries in each row of the query matrix.
    pub(crate) heads_as_queries: usize,
    pub(crate) n_heads: usize,
    pub(crate) d_key: usize,
    pub(crate) d_value: usize,
    pub(crate) scale: f32,
    pub(crate) dropout: Dropout,
}

/// The columns of a variable from `first` on; its rows are `stride` values apart.
#[derive(Clone, Copy)]
pub(crate) struct ColumnSlice {
    pub(crate) var: Var,
    pub(crate) first: usize,
    pub(crate) stride: usize,
}

impl ColumnSlice {
    /// The first value of the slice of a matrix at `ptr`.
    fn of(self, ptr: u64) -> u64 {
        ptr + 4 * self.first as u64
    }
}

/// The groups of an attention on the GPU, and their largest sizes.
#[derive(Clone)]
struct Groups {
    table: Arc<Buffer>,
    n: usize,
    n_weights: usize,
    max_queries: usize,
    max_keys: usize,
}

impl Groups {
    /// The kernels' `struct Group` for each: four 32-bit numbers and one of 64 bits.
    fn new(cuda: &Arc<Context>, attention: &AttentionCall) -> Result<Self> {
        let (mut first_weight, mut max_queries, mut max_keys) = (0, 0, 0);
        let mut table: Vec<u64> = Vec::with_capacity(3 * attention.queries.len());
        let pair = |low: usize, high: usize| u64::from(dim(low)) | u64::from(dim(high)) << 32;
        for (query, key) in attention.queries.ranges().zip(attention.keys.ranges()) {
            let (n_queries, n_keys) = (attention.heads_as_queries * query.len(), key.len());
            let first_query = attention.heads_as_queries * query.start;
            table.extend([pair(first_query, n_queries), pair(key.start, n_keys), first_weight as u64]);
            first_weight += attention.n_heads * n_queries * n_keys;
            max_queries = n_queries.max(max_queries);
            max_keys = n_keys.max(max_keys);
        }
        let n = attention.queries.len();
        Ok(Self { table: cuda.upload(&table)?, n, n_weights: first_weight, max_queries, max_keys })
    }

    /// One warp for each of up to `most` items in every group, at most eight warps in a block and 16 blocks for a group.
    fn warp_grid(&self, most: usize) -> Grid {
        const MAX_WARPS: usize = 8;
        const MAX_BLOCKS: usize = 16;
        let warps = most.next_power_of_two().clamp(1, MAX_WARPS);
        let blocks = most.div_ceil(2 * warps).clamp(1, MAX_BLOCKS);
        Grid { blocks: (dim(self.n), dim(blocks)), threads: (32, dim(warps)), shared: 0 }
    }

    /// One block for each head of 32 of up to `most` items in every group, where their operands fit into shared memory.
    /// Few queries are better computed one by one.
    fn tile_grid(&self, most: usize, attention: &AttentionCall) -> Option<Grid> {
        const FEW_QUERIES: usize = 4;
        const TILE: usize = 32;
        const THREADS: u32 = 128;
        /// The shared memory that every kernel may use.
        const MAX_BYTES: usize = 48 << 10;
        let pitch = attention.d_key.max(attention.d_value) | 1;
        let of_queries = TILE * (pitch + (self.max_keys | 1)) + self.max_keys * pitch;
        let of_keys = self.max_queries * (TILE + 1 + pitch);
        let bytes = 4 * of_queries.max(of_keys);
        let blocks = (dim(self.n), dim(attention.n_heads * most.div_ceil(TILE)));
        let fits = self.max_queries > FEW_QUERIES && bytes <= MAX_BYTES;
        fits.then(|| Grid { blocks, threads: (THREADS, 1), shared: dim(bytes) })
    }

    /// The kernel for up to `most` items in every group, of the one in tiles and the one in warps, and its grid.
    fn choose<K>(&self, most: usize, attention: &AttentionCall, tile: K, warp: K) -> (K, Grid) {
        match self.tile_grid(most, attention) {
            Some(grid) => (tile, grid),
            None => (warp, self.warp_grid(most * attention.n_heads)),
        }
    }
}

/// Groups that are on the GPU already, and their definition.
pub(crate) struct CachedGroups {
    queries: Ragged,
    keys: Ragged,
    heads: [usize; 2],
    groups: Groups,
}

impl CudaTape<'_> {
    pub(crate) fn attention(
        &mut self,
        [q, k, v]: [Var; 3],
        queries: &Ragged,
        keys: &Ragged,
        sizes: Sizes,
    ) -> Result<Var> {
        let whole = |var: Var, cols: usize| ColumnSlice { var, first: 0, stride: cols };
        let (q_cols, v_cols) = (sizes.n_heads * sizes.d_key, sizes.n_heads * sizes.d_value);
        let call = AttentionCall {
            parts: [whole(q, q_cols), whole(k, q_cols), whole(v, v_cols)],
            queries: queries.clone(),
            keys: keys.clone(),
            heads_as_queries: sizes.heads_as_queries,
            n_heads: sizes.n_heads,
            d_key: sizes.d_key,
            d_value: sizes.d_value,
            scale: sizes.scale,
            dropout: sizes.dropout,
        };
        self.attend(call, sizes.output_shape(queries))
    }

    /// The groups of an attention on the GPU; layers of a model share theirs.
    fn groups(&mut self, attention: &AttentionCall) -> Result<Groups> {
        let heads = [attention.heads_as_queries, attention.n_heads];
        let is_same = |known: &&CachedGroups| {
            known.heads == heads && known.queries.is_same(&attention.queries) && known.keys.is_same(&attention.keys)
        };
        if let Some(known) = self.attention_groups().iter().find(is_same) {
            return Ok(known.groups.clone());
        }
        let groups = Groups::new(self.cuda(), attention)?;
        let (queries, keys) = (attention.queries.clone(), attention.keys.clone());
        self.attention_groups().push(CachedGroups { queries, keys, heads, groups: groups.clone() });
        Ok(groups)
    }

    /// softmax(scale · q·kᵀ)·v inside each group, of `shape`.
    pub(crate) fn attend(&mut self, attention: AttentionCall, shape: Shape) -> Result<Var> {
        self.check_deferred()?;
        let most_rows = (attention.queries.total() * attention.heads_as_queries).max(attention.keys.total());
        check_row_count("attention over more than 2³¹ rows", most_rows * attention.n_heads)?;
        let groups = self.groups(&attention)?;
        let (out, weights) = (self.cuda().alloc_f32(shape.len())?, self.cuda().alloc_f32(groups.n_weights)?);
        let [q, k, v] = attention.parts.map(|part| part.of(self.ptr(part.var)));
        let (mask, strides, scale) = (attention.dropout.mask_words(), attention.strides(), attention.scale);
        let [n_heads, d_key, d_value] = [attention.n_heads, attention.d_key, attention.d_value].map(dim);
        let (tile, warp): (Forward, Forward) = (cross_attention_tile_forward, cross_attention_forward);
        let (kernel, grid) = groups.choose(groups.max_queries, &attention, tile, warp);
        let (table, weights_ptr, to) = (groups.table.ptr(), weights.ptr(), out.ptr());
        let call = kernel(q, k, v, table, mask, weights_ptr, to, strides, n_heads, d_key, d_value, scale);
        self.cuda().launch(grid, call)?;
        let vars = attention.parts.map(|part| part.var);
        let backward =
            move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| attention.backward(&grad, &weights, &groups, ctx);
        Ok(self.push(&vars, shape, out, backward))
    }
}

impl AttentionCall {
    fn strides(&self) -> [u32; 4] {
        let [q, k, v] = self.parts.map(|part| dim(part.stride));
        [q, k, v, dim(self.n_heads * self.d_value)]
    }

    /// Where the gradients of the parts go. Slices of one variable share its target and how it is written.
    fn grad_targets(&self, ctx: &mut CudaBackwardCtx<'_>) -> Result<[Option<GradTarget>; 3]> {
        let mut targets: [Option<GradTarget>; 3] = [None; 3];
        for (i, part) in self.parts.iter().enumerate() {
            let before = (0..i).find(|&j| self.parts[j].var == part.var && self.parts[j].first != part.first);
            targets[i] = match before {
                Some(j) => targets[j].map(|to| GradTarget { ptr: to.ptr - 4 * self.parts[j].first as u64, ..to }),
                None => ctx.grad_target(part.var)?,
            };
            targets[i] = targets[i].map(|to| GradTarget { ptr: part.of(to.ptr), ..to });
        }
        Ok(targets)
    }

    fn backward(&self, grad: &Buffer, weights: &Buffer, groups: &Groups, ctx: &mut CudaBackwardCtx<'_>) -> Result<()> {
        let cuda = Arc::clone(ctx.cuda());
        let [dq, dk, dv] = self.grad_targets(ctx)?;
        let ptr_or_null = |target: Option<GradTarget>| target.map_or(0, |target| target.ptr);
        let add_bit = |target: Option<GradTarget>| u32::from(target.is_some_and(|target| target.accumulate));
        let [q, k, v] = self.parts.map(|part| part.of(ctx.tape.ptr(part.var)));
        let (table, mask, strides) = (groups.table.ptr(), self.dropout.mask_words(), self.strides());
        let [n_heads, d_key, d_value] = [self.n_heads, self.d_key, self.d_value].map(dim);
        let d_scores = cuda.alloc_f32(groups.n_weights)?;
        let (grad, weights, scores, scale) = (grad.ptr(), weights.ptr(), d_scores.ptr(), self.scale);
        if dq.is_some() || dk.is_some() {
            let (tile, warp): (QueriesBackward, QueriesBackward) =
                (cross_attention_tile_queries_backward, cross_attention_queries_backward);
            let (kernel, grid) = groups.choose(groups.max_queries, self, tile, warp);
            let (to, add) = (ptr_or_null(dq), add_bit(dq));
            let call =
                kernel(grad, k, v, table, mask, weights, scores, to, add, strides, n_heads, d_key, d_value, scale);
            cuda.launch(grid, call)?;
        }
        if dk.is_some() || dv.is_some() {
            let (tile, warp): (KeysBackward, KeysBackward) =
                (cross_attention_tile_keys_backward, cross_attention_keys_backward);
            let (kernel, grid) = groups.choose(groups.max_keys, self, tile, warp);
            let add = add_bit(dk) | add_bit(dv) << 1;
            let (dk, dv) = (ptr_or_null(dk), ptr_or_null(dv));
            let call =
                kernel(grad, q, table, mask, weights, scores, dk, dv, add, strides, n_heads, d_key, d_value, scale);
            cuda.launch(grid, call)?;
        }
        Ok(())
    }
}
