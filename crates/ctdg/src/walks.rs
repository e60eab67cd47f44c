//! Time-decayed temporal walks of a pair, by random projections: what both nodes are connected to, over how many steps, and how recently.
//!
//! A walk of length `l` from `u` at time `t` goes back in time: events `(u, w₁, t₁), (w₁, w₂, t₂), …` with `t > t₁ > t₂ > … > t_l`.
//! Events are undirected, and a self-loop counts twice. `Aˡ(u, w)` is the sum of `exp(−λ Σ (t − tᵢ))` over all such walks that end at `w`;
//! `A⁰` is the identity. A matrix of nodes by nodes is too large to keep, so each row is projected to `d` numbers: with a random row `r_w` of
//! `d` signs divided by `√d` for each node,
//!
//! ```text
//! Pˡ(u) = Σ_w Aˡ(u, w) r_w        ⟨Pⁱ(u), Pʲ(v)⟩ ≈ Σ_w Aⁱ(u, w) Aʲ(v, w)
//! ```
//!
//! An event `(u, v)` at `t` adds `Pˡ⁻¹(v)` to `Pˡ(u)` and vice versa, both as they are before `t` and decayed until then.
//!
//! The features of a pair are the inner products of all `2(L + 1)` rows `P⁰(u), …, Pᴸ(u), P⁰(v), …, Pᴸ(v)` with each other, each product once:
//! a triangle, row by row. All of a node without an event before the query are 0.
//!
//! # Exactness
//! A query at `t` sees the events strictly before `t`, and events at one time do not see each other. The state is advanced by whole moments,
//! never by batches, and a node's decay is applied at its own events, never at a query. So a row of features has the same bits whatever is
//! asked beside it, before it, or in which order, and no later event changes it. `r_w` depends on the name of `w` alone, so neither do other
//! nodes.
//!
//! # Differences from TPNet
//! Its code advances by batches: a pair does not see older events of its own batch, but it sees events at its own time in an earlier batch,
//! which is a leak where many events have one time. Its `r_w` is normal, redrawn for every epoch, and its `d` grows with the number of events.
//!
//! ```
//! use ctdg::event::{EventStream, NodeId};
//! use ctdg::{mite::PairQuery, store::Store, walks::{TemporalWalks, WalkConfig}};
//!
//! // 0 and 2 have met 1, and never each other.
//! let store = Store::build(&EventStream::from_events([(0, 1, 1.0), (2, 1, 2.0)])?)?;
//! let config = WalkConfig { layers: 1, width: 512, decay: 0.0 };
//! let mut walks = TemporalWalks::new(&store, config);
//! let row = walks.rows(&[PairQuery { src: NodeId(0), dst: NodeId(2), time: 3.0 }]);
//! assert_eq!(row.len(), config.n_features());
//! // ⟨P¹(0), P¹(2)⟩: both have one walk of length 1, to the same node.
//! assert!((row[6] - 1.0).abs() < 1e-4);
//! # Ok::<(), ctdg::Error>(())
//! ```
//!
//! # Complexity
//! O(L·d) for an event and O(L²·d) for a query; `4·(L + 1)·d` bytes for each node with an event. Queries may come in any order, but one that is
//! earlier than the one before it begins again with the first event: ask in order of time.

use std::ops::Range;

use rayon::prelude::*;

use crate::event::{Cut, EventId, EventList, NodeId, PairQuery};
use crate::random::RandomStream;
use crate::store::Store;

/// Sizes and decay of [`TemporalWalks`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WalkConfig {
    /// `L`, the length of the longest walks.
    pub layers: usize,
    /// `d`, the width of a projected row: inner products of unrelated rows are off by about 1/√d.
    pub width: usize,
    /// λ, per unit of time.
    pub decay: f64,
}

impl WalkConfig {
    /// Columns of a row of features.
    #[must_use]
    pub fn n_features(&self) -> usize {
        let n = self.n_rows();
        n * (n + 1) / 2
    }

    /// Projected rows of a pair, `2(L + 1)`.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        2 * (self.layers + 1)
    }
}

/// The projected rows of all nodes over the events of a store, up to the latest query; see the [module](self).
#[derive(Debug, Clone)]
pub struct TemporalWalks {
    store: Store,
    config: WalkConfig,
    /// Events of the store, in order.
    events: EventList,
    /// How many of them the rows have seen.
    n_seen: usize,
    /// For each node the number of its rows, or [`NONE`] before its first event.
    slots: Vec<u32>,
    /// `[slots, L + 1, d]`: `P⁰` to `Pᴸ` at the node's last event.
    rows: Vec<f32>,
    /// For each slot the time of that event.
    times: Vec<f64>,
    /// How to take back the newest moment of the store, once it has been taken in.
    newest: Option<Before>,
    /// Whether the rows stay with the newest events.
    is_resident: bool,
}

/// Rows as they were before a moment.
#[derive(Debug, Clone)]
struct Before {
    n_seen: usize,
    n_slots: usize,
    /// Nodes that had no slot.
    new: Vec<NodeId>,
    /// Slots that had one, with their times and rows.
    changed: Vec<(usize, f64, Vec<f32>)>,
}

/// No slot.
const NONE: u32 = u32::MAX;

impl TemporalWalks {
    /// Before the first event of `store`.
    #[must_use]
    pub fn new(store: &Store, config: WalkConfig) -> Self {
        let (events, slots) = (store.event_ids(), vec![NONE; store.n_nodes()]);
        let (store, rows, times) = (store.clone(), Vec::new(), Vec::new());
        Self { store, config, events, n_seen: 0, slots, rows, times, newest: None, is_resident: false }
    }

    /// Continues with `store`, a later [snapshot](crate::live::Snapshot) of the same stream. From now on an earlier query is answered apart,
    /// so that the rows stay with the newest events.
    ///
    /// ```
    /// use ctdg::event::{EventStream, NodeId, PairQuery};
    /// use ctdg::{live::{LiveStore, NewEvent}, walks::{TemporalWalks, WalkConfig}};
    ///
    /// let mut live = LiveStore::new(&EventStream::from_events([(0, 1, 1.0)])?, false)?;
    /// let config = WalkConfig { layers: 1, width: 64, decay: 0.0 };
    /// let mut walks = TemporalWalks::new(live.snapshot().store(), config);
    /// let query = [PairQuery { src: NodeId(0), dst: NodeId(1), time: 9.0 }];
    /// walks.rows(&query);
    /// live.append(&[NewEvent::new("0", "1", 2.0)])?;
    /// let now = live.snapshot();
    /// walks.follow(now.store());
    /// assert_eq!(walks.rows(&query), TemporalWalks::new(now.store(), config).rows(&query));
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn follow(&mut self, store: &Store) {
        self.is_resident = true;
        let n_before = self.events.len();
        self.store = store.clone();
        self.slots.resize(store.n_nodes(), NONE);
        let later = (n_before..store.n_events()).map(EventId::from_index);
        self.events.extend(later);
        // Events at one time do not see each other, so the newest moment is taken back if it goes on.
        let next = (n_before < self.events.len()).then(|| store.time(self.events.at(n_before)));
        if self.n_seen == n_before
            && next.is_some()
            && next == n_before.checked_sub(1).map(|last| store.time(self.events.at(last)))
        {
            self.take_back_newest();
        }
    }

    /// The features of each of `queries`, [`WalkConfig::n_features`] columns each.
    #[must_use]
    pub fn rows(&mut self, queries: &[PairQuery]) -> Vec<f32> {
        /// Queries at one time that are worth a task of their own.
        const CHUNK: usize = 64;
        let width = self.config.n_features();
        let mut rows = vec![0.0; queries.len() * width];
        let mut by_time: Vec<usize> = (0..queries.len()).collect();
        by_time.sort_by(|&a, &b| queries[a].time.total_cmp(&queries[b].time));
        for same_time in by_time.chunk_by(|&a, &b| queries[a].time == queries[b].time) {
            let cut = self.store.cut(queries[same_time[0]].time);
            if self.is_resident && self.is_later_than(cut) {
                let mut apart = Self::new(&self.store, self.config);
                let earlier: Vec<PairQuery> = same_time.iter().map(|&at| queries[at]).collect();
                for (&at, values) in same_time.iter().zip(apart.rows(&earlier).chunks_exact(width)) {
                    rows[at * width..][..width].copy_from_slice(values);
                }
                continue;
            }
            self.advance_to(cut);
            let mut put = |of: &[usize], values: &[f32]| {
                for (&at, values) in of.iter().zip(values.chunks_exact(width)) {
                    rows[at * width..][..width].copy_from_slice(values);
                }
            };
            if same_time.len() < 2 * CHUNK {
                put(same_time, &self.features(queries, same_time));
                continue;
            }
            let chunks: Vec<Vec<f32>> = same_time.par_chunks(CHUNK).map(|some| self.features(queries, some)).collect();
            same_time.chunks(CHUNK).zip(&chunks).for_each(|(some, values)| put(some, values));
        }
        rows
    }

    /// The random row `r` of a node.
    ///
    /// # Panics
    /// When the store has no such node.
    #[must_use]
    pub fn projection(&self, node: NodeId) -> Vec<f32> {
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the rows")]
        let value = (self.config.width as f64).sqrt().recip() as f32;
        let mut random = RandomStream::named(0, "walks").fork(self.store.name_keys()[node.index()]);
        let mut bits = 0;
        let sign = |at: usize| {
            if at.is_multiple_of(64) {
                bits = random.next_u64();
            }
            if bits >> (at % 64) & 1 == 0 { value } else { -value }
        };
        (0..self.config.width).map(sign).collect()
    }

    /// Takes in all events before `cut`, from the beginning if later ones are in already.
    fn advance_to(&mut self, cut: Cut) {
        if self.is_later_than(cut) {
            self.n_seen = 0;
            self.slots.fill(NONE);
            self.rows.clear();
            self.times.clear();
        }
        // A cut never divides a moment.
        while self.n_seen < self.events.len() && cut.sees(self.events.at(self.n_seen)) {
            let time = self.store.time(self.events.at(self.n_seen));
            let rest = self.events.ids().slice(self.n_seen..self.events.len());
            let end = self.n_seen + rest.iter().take_while(|&event| self.store.time(event) == time).count();
            self.newest = (end == self.events.len()).then(|| self.before(self.n_seen..end));
            self.take_in(self.n_seen..end, time);
            self.n_seen = end;
        }
    }

    /// Whether an event is in that `cut` does not see.
    fn is_later_than(&self, cut: Cut) -> bool {
        self.n_seen.checked_sub(1).is_some_and(|last| !cut.sees(self.events.at(last)))
    }

    /// What the moment of `events` will change.
    fn before(&self, events: Range<usize>) -> Before {
        let mut nodes: Vec<NodeId> = events.clone().flat_map(|at| self.store.endpoints(self.events.at(at))).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let (known, new): (Vec<NodeId>, Vec<NodeId>) =
            nodes.into_iter().partition(|node| self.slots[node.index()] != NONE);
        let size = (self.config.layers + 1) * self.config.width;
        let changed = known.into_iter().map(|node| {
            let slot = self.slots[node.index()] as usize;
            (slot, self.times[slot], self.rows[slot * size..][..size].to_vec())
        });
        Before { n_seen: events.start, n_slots: self.times.len(), new, changed: changed.collect() }
    }

    /// Takes the newest moment back.
    fn take_back_newest(&mut self) {
        let Some(Before { n_seen, n_slots, new, changed }) = self.newest.take() else { return };
        let size = (self.config.layers + 1) * self.config.width;
        self.n_seen = n_seen;
        for node in new {
            self.slots[node.index()] = NONE;
        }
        self.times.truncate(n_slots);
        self.rows.truncate(n_slots * size);
        for (slot, time, rows) in changed {
            self.times[slot] = time;
            self.rows[slot * size..][..size].copy_from_slice(&rows);
        }
    }

    /// Takes in all events of a moment.
    fn take_in(&mut self, events: Range<usize>, time: f64) {
        let mut pairs = Vec::with_capacity(events.len());
        for at in events {
            pairs.push(self.store.endpoints(self.events.at(at)).map(|node| self.slot_at(node, time)));
        }
        // From the longest walks to the shortest: what is added is still as it was before the moment.
        for layer in (1..=self.config.layers).rev() {
            for &[u, v] in &pairs {
                self.extend(u, v, layer);
                self.extend(v, u, layer);
            }
        }
    }

    /// The slot of a node, decayed until `time`.
    fn slot_at(&mut self, node: NodeId, time: f64) -> usize {
        let (width, layers) = (self.config.width, self.config.layers);
        if self.slots[node.index()] == NONE {
            self.slots[node.index()] = u32::try_from(self.times.len()).expect("nodes are numbered by u32");
            self.rows.extend(self.projection(node));
            self.rows.resize(self.rows.len() + layers * width, 0.0);
            self.times.push(time);
        }
        let slot = self.slots[node.index()] as usize;
        if self.times[slot] != time {
            let decays = self.decays(slot, time);
            let rows = self.rows[slot * (layers + 1) * width..][..(layers + 1) * width].chunks_exact_mut(width);
            for (row, decay) in rows.zip(decays).skip(1) {
                #[expect(clippy::cast_possible_truncation, reason = "the precision of the rows")]
                let decay = decay as f32;
                for value in row {
                    *value *= decay;
                }
            }
            self.times[slot] = time;
        }
        slot
    }

    /// What each layer of a slot is multiplied by at `time`.
    fn decays(&self, slot: usize, time: f64) -> Vec<f64> {
        let decay = (-self.config.decay * (time - self.times[slot])).exp();
        std::iter::successors(Some(1.0), |product| Some(product * decay)).take(self.config.layers + 1).collect()
    }

    fn row(&self, slot: usize, layer: usize) -> Range<usize> {
        let start = (slot * (self.config.layers + 1) + layer) * self.config.width;
        start..start + self.config.width
    }

    /// Walks of `from` become walks of `to` that are one step longer.
    fn extend(&mut self, to: usize, from: usize, layer: usize) {
        let (to, from) = (self.row(to, layer), self.row(from, layer - 1));
        let (sum, added) = if to.start > from.start {
            let (before, after) = self.rows.split_at_mut(to.start);
            (&mut after[..to.len()], &before[from])
        } else {
            let (before, after) = self.rows.split_at_mut(from.start);
            (&mut before[to], &after[..from.len()])
        };
        sum.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
    }

    /// The features of some of `queries`, which are all at one time.
    fn features(&self, queries: &[PairQuery], some: &[usize]) -> Vec<f32> {
        let mut all = Vec::with_capacity(some.len() * self.config.n_features());
        for &at in some {
            let PairQuery { src, dst, time } = queries[at];
            let sides = [src, dst].map(|node| {
                let slot = self.slots.get(node.index()).filter(|&&slot| slot != NONE).map(|&slot| slot as usize)?;
                Some((slot, self.decays(slot, time)))
            });
            let row = |i: usize| {
                let layer = i % (self.config.layers + 1);
                let (slot, decays) = sides[i / (self.config.layers + 1)].as_ref()?;
                Some((&self.rows[self.row(*slot, layer)], decays[layer]))
            };
            for i in 0..self.config.n_rows() {
                for j in i..self.config.n_rows() {
                    #[expect(clippy::cast_possible_truncation, reason = "a model's input")]
                    let product = row(i)
                        .zip(row(j))
                        .map_or(0.0, |((a, decay_a), (b, decay_b))| (f64::from(dot(a, b)) * decay_a * decay_b) as f32);
                    all.push(product);
                }
            }
        }
        all
    }
}

/// The inner product, in a fixed order that a processor computes several terms of at once.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (whole_a, rest_a) = a.as_chunks::<LANES>();
    let (whole_b, rest_b) = b.as_chunks::<LANES>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}
