//! Features of the entries of a hop: node, edge and MITE.

use hopedgn_tensor::{Indices, Tape, Var};

use super::{MiteEmbedding, zeros};
use crate::collate::{Entries, Hop, HopInput};
use crate::{Error, Result};

/// The feature tables of a batch on the tape, from which entries gather their rows.
///
/// ```
/// # use hopedgn::{collate::{Entries, Hop, HopInput}, nn::HopFeatures, tensor::{Parameters, Ragged, Tape, Tensor}};
/// # let (edges, mite, hitting_rates, node_means, memory, second) = (None, None, None, None, None, None);
/// # let entries = |nodes: Vec<u32>| Entries { len: nodes.len(), nodes: Some(nodes.into()), edges: None, rows: None };
/// # let (groups, ages) = (Ragged::from_lengths([1, 0]), Tensor::matrix(1, 1, vec![9.0])?.into());
/// # let first = Hop { entries: entries(vec![1]), groups, ages, empty: None };
/// let (roots, nodes) = (entries(vec![1, 0]), Some(Tensor::matrix(3, 1, vec![0.5, 0.7, 0.0])?.into()));
/// # let of_pairs = None;
/// let input = HopInput { roots, of_pairs, first, second, nodes, edges, mite, hitting_rates, node_means, memory };
/// # let parameters = Parameters::default();
/// let mut tape = Tape::new(&parameters);
/// let features = HopFeatures::new(&mut tape, &input, None)?;
/// let of_roots = features.nodes(&mut tape, &input.roots)?.expect("there are node features");
/// assert_eq!(tape.read(of_roots)?, [0.7, 0.5]);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HopFeatures<'a> {
    input: &'a HopInput,
    /// `[N + 1, Dn]`
    nodes: Option<Var>,
    /// `[E + 1, De]`
    edges: Option<Var>,
    /// `[R + 1, Dm]`
    mite: Option<Var>,
}

impl<'a> HopFeatures<'a> {
    /// The tables of `input`, with MITE embedded where the model reads it.
    pub fn new(tape: &mut Tape<'_>, input: &'a HopInput, mite: Option<MiteEmbedding>) -> Result<Self> {
        Ok(Self {
            input,
            nodes: input.nodes.as_ref().map(|table| tape.cached_input(table)),
            edges: input.edges.as_ref().map(|table| tape.cached_input(table)),
            mite: mite.map(|mite| mite.forward(tape, input.mite.as_ref())).transpose()?,
        })
    }

    /// Node features, `[entries, Dn]`; nothing where the dataset has none.
    pub fn nodes(&self, tape: &mut Tape<'_>, entries: &Entries) -> Result<Option<Var>> {
        gather(tape, self.nodes, entries.nodes.as_ref())
    }

    /// Node features followed by zeros, `[entries, width]`; nothing where the dataset has none.
    pub fn nodes_padded_to(&self, tape: &mut Tape<'_>, entries: &Entries, width: usize) -> Result<Option<Var>> {
        let Some(nodes) = self.nodes(tape, entries)? else { return Ok(None) };
        let missing = width.checked_sub(tape.shape(nodes).cols()).ok_or(Error::MissingInput)?;
        if missing == 0 {
            return Ok(Some(nodes));
        }
        let padding = zeros(tape, entries.len, missing)?;
        Ok(Some(tape.concat(&[nodes, padding])?))
    }

    /// Edge features of a hop, `[entries, De]`; nothing where the dataset has none.
    pub fn edges(&self, tape: &mut Tape<'_>, hop: &Hop) -> Result<Option<Var>> {
        gather(tape, self.edges, hop.entries.edges.as_ref())
    }

    /// MITE embeddings, `[entries, Dm]`; nothing where the model does not read MITE.
    pub fn mite(&self, tape: &mut Tape<'_>, entries: &Entries) -> Result<Option<Var>> {
        gather(tape, self.mite, entries.rows.as_ref())
    }

    /// MITE embeddings of all `R + 1` rows, `[R + 1, Dm]`: what [`Entries::rows`] are rows of.
    #[must_use]
    pub fn mite_table(&self) -> Option<Var> {
        self.mite
    }

    /// The batch.
    #[must_use]
    pub fn input(&self) -> &'a HopInput {
        self.input
    }
}

fn gather(tape: &mut Tape<'_>, table: Option<Var>, rows: Option<&Indices>) -> Result<Option<Var>> {
    let Some(table) = table else { return Ok(None) };
    let rows = rows.ok_or(Error::MissingInput)?;
    Ok(Some(tape.gather(table, rows)?))
}
