//! The HTTP interface.

mod admission;
mod arrow;
mod auth;
mod body;
mod events;
mod failure;
mod graph;
mod kserve;
mod live;
mod models;
mod nodes;
mod openapi;
mod page;
mod pair;
mod recommend;
mod runs;
mod score;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

use crate::ServeOptions;
use crate::engine::Engine;
use crate::intake::Intake;
use crate::lanes::{AnswerLane, ScoreLane};
use admission::Places;
use auth::{Guard, Right};
pub(crate) use failure::Failure;
pub(crate) use models::swap;

/// What handlers share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) intake: Intake,
    pub(crate) scores: ScoreLane,
    pub(crate) answers: AnswerLane,
    pub(crate) options: ServeOptions,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) started: Instant,
    /// The run folder of the model that answers, to load it again.
    pub(crate) run: std::sync::Mutex<PathBuf>,
}

pub(crate) type Shared = axum::extract::State<Arc<App>>;

/// All routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let guard = Arc::new(Guard::new(&app.options.tokens));
    let of = |right: Right| from_fn_with_state((Arc::clone(&guard), right), auth::check);
    let limits = app.options.limits;
    let in_places = |requests, bytes| from_fn_with_state(Places::new(requests, bytes), admission::admit);
    let (score_place, event_place, answer_place) = (
        in_places(limits.waiting_scores, limits.waiting_score_bytes),
        in_places(limits.waiting_events, limits.waiting_event_bytes),
        in_places(limits.waiting_answers, 0),
    );
    // Each of these takes a thread for a while.
    let (search_place, graph_place) = (in_places(limits.waiting_answers, 0), in_places(limits.waiting_answers, 0));
    let open = Router::new().route("/healthz", get(status::live)).route("/readyz", get(status::ready));
    let read = Router::new()
        .route("/v1/score", post(score::score).layer(score_place.clone()))
        .route("/v1/recommend", get(recommend::recommend).layer(answer_place))
        .route("/v1/nodes", get(nodes::search).layer(search_place))
        .route("/v1/nodes/{id}", get(nodes::node))
        .route("/v1/node", get(nodes::node_by_id))
        .route("/v1/pair", get(pair::pair))
        .route("/v1/graph", get(graph::graph).layer(graph_place))
        .route("/v1/live", get(live::live))
        .route("/v1/runs", get(runs::runs))
        .route("/v1/runs/{name}/report", get(runs::report))
        .route("/v1/status", get(status::status))
        .route("/v1/models", get(models::current))
        .route("/metrics", get(status::metrics))
        .route("/openapi.json", get(openapi::document))
        .route_layer(of(Right::Read));
    let write = Router::new()
        .route("/v1/events", post(events::take).layer(event_place))
        .route("/v1/models", post(models::load))
        .route_layer(of(Right::Write));
    open.merge(page::routes())
        .merge(kserve::open_routes())
        .merge(read)
        .merge(kserve::read_routes().route_layer(of(Right::Read)))
        .merge(kserve::infer_routes().layer(score_place).route_layer(of(Right::Read)))
        .merge(write)
        .fallback(failure::no_such_path)
        .method_not_allowed_fallback(failure::no_such_method)
        .layer(from_fn_with_state(Arc::clone(&app), status::count))
        .layer(CatchPanicLayer::custom(failure::panicked))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limits.request))
        .layer(from_fn(kserve::errors))
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .with_state(app)
}
