//! Linear layers over concatenated inputs, some of which many rows share.
//!
//! With the input `[x ‖ y]` and a weight `[Wx ‖ Wy]` split the same way, `W [x ‖ y] = Wx x + Wy y`. Where rows share `y`, `Wy y`
//! is computed once for each distinct `y` and gathered.

use hopedgn_tensor::{Indices, Tape, Var};

use super::Linear;
use crate::{Error, Result};

/// Some columns of the input of a linear layer.
///
/// ```
/// # use hopedgn::{nn::{InputColumns, ParamBuilder}, tensor::{Parameters, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let linear = ParamBuilder::new(&mut parameters, 0).linear("out", 3, 1)?;
/// let mut tape = Tape::new(&parameters);
/// let (x, y) = (Tensor::matrix(2, 1, vec![1.0, 2.0])?, Tensor::matrix(1, 2, vec![3.0, 4.0])?);
/// let (x, y, bias) = (tape.input(x), tape.input(y), linear.bias(&mut tape));
/// let rows = vec![0, 0].into(); // both rows share `y`
/// let columns = [InputColumns::own(0, x), InputColumns::shared(1, y, &rows)];
/// let out = linear.forward_columns(&mut tape, bias, &columns)?; // [2, 1]
/// assert_eq!(tape.read(out)?.len(), 2);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct InputColumns<'a> {
    /// The first of them.
    pub first: usize,
    /// Their values, `[distinct rows, columns]`.
    pub values: Var,
    /// The distinct row of each input row; without it, row `i` is input row `i`.
    pub rows: Option<&'a Indices>,
}

impl<'a> InputColumns<'a> {
    /// Columns with a value for every row.
    #[must_use]
    pub fn own(first: usize, values: Var) -> Self {
        Self { first, values, rows: None }
    }

    /// Columns in which input row `i` is row `rows[i]` of `values`.
    #[must_use]
    pub fn shared(first: usize, values: Var, rows: &'a Indices) -> Self {
        Self { first, values, rows: Some(rows) }
    }
}

impl Linear {
    /// [`Linear::forward`] of the concatenation of `columns`, with `bias` in place of its own. Columns that are not given
    /// are zero.
    pub fn forward_columns(self, tape: &mut Tape<'_>, bias: Var, columns: &[InputColumns<'_>]) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        let mut sum = None;
        for &InputColumns { first, values, rows } in columns {
            let weight = tape.columns(weight, first, tape.shape(values).cols())?;
            let bias = if sum.is_none() { Some(bias) } else { None };
            let mut product = tape.linear(values, weight, bias, None)?;
            if let Some(rows) = rows {
                product = tape.gather(product, rows)?;
            }
            sum = Some(match sum {
                Some(sum) => tape.add(sum, product)?,
                None => product,
            });
        }
        sum.ok_or(Error::MissingInput)
    }
}
