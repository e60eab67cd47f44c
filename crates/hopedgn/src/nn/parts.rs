//! Linear layers over parts that stand side by side, where many rows share a part.

use hopedgn_tensor::{Indices, Tape, Var};

use super::Linear;
use crate::{Error, Result};

/// Some columns of what a layer reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    /// The first of them.
    pub(crate) first: usize,
    /// Their values, `[distinct rows, columns]`.
    pub(crate) values: Var,
    /// The distinct row of each row; without it, they are the rows.
    pub(crate) places: Option<&'a Indices>,
}

impl<'a> Part<'a> {
    /// Columns that every row has of its own.
    pub(crate) fn own(first: usize, values: Var) -> Self {
        Self { first, values, places: None }
    }

    /// Columns that row `i` has in common with all of the same `places[i]`.
    pub(crate) fn shared(first: usize, values: Var, places: &'a Indices) -> Self {
        Self { first, values, places: Some(places) }
    }
}

impl Linear {
    /// What [`Linear::forward`] makes of `parts` side by side with `bias` in place of its own; columns without a part are
    /// zeros. What rows share is multiplied once.
    pub(crate) fn of_parts(self, tape: &mut Tape<'_>, bias: Var, parts: &[Part<'_>]) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        let mut sum = None;
        for &Part { first, values, places } in parts {
            let columns = tape.columns(weight, first, tape.shape(values).cols())?;
            let bias = if sum.is_none() { Some(bias) } else { None };
            let mut product = tape.linear(values, columns, bias, None)?;
            if let Some(places) = places {
                product = tape.gather(product, places)?;
            }
            sum = Some(match sum {
                Some(sum) => tape.add(sum, product)?,
                None => product,
            });
        }
        sum.ok_or(Error::MissingInput)
    }

    /// `[N]`
    pub(crate) fn bias(self, tape: &mut Tape<'_>) -> Var {
        tape.parameter(self.bias)
    }

    /// The product alone, without the bias.
    pub(crate) fn product(self, tape: &mut Tape<'_>, x: Var) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        Ok(tape.linear(x, weight, None, None)?)
    }
}
