//! Admission: a request gets a place before its body is read, or is answered 429 at once.
//!
//! Requests that are refused must cost little, otherwise those that are answered become slow when there are too many. A place is as large as
//! the body, so that the work that waits is bounded, whether it is in a few large requests or in many small ones.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;

use super::Failure;
use crate::lanes::NoAnswer;

/// Bytes of a refused body that are read and thrown away, so that the client can send it to its end and then read the answer.
const DRAINED_BYTES: usize = 1 << 20;

/// Places for requests of one kind.
#[derive(Debug, Clone)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Bytes of bodies that may be under way.
    total: u32,
    /// What a request takes at least.
    least: u32,
}

impl Places {
    /// For so many small requests, or so many bytes of large ones.
    pub(super) fn new(requests: usize, bytes: usize) -> Self {
        let requests = u32::try_from(requests.max(1)).unwrap_or(u32::MAX);
        let total = u32::try_from(bytes).unwrap_or(u32::MAX).clamp(requests, 1 << 29);
        Self { free: Arc::new(Semaphore::new(total as usize)), total, least: total / requests }
    }

    /// How much of the places a body of so many bytes takes; a larger one than all takes all of them.
    fn share(&self, bytes: Option<u64>) -> u32 {
        // A body in chunks does not say its length.
        let bytes = bytes.map_or(self.total / 8, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        bytes.clamp(self.least, self.total)
    }
}

/// Lets a request in if there is a place for it.
pub(super) async fn admit(State(places): State<Places>, request: Request, next: Next) -> Response {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let is_chunked = request.headers().contains_key(axum::http::header::TRANSFER_ENCODING);
    let length = length.or(if is_chunked { None } else { Some(0) });
    let Ok(place) = Arc::clone(&places.free).try_acquire_many_owned(places.share(length)) else {
        drain(request.into_body()).await;
        return Failure::from(NoAnswer::Busy).into_response();
    };
    let response = next.run(request).await;
    drop(place);
    response
}

/// Reads a body and throws it away, up to a bound.
async fn drain(mut body: Body) {
    let mut read = 0;
    while read < DRAINED_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        read += frame.data_ref().map_or(0, axum::body::Bytes::len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_requests_take_more_places_than_small_ones() {
        let places = Places::new(64, 1 << 18);
        assert_eq!(places.share(Some(70)), 1 << 12);
        assert_eq!(places.share(Some(30_000)), 30_000);
        assert_eq!(places.share(Some(1 << 40)), 1 << 18);
        assert_eq!(places.share(None), 1 << 15);
        let few = Places::new(4, 1);
        assert_eq!((few.share(Some(0)), few.total), (1, 4));
    }
}
