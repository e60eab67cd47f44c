use super::*;
use crate::testkit::{Case, check_gradients, matrix};

#[test]
fn gradients_match_finite_differences() {
    check_gradients(&[matrix(1, 70, 9)], |tape, x| Ok(tape.softmax(x[0])));
}

#[test]
fn values_and_gradients_match_pytorch() {
    Case::load("softmax").check(&["x"], |tape, x| Ok(tape.softmax(x[0])));
}

#[test]
fn large_values_do_not_overflow() {
    let mut row = [1e30, 0.0, 1e30];
    cpu::softmax_rows(&mut row, 3);
    assert!((row[0] - 0.5).abs() < 1e-6 && row[1] < 1e-30);
}
