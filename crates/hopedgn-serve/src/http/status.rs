//! `GET /v1/status`, `/healthz`, `/readyz`, `/metrics`.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use ctdg::time::TimeFormat;

use super::auth::Rights;
use super::{Failure, Shared};
use crate::wire::{LogStatus, ModelStatus, StatusAnswer, Waiting, date};

/// Whether the process is there.
#[utoipa::path(get, path = "/healthz", responses((status = 200)))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Whether it takes requests.
#[utoipa::path(get, path = "/readyz", responses((status = 200), (status = 503, description = "The server is about to end")))]
pub(super) async fn ready(State(app): Shared) -> Response {
    if app.engine.state().is_stopping() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    "ready\n".into_response()
}

/// How the server is.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = StatusAnswer)))]
pub(super) async fn status(
    State(app): Shared,
    Extension(rights): Extension<Rights>,
) -> Result<Json<StatusAnswer>, Failure> {
    let (snapshot, state) = (app.engine.events(), app.engine.state());
    let (stream, watermark) = (snapshot.stream(), state.watermark());
    let ModelStatus { name, architecture, probabilities } = super::models::model_status(&app)?;
    Ok(Json(StatusAnswer {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        model: name,
        architecture,
        probabilities,
        events: stream.len() as u64,
        nodes: stream.n_nodes(),
        watermark,
        watermark_date: watermark.and_then(|time| date(stream, time)),
        held: state.held(),
        has_dates: stream.time_format() == TimeFormat::Date,
        bipartite: stream.names().is_bipartite(),
        may_write: rights.may_write,
        log: LogStatus {
            bytes: state.log_bytes(),
            read_only: state.is_read_only(),
            since_rebuild: state.since_rebuild(),
        },
        waiting: Waiting {
            events: app.intake.n_waiting(),
            scores: app.scores.n_waiting(),
            answers: app.answers.n_waiting(),
        },
        uptime: app.started.elapsed().as_secs_f64(),
    }))
}

/// Metrics in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(app): Shared) -> impl IntoResponse {
    let stream = app.engine.events();
    metrics::gauge!("hopedgn_events").set(stream.stream().len() as f64);
    metrics::gauge!("hopedgn_nodes").set(stream.stream().n_nodes() as f64);
    metrics::gauge!("hopedgn_waiting", "kind" => "events").set(app.intake.n_waiting() as f64);
    metrics::gauge!("hopedgn_waiting", "kind" => "scores").set(app.scores.n_waiting() as f64);
    metrics::gauge!("hopedgn_waiting", "kind" => "answers").set(app.answers.n_waiting() as f64);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.render())
}

/// Counts requests by path and status, and how long they take.
pub(super) async fn count(State(app): Shared, request: Request, next: Next) -> Response {
    let path =
        request.extensions().get::<MatchedPath>().map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let start = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16().to_string();
    app.engine.monitor().took(&path, start.elapsed());
    metrics::histogram!("hopedgn_request_seconds", "path" => path.clone()).record(start.elapsed().as_secs_f64());
    metrics::counter!("hopedgn_requests_total", "path" => path, "status" => status).increment(1);
    response
}
