use super::*;
use crate::Parameters;
use crate::testkit::{Case, check_gradients, matrix};

#[test]
fn gradients_match_finite_differences() {
    let inputs = [matrix(1, 4, 3), matrix(2, 4, 3)];
    check_gradients(&inputs, |tape, x| tape.add(x[0], x[1]));
    check_gradients(&inputs, |tape, x| tape.mul(x[0], x[1]));
}

#[test]
fn values_and_gradients_match_pytorch() {
    Case::load("add").check(&["a", "b"], |tape, x| tape.add(x[0], x[1]));
    Case::load("mul").check(&["a", "b"], |tape, x| tape.mul(x[0], x[1]));
}

#[test]
fn unequal_shapes_are_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let (a, b) = (tape.input(matrix(1, 4, 3)), tape.input(matrix(1, 3, 4)));
    let error = tape.add(a, b).unwrap_err();
    assert_eq!(error.to_string(), "add: the second operand has shape [3, 4], but [4, 3] is needed");
}
