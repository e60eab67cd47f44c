//! Why events are not taken in.

/// Why a request with events is refused. Nothing of it is taken in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("found more requests than can be taken in, expected fewer at a time; repeat it later")]
    Busy,
    #[error("found a server that is stopping, expected one that takes events in; repeat it with the next one")]
    Stopping,
    #[error(
        "found the time {time} of event {row}, expected at least {watermark}, the newest time that later events may have; send events \
         in order of time, or let the server hold events back"
    )]
    Late { row: u64, time: f64, watermark: f64 },
    #[error("event {row}: {}", error.finding())]
    Invalid { row: u64, error: ctdg::Error },
    #[error("found an Idempotency-Key that came with other events before, expected a new key for new events")]
    KeyReused,
    #[error("found a log that cannot be written ({0}), expected room on the disk; free some and repeat the request")]
    ReadOnly(String),
}
