//! A dataset prepared for link prediction: split, indexed for training and evaluation, with feature tables.

use ctdg::event::{EventId, EventStream};
use ctdg::mite::PairQuery;
use ctdg::split::{MASK_SEED, Split, SplitMode, SplitRule};
use ctdg::store::Store;

use crate::collate::FeatureTables;
use crate::{Error, Result};

/// Link prediction on one stream.
#[derive(Debug)]
pub struct Task<'s> {
    /// All events.
    pub stream: &'s EventStream,
    /// Training, validation and test events.
    pub split: Split,
    /// Index of the training events, all that training may see.
    pub train_store: Store,
    /// Index of all events; a query sees those strictly before it.
    pub full_store: Store,
    /// Node and edge features.
    pub tables: FeatureTables,
}

impl<'s> Task<'s> {
    /// Splits `stream` by the protocol's rule.
    pub fn new(stream: &'s EventStream, mode: SplitMode) -> Result<Self> {
        Self::with_rule(stream, &SplitRule::of(stream, mode, MASK_SEED)?)
    }

    /// Splits `stream` by a rule made earlier; events appended since belong to no part.
    pub fn with_rule(stream: &'s EventStream, rule: &SplitRule) -> Result<Self> {
        let split = rule.apply(stream)?;
        for (what, part) in [("training", &split.train), ("validation", &split.val), ("test", &split.test)] {
            if part.is_empty() {
                return Err(Error::EmptyPart { what });
            }
        }
        let train_store = Store::of_events(stream, &split.train)?;
        let full_store = Store::build(stream)?;
        Ok(Self { stream, split, train_store, full_store, tables: FeatureTables::of(stream)? })
    }

    /// The pairs of `events` at their times.
    #[must_use]
    pub fn queries(&self, events: &[EventId]) -> Vec<PairQuery> {
        PairQuery::of(self.stream, events)
    }
}
