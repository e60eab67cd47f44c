//! Biases of attention against separate operations and finite differences.

use super::*;
use crate::relations::SequenceRelations;

/// Relations of sequences of these lengths: about `per_class` tokens of each class, every third pair of classes related.
fn relations(lengths: &[usize], per_class: usize) -> Relations {
    let (mut classes, mut pairs, mut n_pairs) = (Vec::new(), Vec::new(), Vec::new());
    for (at, &n) in lengths.iter().enumerate() {
        let n_classes = n.div_ceil(per_class);
        classes.extend((0..n).map(|token| u32::try_from((token + at) % n_classes.max(1)).unwrap()));
        let first = pairs.len();
        for high in 0..u32::try_from(n_classes).unwrap() {
            pairs.extend((0..=high).filter(|low| (high + 2 * low + 1).is_multiple_of(3)).map(|low| [high, low]));
        }
        n_pairs.push(pairs.len() - first);
    }
    let sequences = Ragged::from_lengths(lengths.iter().copied());
    Relations::new(&sequences, classes, pairs, Ragged::from_lengths(n_pairs)).unwrap()
}

/// The table's row of each pair of tokens, found one by one.
fn rows_of(of: SequenceRelations<'_>) -> Vec<u32> {
    let row = |a: u32, b: u32| {
        let found = of.pairs.iter().position(|pair| *pair == [a.max(b), a.min(b)]);
        let shared = if a == b { Relations::SAME } else { Relations::NOT_RELATED };
        u32::try_from(found.map_or(shared, |at| of.first_row + at)).unwrap()
    };
    of.classes.iter().flat_map(|&a| of.classes.iter().map(move |&b| row(a, b))).collect()
}

/// Attention with biases as separate operations, for one head of one sequence.
fn attend(tape: &mut Tape<'_>, [q, k, v]: [Var; 3], bias: Var, scale: f32) -> Result<Var> {
    let scores = tape.linear(q, k, None, None)?;
    let scales = tape.input(Tensor::full(tape.shape(scores), scale));
    let scores = tape.mul(scores, scales)?;
    let scores = tape.add(scores, bias)?;
    let weights = tape.softmax(scores);
    tape.matmul(weights, v)
}

/// [`Tape::biased_encoder`] as separate operations, without dropout.
fn composed(
    tape: &mut Tape<'_>,
    mut x: Var,
    blocks: &[BlockVars],
    heads: Heads,
    batch: &Ragged,
    bias: &AttentionBias,
) -> Result<Var> {
    let d = tape.shape(x).cols();
    let width = d / heads.0;
    for (index, w) in blocks.iter().enumerate() {
        let normal = tape.layer_norm(x, w.norm1[0], w.norm1[1])?;
        let qkv = tape.linear(normal, w.qkv[0], Some(w.qkv[1]), None)?;
        let mut parts = Vec::new();
        for (range, of) in batch.ranges().zip(bias.relations.of_sequences()) {
            let n = range.len();
            if n == 0 {
                continue;
            }
            let rows = tape.gather(qkv, range.map(|row| u32::try_from(row).unwrap()).collect::<Vec<u32>>())?;
            let mut of_heads = Vec::new();
            for head in 0..heads.0 {
                let part = |tape: &mut Tape<'_>, part: usize| tape.columns(rows, part * d + head * width, width);
                let qkv = [part(tape, 0)?, part(tape, 1)?, part(tape, 2)?];
                let column = tape.columns(bias.table, index * heads.0 + head, 1)?;
                let spread = tape.gather(column, rows_of(of))?;
                let spread = tape.reshape(spread, n, n)?;
                of_heads.push(attend(tape, qkv, spread, heads.scale(d))?);
            }
            parts.push(tape.concat(&of_heads)?);
        }
        let attended = tape.concat_rows(&parts)?;
        let attended = tape.linear(attended, w.out[0], Some(w.out[1]), None)?;
        x = tape.add(x, attended)?;
        let normal = tape.layer_norm(x, w.norm2[0], w.norm2[1])?;
        let hidden = tape.linear(normal, w.up[0], Some(w.up[1]), Some(Activation::Gelu))?;
        let out = tape.linear(hidden, w.down[0], Some(w.down[1]), None)?;
        x = tape.add(x, out)?;
    }
    tape.segment_mean(x, batch)
}

/// x, the weights of the blocks, and a table of biases of size 1.
fn biased_inputs(
    n_blocks: usize,
    heads: Heads,
    relations: &Relations,
    (rows, d, f): (usize, usize, usize),
) -> Vec<Tensor> {
    let mut all = inputs(n_blocks, rows, d, f);
    all.push(matrix(33, relations.n_rows(), n_blocks * heads.0));
    all
}

/// The table is the last of the inputs.
fn split(x: &[Var], relations: &Relations) -> (Var, Vec<BlockVars>, AttentionBias) {
    let (&table, rest) = x.split_last().unwrap();
    (rest[0], all_vars(&rest[1..]), AttentionBias { table, relations: relations.clone() })
}

#[test]
fn gradients_of_a_biased_encoder_match_finite_differences() {
    let (lengths, heads) = ([3, 0, 1, 4], Heads(2));
    let batch = Ragged::from_lengths(lengths);
    let relations = relations(&lengths, 2);
    for dropout in [Dropout::NONE, train(0.3)] {
        let form = EncoderConfig { heads, dropout };
        check_gradients(&biased_inputs(2, heads, &relations, (8, 6, 5)), |tape, x| {
            let (x, blocks, bias) = split(x, &relations);
            tape.biased_encoder(x, &blocks, form, &batch, &batch, &bias)
        });
    }
}

#[test]
fn a_biased_encoder_matches_separate_operations() {
    let (lengths, heads) = ([65, 0, 1, 13, 128, 200], Heads(3));
    let batch = Ragged::from_lengths(lengths);
    for per_class in [1, 3, 100] {
        let relations = relations(&lengths, per_class);
        let inputs = biased_inputs(2, heads, &relations, (batch.total(), 24, 56));
        let form = EncoderConfig { heads, dropout: Dropout::NONE };
        let fused = run(&inputs, |tape, x| {
            let (x, blocks, bias) = split(x, &relations);
            tape.biased_encoder(x, &blocks, form, &batch, &batch, &bias)
        });
        let small = run(&inputs, |tape, x| {
            let (x, blocks, bias) = split(x, &relations);
            composed(tape, x, &blocks, heads, &batch, &bias)
        });
        for (which, (fused, small)) in fused.iter().zip(&small).enumerate() {
            let scale = small.values().iter().fold(1.0_f32, |max, x| max.max(x.abs()));
            for (fused, small) in fused.values().iter().zip(small.values()) {
                let off = (fused - small).abs() / scale;
                assert!(off <= TOLERANCE, "{per_class} tokens a class, tensor {which}: {fused} {small}");
            }
        }
    }
}

#[test]
fn equal_biases_change_nothing() {
    let lengths = [5, 9];
    let (batch, relations) = (Ragged::from_lengths(lengths), relations(&lengths, 2));
    let form = EncoderConfig { heads: Heads(2), dropout: Dropout::NONE };
    let mut all = biased_inputs(1, Heads(2), &relations, (14, 8, 12));
    let last = all.len() - 1;
    all[last] = Tensor::zeros(all[last].shape());
    let biased = run(&all, |tape, x| {
        let (x, blocks, bias) = split(x, &relations);
        tape.biased_encoder(x, &blocks, form, &batch, &batch, &bias)
    });
    let plain = run(&all[..last], |tape, x| tape.encoder(x[0], &all_vars(&x[1..]), form, &batch, &batch));
    assert_eq!(biased[..=last], plain[..], "the value, and all gradients but those of the biases");
}

#[test]
fn results_of_a_biased_sequence_do_not_depend_on_its_batch() {
    let lengths = [7, 20, 1, 13];
    let (all, heads) = (relations(&lengths, 2), Heads(2));
    let inputs = biased_inputs(2, heads, &all, (41, 24, 48));
    let form = EncoderConfig { heads, dropout: Dropout::NONE };
    let values = |lengths: &[usize], relations: &Relations, x: Tensor, table: Tensor| {
        let batch = Ragged::from_lengths(lengths.iter().copied());
        let mut inputs = inputs.clone();
        let last = inputs.len() - 1;
        (inputs[0], inputs[last]) = (x, table);
        let result = run(&inputs, |tape, x| {
            let (x, blocks, bias) = split(x, relations);
            tape.biased_encoder(x, &blocks, form, &batch, &batch, &bias)
        });
        result[0].values().to_vec()
    };
    let (x, table) = (inputs[0].clone(), inputs[inputs.len() - 1].clone());
    let together = values(&lengths, &all, x.clone(), table.clone());
    let mut first = 0;
    for (at, of) in all.of_sequences().enumerate() {
        let n = lengths[at];
        let rows = Tensor::matrix(n, 24, x.values()[24 * first..24 * (first + n)].to_vec()).unwrap();
        first += n;
        let cols = table.cols();
        let own = of.first_row * cols..(of.first_row + of.pairs.len()) * cols;
        let own_table = [&table.values()[..2 * cols], &table.values()[own]].concat();
        let own_table = Tensor::matrix(2 + of.pairs.len(), cols, own_table).unwrap();
        let (one, list) = (Ragged::from_lengths([n]), Ragged::from_lengths([of.pairs.len()]));
        let alone = Relations::new(&one, of.classes.to_vec(), of.pairs.to_vec(), list).unwrap();
        assert_eq!(values(&[n], &alone, rows, own_table), together[24 * at..24 * (at + 1)]);
    }
}

#[test]
fn tables_and_relations_that_do_not_fit_are_refused() {
    let (batch, of) = (Ragged::from_lengths([4]), relations(&[4], 2));
    let inputs = biased_inputs(1, Heads(2), &of, (4, 6, 8));
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let vars: Vec<Var> = inputs.iter().map(|input| tape.input(input.clone())).collect();
    let (x, blocks, bias) = split(&vars, &of);
    let form = EncoderConfig { heads: Heads(2), dropout: Dropout::NONE };
    let narrow = AttentionBias { table: x, ..bias.clone() };
    let error = tape.biased_encoder(x, &blocks, form, &batch, &batch, &narrow).unwrap_err();
    assert_eq!(error.to_string(), "encoder: the table of biases has shape [4, 6], but [2, 2] is needed");
    let other = AttentionBias { relations: relations(&[3, 1], 2), ..bias };
    let table = tape.input(matrix(1, other.relations.n_rows(), 2));
    let error = tape.biased_encoder(x, &blocks, form, &batch, &batch, &AttentionBias { table, ..other }).unwrap_err();
    assert_eq!(error.to_string(), "found relations of other sequences, expected those of the batch");
}
