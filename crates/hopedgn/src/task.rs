//! A dataset prepared for link prediction: split, indexed for training and evaluation, with feature tables.

use ctdg::event::{EventId, EventStream};
use ctdg::mite::PairQuery;
use ctdg::split::{MASK_SEED, Split, SplitMode, SplitRule};
use ctdg::store::Store;

use crate::collate::FeatureTables;
use crate::{Error, Result};

/// Link prediction on one stream.
///
/// ```
/// # use hopedgn::Events;
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// use hopedgn::{ctdg::split::SplitMode, task::Task};
///
/// let task = Task::new(&events, SplitMode::Dyglib)?;
/// let (val, test) = (task.queries(&task.split.val), task.queries(&task.split.test));
/// assert!(val.iter().all(|query| query.time < test[0].time));
/// assert_eq!(task.full_store.n_nodes(), events.n_nodes());
/// # Ok::<(), hopedgn::Error>(())
/// ```
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
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::{ctdg::split::SplitMode, task::Task};
    ///
    /// let rule = Task::new(&events, SplitMode::Dyglib)?.split.rule;
    /// assert_eq!(Task::with_rule(&events, &rule)?.split.rule, rule);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn with_rule(stream: &'s EventStream, rule: &SplitRule) -> Result<Self> {
        let split = rule.apply(stream)?;
        for (what, part) in [("training", &split.train), ("validation", &split.val), ("test", &split.test)] {
            if part.is_empty() {
                return Err(Error::EmptyPart { what });
            }
        }
        Self::with_split(stream, split)
    }

    /// The stream with a split that is there.
    pub(crate) fn with_split(stream: &'s EventStream, split: Split) -> Result<Self> {
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
