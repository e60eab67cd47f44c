//! What requests and answers look like as JSON.

use std::fmt;

use ctdg::event::{EventStream, NodeId};
use ctdg::time::{TimeFormat, parse_date};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// The id of a node: a number or text. `7` and `"7"` are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Id {
    /// A number.
    Number(u64),
    /// Text.
    Text(String),
}

/// The largest integer up to which JavaScript, and with it many readers of JSON, have all integers.
const MOST_EXACT: u64 = (1 << 53) - 1;

impl Id {
    /// The name of a node, as a number if those of all nodes are.
    pub(crate) fn of(stream: &EventStream, node: NodeId) -> Self {
        Self::named(stream, stream.names().name(node))
    }

    /// A name, as a number if those of all nodes are.
    pub(crate) fn named(stream: &EventStream, name: String) -> Self {
        let number = name.parse().ok().filter(|&number| stream.names().are_integers() && number <= MOST_EXACT);
        number.map_or(Self::Text(name), Self::Number)
    }

    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

/// A time: a number, or a date where the data has dates.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Time {
    /// A number; seconds since 1970 where the data has dates.
    Number(f64),
    /// A date such as `2024-01-31 12:00:00`.
    Date(String),
}

impl Time {
    /// The time in the data's own numbers.
    pub(crate) fn value(&self, format: TimeFormat) -> Result<f64, String> {
        let value = match self {
            Self::Number(number) => Some(*number),
            Self::Date(text) if format == TimeFormat::Date => parse_date(text).ok(),
            Self::Date(text) => text.parse().ok(),
        };
        let expected = match format {
            TimeFormat::Number => "a finite number",
            TimeFormat::Date => "a date like 2024-01-31 12:00, or seconds since 1970",
        };
        value.filter(|time| time.is_finite()).ok_or_else(|| {
            let found = match self {
                Self::Number(number) => number.to_string(),
                Self::Date(text) => format!("{text:?}"),
            };
            format!("found the time {found}, expected {expected}")
        })
    }
}

/// Read by hand: untagged enums are copied to be tried one by one, which took most of the time of taking events in.
impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl Visitor<'_> for IdVisitor {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the id of a node: text, or an integer from 0")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
                Ok(Id::Number(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                Ok(Id::Text(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Id, E> {
                Ok(Id::Text(text))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// An integer that a 64-bit float holds exactly.
fn exact<E: de::Error>(number: i128) -> Result<f64, E> {
    #[expect(clippy::cast_possible_truncation, reason = "compared below")]
    let (float, back) = (number as f64, number as f64 as i128);
    if back == number { Ok(float) } else { Err(E::custom(format!("the time {number} would be rounded to {float}"))) }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;

        impl Visitor<'_> for TimeVisitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time: a number, or a date as text")
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Time, E> {
                Ok(Time::Number(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Time, E> {
                exact(number.into()).map(Time::Number)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Time, E> {
                exact(number.into()).map(Time::Number)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                Ok(Time::Date(text.to_owned()))
            }
        }
        deserializer.deserialize_any(TimeVisitor)
    }
}

/// An event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventRow {
    /// The source.
    pub(crate) src: Id,
    /// The destination.
    pub(crate) dst: Id,
    /// When it happened.
    pub(crate) time: Time,
    /// Its label; 0 by default.
    #[serde(default)]
    pub(crate) label: f32,
    /// As many features as events of the data have; none by default.
    #[serde(default)]
    pub(crate) features: Vec<f32>,
    /// What tells this event from others: an event with an id that has been taken in is not taken in again.
    #[serde(default)]
    pub(crate) id: Option<Id>,
}

/// How events were taken in. A repetition by `Idempotency-Key` gets the same answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventsAnswer {
    /// Events that were taken in.
    pub(crate) accepted: u64,
    /// Events with an id that was taken in before.
    pub(crate) duplicates: u64,
    /// The smallest sequence number of both.
    pub(crate) first_seq: Option<u64>,
    /// The largest.
    pub(crate) last_seq: Option<u64>,
    /// Earlier events are refused from now on.
    pub(crate) watermark: Option<f64>,
}

/// A pair to score.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PairRow {
    /// The source.
    pub(crate) src: Id,
    /// The destination.
    pub(crate) dst: Id,
    /// The time that is asked about; just after the newest event by default.
    #[serde(default)]
    pub(crate) time: Option<Time>,
}

/// Pairs to score.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScoreRequest {
    /// The pairs.
    pub(crate) pairs: Vec<PairRow>,
    /// Whether to say why.
    #[serde(default)]
    pub(crate) explain: bool,
    /// Numbers of events, from 0, that are taken not to have happened.
    #[serde(default)]
    pub(crate) without: Vec<u64>,
}

/// Scores of pairs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScoreAnswer {
    /// The model that computed them.
    pub(crate) model: String,
    /// The number of events it looked back on.
    pub(crate) seq: u64,
    /// One for each pair, in order.
    pub(crate) scores: Vec<ScoreRow>,
}

/// The score of a pair.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScoreRow {
    /// The source.
    pub(crate) src: Id,
    /// The destination.
    pub(crate) dst: Id,
    /// The time that was asked about.
    pub(crate) time: f64,
    /// The same as a date, where the data has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
    /// Between 0 and 1, the higher the likelier.
    pub(crate) score: f32,
    /// That the next partner of the source is the destination, if the model was trained for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probability: Option<f32>,
    /// How often the pair interacts, relative to one drawn at random from those that have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) intensity: Option<f32>,
    /// How many times likelier than by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lift: Option<f32>,
    /// Whether the two have events.
    pub(crate) known: Known,
    /// Why, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) explanation: Option<serde_json::Value>,
}

/// Which nodes of a pair have events. The others are new, or misspelt.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Known {
    /// The source.
    pub(crate) src: bool,
    /// The destination.
    pub(crate) dst: bool,
}

/// The likeliest destinations of a source.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecommendAnswer {
    /// The model that computed them.
    pub(crate) model: String,
    /// The number of events it looked back on.
    pub(crate) seq: u64,
    /// The source.
    pub(crate) src: Id,
    /// Whether it has events.
    pub(crate) known: bool,
    /// The time that was asked about.
    pub(crate) time: f64,
    /// The same as a date, where the data has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
    /// Destinations that were compared.
    pub(crate) compared: usize,
    /// The likeliest first.
    pub(crate) items: Vec<RecommendRow>,
}

/// A destination.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecommendRow {
    /// From 1.
    pub(crate) rank: usize,
    /// The destination.
    pub(crate) dst: Id,
    /// Between 0 and 1, the higher the likelier.
    pub(crate) score: f32,
    /// That it is the next partner of the source, if the model was trained for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probability: Option<f32>,
    /// Whether the two interacted before.
    pub(crate) known: bool,
    /// Why, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// What happened to a node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeAnswer {
    /// The node.
    pub(crate) id: Id,
    /// The number of events that the answer looks back on.
    pub(crate) seq: u64,
    /// Its events; one with itself counts once.
    pub(crate) events: usize,
    /// The time of its first event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_time: Option<f64>,
    /// The time of its newest event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_time: Option<f64>,
    /// The newest of its events, newest first.
    pub(crate) history: Vec<HistoryRow>,
}

/// Nodes that were found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodesAnswer {
    /// The number of events that the answer looks back on.
    pub(crate) seq: u64,
    /// The best first.
    pub(crate) nodes: Vec<FoundNode>,
}

/// A node that was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundNode {
    /// The node.
    pub(crate) id: Id,
    /// Its events; one with itself counts once.
    pub(crate) events: usize,
    /// The time of its newest event.
    pub(crate) last_time: Option<f64>,
    /// The same as a date, where the data has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
    /// `src` or `dst`, in bipartite data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) side: Option<&'static str>,
}

/// An event of a node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryRow {
    /// The number of the event in the order of time, from 0.
    pub(crate) event: u64,
    /// The other node.
    pub(crate) node: Id,
    /// Whether the node itself is the source.
    pub(crate) as_source: bool,
    /// When.
    pub(crate) time: f64,
    /// The same as a date, where the data has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
    /// The label.
    pub(crate) label: f32,
}

/// How the server is.
#[expect(clippy::struct_excessive_bools, reason = "facts of an answer, not states")]
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusAnswer {
    /// The version of the program.
    pub(crate) version: String,
    /// The name of the model that answers, that of its run folder.
    pub(crate) model: String,
    /// What it is.
    pub(crate) architecture: String,
    /// Whether scores are probabilities.
    pub(crate) probabilities: bool,
    /// The number of events that answers look back on.
    pub(crate) events: u64,
    /// Nodes with events.
    pub(crate) nodes: usize,
    /// Earlier events are refused. Without `--lateness`, the time of the newest event.
    pub(crate) watermark: Option<f64>,
    /// The same as a date, where the data has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watermark_date: Option<String>,
    /// Events that wait until none can come before them.
    pub(crate) held: u64,
    /// Whether times are dates.
    pub(crate) has_dates: bool,
    /// Whether sources and destinations are named apart.
    pub(crate) bipartite: bool,
    /// Whether whoever asks may send events.
    pub(crate) may_write: bool,
    /// The log.
    pub(crate) log: LogStatus,
    /// Requests that wait.
    pub(crate) waiting: Waiting,
    /// Seconds since the start.
    pub(crate) uptime: f64,
}

/// The log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogStatus {
    /// Its size.
    pub(crate) bytes: u64,
    /// Whether events are refused because it cannot be written.
    pub(crate) read_only: bool,
    /// Events since the index was built.
    pub(crate) since_rebuild: u64,
}

/// The model that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelStatus {
    /// Its name, that of the run folder.
    pub(crate) name: String,
    /// What it is.
    pub(crate) architecture: String,
    /// Whether scores are probabilities.
    pub(crate) probabilities: bool,
}

/// Requests that wait.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Waiting {
    /// With events.
    pub(crate) events: usize,
    /// For scores.
    pub(crate) scores: usize,
    /// For recommendations and explanations.
    pub(crate) answers: usize,
}

/// Another model to answer with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelRequest {
    /// Its run folder, on the machine of the server.
    pub(crate) run: String,
}

/// Which model answers now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelAnswer {
    /// The model that answers from now on.
    pub(crate) model: String,
    /// The one before.
    pub(crate) previous: String,
    /// The number of events when it began to answer.
    pub(crate) seq: u64,
}

/// The time as a date, where the data has dates.
pub(crate) fn date(stream: &EventStream, time: f64) -> Option<String> {
    (stream.time_format() == TimeFormat::Date).then(|| stream.time_format().show(time))
}
