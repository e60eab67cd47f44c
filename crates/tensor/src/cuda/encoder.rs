//! Transformer blocks over packed sequences, then means of rows, as a fixed sequence of products and kernels.
//!
//! Shapes: T tokens, D model width, F width of the feed-forward layer, P pools. The residual stream is `f32` and kept
//! once before each LayerNorm; what lies between products is made of what products read.

#![expect(clippy::many_single_char_names, reason = "matrices and their sizes are called as in the formulas")]

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::gemm::Product;
use super::linear::{add_column_sums_elem, add_partials, size};
use super::memory::Buffer;
use super::rows::check_rows;
use super::tape::{Back, Record};
use crate::{Dropout, Error, Precision, Ragged, Result, Shape};

/// At most so many blocks of the LayerNorm's way back and of GELU: all that a large card runs at once, so that none has
/// to wait for the others to end.
const NORM_BLOCKS: usize = 396;
const GELU_BLOCKS: usize = 528;

/// The longest sequence that attention keeps in a warp's registers.
const SHORT: usize = 64;

/// What the stack is made of; shapes have been checked.
pub(crate) struct Stack {
    pub(crate) x: usize,
    pub(crate) blocks: Vec<Block>,
    pub(crate) batch: Ragged,
    pub(crate) pools: Ragged,
    pub(crate) n_heads: usize,
    pub(crate) d_model: usize,
}

/// Variables of a block, `[weight, bias]` each, its dropouts and the width of its feed-forward layer.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) norm1: [usize; 2],
    pub(crate) qkv: [usize; 2],
    pub(crate) out: [usize; 2],
    pub(crate) norm2: [usize; 2],
    pub(crate) up: [usize; 2],
    pub(crate) down: [usize; 2],
    pub(crate) drops: [Dropout; 4],
    pub(crate) d_hidden: usize,
}

impl Block {
    fn vars(&self) -> impl Iterator<Item = usize> + use<> {
        [self.norm1, self.qkv, self.out, self.norm2, self.up, self.down].into_iter().flatten()
    }
}

/// The offsets of sequences and pools on the card, in one piece of memory.
struct Places {
    #[expect(dead_code, reason = "what keeps them there")]
    memory: Arc<Buffer>,
    sequences: u64,
    /// Σ length² of the sequences before: where dropout of attention's weights counts from.
    weights: u64,
    pools: u64,
}

/// What a block leaves for the way back.
struct Kept {
    x: Arc<Buffer>,
    y1: Arc<Buffer>,
    stats1: Arc<Buffer>,
    qkv: Arc<Buffer>,
    attended: Arc<Buffer>,
    logs: Arc<Buffer>,
    x1: Arc<Buffer>,
    y2: Arc<Buffer>,
    stats2: Arc<Buffer>,
    pre: Arc<Buffer>,
    /// GELU's values, or the means of their pools.
    hidden: Arc<Buffer>,
}

/// What is added to the residual stream before the next LayerNorm: a product without its bias.
struct Branch {
    rows: Arc<Buffer>,
    bias: u64,
    drop: Dropout,
}

/// The widest model and head that the kernels are made for.
pub(crate) const WIDEST: usize = 1024;
pub(crate) const WIDEST_HEAD: usize = 128;

const NO_MASK: [u32; 4] = [0; 4];

impl Record<'_> {
    /// The whole stack, `[pools, D]`.
    pub(crate) fn encoder(&mut self, stack: Stack) -> Result<usize> {
        self.check()?;
        check_rows("an encoder over more than 2³¹ rows", stack.batch.total())?;
        let d_head = stack.d_model / stack.n_heads;
        let hidden_fits = stack.blocks.iter().all(|block| block.d_hidden.is_multiple_of(4));
        if d_head > WIDEST_HEAD || stack.d_model > WIDEST || !hidden_fits {
            let operation =
                "an encoder wider than 1024, with heads wider than 128, or of a hidden width not divisible by 4";
            return Err(Error::NotOnGpu { operation });
        }
        if stack.cut(self.cuda.precision, true).1.shared > self.cuda.most_shared {
            let operation = "attention over heads this wide, for which this card has too little shared memory (less \
                             is needed with --precision bf16)";
            return Err(Error::NotOnGpu { operation });
        }
        let mut operands = vec![stack.x];
        operands.extend(stack.blocks.iter().flat_map(Block::vars));
        let wanted = operands.iter().any(|&var| self.wants_gradient(var));
        let places = stack.places(&self.cuda)?;
        let values = self.cuda.floats(stack.pools.len() * stack.d_model)?;
        let kept = stack.forward(self, &places, &values, wanted)?;
        let shape = Shape::Matrix(stack.pools.len(), stack.d_model);
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| stack.backward(kept, &places, &grad, back);
        Ok(self.push(&operands, shape, values, backward))
    }
}

impl Stack {
    fn places(&self, cuda: &Arc<Context>) -> Result<Places> {
        let mut sum = 0_u64;
        // Numbers of 64 bits, the lower half first.
        let squares = self.batch.ranges().flat_map(|range| {
            let before = sum;
            sum += (range.len() * range.len()) as u64;
            #[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
            [before as u32, (before >> 32) as u32]
        });
        let mut all: Vec<u32> = squares.collect();
        let sequences = all.len();
        all.extend(self.batch.offsets().iter().map(|&at| size(at)));
        let pools = all.len();
        all.extend(self.pools.offsets().iter().map(|&at| size(at)));
        let memory = cuda.upload(&all)?;
        let at = |index: usize| memory.ptr() + 4 * index as u64;
        Ok(Places { sequences: at(sequences), weights: at(0), pools: at(pools), memory })
    }

    fn rows(&self) -> usize {
        self.batch.total()
    }

    fn forward(&self, record: &Record<'_>, places: &Places, values: &Arc<Buffer>, wanted: bool) -> Result<Vec<Kept>> {
        let (cuda, t, d) = (&record.cuda, self.rows(), self.d_model);
        let run = Run { cuda };
        let mut kept = Vec::new();
        let mut x = record.held(self.x)?;
        let mut branch: Option<Branch> = None;
        let mut fed: Option<(Arc<Buffer>, u64)> = None;
        for (index, block) in self.blocks.iter().enumerate() {
            let f = block.d_hidden;
            let (x0, y1, stats1) = run.norm((&x, branch.take()), block.norm1.map(|var| record.ptr(var)), t, d)?;
            let qkv = run.elems(t * 3 * d)?;
            run.layer(&y1, record.operand(block.qkv[0])?.ptr, &qkv, (t, d, 3 * d))?;
            let (attended, logs) = self.attend(&run, record.ptr(block.qkv[1]), places, &qkv, block.drops[0])?;
            let out = run.elems(t * d)?;
            run.layer(&attended, record.operand(block.out[0])?.ptr, &out, (t, d, d))?;
            let out = Branch { rows: out, bias: record.ptr(block.out[1]), drop: block.drops[1] };
            let (x1, y2, stats2) = run.norm((&x0, Some(out)), block.norm2.map(|var| record.ptr(var)), t, d)?;
            let pre = run.elems(t * f)?;
            run.layer(&y2, record.operand(block.up[0])?.ptr, &pre, (t, d, f))?;
            let (up_bias, mask) = (record.ptr(block.up[1]), block.drops[2].words());
            let down = record.operand(block.down[0])?;
            let hidden;
            if index + 1 < self.blocks.len() {
                hidden = run.elems(t * f)?;
                let (grid, strip) = gelu_strips(t, f);
                let arguments = args![pre.ptr(), up_bias, mask, hidden.ptr(), size(t), size(f), strip];
                cuda.launch("gelu_forward", grid, arguments)?;
                let rows = run.elems(t * d)?;
                run.layer(&hidden, down.ptr, &rows, (t, f, d))?;
                branch = Some(Branch { rows, bias: record.ptr(block.down[1]), drop: block.drops[3] });
            } else {
                let p = self.pools.len();
                hidden = run.elems(p * f)?;
                let (grid, pools) = (quads(f, p), places.pools);
                cuda.launch("gelu_means", grid, args![pre.ptr(), up_bias, mask, pools, hidden.ptr(), size(f)])?;
                let rows = run.elems(p * d)?;
                run.layer(&hidden, down.ptr, &rows, (p, f, d))?;
                fed = Some((rows, record.ptr(block.down[1])));
            }
            x = Arc::clone(&x1);
            if wanted {
                kept.push(Kept { x: x0, y1, stats1, qkv, attended, logs, x1, y2, stats2, pre, hidden });
            }
        }
        let (rows, bias) = fed.as_ref().map_or((0, 0), |(rows, bias)| (rows.ptr(), *bias));
        let grid = quads(d, self.pools.len());
        cuda.launch("pool_means", grid, args![x.ptr(), rows, bias, places.pools, values.ptr(), size(d)])?;
        Ok(kept)
    }

    /// How attention is cut: its kernel, its grid, the step of a row in shared memory.
    fn cut(&self, precision: Precision, is_back: bool) -> (&'static str, Grid, u32) {
        let width = self.d_model / self.n_heads;
        let longest = self.batch.longest();
        let pick = |forward: &'static str, backward| if is_back { backward } else { forward };
        let n_tiles = if is_back { 4 } else { 3 };
        let (name, threads, step, bytes) = if precision == Precision::F32 {
            // An odd number of quads a row: neighbours lie in different banks.
            let step = 4 * (width.div_ceil(4) | 1);
            let name = pick("attention_forward", "attention_backward");
            (name, 256, step, 4 * (n_tiles * 64 * step + 64 * 68 + 64))
        } else if longest <= SHORT {
            let bytes = precision.bytes();
            let rows = longest.next_multiple_of(16).max(16);
            // An odd number of 16 bytes a row, for the same reason; on the way back two tiles hold weights later.
            let unit = 16 / bytes;
            let step = unit * ((8 * width.div_ceil(8) / unit) | 1);
            let weights = if is_back { 2 * rows * step.max(SHORT + unit) } else { 0 };
            let name = pick("attention_forward_short", "attention_backward_short");
            (name, if is_back { 4 * rows } else { 2 * rows }, step, bytes * (2 * rows * step + weights) + 16)
        } else {
            // Whole blocks of 8 columns for the matrix units; at least as wide as a row of weights.
            let step = (8 * width.div_ceil(8) + 4).max(68);
            let name = pick("attention_forward_mma", "attention_backward_mma");
            (name, 256, step, 4 * (n_tiles * 64 * step + 3 * 64))
        };
        let blocks = (size(self.batch.len() * self.n_heads), 1);
        (name, Grid { blocks, threads: (size(threads), 1), shared: size(bytes) }, size(step))
    }

    /// Heads, their width, and what scores are multiplied by.
    fn head(&self) -> (u32, u32, f32) {
        let width = self.d_model / self.n_heads;
        #[expect(clippy::cast_possible_truncation, reason = "the scale is rounded once")]
        let scale = (1.0 / (width as f64).sqrt()) as f32;
        (size(self.n_heads), size(width), scale)
    }

    fn attend(
        &self,
        run: &Run<'_>,
        bias: u64,
        places: &Places,
        qkv: &Buffer,
        drop: Dropout,
    ) -> Result<(Arc<Buffer>, Arc<Buffer>)> {
        let t = self.rows();
        let (attended, logs) = (run.elems(t * self.d_model)?, run.cuda.floats(t * self.n_heads)?);
        let ((heads, width, scale), (name, grid, step)) = (self.head(), self.cut(run.cuda.precision, false));
        let (sequences, weights) = (places.sequences, places.weights);
        let (out, logs_ptr) = (attended.ptr(), logs.ptr());
        let arguments =
            args![qkv.ptr(), bias, sequences, weights, drop.words(), out, logs_ptr, heads, width, step, scale];
        run.cuda.launch(name, grid, arguments)?;
        Ok((attended, logs))
    }

    fn backward(self, kept: Vec<Kept>, places: &Places, grad: &Buffer, back: &mut Back<'_, '_>) -> Result<()> {
        let cuda = Arc::clone(back.cuda());
        let run = Run { cuda: &cuda };
        let (t, d, p) = (self.rows(), self.d_model, self.pools.len());
        let dx = cuda.floats(t * d)?;
        let mut branch = run.elems(p * d)?;
        let arguments = args![grad.ptr(), places.pools, dx.ptr(), branch.ptr(), size(d)];
        cuda.launch("pool_means_backward", quads(d, p), arguments)?;
        for (index, (block, kept)) in self.blocks.iter().zip(kept).enumerate().rev() {
            let f = block.d_hidden;
            let is_last = index + 1 == self.blocks.len();
            let rows = if is_last { p } else { t };
            let bias = is_last.then_some(block.down[1]);
            run.parameters(&branch, &kept.hidden, (rows, d, f), (block.down[0], bias), back)?;
            let d_hidden = run.elems(rows * f)?;
            run.input(&branch, back.record.operand(block.down[0])?.ptr, &d_hidden, (rows, d, f))?;
            let d_pre = self.gelu_backward(block, &kept, (d_hidden, is_last), places, back)?;

            run.parameters(&d_pre, &kept.y2, (t, f, d), (block.up[0], None), back)?;
            let dy = run.elems(t * d)?;
            run.input(&d_pre, back.record.operand(block.up[0])?.ptr, &dy, (t, f, d))?;
            drop(d_pre);
            branch = run.elems(t * d)?;
            let norm = (&*kept.x1, &*kept.stats2, block.norm2);
            let sums = Some((&branch, block.drops[1], block.out[1]));
            run.norm_backward((&dy, &dx), norm, sums, (t, d), back)?;

            run.parameters(&branch, &kept.attended, (t, d, d), (block.out[0], None), back)?;
            let d_attended = run.elems(t * d)?;
            run.input(&branch, back.record.operand(block.out[0])?.ptr, &d_attended, (t, d, d))?;
            let d_qkv = self.attend_backward(block, &kept, &d_attended, places, back)?;
            run.parameters(&d_qkv, &kept.y1, (t, 3 * d, d), (block.qkv[0], Some(block.qkv[1])), back)?;
            run.input(&d_qkv, back.record.operand(block.qkv[0])?.ptr, &dy, (t, 3 * d, d))?;
            let before = index.checked_sub(1).map(|before| self.blocks[before]);
            // Not in its old place, which the gradient of a weight may still be reading.
            branch = run.elems(if before.is_some() { t * d } else { 0 })?;
            let sums = before.as_ref().map(|before| (&branch, before.drops[3], before.down[1]));
            run.norm_backward((&dy, &dx), (&*kept.x, &*kept.stats1, block.norm1), sums, (t, d), back)?;
        }
        back.give(self.x, dx)
    }

    /// The gradient of what GELU read, and that of its bias.
    fn gelu_backward(
        &self,
        block: &Block,
        kept: &Kept,
        (d_hidden, is_last): (Arc<Buffer>, bool),
        places: &Places,
        back: &mut Back<'_, '_>,
    ) -> Result<Arc<Buffer>> {
        let cuda = Arc::clone(back.cuda());
        let (t, f, p) = (self.rows(), block.d_hidden, self.pools.len());
        let (grid, strip) = if is_last { (quads(f, p), 0) } else { gelu_strips(t, f) };
        let strips = grid.blocks.1 as usize;
        let partials = cuda.floats(strips * f)?;
        let (bias, mask) = (back.record.ptr(block.up[1]), block.drops[2].words());
        let (hidden, pre, sums) = (d_hidden.ptr(), kept.pre.ptr(), partials.ptr());
        let result = if is_last {
            let arguments = args![hidden, pre, bias, mask, sums, places.pools, size(f)];
            cuda.launch("gelu_means_backward", grid, arguments)?;
            Arc::clone(&kept.pre)
        } else {
            let arguments = args![hidden, pre, bias, mask, sums, size(t), size(f), strip];
            cuda.launch("gelu_backward", grid, arguments)?;
            d_hidden
        };
        let lane = back.lane(&[block.up[1]])?;
        let to = back.sum_on(lane, block.up[1])?;
        if to != 0 {
            add_partials(&cuda, lane, &partials, (strips, f), &[to])?;
        }
        Ok(result)
    }

    fn attend_backward(
        &self,
        block: &Block,
        kept: &Kept,
        d_attended: &Buffer,
        places: &Places,
        back: &Back<'_, '_>,
    ) -> Result<Arc<Buffer>> {
        let run = Run { cuda: back.cuda() };
        let d_qkv = run.elems(self.rows() * 3 * self.d_model)?;
        let ((heads, width, scale), (name, grid, step)) = (self.head(), self.cut(run.cuda.precision, true));
        let arguments = args![
            kept.qkv.ptr(),
            back.record.ptr(block.qkv[1]),
            places.sequences,
            places.weights,
            block.drops[0].words(),
            kept.attended.ptr(),
            d_attended.ptr(),
            kept.logs.ptr(),
            d_qkv.ptr(),
            heads,
            width,
            step,
            scale
        ];
        run.cuda.launch(name, grid, arguments)?;
        Ok(d_qkv)
    }
}

/// Strips of rows or pools in which a block has 8 warps and 128 columns.
fn quads(f: usize, strips: usize) -> Grid {
    Grid { blocks: (size(f.div_ceil(128)), size(strips)), threads: (32, 8), shared: 0 }
}

/// The same for GELU over strips of equal size, and that size.
fn gelu_strips(t: usize, f: usize) -> (Grid, u32) {
    let strips = (GELU_BLOCKS / f.div_ceil(128)).max(1);
    let strip = t.div_ceil(strips).next_multiple_of(8).max(32);
    (quads(f, t.div_ceil(strip)), size(strip))
}

/// The steps that blocks share.
struct Run<'c> {
    cuda: &'c Arc<Context>,
}

impl Run<'_> {
    /// Memory for what products are made of.
    fn elems(&self, count: usize) -> Result<Arc<Buffer>> {
        self.cuda.take(self.cuda.precision.bytes() * count)
    }

    /// x · Wᵀ.
    fn layer(&self, x: &Buffer, weight: u64, out: &Buffer, (m, k, n): (usize, usize, usize)) -> Result<()> {
        let (a, c) = (x.ptr(), out.ptr());
        let product =
            Product { a, a_turned: false, b: weight, b_turned: true, c, m, n, k, add: false, wide: false, bias: 0 };
        self.cuda.multiply(&product)
    }

    /// dy · W, for a layer from `n_in` to `n_out`.
    fn input(&self, dy: &Buffer, weight: u64, out: &Buffer, (m, n_out, n_in): (usize, usize, usize)) -> Result<()> {
        let (a, c) = (dy.ptr(), out.ptr());
        let (n, k) = (n_in, n_out);
        let product =
            Product { a, a_turned: false, b: weight, b_turned: false, c, m, n, k, add: false, wide: false, bias: 0 };
        self.cuda.multiply(&product)
    }

    /// Adds dyᵀ · x to the gradient of a weight, and dy's sum to that of a bias, on a stream of their own.
    fn parameters(
        &self,
        dy: &Arc<Buffer>,
        x: &Arc<Buffer>,
        (rows, n_out, n_in): (usize, usize, usize),
        (weight, bias): (usize, Option<usize>),
        back: &mut Back<'_, '_>,
    ) -> Result<()> {
        let lane = back.lane(&[weight, bias.unwrap_or(weight)])?;
        let to = bias.map_or(Ok(0), |bias| back.sum_on(lane, bias))?;
        if to != 0 {
            add_column_sums_elem(self.cuda, lane, dy.ptr(), (rows, n_out), to)?;
        }
        if let Some(target) = back.target_on(lane, weight)? {
            let (a, b, c) = (dy.ptr(), x.ptr(), target.ptr);
            let (m, n, k, add) = (n_out, n_in, rows, target.add);
            let product = Product { a, a_turned: true, b, b_turned: false, c, m, n, k, add, wide: true, bias: 0 };
            self.cuda.multiply_on(lane, &product)?;
        }
        self.cuda.hold(lane, [dy, x]);
        Ok(())
    }

    /// The residual stream after a branch, its LayerNorm, and each row's mean and 1/σ.
    fn norm(
        &self,
        (x, branch): (&Arc<Buffer>, Option<Branch>),
        [scale, shift]: [u64; 2],
        t: usize,
        d: usize,
    ) -> Result<(Arc<Buffer>, Arc<Buffer>, Arc<Buffer>)> {
        let after = if branch.is_some() { self.cuda.floats(t * d)? } else { Arc::clone(x) };
        let (y, stats) = (self.elems(t * d)?, self.cuda.floats(2 * t)?);
        let (rows, bias, mask) =
            branch.as_ref().map_or((0, 0, NO_MASK), |branch| (branch.rows.ptr(), branch.bias, branch.drop.words()));
        let name = if d <= 256 { "residual_norm_8" } else { "residual_norm_32" };
        let grid = Grid { blocks: (size(t.div_ceil(8)), 1), threads: (32, 8), shared: 0 };
        let (out, y_ptr, stats_ptr) = (after.ptr(), y.ptr(), stats.ptr());
        let arguments = args![x.ptr(), rows, bias, mask, out, y_ptr, stats_ptr, scale, shift, size(t), size(d)];
        self.cuda.launch(name, grid, arguments)?;
        Ok((after, y, stats))
    }

    /// `dx` grows by the way back of a LayerNorm; the branch before it, if any, gets its gradient and its bias's.
    fn norm_backward(
        &self,
        (dy, dx): (&Buffer, &Buffer),
        (x, stats, [scale, shift]): (&Buffer, &Buffer, [usize; 2]),
        branch: Option<(&Arc<Buffer>, Dropout, usize)>,
        (t, d): (usize, usize),
        back: &mut Back<'_, '_>,
    ) -> Result<()> {
        let blocks = t.div_ceil(8).min(NORM_BLOCKS);
        let partials = self.cuda.floats(blocks * 3 * d)?;
        let name = if d <= 256 { "norm_backward_8" } else { "norm_backward_32" };
        let grid = Grid { blocks: (size(blocks), 1), threads: (32, 8), shared: 8 * 4 * size(d) };
        let (rows, mask) = branch.map_or((0, NO_MASK), |(rows, drop, _)| (rows.ptr(), drop.words()));
        let (scale_ptr, sums) = (back.record.ptr(scale), partials.ptr());
        let arguments = args![dy.ptr(), x.ptr(), stats.ptr(), scale_ptr, dx.ptr(), rows, mask, sums, size(t), size(d)];
        self.cuda.launch(name, grid, arguments)?;
        let lane = back.lane(&[scale, shift, branch.map_or(scale, |(_, _, bias)| bias)])?;
        let bias = branch.map_or(Ok(0), |(_, _, bias)| back.sum_on(lane, bias))?;
        let (scale, shift) = (back.sum_on(lane, scale)?, back.sum_on(lane, shift)?);
        add_partials(self.cuda, lane, &partials, (blocks, d), &[scale, shift, bias])
    }
}
