use crate::testkit::{Case, check_gradients, matrix, vector};

#[test]
fn gradients_match_finite_differences() {
    // Rows wide enough that none is nearly constant: 1/σ would be too nonlinear for finite differences.
    for (rows, cols) in [(4, 11), (70, 8)] {
        let inputs = [matrix(1, rows, cols), vector(2, cols), vector(3, cols)];
        check_gradients(&inputs, |tape, x| tape.layer_norm(x[0], x[1], x[2]));
    }
}

#[test]
fn values_and_gradients_match_pytorch() {
    Case::load("layer_norm").check(&["x", "scale", "shift"], |tape, x| tape.layer_norm(x[0], x[1], x[2]));
}
