//! Checkpoints of a memory: snapshot and restore.

use std::collections::BTreeMap;

use ctdg::event::{EventId, NodeId};
use ctdg::walk_counts::WalkCounts;
use hopedgn_tensor::{StateTable, Tensor};

use super::{Memory, Shift};
use crate::{Error, Result};

/// Events whose numbers a checkpoint holds, in two values of 24 and 16 bits.
pub(super) const MAX_EVENTS: u64 = (1 << 40) - 1;

/// A snapshot of a memory, independent of the device.
///
/// ```
/// use hopedgn::{Device, ctdg::event::{EventId, EventStream}, memory::{Memory, MemoryForm, MessageOrder}};
///
/// let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 4.0)])?;
/// let form = MemoryForm { width: 4, message: 8, message_order: MessageOrder::Newest, positions: None };
/// let mut memory = Memory::new(&Device::cpu(), form, &stream, &[EventId(0)])?;
/// let state = memory.snapshot()?;
/// assert!(memory.restore(&state, &[]).is_ok());
/// let other = MemoryForm { width: 5, ..form };
/// assert!(Memory::new(&Device::cpu(), other, &stream, &[])?.restore(&state, &[]).is_err());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemoryState {
    values: Tensor,
    messages: Tensor,
    /// `[N + 1, 4]`: for each node's pending and last applied message the number of its event, from 1, as two 16-bit digits,
    /// which `f32` holds exactly.
    events: Tensor,
    /// `[2, 6]`: mean and deviation of gaps in each role, each as a sum of three values.
    shifts: Tensor,
    /// Kept in memory only: after loading from a file they are recomputed from the events.
    positions: Option<WalkCounts>,
}

/// Tensor names in a checkpoint.
const NAMES: [&str; 4] = ["memory.values", "memory.messages", "memory.events", "memory.shifts"];

impl MemoryState {
    /// The tensors of a checkpoint.
    pub(crate) fn tensors(&self) -> [(&str, &Tensor); 4] {
        let tensors = [&self.values, &self.messages, &self.events, &self.shifts];
        std::array::from_fn(|index| (NAMES[index], tensors[index]))
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

    /// Number of nodes.
    pub(crate) fn n_nodes(&self) -> usize {
        self.values.rows().saturating_sub(1)
    }

    /// The memories of `nodes` alone, in their order.
    pub(crate) fn of_nodes(&self, nodes: &[NodeId]) -> Result<Self> {
        let table = |from: &Tensor| {
            let rows = from.values().chunks_exact(from.cols().max(1));
            let rows: Vec<&[f32]> = rows.collect();
            let mut values: Vec<f32> = nodes.iter().flat_map(|node| rows[node.index()]).copied().collect();
            values.resize((nodes.len() + 1) * from.cols(), 0.0);
            Tensor::matrix(nodes.len() + 1, from.cols(), values)
        };
        Ok(Self {
            values: table(&self.values)?,
            messages: table(&self.messages)?,
            events: table(&self.events)?,
            shifts: self.shifts.clone(),
            positions: None,
        })
    }

    /// The same memories in a stream of `n_nodes` nodes that begins with the same events, where node `i` has the number `nodes[i]`.
    pub(crate) fn renumbered(&self, nodes: &[NodeId], n_nodes: usize) -> Result<Self> {
        let table = |from: &Tensor| {
            let width = from.cols();
            let mut values = vec![0.0; (n_nodes + 1) * width];
            // The last row is for unknown nodes and stays zero.
            for (row, node) in from.values().chunks_exact(width.max(1)).zip(nodes) {
                values[node.index() * width..][..width].copy_from_slice(row);
            }
            Tensor::matrix(n_nodes + 1, width, values)
        };
        Ok(Self {
            values: table(&self.values)?,
            messages: table(&self.messages)?,
            events: table(&self.events)?,
            shifts: self.shifts.clone(),
            positions: None,
        })
    }
}

/// The number of an event as two parts that `f32` holds exactly: the low sixteen bits, and up to 24 above them.
#[expect(clippy::cast_precision_loss, reason = "no more than MAX_EVENTS, so 24 and sixteen bits")]
fn digits(event: Option<EventId>) -> [f32; 2] {
    let number = event.map_or(0, |event| event.index() + 1);
    [(number >> 16) as f32, (number & 0xFFFF) as f32]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers, of 24 and sixteen bits")]
fn event([high, low]: [f32; 2]) -> Option<EventId> {
    let number = ((high as u64) << 16) | (low as u64);
    number.checked_sub(1).map(EventId)
}

impl Memory {
    /// A snapshot of the whole memory.
    pub fn snapshot(&self) -> Result<MemoryState> {
        let table = |table: &StateTable| Tensor::matrix(table.rows(), table.cols(), table.values()?);
        let numbers = self.pending.iter().zip(&self.applied);
        let numbers: Vec<f32> =
            numbers.flat_map(|(&pending, &applied)| [digits(pending), digits(applied)]).flatten().collect();
        Ok(MemoryState {
            values: table(&self.values)?,
            messages: table(&self.messages)?,
            events: Tensor::matrix(self.pending.len(), 4, numbers)?,
            shifts: Tensor::matrix(2, 6, self.shifts.iter().flat_map(Shift::parts).collect())?,
            positions: self.positions.clone(),
        })
    }

    /// Standardises gaps as when `state` was taken: those statistics are part of a trained model.
    pub fn use_time_scale_of(&mut self, state: &MemoryState) {
        for (shift, parts) in self.shifts.iter_mut().zip(state.shifts.values().chunks_exact(6)) {
            *shift = Shift::of_parts(parts);
        }
    }

    /// Continues from `state`, taken after the events `consumed`. Nodes that are new since then are zero.
    ///
    /// [`MemoryState`] has an example.
    pub fn restore(&mut self, state: &MemoryState, consumed: &[EventId]) -> Result<()> {
        let refuse = |what: &str| Err(Error::Progress { detail: format!("its {what} are those of another dataset") });
        let n_rows = state.values.rows();
        let widths = [state.values.cols(), state.messages.cols(), state.events.cols()];
        let is_whole = [state.messages.rows(), state.events.rows()] == [n_rows; 2];
        if n_rows == 0 || n_rows > self.pending.len() || !is_whole || widths != [self.form.width, self.form.message, 4]
        {
            return refuse("memories");
        }
        self.reset()?;
        self.use_time_scale_of(state);
        for (table, from) in [(&self.values, &state.values), (&self.messages, &state.messages)] {
            let mut values = vec![0.0; table.rows() * table.cols()];
            // The last row is for unknown nodes and stays zero.
            let n = (n_rows - 1) * table.cols();
            values[..n].copy_from_slice(&from.values()[..n]);
            table.replace(&values)?;
        }
        for (node, numbers) in state.events.values().chunks_exact(4).take(n_rows - 1).enumerate() {
            let &[pending_high, pending_low, applied_high, applied_low] = numbers else { continue };
            self.pending[node] = event([pending_high, pending_low]);
            self.applied[node] = event([applied_high, applied_low]);
            let known = [self.pending[node], self.applied[node]].into_iter().flatten();
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
    fn gap_statistics_survive_a_checkpoint_exactly() {
        let shift = Shift { mean: 86_400.123_456_789, deviation: 1.0e9 / 3.0 };
        assert_eq!(Shift::of_parts(&shift.parts()), shift);
    }

    #[test]
    fn event_numbers_survive_a_checkpoint() {
        for id in [
            None,
            Some(0),
            Some(65_534),
            Some(65_535),
            Some(65_536),
            Some(u64::from(u32::MAX)),
            Some(1 << 32),
            Some(MAX_EVENTS - 1),
        ] {
            assert_eq!(event(digits(id.map(EventId))), id.map(EventId));
        }
    }
}
