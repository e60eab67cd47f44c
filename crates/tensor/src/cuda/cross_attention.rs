//! Attention between two packed batches.

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::linear::size;
use super::memory::Buffer;
use super::rows::check_rows;
use super::tape::{Back, Record, Target};
use crate::{Dropout, Ragged, Result, Shape};

/// What is asked for; shapes have been checked. Shared heads are counted as queries.
pub(crate) struct Attend {
    /// Of queries, keys and values.
    pub(crate) parts: [Columns; 3],
    pub(crate) queries: Ragged,
    pub(crate) keys: Ragged,
    /// Rows that each row of the queries stands for.
    pub(crate) query_rows: usize,
    pub(crate) n_heads: usize,
    pub(crate) d_key: usize,
    pub(crate) d_value: usize,
    pub(crate) scale: f32,
    pub(crate) dropout: Dropout,
}

/// Some columns of a variable, from `first` on, whose rows lie `step` values apart.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) var: usize,
    pub(crate) first: usize,
    pub(crate) step: usize,
}

impl Columns {
    fn of(self, ptr: u64) -> u64 {
        ptr + 4 * self.first as u64
    }
}

/// Where groups begin, on the card, and how large they are.
#[derive(Clone)]
pub(super) struct Groups {
    table: Arc<Buffer>,
    n: usize,
    n_weights: usize,
    most_queries: usize,
    most_keys: usize,
}

impl Groups {
    /// As kernels read them: four numbers of 32 bits and one of 64 each.
    fn new(cuda: &Arc<Context>, attend: &Attend) -> Result<Self> {
        let (mut first_weight, mut most_queries, mut most_keys) = (0, 0, 0);
        let mut table: Vec<u64> = Vec::with_capacity(3 * attend.queries.len());
        let pair = |low: usize, high: usize| u64::from(size(low)) | u64::from(size(high)) << 32;
        for (query, key) in attend.queries.ranges().zip(attend.keys.ranges()) {
            let (n_queries, n_keys) = (attend.query_rows * query.len(), key.len());
            let first_query = attend.query_rows * query.start;
            table.extend([pair(first_query, n_queries), pair(key.start, n_keys), first_weight as u64]);
            first_weight += attend.n_heads * n_queries * n_keys;
            most_queries = n_queries.max(most_queries);
            most_keys = n_keys.max(most_keys);
        }
        let n = attend.queries.len();
        Ok(Self { table: cuda.upload(&table)?, n, n_weights: first_weight, most_queries, most_keys })
    }

    /// A warp for each of `most` in every group, up to eight a block; a few blocks a group where those are many.
    fn grid(&self, most: usize) -> Grid {
        const MOST_WARPS: usize = 8;
        const MOST_BLOCKS: usize = 16;
        let warps = most.next_power_of_two().clamp(1, MOST_WARPS);
        let blocks = most.div_ceil(2 * warps).clamp(1, MOST_BLOCKS);
        Grid { blocks: (size(self.n), size(blocks)), threads: (32, size(warps)), shared: 0 }
    }

    /// A block for each head of every 32 of `most` in every group, where what they look at fits into shared memory. A few
    /// queries are better taken one by one.
    fn tiles(&self, most: usize, attend: &Attend) -> Option<Grid> {
        const FEW: usize = 4;
        const TILE: usize = 32;
        const THREADS: u32 = 128;
        /// What a block has without asking.
        const MOST_BYTES: usize = 48 << 10;
        let pitch = attend.d_key.max(attend.d_value) | 1;
        let of_queries = TILE * (pitch + (self.most_keys | 1)) + self.most_keys * pitch;
        let of_keys = self.most_queries * (TILE + 1 + pitch);
        let bytes = 4 * of_queries.max(of_keys);
        let blocks = (size(self.n), size(attend.n_heads * most.div_ceil(TILE)));
        let fits = self.most_queries > FEW && bytes <= MOST_BYTES;
        fits.then(|| Grid { blocks, threads: (THREADS, 1), shared: size(bytes) })
    }

    /// How to compute something for `most` in every group: the kernel for tiles, or the other.
    fn cut(&self, most: usize, attend: &Attend, [tiles, rows]: [&'static str; 2]) -> (&'static str, Grid) {
        match self.tiles(most, attend) {
            Some(grid) => (tiles, grid),
            None => (rows, self.grid(most * attend.n_heads)),
        }
    }
}

/// Groups that are on the card already, and what they were made of.
pub(super) struct Known {
    queries: Ragged,
    keys: Ragged,
    rows_and_heads: [usize; 2],
    groups: Groups,
}

impl Record<'_> {
    /// The groups of an attention on the card; layers of a model share theirs.
    fn groups(&mut self, attend: &Attend) -> Result<Groups> {
        let rows_and_heads = [attend.query_rows, attend.n_heads];
        let is_same = |known: &&Known| {
            known.rows_and_heads == rows_and_heads
                && known.queries.is_same(&attend.queries)
                && known.keys.is_same(&attend.keys)
        };
        if let Some(known) = self.known_groups().iter().find(is_same) {
            return Ok(known.groups.clone());
        }
        let groups = Groups::new(&self.cuda, attend)?;
        let (queries, keys) = (attend.queries.clone(), attend.keys.clone());
        self.known_groups().push(Known { queries, keys, rows_and_heads, groups: groups.clone() });
        Ok(groups)
    }

    /// softmax(scale · q·kᵀ)·v inside each group, of `shape`.
    pub(crate) fn attention(&mut self, attend: Attend, shape: Shape) -> Result<usize> {
        self.check()?;
        let most_rows = (attend.queries.total() * attend.query_rows).max(attend.keys.total());
        check_rows("attention over more than 2³¹ rows", most_rows * attend.n_heads)?;
        let groups = self.groups(&attend)?;
        let (out, weights) = (self.cuda.floats(shape.len())?, self.cuda.floats(groups.n_weights)?);
        let [q, k, v] = attend.parts.map(|part| part.of(self.ptr(part.var)));
        let Attend { n_heads, d_key, d_value, scale, .. } = attend;
        let (mask, steps) = (attend.dropout.words(), attend.steps());
        let sizes = [n_heads, d_key, d_value].map(size);
        let arguments = args![
            q,
            k,
            v,
            groups.table.ptr(),
            mask,
            weights.ptr(),
            out.ptr(),
            steps,
            sizes[0],
            sizes[1],
            sizes[2],
            scale
        ];
        let (kernel, grid) = groups.cut(groups.most_queries, &attend, ["attend_tile_forward", "attend_forward"]);
        self.cuda.launch(kernel, grid, arguments)?;
        let vars = attend.parts.map(|part| part.var);
        let backward =
            move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| attend.backward(&grad, &weights, &groups, back);
        Ok(self.push(&vars, shape, out, backward))
    }
}

impl Attend {
    fn steps(&self) -> [u32; 4] {
        let [q, k, v] = self.parts.map(|part| size(part.step));
        [q, k, v, size(self.n_heads * self.d_value)]
    }

    /// Where the gradients of the parts go. Other columns of the same variable are written as its first are.
    fn targets(&self, back: &mut Back<'_, '_>) -> Result<[Option<Target>; 3]> {
        let mut targets: [Option<Target>; 3] = [None; 3];
        for (i, part) in self.parts.iter().enumerate() {
            let before = (0..i).find(|&j| self.parts[j].var == part.var && self.parts[j].first != part.first);
            targets[i] = match before {
                Some(j) => targets[j].map(|to| Target { ptr: to.ptr - 4 * self.parts[j].first as u64, ..to }),
                None => back.target(part.var)?,
            };
            targets[i] = targets[i].map(|to| Target { ptr: part.of(to.ptr), ..to });
        }
        Ok(targets)
    }

    fn backward(&self, grad: &Buffer, weights: &Buffer, groups: &Groups, back: &mut Back<'_, '_>) -> Result<()> {
        let cuda = Arc::clone(back.cuda());
        let [dq, dk, dv] = self.targets(back)?;
        let place = |target: Option<Target>| target.map_or(0, |target| target.ptr);
        let adds = |target: Option<Target>| u32::from(target.is_some_and(|target| target.add));
        let [q, k, v] = self.parts.map(|part| part.of(back.record.ptr(part.var)));
        let (table, mask, steps) = (groups.table.ptr(), self.dropout.words(), self.steps());
        let [n_heads, d_key, d_value] = [self.n_heads, self.d_key, self.d_value].map(size);
        let d_scores = cuda.floats(groups.n_weights)?;
        let (grad, weights, scores) = (grad.ptr(), weights.ptr(), d_scores.ptr());
        if dq.is_some() || dk.is_some() {
            let (to, add) = (place(dq), adds(dq));
            let arguments =
                args![grad, k, v, table, mask, weights, scores, to, add, steps, n_heads, d_key, d_value, self.scale];
            let kernels = ["attend_tile_queries_backward", "attend_queries_backward"];
            let (kernel, grid) = groups.cut(groups.most_queries, self, kernels);
            cuda.launch(kernel, grid, arguments)?;
        }
        if dk.is_some() || dv.is_some() {
            let add = adds(dk) | adds(dv) << 1;
            let (dk, dv) = (place(dk), place(dv));
            let arguments =
                args![grad, q, table, mask, weights, scores, dk, dv, add, steps, n_heads, d_key, d_value, self.scale];
            let kernels = ["attend_tile_keys_backward", "attend_keys_backward"];
            let (kernel, grid) = groups.cut(groups.most_keys, self, kernels);
            cuda.launch(kernel, grid, arguments)?;
        }
        Ok(())
    }
}
