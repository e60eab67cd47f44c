//! Streams that only a *pair* representation can predict: many copies of the situation in the paper's Figure 1.
//!
//! Every episode has six new nodes, two mirror images of one triple:
//!
//! ```text
//!   A ──t1── B ──t2── C          then, at t4, either   A─C  and A'─C'   ("straight")
//!   A'──t1── B'──t2── C'                        or     A─C' and A'─C    ("crossed")
//! ```
//!
//! Mirrored events have equal times, so `C` and `C'` have equal histories, to any depth, and so do `A` and `A'`: node-wise
//! representations score `(A, C)` and `(A, C')` alike. The common neighbor distinguishes them. It is not enough, though:
//! `straight` has the probability `p_short` when the gap `t2 − t1` is short and `p_long` when it is long, so at the defaults
//! (0.9 and 0.1) a common neighbor alone carries no signal. A model must relate the pair's times.
//!
//! An outcome depends only on the gap of its own episode, so the probability of each queried pair given *all* earlier
//! events is exactly `P(straight)` or `1 − P(straight)`, and no ranking of the queries has a higher expected AUC. Node ids
//! are a random permutation and mirrored events come in random order, so neither reveals the outcome.

use crate::error::{Problem, Result};
use crate::event::{EventStream, NodeId};
use crate::metric::{roc_auc, shuffled_average_precision};
use crate::random::RandomStream;

/// Parameters of a [`Triadic`] stream. Times have no unit.
#[derive(Debug, Clone, PartialEq)]
pub struct TriadicSpec {
    /// Number of episodes: 6 nodes, 6 events and 4 queries each.
    pub n_episodes: u32,
    /// Probability of the straight outcome after a short gap.
    pub p_short: f64,
    /// Probability of the straight outcome after a long gap.
    pub p_long: f64,
    /// Mean time between the starts of two episodes.
    pub spacing: f64,
    /// Bounds of a short gap between t1 and t2.
    pub short_gap: (f64, f64),
    /// Bounds of a long gap; entirely above the short ones.
    pub long_gap: (f64, f64),
    /// Bounds of the time between t2 and t4, the same for both kinds of gap.
    pub wait: (f64, f64),
}

impl Default for TriadicSpec {
    fn default() -> Self {
        Self {
            n_episodes: 2_000,
            p_short: 0.9,
            p_long: 0.1,
            spacing: 10.0,
            short_gap: (10.0, 20.0),
            long_gap: (100.0, 200.0),
            wait: (300.0, 600.0),
        }
    }
}

/// A queried pair with its label and its true probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Query {
    /// Source node.
    pub src: NodeId,
    /// Destination node.
    pub dst: NodeId,
    /// Query time; only earlier events may be used.
    pub time: f64,
    /// Whether the event happened.
    pub label: bool,
    /// Its probability given all events before `time`.
    pub optimal: f64,
}

/// A stream of episodes with the four queried pairs of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Triadic {
    /// All events: wedges and outcomes.
    pub stream: EventStream,
    /// The four pairs of every episode at its t4, two of which happened, sorted by time.
    pub queries: Vec<Query>,
}

impl Triadic {
    /// Metrics of the true probabilities on these queries. A model can exceed them only by chance, the less the more
    /// episodes there are.
    ///
    /// # Panics
    /// Never on what [`TriadicSpec::generate`] returned: of each episode's queries two happened and two did not.
    #[must_use]
    pub fn optimal(&self) -> OptimalScores {
        let (scores, labels): (Vec<f64>, Vec<bool>) =
            self.queries.iter().map(|query| (query.optimal, query.label)).unzip();
        let reason = "every episode has positives and negatives, and probabilities are numbers";
        OptimalScores {
            ap: shuffled_average_precision(&scores, &labels).expect(reason),
            auc: roc_auc(&scores, &labels).expect(reason),
        }
    }
}

/// The highest metrics that any model can expect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptimalScores {
    /// Average precision with ties broken at random, which a model with real-valued scores can reach. It is higher than
    /// the [`average_precision`](crate::metric::average_precision) of the probabilities, which groups ties.
    pub ap: f64,
    /// Area under the ROC curve.
    pub auc: f64,
}

/// The six nodes of an episode; index 0 is one triple, 1 its mirror image.
struct Roles {
    a: [NodeId; 2],
    b: [NodeId; 2],
    c: [NodeId; 2],
}

impl TriadicSpec {
    /// Generates a stream. Time O(n log n) in the number of episodes.
    pub fn generate(&self, seed: u64) -> Result<Triadic> {
        self.check()?;
        let n_nodes =
            self.n_episodes.checked_mul(6).ok_or(Problem::TooMany { what: "nodes", max: u64::from(u32::MAX) })?;
        let mut ids: Vec<u32> = (0..n_nodes).collect();
        RandomStream::named(seed, "triadic/ids").shuffle(&mut ids);
        let (mut starts, episodes) =
            (RandomStream::named(seed, "triadic/starts"), RandomStream::named(seed, "triadic/episodes"));

        let mut events = Vec::with_capacity(ids.len());
        let mut queries = Vec::with_capacity(4 * ids.len() / 6);
        let mut start = 0.0;
        for (index, nodes) in (0_u64..).zip(ids.chunks_exact(6)) {
            start += starts.exponential(self.spacing);
            let pair = |at: usize| [NodeId(nodes[at]), NodeId(nodes[at + 1])];
            let roles = Roles { a: pair(0), b: pair(2), c: pair(4) };
            self.episode(&roles, start, &mut episodes.fork(index), &mut events, &mut queries);
        }
        // Stable sorts keep the random order of equal times.
        events.sort_by(|x, y| x.2.total_cmp(&y.2));
        queries.sort_by(|x: &Query, y| x.time.total_cmp(&y.time));
        Ok(Triadic { stream: EventStream::from_events(events)?, queries })
    }

    fn episode(
        &self,
        Roles { a, b, c }: &Roles,
        t1: f64,
        random: &mut RandomStream,
        events: &mut Vec<(u32, u32, f64)>,
        queries: &mut Vec<Query>,
    ) {
        let is_short = random.chance(0.5);
        let (gap, p_straight) = if is_short { (self.short_gap, self.p_short) } else { (self.long_gap, self.p_long) };
        let is_straight = random.chance(p_straight);
        let t2 = t1 + uniform_in(gap, random);
        let t4 = t2 + uniform_in(self.wait, random);
        let closing = if is_straight { *c } else { [c[1], c[0]] };
        for (from, to, time) in [(a, b, t1), (c, b, t2), (a, &closing, t4)] {
            let mut mirrored = [(from[0].0, to[0].0, time), (from[1].0, to[1].0, time)];
            random.shuffle(&mut mirrored);
            events.extend(mirrored);
        }
        let mut queried = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, to)| Query {
            src: a[from],
            dst: c[to],
            time: t4,
            label: (from == to) == is_straight,
            optimal: if from == to { p_straight } else { complement(p_straight) },
        });
        random.shuffle(&mut queried);
        queries.extend(queried);
    }

    /// The limit of [`Triadic::optimal`] for many episodes.
    #[must_use]
    pub fn limit(&self) -> OptimalScores {
        // Four equally frequent kinds of query; the share p of a kind with probability p is positive.
        let mut kinds = [self.p_short, complement(self.p_short), self.p_long, complement(self.p_long)];
        kinds.sort_by(|x, y| y.total_cmp(x));
        let (mut happened, mut asked, mut ap, mut auc) = (0.0, 0.0, 0.0, 0.0);
        for tied in kinds.chunk_by(|x, y| x.total_cmp(y).is_eq()) {
            let (n, positives) = (tied.len() as f64, tied.iter().sum::<f64>());
            // These negatives lose against positives above, and half the time against positives of the group.
            auc += (n - positives) * (happened + 0.5 * positives);
            // In random order, precision after the part x of the group is (happened + p·x) / (asked + x); recall rises
            // by p·dx.
            let p = positives / n;
            ap += p * positives;
            if asked > 0.0 {
                ap += p * (happened - p * asked) * f64::ln((asked + n) / asked);
            }
            happened += positives;
            asked += n;
        }
        let all_positives = 2.0;
        OptimalScores { ap: ap / all_positives, auc: auc / (all_positives * all_positives) }
    }

    fn check(&self) -> Result<()> {
        let fail = |name, found: String, expected: &str| {
            Err(Problem::Setting { name, found, expected: expected.into() }.into())
        };
        if self.n_episodes == 0 {
            return fail("n_episodes", "0".into(), "at least 1");
        }
        for (name, p) in [("p_short", self.p_short), ("p_long", self.p_long)] {
            if !(0.0..=1.0).contains(&p) {
                return fail(name, p.to_string(), "a probability between 0 and 1");
            }
        }
        if !(self.spacing.is_finite() && self.spacing > 0.0) {
            return fail("spacing", self.spacing.to_string(), "a finite number above 0");
        }
        for (name, (low, high)) in [("short_gap", self.short_gap), ("long_gap", self.long_gap), ("wait", self.wait)] {
            if !(low > 0.0 && low < high && high.is_finite()) {
                return fail(name, format!("({low}, {high})"), "0 < low < high, both finite");
            }
        }
        if self.short_gap.1 >= self.long_gap.0 {
            return fail("long_gap", format!("{:?}", self.long_gap), "bounds above those of short_gap");
        }
        Ok(())
    }
}

fn uniform_in((low, high): (f64, f64), random: &mut RandomStream) -> f64 {
    low + (high - low) * random.unit()
}

/// `1 − p`, rounded so that the complement of 0.9 is exactly 0.1: equally likely queries must be tied.
fn complement(p: f64) -> f64 {
    const PARTS: f64 = 1e9;
    let (parts, whole) = (p * PARTS, (p * PARTS).round());
    (PARTS - if (parts - whole).abs() < 1e-6 { whole } else { parts }) / PARTS
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "exact equality is claimed")]
mod tests {
    use super::*;

    #[test]
    fn complements_of_decimals_are_exact() {
        for parts in 0..=1000_u32 {
            let (p, rest) = (f64::from(parts) / 1000.0, f64::from(1000 - parts) / 1000.0);
            assert_eq!(complement(p), rest, "1 - {p}");
        }
    }

    #[test]
    fn limit_at_the_defaults_equals_the_hand_calculation() {
        // Nine in ten positives score 0.9, nine in ten negatives 0.1: AUC = 0.81 + ½·0.18. Recall reaches
        // 0.9 at a precision of 0.9; then precision falls as (0.9 + 0.1x)/(1 + x) for x from 0 to 1.
        let limit = TriadicSpec::default().limit();
        assert!(
            (limit.auc - 0.9).abs() < 1e-12 && (limit.ap - (0.81 + 0.1 * (0.1 + 0.8 * 2_f64.ln()))).abs() < 1e-12,
            "{limit:?}"
        );
        let chance = TriadicSpec { p_short: 0.5, p_long: 0.5, ..TriadicSpec::default() }.limit();
        assert!((chance.auc - 0.5).abs() < 1e-12 && (chance.ap - 0.5).abs() < 1e-12, "{chance:?}");
        let certain = TriadicSpec { p_short: 1.0, p_long: 0.0, ..TriadicSpec::default() }.limit();
        assert_eq!(certain, OptimalScores { ap: 1.0, auc: 1.0 });
    }

    #[test]
    fn invalid_settings_are_named() {
        let check = |spec: TriadicSpec, message: &str| {
            assert_eq!(spec.generate(0).unwrap_err().to_string(), message);
        };
        let spec = TriadicSpec::default;
        check(TriadicSpec { n_episodes: 0, ..spec() }, "found n_episodes = 0, expected at least 1");
        check(TriadicSpec { p_long: f64::NAN, ..spec() }, "found p_long = NaN, expected a probability between 0 and 1");
        check(
            TriadicSpec { long_gap: (15.0, 30.0), ..spec() },
            "found long_gap = (15.0, 30.0), expected bounds above those of short_gap",
        );
        check(TriadicSpec { spacing: 0.0, ..spec() }, "found spacing = 0, expected a finite number above 0");
        check(TriadicSpec { wait: (5.0, 1.0), ..spec() }, "found wait = (5, 1), expected 0 < low < high, both finite");
    }
}
