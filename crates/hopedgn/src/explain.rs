//! Explanations of a score: what connects the two nodes, and the effect of leaving out events.

mod display;
mod effects;
mod json;
mod neighbors;

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{PairEncoder, PairQuery, PairTokens};
use ctdg::sample::Sampling;
use ctdg::store::Store;
use ctdg::time::TimeFormat;
use hopedgn_tensor::Weights;
use serde::Serialize;

use crate::collate::{FeatureTables, Layout};
use crate::model::Model;
use crate::predict::ScoreMeaning;
use crate::score::score_tokens;
use crate::{Error, Result};
use effects::SeenEvents;
use neighbors::Neighbors;

/// Why a pair got its score. `N` names nodes: [`NodeId`] inside the library, their own names from a
/// [`LinkPredictor`](crate::LinkPredictor).
///
/// Displays as a few lines of text, with times as the data has them, and serializes with everything the text says.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// let why = predictor.explain("3", "5", 100.0)?; // an `Explanation<String>`
/// println!("{why}");
/// assert!(why.to_string().contains("Common past neighbours: 1.\n  4: with 3 at 93, 83; with 5 at 94\n"));
///
/// assert_eq!(why.probability, predictor.predict("3", "5", 100.0)?);
/// for group in why.groups.iter().take(3) {
///     println!("{} interactions of {:?} with {}: {:+.3}", group.n_events, group.side, group.node, group.change);
/// }
/// for common in &why.common {
///     assert!(!common.src_times.is_empty() && !common.dst_times.is_empty());
/// }
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation<N = NodeId> {
    /// The source.
    pub src: N,
    /// The destination.
    pub dst: N,
    /// The query time.
    pub time: f64,
    /// How times are shown.
    pub time_format: TimeFormat,
    /// The probability of the pair.
    pub probability: f32,
    /// Times of earlier events of the pair itself, newest first; as far back as the model looks.
    pub pair_times: Vec<f64>,
    /// Nodes that both interacted with, the most recent first.
    pub common: Vec<CommonNeighbor<N>>,
    /// Where there is no common neighbour, as always in bipartite data: paths of three events from the source to the
    /// destination, the most recent first; at most [`MAX_PATHS`].
    pub paths: Vec<NeighborPath<N>>,
    /// All such paths.
    pub n_paths: usize,
    /// The effect of all interactions of either node with a third one, or with each other, ordered by its size.
    pub groups: Vec<GroupEffect<N>>,
    /// Every event the model looked at, once, ordered by the size of its effect.
    pub effects: Vec<EventEffect<N>>,
}

/// The most paths that an [`Explanation`] lists.
pub const MAX_PATHS: usize = 100;

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

/// Three events that connect source and destination: a neighbour of each, as far back as the model looks, that interacted with
/// each other at any time before the query. In data of users and items: another user of the destination, and an item that this
/// user shares with the source.
///
/// Part of an [`Explanation`].
#[derive(Debug, Clone, PartialEq)]
pub struct NeighborPath<N = NodeId> {
    /// The neighbour of the source.
    pub src_neighbor: N,
    /// The neighbour of the destination.
    pub dst_neighbor: N,
    /// Times of the events of the source with its neighbour, newest first.
    pub src_times: Vec<f64>,
    /// Times of the newest events of the two neighbours with each other, newest first; at most 32.
    pub between_times: Vec<f64>,
    /// Times of the events of the destination with its neighbour, newest first.
    pub dst_times: Vec<f64>,
}

/// In whose history an event is.
///
/// Part of an [`Explanation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectSide {
    /// That of the source.
    Src,
    /// That of the destination.
    Dst,
    /// That of both: they interacted with each other, or are one node.
    Both,
}

/// The effect of all interactions with one node before the query time: the change of the score if none of them had happened.
///
/// Older events than the model looked at are left out, too, because they would take the place of the newer ones. It is not the sum of
/// the effects of single events: of two events that say the same, each alone has a small effect.
///
/// Part of an [`Explanation`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupEffect<N = NodeId> {
    /// Whose interactions.
    pub side: EffectSide,
    /// With which node; for [`EffectSide::Both`] with the destination.
    pub node: N,
    /// Their number before the query time.
    pub n_events: usize,
    /// How many of them the model looked at; all of them, if it reads statistics.
    pub n_seen: usize,
    /// The time of the last one.
    pub last_time: f64,
    /// Probability with them minus probability without them: positive if they raise the score.
    pub change: f32,
}

/// The effect of one event: the change of the score if it had not happened, in whatever history it is.
///
/// Part of an [`Explanation`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventEffect<N = NodeId> {
    /// In whose history it is.
    pub side: EffectSide,
    /// The other node of the event; for [`EffectSide::Both`] the destination.
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
        let Self { src, dst, time, time_format, probability, pair_times, common, paths, n_paths, groups, effects } =
            self;
        let common = common.into_iter().map(|CommonNeighbor { node, src_times, dst_times }| CommonNeighbor {
            node: name(node),
            src_times,
            dst_times,
        });
        let paths = paths.into_iter().map(
            |NeighborPath { src_neighbor, dst_neighbor, src_times, between_times, dst_times }| {
                let [src_neighbor, dst_neighbor] = [src_neighbor, dst_neighbor].map(&name);
                NeighborPath { src_neighbor, dst_neighbor, src_times, between_times, dst_times }
            },
        );
        let groups = groups.into_iter().map(|GroupEffect { side, node, n_events, n_seen, last_time, change }| {
            GroupEffect { side, node: name(node), n_events, n_seen, last_time, change }
        });
        let effects = effects.into_iter().map(|EventEffect { side, node, event, time, change }| EventEffect {
            side,
            node: name(node),
            event,
            time,
            change,
        });
        Explanation {
            common: common.collect(),
            paths: paths.collect(),
            groups: groups.collect(),
            effects: effects.collect(),
            src: name(src),
            dst: name(dst),
            time,
            time_format,
            probability,
            pair_times,
            n_paths,
        }
    }
}

/// Explains the score of `query`: one forward pass for each event the model looks at and for each group of them, in one batch.
///
/// An effect is the score minus the score on a stream without the event or the group.
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
    check(model)?;
    let mut encoder = PairEncoder::new(store, model.encoding());
    let mut tokens = PairTokens::default();
    encoder.encode(&[query], &mut tokens);
    let seen = SeenEvents::of(&tokens, store, query, model.reads_statistics());

    let probabilities = scores_without(model, weights, tables, store, query, &seen.left_out())?;
    let (groups, effects) = seen.effects(&probabilities);

    let neighbors = Neighbors::of(&tokens, store);
    let common = neighbors.common(query);
    let (paths, n_paths) = if common.is_empty() { neighbors.paths(query, store) } else { (Vec::new(), 0) };
    Ok(Explanation {
        src: query.src,
        dst: query.dst,
        time: query.time,
        time_format: store.time_format(),
        probability: probabilities[0],
        pair_times: neighbors.pair_times(query),
        common,
        paths,
        n_paths,
        groups,
        effects,
    })
}

/// The score of `query` on streams without some events, one for each element of `left_out`, which holds events in ascending order.
pub(crate) fn scores_without(
    model: &dyn Model,
    weights: &Weights,
    tables: &FeatureTables,
    store: &Store,
    query: PairQuery,
    left_out: &[&[EventId]],
) -> Result<Vec<f32>> {
    check(model)?;
    let mut variants = PairTokens::default();
    PairEncoder::new(store, model.encoding()).encode_without(query, left_out, &mut variants)?;
    let logits = score_tokens(model, (tables, store), weights, &variants, query, left_out)?;
    if let Some(pair) = logits.iter().position(|logit| !logit.is_finite()) {
        return Err(Error::NonFiniteScore { score: logits[pair], pair: 0 });
    }
    let meaning = ScoreMeaning::of(weights)?;
    Ok(logits.into_iter().map(|logit| meaning.score(logit)).collect())
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
    } else if model.walks().is_some() {
        "reads walks over all earlier events"
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
