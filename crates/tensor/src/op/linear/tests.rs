use super::*;
use crate::Parameters;
use crate::testkit::{Case, check_gradients, matrix, vector};

#[test]
fn gradients_match_finite_differences() {
    for activation in [None, Some(Activation::Gelu)] {
        let inputs = [matrix(1, 5, 4), matrix(2, 3, 4), vector(3, 3)];
        check_gradients(&inputs, |tape, x| tape.linear(x[0], x[1], Some(x[2]), activation));
    }
    // More rows and more outputs than a chunk.
    check_gradients(&[matrix(1, 70, 2), matrix(2, 66, 2)], |tape, x| tape.linear(x[0], x[1], None, None));
}

#[test]
fn values_and_gradients_match_pytorch() {
    let names = ["x", "weight", "bias"];
    Case::load("linear").check(&names, |tape, x| tape.linear(x[0], x[1], Some(x[2]), None));
    Case::load("linear_gelu").check(&names, |tape, x| tape.linear(x[0], x[1], Some(x[2]), Some(Activation::Gelu)));
    Case::load("linear_plain").check(&names[..2], |tape, x| tape.linear(x[0], x[1], None, None));
}

#[test]
fn matmul_matches_finite_differences_and_pytorch() {
    check_gradients(&[matrix(1, 5, 4), matrix(2, 4, 3)], |tape, x| tape.matmul(x[0], x[1]));
    check_gradients(&[matrix(1, 70, 2), matrix(2, 2, 66)], |tape, x| tape.matmul(x[0], x[1]));
    for (m, k, n) in [(0, 4, 3), (1, 1, 1), (3, 0, 2), (2, 3, 0)] {
        check_gradients(&[matrix(1, m, k), matrix(2, k, n)], |tape, x| tape.matmul(x[0], x[1]));
    }
    // The same variable for both operands.
    check_gradients(&[matrix(1, 4, 4)], |tape, x| tape.matmul(x[0], x[0]));
    Case::load("matmul").check(&["x", "weight"], |tape, x| tape.matmul(x[0], x[1]));
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let (x, weight) = (tape.input(matrix(1, 5, 4)), tape.input(matrix(2, 3, 4)));
    let error = tape.matmul(x, weight).unwrap_err();
    assert_eq!(error.to_string(), "matmul: the weight has shape [3, 4], but [4, N] is needed");
}

#[test]
fn an_empty_input_gives_an_empty_output() {
    check_gradients(&[matrix(1, 0, 4), matrix(2, 3, 4)], |tape, x| tape.linear(x[0], x[1], None, None));
}

#[test]
fn bad_shapes_are_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let (x, weight) = (tape.input(matrix(1, 5, 4)), tape.input(matrix(2, 3, 6)));
    let error = tape.linear(x, weight, None, None).unwrap_err();
    assert_eq!(error.to_string(), "linear: the weight has shape [3, 6], but [N, 4] is needed");
    let weight = tape.input(matrix(2, 3, 4));
    let bias = tape.input(vector(1, 4));
    let error = tape.linear(x, weight, Some(bias), None).unwrap_err();
    assert_eq!(error.to_string(), "linear: the bias has shape [4], but [3] is needed");
}
