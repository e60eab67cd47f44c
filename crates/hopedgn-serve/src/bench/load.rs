//! Load on a server, and how it is answered.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::client::Client;

/// How long answers took, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Latency {
    /// Of answers that took so many seconds; zeros if there were none.
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_unstable_by(f64::total_cmp);
        // The smallest that so large a share does not exceed.
        let at = |per_cent: usize| {
            seconds.get((seconds.len() * per_cent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0)
        };
        Self { p50: at(50), p99: at(99), max: at(100) }
    }
}

/// How requests were answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Requests that were sent.
    pub requests: usize,
    /// Those answered with status 200.
    pub answered: usize,
    /// Those answered with status 429: the server has too much to do.
    pub busy: usize,
    /// Those answered otherwise, or not at all.
    pub failed: usize,
    /// The first of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Requests that were answered with status 200 in a second.
    pub per_second: f64,
    /// How long those took.
    pub latency: Latency,
}

/// When the next request of a connection is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// When the one before is answered.
    Closed,
    /// So many a second over all connections, whether or not those before are answered. Answers are timed from when the request was due, so
    /// that a stall shows.
    Open(f64),
    /// So many a second over all connections, more than can be answered. Answers are timed from when the request was sent: one that is sent
    /// late has waited for the load itself, which has to read refusals too.
    Flood(f64),
}

/// Load of several connections.
#[derive(Debug)]
pub(super) struct Load<'a> {
    pub(super) address: SocketAddr,
    pub(super) connections: usize,
    pub(super) pace: Pace,
    pub(super) duration: Duration,
    /// The bytes of requests, sent in turn.
    pub(super) requests: &'a [Vec<u8>],
}

/// What one connection saw.
#[derive(Debug, Default)]
struct Seen {
    seconds: Vec<f64>,
    busy: usize,
    failed: usize,
    failure: Option<String>,
    /// When its last answer came.
    end: f64,
}

impl Load<'_> {
    /// Sends the load.
    pub(super) fn run(&self) -> Measured {
        self.run_until(&AtomicBool::new(false))
    }

    /// Sends the load until it ends or `stop` is set.
    pub(super) fn run_until(&self, stop: &AtomicBool) -> Measured {
        let (next, start) = (AtomicU64::new(0), Instant::now());
        let connection = || self.connection(&next, start, stop);
        let all: Vec<Seen> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections.max(1)).map(|_| scope.spawn(connection)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let mut measured = Measured::default();
        let (mut seconds, mut end) = (Vec::new(), f64::MIN_POSITIVE);
        for seen in all {
            measured.busy += seen.busy;
            measured.failed += seen.failed;
            measured.failure = measured.failure.or(seen.failure);
            seconds.extend(seen.seconds);
            end = seen.end.max(end);
        }
        measured.answered = seconds.len();
        measured.requests = measured.answered + measured.busy + measured.failed;
        measured.per_second = measured.answered as f64 / end;
        measured.latency = Latency::of(seconds);
        measured
    }

    fn connection(&self, next: &AtomicU64, start: Instant, stop: &AtomicBool) -> Seen {
        let mut seen = Seen::default();
        let mut client = None;
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let due = match self.pace {
                Pace::Closed => Instant::now(),
                Pace::Open(rate) | Pace::Flood(rate) => start + Duration::from_secs_f64(number as f64 / rate),
            };
            if due - start >= self.duration {
                break;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let timed_from = if matches!(self.pace, Pace::Flood(_)) { Instant::now() } else { due };
            let which = usize::try_from(number).unwrap_or(0) % self.requests.len();
            let failure = match ask(&mut client, self.address, &self.requests[which]) {
                Ok((200, _)) => {
                    seen.seconds.push(timed_from.elapsed().as_secs_f64());
                    None
                }
                Ok((429, _)) => {
                    seen.busy += 1;
                    None
                }
                Ok((_, excerpt)) => Some(excerpt),
                Err(error) => {
                    client = None;
                    Some(error.to_string())
                }
            };
            if let Some(failure) = failure {
                seen.failed += 1;
                seen.failure.get_or_insert(failure);
            }
            seen.end = start.elapsed().as_secs_f64();
        }
        seen
    }
}

/// Status of the answer, and an excerpt of one that is an error.
fn ask(client: &mut Option<Client>, address: SocketAddr, request: &[u8]) -> std::io::Result<(u16, String)> {
    let client = match client {
        Some(client) => client,
        None => client.insert(Client::connect(address)?),
    };
    let answer = client.ask(request)?;
    Ok((answer.status, if matches!(answer.status, 200 | 429) { String::new() } else { answer.excerpt() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_smallest_that_bound_their_share() {
        let latency = Latency::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(latency, Latency { p50: 100.0, p99: 198.0, max: 200.0 });
        assert_eq!(Latency::of(vec![3.0]), Latency { p50: 3.0, p99: 3.0, max: 3.0 });
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
