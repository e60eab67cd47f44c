use super::*;
use crate::testkit::matrix;
use crate::{Gradients, Parameters, Tensor};

fn rows(rows: &[u32]) -> Indices {
    rows.to_vec().into()
}

#[test]
fn written_rows_are_read_back_and_earlier_reads_keep_their_values() {
    let table = StateTable::zeros(&Device::cpu(), 4, 2).unwrap();
    assert_eq!((table.rows(), table.cols()), (4, 2));
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let before = tape.read_state(&table, &rows(&[3, 1, 3])).unwrap();
    let x = tape.input(Tensor::matrix(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap());
    tape.write_state(&table, &rows(&[3, 0]), x).unwrap();
    let after = tape.read_state(&table, &rows(&[3, 1, 3])).unwrap();
    assert_eq!(tape.value(before).values(), [0.0; 6]);
    assert_eq!(tape.value(after).values(), [1.0, 2.0, 0.0, 0.0, 1.0, 2.0]);
    assert_eq!(table.values().unwrap(), [3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
    let none = tape.read_state(&table, &rows(&[])).unwrap();
    tape.write_state(&table, &rows(&[]), none).unwrap();
    table.replace(&[5.0; 8]).unwrap();
    assert_eq!(table.values().unwrap(), [5.0; 8]);
    table.clear().unwrap();
    assert_eq!(table.values().unwrap(), [0.0; 8]);
}

#[test]
fn no_gradient_flows_through_a_table() {
    let table = StateTable::zeros(&Device::cpu(), 3, 2).unwrap();
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.leaf(matrix(1, 2, 2));
    tape.write_state(&table, &rows(&[0, 2]), x).unwrap();
    let again = tape.read_state(&table, &rows(&[0, 2])).unwrap();
    assert!(!tape.requires_grad(again));
    let product = tape.mul(x, again).unwrap();
    let mut gradients = Gradients::zeros(&parameters);
    tape.backward_from(product, Tensor::full(Shape::Matrix(2, 2), 1.0), &mut gradients).unwrap();
    assert_eq!(gradients.leaf(x).unwrap(), &matrix(1, 2, 2));
}

#[test]
fn bad_rows_and_shapes_are_refused() {
    let table = StateTable::zeros(&Device::cpu(), 3, 2).unwrap();
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(matrix(1, 3, 2));
    let error = tape.read_state(&table, &rows(&[0, 3])).unwrap_err();
    assert_eq!(error.to_string(), "read state: index 3 at position 1 is past the last of 3 rows");
    let error = tape.write_state(&table, &rows(&[2, 0, 2]), x).unwrap_err();
    assert_eq!(error.to_string(), "write state: row 2 occurs more than once");
    tape.write_state(&table, &rows(&[2, 0, 1]), x).unwrap();
    let error = tape.write_state(&table, &rows(&[2, 0]), x).unwrap_err();
    assert_eq!(error.to_string(), "write state: the matrix of new rows has shape [3, 2], but [2, 2] is needed");
    let error = table.replace(&[0.0; 5]).unwrap_err();
    assert_eq!(error.to_string(), "a tensor of shape [3, 2] holds 6 values, but 5 were given");
}
