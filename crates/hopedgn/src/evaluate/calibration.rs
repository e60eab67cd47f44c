//! Calibration of a model whose scores are probabilities.

use ctdg::event::EventId;
use ctdg::mite::PairQuery;
use ctdg::negative::Pass;

use super::window::{RankedWindows, ask};
use super::{Evaluator, ModelScorer, Scorer};
use crate::Result;
use crate::callbacks::{Callback, Stage};
use crate::collate::Layout;
use crate::metrics::{Calibration, CalibrationCounts};
use crate::predict::{Destinations, ScoreMeaning};
use crate::score::PairScorer;

/// Pairs that are scored at most, of a model that reads statistics alone and of any other, which takes far longer for each.
const MAX_PAIRS: [usize; 2] = [1 << 22, 1 << 18];

/// By how much fewer pairs find the constant of [`Evaluator::log_sum`].
const FEWER: usize = 4;

/// Events that are measured at least.
const MIN_EVENTS: usize = 32;

impl Evaluator<'_> {
    /// Whether the probabilities of the model are right on the events of `pass`: the probability of every destination seen before an
    /// event, against the one that it has. `None` if the scores of the model are no probabilities, or the pass has no events.
    ///
    /// Where events × destinations are many, fewer events are measured, spread evenly over the pass.
    pub fn calibration(&self, pass: Pass, callback: &mut dyn Callback) -> Result<Option<Calibration>> {
        self.calibration_of(pass, MAX_PAIRS, callback)
    }

    /// The logarithm of the mean sum of all probabilities on validation events, of a model without memory.
    pub(crate) fn log_sum(&self, callback: &mut dyn Callback) -> Result<Option<f32>> {
        if self.model.memory().is_some() {
            return Ok(None);
        }
        let calibration = self.calibration_of(Pass::Val, MAX_PAIRS.map(|pairs| pairs / FEWER), callback)?;
        #[expect(clippy::cast_possible_truncation, reason = "a model's constant")]
        Ok(calibration.map(|found| found.mean_sum.ln() as f32).filter(|log_sum| log_sum.is_finite()))
    }

    fn calibration_of(
        &self,
        pass: Pass,
        max_pairs: [usize; 2],
        callback: &mut dyn Callback,
    ) -> Result<Option<Calibration>> {
        let meaning = ScoreMeaning::of(self.weights)?;
        if meaning == ScoreMeaning::Separation {
            return Ok(None);
        }
        let events = pass.events(&self.task.split);
        let measured = self.measured(events, max_pairs);
        let mut counts = CalibrationCounts::default();
        let scorer = PairScorer::new(self.model, &self.task.tables, &self.task.full_store);
        let mut scorer = ModelScorer::new(scorer, self.weights, self.memory()?);
        let (mut destinations, mut rest) = (Destinations::new(self.task.stream), measured.as_slice());
        let queries = |_, event: EventId| -> Result<Option<Vec<PairQuery>>> {
            if rest.first() != Some(&event) {
                return Ok(None);
            }
            rest = &rest[1..];
            let positive = self.task.queries(&[event])[0];
            destinations.advance(self.task.full_store.cut(positive.time));
            Ok(Some(destinations.of(positive.src).map(|dst| PairQuery { dst, ..positive }).collect()))
        };
        let mut windows = RankedWindows { task: self.task, events, batch_size: self.batch.max(1), at: 0, queries };
        let mut done = 0;
        ask(callback, Stage::Rank, 0, measured.len())?;
        scorer.score_windows(&mut windows, &mut |window, scores| {
            let mut queries = window.queries.as_slice();
            for (event, logits) in window.by_event(&scores) {
                let (of_event, others) = queries.split_at(logits.len());
                queries = others;
                let probabilities: Vec<f32> = logits.iter().map(|&logit| meaning.score(logit)).collect();
                let partner = self.task.stream.event(event).dst;
                counts.push(&probabilities, of_event.iter().position(|query| query.dst == partner));
            }
            done += window.ranked.len();
            ask(callback, Stage::Rank, done, measured.len())
        })?;
        Ok(counts.finish(events.len()))
    }

    /// As many of `events` as may be measured, spread evenly.
    fn measured(&self, events: &[EventId], [of_statistics, of_others]: [usize; 2]) -> Vec<EventId> {
        let mut destinations = Destinations::new(self.task.stream);
        if let Some(&last) = events.last() {
            destinations.advance(self.task.full_store.cut(self.task.full_store.time(last)));
        }
        let max_pairs = if self.model.layout() == Layout::Statistics { of_statistics } else { of_others };
        let n = (max_pairs / destinations.len().max(1)).max(MIN_EVENTS).min(events.len());
        (0..n).map(|at| events[at * events.len() / n]).collect()
    }
}
