//! `GET /v1/nodes/{id}`, and `GET /v1/nodes` to find one.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::live::Snapshot;
use ctdg::store::History;
use serde::Deserialize;
use utoipa::IntoParams;

use super::failure::FailureAnswer;
use super::{Failure, Shared};
use crate::wire::{FoundNode, HistoryRow, Id, NodeAnswer, NodesAnswer, Time, date};

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// Which namespace of bipartite data: `src` or `dst`; the first of the two that knows the id by default.
    #[serde(default)]
    side: Option<Side>,
    /// How many of its events; 50 by default.
    #[serde(default = "fifty")]
    limit: usize,
    /// Only events before this time, a number or a date.
    #[serde(default)]
    before: Option<String>,
}

fn fifty() -> usize {
    50
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Side {
    Src,
    Dst,
}

/// The most events of a node in one answer.
const MOST: usize = 10_000;

/// What happened to a node: its newest events.
#[utoipa::path(
    get,
    path = "/v1/nodes/{id}",
    params(("id" = String, Path, description = "The node"), Asked),
    responses((status = 200, body = NodeAnswer), (status = 404, description = "It has no events", body = FailureAnswer))
)]
pub(super) async fn node(
    State(app): Shared,
    Path(id): Path<String>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<NodeAnswer>, Failure> {
    answer(&app.engine.events(), &id, asked?.0).map(Json)
}

/// The id as part of the query, for ids that a path cannot carry: `.`, `..` and the empty one.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ById {
    /// The node.
    id: String,
}

/// The same with the id as a parameter: `.` and `..` have another meaning in a path.
#[utoipa::path(
    get,
    path = "/v1/node",
    params(ById),
    responses((status = 200, body = NodeAnswer), (status = 404, description = "It has no events", body = FailureAnswer))
)]
pub(super) async fn node_by_id(
    State(app): Shared,
    asked: Result<Query<ById>, QueryRejection>,
) -> Result<Json<NodeAnswer>, Failure> {
    let asked_of_node = Asked { side: None, limit: fifty(), before: None };
    answer(&app.engine.events(), &asked?.0.id, asked_of_node).map(Json)
}

fn answer(snapshot: &Snapshot, id: &str, asked: Asked) -> Result<NodeAnswer, Failure> {
    let Asked { side, limit, before } = asked;
    if limit > MOST {
        return Err(Failure::invalid(format!("found limit={limit}, expected at most {MOST}")));
    }
    let (stream, store) = (snapshot.stream(), snapshot.store());
    let before = before.map(|at| Time::Date(at).value(stream.time_format())).transpose().map_err(Failure::invalid)?;
    let as_source = (side != Some(Side::Dst)).then(|| snapshot.lookup().source(id)).flatten();
    let as_destination = || (side != Some(Side::Src)).then(|| snapshot.lookup().destination(id)).flatten();
    let node = as_source.or_else(as_destination);
    let cut = store.cut(before.unwrap_or(f64::INFINITY));
    let node = node.filter(|&node| !store.history(node, store.cut(f64::INFINITY)).is_empty());
    let Some(node) = node else {
        return Err(Failure::unknown_node(id));
    };
    let history = store.history(node, cut);
    Ok(NodeAnswer {
        id: Id::of(stream, node),
        seq: stream.len() as u64,
        events: n_events(&history),
        first_time: history.times.first().copied(),
        last_time: history.times.last().copied(),
        history: newest_first(snapshot, node, &history, limit),
    })
}

/// Whether an entry is the first of its event: that of a node with itself is twice in its list.
fn is_first(history: &History<'_>, at: usize) -> bool {
    at == 0 || history.events.at(at - 1) != history.events.at(at)
}

fn n_events(history: &History<'_>) -> usize {
    (0..history.len()).filter(|&at| is_first(history, at)).count()
}

/// The newest entries of the history of `node`, newest first.
pub(super) fn newest_first(snapshot: &Snapshot, node: NodeId, history: &History<'_>, limit: usize) -> Vec<HistoryRow> {
    let (stream, store) = (snapshot.stream(), snapshot.store());
    let row = |at: usize| {
        let event: EventId = history.events.at(at);
        HistoryRow {
            event: event.0,
            node: Id::of(stream, history.neighbors[at]),
            as_source: store.is_source(node, event),
            time: history.times[at],
            date: date(stream, history.times[at]),
            label: stream.labels()[event.index()],
        }
    };
    (0..history.len()).rev().filter(|&at| is_first(history, at)).take(limit).map(row).collect()
}

/// What is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Sought {
    /// How the id begins, or what it contains.
    #[serde(default)]
    prefix: String,
    /// How many nodes; 10 by default.
    #[serde(default = "ten")]
    limit: usize,
}

fn ten() -> usize {
    10
}

/// Nodes whose id begins with a text, then those that contain it; those with most events first.
#[utoipa::path(get, path = "/v1/nodes", params(Sought), responses((status = 200, body = NodesAnswer)))]
pub(super) async fn search(
    State(app): Shared,
    sought: Result<Query<Sought>, QueryRejection>,
) -> Result<Json<NodesAnswer>, Failure> {
    let Query(Sought { prefix, limit }) = sought?;
    let snapshot = app.engine.events();
    let limit = limit.min(MOST);
    // All names are looked at: off the threads that serve connections.
    let found = tokio::task::spawn_blocking(move || find(&snapshot, &prefix, limit)).await;
    found.map(Json).map_err(|_| Failure::from(crate::lanes::NoAnswer::Defect))
}

fn find(snapshot: &Snapshot, text: &str, limit: usize) -> NodesAnswer {
    let (stream, store) = (snapshot.stream(), snapshot.store());
    let (text, all) = (text.to_lowercase(), store.cut(f64::INFINITY));
    let rank = |node: NodeId| {
        let name = stream.names().name(node).to_lowercase();
        let at = name.find(&text)?;
        let n_entries = store.history(node, all).len();
        // A node that is read from a file of features may have no events.
        (n_entries > 0).then_some((at > 0, usize::MAX - n_entries, name.len(), node))
    };
    let mut found: Vec<_> = (0..stream.n_nodes()).filter_map(NodeId::from_index).filter_map(rank).collect();
    if found.len() > limit {
        found.select_nth_unstable(limit);
        found.truncate(limit);
    }
    found.sort_unstable();
    let row = |(_, _, _, node): (bool, usize, usize, NodeId)| {
        let history = store.history(node, all);
        let last_time = history.times.last().copied();
        FoundNode {
            id: Id::of(stream, node),
            events: n_events(&history),
            last_time,
            date: last_time.and_then(|time| date(stream, time)),
            side: side_of(stream, node),
        }
    };
    NodesAnswer { seq: stream.len() as u64, nodes: found.into_iter().map(row).collect() }
}

/// On which side of bipartite data a node is.
fn side_of(stream: &EventStream, node: NodeId) -> Option<&'static str> {
    let names = stream.names();
    names.is_bipartite().then(|| if names.is_on_source_side(node) { "src" } else { "dst" })
}
