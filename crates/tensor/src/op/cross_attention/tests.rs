//! Cross-attention against finite differences and PyTorch, and its independence of other groups and of threads.

use rayon::ThreadPoolBuilder;

use super::*;
use crate::testkit::{Case, check_gradients, matrix};
use crate::{Gradients, Mode, Parameters, Tensor, Threads};

fn ragged(lengths: &[usize]) -> Ragged {
    Ragged::from_lengths(lengths.iter().copied())
}

fn form(heads: usize, shared: bool, rate: f32) -> AttentionConfig {
    let dropout = Dropout::new(rate, 5, Mode::Train).unwrap();
    AttentionConfig { heads: Heads(heads), scale: 0.6, shared, dropout }
}

/// Groups without queries, without keys, without either, with few and with many queries.
const QUERIES: [usize; 7] = [2, 0, 3, 0, 1, 6, 1];
const KEYS: [usize; 7] = [3, 2, 0, 0, 9, 5, 1];

#[test]
fn gradients_match_finite_differences() {
    for (queries, keys) in [(&QUERIES[..], &KEYS[..]), (&[1], &[1]), (&[0], &[3]), (&[2], &[0]), (&[], &[])] {
        let (queries, keys) = (ragged(queries), ragged(keys));
        let q = matrix(1, queries.total(), 6);
        for rate in [0.0, 0.4] {
            for (shared, k_cols, v_cols) in [(false, 6, 4), (true, 3, 5)] {
                let inputs = [q.clone(), matrix(2, keys.total(), k_cols), matrix(3, keys.total(), v_cols)];
                check_gradients(&inputs, |tape, x| {
                    tape.attention(x[0], x[1], x[2], &queries, &keys, form(2, shared, rate))
                });
                // The same variable for keys and values.
                check_gradients(&inputs[..2], |tape, x| {
                    tape.attention(x[0], x[1], x[1], &queries, &keys, form(2, shared, rate))
                });
            }
        }
    }
}

#[test]
fn values_and_gradients_match_pytorch() {
    let (queries, keys) = (ragged(&[2, 0, 5, 1]), ragged(&[3, 2, 4, 6]));
    // The whole of `torch.nn.MultiheadAttention` with keys of another width, one group at a time.
    let names =
        ["x", "memory", "q_weight", "k_weight", "v_weight", "q_bias", "k_bias", "v_bias", "out_weight", "out_bias"];
    Case::load("cross_attention").check(&names, |tape, x| {
        let q = tape.linear(x[0], x[2], Some(x[5]), None)?;
        let k = tape.linear(x[1], x[3], Some(x[6]), None)?;
        let v = tape.linear(x[1], x[4], Some(x[7]), None)?;
        let scale = 1.0 / 3.0_f32.sqrt();
        let form = AttentionConfig { scale, ..form(2, false, 0.0) };
        let attended = tape.attention(q, k, v, &queries, &keys, form)?;
        tape.linear(attended, x[8], Some(x[9]), None)
    });
    let keys = ragged(&[3, 0, 4, 6]);
    Case::load("shared_attention")
        .check(&["q", "k", "v"], |tape, x| tape.attention(x[0], x[1], x[2], &queries, &keys, form(2, true, 0.0)));
}

#[test]
fn attention_of_a_batch_with_itself_is_self_attention() {
    let batch = ragged(&[3, 0, 1, 7]);
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let qkv = tape.input(matrix(1, 11, 3 * 6));
    let dropout = Dropout::new(0.3, 9, Mode::Train).unwrap();
    let expected = tape.self_attention(qkv, &batch, Heads(2), dropout).unwrap();
    let [q, k, v] = [0, 6, 12].map(|first| tape.columns(qkv, first, 6).unwrap());
    let form = AttentionConfig { heads: Heads(2), scale: 1.0 / 3.0_f32.sqrt(), shared: false, dropout };
    let got = tape.attention(q, k, v, &batch, &batch, form).unwrap();
    let pairs = tape.value(got).values().iter().zip(tape.value(expected).values());
    assert!(pairs.clone().all(|(got, expected)| (got - expected).abs() < 1e-6), "the same values fall");
}

#[test]
fn shared_heads_match_heads_with_equal_keys() {
    let (queries, keys) = (ragged(&QUERIES), ragged(&KEYS));
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let q = tape.input(matrix(1, 13, 6));
    let (k, v) = (tape.input(matrix(2, 20, 3)), tape.input(matrix(3, 20, 5)));
    let shared = tape.attention(q, k, v, &queries, &keys, form(2, true, 0.0)).unwrap();
    let (k2, v2) = (tape.concat(&[k, k]).unwrap(), tape.concat(&[v, v]).unwrap());
    let apart = tape.attention(q, k2, v2, &queries, &keys, form(2, false, 0.0)).unwrap();
    let pairs = tape.value(shared).values().iter().zip(tape.value(apart).values());
    assert!(pairs.clone().all(|(shared, apart)| (shared - apart).abs() < 1e-6));
}

/// The output and the gradients of all three inputs.
fn run(parts: [&[f32]; 3], lengths: [&[usize]; 2], shared: bool, threads: Threads) -> Vec<Vec<f32>> {
    let parameters = Parameters::default();
    let mut tape = Tape::with_threads(&parameters, threads);
    let [queries, keys] = lengths.map(ragged);
    let widths = if shared { [24, 12, 10] } else { [24, 24, 20] };
    let totals = [queries.total(), keys.total(), keys.total()];
    let mut vars = Vec::new();
    for ((part, cols), rows) in parts.into_iter().zip(widths).zip(totals) {
        vars.push(tape.leaf(Tensor::matrix(rows, cols, part[..rows * cols].to_vec()).unwrap()));
    }
    let y = tape.attention(vars[0], vars[1], vars[2], &queries, &keys, form(2, shared, 0.0)).unwrap();
    let value = tape.value(y).values().to_vec();
    let seed = Tensor::full(tape.shape(y), 0.25);
    let mut gradients = Gradients::zeros(&parameters);
    tape.backward_from(y, seed, &mut gradients).unwrap();
    let gradients = vars.iter().map(|&var| gradients.leaf(var).unwrap().values().to_vec());
    std::iter::once(value).chain(gradients).collect()
}

/// The same in `f64`, one group and head at a time, without sharing. Seed of the gradients: 0.25.
fn reference([q, k, v]: [&[f32]; 3], [queries, keys]: [&[usize]; 2]) -> Vec<Vec<f64>> {
    let (d_key, d_value, scale) = (12, 10, f64::from(0.6_f32));
    let mut out: Vec<Vec<f64>> = vec![Vec::new(); 4];
    let totals = [queries, keys, keys].map(|lengths| lengths.iter().sum::<usize>());
    for (to, len) in out.iter_mut().zip([totals[0] * 20, totals[0] * 24, totals[1] * 24, totals[2] * 20]) {
        to.resize(len, 0.0);
    }
    let (mut first_query, mut first_key) = (0, 0);
    for (&n_queries, &n_keys) in queries.iter().zip(keys) {
        for (head, i) in (0..2).flat_map(|head| (0..n_queries).map(move |i| (head, i))) {
            let q_at = |c: usize| (first_query + i) * 24 + head * d_key + c;
            let k_at = |j: usize, c: usize| (first_key + j) * 24 + head * d_key + c;
            let v_at = |j: usize, c: usize| (first_key + j) * 20 + head * d_value + c;
            let dot = |j: usize| (0..d_key).map(|c| f64::from(q[q_at(c)]) * f64::from(k[k_at(j, c)])).sum::<f64>();
            let scores: Vec<f64> = (0..n_keys).map(|j| (scale * dot(j)).exp()).collect();
            let total: f64 = scores.iter().sum();
            let weights: Vec<f64> = scores.iter().map(|score| score / total).collect();
            // The gradient of a weight is 0.25 times the sum of its values.
            let slopes: Vec<f64> =
                (0..n_keys).map(|j| 0.25 * (0..d_value).map(|c| f64::from(v[v_at(j, c)])).sum::<f64>()).collect();
            let mean: f64 = weights.iter().zip(&slopes).map(|(weight, slope)| weight * slope).sum();
            for (j, (weight, slope)) in weights.iter().zip(&slopes).enumerate() {
                for c in 0..d_value {
                    out[0][(first_query + i) * 20 + head * d_value + c] += weight * f64::from(v[v_at(j, c)]);
                    out[3][v_at(j, c)] += 0.25 * weight;
                }
                let d_score = scale * weight * (slope - mean);
                for c in 0..d_key {
                    out[1][q_at(c)] += d_score * f64::from(k[k_at(j, c)]);
                    out[2][k_at(j, c)] += d_score * f64::from(q[q_at(c)]);
                }
            }
        }
        (first_query, first_key) = (first_query + n_queries, first_key + n_keys);
    }
    out
}

#[test]
fn many_keys_match_a_reference_in_double_precision() {
    let lengths: [&[usize]; 2] = [&[65, 5, 0, 128, 3, 200], &[65, 200, 7, 128, 0, 129]];
    let [n_queries, n_keys] = lengths.map(|lengths| lengths.iter().sum::<usize>());
    let (q, k, v) = (matrix(1, n_queries, 24), matrix(2, n_keys, 24), matrix(3, n_keys, 20));
    let parts = [q.values(), k.values(), v.values()];
    let (got, expected) = (run(parts, lengths, false, Threads::Pool), reference(parts, lengths));
    for (which, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert_eq!(got.len(), expected.len());
        let scale = expected.iter().fold(1e-3_f64, |most, x| most.max(x.abs()));
        let off = got.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).abs() / scale).fold(0.0, f64::max);
        assert!(off < 1e-5, "tensor {which} is off by {off:.1e}");
    }
}

#[test]
fn a_group_does_not_depend_on_others() {
    for shared in [false, true] {
        for (n_queries, n_keys) in [(1, 20), (2, 7), (9, 21)] {
            let (q, k, v) = (matrix(1, 40, 24), matrix(2, 60, 24), matrix(3, 60, 24));
            let [q, k, v] = [q.values(), k.values(), v.values()];
            let together = run([q, k, v], [&[5, n_queries, 3], &[4, n_keys, 30]], shared, Threads::Pool);
            let (k_cols, v_cols) = if shared { (12, 10) } else { (24, 20) };
            let cut = [&q[5 * 24..], &k[4 * k_cols..], &v[4 * v_cols..]];
            let alone = run(cut, [&[n_queries], &[n_keys]], shared, Threads::Caller);
            let firsts = [5 * 20, 5 * 24, 4 * k_cols, 4 * v_cols];
            for ((together, alone), first) in together.iter().zip(&alone).zip(firsts) {
                assert_eq!(together[first..first + alone.len()], alone[..]);
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let (q, k, v) = (matrix(1, 400, 24), matrix(2, 2000, 24), matrix(3, 2000, 24));
    let queries: Vec<usize> = (0..150).map(|i| if i % 10 == 0 { 8 } else { i % 3 }).collect();
    let keys: Vec<usize> = (0..150).map(|i| i * 7 % 23).collect();
    let parts = [q.values(), k.values(), v.values()];
    for shared in [false, true] {
        let alone = run(parts, [&queries, &keys], shared, Threads::Caller);
        for n_threads in [1, 2, 3] {
            let pool = ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let got = pool.install(|| run(parts, [&queries, &keys], shared, Threads::Pool));
            assert_eq!(got, alone, "{n_threads} threads");
        }
    }
}

#[test]
fn bad_shapes_are_refused() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let (q, k, v) = (tape.input(matrix(1, 3, 6)), tape.input(matrix(2, 4, 6)), tape.input(matrix(3, 4, 8)));
    let (queries, keys) = (ragged(&[1, 2]), ragged(&[3, 1]));
    let mut error = |k, queries: &Ragged, keys: &Ragged, form: AttentionConfig| {
        tape.attention(q, k, v, queries, keys, form).unwrap_err().to_string()
    };
    let plain = form(2, false, 0.0);
    assert_eq!(
        error(k, &ragged(&[3]), &keys, plain),
        "attention: q has shape [3, 6], but a group of queries for each of 2 groups of keys is needed"
    );
    assert_eq!(error(v, &queries, &keys, plain), "attention: k has shape [4, 8], but [T, 6] is needed");
    assert_eq!(error(k, &queries, &keys, form(2, true, 0.0)), "attention: k has shape [4, 6], but [T, 3] is needed");
    assert_eq!(
        error(k, &queries, &keys, form(4, false, 0.0)),
        "attention: q has shape [3, 6], but [T, D] with D a multiple of 4 heads is needed"
    );
    assert_eq!(error(k, &queries, &ragged(&[3, 2]), plain), "attention: k has shape [4, 6], but [5, D] is needed");
}
