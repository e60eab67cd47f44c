//! `GET /v1/nodes/{id}`.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use ctdg::event::EventId;
use serde::Deserialize;
use utoipa::IntoParams;

use super::failure::FailureAnswer;
use super::{Failure, Shared};
use crate::wire::{HistoryRow, Id, NodeAnswer, Time, date};

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
    let Query(Asked { side, limit, before }) = asked?;
    if limit > MOST {
        return Err(Failure::invalid(format!("found limit={limit}, expected at most {MOST}")));
    }
    let snapshot = app.engine.events();
    let (stream, store) = (snapshot.stream(), snapshot.store());
    let before = before.map(|at| Time::Date(at).value(stream.time_format())).transpose().map_err(Failure::invalid)?;
    let as_source = (side != Some(Side::Dst)).then(|| snapshot.lookup().source(&id)).flatten();
    let as_destination = || (side != Some(Side::Src)).then(|| snapshot.lookup().destination(&id)).flatten();
    let node = as_source.or_else(as_destination);
    let cut = store.cut(before.unwrap_or(f64::INFINITY));
    let node = node.filter(|&node| !store.history(node, store.cut(f64::INFINITY)).is_empty());
    let Some(node) = node else {
        let message = format!("found no events of {id:?}, expected the id of a node with events");
        return Err(Failure::new(StatusCode::NOT_FOUND, "unknown-node", message));
    };
    let history = store.history(node, cut);
    // An event of a node with itself is twice in its list.
    let is_first = |at: &usize| *at == 0 || history.events[at - 1] != history.events[*at];
    let n_events = (0..history.len()).filter(is_first).count();
    let row = |at: usize| {
        let event: EventId = history.events[at];
        HistoryRow {
            node: Id::of(stream, history.neighbors[at]),
            as_source: store.is_source(node, event),
            time: history.times[at],
            date: date(stream, history.times[at]),
            label: stream.labels()[event.index()],
        }
    };
    Ok(Json(NodeAnswer {
        id: Id::of(stream, node),
        sequence: stream.len() as u64,
        events: n_events,
        first_time: history.times.first().copied(),
        last_time: history.times.last().copied(),
        history: (0..history.len()).rev().filter(is_first).take(limit).map(row).collect(),
    }))
}
