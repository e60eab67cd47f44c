//! Recurrent cells behind their products.

use std::sync::Arc;

use super::context::args;
use super::linear::size;
use super::memory::Buffer;
use super::tape::{Back, Record, Target};
use crate::{Result, Shape};

fn place(target: Option<Target>) -> u64 {
    target.map_or(0, |target| target.ptr)
}

/// Bit `bit`, where there is a sum already.
fn adds(target: Option<Target>, bit: u32) -> u32 {
    u32::from(target.is_some_and(|target| target.add)) << bit
}

impl Record<'_> {
    /// The next state of a GRU; shapes have been checked.
    pub(crate) fn gru(&mut self, [input, hidden, h]: [usize; 3]) -> Result<usize> {
        self.check()?;
        let shape = self.shape(h);
        let (n, d) = (shape.len(), size(shape.cols()));
        let wanted = [input, hidden, h].iter().any(|&var| self.wants_gradient(var));
        let out = self.cuda.floats(n)?;
        let gates = wanted.then(|| self.cuda.floats(3 * n)).transpose()?;
        let kept = gates.as_ref().map_or(0, |gates| gates.ptr());
        let arguments = args![self.ptr(input), self.ptr(hidden), self.ptr(h), out.ptr(), kept, d, n as u64];
        self.cuda.each("gru", n, arguments)?;
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let Some(gates) = &gates else { return Ok(()) };
            let [d_input, d_hidden, d_h] = [back.target(input)?, back.target(hidden)?, back.target(h)?];
            let add = adds(d_input, 0) | adds(d_hidden, 1) | adds(d_h, 2);
            let (hidden, h) = (back.record.ptr(hidden), back.record.ptr(h));
            let (d_input, d_hidden, d_h) = (place(d_input), place(d_hidden), place(d_h));
            let arguments = args![grad.ptr(), gates.ptr(), hidden, h, d_input, d_hidden, d_h, add, d, n as u64];
            back.cuda().each("gru_backward", n, arguments)
        };
        Ok(self.push(&[input, hidden, h], shape, out, backward))
    }

    /// The next state of an LSTM; shapes have been checked.
    pub(crate) fn lstm(&mut self, gates: usize, c: Option<usize>) -> Result<usize> {
        self.check()?;
        let (rows, width) = (self.shape(gates).rows(), self.shape(gates).cols() / 4);
        let (n, d) = (rows * width, size(width));
        let operands: Vec<usize> = std::iter::once(gates).chain(c).collect();
        let wanted = operands.iter().any(|&var| self.wants_gradient(var));
        let out = self.cuda.floats(2 * n)?;
        let acts = wanted.then(|| self.cuda.floats(4 * n)).transpose()?;
        let kept = acts.as_ref().map_or(0, |acts| acts.ptr());
        let before = c.map_or(0, |c| self.ptr(c));
        self.cuda.each("lstm", n, args![self.ptr(gates), before, out.ptr(), kept, d, n as u64])?;
        let own = Arc::clone(&out);
        let backward = move |grad: Arc<Buffer>, back: &mut Back<'_, '_>| {
            let Some(acts) = &acts else { return Ok(()) };
            let d_gates = back.target(gates)?;
            let d_c = c.map(|c| back.target(c)).transpose()?.flatten();
            let add = adds(d_gates, 0) | adds(d_c, 1);
            let before = c.map_or(0, |c| back.record.ptr(c));
            let (d_gates, d_c) = (place(d_gates), place(d_c));
            let arguments = args![grad.ptr(), acts.ptr(), own.ptr(), before, d_gates, d_c, add, d, n as u64];
            back.cuda().each("lstm_backward", n, arguments)
        };
        Ok(self.push(&operands, Shape::Matrix(rows, 2 * width), out, backward))
    }
}
