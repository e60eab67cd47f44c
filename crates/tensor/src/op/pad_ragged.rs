//! Lists of any lengths as rows of one width.

use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::add_to;
use crate::{Error, Ragged, Result, Shape, Tape, Tensor, Var};

/// How lists become rows: see [`Tape::slots`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PadRagged {
    /// Lists that stand side by side in a row.
    pub lists: usize,
    /// Places of each list.
    pub places: usize,
    /// What stands in a place without a value.
    pub filler: f32,
    /// Whether the row says of each of its places, behind all of them, that there is a value (1) or not (0).
    pub with_flags: bool,
}

impl PadRagged {
    /// The places of a row.
    #[must_use]
    pub fn per_row(self) -> usize {
        self.lists * self.places
    }

    /// The columns of a row.
    #[must_use]
    pub fn width(self) -> usize {
        self.per_row() * if self.with_flags { 2 } else { 1 }
    }

    /// Where the values of list `index` begin among the values of all rows.
    fn begin(self, index: usize) -> usize {
        index / self.lists * self.width() + index % self.lists * self.places
    }
}

impl Tape<'_> {
    /// `lists` of the values `x` `[N, 1]`, each in places of its own, as rows `[L / slots.lists, slots.width()]`.
    ///
    /// So the few values that there are travel to a card, and not the many places.
    pub fn pad_ragged(&mut self, x: Var, lists: &Ragged, slots: PadRagged) -> Result<Var> {
        let n = lists.total();
        if self.shape(x) != Shape::Matrix(n, 1) {
            return Err(self.misfit("slots", "x", x, format_args!("[{n}, 1]")));
        }
        if slots.lists == 0 || !lists.len().is_multiple_of(slots.lists) || lists.longest() > slots.places {
            let got = Shape::Matrix(lists.len(), lists.longest());
            let needed = format!("[R · {}, at most {}]", slots.lists, slots.places);
            return Err(Error::Shape { operation: "slots", what: "the table of lists", got, needed });
        }
        let shape = Shape::Matrix(lists.len() / slots.lists, slots.width());
        if let Some(record) = self.record() {
            return record.pad_ragged(x.0, lists, slots, shape).map(Var);
        }
        let from = self.value(x).values();
        let mut values = scratch::take_zeros(shape.len());
        self.threads().rows(&mut values, slots.width(), |first, rows| {
            for (row, to) in (first..).zip(rows.chunks_exact_mut(slots.width())) {
                let (places, flags) = to.split_at_mut(slots.per_row());
                if slots.filler != 0.0 {
                    places.fill(slots.filler);
                }
                for list in 0..slots.lists {
                    let (values, begin) = (&from[lists.range(row * slots.lists + list)], list * slots.places);
                    places[begin..begin + values.len()].copy_from_slice(values);
                    if slots.with_flags {
                        flags[begin..begin + values.len()].fill(1.0);
                    }
                }
            }
        });
        let lists = lists.clone();
        let backward = move |grad: Scratch, _: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(x, |sum| {
                for (index, list) in lists.ranges().enumerate() {
                    let begin = slots.begin(index);
                    add_to(&mut sum[list.clone()], &grad[begin..begin + list.len()]);
                }
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{check_gradients, matrix};

    const SLOTS: PadRagged = PadRagged { lists: 2, places: 3, filler: -2.0, with_flags: true };

    #[test]
    fn values_stand_in_their_places_and_flags_behind_them() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(Tensor::matrix(6, 1, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap());
        let lists = Ragged::from_lengths([2, 0, 1, 3]);
        let rows = tape.pad_ragged(x, &lists, SLOTS).unwrap();
        let expected = [
            [1.0, 2.0, -2.0, -2.0, -2.0, -2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            [3.0, -2.0, -2.0, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
        ];
        assert_eq!(tape.value(rows).values(), expected.concat());
        let bare = tape.pad_ragged(x, &lists, PadRagged { filler: 0.0, with_flags: false, ..SLOTS }).unwrap();
        let expected = [[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 4.0, 5.0, 6.0]];
        assert_eq!(tape.value(bare).values(), expected.concat());
    }

    #[test]
    fn gradients_match_differences() {
        for lengths in [vec![], vec![0, 0], vec![2, 0, 1, 3], (0..140).map(|i| i % 4).collect()] {
            let lists = Ragged::from_lengths(lengths);
            for with_flags in [false, true] {
                let slots = PadRagged { with_flags, ..SLOTS };
                check_gradients(&[matrix(1, lists.total(), 1)], |tape, x| tape.pad_ragged(x[0], &lists, slots));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(matrix(1, 4, 1));
        let mut refused = |lengths: &[usize], slots: PadRagged| {
            tape.pad_ragged(x, &Ragged::from_lengths(lengths.iter().copied()), slots).unwrap_err().to_string()
        };
        assert_eq!(refused(&[2, 3], SLOTS), "slots: x has shape [4, 1], but [5, 1] is needed");
        let too_long = "slots: the table of lists has shape [2, 4], but [R · 2, at most 3] is needed";
        assert_eq!(refused(&[4, 0], SLOTS), too_long);
        assert!(refused(&[2, 1, 1], SLOTS).contains("shape [3, 2]"));
        assert!(refused(&[2, 2], PadRagged { lists: 0, ..SLOTS }).contains("[R · 0, "));
    }
}
