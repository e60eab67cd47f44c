//! A transformer block of separate operations: parity with PyTorch, and independence of threads and chunks.

use rayon::ThreadPoolBuilder;

use crate::chunks::{self, Chunks};
use crate::testkit::{BLOCK, Case, matrix};
use crate::{
    Activation, Adam, AdamConfig, Dropout, Gradients, Heads, Mode, ParameterId, Parameters, Ragged, Result, Tape,
    Tensor, Threads, Var, init,
};

/// Pre-norm attention and feed-forward over `x` `[T, D]`, each with a residual connection, then the mean of each sequence.
/// `w` is in the order of [`BLOCK`].
fn block(tape: &mut Tape<'_>, x: Var, w: &[Var], batch: &Ragged, dropout: Dropout) -> Result<Var> {
    let normal = tape.layer_norm(x, w[0], w[1])?;
    let qkv = tape.linear(normal, w[2], Some(w[3]), None)?; // [T, 3D]
    let attended = tape.self_attention(qkv, batch, Heads(2), dropout)?;
    let attended = tape.linear(attended, w[4], Some(w[5]), None)?;
    let attended = tape.dropout(attended, dropout);
    let x = tape.add(x, attended)?;
    let normal = tape.layer_norm(x, w[6], w[7])?;
    let hidden = tape.linear(normal, w[8], Some(w[9]), Some(Activation::Gelu))?; // [T, 4D]
    let out = tape.linear(hidden, w[10], Some(w[11]), None)?;
    let x = tape.add(x, out)?;
    tape.segment_mean(x, batch) // [sequences, D]
}

#[test]
fn values_and_gradients_match_pytorch() {
    let batch = Ragged::from_lengths([4, 2, 5]);
    let names: Vec<&str> = std::iter::once("x").chain(BLOCK).collect();
    Case::load("block").check(&names, |tape, x| block(tape, x[0], &x[1..], &batch, Dropout::NONE));
}

/// A block of width 24 with a head that scores each sequence.
struct Model {
    parameters: Parameters,
    block: Vec<ParameterId>,
    head: ParameterId,
}

const WIDTH: usize = 24;

impl Model {
    fn new() -> Self {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24)
        };
        let pairs = [
            init::layer_norm(WIDTH),
            init::attention_in(&mut random, WIDTH),
            init::attention_out(&mut random, WIDTH),
            init::layer_norm(WIDTH),
            init::linear(&mut random, WIDTH, 4 * WIDTH),
            init::linear(&mut random, 4 * WIDTH, WIDTH),
        ];
        let mut parameters = Parameters::default();
        let tensors = pairs.into_iter().flat_map(|(a, b)| [a, b]);
        let block = BLOCK.iter().zip(tensors).map(|(&name, tensor)| parameters.add(name, tensor).unwrap()).collect();
        let head = parameters.add("head", init::linear(&mut random, WIDTH, 1).0).unwrap();
        Self { parameters, block, head }
    }

    fn logits(&self, tape: &mut Tape<'_>, tokens: &Tensor, batch: &Ragged, dropout: Dropout) -> Result<Var> {
        let weights: Vec<Var> = self.block.iter().map(|&id| tape.parameter(id)).collect();
        let x = tape.input(tokens.clone());
        let pooled = block(tape, x, &weights, batch, dropout)?;
        let head = tape.parameter(self.head);
        tape.linear(pooled, head, None, None) // [sequences, 1]
    }
}

/// A few sequences with their targets.
struct Chunk {
    tokens: Tensor,
    batch: Ragged,
    targets: Vec<f32>,
}

/// 40 sequences of 1 to 23 tokens in chunks of `size` sequences.
fn chunk_list(size: usize) -> Vec<Chunk> {
    let lengths: Vec<usize> = (0..40).map(|i| 1 + i * 7 % 23).collect();
    let all = matrix(3, lengths.iter().sum(), WIDTH);
    let mut first = 0;
    let chunk = |lengths: &[usize]| {
        let batch = Ragged::from_lengths(lengths.iter().copied());
        let rows = batch.total();
        let tokens = all.values()[first * WIDTH..(first + rows) * WIDTH].to_vec();
        first += rows;
        let targets = lengths.iter().map(|&length| (length % 2) as f32).collect();
        Chunk { tokens: Tensor::matrix(rows, WIDTH, tokens).unwrap(), batch, targets }
    };
    lengths.chunks(size).map(chunk).collect()
}

fn in_pool<R: Send>(n_threads: usize, work: impl FnOnce() -> R + Send) -> R {
    ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(work)
}

/// Three steps with the whole batch on one tape.
fn train_whole_batch(threads: Threads) -> Parameters {
    let mut model = Model::new();
    let mut adam = Adam::new(AdamConfig::default(), &model.parameters);
    let whole = &chunk_list(40)[0];
    for seed in 0..3 {
        let dropout = Dropout::new(0.1, seed, Mode::Train).unwrap();
        let mut tape = Tape::with_threads(&model.parameters, threads);
        let logits = model.logits(&mut tape, &whole.tokens, &whole.batch, dropout).unwrap();
        let loss = tape.bce_with_logits(logits, &whole.targets, whole.targets.len()).unwrap();
        let mut gradients = Gradients::zeros(&model.parameters);
        tape.backward(loss, &mut gradients).unwrap();
        adam.step(&mut model.parameters, &gradients);
    }
    model.parameters
}

/// The logits and gradients of one pass in chunks.
fn run_in_chunks(model: &Model, size: usize) -> (Vec<f32>, Gradients) {
    let mut gradients = Gradients::zeros(&model.parameters);
    let forward = |tape: &mut Tape<'_>, chunk: &Chunk| -> Result<_> {
        let logits = model.logits(tape, &chunk.tokens, &chunk.batch, Dropout::NONE)?;
        let values = tape.value(logits).values().to_vec();
        Ok((tape.bce_with_logits(logits, &chunk.targets, 40)?, values))
    };
    let chunk_list = chunk_list(size);
    let mut chunks = Chunks::new(&model.parameters);
    let logits = chunks.run(&model.parameters, &chunk_list, &mut gradients, forward).unwrap();
    (logits.concat(), gradients)
}

#[test]
fn training_does_not_depend_on_threads() {
    let alone = train_whole_batch(Threads::Caller);
    assert_ne!(alone, Model::new().parameters);
    for n_threads in [1, 2, 3] {
        assert_eq!(in_pool(n_threads, || train_whole_batch(Threads::Pool)), alone, "{n_threads} threads");
    }
}

#[test]
fn results_of_chunks_do_not_depend_on_threads() {
    let model = Model::new();
    // 20 chunks: more than there are groups. And a single one, on which all threads work.
    for size in [2, 40] {
        let expected = in_pool(1, || run_in_chunks(&model, size));
        for n_threads in [2, 3] {
            assert_eq!(in_pool(n_threads, || run_in_chunks(&model, size)), expected, "{n_threads} threads");
        }
    }
}

#[test]
fn gradients_of_chunks_add_up_to_those_of_the_batch() {
    let model = Model::new();
    let (whole_logits, whole) = run_in_chunks(&model, 40);
    let (logits, parts) = run_in_chunks(&model, 4);
    assert_eq!(logits, whole_logits, "a score does not depend on its batch");
    for (id, name, _) in model.parameters.iter() {
        for (part, whole) in parts.parameter(id).values().iter().zip(whole.parameter(id).values()) {
            // The same terms, summed in another order.
            assert!((part - whole).abs() < 1e-6, "{name}: {part} {whole}");
        }
    }
}

#[test]
fn a_score_does_not_depend_on_its_batch() {
    let model = Model::new();
    let score = |size: usize| -> Vec<f32> {
        let forward = |tape: &mut Tape<'_>, chunk: &Chunk| -> Result<_> {
            let logits = model.logits(tape, &chunk.tokens, &chunk.batch, Dropout::NONE)?;
            Ok(tape.value(logits).values().to_vec())
        };
        chunks::evaluate(&model.parameters, &chunk_list(size), forward).unwrap().concat()
    };
    let alone = score(1);
    assert_eq!(score(7), alone);
    assert_eq!(score(40), alone);
}
