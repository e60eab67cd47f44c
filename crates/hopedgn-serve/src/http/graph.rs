//! `GET /v1/graph`: the nodes around a node or a pair, where to draw them, and when they met.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use ctdg::event::{Cut, NodeId};
use ctdg::live::Snapshot;
use hopedgn::{Candidates, RecommendOptions};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::failure::FailureAnswer;
use super::{Failure, Shared};
use crate::engine::View;
use crate::layout::layout;
use crate::wire::{Id, Time};

/// What is asked for.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// The node in the middle.
    node: String,
    /// The other node of a pair.
    #[serde(default)]
    other: Option<String>,
    /// Only events before this time, a number or a date; all of them by default.
    #[serde(default)]
    time: Option<String>,
    /// How many nodes at most; 300 by default.
    #[serde(default = "three_hundred")]
    limit: usize,
    /// How many predicted partners of the node; 5 by default.
    #[serde(default = "five")]
    top: usize,
}

fn three_hundred() -> usize {
    300
}

fn five() -> usize {
    5
}

/// Nodes of an answer at most.
const MOST_NODES: usize = 2_000;
/// Predicted partners at most.
const MOST_PREDICTED: usize = 50;
/// Times of an edge, the newest.
const MOST_TIMES: usize = 100;
/// Entries of a node's history that are looked at for neighbours.
const MOST_ENTRIES: usize = 5_000;

/// The nodes around a node or a pair.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GraphAnswer {
    /// The number of events that the answer looks back on.
    seq: u64,
    /// The time that was asked about.
    time: f64,
    /// The earliest time of an edge.
    first_time: Option<f64>,
    /// The latest.
    last_time: Option<f64>,
    /// Whether there are more nodes around than these.
    truncated: bool,
    nodes: Vec<GraphNode>,
    edges: Vec<GraphEdge>,
    predicted: Vec<PredictedEdge>,
}

/// A node, and where to draw it.
#[derive(Debug, Serialize, ToSchema)]
struct GraphNode {
    id: Id,
    /// Between −1 and 1.
    x: f32,
    /// Between −1 and 1.
    y: f32,
    /// Its events before the time.
    events: usize,
    role: Role,
}

/// What a node is to those in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Role {
    Center,
    Other,
    Common,
    Neighbor,
    Predicted,
}

/// Two nodes that met.
#[derive(Debug, Serialize, ToSchema)]
struct GraphEdge {
    /// The index of one node.
    source: usize,
    /// The index of the other.
    target: usize,
    /// When, oldest first; of many the newest.
    times: Vec<f64>,
}

/// Two nodes that may meet next.
#[derive(Debug, Serialize, ToSchema)]
struct PredictedEdge {
    source: usize,
    target: usize,
    /// The score, where it is no probability.
    probability: f32,
}

/// The graph around a node or a pair, laid out.
#[utoipa::path(
    get,
    path = "/v1/graph",
    params(Asked),
    responses((status = 200, body = GraphAnswer), (status = 404, description = "The node has no events", body = FailureAnswer))
)]
pub(super) async fn graph(
    State(app): Shared,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<GraphAnswer>, Failure> {
    let Query(asked) = asked?;
    if asked.limit == 0 || asked.limit > MOST_NODES || asked.top > MOST_PREDICTED {
        let expected = format!("expected a limit from 1 to {MOST_NODES} and a top of at most {MOST_PREDICTED}");
        return Err(Failure::invalid(format!("found limit={} and top={}, {expected}", asked.limit, asked.top)));
    }
    let snapshot = app.engine.events();
    let stream = snapshot.stream();
    let time = asked.time.clone().map(|time| Time::Date(time).value(stream.time_format()));
    let time = time.transpose().map_err(Failure::invalid)?.unwrap_or_else(|| stream.end());
    let lookup = |name: &str| {
        let node = snapshot.lookup().source(name).or_else(|| snapshot.lookup().destination(name));
        node.ok_or_else(|| Failure::unknown_node(name))
    };
    let mut middle = vec![lookup(&asked.node)?];
    // The destination first: in bipartite data a pair has one node of each side.
    if let Some(other) = &asked.other {
        let node = snapshot.lookup().destination(other).map_or_else(|| lookup(other), Ok)?;
        if node != middle[0] {
            middle.push(node);
        }
    }
    drop(snapshot);
    let graph = app.answers.ask(move |view| predicted(view, &asked, &middle, time)).await?;
    // Drawing takes longer than looking up: off the thread that answers.
    let graph = tokio::task::spawn_blocking(move || graph.laid_out()).await;
    graph.map(Json).map_err(|_| Failure::from(crate::lanes::NoAnswer::Defect))
}

/// The nodes of an answer, those in the middle first.
struct Around {
    snapshot: std::sync::Arc<Snapshot>,
    time: f64,
    n_middle: usize,
    nodes: Vec<NodeId>,
    index: FxHashMap<NodeId, usize>,
    truncated: bool,
    predicted: Vec<PredictedEdge>,
}

fn predicted(view: &View, asked: &Asked, middle: &[NodeId], time: f64) -> hopedgn::Result<Around> {
    let mut around = Around {
        snapshot: std::sync::Arc::clone(&view.snapshot),
        time,
        n_middle: middle.len(),
        nodes: Vec::new(),
        index: FxHashMap::default(),
        truncated: false,
        predicted: Vec::new(),
    };
    for &node in middle {
        around.add(node);
    }
    if asked.top > 0 {
        let options = RecommendOptions { top: asked.top, candidates: Candidates::Near, ..RecommendOptions::at(time) };
        let best = view.predictor.recommend_with(&asked.node, &options, &mut |_| {})?;
        for best in best {
            let Some(node) = view.snapshot.lookup().destination(&best.dst) else { continue };
            around.add(node);
            let probability = best.probability.unwrap_or(best.score);
            around.predicted.push(PredictedEdge { source: 0, target: around.index[&node], probability });
        }
    }
    around.collect(asked.limit);
    Ok(around)
}

impl Around {
    fn add(&mut self, node: NodeId) {
        let next = self.nodes.len();
        if *self.index.entry(node).or_insert(next) == next {
            self.nodes.push(node);
        }
    }

    fn cut(&self) -> Cut {
        self.snapshot.store().cut(self.time)
    }

    /// Adds neighbours, the most recent first, of those in the middle in turn, then their neighbours, up to `limit` nodes.
    fn collect(&mut self, limit: usize) {
        let (snapshot, cut) = (std::sync::Arc::clone(&self.snapshot), self.cut());
        let mut roots: Vec<NodeId> = self.nodes[..self.n_middle].to_vec();
        for _hop in 0..2 {
            let histories: Vec<_> =
                roots.iter().map(|&root| snapshot.store().history(root, cut).last(MOST_ENTRIES)).collect();
            let longest = histories.iter().map(ctdg::store::History::len).max().unwrap_or(0);
            let before = self.nodes.len();
            for back in 1..=longest {
                for history in &histories {
                    let Some(at) = history.len().checked_sub(back) else { continue };
                    let neighbor = history.neighbors[at];
                    if self.nodes.len() < limit {
                        self.add(neighbor);
                    } else if !self.index.contains_key(&neighbor) {
                        self.truncated = true;
                        return;
                    }
                }
            }
            roots = self.nodes[before..].to_vec();
        }
    }

    /// Pairs of these nodes that met, each once.
    fn edges(&self) -> Vec<(usize, usize)> {
        let (store, cut) = (self.snapshot.store(), self.cut());
        let mut edges = Vec::new();
        for (source, &node) in self.nodes.iter().enumerate() {
            let neighbors = store.history(node, cut).last(MOST_ENTRIES).neighbors;
            edges.extend(neighbors.iter().filter_map(|neighbor| {
                let target = *self.index.get(neighbor)?;
                Some((source.min(target), source.max(target)))
            }));
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    fn laid_out(self) -> GraphAnswer {
        let (stream, store, cut) = (self.snapshot.stream(), self.snapshot.store(), self.cut());
        let edges = self.edges();
        let drawn: Vec<(usize, usize)> =
            edges.iter().copied().chain(self.predicted.iter().map(|edge| (edge.source, edge.target))).collect();
        let fixed: &[[f32; 2]] = if self.n_middle == 2 { &[[-0.25, 0.0], [0.25, 0.0]] } else { &[[0.0, 0.0]] };
        let positions = layout(self.nodes.len(), fixed, &drawn);
        let met = |middle: usize, node: usize| edges.binary_search(&(middle.min(node), middle.max(node))).is_ok();
        let role = |node: usize| match node {
            0 => Role::Center,
            1 if self.n_middle == 2 => Role::Other,
            _ if self.n_middle == 2 && met(0, node) && met(1, node) => Role::Common,
            _ if self.predicted.iter().any(|edge| edge.target == node) && !met(0, node) => Role::Predicted,
            _ => Role::Neighbor,
        };
        let nodes = self.nodes.iter().zip(&positions).enumerate().map(|(index, (&node, &[x, y]))| GraphNode {
            id: Id::of(stream, node),
            x,
            y,
            events: store.history(node, cut).len(),
            role: role(index),
        });
        let nodes = nodes.collect();
        let edge = |&(source, target): &(usize, usize)| {
            let events = store.pair_events(self.nodes[source], self.nodes[target], cut);
            let mut newest = events.slice(events.len().saturating_sub(MOST_TIMES)..events.len()).to_vec();
            newest.dedup();
            GraphEdge { source, target, times: newest.iter().map(|&event| store.time(event)).collect() }
        };
        let edges: Vec<GraphEdge> = edges.iter().map(edge).collect();
        let times = || edges.iter().flat_map(|edge| edge.times.iter().copied());
        GraphAnswer {
            seq: stream.len() as u64,
            time: self.time,
            first_time: times().min_by(f64::total_cmp),
            last_time: times().max_by(f64::total_cmp),
            truncated: self.truncated,
            nodes,
            edges,
            predicted: self.predicted,
        }
    }
}
