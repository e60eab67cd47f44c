//! The linear layer and the loss.

#![expect(clippy::many_single_char_names, reason = "matrices and their sizes are called as in the formulas")]

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::memory::Buffer;
use super::product::Product;
use super::record::{Back, Operand, Record, narrow};
use super::side::Lane;
use crate::{Activation, Result, Shape};

/// Rows of a strip whose columns are summed together.
const STRIP: usize = 128;

/// What kernels call a function.
fn kind(activation: Option<Activation>) -> u32 {
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

/// `to += ` the sum over `rows` of `x` `[rows, cols]`, each times its weight where there are weights.
pub(super) fn add_column_sums(
    cuda: &Arc<Context>,
    lane: Lane,
    (x, weights): (u64, u64),
    (rows, cols): (usize, usize),
    to: u64,
) -> Result<()> {
    let strips = rows.div_ceil(STRIP);
    let partials = cuda.floats(strips * cols)?;
    let grid = Grid { blocks: (size(cols.div_ceil(32)), size(strips)), threads: (32, 8), shared: 0 };
    let sizes = (size(rows), size(cols), size(STRIP));
    cuda.launch_on(lane, "column_sums", grid, args![x, weights, partials.ptr(), sizes.0, sizes.1, sizes.2])?;
    add_partials(cuda, lane, &partials, (strips, cols), to)
}

/// The same for what products are made of.
pub(super) fn add_column_sums_elem(
    cuda: &Arc<Context>,
    lane: Lane,
    x: u64,
    (rows, cols): (usize, usize),
    to: u64,
) -> Result<()> {
    let strips = rows.div_ceil(STRIP);
    let partials = cuda.floats(strips * cols)?;
    let grid = Grid { blocks: (size(cols.div_ceil(4 * 32)), size(strips)), threads: (32, 8), shared: 0 };
    cuda.launch_on(lane, "column_sums_elem", grid, args![x, partials.ptr(), size(rows), size(cols), size(STRIP)])?;
    add_partials(cuda, lane, &partials, (strips, cols), to)
}

pub(super) fn add_partials(
    cuda: &Context,
    lane: Lane,
    partials: &Arc<Buffer>,
    (n, cols): (usize, usize),
    to: u64,
) -> Result<()> {
    let grid = Grid { blocks: (size(cols.div_ceil(8)), 1), threads: (32, 8), shared: 0 };
    cuda.launch_on(lane, "add_partials", grid, args![partials.ptr(), to, size(n), size(cols)])?;
    cuda.hold(lane, [partials]);
    Ok(())
}

#[derive(Clone, Copy)]
struct Layer {
    x: usize,
    weight: usize,
    bias: Option<usize>,
    m: usize,
    k: usize,
    n: usize,
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
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            if let Some(slopes) = &slopes {
                back.cuda().each("multiply", count, args![grad.ptr(), slopes.ptr(), count as u64])?;
            }
            layer.backward(&grad, back)
        };
        Ok(self.push(&operands, Shape::Matrix(m, n), out, backward))
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
            back.cuda().each("scale_by", n, args![grads.ptr(), grad.ptr(), n as u64])?;
            back.give(logits, grads)
        };
        Ok(self.push(&[logits], Shape::Vector(1), loss, backward))
    }
}

impl Layer {
    fn backward(self, grad: &Arc<Buffer>, back: &mut Back<'_, '_>) -> Result<()> {
        let Self { x, weight, m, k, n, .. } = self;
        let cuda = Arc::clone(back.cuda());
        let dy = narrow(&cuda, grad.ptr(), m * n)?;
        self.parameters(grad, &dy, back)?;
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

    /// The gradients of weight and bias, on a stream of their own.
    fn parameters(self, grad: &Arc<Buffer>, dy: &Operand, back: &mut Back<'_, '_>) -> Result<()> {
        let Self { x, weight, bias, m, k, n } = self;
        let cuda = Arc::clone(back.cuda());
        let factor = if k == 1 { Operand { ptr: back.record.ptr(x), keep: None } } else { back.record.operand(x)? };
        let vars: Vec<usize> = [weight].into_iter().chain(bias).collect();
        let lane = back.lane(&vars)?;
        if let Some(bias) = bias {
            let to = back.sum_on(lane, bias)?;
            if to != 0 {
                add_column_sums(&cuda, lane, (grad.ptr(), 0), (m, n), to)?;
            }
        }
        if k == 1 {
            let to = back.sum_on(lane, weight)?;
            if to != 0 {
                add_column_sums(&cuda, lane, (grad.ptr(), factor.ptr), (m, n), to)?;
            }
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
