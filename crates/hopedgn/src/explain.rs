//! Why a pair got its score: what both nodes have in common, and which events moved the score most.

use std::collections::BTreeMap;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{PairEncoder, PairQuery, PairTokens, Side};
use ctdg::sample::Sampling;
use ctdg::store::Store;
use hopedgn_tensor::Weights;

use crate::collate::{FeatureTables, Layout};
use crate::model::Model;
use crate::score::score_tokens;
use crate::{Error, Result};

/// What is known about one score.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The probability of the pair.
    pub score: f32,
    /// Times at which the two met, newest first; as far back as the model looks.
    pub met: Vec<f64>,
    /// Nodes that both met, the most recent first.
    pub common: Vec<CommonNeighbor>,
    /// Every event the model looked at, the one that moved the score most first.
    pub effects: Vec<TokenEffect>,
}

/// A node that both nodes of the pair met before, as far back as the model looks.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonNeighbor {
    /// The node.
    pub node: NodeId,
    /// When it met the source, newest first.
    pub with_src: Vec<f64>,
    /// When it met the destination, newest first.
    pub with_dst: Vec<f64>,
}

/// What one event in the past of one side does to the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenEffect {
    /// Whose past it stands in.
    pub side: Side,
    /// The other node of the event.
    pub node: NodeId,
    /// The event.
    pub event: EventId,
    /// When it happened.
    pub time: f64,
    /// The probability minus that without the event: positive where it raises the score.
    pub change: f32,
}

/// Explains the score of `query`: one pass of the model for each event it looks at.
pub fn explain(
    model: &dyn Model,
    weights: &Weights,
    tables: &FeatureTables,
    store: &Store,
    query: PairQuery,
) -> Result<Explanation> {
    let encoding = model.encoding();
    check(model)?;
    let mut tokens = PairTokens::default();
    PairEncoder::new(store, encoding).encode(&[query], &mut tokens);
    let score_all = |tokens: &PairTokens| {
        let queries = vec![query; tokens.n_pairs()];
        score_tokens(model, tables, store, weights, tokens, &queries)
    };
    let score = sigmoid(score_all(&tokens)?[0]);
    let variants = tokens.leave_one_out(0, encoding);
    let without = score_all(&variants.tokens)?;

    let seen = Seen::of(&tokens, store);
    let mut effects: Vec<TokenEffect> = Vec::with_capacity(without.len());
    for (&token, logit) in variants.left_out.iter().zip(without) {
        let side = if tokens.tokens(0, Side::Src).contains(&token) { Side::Src } else { Side::Dst };
        let event = tokens.events(0, side)[token - tokens.tokens(0, side).start - 1];
        let (node, time) = (tokens.nodes()[token], store.time(event));
        effects.push(TokenEffect { side, node, event, time, change: score - sigmoid(logit) });
    }
    effects.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    Ok(Explanation { score, met: seen.met(query), common: seen.common(query), effects })
}

/// Refuses models whose scores cannot be taken apart by events.
pub fn check(model: &dyn Model) -> Result<()> {
    let encoding = model.encoding();
    let why = if model.memory().is_some() {
        "remembers more than it sees"
    } else if matches!(model.layout(), Layout::Pairs(_)) {
        "looks at all pairs of nodes"
    } else if encoding.second.is_some() {
        "looks at neighbours of neighbours"
    } else if encoding.sampling != Sampling::Recent {
        "draws events at random here"
    } else {
        return Ok(());
    };
    Err(Error::NotExplained { model: model.name().title(), why })
}

/// The probability that a logit stands for.
#[must_use]
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

/// When each node stands among the tokens of each side, newest first.
struct Seen {
    times: BTreeMap<NodeId, [Vec<f64>; 2]>,
}

impl Seen {
    fn of(tokens: &PairTokens, store: &Store) -> Self {
        let mut times = BTreeMap::<NodeId, [Vec<f64>; 2]>::new();
        for side in [Side::Src, Side::Dst] {
            let nodes = &tokens.nodes()[tokens.tokens(0, side)][1..];
            let mut last = None;
            for (node, event) in nodes.iter().zip(tokens.events(0, side)).rev() {
                // A node's meeting with itself stands twice in its list.
                if last.replace(event) != Some(event) {
                    times.entry(*node).or_default()[side as usize].push(store.time(*event));
                }
            }
        }
        Self { times }
    }

    fn met(&self, query: PairQuery) -> Vec<f64> {
        let with =
            |node: NodeId, side: Side| self.times.get(&node).map_or(&[][..], |times| times[side as usize].as_slice());
        // Either list may have forgotten a meeting that the other still knows.
        let [a, b] = [with(query.dst, Side::Src), with(query.src, Side::Dst)];
        if a.len() >= b.len() { a.to_vec() } else { b.to_vec() }
    }

    fn common(self, query: PairQuery) -> Vec<CommonNeighbor> {
        let between = |(node, [with_src, with_dst]): (NodeId, [Vec<f64>; 2])| {
            let counts = !with_src.is_empty() && !with_dst.is_empty() && node != query.src && node != query.dst;
            counts.then_some(CommonNeighbor { node, with_src, with_dst })
        };
        let mut common: Vec<_> = self.times.into_iter().filter_map(between).collect();
        let newest = |neighbor: &CommonNeighbor| neighbor.with_src[0].max(neighbor.with_dst[0]);
        common.sort_by(|a, b| newest(b).total_cmp(&newest(a)));
        common
    }
}
