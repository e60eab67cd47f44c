use super::*;
use crate::testkit::{Case, check_gradients, matrix, vector};
use crate::{Parameters, Tensor};

const INDICES: [u32; 6] = [2, 0, 2, 3, 2, 0];

#[test]
fn gradients_match_finite_differences() {
    check_gradients(&[matrix(1, 5, 3)], |tape, x| tape.gather(x[0], INDICES));
    check_gradients(&[matrix(1, 6, 3)], |tape, x| tape.scatter(x[0], INDICES, 5));
    check_gradients(&[matrix(1, 6, 4)], |tape, x| tape.reshape(x[0], 3, 8));
    // More rows than are summed together.
    check_gradients(&[vector(1, 3)], |tape, x| tape.repeat_row(x[0], 70));
    check_gradients(&[vector(1, 3)], |tape, x| tape.repeat_row(x[0], 0));
}

#[test]
fn reshape_keeps_row_major_order() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(Tensor::matrix(2, 3, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap());
    let y = tape.reshape(x, 3, 2).unwrap();
    assert_eq!(tape.value(y).row(1), [2.0, 3.0]);
    let error = tape.reshape(x, 2, 2).unwrap_err();
    assert_eq!(error.to_string(), "reshape: x has shape [2, 3], but 4 values for [2, 2] is needed");
    let error = tape.repeat_row(x, 2).unwrap_err();
    assert_eq!(error.to_string(), "repeat: x has shape [2, 3], but [D] is needed");
}

#[test]
fn values_and_gradients_match_pytorch() {
    Case::load("gather").check(&["x"], |tape, x| tape.gather(x[0], INDICES));
    Case::load("scatter").check(&["x"], |tape, x| tape.scatter(x[0], INDICES, 5));
    Case::load("reshape").check(&["x"], |tape, x| tape.reshape(x[0], 3, 8));
    Case::load("repeat_row").check(&["x"], |tape, x| tape.repeat_row(x[0], 5));
}

#[test]
fn an_index_past_the_end_is_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(matrix(1, 3, 2));
    let error = tape.gather(x, [0, 3]).unwrap_err();
    assert_eq!(error.to_string(), "gather: index 3 at position 1 is past the last of 3 rows");
    assert!(tape.scatter(x, [0, 1, 2], 2).is_err());
}
