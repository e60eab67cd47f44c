//! What the ranks of a process group agree on: the state they train from, and when to stop.

use hopedgn_tensor::ProcessGroup;
use serde::{Deserialize, Serialize};

use super::manifest::fingerprint;
use super::session::{Best, Session, weights_file};
use crate::callbacks::{Callback, EpochEnd, Stage, TrainEnd, TrainStart};
use crate::file_format::{from_json, to_line};
use crate::memory::MemoryState;
use crate::metrics::LabelEpoch;
use crate::train::Trainer;
use crate::{Error, Result};

/// What a rank says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Standing {
    /// Hash of the events.
    events: String,
    /// Completed epochs, and batches of the current one.
    progress: (usize, usize),
}

/// Puts every rank in the state of the most advanced one, so that a rank that was started again catches up. States of equally advanced
/// ranks are equal. True if the state of this rank was not that one.
pub(super) fn hand_over(session: &Session<'_>, trainer: &mut Trainer<'_>, best: &mut Best) -> Result<bool> {
    let group = &session.group;
    let stream = session.task.stream;
    let progress = (trainer.progress().history.len(), trainer.progress().batch);
    let own = Standing { events: fingerprint(stream, stream.len(), stream.n_nodes()), progress };
    let place = std::path::Path::new("process group");
    let text = to_line(&own).map_err(|error| super::damaged(place, &error))?;
    let mut all = Vec::with_capacity(group.n_ranks());
    for text in group.all_gather(text.as_bytes())? {
        all.push(from_json::<Standing>(place, &String::from_utf8_lossy(&text))?);
    }
    if let Some(rank) = all.iter().position(|standing| standing.events != all[0].events) {
        return Err(Error::OtherEvents { rank });
    }
    let most = all.iter().map(|standing| standing.progress).max().unwrap_or_default();
    let source = all.iter().position(|standing| standing.progress == most).unwrap_or_default();
    let is_source = group.rank() == source;
    let (state, weights) = if is_source { (trainer.save()?, best_file(session, best)?) } else { Default::default() };
    let state = group.all_gather(&state)?.swap_remove(source);
    let weights = group.all_gather(&weights)?.swap_remove(source);
    let taken = if is_source { Ok(()) } else { take(session, trainer, best, &state, &weights) };
    group.agree(taken)?;
    Ok(progress != most)
}

/// The file of the best weights so far; empty if no epoch is complete.
fn best_file(session: &Session<'_>, best: &mut Best) -> Result<Vec<u8>> {
    if let (None, Some(folder)) = (&best, session.folder.filter(|folder| folder.path().join(super::MODEL).exists())) {
        let mut weights = session.initial.clone();
        let memory = folder.load_best(session.config, &mut weights)?;
        *best = Some((weights, memory));
    }
    best.as_ref().map_or(Ok(Vec::new()), |(weights, memory)| weights_file(session.config, weights, memory.as_ref()))
}

fn take(session: &Session<'_>, trainer: &mut Trainer<'_>, best: &mut Best, state: &[u8], weights: &[u8]) -> Result<()> {
    trainer.restore(state)?;
    *best = None;
    if !weights.is_empty() {
        let mut parameters = session.initial.clone();
        hopedgn_tensor::load(weights, &mut parameters, None)?;
        let beside = hopedgn_tensor::load_extras(weights)?;
        let memory = if beside.is_empty() { None } else { Some(MemoryState::of(beside)?) };
        *best = Some((parameters, memory));
    }
    Ok(())
}

/// A callback that stops all ranks at the same place when that of any rank wants to stop: one exchange later.
pub(super) struct AgreedCallback<'a> {
    pub(super) callback: &'a mut dyn Callback,
    pub(super) group: &'a ProcessGroup,
}

impl Callback for AgreedCallback<'_> {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        self.callback.on_train_start(start)
    }

    fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
        self.callback.on_progress(stage, done, total);
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        self.callback.on_epoch_end(end)
    }

    fn on_train_end(&mut self, end: &TrainEnd<'_>) -> Result<()> {
        self.callback.on_train_end(end)
    }

    fn on_label_epoch_end(&mut self, record: &LabelEpoch) {
        self.callback.on_label_epoch_end(record);
    }

    fn should_stop(&self) -> bool {
        let own = self.callback.should_stop();
        self.group.want_stop(own);
        if self.group.is_alone() { own } else { self.group.is_stop_agreed() }
    }
}
