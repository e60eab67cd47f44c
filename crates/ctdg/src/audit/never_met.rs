//! The score "these two never met", against negatives that are past pairs.
//!
//! Historical and inductive negatives have met; a true event may be a first meeting. Against them "never met" means "true",
//! though a pair that never met is far less likely to meet next than one that did.

use serde::Serialize;

use super::batches::{Batches, PerSetting, share};
use super::protocols::Measured;
use crate::error::Result;
use crate::event::PairQuery;
use crate::negative::NegativeKind;
use crate::store::Store;

/// One kind of negatives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NeverMet {
    /// The kind.
    pub negatives: NegativeKind,
    /// By setting.
    #[serde(flatten)]
    pub scores: PerSetting<NeverMetScores>,
}

/// Pairs without an event strictly before their query, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NeverMetScores {
    /// Share of test events that are first meetings.
    pub first_meetings: f64,
    /// Share of negatives that never met.
    pub never_met_negatives: f64,
    /// AP of the score that is 1 for pairs that never met, else 0.
    pub ap: f64,
}

impl NeverMetScores {
    pub(super) fn of(store: &Store, batches: &Batches<'_>) -> Result<Self> {
        let never_met = |query: &PairQuery| store.pair_events(query.src, query.dst, store.cut(query.time)).is_empty();
        let [mut n_events, mut first, mut negatives] = [0; 3];
        let scores = batches.mean(|batch| {
            let count = |queries: &[PairQuery]| queries.iter().filter(|query| never_met(query)).count();
            n_events += batch.events.len();
            first += count(batch.positives());
            negatives += count(batch.negatives());
            Ok(batch.queries.iter().map(|query| f32::from(u8::from(never_met(query)))).collect())
        })?;
        Ok(Self {
            first_meetings: share(first, n_events),
            never_met_negatives: share(negatives, n_events),
            ap: scores.ap,
        })
    }
}

/// One row for each kind of negatives.
pub(super) fn rows(measured: &Measured) -> Vec<NeverMet> {
    let row = |(negatives, both): &(NegativeKind, _)| {
        let PerSetting { transductive, inductive }: &PerSetting<(_, Option<NeverMetScores>)> = both;
        let of = |setting: &Option<(_, Option<NeverMetScores>)>| setting.as_ref().and_then(|setting| setting.1);
        NeverMet {
            negatives: *negatives,
            scores: PerSetting { transductive: of(transductive), inductive: of(inductive) },
        }
    };
    measured.iter().map(row).collect()
}
