//! A memory put down and taken up.

use std::collections::BTreeMap;

use ctdg::event::EventId;
use ctdg::walk_counts::WalkCounts;
use hopedgn_tensor::{StateTable, Tensor};

use super::{Memory, Shift};
use crate::{Error, Result};

/// Copies of all that a memory knows, the same for every device.
#[derive(Debug, Clone)]
pub struct MemoryState {
    values: Tensor,
    messages: Tensor,
    /// `[N + 1, 4]`: for the waiting and for the applied message of each node the number of its event, from 1, as two
    /// digits to the base of 2¹⁶; numbers of this size are exact.
    events: Tensor,
    /// `[2, 6]`: mean and deviation of gaps in each role, each as the sum of three numbers.
    shifts: Tensor,
    /// Of what has never been written to a file; otherwise made anew from the events.
    positions: Option<WalkCounts>,
}

/// The names of these tensors in a checkpoint.
const NAMES: [&str; 4] = ["memory.values", "memory.messages", "memory.events", "memory.shifts"];

impl MemoryState {
    /// As tensors of a checkpoint.
    pub(crate) fn tensors(&self) -> BTreeMap<String, Tensor> {
        let tensors = [&self.values, &self.messages, &self.events, &self.shifts].map(Tensor::clone);
        NAMES.map(str::to_owned).into_iter().zip(tensors).collect()
    }

    /// From the tensors of a checkpoint.
    pub(crate) fn of(mut tensors: BTreeMap<String, Tensor>) -> Result<Self> {
        let mut get = |name: &str| tensors.remove(name).ok_or(Error::NoMemory);
        Ok(Self {
            values: get(NAMES[0])?,
            messages: get(NAMES[1])?,
            events: get(NAMES[2])?,
            shifts: get(NAMES[3])?,
            positions: None,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "sixteen bits are exact")]
fn digits(event: Option<EventId>) -> [f32; 2] {
    let number = event.map_or(0, |event| event.index() + 1);
    [(number >> 16) as f32, (number & 0xFFFF) as f32]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sixteen bits are exact")]
fn event([high, low]: [f32; 2]) -> Option<EventId> {
    let number = ((high as u32) << 16) | (low as u32);
    number.checked_sub(1).map(EventId)
}

impl Memory<'_> {
    /// Copies of all it knows.
    pub fn snapshot(&self) -> Result<MemoryState> {
        let table = |bank: &StateTable| Tensor::matrix(bank.rows(), bank.cols(), bank.values()?);
        let numbers = self.waiting.iter().zip(&self.applied);
        let numbers: Vec<f32> =
            numbers.flat_map(|(&waiting, &applied)| [digits(waiting), digits(applied)]).flatten().collect();
        Ok(MemoryState {
            values: table(&self.values)?,
            messages: table(&self.messages)?,
            events: Tensor::matrix(self.waiting.len(), 4, numbers)?,
            shifts: Tensor::matrix(2, 6, self.shifts.iter().flat_map(Shift::parts).collect())?,
            positions: self.positions.clone(),
        })
    }

    /// Sets gaps against what was usual when `state` was taken: that is part of what a model has learned.
    pub fn use_time_scale_of(&mut self, state: &MemoryState) {
        for (shift, parts) in self.shifts.iter_mut().zip(state.shifts.values().chunks_exact(6)) {
            *shift = Shift::of_parts(parts);
        }
    }

    /// Goes on from `state`, taken after `consumed`. Nodes that came since are empty.
    pub fn restore(&mut self, state: &MemoryState, consumed: &[EventId]) -> Result<()> {
        let refuse = |what: &str| Err(Error::Progress { detail: format!("its {what} are those of other data") });
        let n_known = state.values.rows();
        let widths = [state.values.cols(), state.messages.cols(), state.events.cols()];
        let is_whole = [state.messages.rows(), state.events.rows()] == [n_known; 2];
        if n_known == 0
            || n_known > self.waiting.len()
            || !is_whole
            || widths != [self.form.width, self.form.message, 4]
        {
            return refuse("memories");
        }
        self.reset()?;
        self.use_time_scale_of(state);
        for (bank, from) in [(&self.values, &state.values), (&self.messages, &state.messages)] {
            let mut values = vec![0.0; bank.rows() * bank.cols()];
            // The last row is nobody's.
            let n = (n_known - 1) * bank.cols();
            values[..n].copy_from_slice(&from.values()[..n]);
            bank.replace(&values)?;
        }
        for (node, numbers) in state.events.values().chunks_exact(4).take(n_known - 1).enumerate() {
            let &[waiting_high, waiting_low, applied_high, applied_low] = numbers else { continue };
            self.waiting[node] = event([waiting_high, waiting_low]);
            self.applied[node] = event([applied_high, applied_low]);
            let known = [self.waiting[node], self.applied[node]].into_iter().flatten();
            if known.into_iter().any(|event| event.index() >= self.stream.len()) {
                return refuse("messages");
            }
        }
        if let (Some(_), Some(positions)) = (&self.positions, &state.positions) {
            self.positions = Some(positions.clone());
        } else if let Some(positions) = &mut self.positions {
            for &id in consumed {
                let event = self.stream.event(id);
                positions.advance(event.src, event.dst);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_survives() {
        let shift = Shift { mean: 86_400.123_456_789, deviation: 1.0e9 / 3.0 };
        assert_eq!(Shift::of_parts(&shift.parts()), shift);
    }

    #[test]
    fn numbers_of_events_survive() {
        for id in [None, Some(0), Some(65_534), Some(65_535), Some(65_536), Some(u32::MAX - 1)] {
            assert_eq!(event(digits(id.map(EventId))), id.map(EventId));
        }
    }
}
