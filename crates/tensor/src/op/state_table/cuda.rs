//! State tables on the GPU.

use super::{StateTable, Values};
use crate::cuda::{CudaTape, dim};
use crate::op::rows::{gather_rows, scatter_rows};
use crate::{Error, Indices, Result, Shape, Var};

impl CudaTape<'_> {
    pub(crate) fn read_state(&mut self, table: &StateTable, rows: &Indices) -> Result<Var> {
        let Values::Cuda(_, from) = &table.values else { return Err(Error::OtherDevice { operation: "read state" }) };
        self.check_deferred()?;
        let shape = Shape::Matrix(rows.len(), table.cols);
        let out = self.cuda().alloc_f32(shape.len())?;
        let indices = self.indices(rows)?.buffer;
        gather_rows(self.cuda(), from.ptr(), &indices, rows.len(), shape.cols(), out.ptr())?;
        Ok(self.push(&[], shape, out, |_, _| Ok(())))
    }

    pub(crate) fn write_state(&mut self, table: &StateTable, rows: &Indices, values: Var) -> Result<()> {
        let Values::Cuda(_, to) = &table.values else { return Err(Error::OtherDevice { operation: "write state" }) };
        self.check_deferred()?;
        let (n, cols) = (self.shape(values).len(), self.shape(values).cols());
        let indices = self.indices(rows)?.buffer;
        let call = scatter_rows(self.ptr(values), indices.ptr(), to.ptr(), dim(cols), n as u64);
        self.cuda().launch_1d(n, call)
    }
}
