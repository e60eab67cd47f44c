//! A model of all operations gives the same bits on any number of threads.

use std::sync::Arc;

use rayon::ThreadPoolBuilder;

use crate::chunks::{self, Chunks};
use crate::testkit::{matrix, vector};
use crate::{
    Activation, AttentionConfig, Device, Dropout, Gradients, Heads, Indices, Mode, ParameterId, Parameters, Ragged,
    Result, StateTable, Tape, Tensor, Var,
};

const D: usize = 12;
const ROWS: u32 = 300;

struct Model {
    parameters: Parameters,
    ids: Vec<ParameterId>,
    keys: Ragged,
}

impl Model {
    fn new() -> Self {
        let mut parameters = Parameters::default();
        let weights =
            [matrix(1, 3 * D, D), matrix(2, 3 * D, D), matrix(3, D, D), matrix(4, 4 * D, D), matrix(5, 90, D)];
        let weights = weights.into_iter().chain([vector(6, D), vector(7, D), matrix(8, D, 2 * D)]);
        let mut ids = Vec::new();
        for (index, mut weight) in weights.enumerate() {
            weight.values_mut().iter_mut().for_each(|x| *x *= 0.3);
            ids.push(parameters.add(index.to_string(), weight).unwrap());
        }
        Self { parameters, ids, keys: Ragged::from_lengths((0..ROWS as usize).map(|i| i * 5 % 7)) }
    }

    fn loss(&self, tape: &mut Tape<'_>, table: &StateTable) -> Result<(Var, Vec<f32>)> {
        let w: Vec<Var> = self.ids.iter().map(|&id| tape.parameter(id)).collect();
        let nodes: Indices = (0..ROWS).collect();
        let dropout = Dropout::new(0.1, 3, Mode::Train)?;
        let x = tape.gather(w[4], (0..ROWS).map(|i| i * i % 90).collect::<Vec<_>>())?;
        let h = tape.read_state(table, &nodes)?;
        let (input, hidden) = (tape.linear(x, w[0], None, None)?, tape.linear(h, w[1], None, None)?);
        let state = tape.gru(input, hidden, h)?; // [ROWS, D]
        tape.write_state(table, &nodes, state)?;
        let n_keys = u32::try_from(self.keys.total()).unwrap_or_default();
        let keys = tape.gather(state, (0..n_keys).map(|i| i * 31 % ROWS).collect::<Vec<_>>())?;
        let queries = Ragged::from_lengths(vec![1; ROWS as usize]);
        let form = AttentionConfig { heads: Heads(2), scale: 0.3, shared: false, dropout };
        let attended = tape.attention(state, keys, keys, &queries, &self.keys, form)?;
        let attended = tape.matmul(attended, w[2])?;
        let attended = tape.dropout(attended, dropout);
        let sum = tape.add(attended, state)?;
        let normal = tape.layer_norm(sum, w[5], w[6])?;
        let gates = tape.linear(normal, w[3], None, None)?;
        let cell = tape.lstm(gates, Some(state))?; // [ROWS, 2D]
        let cell = tape.linear(cell, w[7], None, Some(Activation::Tanh))?;
        let swapped = tape.swap_axes(cell, 2)?; // [ROWS / 2 · D, 2]
        let back = tape.swap_axes(swapped, D)?;
        let weights = Arc::new(matrix(9, self.keys.total(), 1));
        let sums = tape.segment_sum(keys, Some(&weights), &self.keys)?;
        let means = tape.segment_mean(keys, &self.keys)?;
        let product = tape.mul(sums, means)?;
        let placed = tape.scatter(product, (0..ROWS).map(|i| i * 7 % 80).collect::<Vec<_>>(), 80)?;
        let all = tape.concat_rows(&[back, placed])?;
        let both = tape.concat(&[all, all])?;
        let some = tape.columns(both, 5, D)?;
        let count = tape.shape(some).len();
        let logits = tape.reshape(some, count, 1)?;
        let loss = tape.bce_with_logits(logits, &vec![1.0; count], count)?;
        let values = tape.read(logits)?;
        Ok((loss, values))
    }

    /// Values, gradients and the state table after two batches of one chunk each, and an evaluation.
    fn run(&self) -> (Vec<Vec<f32>>, Gradients, Vec<f32>) {
        let table = StateTable::zeros(&Device::cpu(), ROWS as usize, D).unwrap();
        let mut gradients = Gradients::zeros(&self.parameters);
        let mut groups = Chunks::new(&self.parameters);
        let mut values = Vec::new();
        for _ in 0..2 {
            let forward = |tape: &mut Tape<'_>, (): &()| self.loss(tape, &table);
            values.extend(groups.run(&self.parameters, &[()], &mut gradients, forward).unwrap());
        }
        let forward = |tape: &mut Tape<'_>, (): &()| self.loss(tape, &table).map(|(_, values)| values);
        values.extend(chunks::evaluate(&self.parameters, &[()], forward).unwrap());
        (values, gradients, table.values().unwrap())
    }
}

#[test]
fn results_of_one_chunk_do_not_depend_on_threads() {
    let model = Model::new();
    let run = |n_threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| model.run())
    };
    let expected = run(1);
    assert!(expected.1.is_finite() && expected.2.iter().any(|&x| x != 0.0));
    assert!(expected.1.parameters.iter().all(|grad: &Tensor| grad.values().iter().any(|&x| x != 0.0)));
    for n_threads in [2, 3] {
        assert_eq!(run(n_threads), expected, "{n_threads} threads");
    }
}
