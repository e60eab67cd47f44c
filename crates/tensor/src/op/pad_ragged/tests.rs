use super::*;
use crate::testkit::{check_gradients, matrix};
use crate::{Parameters, Tensor};

const FORM: PadRagged = PadRagged { lists_per_row: 2, max_len: 3, fill_value: -2.0, with_mask: true };

#[test]
fn values_are_padded_and_masks_follow() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(Tensor::matrix(6, 1, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap());
    let lists = Ragged::from_lengths([2, 0, 1, 3]);
    let rows = tape.pad_ragged(x, &lists, FORM).unwrap();
    let expected = [
        [1.0, 2.0, -2.0, -2.0, -2.0, -2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [3.0, -2.0, -2.0, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ];
    assert_eq!(tape.value(rows).values(), expected.concat());
    let bare = tape.pad_ragged(x, &lists, PadRagged { fill_value: 0.0, with_mask: false, ..FORM }).unwrap();
    let expected = [[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 4.0, 5.0, 6.0]];
    assert_eq!(tape.value(bare).values(), expected.concat());
}

#[test]
fn gradients_match_finite_differences() {
    for lengths in [vec![], vec![0, 0], vec![2, 0, 1, 3], (0..140).map(|i| i % 4).collect()] {
        let lists = Ragged::from_lengths(lengths);
        for with_mask in [false, true] {
            let form = PadRagged { with_mask, ..FORM };
            check_gradients(&[matrix(1, lists.total(), 1)], |tape, x| tape.pad_ragged(x[0], &lists, form));
        }
    }
}

#[test]
fn bad_shapes_are_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(matrix(1, 4, 1));
    let mut refused = |lengths: &[usize], form: PadRagged| {
        tape.pad_ragged(x, &Ragged::from_lengths(lengths.iter().copied()), form).unwrap_err().to_string()
    };
    assert_eq!(refused(&[2, 3], FORM), "pad ragged: x has shape [4, 1], but [5, 1] is needed");
    let too_long = "pad ragged: the table of lists has shape [2, 4], but [R · 2, at most 3] is needed";
    assert_eq!(refused(&[4, 0], FORM), too_long);
    assert!(refused(&[2, 1, 1], FORM).contains("shape [3, 2]"));
    assert!(refused(&[2, 2], PadRagged { lists_per_row: 0, ..FORM }).contains("[R · 0, "));
}
