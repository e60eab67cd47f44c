//! `POST /v1/events`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::HeaderMap;
use ctdg::dataset::log::{LogEvent, LogRequest, MAX_ID_BYTES, Receipt, RequestKey};
use ctdg::time::TimeFormat;

use super::body::{BodyKind, json_lines, json_rows};
use super::failure::FailureAnswer;
use super::{Failure, Shared};
use crate::wire::{EventRow, EventsAnswer};

/// The header that tells a repeated request from a new one.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Takes events in. They are on disk when the answer comes: all of them or, if one is refused, none.
#[utoipa::path(
    post,
    path = "/v1/events",
    request_body(content(
        (Vec<EventRow> = "application/json"),
        (EventRow = "application/x-ndjson"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )),
    params(("Idempotency-Key" = Option<String>, Header, description = "A request with a key that came before is answered as then, and not taken in again")),
    responses(
        (status = 200, body = EventsAnswer),
        (status = 422, description = "An event is wrong, or older than the newest one", body = FailureAnswer),
        (status = 429, description = "Too many requests wait", body = FailureAnswer),
        (status = 507, description = "The log cannot be written", body = FailureAnswer),
    )
)]
pub(super) async fn take(
    State(app): Shared,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<EventsAnswer>, Failure> {
    let body = body?;
    let format = app.engine.events().stream().time_format();
    let events = match BodyKind::of(&headers)? {
        BodyKind::Json => log_events(json_rows(&body, "events")?, format)?,
        BodyKind::JsonLines => log_events(json_lines(&body)?, format)?,
        BodyKind::Arrow => super::arrow::events(&body, format)?,
    };
    let most = app.options.limits.events;
    if events.len() > most {
        return Err(Failure::too_many("events", events.len(), most));
    }
    for (row, event) in (0..).zip(&events) {
        let texts = [Some(&event.src), Some(&event.dst), event.id.as_ref()];
        if let Some(long) = texts.into_iter().flatten().find(|text| text.len() > MAX_ID_BYTES) {
            let message = format!("found an id of {} bytes, expected at most {MAX_ID_BYTES}", long.len());
            return Err(Failure::invalid(message).in_row(row));
        }
    }
    let key = key(&headers)?;
    if events.is_empty() {
        let watermark = app.engine.state().watermark();
        return Ok(Json(EventsAnswer { accepted: 0, duplicates: 0, first_seq: None, last_seq: None, watermark }));
    }
    let Receipt { accepted, duplicates, first, last, watermark } = app.intake.take(LogRequest { key, events }).await?;
    let (first_seq, last_seq, watermark) = (Some(first), Some(last), Some(watermark));
    Ok(Json(EventsAnswer { accepted, duplicates, first_seq, last_seq, watermark }))
}

fn key(headers: &HeaderMap) -> Result<Option<RequestKey>, Failure> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let name = value.to_str().ok().filter(|name| !name.is_empty() && name.len() <= MAX_ID_BYTES);
    let expected = || format!("expected an Idempotency-Key of 1 to {MAX_ID_BYTES} printable characters");
    name.map(|name| Some(RequestKey { name: name.to_owned(), ..RequestKey::default() }))
        .ok_or_else(|| Failure::invalid(expected()))
}

fn log_events(rows: Vec<EventRow>, format: TimeFormat) -> Result<Vec<LogEvent>, Failure> {
    let event = |(row, event): (u64, EventRow)| {
        let EventRow { src, dst, time, label, features, id } = event;
        let time = time.value(format).map_err(|message| Failure::invalid(message).in_row(row))?;
        let [src, dst] = [src, dst].map(crate::wire::Id::into_text);
        Ok(LogEvent { src, dst, time, label, features, id: id.map(crate::wire::Id::into_text) })
    };
    (0..).zip(rows).map(event).collect()
}
