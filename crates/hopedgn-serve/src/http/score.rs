//! `POST /v1/score`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use ctdg::event::{EventId, EventStream};
use ctdg::time::TimeFormat;
use hopedgn::predict::KnownNodes;

use super::body::{BodyKind, json};
use super::failure::FailureAnswer;
use super::{Failure, Shared};
use crate::engine::View;
use crate::lanes::{Pair, Scored, score as score_pairs};
use crate::wire::{Id, Known, PairRow, ScoreAnswer, ScoreRequest, ScoreRow, date};

/// How likely each of some pairs is, and why if it is asked for.
#[utoipa::path(
    post,
    path = "/v1/score",
    request_body = ScoreRequest,
    responses(
        (status = 200, body = ScoreAnswer),
        (status = 422, description = "The model's scores cannot be explained", body = FailureAnswer),
        (status = 429, description = "Too many requests wait", body = FailureAnswer),
    )
)]
pub(super) async fn score(
    State(app): Shared,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ScoreAnswer>, Failure> {
    let body = body?;
    if BodyKind::of(&headers)? != BodyKind::Json {
        return Err(Failure::invalid("found another body than application/json, expected `{\"pairs\": [...]}`"));
    }
    let ScoreRequest { pairs, explain, without } = json(&body)?;
    let most = app.options.limits.pairs;
    if pairs.len() > most {
        return Err(Failure::too_many("pairs", pairs.len(), most));
    }
    let snapshot = app.engine.events();
    let ids: Vec<(Id, Id)> = pairs.iter().map(|pair| (pair.src.clone(), pair.dst.clone())).collect();
    let pairs = asked(pairs, snapshot.stream().time_format())?;
    if explain && !without.is_empty() {
        return Err(Failure::invalid("found both explain and without, expected one of them"));
    }
    if !without.is_empty() {
        let without: Vec<EventId> = without.into_iter().map(EventId).collect();
        let answer = app.answers.ask(move |view| what_if(view, &pairs, ids, &without)).await?;
        return Ok(Json(answer));
    }
    if explain {
        let answer = app.answers.ask(move |view| explained(view, &pairs, ids)).await?;
        return Ok(Json(answer));
    }
    let answer = app.scores.score(pairs).await?;
    let rows = answer.pairs.iter().zip(ids).map(|(scored, ids)| row(snapshot.stream(), scored, ids));
    Ok(Json(ScoreAnswer { scores: rows.collect(), model: answer.model, seq: answer.seq }))
}

fn asked(pairs: Vec<PairRow>, format: TimeFormat) -> Result<Vec<Pair>, Failure> {
    let pair = |(row, pair): (u64, PairRow)| {
        let time = pair.time.map(|time| time.value(format)).transpose();
        let time = time.map_err(|message| Failure::invalid(message).in_row(row))?;
        Ok(Pair { src: pair.src.into_text(), dst: pair.dst.into_text(), time })
    };
    (0..).zip(pairs).map(pair).collect()
}

fn row(stream: &EventStream, scored: &Scored, (src, dst): (Id, Id)) -> ScoreRow {
    let Scored { time, prediction, known: KnownNodes { src: src_known, dst: dst_known } } = *scored;
    ScoreRow {
        src,
        dst,
        time,
        date: date(stream, time),
        score: prediction.score,
        probability: prediction.likelihood.map(|of| of.probability),
        intensity: prediction.likelihood.map(|of| of.intensity),
        lift: prediction.likelihood.map(|of| of.lift),
        known: Known { src: src_known, dst: dst_known },
        explanation: None,
    }
}

fn explained(view: &View, pairs: &[Pair], ids: Vec<(Id, Id)>) -> hopedgn::Result<ScoreAnswer> {
    view.predictor.check_explains()?;
    let stream = view.snapshot.stream();
    let all: Vec<&Pair> = pairs.iter().collect();
    let mut rows = Vec::with_capacity(pairs.len());
    for ((scored, pair), ids) in score_pairs(view, &all)?.iter().zip(pairs).zip(ids) {
        let why = view.predictor.explain(&pair.src, &pair.dst, scored.time)?;
        let why = why.map_nodes(|name| Id::named(stream, name));
        rows.push(ScoreRow { explanation: serde_json::to_value(why).ok(), ..row(stream, scored, ids) });
    }
    Ok(ScoreAnswer { model: view.model.name.clone(), seq: view.seq(), scores: rows })
}

/// The scores on a stream without some events. Intensity and lift also depend on how busy the source is, and are left out.
fn what_if(view: &View, pairs: &[Pair], ids: Vec<(Id, Id)>, without: &[EventId]) -> hopedgn::Result<ScoreAnswer> {
    view.predictor.check_explains()?;
    let all: Vec<&Pair> = pairs.iter().collect();
    let mut rows = Vec::with_capacity(pairs.len());
    for ((scored, pair), ids) in score_pairs(view, &all)?.iter().zip(pairs).zip(ids) {
        let score = view.predictor.predict_without(&pair.src, &pair.dst, scored.time, without)?;
        let row = row(view.snapshot.stream(), scored, ids);
        rows.push(ScoreRow { score, probability: row.probability.map(|_| score), intensity: None, lift: None, ..row });
    }
    Ok(ScoreAnswer { model: view.model.name.clone(), seq: view.seq(), scores: rows })
}
