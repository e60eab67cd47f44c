//! `GET /v1/recommend`.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use hopedgn::{Candidates, RecommendOptions};
use serde::Deserialize;
use utoipa::IntoParams;

use super::failure::FailureAnswer;
use super::{Failure, Shared};
use crate::engine::View;
use crate::wire::{Id, RecommendAnswer, RecommendRow, Time, date};

/// What is asked for.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// The source.
    src: String,
    /// How many destinations; 10 by default.
    #[serde(default = "ten")]
    k: usize,
    /// The time that is asked about, a number or a date; just after the newest event by default.
    #[serde(default)]
    time: Option<String>,
    /// Whether to compare all destinations, or candidates alone: recent partners, their partners, and popular destinations.
    #[serde(default)]
    exact: bool,
    /// Whether to leave out destinations that the source has met.
    #[serde(default)]
    exclude_seen: bool,
    /// Whether to say why.
    #[serde(default)]
    reasons: bool,
}

fn ten() -> usize {
    10
}

/// The likeliest destinations of a source.
#[utoipa::path(
    get,
    path = "/v1/recommend",
    params(Asked),
    responses(
        (status = 200, body = RecommendAnswer),
        (status = 429, description = "Too many requests wait", body = FailureAnswer),
    )
)]
pub(super) async fn recommend(
    State(app): Shared,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<RecommendAnswer>, Failure> {
    let Query(asked) = asked?;
    let most = app.options.limits.top;
    if asked.k == 0 || asked.k > most {
        return Err(Failure::invalid(format!("found k={}, expected 1 to {most}", asked.k)));
    }
    let format = app.engine.events().stream().time_format();
    let time = asked.time.clone().map(|time| Time::Date(time).value(format)).transpose().map_err(Failure::invalid)?;
    let answer = app.answers.ask(move |view| answer(view, &asked, time)).await?;
    Ok(Json(answer))
}

fn answer(view: &View, asked: &Asked, time: Option<f64>) -> hopedgn::Result<RecommendAnswer> {
    let (stream, predictor) = (view.snapshot.stream(), &view.predictor);
    let time = time.unwrap_or_else(|| predictor.events().end());
    let candidates = if asked.exact { Candidates::All } else { Candidates::Near };
    let options =
        RecommendOptions { time, top: asked.k, exclude_seen: asked.exclude_seen, reasons: asked.reasons, candidates };
    let mut compared = 0;
    let best = predictor.recommend_with(&asked.src, &options, &mut |n| compared += n)?;
    let items = (1..).zip(best).map(|(rank, best)| RecommendRow {
        rank,
        dst: Id::named(stream, best.dst),
        score: best.score,
        probability: best.probability,
        known: best.known,
        reason: best.reason.map(|reason| reason.to_string()),
    });
    Ok(RecommendAnswer {
        model: view.model.name.clone(),
        seq: view.seq(),
        src: Id::named(stream, asked.src.clone()),
        known: predictor.knows_source(&asked.src)?,
        time,
        date: date(stream, time),
        items: items.collect(),
        compared,
    })
}
