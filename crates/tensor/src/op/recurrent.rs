//! Recurrent cells after their linear layers: GRU and LSTM as PyTorch defines them.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Result, Shape, Tape, Var};
pub(crate) use cuda::KERNELS;

impl Tape<'_> {
    /// The next state of a GRU, `[M, D]`, from its state `h` `[M, D]` and the outputs of its two linear layers: `input` of
    /// the input and `hidden` of the state, `[M, 3D]` each, in the order reset gate, update gate, new state.
    ///
    /// ```text
    /// r = σ(input_r + hidden_r),  z = σ(input_z + hidden_z),  n = tanh(input_n + r · hidden_n)
    /// h' = (1 − z) · n + z · h
    /// ```
    pub fn gru(&mut self, input: Var, hidden: Var, h: Var) -> Result<Var> {
        let (rows, d) = (self.shape(h).rows(), self.shape(h).cols());
        for (what, var) in [("the input", input), ("the hidden part", hidden)] {
            if self.shape(var) != Shape::Matrix(rows, 3 * d) {
                return Err(self.shape_error("gru", what, var, Shape::Matrix(rows, 3 * d)));
            }
        }
        dispatch!(self.gru(input, hidden, h))
    }

    /// The next state of an LSTM, `[M, 2D]`: h, then c. `gates` `[M, 4D]` is the sum of the outputs of its two linear
    /// layers, in the order input gate, forget gate, new state, output gate. Without `c` `[M, D]`, the state was zero.
    ///
    /// ```text
    /// c' = σ(f) · c + σ(i) · tanh(g),  h' = σ(o) · tanh(c')
    /// ```
    pub fn lstm(&mut self, gates: Var, c: Option<Var>) -> Result<Var> {
        let (rows, width) = (self.shape(gates).rows(), self.shape(gates).cols());
        if !width.is_multiple_of(4) {
            return Err(self.shape_error("lstm", "the gates", gates, "[M, 4D]"));
        }
        let d = width / 4;
        if let Some(c) = c.filter(|&c| self.shape(c) != Shape::Matrix(rows, d)) {
            return Err(self.shape_error("lstm", "the state", c, Shape::Matrix(rows, d)));
        }
        dispatch!(self.lstm(gates, c))
    }
}
