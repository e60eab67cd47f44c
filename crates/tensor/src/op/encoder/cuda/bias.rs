//! The biases of attention on the GPU: spread over the tokens of all sequences, so that attention reads them where it has its weights.

use std::sync::Arc;

use super::DeviceOffsets;
use crate::cuda::{
    Buffer, Context, CudaBackwardCtx, CudaTape, Grid, Stream, add_column_sums, dim, kernels, param::RelationSizes,
};
use crate::op::encoder::{AttentionBias, Stack};
use crate::{Error, Relations, Result};

kernels! {
    pub(crate) BIAS_KERNELS:
    /// The biases of all blocks, from a table of them.
    fn spread_biases(
        table: Ptr, words: Ptr, sizes: RelationSizes, starts: Ptr, weight_starts: Ptr, biases: Ptr, n_heads: Int,
        block_size: U64,
    );
    /// The gradients of the table's columns for one block, and partial sums of those of its first two rows.
    fn sum_bias_gradients(
        d_biases: Ptr, words: Ptr, sizes: RelationSizes, starts: Ptr, weight_starts: Ptr, d_table: Ptr, partials: Ptr,
        first_col: Int, cols: Int,
    );
}

/// The longest sequence with biases: positions of its pairs are 32-bit numbers in the kernels.
const MAX_LENGTH: usize = 1 << 15;

/// The biases of all blocks on the GPU, which backward replaces by their gradients.
pub(super) struct DeviceBias {
    biases: Arc<Buffer>,
    relations: Arc<Buffer>,
    sizes: RelationSizes,
    /// Biases of a block.
    block_size: usize,
}

/// The gradients of the table.
pub(super) struct TableGradients {
    values: Arc<Buffer>,
    /// `[sequences, 2 · cols]`: those of the first two rows.
    partials: Arc<Buffer>,
}

impl DeviceBias {
    /// Where the biases of a block begin.
    pub(super) fn of_block(&self, block: usize) -> u64 {
        self.biases.ptr() + 4 * (block * self.block_size) as u64
    }
}

/// Relations as kernels read them.
fn upload(cuda: &Arc<Context>, relations: &Relations) -> Result<Arc<Buffer>> {
    match relations.staged().filter(|staged| staged.is_of(cuda)) {
        Some(staged) => cuda.upload_staged(staged),
        None => cuda.upload(&relations.words()?),
    }
}

impl Stack {
    fn bias_cols(&self) -> usize {
        self.blocks.len() * self.n_heads
    }

    /// The biases of all blocks, if there are any.
    pub(super) fn spread_bias(&self, tape: &CudaTape<'_>, offsets: &DeviceOffsets) -> Result<Option<DeviceBias>> {
        let Some(AttentionBias { table, relations }) = &self.bias else { return Ok(None) };
        if self.batch.longest() > MAX_LENGTH || self.bias_cols() > usize::from(u16::MAX) {
            return Err(Error::NotOnGpu { operation: "biases of attention over more than 32,768 tokens" });
        }
        let cuda = tape.cuda();
        let sizes = relations.sizes();
        let sizes = [sizes.sequences, sizes.classes, sizes.tokens, sizes.pairs].map(dim);
        let block_size = self.n_heads * self.batch.ranges().map(|range| range.len() * range.len()).sum::<usize>();
        let relations = upload(cuda, relations)?;
        let biases = cuda.alloc_f32(self.blocks.len() * block_size)?;
        if !self.batch.is_empty() {
            let grid = Grid { blocks: (dim(self.batch.len()), dim(self.bias_cols())), threads: (256, 1), shared: 0 };
            let (words, to, n_heads) = (relations.ptr(), biases.ptr(), dim(self.n_heads));
            let (starts, weights) = (offsets.sequences, offsets.weights);
            let call = spread_biases(tape.ptr(*table), words, sizes, starts, weights, to, n_heads, block_size as u64);
            cuda.launch(grid, call)?;
        }
        Ok(Some(DeviceBias { biases, relations, sizes, block_size }))
    }

    /// Gradients of the table, not computed yet.
    pub(super) fn table_gradients(&self, cuda: &Arc<Context>) -> Result<Option<TableGradients>> {
        let Some(bias) = &self.bias else { return Ok(None) };
        let cols = self.bias_cols();
        let values = cuda.alloc_f32(bias.relations.n_rows() * cols)?;
        // The first two rows are summed later.
        cuda.fill_zero(values.ptr(), 4 * 2 * cols)?;
        Ok(Some(TableGradients { values, partials: cuda.alloc_f32(self.batch.len() * 2 * cols)? }))
    }

    /// The gradients of the table's columns for `block`, from those of its biases.
    pub(super) fn sum_bias(
        &self,
        cuda: &Context,
        (bias, gradients): (&DeviceBias, &TableGradients),
        offsets: &DeviceOffsets,
        block: usize,
    ) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let grid = Grid { blocks: (dim(self.batch.len()), dim(self.n_heads)), threads: (256, 1), shared: 0 };
        let (from, words) = (bias.of_block(block), bias.relations.ptr());
        let (to, partials) = (gradients.values.ptr(), gradients.partials.ptr());
        let (first_col, cols) = (dim(block * self.n_heads), dim(self.bias_cols()));
        let (starts, weights) = (offsets.sequences, offsets.weights);
        let call = sum_bias_gradients(from, words, bias.sizes, starts, weights, to, partials, first_col, cols);
        cuda.launch(grid, call)
    }

    /// Adds the gradients of all blocks to that of the table.
    pub(super) fn accumulate_bias(&self, gradients: TableGradients, ctx: &mut CudaBackwardCtx<'_>) -> Result<()> {
        let Some(bias) = &self.bias else { return Ok(()) };
        let (rows, cols) = (self.batch.len(), 2 * self.bias_cols());
        if rows > 0 {
            let cuda = Arc::clone(ctx.cuda());
            add_column_sums(&cuda, Stream::Main, gradients.partials.ptr(), (rows, cols), gradients.values.ptr())?;
        }
        ctx.accumulate(bias.table, gradients.values)
    }
}
