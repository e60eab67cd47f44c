//! Column sums of gradients: partial sums over strips of rows, then their sum in a fixed order.

use std::sync::Arc;

use super::context::{Context, Grid, dim};
use super::kernels::{column_sums_elem, finish_linear_grad};
use super::memory::Buffer;
use super::streams::{PartialSums, Stream};
use crate::Result;

/// Rows of a strip whose columns are summed together.
pub(crate) const STRIP: usize = 64;

/// One pass over a layer's gradient `[rows, cols]`; a pointer that is 0 leaves its part out.
#[derive(Default, Clone, Copy)]
pub(crate) struct LinearGradPass {
    pub(crate) grad: u64,
    /// The derivative of the activation, multiplied into the gradient in place.
    pub(crate) slopes: u64,
    /// Where the gradient goes as a GEMM operand.
    pub(crate) copy: u64,
    /// A weight for each row, `[rows, 1]`, of a second sum.
    pub(crate) weights: u64,
    /// Partial sums over strips, `[strips, cols]`, or `[strips, 2 · cols]` with weights.
    pub(crate) partials: u64,
}

impl LinearGradPass {
    pub(crate) fn run(self, cuda: &Context, stream: Stream, (rows, cols): (usize, usize)) -> Result<()> {
        let Self { grad, slopes, copy, weights, partials } = self;
        let blocks = (dim(cols.div_ceil(32)), dim(rows.div_ceil(STRIP)));
        let grid = Grid { blocks, threads: (32, 8), shared: 0 };
        let call = finish_linear_grad(grad, slopes, copy, weights, partials, dim(rows), dim(cols), dim(STRIP));
        cuda.launch_on(stream, grid, call)
    }
}

/// `to += ` the column sums of `x` `[rows, cols]`.
pub(crate) fn add_column_sums(
    cuda: &Arc<Context>,
    stream: Stream,
    x: u64,
    (rows, cols): (usize, usize),
    to: u64,
) -> Result<()> {
    add_sums(cuda, stream, (rows, cols), to, |partials| {
        LinearGradPass { grad: x, partials, ..LinearGradPass::default() }.run(cuda, stream, (rows, cols))
    })
}

/// [`add_column_sums`] of a matrix in the element type of GEMM operands.
pub(crate) fn add_column_sums_elem(
    cuda: &Arc<Context>,
    stream: Stream,
    x: u64,
    (rows, cols): (usize, usize),
    to: u64,
) -> Result<()> {
    add_sums(cuda, stream, (rows, cols), to, |partials| {
        let blocks = (dim(cols.div_ceil(4 * 32)), dim(rows.div_ceil(STRIP)));
        let grid = Grid { blocks, threads: (32, 8), shared: 0 };
        cuda.launch_on(stream, grid, column_sums_elem(x, partials, dim(rows), dim(cols), dim(STRIP)))
    })
}

/// Adds the partial sums that `sum` leaves for each strip of rows.
fn add_sums(
    cuda: &Arc<Context>,
    stream: Stream,
    (rows, cols): (usize, usize),
    to: u64,
    sum: impl FnOnce(u64) -> Result<()>,
) -> Result<()> {
    let strips = rows.div_ceil(STRIP);
    let partials = cuda.alloc_f32(strips * cols)?;
    sum(partials.ptr())?;
    add_partials(cuda, stream, &partials, (strips, cols), &[to])
}

/// Adds `n` partial sums `[n, to.len() · cols]` to gradients of `cols` values each; a gradient at 0 is skipped. On the
/// gradient stream this is deferred, so that many sums share one kernel.
pub(crate) fn add_partials(
    cuda: &Arc<Context>,
    stream: Stream,
    partials: &Arc<Buffer>,
    (n, cols): (usize, usize),
    to: &[u64],
) -> Result<()> {
    let parts: Vec<(usize, u64)> = to.iter().map(|&to| (cols, to)).collect();
    add_partials_of_widths(cuda, stream, partials, n, &parts)
}

/// [`add_partials`] for gradients of different widths: `(width, gradient)` each.
pub(crate) fn add_partials_of_widths(
    cuda: &Arc<Context>,
    stream: Stream,
    partials: &Arc<Buffer>,
    n: usize,
    parts: &[(usize, u64)],
) -> Result<()> {
    let stride = parts.iter().map(|(cols, _)| cols).sum();
    let mut end = 0;
    let sums = parts.iter().map(|&(cols, to)| {
        end += cols;
        PartialSums { partials: Arc::clone(partials), first: end - cols, n, stride, cols, to }
    });
    let sums: Vec<PartialSums> = sums.filter(|sum| sum.to != 0).collect();
    if sums.is_empty() {
        return Ok(());
    }
    cuda.keep_alive(stream, [partials]);
    if stream == Stream::Grad { cuda.add_at_join(sums) } else { cuda.add_now(&sums) }
}
