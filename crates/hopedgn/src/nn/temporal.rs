//! Attention of nodes over those they met, as TGAT has it and TGN and DyRep after it.
//!
//! Shapes: `N` nodes, `S` neighbours of all of them, `Q` width of a query, `K` width of a neighbour, `H` heads, `d` width of
//! the result.

use std::sync::Arc;

use hopedgn_tensor::{Activation, AttentionForm, Dropout, Heads, Indices, ParameterId, Ragged, Tape, Var};

use super::{Linear, Norm, ParamBuilder, TimeEncoding, zeros};
use crate::Result;
use crate::collate::{EmptyGroups, Hop};

/// The widths of one layer; a layer draws its weights as if there were `*_drawn_as` values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemporalWidths {
    pub(crate) query: usize,
    pub(crate) key: usize,
    pub(crate) key_drawn_as: usize,
    /// What is known of a node before any layer.
    pub(crate) raw: usize,
    pub(crate) raw_drawn_as: usize,
    pub(crate) out: usize,
}

/// One layer. Neighbours are never projected: a head's score is (Wkᵀ Wq q)·k and its value Wv Σ a k, which is the same as
/// attention over projected ones and costs one product a node instead of one a neighbour.
#[derive(Debug, Clone)]
pub(crate) struct TemporalAttention {
    /// Of each head.
    query: Vec<ParameterId>,
    key: Vec<ParameterId>,
    value: Vec<ParameterId>,
    residual: Linear,
    norm: Norm,
    merge: [Linear; 2],
    scale: f32,
}

/// What a layer looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attended<'a> {
    /// `[N, Q]`
    pub(crate) queries: Var,
    /// `[S, K]`
    pub(crate) keys: Var,
    /// The neighbours of each node.
    pub(crate) groups: &'a Ragged,
    /// What is known of each node before any layer, `[N, raw]`.
    pub(crate) raw: Option<Var>,
    /// For nodes without neighbours.
    pub(crate) instead: Option<Instead<'a>>,
}

/// What nodes without neighbours see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instead<'a> {
    nodes: &'a Indices,
    /// `[nodes, K]`
    keys: Var,
}

impl ParamBuilder<'_> {
    /// A layer of temporal attention.
    pub(crate) fn temporal(&mut self, name: &str, n_heads: usize, widths: TemporalWidths) -> Result<TemporalAttention> {
        let TemporalWidths { query, key, key_drawn_as, raw, raw_drawn_as, out } = widths;
        let d_head = query / n_heads;
        let heads = |layers: &mut Self, part: &str, n_in: usize, drawn_as: usize| -> Result<Vec<ParameterId>> {
            (0..n_heads)
                .map(|head| layers.weight(&format!("{name}.heads.{head}.{part}"), n_in, drawn_as, d_head))
                .collect()
        };
        Ok(TemporalAttention {
            query: heads(self, "query", query, query)?,
            key: heads(self, "key", key, key_drawn_as)?,
            value: heads(self, "value", key, key_drawn_as)?,
            residual: self.linear(&format!("{name}.residual"), query, query)?,
            norm: self.norm(&format!("{name}.norm"), query)?,
            merge: [
                self.linear_as(&format!("{name}.merge.hidden"), query + raw, query + raw_drawn_as, out)?,
                self.linear(&format!("{name}.merge.out"), out, out)?,
            ],
            scale: Heads(n_heads).scale(query),
        })
    }
}

impl TemporalAttention {
    /// `[N, d]`. A node that sees nobody gets what its query alone makes.
    pub(crate) fn forward(&self, tape: &mut Tape<'_>, attended: Attended<'_>, dropout: Dropout) -> Result<Var> {
        let Attended { queries, keys, groups, raw, instead } = attended;
        let n_nodes = groups.len();
        let mut asked = Vec::with_capacity(self.query.len());
        for (&query, &key) in self.query.iter().zip(&self.key) {
            let (query, key) = (tape.parameter(query), tape.parameter(key));
            let q = tape.linear(queries, query, None, None)?; // [N, Q/H]
            asked.push(tape.matmul(q, key)?); // [N, K]
        }
        let asked = tape.concat(&asked)?; // [N, H·K]
        let form =
            AttentionForm { heads: Heads(self.query.len()), scale: self.scale, shared: true, dropout: dropout.site(0) };
        let one_each = Ragged::from_lengths(std::iter::repeat_n(1, n_nodes));
        let mut seen = tape.attention(asked, keys, keys, &one_each, groups, form)?; // [N, H·K]
        if let Some(Instead { nodes, keys }) = instead {
            let beside = tape.concat(&vec![keys; self.query.len()])?;
            let placed = tape.scatter(beside, nodes, n_nodes)?;
            seen = tape.add(seen, placed)?;
        }
        let width = tape.shape(keys).cols();
        let mut values = Vec::with_capacity(self.value.len());
        for (head, &value) in self.value.iter().enumerate() {
            let of_head = tape.columns(seen, head * width, width)?;
            let value = tape.parameter(value);
            values.push(tape.linear(of_head, value, None, None)?); // [N, Q/H]
        }
        let values = tape.concat(&values)?; // [N, Q]
        let values = self.residual.forward(tape, values, None)?;
        let values = tape.dropout(values, dropout.site(1));
        let sum = tape.add(queries, values)?;
        let mut merged = vec![self.norm.forward(tape, sum)?];
        merged.extend(raw);
        let merged = tape.concat(&merged)?; // [N, Q + raw]
        let hidden = self.merge[0].forward(tape, merged, Some(Activation::Relu))?;
        self.merge[1].forward(tape, hidden, None)
    }
}

/// With DyGLib's padding: what nodes without neighbours see, as wide as `keys`. They are nobody's, met at time 0.
pub(crate) fn padding_keys<'a>(
    tape: &mut Tape<'_>,
    hop: &'a Hop,
    time: TimeEncoding,
    keys: Var,
) -> Result<Option<Instead<'a>>> {
    let Some(EmptyGroups { groups: nodes, times }) = &hop.empty else { return Ok(None) };
    let asked_at = tape.input(Arc::clone(times));
    let times = time.forward(tape, asked_at)?;
    let before = tape.shape(keys).cols() - tape.shape(times).cols();
    let nothing = zeros(tape, nodes.len(), before)?;
    Ok(Some(Instead { nodes, keys: tape.concat(&[nothing, times])? }))
}
