//! The k-DWL test: settings and refinement loop.

use crate::error::{Problem, Result, counted};
use crate::event::NodeId;
use crate::wl::MAX_K;
use crate::wl::budget::{DEFAULT_MAX_MEMORY, Estimate};
use crate::wl::graph::Graph;
use crate::wl::initial::{Initial, initial};
use crate::wl::joint::{Joint, TupleIndex};
use crate::wl::judge::Judge;
use crate::wl::marked::{self, Reach};
use crate::wl::refine::{Interning, refine};
use crate::wl::rule::{Folklore, Neighbors, Oblivious, Rule};
use crate::wl::verdict::{Coloring, Comparison};

/// What a tuple aggregates in each round. Folklore and oblivious are the same for `k = 1`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// For every node `w`, the *vector* of the colors of the `k` tuples with `w` substituted, and the sequences of `w`:
    /// k-DWL, and k-FWL when times are dropped.
    #[default]
    Folklore,
    /// For each position separately, the colors of the tuples with any node substituted: k-OWL. Always starts from
    /// [`Initial::Types`], since the rounds do not use the sequences.
    Oblivious,
    /// Pairs only: the colors of the nodes within reach, refined by 1-DWL with both nodes of the pair marked. Always starts
    /// from [`Initial::Types`].
    Marked(Reach),
}

/// Number of nodes of a tuple: 1, 2, 3 or 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dimension(usize);

impl Dimension {
    /// The dimension `k`; an error unless 1 to 4.
    pub fn new(k: usize) -> Result<Self> {
        if (1..=MAX_K).contains(&k) {
            return Ok(Self(k));
        }
        Err(Problem::Setting { name: "k", found: k.to_string(), expected: "1, 2, 3 or 4".into() }.into())
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> usize {
        self.0
    }
}

/// A k-DWL test with its settings. See the [module](crate::wl) for its complexity.
///
/// ```
/// use ctdg::event::EventStream;
/// use ctdg::wl::{Dwl, Graph, GraphOptions};
///
/// let read = |events: &[(u32, u32, f64)]| {
///     Graph::new(&EventStream::from_events(events.iter().copied())?, &GraphOptions::default())
/// };
/// // Two rings of four nodes with times 1, 2, 1, 2 and one ring of eight: 2-DWL separates them, 1-DWL does not.
/// let a = read(&[(0, 1, 1.), (2, 3, 1.), (4, 5, 1.), (6, 7, 1.), (1, 2, 2.), (3, 0, 2.), (5, 6, 2.), (7, 4, 2.)])?;
/// let b = read(&[(0, 1, 1.), (2, 3, 1.), (4, 5, 1.), (6, 7, 1.), (1, 2, 2.), (3, 4, 2.), (5, 6, 2.), (7, 0, 2.)])?;
/// assert_eq!(Dwl::new(1)?.compare(&a, &b)?.graphs.round, None);
/// assert_eq!(Dwl::new(2)?.compare(&a, &b)?.graphs.round, Some(1));
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Dwl {
    /// The dimension.
    pub k: Dimension,
    /// What a tuple aggregates.
    pub variant: Variant,
    /// Colors of round 0.
    pub initial: Initial,
    /// How classes are compared.
    pub interning: Interning,
    /// Stop after this many rounds even if classes still split.
    pub max_rounds: Option<usize>,
    /// Refuse a run that would take more memory than this, in bytes.
    pub max_memory: u64,
}

/// Progress: a finished round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Number of the round; 0 is the initial coloring.
    pub round: usize,
    /// Classes so far.
    pub n_classes: usize,
}

impl Dwl {
    /// The paper's k-DWL with constant initial colors, for `k` from 1 to 4.
    pub fn new(k: usize) -> Result<Self> {
        Ok(Self {
            k: Dimension::new(k)?,
            variant: Variant::Folklore,
            initial: Initial::Labels,
            interning: Interning::Exact,
            max_rounds: None,
            max_memory: DEFAULT_MAX_MEMORY,
        })
    }

    /// The static test of the paper's appendix: 1-WL for `k = 1`, otherwise k-FWL or k-OWL as `variant` says. The
    /// graphs must be read with [`Times::Dropped`](crate::wl::Times::Dropped).
    pub fn static_test(k: usize, variant: Variant) -> Result<Self> {
        let initial = if k == 1 { Initial::Labels } else { Initial::Types };
        Ok(Self { variant, initial, ..Self::new(k)? })
    }

    /// Marked DWL: pairs are colored by 1-DWL with both of their nodes marked. Time O(rounds · Σ n²(n + m log m)) for `n`
    /// nodes and `m` pairs with events, memory O(Σ n³).
    ///
    /// ```
    /// use ctdg::wl::{Dwl, Graph, GraphOptions, Reach, examples};
    ///
    /// // The rook's graph and the Shrikhande graph: not separated by 2-DWL.
    /// let rook = examples::all()?.into_iter().find(|example| example.name == "rook").expect("an example");
    /// let [a, b] = [&rook.a, &rook.b].map(|stream| Graph::new(stream, &GraphOptions::default()));
    /// let (a, b) = (a?, b?);
    /// assert_eq!(Dwl::new(2)?.compare(&a, &b)?.graphs.round, None);
    /// assert_eq!(Dwl::marked(Reach::All)?.compare(&a, &b)?.graphs.round, Some(1));
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn marked(reach: Reach) -> Result<Self> {
        Ok(Self { variant: Variant::Marked(reach), initial: Initial::Types, ..Self::new(2)? })
    }

    /// The dimension as a number.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k.get()
    }

    /// Estimated memory and time of a run on `graphs`.
    #[must_use]
    pub fn estimate(&self, graphs: &[&Graph]) -> Estimate {
        Estimate::new(graphs, self.k(), self.variant)
    }

    /// The stable coloring of one graph.
    pub fn color(&self, graph: &Graph) -> Result<Coloring> {
        Ok(self.run(&[graph], None, &mut |_| {})?.coloring)
    }

    /// The stable colorings of several graphs; classes are comparable across them.
    pub fn color_all(&self, graphs: &[&Graph]) -> Result<Coloring> {
        Ok(self.run(graphs, None, &mut |_| {})?.coloring)
    }

    /// Whether the test separates the two graphs. Time O(rounds · Σ n^(k+1)), memory O(Σ n^k).
    pub fn compare(&self, a: &Graph, b: &Graph) -> Result<Comparison> {
        self.run(&[a, b], None, &mut |_| {})
    }

    /// Whether the test separates tuple `s` of `a` from tuple `t` of `b`, and the graphs. `a` and `b` may be the same graph.
    ///
    /// Tuples of another length than `k` are compared by `k`-tuples of their nodes: a shorter one is padded with its last
    /// node; of a longer one every choice of `k` positions is compared. So `k = 1` compares node by node, which is all that
    /// a model of concatenated node embeddings can see.
    pub fn compare_tuples(&self, (a, s): (&Graph, &[NodeId]), (b, t): (&Graph, &[NodeId])) -> Result<Comparison> {
        self.compare_with_progress((a, b), Some((s, t)), &mut |_| {})
    }

    /// [`Dwl::compare_tuples`], or [`Dwl::compare`] without tuples, calling `observe` after every round.
    pub fn compare_with_progress(
        &self,
        (a, b): (&Graph, &Graph),
        tuples: Option<(&[NodeId], &[NodeId])>,
        observe: &mut (dyn FnMut(Round) + Send),
    ) -> Result<Comparison> {
        let Some((s, t)) = tuples else { return self.run(&[a, b], None, observe) };
        if s.is_empty() || s.len() != t.len() {
            return Err(Problem::Setting {
                name: "tuple",
                found: format!("{} and {}", counted(s.len(), "node"), counted(t.len(), "node")),
                expected: "two tuples of the same length, at least 1".into(),
            }
            .into());
        }
        for (graph, tuple) in [(a, s), (b, t)] {
            if let Some(node) = tuple.iter().find(|node| node.index() >= graph.n_nodes()) {
                return Err(Problem::UnknownNode { name: node.0.to_string() }.into());
            }
        }
        self.run(&[a, b], Some((s, t)), observe)
    }

    fn run(
        &self,
        graphs: &[&Graph],
        tuples: Option<(&[NodeId], &[NodeId])>,
        observe: &mut (dyn FnMut(Round) + Send),
    ) -> Result<Comparison> {
        self.estimate(graphs).check(graphs, self.k(), self.variant, self.max_memory)?;
        let joint = Joint::new(graphs)?;
        if let (Variant::Marked(_), k @ (1 | 3..)) = (self.variant, self.k()) {
            let expected = "2, since marked DWL colors pairs".into();
            return Err(Problem::Setting { name: "k", found: k.to_string(), expected }.into());
        }
        // Run inside the thread pool: avoids a hand-over for each of the many small parallel steps.
        Ok(rayon::scope(|_| match (self.k(), self.variant) {
            (_, Variant::Marked(reach)) => marked::refine_to_stability(self, reach, &joint, tuples, observe),
            (1, _) => self.refine_to_stability(&Neighbors::new(&joint), &joint, tuples, observe),
            (2, Variant::Folklore) => self.refine_to_stability(&Folklore::<2>::new(&joint), &joint, tuples, observe),
            (3, Variant::Folklore) => self.refine_to_stability(&Folklore::<3>::new(&joint), &joint, tuples, observe),
            (_, Variant::Folklore) => self.refine_to_stability(&Folklore::<4>::new(&joint), &joint, tuples, observe),
            (2, Variant::Oblivious) => self.refine_to_stability(&Oblivious::<2>::new(&joint), &joint, tuples, observe),
            (3, Variant::Oblivious) => self.refine_to_stability(&Oblivious::<3>::new(&joint), &joint, tuples, observe),
            (_, Variant::Oblivious) => self.refine_to_stability(&Oblivious::<4>::new(&joint), &joint, tuples, observe),
        }))
    }

    fn refine_to_stability<const N: usize, R: Rule<N>>(
        &self,
        rule: &R,
        joint: &Joint<'_>,
        tuples: Option<(&[NodeId], &[NodeId])>,
        observe: &mut (dyn FnMut(Round) + Send),
    ) -> Comparison {
        let tuple_index = TupleIndex::new(self.k(), joint.graphs.iter().map(super::joint::RunGraph::n_nodes));
        let start = match self.variant {
            Variant::Oblivious if self.k() > 1 => Initial::Types,
            _ => self.initial,
        };
        let mut partition = initial(joint, &tuple_index, start, self.interning);
        let mut judge = Judge::new(joint, &tuple_index, tuples);
        let mut round = 0;
        judge.see(rule, 0, None, &partition);
        observe(Round { round, n_classes: partition.n_classes() });
        let mut stable = partition.is_discrete();
        while !stable && self.max_rounds.is_none_or(|max| round < max) {
            let next = refine(rule, &partition, self.interning);
            if next.n_classes() == partition.n_classes() {
                stable = true;
                break;
            }
            round += 1;
            judge.see(rule, round, Some(&partition), &next);
            observe(Round { round, n_classes: next.n_classes() });
            stable = next.is_discrete();
            partition = next;
        }
        let (graphs, tuples) = judge.verdicts();
        let coloring = Coloring { tuple_index, partition, rounds: round, stable };
        Comparison { graphs, tuples, coloring }
    }
}
