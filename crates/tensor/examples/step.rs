//! Times a training step of HopeDGN's shape on random dense tokens: input projections, blocks, mean, head, forward,
//! backward and Adam, and the products of the same shapes alone.
//!
//! `cargo run --release -p hopedgn-tensor --example step -- [PAIRS TOKENS CHUNK STEPS RATE]`, by default 400 pairs of 64
//! tokens in chunks of 8, 7 steps, no dropout.
#![expect(clippy::print_stdout, reason = "the result of the program")]

use std::time::Instant;

use hopedgn_tensor::chunks::Chunks;
use hopedgn_tensor::{
    Activation, Adam, AdamConfig, BlockVars, Dropout, EncoderForm, Gradients, Heads, Mode, ParameterId, Parameters,
    Ragged, Result, Shape, Tape, Tensor, Var, init,
};
use rayon::prelude::*;

/// The width of each of the four parts of a token, and of a token.
const PART: usize = 50;
const WIDTH: usize = 4 * PART;
const HIDDEN: usize = 4 * WIDTH;
const N_BLOCKS: usize = 2;
const N_HEADS: usize = 2;
const OUT: usize = 172;
/// The widths of the features: MITE counts, times, edges, both nodes with the edge.
const FEATURES: [usize; 4] = [64, 100, 172, 516];

type Layer = [ParameterId; 2];

struct Block {
    norm1: Layer,
    qkv: Layer,
    out: Layer,
    norm2: Layer,
    up: Layer,
    down: Layer,
}

struct Model {
    mite: [Layer; 3],
    time: Layer,
    edge: Layer,
    combined: Layer,
    blocks: Vec<Block>,
    out: Layer,
    head: [Layer; 2],
}

/// Numbers that look random and are the same every time.
fn random() -> impl FnMut() -> f64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    }
}

impl Model {
    fn new(parameters: &mut Parameters) -> Result<Self> {
        let mut random = random();
        let mut add = |(weight, bias): (Tensor, Tensor)| -> Result<Layer> {
            let n = parameters.len();
            Ok([parameters.add(format!("{n}.weight"), weight)?, parameters.add(format!("{n}.bias"), bias)?])
        };
        let [mite, time, edge, combined] = FEATURES;
        let mut blocks = Vec::new();
        for _ in 0..N_BLOCKS {
            blocks.push(Block {
                norm1: add(init::layer_norm(WIDTH))?,
                qkv: add(init::linear(&mut random, WIDTH, 3 * WIDTH))?,
                out: add(init::linear(&mut random, WIDTH, WIDTH))?,
                norm2: add(init::layer_norm(WIDTH))?,
                up: add(init::linear(&mut random, WIDTH, HIDDEN))?,
                down: add(init::linear(&mut random, HIDDEN, WIDTH))?,
            });
        }
        let mut linear = |n_in: usize, n_out: usize| add(init::linear(&mut random, n_in, n_out));
        Ok(Self {
            mite: [linear(mite, PART)?, linear(PART, PART)?, linear(PART, PART)?],
            time: linear(time, PART)?,
            edge: linear(edge, PART)?,
            combined: linear(combined, PART)?,
            out: linear(WIDTH, OUT)?,
            head: [linear(OUT, OUT)?, linear(OUT, 1)?],
            blocks,
        })
    }

    /// One logit per pair, `[pairs, 1]`.
    fn logits(&self, tape: &mut Tape<'_>, piece: &Piece, dropout: Dropout) -> Result<Var> {
        let [mite, time, edge, combined] = [0, 1, 2, 3].map(|at| tape.input(piece.features[at].clone()));
        let mite = linear(tape, mite, self.mite[0], Some(Activation::Relu))?;
        let mite = linear(tape, mite, self.mite[1], None)?;
        let mite = linear(tape, mite, self.mite[2], None)?;
        let time = tape.activate(time, Activation::Cos);
        let parts = [
            linear(tape, combined, self.combined, None)?,
            linear(tape, edge, self.edge, None)?,
            linear(tape, time, self.time, None)?,
            mite,
        ];
        let x = tape.concat(&parts)?; // [T, WIDTH]
        let blocks: Vec<BlockVars> = self.blocks.iter().map(|block| vars(tape, block)).collect();
        let form = EncoderForm { heads: Heads(N_HEADS), dropout };
        let pooled = tape.encoder(x, &blocks, form, &piece.batch, &piece.batch)?; // [pairs, WIDTH]
        let out = linear(tape, pooled, self.out, None)?;
        let hidden = linear(tape, out, self.head[0], Some(Activation::Relu))?;
        linear(tape, hidden, self.head[1], None)
    }
}

fn vars(tape: &mut Tape<'_>, block: &Block) -> BlockVars {
    let mut both = |layer: Layer| layer.map(|id| tape.parameter(id));
    BlockVars {
        norm1: both(block.norm1),
        qkv: both(block.qkv),
        out: both(block.out),
        norm2: both(block.norm2),
        up: both(block.up),
        down: both(block.down),
    }
}

fn linear(tape: &mut Tape<'_>, x: Var, layer: Layer, activation: Option<Activation>) -> Result<Var> {
    let [weight, bias] = layer.map(|id| tape.parameter(id));
    tape.linear(x, weight, Some(bias), activation)
}

/// A few pairs: their tokens' features, `[T, width]` each, and whether they are true.
struct Piece {
    features: [Tensor; 4],
    batch: Ragged,
    targets: Vec<f32>,
    index: u64,
}

/// One product of a step: `out[m, n] (+)= a[m, k] · b[k, n]`, which operand lies transposed, and how often.
struct Product {
    m: usize,
    k: usize,
    n: usize,
    transposed: [bool; 2],
    count: usize,
}

/// Every product of a chunk of `pairs`, as the operations take them.
fn products(pairs: usize, tokens: usize) -> Vec<Product> {
    let mut all = Vec::new();
    let mut linear = |rows: usize, n_in: usize, n_out: usize, with_dx: bool| {
        all.push(Product { m: rows, k: n_in, n: n_out, transposed: [false, true], count: 1 });
        all.push(Product { m: n_out, k: rows, n: n_in, transposed: [true, false], count: 1 });
        if with_dx {
            all.push(Product { m: rows, k: n_out, n: n_in, transposed: [false, false], count: 1 });
        }
    };
    let rows = pairs * tokens;
    for width in FEATURES {
        linear(rows, width, PART, false);
    }
    for _ in 0..2 {
        linear(rows, PART, PART, true);
    }
    for block in 0..N_BLOCKS {
        linear(rows, WIDTH, 3 * WIDTH, true);
        linear(rows, WIDTH, WIDTH, true);
        linear(rows, WIDTH, HIDDEN, true);
        // The last block's second layer stands behind the mean.
        linear(if block + 1 < N_BLOCKS { rows } else { pairs }, HIDDEN, WIDTH, true);
    }
    linear(pairs, WIDTH, OUT, true);
    linear(pairs, OUT, OUT, true);
    linear(pairs, OUT, 1, true);
    let count = N_BLOCKS * N_HEADS * pairs;
    let (t, d) = (tokens, WIDTH / N_HEADS);
    // Scores and their gradient from d wide rows; what is mixed by weights and three gradients from t wide ones.
    all.push(Product { m: t, k: d, n: t, transposed: [false, true], count: 2 * count });
    all.push(Product { m: t, k: t, n: d, transposed: [false, false], count: 2 * count });
    all.push(Product { m: t, k: t, n: d, transposed: [true, false], count: 2 * count });
    all
}

fn flops(products: &[Product]) -> f64 {
    products.iter().map(|p| 2.0 * (p.m * p.k * p.n * p.count) as f64).sum()
}

/// The flops a second of bare products on all threads at once, each with its own operands.
fn bare_products(pairs: usize, tokens: usize) -> f64 {
    let products = products(pairs, tokens);
    let largest = products.iter().flat_map(|p| [p.m * p.k, p.k * p.n, p.m * p.n]).max().unwrap_or(0);
    let n_threads = rayon::current_num_threads();
    let mut memory: Vec<[Vec<f32>; 3]> = (0..n_threads).map(|_| [0.5, 0.25, 0.0].map(|x| vec![x; largest])).collect();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        memory.par_iter_mut().with_max_len(1).for_each(|[a, b, out]| {
            for product in &products {
                for _ in 0..product.count {
                    multiply(product, a, b, out);
                }
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    n_threads as f64 * flops(&products) / best
}

fn multiply(product: &Product, a: &[f32], b: &[f32], out: &mut [f32]) {
    let &Product { m, k, n, transposed: [a_turned, b_turned], .. } = product;
    assert!(a.len() >= m * k && b.len() >= k * n && out.len() >= m * n);
    let steps = |turned: bool, rows: usize, cols: usize| {
        let steps = if turned { (1, rows) } else { (cols, 1) };
        (steps.0.cast_signed(), steps.1.cast_signed())
    };
    let ((ar, ac), (br, bc)) = (steps(a_turned, m, k), steps(b_turned, k, n));
    #[expect(unsafe_code, reason = "the GEMM library takes pointers")]
    // SAFETY: the slices hold the matrices, as asserted above, and `out` is borrowed mutably.
    unsafe {
        let out = out.as_mut_ptr();
        matrixmultiply::sgemm(m, k, n, 1.0, a.as_ptr(), ar, ac, b.as_ptr(), br, bc, 0.0, out, n.cast_signed(), 1);
    }
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(default);
    let (n_pairs, n_tokens, chunk, n_steps) = (number(0, 400), number(1, 64), number(2, 8), number(3, 7));
    let rate: f32 = words.get(4).and_then(|word| word.parse().ok()).unwrap_or(0.0);

    let mut parameters = Parameters::default();
    let model = Model::new(&mut parameters)?;
    let mut adam = Adam::new(AdamConfig { lr: 1e-4, ..AdamConfig::default() }, &parameters);
    let mut gradients = Gradients::zeros(&parameters);
    let mut chunks = Chunks::new(&parameters);
    let mut random = random();
    let mut pieces = Vec::new();
    for (index, first) in (0..n_pairs).step_by(chunk).enumerate() {
        let batch = Ragged::from_lengths(vec![n_tokens; chunk.min(n_pairs - first)]);
        let features = FEATURES.map(|width| init::uniform(&mut random, Shape::Matrix(batch.total(), width), 1.7));
        let targets = (0..batch.len()).map(|i| ((first + i) % 2) as f32).collect();
        pieces.push(Piece { features, batch, targets, index: index as u64 });
    }

    let mut times = Vec::new();
    for step in 0..n_steps as u64 {
        let start = Instant::now();
        gradients.clear();
        let dropout = Dropout::new(rate, step, Mode::Train)?;
        let forward = |tape: &mut Tape<'_>, piece: &Piece| {
            let logits = model.logits(tape, piece, dropout.site(piece.index))?;
            let loss = tape.bce_with_logits(logits, &piece.targets, n_pairs)?;
            Ok((loss, tape.value(loss).values()[0]))
        };
        let losses = chunks.run(&parameters, &pieces, &mut gradients, forward)?;
        adam.step(&mut parameters, &gradients);
        let seconds = start.elapsed().as_secs_f64();
        println!("step {step}: {seconds:.3} s, loss {:.5}", losses.iter().sum::<f32>());
        times.push(seconds);
    }
    times.sort_by(f64::total_cmp);
    let best = times.first().copied().unwrap_or(f64::NAN);
    let total: f64 = pieces.iter().map(|piece| flops(&products(piece.batch.len(), n_tokens))).sum();
    let bare = bare_products(chunk, n_tokens);
    println!("best {best:.3} s, median {:.3} s a step", times[times.len() / 2]);
    println!("products: {:.1} GFLOP a step, {:.1} GFLOP/s", total / 1e9, total / best / 1e9);
    println!("bare products: {:.1} GFLOP/s; the step reaches {:.0}%", bare / 1e9, 100.0 * total / best / bare);
    Ok(())
}
