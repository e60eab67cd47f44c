use super::*;
use crate::testkit::{Case, check_gradients, matrix};
use crate::{Parameters, Tensor};

#[test]
fn gradients_match_finite_differences() {
    let targets = [1.0, 0.0, 0.0, 1.0, 0.25];
    check_gradients(&[matrix(1, 5, 1)], |tape, x| tape.bce_with_logits(x[0], &targets, targets.len()));
}

#[test]
fn values_and_gradients_match_pytorch() {
    let targets = [1.0, 0.0, 0.0, 1.0, 0.25, 1.0];
    Case::load("bce_with_logits").check(&["x"], |tape, x| tape.bce_with_logits(x[0], &targets, targets.len()));
}

#[test]
fn losses_of_parts_add_up_to_the_mean() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let (values, targets) = ([0.5, -1.0, 2.0], [1.0, 0.0, 0.0]);
    let mut loss = |range: std::ops::Range<usize>| {
        let x = tape.input(Tensor::vector(values[range.clone()].to_vec()));
        let loss = tape.bce_with_logits(x, &targets[range], 3).unwrap();
        tape.value(loss).values()[0]
    };
    assert!((loss(0..1) + loss(1..3) - loss(0..3)).abs() < 1e-6);
}

#[test]
fn a_confident_wrong_logit_costs_its_magnitude() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(Tensor::vector(vec![200.0, -200.0]));
    let loss = tape.bce_with_logits(x, &[0.0, 1.0], 2).unwrap();
    assert_eq!(tape.value(loss).values(), [200.0]);
    assert!(tape.bce_with_logits(x, &[0.0], 1).is_err());
}

#[test]
fn gradients_of_weighted_terms_match_finite_differences() {
    let term = |target, offset, weight| BceTerm { target, offset, weight };
    let terms = [term(1.0, 0.5, 2.0), term(0.0, -1.0, 0.5), term(0.0, 0.0, 0.0), term(1.0, 3.0, 0.25)];
    check_gradients(&[matrix(1, 2, 2)], |tape, x| tape.weighted_bce_with_logits(x[0], &terms));
}

#[test]
fn equal_weights_without_offsets_are_the_mean() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let targets = [1.0, 0.0, 0.0, 1.0];
    let x = tape.input(matrix(3, 4, 1));
    let mean = tape.bce_with_logits(x, &targets, 4).unwrap();
    let terms = targets.map(|target| BceTerm { target, offset: 0.0, weight: 0.25 });
    let weighted = tape.weighted_bce_with_logits(x, &terms).unwrap();
    assert!((tape.value(mean).values()[0] - tape.value(weighted).values()[0]).abs() < 1e-6);
    assert!(tape.weighted_bce_with_logits(x, &terms[1..]).is_err());
}
