use super::*;
use crate::testkit::{Case, check_gradients, matrix};

const ALL: [(&str, Activation); 5] = [
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
    ("sigmoid", Activation::Sigmoid),
    ("tanh", Activation::Tanh),
    ("cos", Activation::Cos),
];

#[test]
fn gradients_match_finite_differences() {
    for (_, function) in ALL {
        // An odd number of values and more rows than a chunk; none within a step of 0, where ReLU has a kink.
        let mut x = matrix(5, 67, 3);
        x.values_mut().iter_mut().for_each(|x| *x += 0.05 * x.signum());
        check_gradients(&[x], |tape, x| Ok(tape.activate(x[0], function)));
    }
}

#[test]
fn cosine_of_huge_values_matches_the_standard_library() {
    let mut values = [1e12_f32, 3.0, -4e30, f32::INFINITY];
    let mut slopes = [0.0; 4];
    Activation::Cos.apply(&mut values, &mut slopes);
    assert_eq!((values[0], values[2]), (1e12_f32.cos(), (-4e30_f32).cos()));
    assert_eq!(slopes[0], -1e12_f32.sin());
    assert!((values[1] - 3.0_f32.cos()).abs() < 1e-7 && values[3].is_nan());
}

#[test]
fn values_and_gradients_match_pytorch() {
    for (name, function) in ALL {
        Case::load(name).check(&["x"], |tape, x| Ok(tape.activate(x[0], function)));
    }
}
