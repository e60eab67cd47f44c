//! The Open Inference Protocol (V2 of `KServe`) under `/v2`: its clients score pairs as tensors `src`, `dst` and `time`.

mod infer;
mod metadata;
mod outputs;
mod request;
mod tensor;

use std::sync::Arc;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::failure::Message;
use super::{App, Failure};
use crate::engine::LoadedModel;
use outputs::Output;

/// The only version of a model: what changes is the events it looks back on, whose number is in every answer.
const VERSION: &str = "1";

/// The routes that are open to everyone.
pub(super) fn open_routes() -> Router<Arc<App>> {
    Router::new().route("/v2/health/live", get(metadata::live)).route("/v2/health/ready", get(metadata::ready))
}

/// The routes that need the right to read.
pub(super) fn read_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v2", get(metadata::server))
        .route("/v2/repository/index", post(metadata::index))
        .route("/v2/models/{model}", get(metadata::model))
        .route("/v2/models/{model}/ready", get(metadata::model_ready))
        .route("/v2/models/{model}/versions/{version}", get(metadata::model_version))
        .route("/v2/models/{model}/versions/{version}/ready", get(metadata::model_version_ready))
}

/// The routes that score.
pub(super) fn infer_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v2/models/{model}/infer", post(infer::infer))
        .route("/v2/models/{model}/versions/{version}/infer", post(infer::infer_version))
}

/// The description of the routes.
#[derive(OpenApi)]
#[openapi(paths(
    metadata::live,
    metadata::ready,
    metadata::server,
    metadata::index,
    metadata::model,
    metadata::model_ready,
    metadata::model_version,
    metadata::model_version_ready,
    infer::infer,
    infer::infer_version,
))]
pub(super) struct Description;

/// The body of an error, as the protocol has it.
#[derive(Debug, Serialize, ToSchema)]
struct InferError {
    /// What was found, what was expected, what to do.
    error: String,
}

/// Gives all errors under `/v2` the protocol's form, also those of other layers.
pub(super) async fn errors(request: Request, next: Next) -> Response {
    let is_ours = request.uri().path().strip_prefix("/v2").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let response = next.run(request).await;
    let status = response.status();
    if !is_ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    let error = match parts.extensions.remove::<Message>() {
        Some(Message(error)) => error,
        None => format!("found a request that ended with {status}, expected one that is answered"),
    };
    let mut answer = (status, Json(InferError { error })).into_response();
    // Those of the body before do not fit; others, such as when to try again, stay.
    parts.headers.remove(CONTENT_LENGTH);
    for (name, value) in &parts.headers {
        answer.headers_mut().entry(name).or_insert_with(|| HeaderValue::clone(value));
    }
    answer
}

/// The model that a path names.
#[derive(Debug)]
struct Named(Arc<LoadedModel>);

impl Named {
    fn name(&self) -> &str {
        &self.0.name
    }

    /// What can be asked of it.
    fn outputs(&self) -> Result<&'static [Output], Failure> {
        let is_likelihood = self.0.live.score_meaning()? != hopedgn::predict::ScoreMeaning::Separation;
        Ok(if is_likelihood { &Output::ALL } else { &Output::ALL[..1] })
    }
}

impl FromRequestParts<Arc<App>> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let model = app.engine.model();
        let path = RawPathParams::from_request_parts(parts, app).await;
        let path = path.map_err(|rejection: RawPathParamsRejection| Failure::invalid(rejection.body_text()))?;
        for (name, value) in &path {
            let (what, expected) = if name == "version" { ("version", VERSION) } else { ("model", &*model.name) };
            if value != expected {
                let message = format!("found no {what} {value:?}, expected {expected:?}");
                return Err(Failure::new(StatusCode::NOT_FOUND, "not-found", message));
            }
        }
        Ok(Self(model))
    }
}
