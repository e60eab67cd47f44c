//! A [`LinkPredictor`] on a log that has grown since its training.

use ctdg::event::{EventId, NodeId};
use ctdg::split::Split;

use super::LinkPredictor;
use crate::callbacks::{Callback, Stage};
use crate::evaluate::{Evaluator, TestRange, TestedEvents};
use crate::memory::{Memory, MemoryState};
use crate::run::KnownPart;
use crate::score::PairScorer;
use crate::task::Task;
use crate::{Error, Events, Result};

/// Events to test a predictor on, with what the model knows before the first of them.
pub(super) struct Test {
    events: Events,
    split: Split,
    /// Where the node memory starts; `None` if it is that after validation.
    replay: Option<Replay>,
    pub(super) tested: TestedEvents,
}

/// How a node memory gets to the first tested event.
struct Replay {
    /// The memory after validation, with the nodes' numbers in the grown stream, if the test does not begin earlier.
    after: Option<MemoryState>,
    /// Training and validation events of the run.
    consumed: Vec<EventId>,
    /// Events to advance through.
    between: Vec<EventId>,
}

impl Test {
    /// The events with their split.
    pub(super) fn task(&self) -> Result<Task<'_>> {
        Task::with_split(&self.events, self.split.clone())
    }
}

impl Replay {
    /// Up to the event with index `first` of `events`, from the memory after validation in the split `own` of a run whose nodes have
    /// the numbers `nodes` in `events`.
    fn to(first: usize, memory: &MemoryState, own: &Split, nodes: &[NodeId], events: &Events) -> Result<Self> {
        let validated = own.test_start().n_events();
        // A test that begins earlier must not read a later memory.
        let is_later = first >= validated;
        let after = is_later.then(|| memory.renumbered(nodes, events.n_nodes())).transpose()?;
        let between = events.ids().take(first).skip(if is_later { validated } else { 0 }).collect();
        Ok(Self { after, consumed: [own.train.as_slice(), &own.val].concat(), between })
    }
}

impl LinkPredictor {
    /// Events at the end of [`LinkPredictor::events`] that the training did not know of.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let message = |i: i32| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i));
    /// # let events = Events::from_tuples((0..100).map(message))?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// # let place = tempfile::tempdir()?;
    /// # let folder = place.path().join("mine");
    /// predictor.save(&folder)?;
    /// let grown = Events::from_tuples((0..130).map(message))?; // thirty more messages
    /// assert_eq!(predictor.n_newer_events(), 0);
    /// assert_eq!(LinkPredictor::load(&folder, &grown)?.n_newer_events(), 30);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn n_newer_events(&self) -> usize {
        self.events.len().saturating_sub(self.trained.manifest.data.events)
    }

    /// The run's own events at the beginning of `events`.
    pub(super) fn known(&self, events: &Events) -> Result<KnownPart> {
        self.trained.manifest.data.known_part(events)
    }

    /// The run's own events with its split.
    pub(super) fn known_task<'k>(&self, known: &'k KnownPart) -> Result<Task<'k>> {
        Task::with_rule(&known.events, &self.trained.manifest.split)
    }

    /// What to test for `range` of `events`, which begin with those of the run.
    pub(super) fn test(&self, events: &Events, range: TestRange) -> Result<Test> {
        let known = self.known(events)?;
        let own = self.trained.manifest.split.apply(&known.events)?;
        if range == TestRange::Split {
            let tested = tested(&known.events, &own, &own, range, known.n_newer);
            return Ok(Test { events: known.events, split: own, replay: None, tested });
        }
        let indices = range.of(events, known.events.len())?;
        let split = own.tested_on(events, &known.nodes, indices.clone());
        let tested = tested(events, &own, &split, range, known.n_newer);
        let replay =
            self.trained.memory.as_ref().map(|memory| Replay::to(indices.start, memory, &own, &known.nodes, events));
        Ok(Test { events: events.clone(), split, replay: replay.transpose()?, tested })
    }

    /// The node memory just before the first tested event, where it is not that after validation. `task` is that of `test`.
    pub(super) fn memory_before(
        &self,
        test: &Test,
        task: &Task<'_>,
        callback: &mut dyn Callback,
    ) -> Result<Option<MemoryState>> {
        let (Some(form), Some(replay)) = (self.trained.model.memory(), &test.replay) else { return Ok(None) };
        let mut memory = Memory::new(self.device(), form, task.stream, &[])?;
        match &replay.after {
            Some(state) => memory.restore(state, &replay.consumed)?,
            None => memory.use_time_scale_of(self.trained.memory.as_ref().ok_or(Error::NoMemory)?),
        }
        let mut scorer = PairScorer::new(&*self.trained.model, &task.tables, &task.full_store);
        let batch = self.trained.config.train.batch.max(1);
        let total = replay.between.len().div_ceil(batch);
        for (done, events) in replay.between.chunks(batch).enumerate() {
            callback.on_progress(Stage::Evaluate, done, total);
            if callback.should_stop() {
                return Err(Error::Interrupted);
            }
            scorer.update_memory(&self.trained.weights, &mut memory, events)?;
        }
        memory.snapshot().map(Some)
    }

    /// Tests on `task`, with another node memory before it than that after validation if there is one.
    pub(super) fn evaluator<'a>(&'a self, task: &'a Task<'a>, memory: Option<&'a MemoryState>) -> Evaluator<'a> {
        let (weights, batch) = (&self.trained.weights, self.trained.config.train.batch);
        Evaluator { task, model: &*self.trained.model, weights, memory: memory.or(self.trained.memory.as_ref()), batch }
    }
}

fn tested(events: &Events, own: &Split, split: &Split, range: TestRange, newer: usize) -> TestedEvents {
    let time = |id: Option<&EventId>| id.map(|id| events.times()[id.index()]);
    let is_tested =
        |id: &&EventId| split.test.first().is_some_and(|first| *id >= first) && split.test.last() >= Some(*id);
    TestedEvents {
        range: range.as_str().to_owned(),
        events: split.test.len(),
        new_node_events: split.new_node_test.len(),
        trained_on: own.train.iter().filter(is_tested).count(),
        first_time: time(split.test.first()),
        last_time: time(split.test.last()),
        newer,
    }
}
