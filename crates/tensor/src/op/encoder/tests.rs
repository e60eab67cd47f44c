//! The fused encoder against separate operations, finite differences and PyTorch.

mod bias;

use rayon::ThreadPoolBuilder;

use super::*;
use crate::chunks::{self, Chunks};
use crate::testkit::{BLOCK, Case, check_gradients, matrix, noise};
use crate::{Activation, Gradients, Mode, Parameters, Tensor, Threads};

/// The largest difference from separate operations, relative to the larger of 1 and the largest value: sums of some hundred
/// terms in different orders, each rounded to 6e-8.
const TOLERANCE: f32 = 2e-6;

/// A block whose variables are in the order of [`BLOCK`].
fn vars(w: &[Var]) -> BlockVars {
    let pair = |at: usize| [w[2 * at], w[2 * at + 1]];
    BlockVars { norm1: pair(0), qkv: pair(1), out: pair(2), norm2: pair(3), up: pair(4), down: pair(5) }
}

fn all_vars(w: &[Var]) -> Vec<BlockVars> {
    w.chunks_exact(12).map(vars).collect()
}

/// `n_blocks` blocks' weights in the order of [`BLOCK`], scaled so that values are of size 1.
fn weights(n_blocks: usize, d: usize, f: usize) -> Vec<Tensor> {
    let shapes = [
        Shape::Vector(d),
        Shape::Vector(d),
        Shape::Matrix(3 * d, d),
        Shape::Vector(3 * d),
        Shape::Matrix(d, d),
        Shape::Vector(d),
        Shape::Vector(d),
        Shape::Vector(d),
        Shape::Matrix(f, d),
        Shape::Vector(f),
        Shape::Matrix(d, f),
        Shape::Vector(d),
    ];
    let all = (0..n_blocks).flat_map(|_| shapes).zip(50..);
    all.map(|(shape, seed)| {
        let size = if shape.rows() > 1 { 1.0 / (shape.cols() as f32).sqrt() } else { 1.0 };
        Tensor::new(shape, noise(seed, shape.len()).into_iter().map(|x| size * x).collect()).unwrap()
    })
    .collect()
}

/// [`Tape::encoder`] as separate operations.
fn composed(
    tape: &mut Tape<'_>,
    mut x: Var,
    blocks: &[BlockVars],
    form: EncoderConfig,
    batch: &Ragged,
    pools: &Ragged,
) -> Result<Var> {
    for (index, w) in (0..).zip(blocks) {
        let site = |place: u64| form.dropout.site(4 * index + place);
        let normal = tape.layer_norm(x, w.norm1[0], w.norm1[1])?;
        let qkv = tape.linear(normal, w.qkv[0], Some(w.qkv[1]), None)?;
        let attended = tape.self_attention(qkv, batch, form.heads, site(0))?;
        let attended = tape.linear(attended, w.out[0], Some(w.out[1]), None)?;
        let attended = tape.dropout(attended, site(1));
        x = tape.add(x, attended)?;
        let normal = tape.layer_norm(x, w.norm2[0], w.norm2[1])?;
        let hidden = tape.linear(normal, w.up[0], Some(w.up[1]), Some(Activation::Gelu))?;
        let hidden = tape.dropout(hidden, site(2));
        let mut out = tape.linear(hidden, w.down[0], Some(w.down[1]), None)?;
        if index + 1 < blocks.len() as u64 {
            out = tape.dropout(out, site(3));
        }
        x = tape.add(x, out)?;
    }
    tape.segment_mean(x, pools)
}

/// The value and the gradients of all inputs.
fn run(inputs: &[Tensor], function: impl FnOnce(&mut Tape<'_>, &[Var]) -> Result<Var>) -> Vec<Tensor> {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let vars: Vec<Var> = inputs.iter().map(|input| tape.leaf(input.clone())).collect();
    let y = function(&mut tape, &vars).unwrap();
    let value = tape.value(y).clone();
    let seed = Tensor::new(value.shape(), noise(7, value.shape().len())).unwrap();
    let mut gradients = Gradients::zeros(&parameters);
    tape.backward_from(y, seed, &mut gradients).unwrap();
    let of = |(var, input): (&Var, &Tensor)| gradients.leaf(*var).cloned().unwrap_or(Tensor::zeros(input.shape()));
    std::iter::once(value).chain(vars.iter().zip(inputs).map(of)).collect()
}

fn train(rate: f32) -> Dropout {
    Dropout::new(rate, 5, Mode::Train).unwrap()
}

fn inputs(n_blocks: usize, rows: usize, d: usize, f: usize) -> Vec<Tensor> {
    std::iter::once(matrix(1, rows, d)).chain(weights(n_blocks, d, f)).collect()
}

#[test]
fn gradients_match_finite_differences() {
    let (batch, pools) = (Ragged::from_lengths([3, 0, 1]), Ragged::from_lengths([2, 0, 2]));
    for dropout in [Dropout::NONE, train(0.3)] {
        let form = EncoderConfig { heads: Heads(2), dropout };
        check_gradients(&inputs(2, 4, 6, 5), |tape, x| tape.encoder(x[0], &all_vars(&x[1..]), form, &batch, &pools));
    }
}

#[test]
fn the_fused_stack_matches_separate_operations() {
    let lengths = [64, 0, 1, 65, 128, 200, 0];
    let batch = Ragged::from_lengths(lengths);
    let others = Ragged::from_lengths([0, 10, 300, 1, 97, 50, 0]);
    for n_blocks in 0..=3 {
        let inputs = inputs(n_blocks, batch.total(), 24, 56);
        for (dropout, pools) in [(Dropout::NONE, &batch), (train(0.1), &batch), (train(0.4), &others)] {
            let form = EncoderConfig { heads: Heads(3), dropout };
            let fused = run(&inputs, |tape, x| tape.encoder(x[0], &all_vars(&x[1..]), form, &batch, pools));
            let small = run(&inputs, |tape, x| composed(tape, x[0], &all_vars(&x[1..]), form, &batch, pools));
            for (which, (fused, small)) in fused.iter().zip(&small).enumerate() {
                let scale = small.values().iter().fold(1.0_f32, |max, x| max.max(x.abs()));
                for (fused, small) in fused.values().iter().zip(small.values()) {
                    let off = (fused - small).abs() / scale;
                    assert!(off <= TOLERANCE, "{n_blocks} blocks, tensor {which}: {fused} {small}");
                }
            }
        }
    }
}

#[test]
fn values_and_gradients_match_pytorch() {
    let batch = Ragged::from_lengths([4, 1, 6]);
    let names: Vec<String> =
        ["0", "1"].iter().flat_map(|block| BLOCK.iter().map(move |name| format!("{name}_{block}"))).collect();
    let names: Vec<&str> = std::iter::once("x").chain(names.iter().map(String::as_str)).collect();
    let form = EncoderConfig { heads: Heads(2), dropout: Dropout::NONE };
    Case::load("encoder").check(&names, |tape, x| tape.encoder(x[0], &all_vars(&x[1..]), form, &batch, &batch));
}

const WIDTH: usize = 24;

/// 40 sequences of 0 to 22 tokens in chunks of `size` sequences.
fn pieces(size: usize) -> Vec<(Tensor, Ragged)> {
    let lengths: Vec<usize> = (0..40).map(|i| i * 7 % 23).collect();
    let all = matrix(3, lengths.iter().sum(), WIDTH);
    let mut first = 0;
    let piece = |lengths: &[usize]| {
        let batch = Ragged::from_lengths(lengths.iter().copied());
        let values = all.values()[first * WIDTH..(first + batch.total()) * WIDTH].to_vec();
        first += batch.total();
        (Tensor::matrix(batch.total(), WIDTH, values).unwrap(), batch)
    };
    lengths.chunks(size).map(piece).collect()
}

fn model() -> Parameters {
    let mut parameters = Parameters::default();
    for (i, tensor) in weights(2, WIDTH, 4 * WIDTH).into_iter().enumerate() {
        parameters.add(format!("w{i}"), tensor).unwrap();
    }
    parameters
}

fn encode(tape: &mut Tape<'_>, parameters: &Parameters, piece: &(Tensor, Ragged), dropout: Dropout) -> Result<Var> {
    let w: Vec<Var> = parameters.iter().map(|(id, _, _)| tape.parameter(id)).collect();
    let x = tape.input(piece.0.clone());
    tape.encoder(x, &all_vars(&w), EncoderConfig { heads: Heads(2), dropout }, &piece.1, &piece.1)
}

#[test]
fn results_of_a_sequence_do_not_depend_on_its_batch() {
    let parameters = model();
    let results = |size: usize| {
        let forward = |tape: &mut Tape<'_>, piece: &(Tensor, Ragged)| -> Result<_> {
            let y = encode(tape, &parameters, piece, Dropout::NONE)?;
            Ok(tape.value(y).values().to_vec())
        };
        chunks::evaluate(&parameters, &pieces(size), forward).unwrap().concat()
    };
    let alone = results(1);
    assert!(alone.iter().all(|value| value.is_finite()));
    assert_eq!(results(7), alone);
    assert_eq!(results(40), alone);
}

#[test]
fn gradients_do_not_depend_on_threads() {
    let parameters = model();
    let pass = |n_threads: usize| {
        let work = || {
            let mut gradients = Gradients::zeros(&parameters);
            let forward = |tape: &mut Tape<'_>, piece: &(Tensor, Ragged)| -> Result<_> {
                let y = encode(tape, &parameters, piece, train(0.1))?;
                let values = tape.value(y).values().to_vec();
                Ok((tape.bce_with_logits(y, &vec![0.5; values.len()], 1)?, values))
            };
            let mut chunks = Chunks::new(&parameters);
            let values = chunks.run(&parameters, &pieces(2), &mut gradients, forward).unwrap();
            (values, gradients)
        };
        ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(work)
    };
    let expected = pass(1);
    assert!(expected.1.is_finite());
    for n_threads in [2, 3] {
        assert_eq!(pass(n_threads), expected, "{n_threads} threads");
    }
}

#[test]
fn a_no_grad_tape_gives_the_same_values() {
    let (parameters, piece) = (model(), &pieces(40)[0]);
    let values = |mut tape: Tape<'_>| {
        let y = encode(&mut tape, &parameters, piece, Dropout::NONE).unwrap();
        tape.value(y).clone()
    };
    assert_eq!(values(Tape::no_grad(&parameters, Threads::Caller)), values(Tape::new(&parameters)));
}

#[test]
fn bad_weight_shapes_are_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let x = tape.input(matrix(1, 4, 6));
    let mut w: Vec<Var> = weights(1, 6, 8).into_iter().map(|weight| tape.input(weight)).collect();
    let (batch, form) = (Ragged::from_lengths([4]), EncoderConfig { heads: Heads(2), dropout: Dropout::NONE });
    let mut error = |x: Var, w: &[Var], form: EncoderConfig, batch: &Ragged, pools: &Ragged| {
        tape.encoder(x, &all_vars(w), form, batch, pools).unwrap_err().to_string()
    };
    let short = Ragged::from_lengths([3]);
    assert_eq!(
        error(x, &w, form, &batch, &short),
        "encoder: x, beside its pools, has shape [4, 6], but [3, D] is needed"
    );
    let odd = EncoderConfig { heads: Heads(4), ..form };
    let message = "encoder: x has shape [4, 6], but [T, D] with D a multiple of 4 heads is needed";
    assert_eq!(error(x, &w, odd, &batch, &batch), message);
    w.swap(4, 2);
    let message = "encoder: the input of attention has shape [6, 6], but [18, 6] is needed";
    assert_eq!(error(x, &w, form, &batch, &batch), message);
}
