//! `GET` and `POST /v1/models`.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use hopedgn::Events;

use super::body::json;
use super::failure::FailureAnswer;
use super::{App, Failure, Shared};
use crate::engine::LoadedModel;
use crate::wire::{ModelAnswer, ModelRequest, ModelStatus};

/// The model that answers.
#[utoipa::path(get, path = "/v1/models", responses((status = 200, body = ModelStatus)))]
pub(super) async fn current(State(app): Shared) -> Result<Json<ModelStatus>, Failure> {
    Ok(Json(model_status(&app)?))
}

pub(super) fn model_status(app: &App) -> Result<ModelStatus, Failure> {
    let model = app.engine.model();
    Ok(ModelStatus {
        name: model.name.clone(),
        architecture: model.live.config().model.name().as_str().to_owned(),
        probabilities: model.live.score_meaning()? != hopedgn::predict::ScoreMeaning::Separation,
    })
}

/// Loads another run and answers with it from then on. Requests meanwhile are answered by the model before.
#[utoipa::path(
    post,
    path = "/v1/models",
    request_body = ModelRequest,
    responses(
        (status = 200, body = ModelAnswer),
        (status = 422, description = "There is no such run, or it was trained on other events", body = FailureAnswer),
    )
)]
pub(super) async fn load(
    State(app): Shared,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ModelAnswer>, Failure> {
    let ModelRequest { run } = json(&body?)?;
    let swapped = tokio::task::spawn_blocking(move || swap(&app, run.as_ref())).await;
    swapped.unwrap_or_else(|_| Err(Failure::from(crate::lanes::NoAnswer::Defect))).map(Json)
}

/// Loads the run in `folder` and swaps it in.
pub(crate) fn swap(app: &Arc<App>, folder: &Path) -> Result<ModelAnswer, Failure> {
    let refused = |error: &dyn std::fmt::Display, code| {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, code, format!("the model stays as it was: {error}"))
    };
    let snapshot = app.engine.events();
    let events = snapshot.stream().settled().map_err(|error| refused(&error, error.code()))?.into_owned();
    let events = Events::from_stream("log", events);
    let model = LoadedModel::load(folder, &events, &app.options).map_err(|error| refused(&error, error.code()))?;
    let name = model.name.clone();
    let previous = app.engine.swap(model);
    folder.clone_into(&mut app.run.lock().unwrap_or_else(PoisonError::into_inner));
    tracing::info!(model = name, previous = previous.name, "another model answers");
    Ok(ModelAnswer { model: name, previous: previous.name.clone(), seq: snapshot.stream().len() as u64 })
}
