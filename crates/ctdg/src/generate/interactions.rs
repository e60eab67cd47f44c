//! Bipartite streams with the published sizes of Reddit, Wikipedia, MOOC and `LastFM`.
//!
//! Numbers of users, items, events, distinct pairs, distinct times and positive labels are *exact*, and with them the rate
//! of repeated pairs; so are the time span and the feature width. The rest is only similar: activity and popularity are
//! skewed, users return to items, times come in bursts, and nodes are numbered in order of first appearance. Features of
//! one item are close to each other and otherwise random.

mod process;
mod times;

use std::io;

use rayon::prelude::*;

use crate::error::{Problem, Result};
use crate::event::{Column, Columns, EventStream, Features, NodeId, NodeNames, Spill, Spool};
use crate::random::RandomStream;
use crate::time::TimeFormat;

/// The counts of a bipartite stream of users who interact with items.
#[derive(Debug, Clone, PartialEq)]
pub struct InteractionSpec {
    /// Source nodes; all of them occur.
    pub n_users: u32,
    /// Destination nodes; all of them occur.
    pub n_items: u32,
    /// Events.
    pub n_events: u32,
    /// Distinct (user, item) pairs among the events; the others are repeats.
    pub n_pairs: u32,
    /// Distinct times.
    pub n_times: u32,
    /// Seconds from the first event, which is at 0, to the last.
    pub span: u32,
    /// Times are multiples of one second divided by this.
    pub ticks_per_second: u32,
    /// Events labelled 1: each is the last event of a different user, like a ban or a drop-out.
    pub n_positives: u32,
    /// Width of the edge features, 0 for none.
    pub d_edge: usize,
    /// How strongly repeats favour recent events: 1 samples uniformly from all past events; each further step samples
    /// uniformly from the events after the previous draw.
    pub recency: u32,
}

impl InteractionSpec {
    /// Names for [`InteractionSpec::named`].
    pub const NAMES: [&str; 4] = ["like-reddit", "like-mooc", "like-lastfm", "like-wikipedia"];

    /// The specification called `name`, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "like-reddit" => Some(Self::like_reddit()),
            "like-mooc" => Some(Self::like_mooc()),
            "like-lastfm" => Some(Self::like_lastfm()),
            "like-wikipedia" => Some(Self::like_wikipedia()),
            _ => None,
        }
    }

    // Sources of the numbers:
    // - users, items, events: Kumar, Zhang and Leskovec, "Predicting Dynamic Embedding Trajectory in Temporal Interaction
    //   Networks" (KDD 2019), with the nodes that later tables count in the files: 10984 for Reddit and 1980 for LastFM,
    //   where the paper speaks of 1000 communities and 1000 listeners; for MOOC with its 4066 positives also the SNAP page
    //   "MOOC User Action Dataset";
    // - pairs and times of MOOC and LastFM: the columns "Unique Edges" and "Unique Steps" in Table 4 of Ma, Liu and Wu,
    //   "TTGBench"; pairs of Reddit: the data table of the thesis code at github.com/mazerti/link-prediction; times of
    //   Reddit: as listed for the evaluation protocol this project follows;
    // - all of Wikipedia: `hopedgn data info` of its file;
    // - positives of Reddit: 366, as repeated by papers that use its labels;
    // - span: the last time of the Reddit and MOOC files in whole seconds. For LastFM, tables print 1.4e8 seconds, and
    //   1.37e8 is our choice within that rounding. Some papers call it one month, which its times contradict.

    /// Posts of users in communities over one month. Its features take 463 MB of memory.
    #[must_use]
    pub fn like_reddit() -> Self {
        Self {
            n_users: 10_000,
            n_items: 984,
            n_events: 672_447,
            n_pairs: 78_516,
            n_times: 669_065,
            span: 2_678_390,
            ticks_per_second: 1_000,
            n_positives: 366,
            d_edge: 172,
            recency: 2,
        }
    }

    /// Edits of pages by users over one month. Its features take 108 MB of memory.
    #[must_use]
    pub fn like_wikipedia() -> Self {
        Self {
            n_users: 8_227,
            n_items: 1_000,
            n_events: 157_474,
            n_pairs: 18_257,
            n_times: 152_757,
            span: 2_678_373,
            ticks_per_second: 1,
            n_positives: 217,
            d_edge: 172,
            recency: 2,
        }
    }

    /// Actions of students on course items over 30 days.
    #[must_use]
    pub fn like_mooc() -> Self {
        Self {
            n_users: 7_047,
            n_items: 97,
            n_events: 411_749,
            n_pairs: 178_443,
            n_times: 345_600,
            span: 2_572_086,
            ticks_per_second: 1,
            n_positives: 4_066,
            d_edge: 4,
            recency: 1,
        }
    }

    /// Songs played by listeners over a little more than four years.
    #[must_use]
    pub fn like_lastfm() -> Self {
        Self {
            n_users: 980,
            n_items: 1_000,
            n_events: 1_293_103,
            n_pairs: 154_993,
            n_times: 1_283_614,
            span: 137_000_000,
            ticks_per_second: 1,
            n_positives: 0,
            d_edge: 0,
            recency: 2,
        }
    }

    /// Scales the number of users, events, pairs, times and positives by `factor`; the span stays. The number of items stays
    /// unless there would be fewer than two pairs per item. A factor above 1 adds users.
    pub fn scaled(&self, factor: f64) -> Result<Self> {
        if !(factor.is_finite() && factor > 0.0) {
            let expected = "a finite number above 0".into();
            return Err(Problem::Setting { name: "scale", found: factor.to_string(), expected }.into());
        }
        let times = |count: u32| scaled_count(count, factor);
        let n_pairs = times(self.n_pairs).max(1);
        let n_items = self.n_items.min(n_pairs.div_ceil(2));
        // At most half of all possible pairs, unless the original is denser than that.
        let min_users = n_pairs.saturating_mul(2).div_ceil(n_items);
        let n_users = times(self.n_users).max(min_users.min(self.n_users)).clamp(1, n_pairs);
        let n_events = times(self.n_events).max(n_pairs);
        let max_times = u32::try_from(self.ticks() + 1).unwrap_or(u32::MAX).min(n_events);
        let spec = Self {
            n_users,
            n_items,
            n_events,
            n_pairs: n_pairs.min(n_users.saturating_mul(n_items)),
            n_times: times(self.n_times).clamp(1, max_times),
            n_positives: times(self.n_positives).min(n_users),
            ..self.clone()
        };
        spec.check()?;
        Ok(spec)
    }

    /// The same kind of stream with so many events and nodes, each independent of the other. Users keep their share of the nodes; distinct
    /// pairs, times and positives keep theirs of the events, but there are at least as many pairs as nodes. The span stays.
    ///
    /// ```
    /// use ctdg::generate::InteractionSpec;
    ///
    /// let stream = InteractionSpec::like_lastfm().sized(5_000, 400)?.generate(0)?;
    /// assert_eq!((stream.len(), stream.n_nodes()), (5_000, 400));
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn sized(&self, n_events: u32, n_nodes: u32) -> Result<Self> {
        if n_nodes < 2 || n_nodes > n_events {
            let expected = format!("2 to {n_events}, the number of events: every node has one");
            return Err(Problem::Setting { name: "nodes", found: n_nodes.to_string(), expected }.into());
        }
        let factor = f64::from(n_events) / f64::from(self.n_events);
        let share = f64::from(self.n_users) / (f64::from(self.n_users) + f64::from(self.n_items));
        let n_users = scaled_count(n_nodes, share).clamp(1, n_nodes - 1);
        let n_items = n_nodes - n_users;
        let n_pairs = scaled_count(self.n_pairs, factor).clamp(n_nodes, n_events);
        let n_ticks = u32::try_from(self.ticks() + 1).unwrap_or(u32::MAX);
        let spec = Self {
            n_users,
            n_items,
            n_events,
            n_pairs: n_pairs.min(n_users.saturating_mul(n_items)),
            n_times: scaled_count(self.n_times, factor).clamp(1, n_ticks.min(n_events)),
            n_positives: scaled_count(self.n_positives, factor).min(n_users),
            ..self.clone()
        };
        spec.check()?;
        Ok(spec)
    }

    /// Generates a stream. Time and memory are linear in the number of events and feature values.
    pub fn generate(&self, seed: u64) -> Result<EventStream> {
        self.generate_within(seed, None)
    }

    /// The same; columns that outgrow memory are spilled. Beside them the process takes 12 to 16 bytes of memory per event, 18 at most
    /// per distinct pair, and those of all features.
    ///
    /// ```
    /// use ctdg::{event::Spill, generate::InteractionSpec};
    ///
    /// let spec = InteractionSpec::like_lastfm().scaled(0.001)?;
    /// let spill = Spill { folder: std::env::temp_dir(), memory: 1 << 10 };
    /// assert_eq!(spec.generate_within(1, Some(&spill))?, spec.generate(1)?);
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn generate_within(&self, seed: u64, spill: Option<&Spill>) -> Result<EventStream> {
        self.check()?;
        let column = |node: &dyn Fn(&process::Pair) -> u32, pairs: &[process::Pair]| -> io::Result<Column<NodeId>> {
            let mut column = Spool::with(spill);
            pairs.iter().try_for_each(|pair| column.push(NodeId(node(pair))))?;
            column.finish()
        };
        let pairs = process::pairs(self, &mut RandomStream::named(seed, "interactions/pairs"));
        let mut time = Spool::with(spill);
        let random = RandomStream::named(seed, "interactions/times");
        times::times(self, &random, |at| time.push(at)).map_err(Problem::spill)?;
        let label = self.labels(&pairs, &mut RandomStream::named(seed, "interactions/labels"), spill);
        let edge_features = match self.d_edge {
            0 => None,
            width => {
                Some(Features::new(width, self.features(&pairs, &RandomStream::named(seed, "interactions/features")))?)
            }
        };
        EventStream::new(Columns {
            src: column(&|pair| pair.user, &pairs).map_err(Problem::spill)?,
            dst: column(&|pair| self.n_users + pair.item, &pairs).map_err(Problem::spill)?,
            time: time.finish().map_err(Problem::spill)?,
            label: label.map_err(Problem::spill)?,
            edge_features,
            node_features: None,
            names: NodeNames::bipartite(self.n_users, self.n_items),
            time_format: TimeFormat::Number,
        })
    }

    fn labels(
        &self,
        pairs: &[process::Pair],
        random: &mut RandomStream,
        spill: Option<&Spill>,
    ) -> io::Result<Column<f32>> {
        let mut last_event = vec![0; self.n_users as usize];
        for (event, pair) in pairs.iter().enumerate() {
            last_event[pair.user as usize] = event;
        }
        random.shuffle(&mut last_event);
        last_event.truncate(self.n_positives as usize);
        last_event.sort_unstable();
        let (mut labels, mut positives) = (Spool::with(spill), last_event.into_iter().peekable());
        for event in 0..pairs.len() {
            let is_positive = positives.next_if_eq(&event).is_some();
            labels.push(if is_positive { 1.0 } else { 0.0 })?;
        }
        labels.finish()
    }

    /// One row per event: the item's profile plus noise. Each row has its own random stream, so threads do not matter.
    fn features(&self, pairs: &[process::Pair], random: &RandomStream) -> Vec<f32> {
        let (items, noise) = (random.fork(0), random.fork(1));
        let mut profiles = vec![0.0; self.n_items as usize * self.d_edge];
        for (item, profile) in (0_u64..).zip(profiles.chunks_exact_mut(self.d_edge)) {
            add_noise(profile, &mut items.fork(item));
        }
        let mut values = vec![0.0; pairs.len() * self.d_edge];
        values.par_chunks_exact_mut(self.d_edge).zip(pairs).enumerate().for_each(|(event, (row, pair))| {
            row.copy_from_slice(&profiles[pair.item as usize * self.d_edge..][..self.d_edge]);
            add_noise(row, &mut noise.fork(event as u64));
        });
        values
    }

    /// Ticks from the first event to the last.
    fn ticks(&self) -> u64 {
        u64::from(self.span) * u64::from(self.ticks_per_second)
    }

    fn check(&self) -> Result<()> {
        let max_pairs = u64::from(self.n_users) * u64::from(self.n_items);
        let range = |low: u64, high: u64| (low, high);
        let checks = [
            ("n_users", self.n_users, range(1, u64::from(self.n_pairs))),
            ("n_items", self.n_items, range(1, u64::from(self.n_pairs))),
            ("n_pairs", self.n_pairs, range(1, max_pairs.min(u64::from(self.n_events)))),
            ("n_times", self.n_times, range(1, u64::from(self.n_events).min(self.ticks() + 1))),
            ("ticks_per_second", self.ticks_per_second, range(1, u64::from(u32::MAX))),
            ("n_positives", self.n_positives, range(0, u64::from(self.n_users))),
            ("recency", self.recency, range(1, 16)),
        ];
        for (name, value, (low, high)) in checks {
            if u64::from(value) < low || u64::from(value) > high {
                let expected = format!("{low} to {high}");
                return Err(Problem::Setting { name, found: value.to_string(), expected }.into());
            }
        }
        Ok(())
    }
}

/// Adds uniform noise in [−½, ½) to `row`, four values per draw.
fn add_noise(row: &mut [f32], random: &mut RandomStream) {
    for four in row.chunks_mut(4) {
        let bytes = random.next_u64().to_le_bytes();
        for (value, bits) in four.iter_mut().zip(bytes.chunks_exact(2)) {
            *value += f32::from(u16::from_le_bytes([bits[0], bits[1]])) / 65_536.0 - 0.5;
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range of u32 first")]
fn scaled_count(count: u32, factor: f64) -> u32 {
    (f64::from(count) * factor).round().clamp(0.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_counts_are_named() {
        let check = |spec: InteractionSpec, message: &str| {
            assert_eq!(spec.generate(0).unwrap_err().to_string(), message);
        };
        let mooc = InteractionSpec::like_mooc;
        check(
            InteractionSpec { n_pairs: 683_560, n_events: 700_000, ..mooc() },
            "found n_pairs = 683560, expected 1 to 683559",
        );
        check(InteractionSpec { n_users: 178_444, ..mooc() }, "found n_users = 178444, expected 1 to 178443");
        check(InteractionSpec { n_times: 11, span: 9, ..mooc() }, "found n_times = 11, expected 1 to 10");
        assert!(mooc().scaled(0.0).is_err());
        assert!(mooc().scaled(f64::NAN).is_err());
    }

    #[test]
    fn every_scale_is_possible() {
        for name in InteractionSpec::NAMES {
            let spec = InteractionSpec::named(name).unwrap();
            assert_eq!(spec.scaled(1.0).unwrap(), spec, "{name}");
            for factor in [1e-9, 1e-6, 1e-4, 3e-4, 1e-3, 0.01, 0.1, 0.5, 2.0, 10.0] {
                spec.scaled(factor).unwrap_or_else(|error| panic!("{name} at {factor}: {error}"));
            }
        }
        assert_eq!(InteractionSpec::named("like-nothing"), None);
    }

    #[test]
    fn numbers_of_events_and_nodes_are_independent() {
        for (n_events, n_nodes) in [(2, 2), (5, 5), (3_000, 4), (3_000, 100), (3_000, 3_000)] {
            for name in InteractionSpec::NAMES {
                let spec = InteractionSpec { d_edge: 0, ..InteractionSpec::named(name).unwrap() };
                let stream = spec.sized(n_events, n_nodes).unwrap().generate(0).unwrap();
                let mut occurs = vec![false; n_nodes as usize];
                stream.src().iter().chain(stream.dst()).for_each(|node| occurs[node.index()] = true);
                assert_eq!((stream.len(), stream.n_nodes()), (n_events as usize, occurs.len()), "{name}");
                assert!(occurs.iter().all(|&occurs| occurs), "{name}");
            }
        }
        for n_nodes in [0, 1, 11] {
            let error = InteractionSpec::like_lastfm().sized(10, n_nodes).unwrap_err().to_string();
            let expected = "expected 2 to 10, the number of events: every node has one";
            assert_eq!(error, format!("found nodes = {n_nodes}, {expected}"));
        }
    }
}
