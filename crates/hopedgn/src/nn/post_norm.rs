//! The transformer block of TCL and CAWN: attention and a feed-forward layer, each normed after its residual.
//!
//! Shapes: `Tq` queries and `Tk` keys in as many groups, `d` width of both.

use hopedgn_tensor::{Activation, AttentionForm, Dropout, Heads, Ragged, Shape, Tape, Tensor, Var, init};

use super::{Linear, Norm, ParamBuilder};
use crate::Result;

/// norm1(x + attention), then norm2 of that plus what the feed-forward layer, four times as wide, makes of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PostNorm {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    norm1: Norm,
    up: Linear,
    down: Linear,
    norm2: Norm,
    heads: Heads,
    scale: f32,
}

impl ParamBuilder<'_> {
    /// A post-norm transformer block; `width` is a multiple of `n_heads`.
    pub(crate) fn post_norm(&mut self, name: &str, width: usize, n_heads: usize) -> Result<PostNorm> {
        let out = format!("{name}.attention.out");
        let out_weights = init::attention_out(&mut self.random(&out), width);
        Ok(PostNorm {
            query: self.attention_in(&format!("{name}.attention.query"), width)?,
            key: self.attention_in(&format!("{name}.attention.key"), width)?,
            value: self.attention_in(&format!("{name}.attention.value"), width)?,
            out: self.add(&out, out_weights)?,
            norm1: self.norm(&format!("{name}.norm1"), width)?,
            up: self.linear(&format!("{name}.up"), width, 4 * width)?,
            down: self.linear(&format!("{name}.down"), 4 * width, width)?,
            norm2: self.norm(&format!("{name}.norm2"), width)?,
            heads: Heads(n_heads),
            scale: Heads(n_heads).scale(width),
        })
    }

    /// One of the three projections of an attention, drawn as a third of their packed matrix `[3d, d]`.
    fn attention_in(&mut self, name: &str, width: usize) -> Result<Linear> {
        let bound = (6.0 / (4 * width).max(1) as f64).sqrt();
        let weight = init::uniform(&mut self.random(name), Shape::Matrix(width, width), bound);
        self.add(name, (weight, Tensor::zeros(Shape::Vector(width))))
    }
}

impl PostNorm {
    /// `[Tq, d]` for `queries` `[Tq, d]` that look at `keys` `[Tk, d]`: those of group `i` at those of group `i`.
    #[expect(clippy::too_many_arguments, reason = "two matrices, what divides each, and how")]
    pub(crate) fn forward(
        self,
        tape: &mut Tape<'_>,
        queries: Var,
        keys: Var,
        q_groups: &Ragged,
        k_groups: &Ragged,
        dropout: Dropout,
    ) -> Result<Var> {
        let q = self.query.forward(tape, queries, None)?; // [Tq, d]
        let k = self.key.forward(tape, keys, None)?; // [Tk, d]
        let v = self.value.forward(tape, keys, None)?;
        let form = AttentionForm { heads: self.heads, scale: self.scale, shared: false, dropout: dropout.site(0) };
        let seen = tape.attention(q, k, v, q_groups, k_groups, form)?; // [Tq, d]
        let seen = self.out.forward(tape, seen, None)?;
        let seen = tape.dropout(seen, dropout.site(1));
        let sum = tape.add(queries, seen)?;
        let x = self.norm1.forward(tape, sum)?;
        let hidden = self.up.forward(tape, x, Some(Activation::Relu))?; // [Tq, 4d]
        let hidden = tape.dropout(hidden, dropout.site(2));
        let made = self.down.forward(tape, hidden, None)?; // [Tq, d]
        let made = tape.dropout(made, dropout.site(3));
        let sum = tape.add(x, made)?;
        self.norm2.forward(tape, sum)
    }
}
