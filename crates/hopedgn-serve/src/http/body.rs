//! Bodies of requests: JSON, one JSON document per line, Arrow.

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::Failure;

/// What a body is, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Json,
    JsonLines,
    Arrow,
}

impl BodyKind {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(Self::Json) };
        let kind = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match &*kind {
            // What curl says unless told otherwise.
            "application/json" | "application/x-www-form-urlencoded" | "" => Ok(Self::Json),
            "application/x-ndjson" | "application/jsonl" | "application/x-jsonlines" => Ok(Self::JsonLines),
            "application/vnd.apache.arrow.stream" => Ok(Self::Arrow),
            _ => {
                let message = format!(
                    "found a body of type {kind}, expected application/json, application/x-ndjson or application/vnd.apache.arrow.stream"
                );
                Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-type", message))
            }
        }
    }
}

/// The document of a body.
pub(super) fn json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::invalid(format!("found no such JSON document: {error}")))
}

/// Rows of a body: an array, `{"events": [...]}` under this name, or a single row.
pub(super) fn json_rows<T: DeserializeOwned>(body: &Bytes, name: &str) -> Result<Vec<T>, Failure> {
    let text = body.trim_ascii();
    if text.starts_with(b"[")
        && let Ok(rows) = serde_json::from_slice(text)
    {
        return Ok(rows);
    }
    // Slower, and says what is wrong with which row.
    let mut document: serde_json::Value = json(body)?;
    let is_wrapped = document.as_object().is_some_and(|fields| fields.contains_key(name));
    if is_wrapped && document.as_object().is_some_and(|fields| fields.len() > 1) {
        return Err(Failure::invalid(format!("found other fields beside `{name}`, expected none")));
    }
    let rows = if is_wrapped { document[name].take() } else { document };
    let rows = match rows {
        serde_json::Value::Array(rows) => rows,
        row @ serde_json::Value::Object(_) => vec![row],
        _ => return Err(Failure::invalid(format!("found no rows, expected an array, or an object with `{name}`"))),
    };
    let row = |(at, row): (usize, serde_json::Value)| {
        serde_json::from_value(row).map_err(|error| wrong_row(at as u64, &error.to_string()))
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// Rows of a body with one document per line.
pub(super) fn json_lines<T: DeserializeOwned>(body: &Bytes) -> Result<Vec<T>, Failure> {
    let lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let row = |(at, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|error| wrong_row(at as u64, &error.to_string()))
    };
    lines.enumerate().map(row).collect()
}

fn wrong_row(row: u64, problem: &str) -> Failure {
    Failure::invalid(format!("row {row}: {problem}")).in_row(row)
}
