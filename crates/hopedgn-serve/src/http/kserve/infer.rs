//! `POST /v2/models/{model}/infer`.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::super::{Failure, Shared};
use super::outputs::{AnswerParameters, InferAnswer, JSON_LENGTH, OutputTensor};
use super::request::{Asked, InferRequest, Reader};
use super::{InferError, Named, VERSION};

/// How likely each of some pairs is.
#[utoipa::path(
    post,
    path = "/v2/models/{model}/infer",
    request_body(content((InferRequest = "application/json"), (Vec<u8> = "application/octet-stream"))),
    params(
        ("model" = String, Path, description = "The model"),
        ("Inference-Header-Content-Length" = Option<usize>, Header, description = "How many bytes of the body are JSON, if those of tensors follow"),
    ),
    responses(
        (status = 200, content((InferAnswer = "application/json"), (Vec<u8> = "application/octet-stream"))),
        (status = 400, description = "No such request, inputs or outputs", body = InferError),
        (status = 404, description = "Another model answers", body = InferError),
        (status = 413, description = "Too many pairs", body = InferError),
        (status = 429, description = "Too many requests wait", body = InferError),
    )
)]
pub(super) async fn infer(
    State(app): Shared,
    named: Named,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Failure> {
    let body = body?;
    let format = app.engine.events().stream().time_format();
    let reader = Reader { offered: named.outputs()?, most: app.options.limits.pairs, format };
    let Asked { id, pairs, outputs } = reader.read(&body, json_length(&headers)?)?;
    let answer = app.scores.score(pairs).await?;
    let mut binary = Vec::new();
    let mut tensors = Vec::with_capacity(outputs.len());
    for (output, encoding) in outputs {
        let values: Option<Vec<f32>> = answer.pairs.iter().map(|scored| output.of(&scored.prediction)).collect();
        let values = values.filter(|_| answer.model == named.name()).ok_or_else(replaced)?;
        tensors.push(OutputTensor::new(output, values, encoding, &mut binary));
    }
    let parameters = AnswerParameters { seq: answer.seq };
    let answer = InferAnswer { id, model_name: answer.model, model_version: VERSION, parameters, outputs: tensors };
    Ok(answer.with_binary(&binary))
}

/// How likely each of some pairs is, by a version of the model.
#[utoipa::path(
    post,
    path = "/v2/models/{model}/versions/{version}/infer",
    request_body(content((InferRequest = "application/json"), (Vec<u8> = "application/octet-stream"))),
    params(
        ("model" = String, Path, description = "The model"),
        ("version" = String, Path, description = "1"),
        ("Inference-Header-Content-Length" = Option<usize>, Header, description = "How many bytes of the body are JSON, if those of tensors follow"),
    ),
    responses(
        (status = 200, content((InferAnswer = "application/json"), (Vec<u8> = "application/octet-stream"))),
        (status = 400, description = "No such request, inputs or outputs", body = InferError),
        (status = 404, description = "Another model answers", body = InferError),
        (status = 413, description = "Too many pairs", body = InferError),
        (status = 429, description = "Too many requests wait", body = InferError),
    )
)]
pub(super) async fn infer_version(
    app: Shared,
    named: Named,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Failure> {
    infer(app, named, headers, body).await
}

/// How many bytes of the body are JSON, if it has others.
fn json_length(headers: &HeaderMap) -> Result<Option<usize>, Failure> {
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        let message = format!("found a body with Content-Encoding {encoding:?}, expected one that is not compressed");
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-type", message));
    }
    let Some(value) = headers.get(JSON_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|value| value.trim().parse().ok());
    let wrong =
        || Failure::invalid(format!("found {value:?} as Inference-Header-Content-Length, expected a number of bytes"));
    length.map(Some).ok_or_else(wrong)
}

/// While a request waited, another model came.
fn replaced() -> Failure {
    let message =
        "found another model than when the request came, expected the same; repeat it with the name of the new one";
    Failure::new(StatusCode::CONFLICT, "model-replaced", message)
}
