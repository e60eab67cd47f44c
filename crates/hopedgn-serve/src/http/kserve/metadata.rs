//! What the server and its model are, and whether they answer.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::{App, Failure, Shared};
use super::{InferError, Named, VERSION};
use crate::lanes::NoAnswer;

/// Whether the process is there.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerLive {
    live: bool,
}

/// Whether the server takes requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerReady {
    ready: bool,
}

/// Whether a model answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelReady {
    name: String,
    ready: bool,
}

/// What the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServerMetadata {
    name: &'static str,
    version: &'static str,
    /// Parts of the protocol that not all servers have.
    extensions: [&'static str; 1],
}

/// What a model takes and gives.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelMetadata {
    name: String,
    versions: [&'static str; 1],
    platform: &'static str,
    /// `time` may be left out.
    inputs: Vec<TensorMetadata>,
    outputs: Vec<TensorMetadata>,
}

/// What a tensor is.
#[derive(Debug, Serialize, ToSchema)]
struct TensorMetadata {
    name: &'static str,
    datatype: &'static str,
    /// -1 is any number.
    shape: [i64; 1],
}

/// A model among all.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct IndexRow {
    name: String,
    version: &'static str,
    state: &'static str,
    /// Why it is not ready.
    reason: &'static str,
}

fn check_answers(app: &App) -> Result<(), Failure> {
    if app.engine.state().is_stopping() { Err(NoAnswer::Stopping.into()) } else { Ok(()) }
}

/// Whether the process is there.
#[utoipa::path(get, path = "/v2/health/live", responses((status = 200, body = ServerLive)))]
pub(super) async fn live() -> Json<ServerLive> {
    Json(ServerLive { live: true })
}

/// Whether it takes requests.
#[utoipa::path(
    get,
    path = "/v2/health/ready",
    responses(
        (status = 200, body = ServerReady),
        (status = 503, description = "The server is about to end", body = InferError),
    )
)]
pub(super) async fn ready(State(app): Shared) -> Result<Json<ServerReady>, Failure> {
    check_answers(&app)?;
    Ok(Json(ServerReady { ready: true }))
}

/// What the server is.
#[utoipa::path(get, path = "/v2", responses((status = 200, body = ServerMetadata)))]
pub(super) async fn server() -> Json<ServerMetadata> {
    let version = env!("CARGO_PKG_VERSION");
    Json(ServerMetadata { name: "hopedgn", version, extensions: ["binary_tensor_data"] })
}

/// All models: the one that answers.
#[utoipa::path(post, path = "/v2/repository/index", responses((status = 200, body = Vec<IndexRow>)))]
pub(super) async fn index(State(app): Shared) -> Json<Vec<IndexRow>> {
    let name = app.engine.model().name.clone();
    Json(vec![IndexRow { name, version: VERSION, state: "READY", reason: "" }])
}

/// What the model takes and gives.
#[utoipa::path(
    get,
    path = "/v2/models/{model}",
    params(("model" = String, Path, description = "The model")),
    responses((status = 200, body = ModelMetadata), (status = 404, description = "Another model answers", body = InferError))
)]
pub(super) async fn model(named: Named) -> Result<Json<ModelMetadata>, Failure> {
    let tensor = |name, datatype| TensorMetadata { name, datatype, shape: [-1] };
    Ok(Json(ModelMetadata {
        name: named.name().to_owned(),
        versions: [VERSION],
        platform: "hopedgn_safetensors",
        inputs: vec![tensor("src", "BYTES"), tensor("dst", "BYTES"), tensor("time", "FP64")],
        outputs: named.outputs()?.iter().map(|output| tensor(output.name(), "FP32")).collect(),
    }))
}

/// What a version of the model takes and gives.
#[utoipa::path(
    get,
    path = "/v2/models/{model}/versions/{version}",
    params(("model" = String, Path, description = "The model"), ("version" = String, Path, description = "1")),
    responses((status = 200, body = ModelMetadata), (status = 404, description = "Another model answers", body = InferError))
)]
pub(super) async fn model_version(named: Named) -> Result<Json<ModelMetadata>, Failure> {
    model(named).await
}

/// Whether the model answers.
#[utoipa::path(
    get,
    path = "/v2/models/{model}/ready",
    params(("model" = String, Path, description = "The model")),
    responses(
        (status = 200, body = ModelReady),
        (status = 404, description = "Another model answers", body = InferError),
        (status = 503, description = "The server is about to end", body = InferError),
    )
)]
pub(super) async fn model_ready(State(app): Shared, named: Named) -> Result<Json<ModelReady>, Failure> {
    check_answers(&app)?;
    Ok(Json(ModelReady { name: named.name().to_owned(), ready: true }))
}

/// Whether a version of the model answers.
#[utoipa::path(
    get,
    path = "/v2/models/{model}/versions/{version}/ready",
    params(("model" = String, Path, description = "The model"), ("version" = String, Path, description = "1")),
    responses(
        (status = 200, body = ModelReady),
        (status = 404, description = "Another model answers", body = InferError),
        (status = 503, description = "The server is about to end", body = InferError),
    )
)]
pub(super) async fn model_version_ready(app: Shared, named: Named) -> Result<Json<ModelReady>, Failure> {
    model_ready(app, named).await
}
