//! The linear layer and the loss.

#![expect(clippy::many_single_char_names, reason = "matrices and their sizes are called as in the formulas")]

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::gemm::Product;
use super::memory::Buffer;
use super::streams::{Lane, PartialSums};
use super::tape::{Back, Operand, Record, narrow};
use crate::{Activation, Precision, Result, Shape};

/// Rows of a strip whose columns are summed together.
pub(super) const STRIP: usize = 64;

/// What kernels call a function.
pub(super) fn kind(activation: Option<Activation>) -> u32 {
    match activation {
        None => 0,
        Some(Activation::Relu) => 1,
        Some(Activation::Gelu) => 2,
        Some(Activation::Sigmoid) => 3,
        Some(Activation::Tanh) => 4,
        Some(Activation::Cos) => 5,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a kernel's sizes are those of tensors in memory")]
pub(super) fn size(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok());
    n as u32
}

/// What is read, written and summed in one pass over a gradient; 0 for what there is not.
#[derive(Default, Clone, Copy)]
struct Settle {
    grad: u64,
    slopes: u64,
    copy: u64,
    weights: u64,
    partials: u64,
}

impl Settle {
    fn run(self, cuda: &Context, lane: Lane, (rows, cols): (usize, usize)) -> Result<()> {
        let Self { grad, slopes, copy, weights, partials } = self;
        let blocks = (size(cols.div_ceil(32)), size(rows.div_ceil(STRIP)));
        let grid = Grid { blocks, threads: (32, 8), shared: 0 };
        let sizes = (size(rows), size(cols), size(STRIP));
        let arguments = args![grad, slopes, copy, weights, partials, sizes.0, sizes.1, sizes.2];
        cuda.launch_on(lane, "settle", grid, arguments)
    }
}

/// `to += ` the sum over `rows` of `x` `[rows, cols]`.
pub(super) fn add_column_sums(
    cuda: &Arc<Context>,
    lane: Lane,
    x: u64,
    (rows, cols): (usize, usize),
    to: u64,
) -> Result<()> {
    add_sums(cuda, lane, (rows, cols), to, |partials| {
        Settle { grad: x, partials, ..Settle::default() }.run(cuda, lane, (rows, cols))
    })
}

/// The same for what products are made of.
pub(super) fn add_column_sums_elem(
    cuda: &Arc<Context>,
    lane: Lane,
    x: u64,
    (rows, cols): (usize, usize),
    to: u64,
) -> Result<()> {
    add_sums(cuda, lane, (rows, cols), to, |partials| {
        let blocks = (size(cols.div_ceil(4 * 32)), size(rows.div_ceil(STRIP)));
        let grid = Grid { blocks, threads: (32, 8), shared: 0 };
        cuda.launch_on(lane, "column_sums_elem", grid, args![x, partials, size(rows), size(cols), size(STRIP)])
    })
}

/// Adds what `sum` leaves for each strip of rows.
fn add_sums(
    cuda: &Arc<Context>,
    lane: Lane,
    (rows, cols): (usize, usize),
    to: u64,
    sum: impl FnOnce(u64) -> Result<()>,
) -> Result<()> {
    let strips = rows.div_ceil(STRIP);
    let partials = cuda.floats(strips * cols)?;
    sum(partials.ptr())?;
    add_partials(cuda, lane, &partials, (strips, cols), &[to])
}

/// Adds `n` partial sums to gradients of `cols` values that lie side by side in them; to 0 nothing. On the side stream
/// this can wait for others.
pub(super) fn add_partials(
    cuda: &Arc<Context>,
    lane: Lane,
    partials: &Arc<Buffer>,
    (n, cols): (usize, usize),
    to: &[u64],
) -> Result<()> {
    let parts: Vec<(usize, u64)> = to.iter().map(|&to| (cols, to)).collect();
    add_parts(cuda, lane, partials, n, &parts)
}

/// The same for gradients of different widths.
pub(super) fn add_parts(
    cuda: &Arc<Context>,
    lane: Lane,
    partials: &Arc<Buffer>,
    n: usize,
    parts: &[(usize, u64)],
) -> Result<()> {
    let step = parts.iter().map(|(cols, _)| cols).sum();
    let mut end = 0;
    let sums = parts.iter().map(|&(cols, to)| {
        end += cols;
        PartialSums { partials: Arc::clone(partials), first: end - cols, n, step, cols, to }
    });
    let sums: Vec<PartialSums> = sums.filter(|sum| sum.to != 0).collect();
    if sums.is_empty() {
        return Ok(());
    }
    cuda.hold(lane, [partials]);
    if lane == Lane::Side { cuda.add_later(sums) } else { cuda.add_now(&sums) }
}

/// Variables and sizes of a layer from `k` to `n` values over `m` rows.
#[derive(Clone, Copy)]
pub(super) struct Layer {
    pub(super) x: usize,
    pub(super) weight: usize,
    pub(super) bias: Option<usize>,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

impl Record<'_> {
    /// `activation(x · weightᵀ + bias)`; shapes have been checked.
    pub(crate) fn linear(
        &mut self,
        [x, weight]: [usize; 2],
        bias: Option<usize>,
        activation: Option<Activation>,
    ) -> Result<usize> {
        self.check()?;
        let (m, k, n) = (self.shape(x).rows(), self.shape(x).cols(), self.shape(weight).rows());
        let layer = Layer { x, weight, bias, m, k, n };
        let operands: Vec<usize> = [x, weight].into_iter().chain(bias).collect();
        let wanted = operands.iter().any(|&var| self.wants_gradient(var));
        let count = m * n;
        let out = self.cuda.floats(count)?;
        let slopes = (wanted && activation.is_some()).then(|| self.cuda.floats(count)).transpose()?;
        let slopes_ptr = slopes.as_ref().map_or(0, |slopes| slopes.ptr());
        let bias_ptr = bias.map_or(0, |bias| self.ptr(bias));
        let (cols, kind) = (size(n), kind(activation));
        if k == 1 {
            let (x, weight) = (self.ptr(x), self.ptr(weight));
            let arguments = args![x, weight, bias_ptr, out.ptr(), slopes_ptr, kind, cols, count as u64];
            self.cuda.each("outer", count, arguments)?;
        } else if layer.is_narrow(&self.cuda) {
            let is_rectified = activation == Some(Activation::Relu);
            layer.forward_narrow(self, &out, if is_rectified { slopes_ptr } else { 0 }, is_rectified)?;
            if kind != 0 && !is_rectified {
                self.cuda.each(
                    "bias_activate",
                    count,
                    args![out.ptr(), 0_u64, slopes_ptr, kind, cols, count as u64],
                )?;
            }
        } else {
            let (a, b) = (self.operand(x)?, self.operand(weight)?);
            // Where nothing else follows, the product adds the bias by itself.
            let fused = if kind == 0 && k > 0 { bias_ptr } else { 0 };
            self.cuda.multiply(&Product {
                a: a.ptr,
                a_turned: false,
                b: b.ptr,
                b_turned: true,
                c: out.ptr(),
                m,
                n,
                k,
                add: false,
                wide: true,
                bias: fused,
            })?;
            if kind != 0 || (bias_ptr != 0 && fused == 0) {
                let arguments = args![out.ptr(), bias_ptr, slopes_ptr, kind, cols, count as u64];
                self.cuda.each("bias_activate", count, arguments)?;
            }
        }
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| layer.backward(&grad, slopes.as_ref(), back);
        Ok(self.push(&operands, Shape::Matrix(m, n), out, backward))
    }

    /// `x · weight`; shapes have been checked.
    pub(crate) fn matmul(&mut self, x: usize, weight: usize) -> Result<usize> {
        self.check()?;
        let (m, k, n) = (self.shape(x).rows(), self.shape(x).cols(), self.shape(weight).cols());
        let out = self.cuda.floats(m * n)?;
        let (a, b) = (self.operand(x)?, self.operand(weight)?);
        let plain = Product {
            a: a.ptr,
            a_turned: false,
            b: b.ptr,
            b_turned: false,
            c: out.ptr(),
            m,
            n,
            k,
            add: false,
            wide: true,
            bias: 0,
        };
        self.cuda.multiply(&plain)?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let cuda = Arc::clone(back.cuda());
            let dy = narrow(&cuda, grad.ptr(), m * n)?;
            if back.record.wants_gradient(weight) {
                let factor = back.record.operand(x)?;
                let lane = back.lane(&[weight])?;
                let Some(target) = back.target_on(lane, weight)? else { return Ok(()) };
                let (c, add) = (target.ptr, target.add);
                let (a, b) = (factor.ptr, dy.ptr);
                cuda.multiply_on(lane, &Product { a, a_turned: true, b, c, m: k, n, k: m, add, ..plain })?;
                let used = [Some(&grad), dy.keep.as_ref(), factor.keep.as_ref(), back.record.buffer(x)];
                cuda.hold(lane, used.into_iter().flatten());
            }
            if let Some(target) = back.target(x)? {
                let weight = back.record.operand(weight)?;
                let (a, b, c, add) = (dy.ptr, weight.ptr, target.ptr, target.add);
                cuda.multiply(&Product { a, b, b_turned: true, c, m, n: k, k: n, add, ..plain })?;
            }
            Ok(())
        };
        Ok(self.push(&[x, weight], Shape::Matrix(m, n), out, backward))
    }

    /// The mean binary cross-entropy; shapes have been checked.
    pub(crate) fn bce_with_logits(&mut self, logits: usize, targets: &[f32], count: usize) -> Result<usize> {
        self.check()?;
        let n = targets.len();
        let targets = self.cuda.upload(targets)?;
        let (loss, grads) = (self.cuda.floats(1)?, self.cuda.floats(n)?);
        let grid = Grid { blocks: (1, 1), threads: (256, 1), shared: 0 };
        let count = count.max(1) as f64;
        let arguments = args![self.ptr(logits), targets.ptr(), loss.ptr(), grads.ptr(), size(n), count];
        self.cuda.launch("bce", grid, arguments)?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            if !Arc::ptr_eq(&grad, &back.record.resident.one) {
                back.cuda().each("scale_by", n, args![grads.ptr(), grad.ptr(), n as u64])?;
            }
            back.give(logits, grads)
        };
        let var = self.push(&[logits], Shape::Vector(1), loss, backward);
        self.cross_entropy = Some(var);
        Ok(var)
    }
}

impl Layer {
    fn backward(self, grad: &Arc<Buffer>, slopes: Option<&Arc<Buffer>>, back: &mut Back<'_, '_>) -> Result<()> {
        let Self { x, weight, m, k, n, .. } = self;
        let cuda = Arc::clone(back.cuda());
        if self.is_narrow(&cuda) {
            return self.backward_narrow(grad, slopes, back);
        }
        let is_factor = back.record.wants_gradient(x) || (k > 1 && back.record.wants_gradient(weight));
        let copy = (is_factor && cuda.precision == Precision::Bf16).then(|| cuda.take(2 * m * n)).transpose()?;
        let dy = Operand { ptr: copy.as_ref().map_or(grad.ptr(), |copy| copy.ptr()), keep: copy };
        self.parameters(grad, slopes, &dy, back)?;
        if let Some(target) = back.target(x)? {
            let weight = back.record.operand(weight)?;
            cuda.multiply(&Product {
                a: dy.ptr,
                a_turned: false,
                b: weight.ptr,
                b_turned: false,
                c: target.ptr,
                m,
                n: k,
                k: n,
                add: target.add,
                wide: true,
                bias: 0,
            })?;
        }
        Ok(())
    }

    /// Makes of `grad` what products read, at `dy`, then the gradients of weight and bias on a stream of their own.
    fn parameters(
        self,
        grad: &Arc<Buffer>,
        slopes: Option<&Arc<Buffer>>,
        dy: &Operand,
        back: &mut Back<'_, '_>,
    ) -> Result<()> {
        let Self { x, weight, bias, m, k, n } = self;
        let cuda = Arc::clone(back.cuda());
        let is_outer = k == 1;
        let factor = if is_outer { Operand { ptr: back.record.ptr(x), keep: None } } else { back.record.operand(x)? };
        let vars: Vec<usize> = [weight].into_iter().chain(bias).collect();
        // Of what is summed: the gradient, and where there is one value a row, its products with that.
        let summed = [bias, is_outer.then_some(weight)];
        let has_sums = summed.into_iter().flatten().any(|var| back.record.wants_gradient(var));
        let strips = m.div_ceil(STRIP);
        let n_kinds = if is_outer { 2 } else { 1 };
        let partials = has_sums.then(|| cuda.floats(strips * n_kinds * n)).transpose()?;
        let settle = Settle {
            grad: grad.ptr(),
            slopes: slopes.map_or(0, |slopes| slopes.ptr()),
            copy: dy.keep.as_ref().map_or(0, |copy| copy.ptr()),
            weights: if is_outer { factor.ptr } else { 0 },
            partials: partials.as_ref().map_or(0, |partials| partials.ptr()),
        };
        // Sums alone can wait; what products read cannot.
        let is_awaited = settle.slopes != 0 || settle.copy != 0;
        if is_awaited {
            settle.run(&cuda, Lane::Main, (m, n))?;
        }
        let lane = back.lane(&vars)?;
        if let Some(partials) = &partials {
            if !is_awaited {
                settle.run(&cuda, lane, (m, n))?;
            }
            let mut to = [0; 2];
            for (to, var) in to.iter_mut().zip(summed) {
                *to = var.map_or(Ok(0), |var| back.sum_on(lane, var))?;
            }
            add_partials(&cuda, lane, partials, (strips, n), &to[..n_kinds])?;
        }
        if is_outer {
            // Its weight's gradient is one of the sums.
        } else if let Some(target) = back.target_on(lane, weight)? {
            let product = Product {
                a: dy.ptr,
                a_turned: true,
                b: factor.ptr,
                b_turned: false,
                c: target.ptr,
                m: n,
                n: k,
                k: m,
                add: target.add,
                wide: true,
                bias: 0,
            };
            cuda.multiply_on(lane, &product)?;
        }
        cuda.hold(
            lane,
            [Some(grad), dy.keep.as_ref(), factor.keep.as_ref(), back.record.buffer(x)].into_iter().flatten(),
        );
        Ok(())
    }
}
