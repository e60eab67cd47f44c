//! Layers to few values, such as the channels of a token: one kernel on the way there, one on the way back.

use std::sync::Arc;

use super::context::{Context, Grid, args};
use super::linear::{Layer, add_parts, size};
use super::memory::Buffer;
use super::tape::{Back, Record};
use crate::{Precision, Result};

/// The widest result.
const NARROW: usize = 64;

/// About as many blocks as a large card runs at once.
const BLOCKS: usize = 396;

/// With fewer rows, or longer ones, a library fills a card as well or better.
const LEAST_ROWS: usize = 4096;
const LONGEST: usize = 192;

/// Bytes of a tile's row in shared memory.
fn tile_row(cuda: &Context) -> usize {
    // 16 bytes more than the values take: neighbours lie in different banks.
    NARROW * cuda.precision.bytes() + 16
}

impl Layer {
    /// Whether the layer is for these kernels, which read and write pairs and round as products do.
    pub(super) fn is_narrow(&self, cuda: &Context) -> bool {
        let are_pairs = [self.n, self.k].iter().all(|&width| width >= 2 && width.is_multiple_of(2));
        are_pairs && self.n <= NARROW && self.k <= LONGEST && self.m >= LEAST_ROWS && cuda.precision != Precision::F32
    }

    /// `x · weightᵀ + bias`, rectified if asked for.
    pub(super) fn forward_narrow(
        &self,
        record: &Record<'_>,
        out: &Buffer,
        slopes: u64,
        is_rectified: bool,
    ) -> Result<()> {
        let Self { m, k, n, .. } = *self;
        let (x, weight) = (record.source(self.x), record.operand(self.weight)?);
        let bias = self.bias.map_or(0, |bias| record.ptr(bias));
        let shared = 2 * NARROW * tile_row(&record.cuda) + 4 * NARROW;
        let grid = Grid { blocks: (size(m.div_ceil(NARROW)), 1), threads: (128, 1), shared: size(shared) };
        let (x, is_wide, is_rectified) = (x.ptr, u32::from(x.is_wide), u32::from(is_rectified));
        let (rows, n, k) = (size(m), size(n), size(k));
        let arguments = args![x, is_wide, weight.ptr, bias, out.ptr(), slopes, is_rectified, rows, n, k];
        record.cuda.launch("narrow_forward", grid, arguments)
    }

    pub(super) fn backward_narrow(
        &self,
        grad: &Arc<Buffer>,
        slopes: Option<&Arc<Buffer>>,
        back: &mut Back<'_, '_>,
    ) -> Result<()> {
        let Self { x, weight, bias, m, k, n } = *self;
        let cuda = Arc::clone(back.cuda());
        let chunks = k.div_ceil(NARROW);
        let strip = m.div_ceil((BLOCKS / chunks).max(1)).next_multiple_of(NARROW);
        let strips = m.div_ceil(strip);
        let partials = cuda.floats(strips * n * (k + 1))?;
        let blocks = (size(chunks), size(strips));
        let grid = Grid { blocks, threads: (128, 1), shared: size(3 * NARROW * tile_row(&cuda)) };
        let vars: Vec<usize> = [weight].into_iter().chain(bias).collect();
        let target = back.target(x)?;
        let (dx, add) = target.map_or((0, 0), |target| (target.ptr, u32::from(target.add)));
        let (source, factor) = (back.record.source(x), back.record.operand(weight)?);
        let slopes_ptr = slopes.map_or(0, |slopes| slopes.ptr());
        let (grads, x_ptr, is_wide, sums) = (grad.ptr(), source.ptr, u32::from(source.is_wide), partials.ptr());
        let sizes = [m, n, k, strip].map(size);
        let arguments =
            args![grads, slopes_ptr, x_ptr, is_wide, factor.ptr, dx, add, sums, sizes[0], sizes[1], sizes[2], sizes[3]];
        // Where nobody waits for the gradient of x, nobody waits for any of it.
        let lane = if target.is_some() {
            cuda.launch("narrow_backward", grid, arguments)?;
            back.lane(&vars)?
        } else {
            let lane = back.lane(&vars)?;
            cuda.launch_on(lane, "narrow_backward", grid, arguments)?;
            let used = [Some(grad), slopes, source.keep.as_ref(), factor.keep.as_ref()];
            cuda.hold(lane, used.into_iter().flatten());
            lane
        };
        let (d_weight, d_bias) = (back.sum_on(lane, weight)?, bias.map_or(Ok(0), |bias| back.sum_on(lane, bias))?);
        add_parts(&cuda, lane, &partials, strips, &[(n * k, d_weight), (n, d_bias)])
    }
}
