use super::*;
use crate::Parameters;
use crate::testkit::{Case, check_gradients, matrix};

#[test]
fn gradients_match_finite_differences() {
    for lengths in [&[2, 0, 3, 1][..], &[0], &[], &[6], &[1; 70]] {
        let batch = Ragged::from_lengths(lengths.iter().copied());
        let weights = Arc::new(matrix(2, batch.total(), 1));
        let inputs = [matrix(1, batch.total(), 3)];
        check_gradients(&inputs, |tape, x| tape.segment_mean(x[0], &batch));
        check_gradients(&inputs, |tape, x| tape.segment_sum(x[0], None, &batch));
        check_gradients(&inputs, |tape, x| tape.segment_sum(x[0], Some(&weights), &batch));
        check_gradients(&[matrix(1, batch.total(), 0)], |tape, x| tape.segment_sum(x[0], None, &batch));
    }
}

#[test]
fn values_and_gradients_match_pytorch() {
    let batch = Ragged::from_lengths([2, 1, 3]);
    Case::load("segment_mean").check(&["x"], |tape, x| tape.segment_mean(x[0], &batch));
    let batch = Ragged::from_lengths([2, 0, 1, 3]);
    let weights = Arc::new(Tensor::matrix(6, 1, vec![0.5, -1.0, 2.0, 0.25, 0.0, 3.0]).unwrap());
    Case::load("segment_sum").check(&["x"], |tape, x| tape.segment_sum(x[0], Some(&weights), &batch));
}

#[test]
fn an_empty_sequence_has_sum_and_mean_zero() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(Tensor::matrix(2, 1, vec![1.0, 3.0]).unwrap());
    let batch = Ragged::from_lengths([0, 2]);
    let mean = tape.segment_mean(x, &batch).unwrap();
    assert_eq!(tape.value(mean).values(), [0.0, 2.0]);
    let sum = tape.segment_sum(x, None, &batch).unwrap();
    assert_eq!(tape.value(sum).values(), [0.0, 4.0]);
    let weights = Arc::new(matrix(1, 3, 1));
    let error = tape.segment_sum(x, Some(&weights), &batch).unwrap_err();
    assert_eq!(error.to_string(), "segment sum: the list of weights has shape [3, 1], but [2, 1] is needed");
}
