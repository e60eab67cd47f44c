//! `GET /v1/pair`: what happened to the two nodes of a pair.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use ctdg::event::NodeId;
use ctdg::live::Snapshot;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::nodes::newest_first;
use super::{Failure, Shared};
use crate::wire::{HistoryRow, Id, Time, date};

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// The source.
    src: String,
    /// The destination.
    dst: String,
    /// Only events before this time, a number or a date; all of them by default.
    #[serde(default)]
    time: Option<String>,
    /// How many events of each; 100 by default.
    #[serde(default = "hundred")]
    limit: usize,
}

fn hundred() -> usize {
    100
}

/// The most events of a node in one answer.
const MOST: usize = 1_000;

/// What happened to the two nodes of a pair. A node without events has an empty history.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PairAnswer {
    /// The number of events that the answer looks back on.
    seq: u64,
    /// The time that was asked about.
    time: f64,
    /// The same as a date, where the data has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    /// The source.
    src: Id,
    /// The destination.
    dst: Id,
    /// The newest events of the source, newest first.
    src_history: Vec<HistoryRow>,
    /// Those of the destination.
    dst_history: Vec<HistoryRow>,
    /// When the two met, newest first.
    met: Vec<f64>,
    /// Nodes that both met among these events, the most recent first.
    common: Vec<Common>,
}

/// A common past neighbour. Its multi-interacted time encoding (MITE) encodes `time` minus each of these times.
#[derive(Debug, Serialize, ToSchema)]
struct Common {
    /// The neighbour.
    node: Id,
    /// When it met the source, newest first.
    src_times: Vec<f64>,
    /// When it met the destination, newest first.
    dst_times: Vec<f64>,
}

/// The histories of a pair on one axis of time.
#[utoipa::path(get, path = "/v1/pair", params(Asked), responses((status = 200, body = PairAnswer)))]
pub(super) async fn pair(
    State(app): Shared,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<PairAnswer>, Failure> {
    let Query(Asked { src, dst, time, limit }) = asked?;
    if limit > MOST {
        return Err(Failure::invalid(format!("found limit={limit}, expected at most {MOST}")));
    }
    let snapshot = app.engine.events();
    let stream = snapshot.stream();
    let time = time.map(|time| Time::Date(time).value(stream.time_format())).transpose().map_err(Failure::invalid)?;
    let time = time.unwrap_or_else(|| stream.end());
    let nodes = [snapshot.lookup().source(&src), snapshot.lookup().destination(&dst)];
    let history = |node: Option<NodeId>| {
        let newest = |node| {
            let history = snapshot.store().history(node, snapshot.store().cut(time));
            newest_first(&snapshot, node, &history, limit)
        };
        node.map(newest).unwrap_or_default()
    };
    let [src_history, dst_history] = nodes.map(history);
    Ok(Json(PairAnswer {
        seq: stream.len() as u64,
        time,
        date: date(stream, time),
        met: met(&snapshot, nodes, time, limit),
        common: common(&src_history, &dst_history, &[&src, &dst]),
        src: Id::named(stream, src),
        dst: Id::named(stream, dst),
        src_history,
        dst_history,
    }))
}

fn met(snapshot: &Snapshot, nodes: [Option<NodeId>; 2], time: f64, limit: usize) -> Vec<f64> {
    let [Some(src), Some(dst)] = nodes else { return Vec::new() };
    let store = snapshot.store();
    let mut events = store.pair_events(src, dst, store.cut(time)).to_vec();
    events.dedup();
    events.iter().rev().take(limit).map(|&event| store.time(event)).collect()
}

fn common(src: &[HistoryRow], dst: &[HistoryRow], pair: &[&str; 2]) -> Vec<Common> {
    let by_node = |history: &[HistoryRow]| {
        let mut times = BTreeMap::<String, (Id, Vec<f64>)>::new();
        for row in history {
            let of_node = times.entry(row.node.clone().into_text()).or_insert_with(|| (row.node.clone(), Vec::new()));
            of_node.1.push(row.time);
        }
        times
    };
    let mut of_dst = by_node(dst);
    let both = by_node(src).into_iter().filter_map(|(name, (node, src_times))| {
        let (_, dst_times) = of_dst.remove(&name).filter(|_| !pair.contains(&&*name))?;
        Some(Common { node, src_times, dst_times })
    });
    let mut both: Vec<Common> = both.collect();
    let newest = |common: &Common| common.src_times[0].max(common.dst_times[0]);
    both.sort_by(|a, b| newest(b).total_cmp(&newest(a)));
    both
}
