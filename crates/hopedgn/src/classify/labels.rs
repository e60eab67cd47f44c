//! Labels of the events of each part of the split.

use ctdg::event::EventId;

use crate::fmt::grouped;
use crate::metrics::Parts;
use crate::task::Task;
use crate::{Error, Result};

/// The events of each part for node classification, and their labels.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// use hopedgn::classify::Labels;
///
/// let error = Labels::of(&task).unwrap_err().to_string(); // messages without labels
/// assert!(error.contains("only label 0"), "{error}");
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// Events in order of time.
    pub(super) events: Parts<Vec<EventId>>,
    /// 0 or 1 for each.
    pub(super) targets: Parts<Vec<f32>>,
}

impl Labels {
    /// The labels of all events of `task`, masked nodes included. Refuses labels other than 0 and 1, and a training part in
    /// which all labels are equal.
    pub fn of(task: &Task<'_>) -> Result<Self> {
        let split = task.split.for_nodes();
        let events = Parts { train: split.train, val: split.val, test: split.test };
        let label = |&id: &EventId| task.stream.event(id).label;
        let targets = events.each_ref().map(|events| events.iter().map(label).collect::<Vec<f32>>());
        let all = || targets.iter().flatten();
        if let Some(other) = all().find(|&&label| label != 0.0 && label != 1.0) {
            return Err(Error::Labels { found: format!("the label {other}, expected 0 and 1") });
        }
        for (labels, of_what) in
            [(all().collect::<Vec<_>>(), "events"), (targets.train.iter().collect(), "training events")]
        {
            if let Some(&&first) = labels.first().filter(|first| labels.iter().all(|label| label == *first)) {
                return Err(Error::Labels {
                    found: format!("only label {first} in {} {of_what}", grouped(labels.len())),
                });
            }
        }
        Ok(Self { events, targets })
    }

    /// The number of events of each part.
    #[must_use]
    pub fn events(&self) -> Parts<usize> {
        self.targets.each_ref().map(Vec::len)
    }

    /// The number of events with label 1 of each part.
    #[must_use]
    pub fn positives(&self) -> Parts<usize> {
        self.targets.each_ref().map(|targets| targets.iter().filter(|&&target| target == 1.0).count())
    }
}
