//! `GET /v1/runs`: the runs beside the one that answers, and their reports.

use std::path::{Path as FilePath, PathBuf};
use std::sync::PoisonError;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use hopedgn::run::RunFolder;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::failure::FailureAnswer;
use super::{App, Failure, Shared};

/// Runs of an answer at most, the newest.
const MOST: usize = 100;

/// The runs beside the one that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunsAnswer {
    /// The newest first.
    runs: Vec<RunRow>,
}

/// A run: what was trained, and how well it did.
#[derive(Debug, Serialize, ToSchema)]
struct RunRow {
    /// Its folder.
    name: String,
    /// Whether it answers now.
    current: bool,
    model: Option<String>,
    data: Option<String>,
    seed: Option<u64>,
    epochs: Option<u64>,
    best_epoch: Option<u64>,
    seconds_per_epoch: Option<f64>,
    device: Option<String>,
    /// Test results by setting, as in `summary.json`.
    #[schema(value_type = Option<Object>)]
    test: Option<Value>,
    /// Results of ranking, if it was evaluated.
    #[schema(value_type = Option<Object>)]
    ranking: Option<Value>,
    /// How well probabilities fit what happened, if it was evaluated.
    calibration: Option<Calibration>,
    /// Loss and validation of each epoch.
    curve: Vec<CurveRow>,
    /// Whether there is a report.
    has_report: bool,
}

/// How well probabilities fit what happened.
#[derive(Debug, Serialize, ToSchema)]
struct Calibration {
    error: Option<f64>,
    bins: Vec<CalibrationBin>,
}

/// Pairs of similar probability.
#[derive(Debug, Serialize, ToSchema)]
struct CalibrationBin {
    predicted: f64,
    observed: f64,
    count: u64,
}

/// An epoch.
#[derive(Debug, Serialize, ToSchema)]
struct CurveRow {
    epoch: usize,
    loss: f64,
    val_ap: Option<f64>,
    val_auc: Option<f64>,
}

/// The runs beside the one that answers.
#[utoipa::path(get, path = "/v1/runs", responses((status = 200, body = RunsAnswer)))]
pub(super) async fn runs(State(app): Shared) -> Result<Json<RunsAnswer>, Failure> {
    let current = current_folder(&app);
    let listed = tokio::task::spawn_blocking(move || {
        let mut folders = folders(&current);
        folders.truncate(MOST);
        RunsAnswer { runs: folders.iter().map(|folder| row(folder, &current)).collect() }
    });
    listed.await.map(Json).map_err(|_| Failure::from(crate::lanes::NoAnswer::Defect))
}

/// The report of a run, as a page of its own.
#[utoipa::path(
    get,
    path = "/v1/runs/{name}/report",
    params(("name" = String, Path, description = "The run")),
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (status = 404, description = "No such run, or no report", body = FailureAnswer),
    )
)]
pub(super) async fn report(State(app): Shared, Path(name): Path<String>) -> Result<Response, Failure> {
    let current = current_folder(&app);
    let sought = name.clone();
    // Only names that are listed: a path of a client is never opened.
    let read = tokio::task::spawn_blocking(move || {
        let folder = folders(&current).into_iter().find(|folder| name_of(folder) == sought)?;
        std::fs::read(folder.join("report.html")).ok()
    });
    let Some(html) = read.await.ok().flatten() else {
        let message = format!("found no report of a run {name:?}, expected one of /v1/runs");
        return Err(Failure::new(StatusCode::NOT_FOUND, "not-found", message));
    };
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, policy)];
    Ok((headers, html).into_response())
}

fn current_folder(app: &App) -> PathBuf {
    let run = app.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
    run.canonicalize().unwrap_or(run)
}

/// Run folders beside `current`, itself included, the newest first.
fn folders(current: &FilePath) -> Vec<PathBuf> {
    let entries = current.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    let is_run = |folder: &PathBuf| folder.join("config.toml").is_file();
    let mut folders: Vec<PathBuf> =
        entries.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).filter(is_run).collect();
    let changed = |folder: &PathBuf| folder.join("config.toml").metadata().and_then(|file| file.modified()).ok();
    folders.sort_by_cached_key(|folder| (std::cmp::Reverse(changed(folder)), folder.clone()));
    folders
}

fn name_of(folder: &FilePath) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What is known about a run; one that is damaged or not finished has gaps.
fn row(folder: &FilePath, current: &FilePath) -> RunRow {
    let read = |file: &str| -> Option<Value> { serde_json::from_slice(&std::fs::read(folder.join(file)).ok()?).ok() };
    let (summary, evaluation) = (read("summary.json").unwrap_or_default(), read("evaluation.json").unwrap_or_default());
    let text = |name: &str| summary[name].as_str().map(str::to_owned);
    let model = text("model");
    let scorer = model.clone().unwrap_or_default();
    let ranking = evaluation["ranking"]["scorers"][&scorer]["transductive"].clone();
    let curve = RunFolder::open(folder).and_then(|run| run.metrics()).unwrap_or_default();
    RunRow {
        name: name_of(folder),
        current: folder.canonicalize().is_ok_and(|folder| folder == *current),
        data: text("data"),
        seed: summary["seed"].as_u64(),
        epochs: summary["epochs"].as_u64(),
        best_epoch: summary["best_epoch"].as_u64(),
        seconds_per_epoch: summary["seconds_per_epoch"].as_f64(),
        device: text("device"),
        test: Some(summary["test"].clone()).filter(Value::is_object),
        ranking: Some(ranking).filter(Value::is_object),
        calibration: calibration(&evaluation["calibration"]),
        curve: curve
            .iter()
            .map(|epoch| CurveRow {
                epoch: epoch.epoch,
                loss: epoch.loss,
                val_ap: epoch.val.transductive.map(|metrics| metrics.ap),
                val_auc: epoch.val.transductive.map(|metrics| metrics.auc),
            })
            .collect(),
        has_report: folder.join("report.html").is_file(),
        model,
    }
}

fn calibration(measured: &Value) -> Option<Calibration> {
    let bin = |bin: &Value| {
        let (predicted, observed) = (bin["predicted"].as_f64()?, bin["observed"].as_f64()?);
        Some(CalibrationBin { predicted, observed, count: bin["pairs"].as_u64()? })
    };
    let bins = measured["bins"].as_array()?.iter().filter_map(bin).collect();
    Some(Calibration { error: measured["error"].as_f64(), bins })
}
