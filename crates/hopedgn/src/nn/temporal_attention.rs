//! Temporal attention of TGAT, also in TGN and DyRep: a node attends to its neighbours.
//!
//! With `q` the query of a node, `K` the keys of its neighbours, heads `i` and a merge MLP:
//!
//! ```text
//! aᵢ = softmax(s · (Wqᵢ q) · (Wkᵢ K)ᵀ)          s = 1/√(width of a head)
//! oᵢ = Wvᵢ Σ aᵢ K
//! h  = MLP([Norm(q + Wo [o₁ ‖ … ‖ o_H]) ‖ x])     x: the node's features before any layer
//! ```
//!
//! Keys are not projected: `(Wq q)·(Wk k) = (Wkᵀ Wq q)·k`, and the value projection acts on the weighted sum. That takes one
//! matrix product a node instead of one a neighbour; the result is the same.
//!
//! Shapes: `M` nodes, `F` neighbours of all of them, `Q` width of a query, `K` width of a key, `H` heads, `d` width of the result.

use std::sync::Arc;

use hopedgn_tensor::{Activation, AttentionConfig, Dropout, Heads, Indices, ParameterId, Ragged, Tape, Var};

use super::{LayerNorm, Linear, ParamBuilder, TimeEncoding, zeros};
use crate::Result;
use crate::collate::{EmptyGroups, Hop};

/// Widths of a layer of temporal attention.
///
/// See [`TemporalAttention`].
#[derive(Debug, Clone, Copy)]
pub struct TemporalAttentionWidths {
    /// Of a query, `Q`; a multiple of the number of heads.
    pub query: usize,
    /// Of a key, `K`.
    pub key: usize,
    /// The width of a key that initialisation assumes.
    pub key_fan_in: usize,
    /// Of a node's features before any layer.
    pub raw: usize,
    /// The width of those that initialisation assumes.
    pub raw_fan_in: usize,
    /// Of the result, `d`.
    pub out: usize,
}

/// A layer of temporal attention.
///
/// ```
/// # use hopedgn::nn::{ParamBuilder, TemporalAttentionInput, TemporalAttentionWidths};
/// # use hopedgn::tensor::{Dropout, Parameters, Ragged, Tape, Tensor};
/// # let mut parameters = Parameters::default();
/// let widths = TemporalAttentionWidths { query: 4, key: 3, key_fan_in: 3, raw: 0, raw_fan_in: 0, out: 5 };
/// let layer = ParamBuilder::new(&mut parameters, 0).temporal_attention("layer", 2, widths)?; // two heads
/// let mut tape = Tape::new(&parameters);
/// let queries = tape.input(Tensor::matrix(2, 4, vec![1.0; 8])?);
/// let keys = tape.input(Tensor::matrix(3, 3, vec![0.5; 9])?);
/// let groups = &Ragged::from_lengths([3, 0]); // the second node has no neighbours
/// let input = TemporalAttentionInput { queries, keys, groups, raw: None, padding: None };
/// let nodes = layer.forward(&mut tape, input, Dropout::NONE)?; // [2, 5]
/// assert_eq!(tape.read(nodes)?.len(), 2 * 5);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TemporalAttention {
    /// `[Q/H, Q]` of each head.
    query: Vec<ParameterId>,
    /// `[Q/H, K]` of each head.
    key: Vec<ParameterId>,
    /// `[Q/H, K]` of each head.
    value: Vec<ParameterId>,
    residual: Linear,
    norm: LayerNorm,
    merge: [Linear; 2],
    scale: f32,
}

/// What a layer of temporal attention reads.
///
/// See [`TemporalAttention`].
#[derive(Debug, Clone, Copy)]
pub struct TemporalAttentionInput<'a> {
    /// `[M, Q]`
    pub queries: Var,
    /// `[F, K]`
    pub keys: Var,
    /// The neighbours of each node: `M` sequences over `F` rows.
    pub groups: &'a Ragged,
    /// Features of each node before any layer, `[M, raw]`.
    pub raw: Option<Var>,
    /// Keys for nodes without neighbours.
    pub padding: Option<PaddingKeys<'a>>,
}

/// Keys of nodes without neighbours, as DyGLib pads: zero features, an event at time 0.
///
/// ```
/// # use hopedgn::collate::{EmptyGroups, Entries, Hop};
/// # use hopedgn::{nn::{PaddingKeys, ParamBuilder}, tensor::{Parameters, Ragged, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let time = ParamBuilder::new(&mut parameters, 0).time_encoding("time", 2)?;
/// let mut tape = Tape::new(&parameters);
/// let entries = Entries { len: 1, nodes: None, edges: None, rows: None };
/// let (groups, ages) = (Ragged::from_lengths([1, 0]), Tensor::matrix(1, 1, vec![3.0])?.into());
/// let empty = EmptyGroups { groups: vec![1].into(), times: Tensor::matrix(1, 1, vec![9.0])?.into() };
/// let hop = Hop { entries, groups, ages, empty: Some(empty) };
/// let keys = time.of_hop(&mut tape, &hop)?;
/// assert!(PaddingKeys::new(&mut tape, &hop, time, keys)?.is_some()); // for the second node
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PaddingKeys<'a> {
    nodes: &'a Indices,
    /// `[nodes, K]`
    keys: Var,
}

impl<'a> PaddingKeys<'a> {
    /// For the empty groups of `hop`, as wide as `keys`, which end in time features. Nothing without DyGLib's padding.
    pub fn new(tape: &mut Tape<'_>, hop: &'a Hop, time: TimeEncoding, keys: Var) -> Result<Option<Self>> {
        let Some(EmptyGroups { groups: nodes, times }) = &hop.empty else { return Ok(None) };
        let asked_at = tape.input(Arc::clone(times));
        let times = time.forward(tape, asked_at)?; // [nodes, Dt]
        let before = tape.shape(keys).cols() - tape.shape(times).cols();
        let features = zeros(tape, nodes.len(), before)?;
        Ok(Some(Self { nodes, keys: tape.concat(&[features, times])? }))
    }
}

impl ParamBuilder<'_> {
    /// A layer of temporal attention.
    pub fn temporal_attention(
        &mut self,
        name: &str,
        n_heads: usize,
        widths: TemporalAttentionWidths,
    ) -> Result<TemporalAttention> {
        let TemporalAttentionWidths { query, key, key_fan_in, raw, raw_fan_in, out } = widths;
        let d_head = query / n_heads;
        let heads = |builder: &mut Self, part: &str, n_in: usize, fan_in: usize| -> Result<Vec<ParameterId>> {
            (0..n_heads)
                .map(|head| builder.weight(&format!("{name}.heads.{head}.{part}"), n_in, fan_in, d_head))
                .collect()
        };
        Ok(TemporalAttention {
            query: heads(self, "query", query, query)?,
            key: heads(self, "key", key, key_fan_in)?,
            value: heads(self, "value", key, key_fan_in)?,
            residual: self.linear(&format!("{name}.residual"), query, query)?,
            norm: self.layer_norm(&format!("{name}.norm"), query)?,
            merge: [
                self.linear_with_fan_in(&format!("{name}.merge.hidden"), query + raw, query + raw_fan_in, out)?,
                self.linear(&format!("{name}.merge.out"), out, out)?,
            ],
            scale: Heads(n_heads).scale(query),
        })
    }
}

impl TemporalAttention {
    /// `[M, d]`. A node without keys attends to nothing: its attention is zero. Takes dropout sites 0 and 1.
    pub fn forward(&self, tape: &mut Tape<'_>, input: TemporalAttentionInput<'_>, dropout: Dropout) -> Result<Var> {
        let TemporalAttentionInput { queries, keys, groups, raw, padding } = input;
        let n_heads = self.query.len();
        // Wkᵀ Wq q of each head.
        let mut projected = Vec::with_capacity(n_heads);
        for (&query, &key) in self.query.iter().zip(&self.key) {
            let (query, key) = (tape.parameter(query), tape.parameter(key));
            let q = tape.linear(queries, query, None, None)?; // [M, Q/H]
            projected.push(tape.matmul(q, key)?); // [M, K]
        }
        let projected = tape.concat(&projected)?; // [M, H·K]
        // Σ a K of each head.
        let form = AttentionConfig { heads: Heads(n_heads), scale: self.scale, shared: true, dropout: dropout.site(0) };
        let one_each = Ragged::from_lengths(std::iter::repeat_n(1, groups.len()));
        let mut sums = tape.attention(projected, keys, keys, &one_each, groups, form)?; // [M, H·K]
        if let Some(PaddingKeys { nodes, keys }) = padding {
            let of_heads = tape.concat(&vec![keys; n_heads])?; // [nodes, H·K]
            let scattered = tape.scatter(of_heads, nodes, groups.len())?;
            sums = tape.add(sums, scattered)?;
        }
        let width = tape.shape(keys).cols();
        let mut values = Vec::with_capacity(n_heads);
        for (head, &value) in self.value.iter().enumerate() {
            let of_head = tape.columns(sums, head * width, width)?; // [M, K]
            let value = tape.parameter(value);
            values.push(tape.linear(of_head, value, None, None)?); // [M, Q/H]
        }
        let values = tape.concat(&values)?; // [M, Q]
        let values = self.residual.forward(tape, values, None)?;
        let values = tape.dropout(values, dropout.site(1));
        let sum = tape.add(queries, values)?;
        let mut merged = vec![self.norm.forward(tape, sum)?];
        merged.extend(raw);
        let merged = tape.concat(&merged)?; // [M, Q + raw]
        let hidden = self.merge[0].forward(tape, merged, Some(Activation::Relu))?; // [M, d]
        self.merge[1].forward(tape, hidden, None)
    }
}
