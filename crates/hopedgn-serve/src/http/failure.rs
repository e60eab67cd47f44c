//! Answers that are errors: `{"error": {"code": …, "message": …}}`.

use std::any::Any;

use axum::Json;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{Response as HttpResponse, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::intake::Refused;
use crate::lanes::NoAnswer;

/// An error as an answer.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    error: Facts,
    /// Seconds after which to try again.
    retry_after: Option<u32>,
}

/// The message of an error beside its body, for interfaces that write it in another form.
#[derive(Debug, Clone)]
pub(super) struct Message(pub(super) String);

/// The body of an error.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailureAnswer {
    error: Facts,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
struct Facts {
    /// A stable word for programs.
    code: &'static str,
    /// What was found, what was expected, what to do.
    message: String,
    /// The event or pair at fault, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, error: Facts { code, message: message.into(), row: None }, retry_after: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid-request", message)
    }

    /// The same, of an event or a pair.
    pub(crate) fn in_row(mut self, row: u64) -> Self {
        self.error.row = Some(row);
        self
    }

    /// A node without events.
    pub(crate) fn unknown_node(id: &str) -> Self {
        let message = format!("found no events of {id:?}, expected the id of a node with events");
        Self::new(StatusCode::NOT_FOUND, "unknown-node", message)
    }

    pub(crate) fn too_many(what: &str, found: usize, most: usize) -> Self {
        let message = format!("found {found} {what}, expected at most {most}; send them in several requests");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-many-rows", message)
    }

    fn retry(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(super) fn unauthorized() -> Self {
        let message = "found no known token, expected the header `Authorization: Bearer TOKEN`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(super) fn forbidden() -> Self {
        let message = "found a token for reading, expected one for writing";
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let is_unauthorized = self.status == StatusCode::UNAUTHORIZED;
        let message = Message(self.error.message.clone());
        let mut response = (self.status, Json(FailureAnswer { error: self.error })).into_response();
        response.extensions_mut().insert(message);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if is_unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).retry(1),
            Refused::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message).retry(5),
            Refused::Late { row, .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "late-event", message).in_row(row),
            Refused::Invalid { row, error } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), message).in_row(row)
            }
            Refused::KeyReused => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "key-reused", message),
            Refused::ReadOnly(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "read-only", message).retry(30),
        }
    }
}

impl From<NoAnswer> for Failure {
    fn from(none: NoAnswer) -> Self {
        let message = none.to_string();
        match none {
            NoAnswer::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).retry(1),
            NoAnswer::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message).retry(5),
            NoAnswer::Defect => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", message),
            NoAnswer::Failed(error) => Self::from(error),
        }
    }
}

impl From<hopedgn::Error> for Failure {
    fn from(error: hopedgn::Error) -> Self {
        let status = match &error {
            hopedgn::Error::NotExplained { .. } | hopedgn::Error::Setting { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

impl From<QueryRejection> for Failure {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<BytesRejection> for Failure {
    fn from(rejection: BytesRejection) -> Self {
        let code =
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE { "body-too-large" } else { "invalid-request" };
        Self::new(rejection.status(), code, rejection.body_text())
    }
}

pub(super) async fn no_such_path(uri: Uri) -> Failure {
    let message = format!("found no {}, expected a path of /openapi.json", uri.path());
    Failure::new(StatusCode::NOT_FOUND, "not-found", message)
}

pub(super) async fn no_such_method() -> Failure {
    let message = "found another method than the path has, expected one of /openapi.json";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", message)
}

/// A handler that panicked, which is a defect.
pub(super) fn panicked(_: Box<dyn Any + Send>) -> HttpResponse<axum::body::Body> {
    metrics::counter!("hopedgn_panics_total").increment(1);
    tracing::error!("a request panicked");
    Failure::from(NoAnswer::Defect).into_response()
}
