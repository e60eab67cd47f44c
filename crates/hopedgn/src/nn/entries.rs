//! What a model over hops knows of the entries of a hop before any layer of its own.

use hopedgn_tensor::{Indices, Tape, Var};

use super::{MiteEmbedding, zeros};
use crate::collate::{Entries, Hop, HopInput};
use crate::{Error, Result};

/// The tables of a batch, each brought to the tape once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HopFeatures<'a> {
    input: &'a HopInput,
    /// `[N + 1, Dn]`
    nodes: Option<Var>,
    /// `[E + 1, De]`
    edges: Option<Var>,
    /// `[R + 1, Dm]`
    mite: Option<Var>,
}

impl<'a> HopFeatures<'a> {
    pub(crate) fn new(tape: &mut Tape<'_>, input: &'a HopInput, mite: Option<MiteEmbedding>) -> Result<Self> {
        Ok(Self {
            input,
            nodes: input.nodes.as_ref().map(|table| tape.table(table)),
            edges: input.edges.as_ref().map(|table| tape.table(table)),
            mite: mite.map(|mite| mite.forward(tape, input.mite.as_ref())).transpose()?,
        })
    }

    /// Node features, `[entries, Dn]`; nothing where the data set has none.
    pub(crate) fn nodes(&self, tape: &mut Tape<'_>, entries: &Entries) -> Result<Option<Var>> {
        gather(tape, self.nodes, entries.nodes.as_ref())
    }

    /// Node features with zeros behind them, `[entries, width]`; nothing where the data set has none.
    pub(crate) fn wide_nodes(&self, tape: &mut Tape<'_>, entries: &Entries, width: usize) -> Result<Option<Var>> {
        let Some(nodes) = self.nodes(tape, entries)? else { return Ok(None) };
        let missing = width.checked_sub(tape.shape(nodes).cols()).ok_or(Error::MissingInput)?;
        if missing == 0 {
            return Ok(Some(nodes));
        }
        let filler = zeros(tape, entries.len, missing)?;
        Ok(Some(tape.concat(&[nodes, filler])?))
    }

    /// Edge features of a hop, `[entries, De]`; nothing where the data set has none.
    pub(crate) fn edges(&self, tape: &mut Tape<'_>, hop: &Hop) -> Result<Option<Var>> {
        gather(tape, self.edges, hop.entries.edges.as_ref())
    }

    /// When each entry met source and destination, `[entries, Dm]`; nothing where the model has no MITE.
    pub(crate) fn mite(&self, tape: &mut Tape<'_>, entries: &Entries) -> Result<Option<Var>> {
        gather(tape, self.mite, entries.rows.as_ref())
    }

    /// The same of all nodes of the pairs, `[R + 1, Dm]`: what [`Entries::rows`] are rows of.
    pub(crate) fn mite_of_all(&self) -> Option<Var> {
        self.mite
    }

    pub(crate) fn input(&self) -> &'a HopInput {
        self.input
    }
}

fn gather(tape: &mut Tape<'_>, table: Option<Var>, rows: Option<&Indices>) -> Result<Option<Var>> {
    let Some(table) = table else { return Ok(None) };
    let rows = rows.ok_or(Error::MissingInput)?;
    Ok(Some(tape.gather(table, rows)?))
}
