//! The HTTP interface.

mod arrow;
mod auth;
mod body;
mod events;
mod failure;
mod kserve;
mod models;
mod nodes;
mod openapi;
mod recommend;
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
    let open = Router::new().route("/healthz", get(status::live)).route("/readyz", get(status::ready));
    let read = Router::new()
        .route("/v1/score", post(score::score))
        .route("/v1/recommend", get(recommend::recommend))
        .route("/v1/nodes/{id}", get(nodes::node))
        .route("/v1/status", get(status::status))
        .route("/v1/models", get(models::current))
        .route("/metrics", get(status::metrics))
        .route("/openapi.json", get(openapi::document))
        .route_layer(of(Right::Read));
    let write = Router::new()
        .route("/v1/events", post(events::take))
        .route("/v1/models", post(models::load))
        .route_layer(of(Right::Write));
    open.merge(kserve::open_routes())
        .merge(read)
        .merge(kserve::read_routes().route_layer(of(Right::Read)))
        .merge(write)
        .fallback(failure::no_such_path)
        .method_not_allowed_fallback(failure::no_such_method)
        .layer(from_fn(status::count))
        .layer(CatchPanicLayer::custom(failure::panicked))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limits.request))
        .layer(from_fn(kserve::errors))
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .with_state(app)
}
