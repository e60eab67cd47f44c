//! The figures of a server: intake, scores, recommendations, overload.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::load::{Load, Measured, Pace};
use super::process::{Launch, ServerProcess};
use super::restart::RestartFigures;
use super::workload::Workload;
use crate::Result;

/// Events of a large request.
const BATCH: usize = 1_000;
/// Connections that send large requests.
const BATCH_CONNECTIONS: usize = 4;
/// Large requests a second at a fixed rate.
const BATCH_RATE: f64 = 100.0;
/// Requests a second for the score of one pair.
const PAIR_RATE: f64 = 200.0;
/// Events that come in meanwhile, a second, and in each request.
const EVENT_RATE: f64 = 1_000.0;
const EVENTS_EACH: usize = 10;
/// Pairs of a request that overloads the server: few pairs would overload the client first.
const OVERLOAD_PAIRS: usize = 1_000;
/// How many times the load that the server can hold.
const OVERLOAD: f64 = 4.0;
/// Connections that measure what the server can hold: no more than may wait for a recommendation.
const CAPACITY_CONNECTIONS: usize = 3;
/// Connections of an overload.
const OVERLOAD_CONNECTIONS: usize = 128;
/// Different requests, sent in turn.
const POOL: usize = 64;
/// Requests before those that are measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// All figures that were measured.
#[derive(Debug, Default, Serialize)]
pub struct Figures {
    /// Taking events in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intake: Option<IntakeFigures>,
    /// The score of one pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreFigures>,
    /// The ten likeliest destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommend: Option<RecommendFigures>,
    /// A start with many events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartFigures>,
    /// More than the server can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overload: Option<OverloadFigures>,
}

impl Figures {
    /// How many requests failed: answered neither 200 nor 429, or 429 without overload.
    #[must_use]
    pub fn n_failed(&self) -> usize {
        let intake = self
            .intake
            .iter()
            .flat_map(|of| [&of.batches, &of.paced, &of.singles])
            .map(|of| of.answers.failed + of.answers.busy);
        let score = self.score.iter().flat_map(|of| [&of.answers, &of.events]).map(|of| of.failed + of.busy);
        let recommend = self.recommend.iter().flat_map(|of| [&of.exact, &of.candidates]).map(|of| of.failed + of.busy);
        let overload =
            self.overload.iter().flat_map(|of| [&of.score, &of.recommend]).map(|of| of.normal.failed + of.over.failed);
        intake.chain(score).chain(recommend).chain(overload).sum()
    }
}

/// Taking events in.
#[derive(Debug, Serialize)]
pub struct IntakeFigures {
    /// Many events a request, as fast as the server takes them.
    pub batches: LoadFigures,
    /// The same at a fixed rate of 100 requests a second; latency counts from when a request was due.
    pub paced: LoadFigures,
    /// One event a request.
    pub singles: LoadFigures,
}

/// Events that were taken in.
#[derive(Debug, Serialize)]
pub struct LoadFigures {
    /// Connections that sent them, each one request after the other.
    pub connections: usize,
    /// Events of a request.
    pub batch: usize,
    /// Events a second that were acknowledged.
    pub events_per_second: f64,
    /// The answers.
    pub answers: Measured,
}

/// The score of one pair at a fixed rate, while events come in.
#[derive(Debug, Serialize)]
pub struct ScoreFigures {
    /// Requests a second.
    pub rate: f64,
    /// Events a second that were sent meanwhile.
    pub event_rate: f64,
    /// The scores; latency counts from when a request was due.
    pub answers: Measured,
    /// The requests with events.
    pub events: Measured,
}

/// Recommendations, one at a time.
#[derive(Debug, Serialize)]
pub struct RecommendFigures {
    /// Destinations that an exact answer compares.
    pub destinations: u64,
    /// Comparing all destinations.
    pub exact: Measured,
    /// Comparing some candidates.
    pub candidates: Measured,
}

/// More than the server can do, of two kinds.
#[derive(Debug, Serialize)]
pub struct OverloadFigures {
    /// Scores of many pairs.
    pub score: LaneOverload,
    /// Exact recommendations.
    pub recommend: LaneOverload,
}

/// More requests of one kind than the server can answer.
#[derive(Debug, Serialize)]
pub struct LaneOverload {
    /// Requests a second that the server can answer.
    pub capacity: f64,
    /// At half of that.
    pub normal: Measured,
    /// At four times that.
    pub over: Measured,
    /// Resident memory before the overload, in bytes, where the system reports it.
    pub resident_before: Option<u64>,
    /// Resident memory after it.
    pub resident_after: Option<u64>,
}

/// Takes in events for so long: many a request, and one a request over `connections`.
pub fn intake(
    launch: Launch<'_>,
    state: &Path,
    workload: &mut Workload,
    connections: usize,
    duration: Duration,
) -> Result<IntakeFigures> {
    let server = ServerProcess::start(launch, state)?;
    let mut taken = |batch: usize, connections: usize, pace: Pace| {
        let requests = workload.many(POOL, |workload| workload.events(batch));
        let load = |duration| Load { address: server.address(), connections, pace, duration, requests: &requests };
        load(WARM_UP.min(duration)).run();
        let answers = load(duration).run();
        LoadFigures { connections, batch, events_per_second: answers.per_second * batch as f64, answers }
    };
    // From the slowest to the fastest: the log stays short as long as it can.
    let singles = taken(1, connections, Pace::Closed);
    let paced = taken(BATCH, BATCH_CONNECTIONS, Pace::Open(BATCH_RATE));
    let batches = taken(BATCH, BATCH_CONNECTIONS, Pace::Closed);
    Ok(IntakeFigures { batches, paced, singles })
}

/// Asks for the score of one pair at a fixed rate for so long, while events come in.
pub fn score(launch: Launch<'_>, state: &Path, workload: &mut Workload, duration: Duration) -> Result<ScoreFigures> {
    let server = ServerProcess::start(launch, state)?;
    let events = workload.many(POOL, |workload| workload.events(EVENTS_EACH));
    let pairs = workload.many(POOL, |workload| workload.scores(1));
    let load = |requests, rate, duration| Load {
        address: server.address(),
        connections: CAPACITY_CONNECTIONS,
        pace: Pace::Open(rate),
        duration,
        requests,
    };
    load(&pairs, PAIR_RATE, WARM_UP.min(duration)).run();
    let stop = AtomicBool::new(false);
    let (answers, events) = std::thread::scope(|scope| {
        // As long as scores are asked for.
        let events = scope.spawn(|| load(&events, EVENT_RATE / EVENTS_EACH as f64, 10 * duration).run_until(&stop));
        let answers = load(&pairs, PAIR_RATE, duration).run();
        stop.store(true, Ordering::Relaxed);
        (answers, events.join().unwrap_or_default())
    });
    Ok(ScoreFigures { rate: PAIR_RATE, event_rate: EVENT_RATE, answers, events })
}

/// Asks for recommendations one at a time, for so long of each kind.
pub fn recommend(
    launch: Launch<'_>,
    state: &Path,
    workload: &mut Workload,
    duration: Duration,
) -> Result<RecommendFigures> {
    let server = ServerProcess::start(launch, state)?;
    let mut destinations = 0;
    let mut asked = |exact: bool| -> Result<Measured> {
        let requests = workload.many(POOL, |workload| workload.recommendation(exact));
        let mut client = server.client()?;
        // Also the warm-up.
        let answer = client.ask(&requests[0]).map(|answer| answer.json());
        destinations = answer.ok().and_then(|answer| answer["compared"].as_u64()).unwrap_or(0).max(destinations);
        let (address, pace) = (server.address(), Pace::Closed);
        Ok(Load { address, connections: 1, pace, duration, requests: &requests }.run())
    };
    let (exact, candidates) = (asked(true)?, asked(false)?);
    Ok(RecommendFigures { destinations, exact, candidates })
}

/// Finds out what the server can hold, then asks it for half of that and for four times that, for so long each.
pub fn overload(
    launch: Launch<'_>,
    state: &Path,
    workload: &mut Workload,
    duration: Duration,
) -> Result<OverloadFigures> {
    let server = ServerProcess::start(launch, state)?;
    let lane = |requests: &[Vec<u8>]| {
        let load =
            |connections, pace, duration| Load { address: server.address(), connections, pace, duration, requests };
        load(1, Pace::Closed, WARM_UP.min(duration)).run();
        let capacity = load(CAPACITY_CONNECTIONS, Pace::Closed, duration).run().per_second.max(1.0);
        let normal = load(OVERLOAD_CONNECTIONS, Pace::Flood(capacity / 2.0), duration).run();
        let resident_before = server.resident();
        let over = load(OVERLOAD_CONNECTIONS, Pace::Flood(OVERLOAD * capacity), duration).run();
        LaneOverload { capacity, normal, over, resident_before, resident_after: server.resident() }
    };
    let score = lane(&workload.many(POOL, |workload| workload.scores(OVERLOAD_PAIRS)));
    let recommend = lane(&workload.many(POOL, |workload| workload.recommendation(true)));
    Ok(OverloadFigures { score, recommend })
}
