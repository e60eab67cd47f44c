//! Transformer blocks: pre-norm (HopeDGN, DyGFormer) and post-norm with cross-attention (TCL, CAWN).
//!
//! ```text
//! pre-norm:   y = x + Attention(Norm₁(x)),   z = y + FFN(Norm₂(y))
//! post-norm:  y = Norm₁(x + Attention(x)),   z = Norm₂(y + FFN(y))
//! ```
//!
//! Shapes: `Sq` queries and `Sk` keys in as many groups, `d` width of both; the hidden layer of FFN is `4d` wide.

use hopedgn_tensor::{Activation, AttentionConfig, BlockVars, Dropout, Heads, Ragged, Shape, Tape, Tensor, Var, init};

use super::{LayerNorm, Linear, ParamBuilder};
use crate::Result;

/// A pre-norm transformer block. [`Tape::encoder`] computes a stack of them.
///
/// ```
/// # use hopedgn::{nn::ParamBuilder, tensor::{Dropout, EncoderConfig, Heads, Parameters, Ragged, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let block = ParamBuilder::new(&mut parameters, 0).pre_norm_block("block", 4)?;
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::matrix(3, 4, vec![1.0; 12])?); // sequences of two tokens and of one
/// let (blocks, sequences) = ([block.vars(&mut tape)], Ragged::from_lengths([2, 1]));
/// let config = EncoderConfig { heads: Heads(2), dropout: Dropout::NONE };
/// let means = tape.encoder(x, &blocks, config, &sequences, &sequences)?; // [2, 4]
/// assert_eq!(tape.read(means)?.len(), 2 * 4);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PreNormBlock {
    norm1: Linear,
    qkv: Linear,
    out: Linear,
    norm2: Linear,
    up: Linear,
    down: Linear,
}

/// A post-norm transformer block, for attention within groups and across them.
///
/// ```
/// # use hopedgn::nn::{CrossAttentionInput, ParamBuilder};
/// # use hopedgn::tensor::{Dropout, Parameters, Ragged, Tape, Tensor};
/// # let mut parameters = Parameters::default();
/// let block = ParamBuilder::new(&mut parameters, 0).post_norm_block("block", 4, 2)?; // two heads
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::matrix(3, 4, (0..12u8).map(f32::from).collect())?);
/// let groups = Ragged::from_lengths([2, 1]);
/// let y = block.forward(&mut tape, CrossAttentionInput::within(x, &groups), Dropout::NONE)?; // [3, 4]
/// assert_eq!(tape.read(y)?.len(), 3 * 4);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PostNormBlock {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    norm1: LayerNorm,
    up: Linear,
    down: Linear,
    norm2: LayerNorm,
    heads: Heads,
    scale: f32,
}

/// What a [`PostNormBlock`] reads: the queries of group `i` attend to the keys of group `i`.
///
/// See [`PostNormBlock`].
#[derive(Debug, Clone, Copy)]
pub struct CrossAttentionInput<'a> {
    /// `[Sq, d]`
    pub queries: Var,
    /// The queries of each group.
    pub query_groups: &'a Ragged,
    /// `[Sk, d]`
    pub keys: Var,
    /// The keys of each group.
    pub key_groups: &'a Ragged,
}

impl<'a> CrossAttentionInput<'a> {
    /// Self-attention: `x` `[S, d]` attends to itself within each group.
    #[must_use]
    pub fn within(x: Var, groups: &'a Ragged) -> Self {
        Self { queries: x, query_groups: groups, keys: x, key_groups: groups }
    }
}

impl ParamBuilder<'_> {
    /// A pre-norm transformer block, initialised as PyTorch's `nn.MultiheadAttention` and `nn.Linear`.
    pub fn pre_norm_block(&mut self, name: &str, width: usize) -> Result<PreNormBlock> {
        let [attention_in, attention_out] = ["attention.in", "attention.out"].map(|part| format!("{name}.{part}"));
        let qkv = init::attention_in(&mut self.random(&attention_in), width);
        let out = init::attention_out(&mut self.random(&attention_out), width);
        Ok(PreNormBlock {
            norm1: self.add(&format!("{name}.norm1"), init::layer_norm(width))?,
            qkv: self.add(&attention_in, qkv)?,
            out: self.add(&attention_out, out)?,
            norm2: self.add(&format!("{name}.norm2"), init::layer_norm(width))?,
            up: self.linear(&format!("{name}.up"), width, 4 * width)?,
            down: self.linear(&format!("{name}.down"), 4 * width, width)?,
        })
    }

    /// A post-norm transformer block; `width` is a multiple of `n_heads`.
    pub fn post_norm_block(&mut self, name: &str, width: usize, n_heads: usize) -> Result<PostNormBlock> {
        let out = format!("{name}.attention.out");
        let out_weights = init::attention_out(&mut self.random(&out), width);
        Ok(PostNormBlock {
            query: self.attention_in(&format!("{name}.attention.query"), width)?,
            key: self.attention_in(&format!("{name}.attention.key"), width)?,
            value: self.attention_in(&format!("{name}.attention.value"), width)?,
            out: self.add(&out, out_weights)?,
            norm1: self.layer_norm(&format!("{name}.norm1"), width)?,
            up: self.linear(&format!("{name}.up"), width, 4 * width)?,
            down: self.linear(&format!("{name}.down"), 4 * width, width)?,
            norm2: self.layer_norm(&format!("{name}.norm2"), width)?,
            heads: Heads(n_heads),
            scale: Heads(n_heads).scale(width),
        })
    }

    /// One of the three input projections, initialised as a third of PyTorch's packed matrix `[3d, d]`.
    fn attention_in(&mut self, name: &str, width: usize) -> Result<Linear> {
        let bound = (6.0 / (4 * width).max(1) as f64).sqrt();
        let weight = init::uniform(&mut self.random(name), Shape::Matrix(width, width), bound);
        self.add(name, (weight, Tensor::zeros(Shape::Vector(width))))
    }
}

impl PreNormBlock {
    /// The block's parameters on the tape, for [`Tape::encoder`].
    #[must_use]
    pub fn vars(self, tape: &mut Tape<'_>) -> BlockVars {
        BlockVars {
            norm1: self.norm1.vars(tape),
            qkv: self.qkv.vars(tape),
            out: self.out.vars(tape),
            norm2: self.norm2.vars(tape),
            up: self.up.vars(tape),
            down: self.down.vars(tape),
        }
    }
}

impl PostNormBlock {
    /// `[Sq, d]`. Takes dropout sites 0 to 3.
    pub fn forward(self, tape: &mut Tape<'_>, input: CrossAttentionInput<'_>, dropout: Dropout) -> Result<Var> {
        let CrossAttentionInput { queries, query_groups, keys, key_groups } = input;
        let q = self.query.forward(tape, queries, None)?; // [Sq, d]
        let k = self.key.forward(tape, keys, None)?; // [Sk, d]
        let v = self.value.forward(tape, keys, None)?; // [Sk, d]
        let form = AttentionConfig { heads: self.heads, scale: self.scale, shared: false, dropout: dropout.site(0) };
        let attention = tape.attention(q, k, v, query_groups, key_groups, form)?; // [Sq, d]
        let attention = self.out.forward(tape, attention, None)?;
        let attention = tape.dropout(attention, dropout.site(1));
        let sum = tape.add(queries, attention)?;
        let y = self.norm1.forward(tape, sum)?; // [Sq, d]
        let hidden = self.up.forward(tape, y, Some(Activation::Relu))?; // [Sq, 4d]
        let hidden = tape.dropout(hidden, dropout.site(2));
        let ffn = self.down.forward(tape, hidden, None)?; // [Sq, d]
        let ffn = tape.dropout(ffn, dropout.site(3));
        let sum = tape.add(y, ffn)?;
        self.norm2.forward(tape, sum)
    }
}
