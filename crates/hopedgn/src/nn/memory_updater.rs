//! How memory models read what is kept of nodes, and what they leave there.
//!
//! Shapes: `W` nodes with waiting messages and `Q` without, `M` nodes of the events that are remembered, `d` width of a value.

use std::sync::Arc;

use hopedgn_tensor::{Activation, Indices, Tape, Var};

use super::{Linear, ParamBuilder, TimeEncoding};
use crate::collate::{FeatureWidths, HopInput};
use crate::config::ModelConfig;
use crate::memory::{MemoryForm, MemoryRead};
use crate::{Error, Result};

/// What takes a message into a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Gated recurrent unit.
    Gru,
    /// tanh of what message and value make.
    Tanh,
}

/// The cell and the form of its messages: a node's own value, something of its partner, how long the value had rested, and
/// the features of the event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryUpdater {
    cell: Cell,
    input: Linear,
    hidden: Linear,
    time: TimeEncoding,
    form: MemoryForm,
}

impl ParamBuilder<'_> {
    /// A memory whose messages know time by `time`.
    pub(crate) fn remember(
        &mut self,
        config: &ModelConfig,
        widths: FeatureWidths,
        cell: Cell,
        time: TimeEncoding,
    ) -> Result<MemoryUpdater> {
        let d = config.d_out;
        let message = 2 * d + config.d_time + widths.edge.unwrap_or(0);
        let n_gates = match cell {
            Cell::Gru => 3,
            Cell::Tanh => 1,
        };
        // Cells are drawn by the width of what they keep.
        Ok(MemoryUpdater {
            cell,
            input: self.linear_as("memory.input", message, d, n_gates * d)?,
            hidden: self.linear_as("memory.hidden", d, d, n_gates * d)?,
            time,
            form: MemoryForm { width: d, message, with_positions: false },
        })
    }
}

impl MemoryUpdater {
    /// The same, with walks between nodes counted as well.
    pub(crate) fn with_positions(self) -> Self {
        Self { form: MemoryForm { with_positions: true, ..self.form }, ..self }
    }

    pub(crate) fn form(self) -> MemoryForm {
        self.form
    }

    /// The value of each node with its message taken in, `[W + Q, d]`, and those of the roots, `[2B, d]`.
    pub(crate) fn recall<'i>(self, tape: &mut Tape<'_>, input: &'i HopInput) -> Result<(&'i MemoryRead, Var, Var)> {
        let recalled = input.recalled.as_ref().ok_or(Error::MissingInput)?;
        let MemoryRead { values, messages, waiting, quiet, .. } = recalled;
        let mut parts = Vec::with_capacity(2);
        if !waiting.is_empty() {
            let value = tape.recall(values, waiting)?; // [W, d]
            let message = tape.recall(messages, waiting)?; // [W, message]
            let input = self.input.forward(tape, message, None)?;
            let hidden = self.hidden.forward(tape, value, None)?;
            parts.push(match self.cell {
                Cell::Gru => tape.gru(input, hidden, value)?,
                Cell::Tanh => {
                    let sum = tape.add(input, hidden)?;
                    tape.activate(sum, Activation::Tanh)
                }
            });
        }
        if !quiet.is_empty() || parts.is_empty() {
            parts.push(tape.recall(values, quiet)?);
        }
        let nodes = tape.stack(&parts)?;
        Ok((recalled, nodes, tape.gather(nodes, &recalled.roots)?))
    }

    /// Leaves behind what the events of the batch are remembered by, if they are to be. `nodes` are the values of all
    /// nodes, `partners` what each root is to those it met, `[2B, d]`.
    pub(crate) fn remember(self, tape: &mut Tape<'_>, input: &HopInput, nodes: Var, partners: Var) -> Result<()> {
        let Some(recalled) = &input.recalled else { return Ok(()) };
        let Some(consumed) = &recalled.consumed else { return Ok(()) };
        if !consumed.taken.is_empty() {
            let taken = tape.gather(nodes, &consumed.taken)?;
            tape.keep(&recalled.values, &consumed.taken_nodes, taken)?;
        }
        let own: Indices = consumed.own.iter().map(|&root| recalled.roots[root as usize]).collect();
        let own = tape.gather(nodes, own)?; // [M, d]
        let partner = tape.gather(partners, &consumed.partner)?; // [M, d]
        let rested = tape.input(Arc::clone(&consumed.rested));
        let mut message = vec![own, partner, self.time.forward(tape, rested)?];
        if let Some(table) = &input.edges {
            let table = tape.table(table);
            message.push(tape.gather(table, &consumed.events)?);
        }
        let message = tape.concat(&message)?; // [M, message]
        Ok(tape.keep(&recalled.messages, &consumed.nodes, message)?)
    }
}
