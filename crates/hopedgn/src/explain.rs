//! Explanations of a score: common past neighbours, and the effect of leaving out each event.

use std::collections::BTreeMap;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{PairEncoder, PairQuery, PairTokens, Side};
use ctdg::sample::Sampling;
use ctdg::store::Store;
use hopedgn_tensor::Weights;

use crate::collate::{FeatureTables, Layout};
use crate::model::Model;
use crate::predict::sigmoid;
use crate::score::score_tokens;
use crate::{Error, Result};

/// Why a pair got its score. `N` names nodes: [`NodeId`] inside the library, their own names from a
/// [`LinkPredictor`](crate::LinkPredictor).
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// let why = predictor.explain("3", "5", 100.0)?; // an `Explanation<String>`
/// assert_eq!(why.probability, predictor.predict("3", "5", 100.0)?);
/// for effect in why.effects.iter().take(3) {
///     println!("{:?} met {} at {}: {:+.3}", effect.side, effect.node, effect.time, effect.change);
/// }
/// for common in &why.common {
///     assert!(!common.src_times.is_empty() && !common.dst_times.is_empty());
/// }
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation<N = NodeId> {
    /// The probability of the pair.
    pub probability: f32,
    /// Times of earlier events of the pair itself, newest first; as far back as the model looks.
    pub pair_times: Vec<f64>,
    /// Nodes that both interacted with, the most recent first.
    pub common: Vec<CommonNeighbor<N>>,
    /// Every event the model looked at, ordered by the size of its effect.
    pub effects: Vec<EventEffect<N>>,
}

/// A common past neighbour of both nodes, as far back as the model looks.
///
/// Part of an [`Explanation`].
#[derive(Debug, Clone, PartialEq)]
pub struct CommonNeighbor<N = NodeId> {
    /// The neighbour.
    pub node: N,
    /// Times of its events with the source, newest first.
    pub src_times: Vec<f64>,
    /// Times of its events with the destination, newest first.
    pub dst_times: Vec<f64>,
}

/// The effect of one event in the history of one side: the change of the score when it is left out.
///
/// Part of an [`Explanation`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventEffect<N = NodeId> {
    /// In whose history it is.
    pub side: Side,
    /// The other node of the event.
    pub node: N,
    /// The event.
    pub event: EventId,
    /// Its time.
    pub time: f64,
    /// Probability with the event minus probability without it: positive if the event raises the score.
    pub change: f32,
}

impl<N> Explanation<N> {
    /// The same with nodes named by `name`.
    #[must_use]
    pub fn map_nodes<M>(self, name: impl Fn(N) -> M) -> Explanation<M> {
        let common = self.common.into_iter().map(|CommonNeighbor { node, src_times, dst_times }| CommonNeighbor {
            node: name(node),
            src_times,
            dst_times,
        });
        let effects = self.effects.into_iter().map(|EventEffect { side, node, event, time, change }| EventEffect {
            node: name(node),
            side,
            event,
            time,
            change,
        });
        Explanation {
            probability: self.probability,
            pair_times: self.pair_times,
            common: common.collect(),
            effects: effects.collect(),
        }
    }
}

/// Explains the score of `query`: one forward pass for each event the model looks at.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::explain::explain;
///
/// let query = task.queries(&task.split.test)[0];
/// let why = explain(&*model, &weights, &task.tables, &task.full_store, query)?;
/// assert!(why.pair_times.iter().all(|&time| time < query.time));
/// let named = why.map_nodes(|node| events.names().name(node));
/// assert!(named.effects.iter().all(|effect| !effect.node.is_empty()));
/// # Ok::<(), hopedgn::Error>(())
/// ```
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
    let probability = sigmoid(score_all(&tokens)?[0]);
    let variants = tokens.leave_one_out(0, encoding);
    let without = score_all(&variants.tokens)?;

    let seen = Seen::of(&tokens, store);
    let mut effects: Vec<EventEffect> = Vec::with_capacity(without.len());
    for (&token, logit) in variants.left_out.iter().zip(without) {
        let side = if tokens.tokens(0, Side::Src).contains(&token) { Side::Src } else { Side::Dst };
        let event = tokens.events(0, side)[token - tokens.tokens(0, side).start - 1];
        let (node, time) = (tokens.nodes()[token], store.time(event));
        effects.push(EventEffect { side, node, event, time, change: probability - sigmoid(logit) });
    }
    effects.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    Ok(Explanation { probability, pair_times: seen.pair_times(query), common: seen.common(query), effects })
}

/// Refuses models whose score is not a function of the recent events of both nodes.
///
/// ```
/// use hopedgn::{ModelName, collate::FeatureWidths, explain, model::{ModelConfig, build}};
///
/// let (tgn, _) = build(&ModelConfig::new(ModelName::Tgn), FeatureWidths::default(), 0)?;
/// assert!(explain::check(&*tgn).unwrap_err().to_string().contains("keeps a memory of all earlier events"));
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn check(model: &dyn Model) -> Result<()> {
    let encoding = model.encoding();
    let why = if model.memory().is_some() {
        "keeps a memory of all earlier events"
    } else if matches!(model.layout(), Layout::Pairs(_)) {
        "looks at all pairs of nodes"
    } else if encoding.second.is_some() {
        "looks at two hops"
    } else if encoding.sampling != Sampling::Recent {
        "samples events at random"
    } else {
        return Ok(());
    };
    Err(Error::NotExplained { model: model.name().title(), why })
}

/// Times of each node among the tokens of each side, newest first.
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
                // A self-loop appears twice in the history of its node.
                if last.replace(event) != Some(event) {
                    times.entry(*node).or_default()[side as usize].push(store.time(*event));
                }
            }
        }
        Self { times }
    }

    fn pair_times(&self, query: PairQuery) -> Vec<f64> {
        let with =
            |node: NodeId, side: Side| self.times.get(&node).map_or(&[][..], |times| times[side as usize].as_slice());
        // Both histories are truncated: take the one that goes further back.
        let [a, b] = [with(query.dst, Side::Src), with(query.src, Side::Dst)];
        if a.len() >= b.len() { a.to_vec() } else { b.to_vec() }
    }

    fn common(self, query: PairQuery) -> Vec<CommonNeighbor> {
        let between = |(node, [with_src, with_dst]): (NodeId, [Vec<f64>; 2])| {
            let counts = !with_src.is_empty() && !with_dst.is_empty() && node != query.src && node != query.dst;
            counts.then_some(CommonNeighbor { node, src_times: with_src, dst_times: with_dst })
        };
        let mut common: Vec<_> = self.times.into_iter().filter_map(between).collect();
        let newest = |neighbor: &CommonNeighbor| neighbor.src_times[0].max(neighbor.dst_times[0]);
        common.sort_by(|a, b| newest(b).total_cmp(&newest(a)));
        common
    }
}
