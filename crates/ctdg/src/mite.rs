//! Multi-interacted time encoding (MITE): the histories of a node pair as tokens with interaction intervals.
//!
//! For a query `(u, v, t)` the tokens of each side are the node itself and then sampled events of it before `t`, oldest
//! first. Each token stands for a node `w`; its MITE is the list of the last `K` intervals `t − t'` of interactions of `w`
//! with `u`, and the same for `v`, newest first. Tokens of the same `w` share one row, so a batch stores each distinct
//! row once, without padding to `2K` slots. Each row also has the counts of DyGLib's neighbor co-occurrence encoding
//! (NCOE).
//!
//! A [`SecondHop`] adds earlier events of each token's node.
//!
//! ```
//! use ctdg::event::{EventStream, NodeId};
//! use ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery, PairTokens, Side};
//! use ctdg::store::Store;
//!
//! // Nodes 0 and 1 have the common neighbor 2.
//! let stream = EventStream::from_events([(0, 2, 1.0), (1, 2, 3.0), (0, 2, 4.0)])?;
//! let store = Store::build(&stream)?;
//! let mut tokens = PairTokens::default();
//! let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 5.0 };
//! PairEncoder::new(&store, PairEncoderConfig::default()).encode(&[query], &mut tokens);
//!
//! let src = tokens.tokens(0, Side::Src);
//! assert_eq!(tokens.nodes()[src.clone()], [0, 2, 2].map(NodeId), "the node itself, then its events");
//! assert_eq!(tokens.ages()[src.clone()], [0.0, 4.0, 1.0]);
//! let row = tokens.rows()[src.end - 1] as usize; // the row of node 2
//! assert_eq!(tokens.intervals(row, Side::Src), [1.0, 4.0]);
//! assert_eq!(tokens.intervals(row, Side::Dst), [2.0]);
//! assert_eq!(tokens.counts(row), [2, 1]);
//! # Ok::<(), ctdg::Error>(())
//! ```

mod builder;
mod tokens;

use rayon::prelude::*;

use crate::error::{Problem, Result};
use crate::event::EventId;
pub use crate::event::PairQuery;
use crate::random::RandomStream;
use crate::row_table::RowTable;
use crate::sample::{HistorySampler, SampleBuffers, Sampling};
use crate::store::Store;
pub use crate::walk_counts::SelfLoops;
use builder::{Hop, PairTokensBuilder};
pub use tokens::{NO_ROW, PairTokens};

/// Which interactions of `w` with `u` enter its MITE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MiteScope {
    /// Those among the sampled tokens of `u`, as in NCOE.
    #[default]
    Truncated,
    /// All in the store before the query.
    Full,
}

/// How an event's time enters an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimePrecision {
    /// Subtracted as `f64`, then rounded.
    #[default]
    F64,
    /// Rounded to `f32` before subtracting, as DyGLib stores neighbor times.
    F32,
}

/// Reference time of the second hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondHopTime {
    /// The token's event: only events strictly before it are sampled, and ages are relative to it, as in TGAT.
    ///
    /// With [`TimePrecision::F32`] both times are rounded before subtracting; the cut itself is never rounded.
    Event,
    /// The time of the token's event rounded to `f32`, as in DyGLib, which stores neighbour times so. **It looks ahead**: where rounding
    /// goes up, the event itself and later ones are sampled, even those from the query on.
    EventAsF32,
    /// The query: events before the query are sampled, and ages are relative to it, as in PINT.
    Query,
}

/// Second-hop neighbors: sampled events of each token's node, except for the root tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondHop {
    /// Most events per token.
    pub length: usize,
    /// Reference time.
    pub time: SecondHopTime,
}

/// Settings of a [`PairEncoder`]: how many tokens, which events, which intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairEncoderConfig {
    /// Most tokens per side, the node itself included; at least 1.
    pub length: usize,
    /// Most intervals per row and side, `K`.
    pub k: usize,
    /// Which interactions enter the MITE.
    pub scope: MiteScope,
    /// How times are rounded.
    pub precision: TimePrecision,
    /// How often a self-loop enters the intervals of its node. As a token, and in the counts of NCOE, it is there twice, as in DyGLib.
    pub self_loops: SelfLoops,
    /// Which events become tokens, in both hops. An event drawn twice is two tokens.
    ///
    /// Draws depend on the seed, the names of the pair and of the node, the time and the hop only. A pair therefore has the
    /// same tokens in every batch, and in every stream with the same past of its nodes, however nodes are numbered there, until
    /// the encoder is [reseeded](PairEncoder::reseed).
    pub sampling: Sampling,
    /// The second hop, if there is one.
    pub second: Option<SecondHop>,
}

impl Default for PairEncoderConfig {
    /// The paper's sizes: 32 tokens, 32 intervals.
    fn default() -> Self {
        Self {
            length: 32,
            k: 32,
            scope: MiteScope::Truncated,
            precision: TimePrecision::F64,
            self_loops: SelfLoops::Once,
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

/// Encodes pairs as [`PairTokens`]; reuses its buffers between batches. See the [module](self) for an example.
#[derive(Debug)]
pub struct PairEncoder<'s> {
    shared: Shared<'s>,
    /// One per chunk of the largest batch so far.
    chunks: Vec<(Buffers, PairTokens)>,
}

/// Read-only state shared by all threads.
#[derive(Debug)]
struct Shared<'s> {
    sampler: HistorySampler<'s>,
    config: PairEncoderConfig,
    /// Whether histories are read ahead; results do not depend on it.
    reads_ahead: bool,
    /// Only forked, never drawn from.
    random: RandomStream,
}

/// The buffers of one task.
#[derive(Debug, Default)]
struct Buffers {
    table: RowTable,
    /// Second-hop nodes without an interaction with either side.
    unrelated: RowTable,
    sample: SampleBuffers,
}

/// Pairs per parallel task; results do not depend on it.
const CHUNK: usize = 64;

impl<'s> PairEncoder<'s> {
    /// An encoder of pairs over `store`.
    #[must_use]
    pub fn new(store: &'s Store, config: PairEncoderConfig) -> Self {
        let sampler = HistorySampler::new(store, config.sampling);
        // A random sample may come from anywhere in a history.
        let reads_ahead = config.sampling == Sampling::Recent && store.is_beyond_caches();
        Self { shared: Shared { sampler, config, reads_ahead, random: sampling_stream(0) }, chunks: Vec::new() }
    }

    /// Sets the sampling seed; a new encoder has seed 0.
    pub fn reseed(&mut self, seed: u64) {
        self.shared.random = sampling_stream(seed);
    }

    /// Encodes `queries` into `out`, in parallel. A pair's tokens do not depend on the other pairs.
    ///
    /// # Complexity
    /// Time `O(log E + L)` per pair with [`MiteScope::Truncated`] (`E` events, `L` tokens per side); [`MiteScope::Full`] adds
    /// one lookup and at most `K` intervals per distinct neighbor and side. A second hop of length `n` adds `O(log E + n)`
    /// per token. Memory is the tokens themselves: `O(L + K·rows)` per pair, nothing is padded.
    pub fn encode(&mut self, queries: &[PairQuery], out: &mut PairTokens) {
        let Self { shared, chunks } = self;
        let size = if rayon::current_num_threads() > 1 { CHUNK } else { queries.len().max(1) };
        let n_chunks = queries.len().div_ceil(size).max(1);
        if chunks.len() < n_chunks {
            chunks.resize_with(n_chunks, Default::default);
        }
        if let [(buffers, _)] = &mut chunks[..n_chunks] {
            // One chunk: no copy needed.
            return shared.encode(queries, buffers, out);
        }
        let tasks = queries.par_chunks(size).zip(&mut chunks[..n_chunks]);
        tasks.for_each(|(queries, (buffers, tokens))| shared.encode(queries, buffers, tokens));
        out.clear();
        for (_, tokens) in &chunks[..n_chunks] {
            out.append(tokens);
        }
    }

    /// How many tokens [`encode`](Self::encode) gives each side of each of `queries`, without sampling them. `None` with a second hop,
    /// whose size only its sample tells.
    ///
    /// # Complexity
    /// `O(log E)` per pair.
    ///
    /// ```
    /// use ctdg::event::{EventStream, NodeId};
    /// use ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery};
    /// use ctdg::store::Store;
    ///
    /// let store = Store::build(&EventStream::from_events([(0, 2, 1.0), (1, 2, 3.0), (0, 2, 4.0)])?)?;
    /// let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 5.0 };
    /// let encoder = PairEncoder::new(&store, PairEncoderConfig::default());
    /// assert_eq!(encoder.lengths(&[query]), Some(vec![[3, 2]]), "the node itself and its events");
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    #[must_use]
    pub fn lengths(&self, queries: &[PairQuery]) -> Option<Vec<[usize; 2]>> {
        let Shared { sampler, config, .. } = &self.shared;
        let (store, max_events) = (sampler.store(), config.length.saturating_sub(1));
        let of_pair = |query: &PairQuery| {
            let cut = store.cut(query.time);
            [query.src, query.dst].map(|node| 1 + sampler.count(store.history(node, cut).len(), max_events))
        };
        config.second.is_none().then(|| queries.iter().map(of_pair).collect())
    }
}

impl PairEncoder<'_> {
    /// Encodes `query` once for each of `left_out`, as if the store did not have those events, into `out`: what the model would
    /// have seen had they not happened. Each list is in ascending order; where it takes tokens away, older events become tokens.
    ///
    /// Refused for random sampling and second hops, which draw from the whole history.
    ///
    /// # Complexity
    /// Each variant takes the time of one pair, and the length of its list.
    ///
    /// ```
    /// use ctdg::event::{EventId, EventStream, NodeId};
    /// use ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery, PairTokens, Side};
    /// use ctdg::store::Store;
    ///
    /// let stream = EventStream::from_events([(0, 2, 1.0), (0, 1, 2.0), (0, 3, 3.0)])?;
    /// let (store, config) = (Store::build(&stream)?, PairEncoderConfig { length: 3, ..PairEncoderConfig::default() });
    /// let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 5.0 };
    /// let mut tokens = PairTokens::default();
    /// PairEncoder::new(&store, config).encode_without(query, &[&[], &[EventId(1)]], &mut tokens)?;
    /// assert_eq!(tokens.events(0, Side::Src), [1, 2].map(EventId));
    /// assert_eq!(tokens.events(1, Side::Src), [0, 2].map(EventId), "the event of both is in neither history");
    /// assert!(tokens.events(1, Side::Dst).is_empty());
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn encode_without(&mut self, query: PairQuery, left_out: &[&[EventId]], out: &mut PairTokens) -> Result<()> {
        let Self { shared, chunks } = self;
        let PairEncoderConfig { sampling, second, .. } = shared.config;
        if sampling != Sampling::Recent || second.is_some() {
            let (found, expected) = (format!("{sampling:?}, {second:?}"), "the most recent events, one hop".to_owned());
            return Err(Problem::Setting { name: "sampling", found, expected }.into());
        }
        if chunks.is_empty() {
            chunks.push(Default::default());
        }
        out.clear();
        for left_out in left_out {
            shared.push(&query, left_out, &mut chunks[0].0, out);
        }
        Ok(())
    }
}

fn sampling_stream(seed: u64) -> RandomStream {
    RandomStream::named(seed, "pair-history")
}

impl Shared<'_> {
    /// Encodes `queries` into `out`, on this thread.
    fn encode(&self, queries: &[PairQuery], buffers: &mut Buffers, out: &mut PairTokens) {
        /// Pairs whose histories are read ahead together.
        const GROUP: usize = 16;
        out.clear();
        for group in queries.chunks(GROUP) {
            if self.reads_ahead {
                self.read_ahead(group);
            }
            for query in group {
                self.push(query, &[], buffers, out);
            }
        }
    }

    /// Brings the histories of `queries` into the caches.
    fn read_ahead(&self, queries: &[PairQuery]) {
        let store = self.sampler.store();
        let histories = queries.iter().flat_map(|query| {
            let cut = store.cut(query.time);
            [(query.src, cut), (query.dst, cut)]
        });
        store.read_ahead(histories, self.config.length.saturating_sub(1));
    }

    /// Appends one pair to `out`, as if the events `left_out` had not happened.
    #[inline]
    fn push(&self, query: &PairQuery, left_out: &[EventId], buffers: &mut Buffers, out: &mut PairTokens) {
        let Buffers { table, unrelated, sample } = buffers;
        let first_row = out.n_rows();
        PairTokensBuilder { shared: self, query, left_out, table, unrelated, out, first_row }.run(sample);
    }

    /// Random stream for sampling the history of the node with key `node` before `time` for the pair with keys `pair`;
    /// symmetric in the pair.
    fn random(&self, pair: [u64; 2], node: u64, time: f64, hop: Hop) -> RandomStream {
        let of_pair = self.random.fork(pair[0].min(pair[1])).fork(pair[0].max(pair[1]));
        // Adding 0 maps -0 to 0.
        of_pair.fork(node).fork((time + 0.0).to_bits()).fork(hop as u64)
    }
}

impl TimePrecision {
    /// The interval from an event to `time`; negative only where rounding made it so.
    ///
    /// ```
    /// use ctdg::mite::TimePrecision;
    /// assert_eq!(TimePrecision::F64.interval(5.0, 3.0), 2.0);
    /// ```
    #[must_use]
    #[inline]
    pub fn interval(self, time: f64, event: f64) -> f32 {
        interval(time, event, self)
    }

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

#[expect(clippy::cast_possible_truncation, reason = "intervals are f32")]
#[inline]
fn interval(t: f64, event: f64, precision: TimePrecision) -> f32 {
    // Beyond any real span, yet finite when a model multiplies it.
    const MAX_INTERVAL: f32 = 1e30;
    ((t - precision.stored(event)) as f32).min(MAX_INTERVAL)
}

/// A number of events as a model's input: beyond `u32` it stays at that.
#[inline]
fn count_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Offset within one batch as `u32`.
#[inline]
fn offset_u32(offset: usize) -> u32 {
    u32::try_from(offset).expect("a batch holds fewer than u32::MAX entries")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{EventStream, NodeId};

    proptest! {
        /// Small stores never read ahead by themselves.
        #[test]
        fn reading_ahead_changes_no_token(
            events in prop::collection::vec((0_u32..6, 0_u32..6, 0_u32..30), 1..120),
            length in 1_usize..40,
            is_full in any::<bool>(),
        ) {
            let mut events: Vec<_> = events.into_iter().map(|(u, v, time)| (u, v, f64::from(time))).collect();
            events.sort_by(|a, b| a.2.total_cmp(&b.2));
            let store = Store::build(&EventStream::from_events(events).unwrap()).unwrap();
            let scope = if is_full { MiteScope::Full } else { MiteScope::Truncated };
            let query = |at: u32| PairQuery { src: NodeId(at % 7), dst: NodeId(at / 7 % 7), time: f64::from(at % 32) };
            let queries: Vec<PairQuery> = (0..100).map(query).collect();
            let mut encoder = PairEncoder::new(&store, PairEncoderConfig { length, scope, ..PairEncoderConfig::default() });
            let mut tokens = [PairTokens::default(), PairTokens::default()];
            prop_assert!(!encoder.shared.reads_ahead);
            encoder.encode(&queries, &mut tokens[0]);
            encoder.shared.reads_ahead = true;
            encoder.encode(&queries, &mut tokens[1]);
            prop_assert_eq!(&tokens[0], &tokens[1]);
        }
    }
}
