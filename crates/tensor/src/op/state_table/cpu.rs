//! State tables on the CPU.

use std::sync::PoisonError;

use super::{StateTable, Values};
use crate::scratch;
use crate::tape::CpuTape;
use crate::{Error, Indices, Result, Shape, Tensor, Var};

impl CpuTape<'_> {
    pub(crate) fn read_state(&mut self, table: &StateTable, rows: &Indices) -> Result<Var> {
        let Values::Cpu(from) = &table.values else { return Err(Error::OtherDevice { operation: "read state" }) };
        let shape = Shape::Matrix(rows.len(), table.cols);
        let mut values = scratch::take(shape.len());
        let from = from.read().unwrap_or_else(PoisonError::into_inner);
        let cols = table.cols;
        self.threads().rows(&mut values, cols, |first, to| {
            for (to, &row) in to.chunks_exact_mut(cols).zip(&rows[first..]) {
                to.copy_from_slice(&from[row as usize * cols..][..cols]);
            }
        });
        Ok(self.push(&[], Tensor::from_parts(shape, values), |_, _, _| {}))
    }

    pub(crate) fn write_state(&mut self, table: &StateTable, rows: &Indices, values: Var) -> Result<()> {
        let Values::Cpu(to) = &table.values else { return Err(Error::OtherDevice { operation: "write state" }) };
        let cols = table.cols;
        let mut to = to.write().unwrap_or_else(PoisonError::into_inner);
        for (from, &row) in self.value(values).values().chunks_exact(cols.max(1)).zip(rows.iter()) {
            to[row as usize * cols..][..cols].copy_from_slice(from);
        }
        Ok(())
    }
}
