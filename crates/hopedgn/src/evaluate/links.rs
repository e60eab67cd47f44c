//! AP and AUC against one negative for each event.

use ctdg::Problem;
use ctdg::event::{EventId, EventStream};
use ctdg::metric::{BatchMean, WholeSplit};
use ctdg::mite::PairQuery;
use ctdg::negative::{Pass, PassNegatives};
use ctdg::split::Split;

use super::window::{ask, score_with_all};
use super::{Negatives, Scorer, Window};
use crate::callbacks::{Callback, Stage};
use crate::metrics::LinkMetrics;
use crate::task::Task;
use crate::{Error, Result};

/// One negative for each of `positives`, at the same time.
fn draw(
    sampler: &mut PassNegatives<'_>,
    batch: &[EventId],
    index: u64,
    positives: &[PairQuery],
) -> Result<Vec<PairQuery>> {
    let pairs = sampler.draw(batch, index)?;
    Ok(pairs.into_iter().zip(positives).map(|((src, dst), query)| PairQuery { src, dst, ..*query }).collect())
}

/// The negatives that an evaluation compares the events of one pass with: one for each event, in order.
///
/// ```
/// # use hopedgn::{Events, ctdg::split::SplitMode, task::Task};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// use hopedgn::{ctdg::negative::Pass, evaluate::{Negatives, draw_negatives}};
///
/// let split = Task::new(&events, SplitMode::Dyglib)?.split;
/// let negatives = draw_negatives(&events, &split, Pass::Test, Negatives::Random, 200)?;
/// assert_eq!(negatives.len(), split.test.len());
/// assert_eq!(negatives[0].src, events.event(split.test[0]).src); // random ones keep the source
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn draw_negatives(
    stream: &EventStream,
    split: &Split,
    pass: Pass,
    negatives: Negatives,
    batch_size: usize,
) -> Result<Vec<PairQuery>> {
    let mut sampler = PassNegatives::new(stream, split, pass, negatives.into());
    let mut drawn = Vec::new();
    for (index, batch) in (0..).zip(pass.events(split).chunks(batch_size.max(1))) {
        drawn.extend(draw(&mut sampler, batch, index, &PairQuery::of(stream, batch))?);
    }
    Ok(drawn)
}

/// AP and AUC of one pass for each of `scorers`; `None` if the pass has no events or no negatives.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// use hopedgn::ctdg::{heuristic, negative::Pass};
/// use hopedgn::{callbacks::NoCallback, evaluate::{Negatives, evaluate}};
///
/// let mut heuristics = heuristic::all(&events, &task.full_store, &Pass::Val.base(&task.split))?;
/// let metrics = evaluate(&task, Pass::Val, Negatives::Random, 50, &mut heuristics, &mut NoCallback)?;
/// assert!(metrics.is_some_and(|metrics| metrics.len() == heuristics.len()));
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn evaluate<S: Scorer>(
    task: &Task<'_>,
    pass: Pass,
    negatives: Negatives,
    batch_size: usize,
    scorers: &mut [S],
    callback: &mut dyn Callback,
) -> Result<Option<Vec<LinkMetrics>>> {
    let events = pass.events(&task.split);
    if events.is_empty() {
        return Ok(None);
    }
    let mut sums = vec![(BatchMean::new(), WholeSplit::new()); scorers.len()];
    let total = events.chunks(batch_size).len();
    let mut windows = LinkWindows {
        task,
        sampler: PassNegatives::new(task.stream, &task.split, pass, negatives.into()),
        batches: events.chunks(batch_size).collect(),
        batch_size,
        per_call: scorers.iter().map(|scorer| scorer.batches_per_call(2 * batch_size, total)).max().unwrap_or(1),
        done: 0,
    };
    let mut done = 0;
    ask(callback, Stage::Evaluate, 0, total)?;
    let scored = score_with_all(scorers, &mut windows, |window, scores| {
        for (scores, (mean, whole)) in scores.iter().zip(&mut sums) {
            let mut rest = scores.as_slice();
            for batch in &window.batches {
                let (of_batch, others) = rest.split_at(2 * batch.len());
                let labels: Vec<bool> = (0..of_batch.len()).map(|at| at < batch.len()).collect();
                mean.push(of_batch, &labels)?;
                whole.push(of_batch, &labels)?;
                rest = others;
            }
        }
        done += window.batches.len();
        ask(callback, Stage::Evaluate, done, total)
    });
    match scored {
        // Few events of new nodes may leave no pair to draw.
        Err(Error::Data(error)) if matches!(error.problem(), Problem::NoNegative) => return Ok(None),
        scored => scored?,
    }
    let metrics = |(mean, mut whole): (BatchMean, WholeSplit)| {
        let (mean, whole) = (mean.mean()?, whole.scores()?);
        Ok(LinkMetrics { ap: mean.ap, auc: mean.auc, ap_global: whole.ap, auc_global: whole.auc })
    };
    sums.into_iter().map(metrics).collect::<Result<_>>().map(Some)
}

/// The batches of a pass with their negatives.
struct LinkWindows<'t> {
    task: &'t Task<'t>,
    sampler: PassNegatives<'t>,
    batches: Vec<&'t [EventId]>,
    batch_size: usize,
    /// Batches of a window at most.
    per_call: usize,
    done: usize,
}

impl<'t> Iterator for LinkWindows<'t> {
    type Item = Result<Window<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.batches[self.done..];
        if rest.is_empty() {
            return None;
        }
        // Only the last batch may be smaller, and is scored alone.
        let whole = rest.iter().take_while(|batch| batch.len() == self.batch_size).count();
        let batches = rest[..whole.clamp(1, self.per_call)].to_vec();
        let mut queries = Vec::new();
        for (index, batch) in (self.done as u64..).zip(&batches) {
            let positives = self.task.queries(batch);
            match draw(&mut self.sampler, batch, index, &positives) {
                Ok(negatives) => queries.extend(positives.into_iter().chain(negatives)),
                Err(error) => return Some(Err(error)),
            }
        }
        self.done += batches.len();
        Some(Ok(Window::of_links(batches, queries)))
    }
}
