//! What [`Problem::TooMany`](super::Problem::TooMany) counts, where the way out depends on it.

/// Events of a store in memory.
pub(crate) const IN_MEMORY: &str = "events in a store in memory";
/// Events of the stream of which some are in a store in memory.
pub(crate) const IN_MEMORY_OF: &str = "events in the stream of a store in memory";
/// Events of a store that grows.
pub(crate) const GROWING: &str = "events in a store that grows";
/// Events that are sorted in memory.
pub(crate) const TO_SORT: &str = "events to sort";
