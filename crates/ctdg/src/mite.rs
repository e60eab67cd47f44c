//! The joint past of a pair as tokens, with the multi-interacted times of each (MITE).
//!
//! For a query `(u, v, t)` each side's tokens are the node itself and then its newest events before `t`, or events drawn
//! from all of them, oldest first. Each token stands for a node `w`; its MITE is the list of the last `K` intervals
//! `t − t'` at which `w` met `u`, and the same for `v`, newest first. Tokens of the same `w` share one row, so a batch
//! holds each distinct row once: that, and not padding every row to `2K` slots, is what makes encoding fast. Beside the
//! intervals stand the plain counts that DyGLib's neighbour co-occurrence encoding (NCOE) uses.
//!
//! A [`Second`] hop adds what the node of each token did before.

mod builder;
mod leave_out;
mod table;
mod tokens;

use rayon::prelude::*;

use crate::event::{EventId, EventStream, NodeId};
use crate::random::Stream;
use crate::sample::{Drawn, Draws, Sampling};
use crate::store::Store;
use builder::{Hop, PairTokensBuilder};
pub use leave_out::LeaveOneOut;
use table::RowTable;
pub use tokens::{NO_ROW, PairTokens};

/// A pair and the time at which it is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairQuery {
    /// Source.
    pub src: NodeId,
    /// Destination.
    pub dst: NodeId,
    /// Query time; only events strictly before it are seen.
    pub time: f64,
}

impl PairQuery {
    /// The pairs of `events`, at their own times.
    #[must_use]
    pub fn of(stream: &EventStream, events: &[EventId]) -> Vec<Self> {
        let query = |&id: &EventId| {
            let event = stream.event(id);
            Self { src: event.src, dst: event.dst, time: event.time }
        };
        events.iter().map(query).collect()
    }
}

/// Which meetings of `w` and `u` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Those among the tokens of `u`, as NCOE counts them.
    #[default]
    Truncated,
    /// All that the store knows.
    Full,
}

/// How an event's time enters an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimePrecision {
    /// Subtracted as `f64`, then rounded.
    #[default]
    F64,
    /// Rounded to `f32` before subtracting, as DyGLib stores neighbour times.
    F32,
}

/// What a second hop goes back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondTime {
    /// The token's own event: only what was strictly before it is seen, and ages are counted from it, as in TGAT.
    ///
    /// With [`TimePrecision::F32`] both times are rounded before subtracting; what is seen is never rounded.
    Event,
    /// The query: all before it is seen, and ages are counted from it, as in PINT.
    Query,
}

/// What the nodes of the tokens did: for each token but the roots, some events of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Second {
    /// Events a token at most.
    pub length: usize,
    /// Before what.
    pub time: SecondTime,
}

/// How a pair's past becomes tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairEncoding {
    /// Tokens a side at most, the node itself included; at least 1.
    pub length: usize,
    /// Intervals kept per token and side.
    pub k: usize,
    /// Which meetings count.
    pub scope: Scope,
    /// How times are rounded.
    pub precision: TimePrecision,
    /// Which events become tokens, in both hops. An event drawn twice is two tokens.
    ///
    /// What is drawn depends on the pair, the node, the time and the hop alone, so that a pair is the same in every batch,
    /// until the encoder is told to [draw anew](PairEncoder::draw_anew).
    pub sampling: Sampling,
    /// The second hop, if there is one.
    pub second: Option<Second>,
}

impl Default for PairEncoding {
    /// The paper's sizes: 32 tokens, 32 intervals.
    fn default() -> Self {
        Self {
            length: 32,
            k: 32,
            scope: Scope::Truncated,
            precision: TimePrecision::F64,
            sampling: Sampling::Recent,
            second: None,
        }
    }
}

/// Source or destination of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The source.
    Src = 0,
    /// The destination.
    Dst = 1,
}

/// Turns pairs into tokens; keeps its buffers between batches.
#[derive(Debug)]
pub struct PairEncoder<'s> {
    past: Past<'s>,
    /// One per chunk of the largest batch so far.
    chunks: Vec<(Buffers, PairTokens)>,
}

/// What all threads of an encoder read.
#[derive(Debug)]
struct Past<'s> {
    draws: Draws<'s>,
    encoding: PairEncoding,
    /// Never drawn from, only forked.
    random: Stream,
}

/// The buffers of one task.
#[derive(Debug, Default)]
struct Buffers {
    table: RowTable,
    /// Nodes of the second hop that met neither side.
    strangers: RowTable,
    drawn: Drawn,
}

/// Pairs handled by one task where several threads share them; a pair's tokens do not depend on it.
const CHUNK: usize = 64;

impl<'s> PairEncoder<'s> {
    /// An encoder of pairs over `store`.
    #[must_use]
    pub fn new(store: &'s Store, encoding: PairEncoding) -> Self {
        let draws = Draws::new(store, encoding.sampling);
        Self { past: Past { draws, encoding, random: draws_of(0) }, chunks: Vec::new() }
    }

    /// From now on other events are drawn, the same for the same seed. An encoder begins with seed 0.
    pub fn reseed(&mut self, seed: u64) {
        self.past.random = draws_of(seed);
    }

    /// Encodes `queries` into `out`, in parallel. A pair's tokens do not depend on the other pairs.
    ///
    /// # Complexity
    /// `O(log E + L)` a pair with [`Scope::Truncated`]; with [`Scope::Full`] one look-up and at most `K` intervals for
    /// each distinct neighbour and side besides. A second hop costs `O(log E + n)` a token of the first.
    pub fn encode(&mut self, queries: &[PairQuery], out: &mut PairTokens) {
        let Self { past, chunks } = self;
        let size = if rayon::current_num_threads() > 1 { CHUNK } else { queries.len().max(1) };
        let n_chunks = queries.len().div_ceil(size).max(1);
        if chunks.len() < n_chunks {
            chunks.resize_with(n_chunks, Default::default);
        }
        if let [(buffers, _)] = &mut chunks[..n_chunks] {
            // Straight to where they belong.
            return past.encode(queries, buffers, out);
        }
        let tasks = queries.par_chunks(size).zip(&mut chunks[..n_chunks]);
        tasks.for_each(|(queries, (buffers, tokens))| past.encode(queries, buffers, tokens));
        out.clear();
        for (_, tokens) in &chunks[..n_chunks] {
            out.append(tokens);
        }
    }
}

fn draws_of(seed: u64) -> Stream {
    Stream::named(seed, "pair-history")
}

impl Past<'_> {
    /// Encodes `queries` into `out`, on this thread.
    fn encode(&self, queries: &[PairQuery], buffers: &mut Buffers, out: &mut PairTokens) {
        let Buffers { table, strangers, drawn } = buffers;
        out.clear();
        for query in queries {
            let first_row = out.n_rows();
            PairTokensBuilder { past: self, query, table, strangers, out, first_row }.run(drawn);
        }
    }

    /// The stream for the past of `node` before `time`, where it is looked up for `pair`, whichever way round.
    fn random(&self, pair: &PairQuery, node: NodeId, time: f64, hop: Hop) -> Stream {
        let [one, other] = [pair.src.0.min(pair.dst.0), pair.src.0.max(pair.dst.0)].map(u64::from);
        let of_pair = self.random.fork(one).fork(other);
        // The sum makes the two zeros one.
        of_pair.fork(u64::from(node.0)).fork((time + 0.0).to_bits()).fork(hop as u64)
    }
}

impl TimePrecision {
    /// An event's time as it enters an interval.
    #[expect(clippy::cast_possible_truncation, reason = "that is what DyGLib does")]
    #[inline]
    fn stored(self, time: f64) -> f64 {
        match self {
            Self::F64 => time,
            Self::F32 => f64::from(time as f32),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "intervals are f32; what is rounded away is below the model's noise"
)]
#[inline]
fn interval(t: f64, event: f64, precision: TimePrecision) -> f32 {
    // Far beyond any real span, but a number that stays one when a model multiplies it.
    const LONGEST: f32 = 1e30;
    ((t - precision.stored(event)) as f32).min(LONGEST)
}

/// Offsets within one batch.
#[inline]
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).expect("a batch holds fewer than u32::MAX entries")
}
