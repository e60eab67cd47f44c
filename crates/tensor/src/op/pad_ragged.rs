//! Ragged lists as padded rows of one width.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Error, Ragged, Result, Shape, Tape, Var};
pub(crate) use cuda::KERNELS;

/// How [`Tape::pad_ragged`] lays lists out in rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PadRagged {
    /// Lists in a row.
    pub lists_per_row: usize,
    /// Values of each list after padding.
    pub max_len: usize,
    /// The padding value.
    pub fill_value: f32,
    /// Whether a row continues with a mask of its values: 1 for a value, 0 for padding.
    pub with_mask: bool,
}

impl PadRagged {
    /// Values and padding of a row, without the mask.
    #[must_use]
    pub fn values_per_row(self) -> usize {
        self.lists_per_row * self.max_len
    }

    /// Columns of a row.
    #[must_use]
    pub fn width(self) -> usize {
        self.values_per_row() * if self.with_mask { 2 } else { 1 }
    }

    /// The position, among the values of all rows, of the first value of list `index`.
    fn begin(self, index: usize) -> usize {
        index / self.lists_per_row * self.width() + index % self.lists_per_row * self.max_len
    }
}

impl Tape<'_> {
    /// The `lists` of the values `x` `[N, 1]`, each padded to [`PadRagged::max_len`], as rows
    /// `[L / lists_per_row, width]`.
    ///
    /// Padding on the device means that only the values are copied to a GPU.
    ///
    /// ```
    /// use hopedgn_tensor::{PadRagged, Parameters, Ragged, Tape, Tensor};
    ///
    /// let parameters = Parameters::default();
    /// let mut tape = Tape::new(&parameters);
    /// let x = tape.input(Tensor::matrix(3, 1, vec![1.0, 2.0, 3.0])?);
    /// let form = PadRagged { lists_per_row: 1, max_len: 2, fill_value: -1.0, with_mask: true };
    /// let rows = tape.pad_ragged(x, &Ragged::from_lengths([2, 1]), form)?; // `[2, 4]`
    /// assert_eq!(tape.read(rows)?, [1.0, 2.0, 1.0, 1.0, 3.0, -1.0, 1.0, 0.0]);
    /// # Ok::<(), hopedgn_tensor::Error>(())
    /// ```
    pub fn pad_ragged(&mut self, x: Var, lists: &Ragged, form: PadRagged) -> Result<Var> {
        let n = lists.total();
        if self.shape(x) != Shape::Matrix(n, 1) {
            return Err(self.shape_error("pad ragged", "x", x, format_args!("[{n}, 1]")));
        }
        let PadRagged { lists_per_row, max_len, .. } = form;
        if lists_per_row == 0 || !lists.len().is_multiple_of(lists_per_row) || lists.longest() > max_len {
            let got = Shape::Matrix(lists.len(), lists.longest());
            let needed = format!("[R · {lists_per_row}, at most {max_len}]");
            return Err(Error::Shape { operation: "pad ragged", what: "the table of lists", got, needed });
        }
        let shape = Shape::Matrix(lists.len() / lists_per_row, form.width());
        dispatch!(self.pad_ragged(x, lists, form, shape))
    }
}
