use super::*;
use crate::testkit::{Case, check_gradients, matrix};
use crate::{Mode, Parameters, Tensor};

#[test]
fn gradients_match_finite_differences() {
    let batch = Ragged::from_lengths([3, 0, 1, 4]);
    for dropout in [Dropout::NONE, Dropout::new(0.4, 5, Mode::Train).unwrap()] {
        let attend = |tape: &mut Tape<'_>, x: &[Var]| tape.self_attention(x[0], &batch, Heads(2), dropout);
        check_gradients(&[matrix(1, 8, 3 * 6)], attend);
    }
}

#[test]
fn values_and_gradients_match_pytorch() {
    // The whole of `torch.nn.MultiheadAttention`, one sequence at a time.
    let batch = Ragged::from_lengths([3, 1, 5]);
    let names = ["x", "in_weight", "in_bias", "out_weight", "out_bias"];
    Case::load("attention").check(&names, |tape, x| {
        let qkv = tape.linear(x[0], x[1], Some(x[2]), None)?;
        let attended = tape.self_attention(qkv, &batch, Heads(2), Dropout::NONE)?;
        tape.linear(attended, x[3], Some(x[4]), None)
    });
}

#[test]
fn a_sequence_does_not_depend_on_others() {
    let parameters = Parameters::default();
    let run = |x: Tensor, lengths: &[usize]| {
        let mut tape = Tape::new(&parameters);
        let x = tape.input(x);
        let batch = Ragged::from_lengths(lengths.iter().copied());
        let y = tape.self_attention(x, &batch, Heads(3), Dropout::NONE).unwrap();
        tape.value(y).values().to_vec()
    };
    let x = matrix(1, 20, 3 * 9);
    let alone = Tensor::matrix(7, 27, x.values()[5 * 27..12 * 27].to_vec()).unwrap();
    let together = run(x, &[5, 7, 8]);
    assert_eq!(together[5 * 9..12 * 9], run(alone, &[7])[..]);
}

#[test]
fn a_width_not_divisible_by_heads_is_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(matrix(1, 4, 12));
    let batch = Ragged::from_lengths([4]);
    let error = tape.self_attention(x, &batch, Heads(3), Dropout::NONE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "attention: qkv has shape [4, 12], but [T, 3D] with D a multiple of 3 heads is needed"
    );
    assert!(tape.self_attention(x, &batch, Heads(0), Dropout::NONE).is_err());
}
