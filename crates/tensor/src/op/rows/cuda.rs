//! Row operations on the GPU.

use std::sync::Arc;

use crate::cuda::{
    Buffer, Context, CudaBackwardCtx, CudaTape, DeviceIndices, GradTarget, Staged, Stream, add_column_sums, dim,
    kernels,
};
use crate::indices::{RowListSizes, StagedIndices};
use crate::{Indices, Ragged, Result, Shape, Var};

kernels! {
    pub(crate) KERNELS:
    /// Row `indices[i]` of `from` as row i.
    fn gather(from: Ptr, indices: Ptr, to: Ptr, cols: Int, n: U64);
    /// Row i of `from` as row `indices[i]`; no index occurs twice.
    fn scatter_rows(from: Ptr, indices: Ptr, to: Ptr, cols: Int, n: U64);
    /// Sums lists of rows: `to[i] (+)= Σ from[rows[starts[i]..starts[i + 1]]]`; a null `rows` is the identity.
    fn sum_row_lists(
        from: Ptr, starts: Ptr, rows: Ptr, to: Ptr, cols: Int, n_rows: Int, add: Int,
    );
    /// One row, many times.
    fn repeat_row(row: Ptr, to: Ptr, cols: Int, n: U64);
}

/// [`RowLists`](crate::indices::RowLists) on the GPU.
struct DeviceRowLists {
    buffer: Arc<Buffer>,
    /// Bytes before them in the buffer.
    offset: u64,
    sizes: RowListSizes,
}

impl DeviceRowLists {
    /// The lists that were staged with the indices, or else fresh ones.
    fn new(cuda: &Arc<Context>, indices: &Indices, on_gpu: &DeviceIndices, n_rows: usize) -> Result<Self> {
        if let Some(sizes) = on_gpu.lists.filter(|sizes| sizes.rows == n_rows) {
            return Ok(Self { buffer: Arc::clone(&on_gpu.buffer), offset: 4 * indices.len() as u64, sizes });
        }
        let lists = indices.row_lists(n_rows);
        Ok(Self { buffer: cuda.upload_all(&lists.parts())?, offset: 0, sizes: lists.sizes() })
    }

    /// Sums the rows of `from` that belong to each target row, always in the same order.
    fn sum(&self, cuda: &Arc<Context>, from: u64, cols: usize, to: GradTarget) -> Result<()> {
        let RowListSizes { rows, lists, positions: n_positions, is_split } = self.sizes;
        let starts = self.buffer.ptr() + self.offset;
        let positions = starts + 4 * (lists as u64 + 1);
        let sum = |from: u64, (starts, positions): (u64, u64), n: usize, to: GradTarget| {
            let add = u32::from(to.accumulate);
            cuda.launch_1d(n * cols, sum_row_lists(from, starts, positions, to.ptr, dim(cols), dim(n), add))
        };
        if !is_split {
            return sum(from, (starts, positions), rows, to);
        }
        // First the pieces of long lists, in parallel; then the pieces of each row, which are adjacent.
        let sums = cuda.alloc_f32(lists * cols)?;
        sum(from, (starts, positions), lists, GradTarget { ptr: sums.ptr(), accumulate: false })?;
        let pieces = positions + 4 * n_positions as u64;
        sum(sums.ptr(), (pieces, 0), rows, to)
    }
}

impl Context {
    /// Copies `indices` to pinned memory, with their row lists if `n_rows` is given.
    pub(crate) fn stage_indices(self: &Arc<Self>, indices: &Indices, n_rows: Option<usize>) -> Result<StagedIndices> {
        let Some(n_rows) = n_rows else {
            return Ok(StagedIndices { staged: self.stage::<u32>(&[indices])?, lists: None });
        };
        indices.check("stage", n_rows)?;
        let lists = indices.row_lists(n_rows);
        let [starts, positions, pieces] = lists.parts();
        let staged = self.stage(&[&**indices, starts, positions, pieces])?;
        Ok(StagedIndices { staged, lists: Some(lists.sizes()) })
    }

    /// Copies the offsets of a ragged batch to pinned memory.
    pub(crate) fn stage_offsets(self: &Arc<Self>, batch: &Ragged) -> Result<Staged> {
        self.stage(&[&batch.offsets_u32()])
    }
}

/// Launches a gather of `n` rows.
pub(crate) fn gather_rows(
    cuda: &Arc<Context>,
    from: u64,
    indices: &Buffer,
    n: usize,
    cols: usize,
    to: u64,
) -> Result<()> {
    cuda.launch_1d(n * cols, gather(from, indices.ptr(), to, dim(cols), (n * cols) as u64))
}

impl CudaTape<'_> {
    pub(crate) fn gather(&mut self, x: Var, indices: Indices) -> Result<Var> {
        self.check_deferred()?;
        let (rows, cols) = (self.shape(x).rows(), self.shape(x).cols());
        let out = self.cuda().alloc_f32(indices.len() * cols)?;
        let on_gpu = self.indices(&indices)?;
        gather_rows(self.cuda(), self.ptr(x), &on_gpu.buffer, indices.len(), cols, out.ptr())?;
        let shape = Shape::Matrix(indices.len(), cols);
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| match ctx.grad_target(x)? {
            None => Ok(()),
            Some(target) => {
                let lists = DeviceRowLists::new(ctx.cuda(), &indices, &on_gpu, rows)?;
                lists.sum(ctx.cuda(), grad.ptr(), cols, target)
            }
        };
        Ok(self.push(&[x], shape, out, backward))
    }

    pub(crate) fn scatter(&mut self, x: Var, indices: Indices, n_rows: usize) -> Result<Var> {
        self.check_deferred()?;
        let cols = self.shape(x).cols();
        let out = self.cuda().alloc_f32(n_rows * cols)?;
        let on_gpu = self.indices(&indices)?;
        if indices.is_increasing() {
            // No index occurs twice: nothing has to be summed.
            let n = indices.len() * cols;
            self.cuda().fill_zero(out.ptr(), 4 * n_rows * cols)?;
            let call = scatter_rows(self.ptr(x), on_gpu.buffer.ptr(), out.ptr(), dim(cols), n as u64);
            self.cuda().launch_1d(n, call)?;
        } else {
            let lists = DeviceRowLists::new(self.cuda(), &indices, &on_gpu, n_rows)?;
            lists.sum(self.cuda(), self.ptr(x), cols, GradTarget { ptr: out.ptr(), accumulate: false })?;
        }
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let gathered = ctx.cuda().alloc_f32(indices.len() * cols)?;
            gather_rows(ctx.cuda(), grad.ptr(), &on_gpu.buffer, indices.len(), cols, gathered.ptr())?;
            ctx.accumulate(x, gathered)
        };
        Ok(self.push(&[x], Shape::Matrix(n_rows, cols), out, backward))
    }

    /// The same memory with another shape.
    pub(crate) fn reshape(&mut self, x: Var, shape: Shape) -> Result<Var> {
        self.check_deferred()?;
        let buffer = self.buffer_or_copy(x)?;
        Ok(self.push(&[x], shape, buffer, move |grad, ctx| ctx.accumulate(x, grad)))
    }

    pub(crate) fn repeat_row(&mut self, x: Var, n_rows: usize) -> Result<Var> {
        self.check_deferred()?;
        let cols = self.shape(x).cols();
        let n = n_rows * cols;
        let out = self.cuda().alloc_f32(n)?;
        self.cuda().launch_1d(n, repeat_row(self.ptr(x), out.ptr(), dim(cols), n as u64))?;
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            let to = ctx.grad_sum(x)?;
            let cuda = Arc::clone(ctx.cuda());
            if to == 0 { Ok(()) } else { add_column_sums(&cuda, Stream::Main, grad.ptr(), (n_rows, cols), to) }
        };
        Ok(self.push(&[x], Shape::Matrix(n_rows, cols), out, backward))
    }
}
