//! Queries of an evaluation that are scored together.

use ctdg::event::EventId;
use ctdg::mite::PairQuery;

use super::Scorer;
use crate::callbacks::{Callback, Stage};
use crate::collate::PairBatch;
use crate::task::Task;
use crate::{Error, Result};

/// Queries that are scored together.
#[derive(Debug, Clone)]
pub struct Window<'e> {
    /// The batches that begin with it; none if it continues the batch of the window before.
    pub batches: Vec<&'e [EventId]>,
    /// The pairs: of each batch its events and as many negatives, or of each event of `ranked` all that it is ranked among.
    pub queries: Vec<PairQuery>,
    /// The events that are ranked, each with the number of its queries.
    pub ranked: Vec<(EventId, usize)>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Two queries for each event of each batch.
    Links,
    /// Some events of one batch with what they are ranked among.
    Ranks,
}

/// Queries scored in one call, which bounds memory.
pub(super) const MAX_QUERIES: usize = 8192;

impl<'e> Window<'e> {
    /// Batches of equal size with two queries for each event.
    pub(super) fn of_links(batches: Vec<&'e [EventId]>, queries: Vec<PairQuery>) -> Self {
        Self { batches, queries, ranked: Vec::new(), kind: Kind::Links }
    }

    /// A window to which [ranked events](Self::rank) are added: the first of `batch`, or a further one.
    fn of_ranks(batch: Option<&'e [EventId]>) -> Self {
        Self { batches: batch.into_iter().collect(), queries: Vec::new(), ranked: Vec::new(), kind: Kind::Ranks }
    }

    /// Adds the queries of one event.
    fn rank(&mut self, event: EventId, queries: &[PairQuery]) {
        self.queries.extend_from_slice(queries);
        self.ranked.push((event, queries.len()));
    }

    /// The queries with the groups that are padded together.
    pub(super) fn pairs(&self) -> PairBatch<'_> {
        let pairs = PairBatch::new(&self.queries);
        match self.kind {
            Kind::Links => pairs.padded_in_groups_of(self.batches.first().map_or(1, |batch| batch.len())),
            Kind::Ranks => pairs.padded_alone(),
        }
    }

    /// The scores of its queries.
    pub(super) fn score<S: Scorer + ?Sized>(&self, scorer: &mut S) -> Result<Vec<f32>> {
        if self.kind == Kind::Links {
            return scorer.score_all(&self.batches, &self.queries);
        }
        let mut scores = Vec::with_capacity(self.queries.len());
        let mut new_events = self.batches.first().copied().unwrap_or_default();
        for queries in self.queries.chunks(MAX_QUERIES) {
            scores.extend(scorer.score(new_events, PairBatch::new(queries).padded_alone())?);
            new_events = &[];
        }
        Ok(scores)
    }

    /// The part of `scores` of each ranked event.
    pub(super) fn by_event<'s>(&self, scores: &'s [f32]) -> impl Iterator<Item = (EventId, &'s [f32])> {
        let mut rest = scores;
        self.ranked.iter().map(move |&(event, n)| {
            let (of_event, others) = rest.split_at(n);
            rest = others;
            (event, of_event)
        })
    }
}

/// The batches of a pass as windows of ranked events. Every batch begins one, because a memory must see it.
pub(super) struct RankedWindows<'t, Q> {
    pub(super) task: &'t Task<'t>,
    pub(super) events: &'t [EventId],
    pub(super) batch_size: usize,
    /// Position of the next event.
    pub(super) at: usize,
    /// What the event at a position is ranked among; `None` if it is not ranked.
    pub(super) queries: Q,
}

impl<'t, Q> RankedWindows<'t, Q>
where
    Q: FnMut(usize, EventId) -> Result<Option<Vec<PairQuery>>>,
{
    /// The next window; empty if it would continue a batch without ranked events.
    fn window(&mut self) -> Result<Window<'t>> {
        let first = self.at - self.at % self.batch_size;
        let end = self.events.len().min(first + self.batch_size);
        let batch = &self.events[first..end];
        let mut window = Window::of_ranks((self.at == first).then_some(batch));
        while self.at < end && window.queries.len() < MAX_QUERIES {
            let event = self.events[self.at];
            if let Some(queries) = (self.queries)(self.at, event)? {
                window.rank(event, &queries);
            }
            self.at += 1;
        }
        if window.ranked.is_empty() && !window.batches.is_empty() {
            // Nothing to rank, but a memory must see the batch: one pair, whose score is not used.
            window.queries = self.task.queries(&batch[..1]);
        }
        Ok(window)
    }
}

impl<'t, Q> Iterator for RankedWindows<'t, Q>
where
    Q: FnMut(usize, EventId) -> Result<Option<Vec<PairQuery>>>,
{
    type Item = Result<Window<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.events.len() {
            match self.window() {
                Ok(window) if window.queries.is_empty() => {}
                window => return Some(window),
            }
        }
        None
    }
}

/// Tells the callback where a pass is, and ends the pass if it says so and something is left to do.
pub(super) fn ask(callback: &mut dyn Callback, stage: Stage, done: usize, total: usize) -> Result<()> {
    callback.on_progress(stage, done, total);
    if done < total && callback.should_stop() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Scores one window after another.
pub(super) fn one_by_one<'e, S: Scorer + ?Sized>(
    scorer: &mut S,
    windows: &mut (dyn Iterator<Item = Result<Window<'e>>> + Send),
    consume: &mut dyn FnMut(Window<'e>, Vec<f32>) -> Result<()>,
) -> Result<()> {
    for window in windows {
        let window = window?;
        let scores = window.score(scorer)?;
        consume(window, scores)?;
    }
    Ok(())
}

/// Scores every window with all of `scorers`; one alone may look ahead.
pub(super) fn score_with_all<'e, S: Scorer>(
    scorers: &mut [S],
    windows: &mut (dyn Iterator<Item = Result<Window<'e>>> + Send),
    mut consume: impl FnMut(&Window<'e>, &[Vec<f32>]) -> Result<()>,
) -> Result<()> {
    if let [scorer] = scorers {
        return scorer.score_windows(windows, &mut |window, scores| consume(&window, &[scores]));
    }
    for window in windows {
        let window = window?;
        let scores = scorers.iter_mut().map(|scorer| window.score(scorer)).collect::<Result<Vec<_>>>()?;
        consume(&window, &scores)?;
    }
    Ok(())
}
