//! Untrained heuristics under each protocol: three kinds of negatives, all test events and those with new nodes.

use rayon::prelude::*;
use serde::Serialize;

use super::batches::{Batches, LinkScores, PerSetting, TEST_PASSES};
use super::never_met::NeverMetScores;
use crate::error::Result;
use crate::event::{EventId, EventStream};
use crate::heuristic;
use crate::negative::{NegativeKind, Pass};
use crate::store::Store;

/// One heuristic against one kind of negatives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeuristicScores {
    /// Its name.
    pub heuristic: String,
    /// The kind of negatives.
    pub negatives: NegativeKind,
    /// By setting.
    #[serde(flatten)]
    pub scores: PerSetting<LinkScores>,
}

/// Heuristics by name, and "never met"; empty where a pass has no events or no negatives.
type Scores = (Vec<(String, LinkScores)>, Option<NeverMetScores>);

/// What was measured, by kind of negatives.
pub(super) type Measured = Vec<(NegativeKind, PerSetting<Scores>)>;

/// Measures every protocol, several at once.
pub(super) fn measure(of: impl Fn(Pass, NegativeKind) -> Result<Scores> + Sync) -> Result<Measured> {
    let protocols: Vec<(NegativeKind, Pass)> =
        NegativeKind::ALL.into_iter().flat_map(|kind| TEST_PASSES.map(|pass| (kind, pass))).collect();
    let scores: Vec<Result<Scores>> = protocols.into_par_iter().map(|(kind, pass)| of(pass, kind)).collect();
    let mut scores = scores.into_iter();
    let mut next = || scores.next().transpose();
    let row = |kind| Ok((kind, PerSetting { transductive: next()?, inductive: next()? }));
    NegativeKind::ALL.into_iter().map(row).collect()
}

/// All heuristics on one pass; none without batches.
pub(super) fn scores(
    stream: &EventStream,
    store: &Store,
    base: &[EventId],
    batches: Option<&Batches<'_>>,
) -> Result<Vec<(String, LinkScores)>> {
    let Some(batches) = batches else { return Ok(Vec::new()) };
    let mean = |mut heuristic: Box<dyn heuristic::Heuristic + Send + '_>| {
        Ok((heuristic.name(), batches.mean(|batch| heuristic.score(batch.events, &batch.queries))?))
    };
    heuristic::all(stream, store, base)?.into_iter().map(mean).collect()
}

/// One row for each heuristic and kind of negatives, in the order of [`heuristic::NAMES`].
pub(super) fn rows(measured: &Measured) -> Vec<HeuristicScores> {
    let mut rows = Vec::new();
    for name in heuristic::NAMES {
        let of = |setting: &Option<Scores>| {
            let found = setting.as_ref()?.0.iter().find(|(heuristic, _)| heuristic == name)?;
            Some(found.1)
        };
        rows.extend(measured.iter().map(|(negatives, both)| HeuristicScores {
            heuristic: name.to_owned(),
            negatives: *negatives,
            scores: PerSetting { transductive: of(&both.transductive), inductive: of(&both.inductive) },
        }));
    }
    rows
}
