//! Candidate destinations that equal those of py-tgb's generator (`hist_rnd`), draw for draw.

use rustc_hash::{FxHashMap, FxHashSet};

use super::CandidateCount;
use crate::event::{EventId, EventStream, NodeId, up_to};
use crate::py_compat::NumpyRandom;
use crate::split::Split;

/// How candidates are drawn: TGB's strategy `hist_rnd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TgbRule {
    /// Candidates of each event at most: up to half of them past destinations of the source in training, the rest others.
    pub count: usize,
    /// Seed of NumPy's generator.
    pub seed: u32,
}

/// The seed of all of TGB's candidates.
pub const TGB_SEED: u32 = 42;

impl From<CandidateCount> for TgbRule {
    fn from(count: CandidateCount) -> Self {
        match count {
            CandidateCount::Some(count) => Self::new(count),
            CandidateCount::All => Self::all(),
        }
    }
}

impl TgbRule {
    /// At most `count` candidates, drawn with TGB's seed.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { count, seed: TGB_SEED }
    }

    /// All destinations, as TGB draws them where it asks for more than there are.
    #[must_use]
    pub fn all() -> Self {
        Self::new(usize::MAX)
    }

    /// The number of candidates at most; `None` for [`TgbRule::all`].
    #[must_use]
    pub fn limit(self) -> Option<usize> {
        (self.count < usize::MAX).then_some(self.count)
    }
}

/// Candidates of validation and test events as py-tgb generates them: one generator draws for all validation events, then for all
/// test events, so lists must be made in order of time. Asking for events in ascending order draws each list once.
///
/// Nodes are drawn by their ids. Those of a stream follow the sorted names, so the lists are equal to TGB's where TGB numbers
/// nodes in that order too, as it does for tgbl-wiki. Like TGB's, the pool reaches from the smallest id of a destination to the
/// largest: in a graph that is not bipartite it holds nodes that are never destinations.
///
/// ```
/// use ctdg::event::EventStream;
/// use ctdg::negative::{TgbLists, TgbRule};
/// use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
///
/// let stream = EventStream::from_events((0..100u32).map(|i| (i % 5, 5 + i * i % 23, f64::from(i))))?;
/// let split = SplitRule::of(&stream, SplitMode::Tgb, MASK_SEED)?.apply(&stream)?;
/// let mut lists = TgbLists::new(&stream, &split, TgbRule::new(4));
/// let first = lists.of(split.test[0]);
/// assert!(first.len() == 4 && !first.contains(&stream.event(split.test[0]).dst));
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug)]
pub struct TgbLists<'s> {
    stream: &'s EventStream,
    rule: TgbRule,
    /// Ends of validation and of test.
    ends: [usize; 2],
    /// The first validation event.
    start: usize,
    /// The ids that may be drawn: `pool.0..=pool.1`.
    pool: (u32, u32),
    /// Distinct training pairs, ascending.
    past: Vec<(NodeId, NodeId)>,
    random: NumpyRandom,
    /// The next event to draw for.
    next: usize,
    /// Lists of the last events drawn for, which have one time; they end before `next`.
    lists: Vec<Vec<NodeId>>,
    /// `marks[v] == mark` if `v` may not be drawn now.
    marks: Vec<u64>,
    mark: u64,
}

impl<'s> TgbLists<'s> {
    /// Lists for the validation and test events of `split`. Past destinations are those of all events before validation, masked
    /// ones included.
    #[must_use]
    pub fn new(stream: &'s EventStream, split: &Split, rule: TgbRule) -> Self {
        let n_events = split.rule.n_events;
        let start = split.val_start().n_events();
        let mut past: Vec<_> = stream.src()[..start].iter().copied().zip(stream.dst().iter().copied()).collect();
        past.sort_unstable();
        past.dedup();
        let destinations = || stream.dst()[..n_events].iter().map(|node| node.0);
        Self {
            ends: [split.test_start().n_events(), n_events],
            // An empty pool for a stream without events.
            pool: (destinations().min().unwrap_or(1), destinations().max().unwrap_or(0)),
            random: NumpyRandom::new(rule.seed),
            next: start,
            lists: Vec::new(),
            marks: vec![0; stream.n_nodes()],
            mark: 0,
            stream,
            rule,
            start,
            past,
        }
    }

    /// The candidates of `event`, in TGB's order; none for an event that is neither for validation nor for test. An event before
    /// the last one asked for draws all lists again.
    pub fn of(&mut self, event: EventId) -> Vec<NodeId> {
        let at = event.index();
        if at < self.start || at >= self.ends[1] {
            return Vec::new();
        }
        if at < self.next - self.lists.len() {
            self.random.reset();
            (self.next, self.lists) = (self.start, Vec::new());
        }
        while at >= self.next {
            self.draw_next_time();
        }
        self.lists[at - (self.next - self.lists.len())].clone()
    }

    /// Draws for all events of the next time.
    fn draw_next_time(&mut self) {
        let first = self.next;
        // Validation and test events are separate in TGB, also where they share a time.
        let part_end = if first < self.ends[0] { self.ends[0] } else { self.ends[1] };
        let end = up_to(&self.stream.times()[..part_end], self.stream.times()[first]).n_events();
        let pair = |at: usize| (self.stream.src()[at], self.stream.dst()[at]);
        let mut positives: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        // TGB keeps one list for each source, destination and time: that of the last such event.
        let mut last_of: FxHashMap<(NodeId, NodeId), usize> = FxHashMap::default();
        let pairs: Vec<_> = (first..end).map(pair).collect();
        for (index, &(src, dst)) in pairs.iter().enumerate() {
            positives.entry(src).or_default().push(dst);
            last_of.insert((src, dst), index);
        }
        let mut lists: Vec<Vec<NodeId>> = pairs.iter().map(|(src, _)| self.draw(*src, &positives[src])).collect();
        for (index, key) in pairs.iter().enumerate() {
            if last_of[key] != index {
                let of_last = lists[last_of[key]].clone();
                lists[index] = of_last;
            }
        }
        (self.lists, self.next) = (lists, end);
    }

    /// A list for an event of `src`, whose destinations at this time are `positives`.
    fn draw(&mut self, src: NodeId, positives: &[NodeId]) -> Vec<NodeId> {
        let first = self.past.partition_point(|pair| pair.0 < src);
        let past = self.past[first..].iter().take_while(|pair| pair.0 == src).map(|pair| pair.1);
        let is_true: FxHashSet<NodeId> = positives.iter().copied().collect();
        let mut list: Vec<NodeId> = past.clone().filter(|node| !is_true.contains(node)).collect();
        let n_past = (self.rule.count / 2).min(list.len());
        self.random.choose(&mut list, n_past);

        self.mark += 1;
        for node in positives.iter().copied().chain(past) {
            self.marks[node.index()] = self.mark;
        }
        let (marks, mark) = (&self.marks, self.mark);
        let mut others: Vec<NodeId> =
            (self.pool.0..=self.pool.1).map(NodeId).filter(|node| marks[node.index()] != mark).collect();
        let n_others = self.rule.count - n_past;
        // Where there are too few, TGB takes all as they are, without a draw.
        if n_others <= others.len() {
            self.random.choose(&mut others, n_others);
        }
        list.extend(others);
        list
    }
}
