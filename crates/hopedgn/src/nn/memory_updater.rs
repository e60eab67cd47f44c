//! Memory of TGN, JODIE, DyRep and PINT: recurrent update of node states by messages.
//!
//! With `s_u` the state of node `u`, an event `(u, v)` at `t` with features `e`, and `t_u` the time of the last update of `u`:
//!
//! ```text
//! m_u = [s_u ‖ p_v ‖ cos(ω (t − t_u) + φ) ‖ e]      p_v: what v sends, its state or an embedding
//! s_u ← cell(m_u, s_u)                              GRU, or tanh of a linear layer
//! ```
//!
//! A message is stored with its node and applied when the node is next read, so that the cell is trained by the batch that
//! reads it.
//!
//! Shapes: `W` nodes with pending messages and `Q` without, `U = W + Q` distinct nodes of the batch; `M` nodes of the batch's
//! events; `d` width of a state.

use std::sync::Arc;

use ctdg::walk_counts::SelfLoops;
use hopedgn_tensor::{Activation, Indices, Tape, Var};

use super::{Linear, ParamBuilder, TimeEncoding};
use crate::collate::{FeatureWidths, HopInput};
use crate::memory::{MemoryForm, MemoryRead, MessageOrder};
use crate::{Error, Result};

/// The recurrent cell.
///
/// See [`MemoryUpdater`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryCell {
    /// Gated recurrent unit.
    Gru,
    /// `tanh(W m + U s + b)`, PyTorch's `nn.RNNCell`.
    Tanh,
}

/// Widths of a memory.
///
/// See [`MemoryUpdater`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryWidths {
    /// Of a state, `d`.
    pub state: usize,
    /// Of the time encoding in messages, `Dt`.
    pub time: usize,
    /// Of features; those of events are part of messages.
    pub features: FeatureWidths,
}

/// Reads and updates the memory of nodes.
///
/// ```
/// use hopedgn::{collate::FeatureWidths, memory::MessageOrder, tensor::Parameters};
/// use hopedgn::nn::{MemoryCell, MemoryWidths, ParamBuilder};
///
/// let mut parameters = Parameters::default();
/// let mut builder = ParamBuilder::new(&mut parameters, 0);
/// let time = builder.time_encoding("time", 3)?;
/// let widths = MemoryWidths { state: 4, time: 3, features: FeatureWidths { node: None, edge: Some(2) } };
/// let memory = builder.memory_updater(widths, MemoryCell::Gru, time, MessageOrder::Newest)?;
/// assert_eq!(memory.form().message, 4 + 4 + 3 + 2); // both states, time and edge features
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MemoryUpdater {
    cell: MemoryCell,
    input: Linear,
    hidden: Linear,
    time: TimeEncoding,
    form: MemoryForm,
}

/// States of the nodes of a batch, their pending messages applied.
///
/// Made by [`MemoryUpdater::read`].
#[derive(Debug, Clone, Copy)]
pub struct Memories<'i> {
    /// What was read.
    pub read: &'i MemoryRead,
    /// Of the distinct nodes, `[U, d]`.
    pub nodes: Var,
    /// Of both nodes of each pair, `[2B, d]`.
    pub sides: Var,
}

impl ParamBuilder<'_> {
    /// A memory whose messages encode time by `time`.
    pub fn memory_updater(
        &mut self,
        widths: MemoryWidths,
        cell: MemoryCell,
        time: TimeEncoding,
        message_order: MessageOrder,
    ) -> Result<MemoryUpdater> {
        let d = widths.state;
        let message = 2 * d + widths.time + widths.features.edge.unwrap_or(0);
        let n_gates = match cell {
            MemoryCell::Gru => 3,
            MemoryCell::Tanh => 1,
        };
        // As in PyTorch, both matrices of a cell are initialised by the width of its state.
        Ok(MemoryUpdater {
            cell,
            input: self.linear_with_fan_in("memory.input", message, d, n_gates * d)?,
            hidden: self.linear_with_fan_in("memory.hidden", d, d, n_gates * d)?,
            time,
            form: MemoryForm { width: d, message, message_order, positions: None },
        })
    }
}

impl MemoryUpdater {
    /// The same with walk counts: [`MemoryRead::positions`].
    #[must_use]
    pub fn with_positions(self, self_loops: SelfLoops) -> Self {
        Self { form: MemoryForm { positions: Some(self_loops), ..self.form }, ..self }
    }

    /// Widths of memory and message, for [`Model::memory`](crate::model::Model::memory).
    #[must_use]
    pub fn form(self) -> MemoryForm {
        self.form
    }

    /// The states of all nodes of the batch.
    pub fn read<'i>(self, tape: &mut Tape<'_>, input: &'i HopInput) -> Result<Memories<'i>> {
        let read = input.memory.as_ref().ok_or(Error::MissingInput)?;
        let MemoryRead { values, messages, pending, idle, .. } = read;
        let mut parts = Vec::with_capacity(2);
        if !pending.is_empty() {
            let state = tape.read_state(values, pending)?; // [W, d]
            let message = tape.read_state(messages, pending)?; // [W, message]
            let input = self.input.forward(tape, message, None)?;
            let hidden = self.hidden.forward(tape, state, None)?;
            parts.push(match self.cell {
                MemoryCell::Gru => tape.gru(input, hidden, state)?, // [W, d]
                MemoryCell::Tanh => {
                    let sum = tape.add(input, hidden)?;
                    tape.activate(sum, Activation::Tanh)
                }
            });
        }
        if !idle.is_empty() || parts.is_empty() {
            parts.push(tape.read_state(values, idle)?); // [Q, d]
        }
        let nodes = tape.concat_rows(&parts)?; // [U, d]
        Ok(Memories { read, nodes, sides: tape.gather(nodes, &read.sides)? })
    }

    /// Reads the states of all nodes of the batch and updates them by its events; what each node of a pair sends is its state.
    pub fn advance<'i>(self, tape: &mut Tape<'_>, input: &'i HopInput) -> Result<Memories<'i>> {
        let memories = self.read(tape, input)?;
        self.update(tape, input, &memories, memories.sides)?;
        Ok(memories)
    }

    /// Stores the applied states and the new messages of the batch's events, if it has any. `senders` is what each node
    /// of a pair sends to the other one, `[2B, d]`.
    pub fn update(self, tape: &mut Tape<'_>, input: &HopInput, memories: &Memories<'_>, senders: Var) -> Result<()> {
        let Memories { read, nodes, .. } = *memories;
        let Some(update) = &read.update else { return Ok(()) };
        if !update.applied.is_empty() {
            let applied = tape.gather(nodes, &update.applied)?;
            tape.write_state(&read.values, &update.applied_nodes, applied)?;
        }
        let own: Indices = update.own.iter().map(|&side| read.sides[side as usize]).collect();
        let own = tape.gather(nodes, own)?; // [M, d]
        let partner = tape.gather(senders, &update.partner)?; // [M, d]
        let elapsed = tape.input(Arc::clone(&update.elapsed));
        let mut message = vec![own, partner, self.time.forward(tape, elapsed)?];
        if let Some(table) = &input.edges {
            let table = tape.cached_input(table);
            message.push(tape.gather(table, &update.events)?); // [M, De]
        }
        let message = tape.concat(&message)?; // [M, message]
        Ok(tape.write_state(&read.messages, &update.nodes, message)?)
    }
}
