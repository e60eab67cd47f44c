//! Transformer blocks over packed sequences, then means of rows: the whole stack as one operation.
//!
//! It computes what the small operations compute one after another, but keeps far less: of each LayerNorm the normalised
//! rows, of the GELU its slope (with dropout's factor already in it), one residual stream and one gradient of it. All of
//! that lies in [`scratch`], which a thread uses again for its next chunk.
//!
//! The last block's second feed-forward product stands behind the mean: mean(g·Wᵀ + b) = mean(g)·Wᵀ + b, so that it has
//! one row a pool instead of one a token.

mod block;
mod mean;
#[cfg(test)]
mod tests;

use super::attention;
use crate::cuda;
use crate::gemm;
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::add_to;
use crate::{Dropout, Heads, Ragged, Result, Shape, Tape, Tensor, Var};
use block::{AttentionKept, FeedKept, Form, Linear, Weights};

/// The weights of one pre-norm block as variables; each pair is `[weight, bias]`.
#[derive(Debug, Clone, Copy)]
pub struct BlockVars {
    /// Scale and shift of the LayerNorm before attention, `[D]` each.
    pub norm1: [Var; 2],
    /// Queries, keys and values, `[3D, D]` and `[3D]`.
    pub qkv: [Var; 2],
    /// What follows attention, `[D, D]` and `[D]`.
    pub out: [Var; 2],
    /// Scale and shift of the LayerNorm before the feed-forward layers, `[D]` each.
    pub norm2: [Var; 2],
    /// The first feed-forward layer, `[F, D]` and `[F]`.
    pub up: [Var; 2],
    /// The second feed-forward layer, `[D, F]` and `[D]`.
    pub down: [Var; 2],
}

/// How the blocks of an [encoder](Tape::encoder) work.
#[derive(Debug, Clone, Copy)]
pub struct EncoderForm {
    /// The heads of each attention.
    pub heads: Heads,
    /// The dropout, of which each place in each block takes a [site](Dropout::site) of its own.
    pub dropout: Dropout,
}

impl Tape<'_> {
    /// Pre-norm transformer blocks over packed sequences `x` `[T, D]`, then the mean of each of `pools`, `[pools, D]`.
    ///
    /// A token attends to all tokens of its own sequence in `batch`; `pools` divides the same T rows, possibly otherwise.
    /// An empty pool gives zeros. Block `i` is
    ///
    /// ```text
    /// x += drop₁(out(attention(norm1(x))))    with drop₀ on the attention's weights
    /// x += drop₃(down(drop₂(gelu(up(norm2(x))))))
    /// ```
    ///
    /// where dropₖ is `dropout.site(4 · i + k)`. The last block has no drop₃: only so the mean and the last layer may
    /// change places, which saves a seventh of the work.
    ///
    /// It runs on the calling thread whatever the tape says: a large batch goes through chunks.
    pub fn encoder(
        &mut self,
        x: Var,
        blocks: &[BlockVars],
        form: EncoderForm,
        batch: &Ragged,
        pools: &Ragged,
    ) -> Result<Var> {
        let d_model = self.shape(x).cols();
        for (what, rows) in [("x, beside its batch,", batch), ("x, beside its pools,", pools)] {
            if self.shape(x) != Shape::Matrix(rows.total(), d_model) {
                return Err(self.misfit("encoder", what, x, format_args!("[{}, D]", rows.total())));
            }
        }
        if form.heads.0 == 0 || d_model == 0 || !d_model.is_multiple_of(form.heads.0) {
            let needed = format_args!("[T, D] with D a multiple of {} heads", form.heads.0).to_string();
            return Err(self.misfit("encoder", "x", x, needed));
        }
        let mut layers = Vec::with_capacity(blocks.len());
        for (index, &vars) in (0..).zip(blocks) {
            let d_hidden = self.checked_block(&vars, d_model)?;
            layers.push(Layer { vars, form: Form::new(form, index, d_model, d_hidden) });
        }
        if let Some(record) = self.record() {
            let blocks = layers.iter().map(Layer::on_card).collect();
            let (batch, pools) = (batch.clone(), pools.clone());
            return record
                .encoder(cuda::Stack { x: x.0, blocks, batch, pools, n_heads: form.heads.0, d_model })
                .map(Var);
        }
        let mut operands = vec![x];
        operands.extend(blocks.iter().flat_map(BlockVars::all));
        let wanted = operands.iter().any(|&var| self.wants_gradient(var));

        let stack = Stack { x, layers, batch: batch.clone(), pools: pools.clone(), d_model };
        let mut values = scratch::take_zeros(pools.len() * d_model);
        let kept = stack.forward(self, wanted, &mut values);
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| stack.backward(kept, grad, at, sink);
        Ok(self.push(&operands, Tensor::from_parts(Shape::Matrix(pools.len(), d_model), values), backward))
    }

    /// The width of the block's feed-forward layer.
    fn checked_block(&self, vars: &BlockVars, d: usize) -> Result<usize> {
        let f = self.shape(vars.up[0]).rows();
        let expected = [
            ("the scale and shift before attention", vars.norm1, [Shape::Vector(d), Shape::Vector(d)]),
            ("the input of attention", vars.qkv, [Shape::Matrix(3 * d, d), Shape::Vector(3 * d)]),
            ("the output of attention", vars.out, [Shape::Matrix(d, d), Shape::Vector(d)]),
            ("the scale and shift before the feed-forward layers", vars.norm2, [Shape::Vector(d), Shape::Vector(d)]),
            ("the first feed-forward layer", vars.up, [Shape::Matrix(f, d), Shape::Vector(f)]),
            ("the second feed-forward layer", vars.down, [Shape::Matrix(d, f), Shape::Vector(d)]),
        ];
        for (what, vars, needed) in expected {
            for (var, needed) in vars.into_iter().zip(needed) {
                if self.shape(var) != needed {
                    return Err(self.misfit("encoder", what, var, needed));
                }
            }
        }
        Ok(f)
    }
}

impl BlockVars {
    fn all(&self) -> impl Iterator<Item = Var> + use<> {
        [self.norm1, self.qkv, self.out, self.norm2, self.up, self.down].into_iter().flatten()
    }

    fn weights<'a>(&self, value: impl Fn(Var) -> &'a Tensor, weight: impl Fn(Var) -> gemm::Weight<'a>) -> Weights<'a> {
        let norm = |vars: [Var; 2]| vars.map(|var| value(var).values());
        let linear = |[matrix, bias]: [Var; 2]| Linear { weight: weight(matrix), bias: value(bias).values() };
        Weights {
            vars: *self,
            norm1: norm(self.norm1),
            qkv: linear(self.qkv),
            out: linear(self.out),
            norm2: norm(self.norm2),
            up: linear(self.up),
            down: linear(self.down),
        }
    }
}

struct Layer {
    vars: BlockVars,
    form: Form,
}

impl Layer {
    fn on_card(&self) -> cuda::Block {
        let BlockVars { norm1, qkv, out, norm2, up, down } = self.vars;
        let places = |vars: [Var; 2]| vars.map(|var| var.0);
        cuda::Block {
            norm1: places(norm1),
            qkv: places(qkv),
            out: places(out),
            norm2: places(norm2),
            up: places(up),
            down: places(down),
            drops: self.form.dropouts(),
            d_hidden: self.form.d_hidden,
        }
    }
}

struct Stack {
    x: Var,
    layers: Vec<Layer>,
    batch: Ragged,
    pools: Ragged,
    d_model: usize,
}

/// What a forward pass leaves for the way back, block by block.
type Kept = Vec<(AttentionKept, FeedKept)>;

impl Stack {
    fn places(&self, form: &Form) -> Vec<attention::Place> {
        form.attention.places(&self.batch)
    }

    fn forward(&self, tape: &Tape<'_>, wanted: bool, values: &mut [f32]) -> Kept {
        let mut kept = Kept::new();
        let x_values = tape.value(self.x).values();
        let mut x = scratch::take(x_values.len());
        x.copy_from_slice(x_values);
        for (index, layer) in self.layers.iter().enumerate() {
            let weights = layer.vars.weights(|var| tape.value(var), |var| tape.weight(var));
            let attended = layer.form.attend(&weights, &self.places(&layer.form), &mut x);
            let fed = if index + 1 < self.layers.len() {
                layer.form.feed(&weights, &mut x)
            } else {
                let fed = layer.form.feed_means(&weights, &x, &self.pools);
                layer.form.down(&weights, &fed.hidden, values);
                mean::clear_empty(values, &self.pools);
                fed
            };
            if wanted {
                kept.push((attended, fed));
            }
        }
        let mut means = scratch::take_zeros(values.len());
        mean::add_means(&x, &self.pools, &mut means);
        add_to(values, &means);
        kept
    }

    fn backward(self, kept: Kept, mut grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>) {
        mean::clear_empty(&mut grad, &self.pools);
        let mut dx = scratch::take_zeros(self.batch.total() * self.d_model);
        mean::spread(&grad, &self.pools, &mut dx);
        let n_layers = self.layers.len();
        for (index, (layer, (attended, fed))) in self.layers.iter().zip(kept).enumerate().rev() {
            let weights = layer.vars.weights(|var| at.value(var), |var| at.weight(var));
            if index + 1 < n_layers {
                layer.form.feed_backward(&weights, fed, &mut dx, sink);
            } else {
                layer.form.feed_means_backward(&weights, fed, (&self.pools, &grad), &mut dx, sink);
            }
            layer.form.attend_backward(&weights, (&attended, &self.places(&layer.form)), &mut dx, sink);
        }
        sink.give(self.x, dx);
    }
}
