use super::*;
use crate::Parameters;
use crate::testkit::{Case, check_gradients, matrix, vector};

#[test]
fn gradients_match_finite_differences() {
    let inputs = [matrix(1, 4, 3), matrix(2, 0, 3), vector(3, 3), matrix(4, 70, 3)];
    check_gradients(&inputs, |tape, x| tape.concat_rows(&[x[0], x[1], x[2], x[3]]));
    check_gradients(&inputs[..1], |tape, x| tape.concat_rows(&[x[0], x[0]]));
    let inputs = [matrix(1, 4, 3), matrix(2, 4, 1), matrix(3, 4, 0), matrix(4, 4, 2)];
    check_gradients(&inputs, |tape, x| tape.concat(&[x[0], x[1], x[2], x[3]]));
    for rows in [0, 1, 70] {
        for (first, count) in [(0, 5), (1, 3), (4, 1), (5, 0), (0, 0)] {
            check_gradients(&[matrix(1, rows, 5)], |tape, x| tape.columns(x[0], first, count));
        }
    }
    for (rows, cols, per_group) in [(6, 4, 3), (6, 4, 6), (6, 4, 1), (0, 4, 3), (4, 0, 2), (140, 2, 2)] {
        check_gradients(&[matrix(1, rows, cols)], |tape, x| tape.swap_axes(x[0], per_group));
    }
}

#[test]
fn values_and_gradients_match_pytorch() {
    Case::load("concat").check(&["a", "b", "c"], |tape, x| tape.concat(&[x[0], x[1], x[2]]));
    Case::load("stack").check(&["a", "b", "c"], |tape, x| tape.concat_rows(&[x[0], x[1], x[2]]));
    Case::load("columns").check(&["x"], |tape, x| tape.columns(x[0], 1, 3));
    Case::load("swap_axes").check(&["x"], |tape, x| tape.swap_axes(x[0], 3));
}

#[test]
fn bad_shapes_are_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let (a, b) = (tape.input(matrix(1, 4, 3)), tape.input(matrix(1, 4, 2)));
    let nothing = tape.concat_rows(&[]).unwrap();
    assert_eq!(tape.shape(nothing), Shape::Matrix(0, 0));
    let error = tape.concat_rows(&[a, b]).unwrap_err();
    assert_eq!(error.to_string(), "concat rows: a part has shape [4, 2], but [M, 3] is needed");
    let c = tape.input(matrix(1, 3, 4));
    let error = tape.concat(&[a, c]).unwrap_err();
    assert_eq!(error.to_string(), "concat: a part has shape [3, 4], but [4, N] is needed");
    let error = tape.columns(a, 2, 2).unwrap_err();
    assert_eq!(error.to_string(), "columns: x has shape [4, 3], but [M, N] with 2 columns from column 2 on is needed");
    assert!(tape.columns(a, usize::MAX, 2).is_err());
    let error = tape.swap_axes(a, 3).unwrap_err();
    assert_eq!(error.to_string(), "swap axes: x has shape [4, 3], but [G · 3, C] is needed");
    assert!(tape.swap_axes(a, 0).is_err());
}
