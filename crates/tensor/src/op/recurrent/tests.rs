use super::*;
use crate::Parameters;
use crate::testkit::{Case, check_gradients, matrix};

#[test]
fn gradients_match_finite_differences() {
    for (rows, d) in [(5, 3), (0, 3), (1, 1), (3, 0), (70, 2)] {
        let inputs = [matrix(1, rows, 3 * d), matrix(2, rows, 3 * d), matrix(3, rows, d)];
        check_gradients(&inputs, |tape, x| tape.gru(x[0], x[1], x[2]));
        let inputs = [matrix(1, rows, 4 * d), matrix(2, rows, d)];
        check_gradients(&inputs, |tape, x| tape.lstm(x[0], Some(x[1])));
        check_gradients(&inputs[..1], |tape, x| tape.lstm(x[0], None));
    }
}

#[test]
fn values_and_gradients_match_pytorch() {
    let names = ["x", "h", "weight_ih", "weight_hh", "bias_ih", "bias_hh"];
    Case::load("gru").check(&names, |tape, x| {
        let input = tape.linear(x[0], x[2], Some(x[4]), None)?;
        let hidden = tape.linear(x[1], x[3], Some(x[5]), None)?;
        tape.gru(input, hidden, x[1])
    });
    let names = ["x", "h", "c", "weight_ih", "weight_hh", "bias_ih", "bias_hh"];
    Case::load("lstm").check(&names, |tape, x| {
        let input = tape.linear(x[0], x[3], Some(x[5]), None)?;
        let hidden = tape.linear(x[1], x[4], Some(x[6]), None)?;
        let gates = tape.add(input, hidden)?;
        tape.lstm(gates, Some(x[2]))
    });
    Case::load("lstm_first").check(&["x", "weight_ih", "bias_ih", "bias_hh"], |tape, x| {
        let input = tape.linear(x[0], x[1], Some(x[2]), None)?;
        let rows = tape.shape(input).rows();
        let hidden = tape.repeat_row(x[3], rows)?;
        let gates = tape.add(input, hidden)?;
        tape.lstm(gates, None)
    });
}

#[test]
fn bad_shapes_are_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let (wide, h) = (tape.input(matrix(1, 2, 9)), tape.input(matrix(1, 2, 3)));
    let error = tape.gru(wide, h, h).unwrap_err();
    assert_eq!(error.to_string(), "gru: the hidden part has shape [2, 3], but [2, 9] is needed");
    let error = tape.lstm(wide, None).unwrap_err();
    assert_eq!(error.to_string(), "lstm: the gates has shape [2, 9], but [M, 4D] is needed");
    let gates = tape.input(matrix(1, 2, 8));
    let error = tape.lstm(gates, Some(h)).unwrap_err();
    assert_eq!(error.to_string(), "lstm: the state has shape [2, 3], but [2, 2] is needed");
}
