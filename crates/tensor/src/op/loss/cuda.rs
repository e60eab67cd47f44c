//! Binary cross-entropy on the GPU.

use std::sync::Arc;

use super::BceTerm;
use crate::cuda::{Buffer, CudaBackwardCtx, CudaTape, Grid, dim, kernels};
use crate::{Result, Shape, Var};

kernels! {
    pub(crate) KERNELS:
    /// The loss, summed in double by one block, and the gradients of the logits.
    fn bce_with_logits(logits: Ptr, targets: Ptr, loss: Ptr, grads: Ptr, n: Int, count: Double);
    /// The same of weighted terms; targets, then offsets, then weights.
    fn weighted_bce_with_logits(logits: Ptr, terms: Ptr, loss: Ptr, grads: Ptr, n: Int);
    /// `grads *= *by`.
    fn scale_values(grads: Ptr, by: Ptr, n: U64);
}

impl CudaTape<'_> {
    pub(crate) fn bce_with_logits(&mut self, logits: Var, targets: &[f32], count: usize) -> Result<Var> {
        self.check_deferred()?;
        let n = targets.len();
        let targets = self.cuda().upload(targets)?;
        let (loss, grads) = (self.cuda().alloc_f32(1)?, self.cuda().alloc_f32(n)?);
        let grid = Grid { blocks: (1, 1), threads: (256, 1), shared: 0 };
        let count = count.max(1) as f64;
        let call = bce_with_logits(self.ptr(logits), targets.ptr(), loss.ptr(), grads.ptr(), dim(n), count);
        self.cuda().launch(grid, call)?;
        Ok(self.push_loss(logits, loss, grads, n))
    }

    pub(crate) fn weighted_bce_with_logits(&mut self, logits: Var, terms: &[BceTerm]) -> Result<Var> {
        self.check_deferred()?;
        let n = terms.len();
        let columns: [fn(&BceTerm) -> f32; 3] = [|of| of.target, |of| of.offset, |of| of.weight];
        let values: Vec<f32> = columns.iter().flat_map(|column| terms.iter().map(column)).collect();
        let terms = self.cuda().upload(&values)?;
        let (loss, grads) = (self.cuda().alloc_f32(1)?, self.cuda().alloc_f32(n)?);
        let grid = Grid { blocks: (1, 1), threads: (256, 1), shared: 0 };
        let call = weighted_bce_with_logits(self.ptr(logits), terms.ptr(), loss.ptr(), grads.ptr(), dim(n));
        self.cuda().launch(grid, call)?;
        Ok(self.push_loss(logits, loss, grads, n))
    }

    /// A loss whose gradients of the logits are known already.
    fn push_loss(&mut self, logits: Var, loss: Arc<Buffer>, grads: Arc<Buffer>, n: usize) -> Var {
        let backward = move |grad: Arc<Buffer>, ctx: &mut CudaBackwardCtx<'_>| {
            if !ctx.is_one(&grad) {
                ctx.cuda().launch_1d(n, scale_values(grads.ptr(), grad.ptr(), n as u64))?;
            }
            ctx.accumulate(logits, grads)
        };
        let var = self.push(&[logits], Shape::Vector(1), loss, backward);
        self.set_cross_entropy(var);
        var
    }
}
