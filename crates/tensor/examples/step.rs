//! Times a training step: blocks over packed sequences, mean pooling, a linear head, forward, backward and Adam.
//!
//! `cargo run --release -p hopedgn-tensor --example step -- [SEQUENCES TOKENS CHUNK]`, by default 400 sequences of 64
//! tokens in chunks of 8; a chunk of 0 runs the whole batch on one tape.
#![expect(clippy::print_stdout, reason = "the result of the program")]

use std::time::Instant;

use hopedgn_tensor::chunks::Chunks;
use hopedgn_tensor::{
    Activation, Adam, AdamConfig, Dropout, Gradients, Heads, ParameterId, Parameters, Ragged, Result, Shape, Tape,
    Tensor, Var, init,
};

const WIDTH: usize = 200;
const N_BLOCKS: usize = 2;
const N_STEPS: usize = 7;

/// Weight and bias of each part of a block.
struct Block {
    norm1: [ParameterId; 2],
    qkv: [ParameterId; 2],
    out: [ParameterId; 2],
    norm2: [ParameterId; 2],
    up: [ParameterId; 2],
    down: [ParameterId; 2],
}

struct Model {
    blocks: Vec<Block>,
    head: [ParameterId; 2],
}

impl Model {
    fn new(parameters: &mut Parameters) -> Result<Self> {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24)
        };
        let mut add = |name: String, (weight, bias): (Tensor, Tensor)| -> Result<[ParameterId; 2]> {
            Ok([parameters.add(format!("{name}.weight"), weight)?, parameters.add(format!("{name}.bias"), bias)?])
        };
        let mut blocks = Vec::new();
        for i in 0..N_BLOCKS {
            blocks.push(Block {
                norm1: add(format!("blocks.{i}.norm1"), init::layer_norm(WIDTH))?,
                qkv: add(format!("blocks.{i}.qkv"), init::attention_in(&mut random, WIDTH))?,
                out: add(format!("blocks.{i}.out"), init::attention_out(&mut random, WIDTH))?,
                norm2: add(format!("blocks.{i}.norm2"), init::layer_norm(WIDTH))?,
                up: add(format!("blocks.{i}.up"), init::linear(&mut random, WIDTH, 4 * WIDTH))?,
                down: add(format!("blocks.{i}.down"), init::linear(&mut random, 4 * WIDTH, WIDTH))?,
            });
        }
        Ok(Self { blocks, head: add("head".to_owned(), init::linear(&mut random, WIDTH, 1))? })
    }

    /// One logit per sequence of `x` `[T, D]`, `[sequences, 1]`.
    fn logits(&self, tape: &mut Tape<'_>, mut x: Var, batch: &Ragged) -> Result<Var> {
        let mut hidden = None;
        for block in &self.blocks {
            if let Some((hidden, layer)) = hidden {
                let down = linear(tape, hidden, layer, None)?;
                x = tape.add(x, down)?;
            }
            let [scale, shift] = block.norm1.map(|id| tape.parameter(id));
            let normal = tape.layer_norm(x, scale, shift)?;
            let qkv = linear(tape, normal, block.qkv, None)?; // [T, 3D]
            let attended = tape.self_attention(qkv, batch, Heads(2), Dropout::NONE)?;
            let attended = linear(tape, attended, block.out, None)?;
            x = tape.add(x, attended)?;
            let [scale, shift] = block.norm2.map(|id| tape.parameter(id));
            let normal = tape.layer_norm(x, scale, shift)?;
            hidden = Some((linear(tape, normal, block.up, Some(Activation::Gelu))?, block.down)); // [T, 4D]
        }
        let mut pooled = tape.segment_mean(x, batch)?; // [sequences, D]
        if let Some((hidden, layer)) = hidden {
            // The mean of a linear layer is the linear layer of the mean: one row a sequence instead of one a token.
            let hidden = tape.segment_mean(hidden, batch)?; // [sequences, 4D]
            let down = linear(tape, hidden, layer, None)?;
            pooled = tape.add(pooled, down)?;
        }
        linear(tape, pooled, self.head, None)
    }
}

fn linear(tape: &mut Tape<'_>, x: Var, layer: [ParameterId; 2], activation: Option<Activation>) -> Result<Var> {
    let [weight, bias] = layer.map(|id| tape.parameter(id));
    tape.linear(x, weight, Some(bias), activation)
}

struct Piece {
    tokens: Tensor,
    batch: Ragged,
    targets: Vec<f32>,
}

fn piece(n_sequences: usize, n_tokens: usize, first: usize) -> Piece {
    let batch = Ragged::from_lengths(vec![n_tokens; n_sequences]);
    let mut tokens = Tensor::zeros(Shape::Matrix(batch.total(), WIDTH));
    for (i, value) in tokens.values_mut().iter_mut().enumerate() {
        *value = ((i + first * n_tokens * WIDTH) as f32 * 0.7).sin();
    }
    let targets = (first..first + n_sequences).map(|i| (i % 2) as f32).collect();
    Piece { tokens, batch, targets }
}

fn main() -> Result<()> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |at: usize, default: usize| numbers.get(at).copied().unwrap_or(default);
    let (n_sequences, n_tokens, chunk) = (number(0, 400), number(1, 64), number(2, 8));

    let mut parameters = Parameters::default();
    let model = Model::new(&mut parameters)?;
    let mut adam = Adam::new(AdamConfig::default(), &parameters);
    let mut gradients = Gradients::zeros(&parameters);
    let mut chunks = Chunks::new(&parameters);
    let size = if chunk == 0 { n_sequences } else { chunk };
    let starts = (0..n_sequences).step_by(size);
    let pieces: Vec<Piece> = starts.map(|first| piece(size.min(n_sequences - first), n_tokens, first)).collect();

    let forward = |tape: &mut Tape<'_>, piece: &Piece| {
        let x = tape.input(piece.tokens.clone());
        let logits = model.logits(tape, x, &piece.batch)?;
        let loss = tape.bce_with_logits(logits, &piece.targets, n_sequences)?;
        Ok((loss, tape.value(loss).values()[0]))
    };
    let mut best = f64::INFINITY;
    for step in 0..N_STEPS {
        let start = Instant::now();
        gradients.clear();
        let losses = if chunk == 0 {
            let mut tape = Tape::new(&parameters);
            let (loss, value) = forward(&mut tape, &pieces[0])?;
            tape.backward(loss, &mut gradients)?;
            vec![value]
        } else {
            chunks.run(&parameters, &pieces, &mut gradients, forward)?
        };
        adam.step(&mut parameters, &gradients);
        let seconds = start.elapsed().as_secs_f64();
        best = best.min(seconds);
        println!("step {step}: {seconds:.3} s, loss {}", losses.iter().sum::<f32>() / losses.len() as f32);
    }
    println!("best: {best:.3} s a step");
    Ok(())
}
