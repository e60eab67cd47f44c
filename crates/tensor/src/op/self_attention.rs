//! Multi-head self-attention inside each sequence of a packed batch.

pub(crate) mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Dropout, Ragged, Result, Tape, Var};

/// The number of attention heads; each has an equal share of the width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads(pub usize);

impl Heads {
    /// The factor of attention scores where the heads share `width`: 1/√(width of a head).
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the scale is rounded once")]
    pub fn scale(self, width: usize) -> f32 {
        (1.0 / ((width / self.0.max(1)) as f64).sqrt()) as f32
    }
}

impl Tape<'_> {
    /// softmax(q·kᵀ/√d)·v for each head and sequence, the heads side by side, `[T, D]`.
    ///
    /// `qkv` is `[T, 3D]`: queries, keys and values side by side, as one linear layer makes them. A token attends to all
    /// tokens of its own sequence. `dropout` acts on the attention weights, after the softmax.
    pub fn self_attention(&mut self, qkv: Var, batch: &Ragged, heads: Heads, dropout: Dropout) -> Result<Var> {
        let width = self.shape(qkv).cols();
        if self.shape(qkv).rows() != batch.total() {
            return Err(self.shape_error("attention", "qkv", qkv, format_args!("[{}, 3D]", batch.total())));
        }
        if heads.0 == 0 || !width.is_multiple_of(3 * heads.0) || width == 0 {
            let needed = format!("[T, 3D] with D a multiple of {} heads", heads.0);
            return Err(self.shape_error("attention", "qkv", qkv, needed));
        }
        dispatch!(self.self_attention(qkv, batch, heads, dropout))
    }
}
