//! Batches of a pass with their negatives, and means over batches.

use serde::Serialize;

use crate::error::{Problem, Result};
use crate::event::PairQuery;
use crate::event::{EventId, EventStream};
use crate::metric::BatchMean;
use crate::negative::{NegativeKind, Pass, PassNegatives};
use crate::split::Split;

/// The passes of a test: all events, then those with new nodes.
pub(super) const TEST_PASSES: [Pass; 2] = [Pass::Test, Pass::NewNodeTest];

/// AP and AUC, means over batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LinkScores {
    /// Average precision.
    pub ap: f64,
    /// Area under the ROC curve.
    pub auc: f64,
}

/// Something measured on all test events and on those with new nodes; `None` where there are no events or no negatives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PerSetting<T> {
    /// All test events.
    pub transductive: Option<T>,
    /// Test events with a new node.
    pub inductive: Option<T>,
}

impl<T> PerSetting<T> {
    /// Measures both passes, one after the other.
    pub(super) fn measure(mut of: impl FnMut(Pass) -> Result<Option<T>>) -> Result<Self> {
        let [all, new] = TEST_PASSES;
        Ok(Self { transductive: of(all)?, inductive: of(new)? })
    }

    /// That of a test pass.
    #[must_use]
    pub fn of(&self, pass: Pass) -> Option<&T> {
        match pass {
            Pass::Val | Pass::Test => self.transductive.as_ref(),
            Pass::NewNodeVal | Pass::NewNodeTest => self.inductive.as_ref(),
        }
    }
}

/// A batch: its events, and queries of them, then of their negatives at the same times.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) events: &'a [EventId],
    pub(super) queries: Vec<PairQuery>,
}

impl Batch<'_> {
    /// Queries of the events.
    pub(super) fn positives(&self) -> &[PairQuery] {
        &self.queries[..self.events.len()]
    }

    /// Queries of the negatives.
    pub(super) fn negatives(&self) -> &[PairQuery] {
        &self.queries[self.events.len()..]
    }
}

/// The batches of a pass.
#[derive(Debug)]
pub(super) struct Batches<'a>(pub(super) Vec<Batch<'a>>);

impl<'a> Batches<'a> {
    /// Draws the negatives of the evaluation; `None` if the pass has no events, or so few pairs that there is no negative.
    pub(super) fn draw(
        stream: &EventStream,
        split: &'a Split,
        pass: Pass,
        kind: NegativeKind,
        batch: usize,
    ) -> Result<Option<Self>> {
        let mut sampler = PassNegatives::new(stream, split, pass, kind);
        let mut batches = Vec::new();
        for (index, events) in (0..).zip(pass.events(split).chunks(batch)) {
            let mut queries = PairQuery::of(stream, events);
            let pairs = match sampler.draw(events, index) {
                Err(error) if matches!(error.problem(), Problem::NoNegative) => return Ok(None),
                pairs => pairs?,
            };
            let negatives = pairs.into_iter().zip(&queries).map(|((src, dst), of)| PairQuery { src, dst, ..*of });
            let negatives: Vec<PairQuery> = negatives.collect();
            queries.extend(negatives);
            batches.push(Batch { events, queries });
        }
        Ok(if batches.is_empty() { None } else { Some(Self(batches)) })
    }

    /// Mean AP and AUC of the scores that `score` gives to the queries of each batch, in order.
    pub(super) fn mean(&self, mut score: impl FnMut(&Batch<'a>) -> Result<Vec<f32>>) -> Result<LinkScores> {
        let mut mean = BatchMean::new();
        for batch in &self.0 {
            let labels: Vec<bool> = (0..batch.queries.len()).map(|at| at < batch.events.len()).collect();
            mean.push(&score(batch)?, &labels)?;
        }
        let scores = mean.mean()?;
        Ok(LinkScores { ap: scores.ap, auc: scores.auc })
    }
}

/// `part` of `whole`; 0 of nothing.
pub(super) fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
