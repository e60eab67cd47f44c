//! Operations and their inputs.

use std::sync::Arc;

use super::Case;
use hopedgn_tensor::init::{self, Uniform};
use hopedgn_tensor::{
    Activation, AttentionBias, AttentionConfig, BceTerm, BlockVars, Dropout, EncoderConfig, Heads, Indices, Mode,
    PadRagged, Ragged, Relations, Result, Shape, StateTable, Tape, Tensor, Var,
};

pub(super) fn all(random: &mut impl Uniform) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, activation) in [
        ("linear", None),
        ("linear, relu", Some(Activation::Relu)),
        ("linear, gelu", Some(Activation::Gelu)),
        ("linear, sigmoid", Some(Activation::Sigmoid)),
        ("linear, tanh", Some(Activation::Tanh)),
        ("linear, cos", Some(Activation::Cos)),
    ] {
        let mut bias = vector(random, 52);
        if activation == Some(Activation::Relu) {
            // Far from 0: near it, rounding decides whether the gradient is zero.
            bias.values_mut().iter_mut().for_each(|x| *x = x.signum() * 40.0);
        }
        let inputs = vec![matrix(random, 1300, 36), matrix(random, 52, 36), bias];
        cases.push(Case::new(name, inputs, move |tape, x| tape.linear(x[0], x[1], Some(x[2]), activation)));
    }
    cases.extend(narrow(random));
    let mut ages = matrix(random, 700, 1);
    ages.values_mut().iter_mut().for_each(|age| *age *= 1e5);
    let inputs = vec![matrix(random, 24, 1), vector(random, 24)];
    cases.push(Case::new("time encoding", inputs, move |tape, x| {
        let ages = tape.input(ages.clone());
        tape.linear(ages, x[0], Some(x[1]), Some(Activation::Cos))
    }));
    let picked: Indices = (0..400_u32).map(|i| i * i % 90).collect();
    let places: Indices = (0..400_u32).map(|i| i * 7 % 450).collect();
    let in_order: Indices = (0..400_u32).map(|i| i + i / 9).collect();
    cases.push(Case::new("gather", vec![matrix(random, 90, 7)], move |tape, x| tape.gather(x[0], &picked)));
    let mostly_one: Indices = (0..3000_u32).map(|i| if i % 7 == 0 { i % 90 } else { 3 }).collect();
    let by = Arc::new(matrix(random, 3000, 7));
    cases.push(Case::new("gather, one row often", vec![matrix(random, 90, 7)], move |tape, x| {
        let y = tape.gather(x[0], &mostly_one)?;
        multiplied(tape, y, &by)
    }));
    cases.extend(staged(random));
    cases.push(Case::new("scatter", vec![matrix(random, 400, 7)], move |tape, x| tape.scatter(x[0], &places, 450)));
    cases.push(Case::new("scatter, in order", vec![matrix(random, 400, 7)], move |tape, x| {
        tape.scatter(x[0], &in_order, 450)
    }));
    cases.push(Case::new("reshape", vec![matrix(random, 40, 6)], |tape, x| tape.reshape(x[0], 20, 12)));
    cases.push(Case::new("repeat row", vec![vector(random, 33)], |tape, x| tape.repeat_row(x[0], 700)));
    let inputs = vec![matrix(random, 300, 50), matrix(random, 300, 3), matrix(random, 300, 50)];
    cases.push(Case::new("concat", inputs, |tape, x| tape.concat(&[x[0], x[1], x[2]])));
    let targets: Vec<f32> = (0..500_u16).map(|i| f32::from(i % 2)).collect();
    cases.push(Case::new("cross-entropy", vec![matrix(random, 500, 1)], move |tape, x| {
        tape.bce_with_logits(x[0], &targets, 700)
    }));
    let term =
        |i: u16| BceTerm { target: f32::from(i % 2), offset: f32::from(i % 5) - 2.0, weight: f32::from(i % 3) / 300.0 };
    let terms: Vec<BceTerm> = (0..500).map(term).collect();
    cases.push(Case::new("weighted cross-entropy", vec![matrix(random, 250, 2)], move |tape, x| {
        tape.weighted_bce_with_logits(x[0], &terms)
    }));
    for (name, lengths, width, heads, rate) in [
        ("encoder", vec![64; 6], 200, 2, 0.0),
        ("encoder, dropout", vec![64; 6], 200, 2, 0.1),
        ("encoder, ragged", vec![3, 64, 0, 1, 40, 17, 63, 5, 33], 48, 4, 0.2),
        ("encoder, long", vec![150, 65, 300, 2], 32, 2, 0.1),
        ("encoder, 65, 128 and 200 tokens", vec![65, 128, 200, 64, 0, 1], 48, 4, 0.1),
        ("encoder, 128 tokens", vec![128; 3], 200, 2, 0.0),
    ] {
        cases.push(encoder(name, &lengths, (width, heads, rate), None, random));
    }
    for (name, lengths, (width, heads, rate), per_class) in [
        ("encoder, relations", vec![64; 6], (200, 2, 0.0), 1),
        ("encoder, relations, nodes often", vec![64; 6], (200, 2, 0.1), 7),
        ("encoder, relations, ragged", vec![3, 64, 0, 1, 40, 17, 63, 5, 33], (48, 4, 0.2), 2),
        ("encoder, relations, long", vec![150, 65, 300, 2], (32, 2, 0.1), 3),
        ("encoder, relations, 65, 128 and 200 tokens", vec![65, 128, 200, 64, 0, 1], (48, 4, 0.1), 3),
        ("encoder, relations, 128 tokens", vec![128; 3], (200, 2, 0.0), 5),
        ("encoder, relations, two nodes", vec![70, 64, 51], (32, 2, 0.0), 50),
    ] {
        cases.push(encoder(name, &lengths, (width, heads, rate), Some(per_class), random));
    }
    cases.extend(values(random));
    cases.extend(layouts(random));
    cases.extend(cells(random));
    cases.extend(attentions(random));
    cases.push(state_table(random));
    cases
}

/// Indices and lists that prefetch threads have staged in pinned memory: with the inverse index of the backward pass, also split
/// into segments, for another number of rows, and without it.
fn staged(random: &mut impl Uniform) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, staged_for, step) in [
        ("gather, staged", Some(90), 1),
        ("gather, staged, one row often", Some(90), 7),
        ("gather, staged for other rows", Some(91), 7),
        ("gather, staged indices only", None, 7),
    ] {
        let by = Arc::new(matrix(random, 3000, 7));
        cases.push(Case::on_device(name, vec![matrix(random, 90, 7)], move |device, tape, x| {
            let picked: Indices = (0..3000_u32).map(|i| if i % step == 0 { i % 90 } else { 3 }).collect();
            device.stage_indices(&picked, staged_for)?;
            let y = tape.gather(x[0], &picked)?;
            multiplied(tape, y, &by)
        }));
    }
    let inputs = vec![matrix(random, 900, 1)];
    cases.push(Case::on_device("pad ragged, staged", inputs, |device, tape, x| {
        let lists = Ragged::from_lengths((0..600).map(|i| i % 4));
        device.stage_offsets(&lists)?;
        tape.pad_ragged(x[0], &lists, PadRagged { lists_per_row: 2, max_len: 3, fill_value: 0.0, with_mask: true })
    }));
    cases
}

/// Multiplies by random factors. The weights of the compared sum repeat and nearly cancel over many rows; without the factors the
/// gradient would be mostly rounding.
fn multiplied(tape: &mut Tape<'_>, y: Var, by: &Arc<Tensor>) -> Result<Var> {
    let by = tape.input(Arc::clone(by));
    tape.mul(y, by)
}

/// Narrow layers over many rows, which have GPU kernels of their own.
fn narrow(random: &mut impl Uniform) -> Vec<Case> {
    let inputs = vec![
        matrix(random, 4103, 100),
        matrix(random, 50, 100),
        vector(random, 50),
        matrix(random, 6, 50),
        vector(random, 6),
    ];
    let by = Arc::new(matrix(random, 4103, 6));
    let chain = Case::new("linear, narrow", inputs, move |tape, x| {
        let hidden = tape.linear(x[0], x[1], Some(x[2]), None)?;
        let y = tape.linear(hidden, x[3], Some(x[4]), None)?;
        multiplied(tape, y, &by)
    });
    let mut cases = vec![chain];
    for (name, activation) in [("linear, narrow, relu", Activation::Relu), ("linear, narrow, tanh", Activation::Tanh)] {
        let mut bias = vector(random, 8);
        if activation == Activation::Relu {
            // Far from 0, as above.
            bias.values_mut().iter_mut().for_each(|x| *x = x.signum() * 40.0);
        }
        let inputs = vec![matrix(random, 4160, 20), matrix(random, 8, 20), bias];
        let by = Arc::new(matrix(random, 4160, 8));
        cases.push(Case::new(name, inputs, move |tape, x| {
            let y = tape.linear(x[0], x[1], Some(x[2]), Some(activation))?;
            multiplied(tape, y, &by)
        }));
    }
    let table = Arc::new(matrix(random, 25_601, 172));
    cases.push(Case::new("linear, narrow, of a table", vec![matrix(random, 64, 172)], move |tape, x| {
        let rows = tape.cached_input(&table);
        tape.linear(rows, x[0], None, None)
    }));
    cases
}

/// Single operations.
fn values(random: &mut impl Uniform) -> Vec<Case> {
    let mut pair = || vec![matrix(random, 130, 37), matrix(random, 130, 37)];
    let mut cases = vec![
        Case::new("add", pair(), |tape, x| tape.add(x[0], x[1])),
        Case::new("mul", pair(), |tape, x| tape.mul(x[0], x[1])),
        Case::new("add and mul, of the same", pair(), |tape, x| {
            let sum = tape.add(x[0], x[1])?;
            let square = tape.mul(sum, sum)?;
            let twice = tape.add(sum, sum)?;
            tape.add(square, twice)
        }),
        Case::new("softmax", pair(), |tape, x| Ok(tape.softmax(x[0]))),
        Case::new("dropout", pair(), |tape, x| {
            let kept = tape.dropout(x[0], Dropout::new(0.3, 5, Mode::Train)?);
            tape.add(kept, x[1])
        }),
    ];
    for (name, function) in [
        ("relu", Activation::Relu),
        ("gelu", Activation::Gelu),
        ("sigmoid", Activation::Sigmoid),
        ("tanh", Activation::Tanh),
        ("cos", Activation::Cos),
    ] {
        cases.push(Case::new(name, pair(), move |tape, x| {
            let y = tape.activate(x[0], function);
            tape.mul(y, x[1])
        }));
    }
    for (name, rows, cols) in [("layer norm", 300, 100), ("layer norm, wide", 70, 1300)] {
        let inputs = vec![matrix(random, rows, cols), vector(random, cols), vector(random, cols)];
        cases.push(Case::new(name, inputs, |tape, x| {
            let y = tape.layer_norm(x[0], x[1], x[2])?;
            tape.layer_norm(y, x[1], x[2])
        }));
    }
    let batch = Ragged::from_lengths((0..90).map(|i| i * 7 % 13));
    let weights = Arc::new(matrix(random, batch.total(), 1));
    for (name, kind) in [("segment mean", 0), ("segment sum", 1), ("segment sum, weighted", 2)] {
        let (batch, weights) = (batch.clone(), Arc::clone(&weights));
        cases.push(Case::new(name, vec![matrix(random, batch.total(), 21)], move |tape, x| match kind {
            0 => tape.segment_mean(x[0], &batch),
            1 => tape.segment_sum(x[0], None, &batch),
            _ => tape.segment_sum(x[0], Some(&weights), &batch),
        }));
    }
    cases
}

/// Matrix products, and operations that only move values.
fn layouts(random: &mut impl Uniform) -> Vec<Case> {
    let inputs = vec![matrix(random, 600, 36), matrix(random, 36, 52)];
    let stacked = vec![matrix(random, 60, 9), matrix(random, 0, 9), matrix(random, 1, 9), vector(random, 9)];
    let lists = Ragged::from_lengths((0..600).map(|i| i * 5 % 7));
    let slots = PadRagged { lists_per_row: 3, max_len: 6, fill_value: 0.5, with_mask: true };
    vec![
        Case::new("pad ragged", vec![matrix(random, lists.total(), 1)], move |tape, x| {
            let y = tape.activate(x[0], Activation::Tanh);
            let bare = tape.pad_ragged(y, &lists, PadRagged { with_mask: false, ..slots })?;
            let flagged = tape.pad_ragged(y, &lists, slots)?;
            tape.concat(&[bare, flagged])
        }),
        Case::new("matmul", inputs, |tape, x| tape.matmul(x[0], x[1])),
        Case::new("matmul, twice", vec![matrix(random, 48, 48)], |tape, x| {
            let square = tape.matmul(x[0], x[0])?;
            tape.matmul(square, x[0])
        }),
        Case::new("stack", stacked, |tape, x| {
            let all = tape.concat_rows(&[x[0], x[1], x[2], x[3], x[0]])?;
            tape.concat_rows(&[all, all])
        }),
        Case::new("columns", vec![matrix(random, 150, 40)], |tape, x| {
            let some = tape.columns(x[0], 3, 30)?;
            let parts = [tape.columns(some, 0, 11)?, tape.columns(some, 8, 22)?, tape.columns(x[0], 39, 1)?];
            tape.concat(&parts)
        }),
        Case::new("swap axes", vec![matrix(random, 30 * 20, 70)], |tape, x| {
            let turned = tape.swap_axes(x[0], 20)?;
            let square = tape.mul(turned, turned)?;
            tape.swap_axes(square, 70)
        }),
        Case::new("swap axes, one group", vec![matrix(random, 90, 33)], |tape, x| tape.swap_axes(x[0], 90)),
    ]
}

fn cells(random: &mut impl Uniform) -> Vec<Case> {
    let inputs = vec![matrix(random, 110, 3 * 29), matrix(random, 110, 3 * 29), matrix(random, 110, 29)];
    let gates = vec![matrix(random, 110, 4 * 29), matrix(random, 110, 29)];
    let first = vec![matrix(random, 110, 4 * 29)];
    vec![
        Case::new("gru", inputs.clone(), |tape, x| tape.gru(x[0], x[1], x[2])),
        Case::new("gru, twice", inputs, |tape, x| {
            let h = tape.gru(x[0], x[1], x[2])?;
            tape.gru(x[0], x[1], h)
        }),
        Case::new("lstm", gates, |tape, x| {
            let state = tape.lstm(x[0], Some(x[1]))?;
            let c = tape.columns(state, 29, 29)?;
            tape.lstm(x[0], Some(c))
        }),
        Case::new("lstm, first step", first, |tape, x| tape.lstm(x[0], None)),
    ]
}

fn attentions(random: &mut impl Uniform) -> Vec<Case> {
    let ragged: (Vec<usize>, Vec<usize>) = (vec![3, 0, 7, 1, 5, 64, 2, 0], vec![20, 4, 0, 1, 33, 64, 7, 0]);
    let single = (vec![1; 200], (0..200).map(|i| i * 3 % 21).collect());
    let long = (vec![1, 70, 9], vec![300, 290, 3]);
    let many = (vec![40, 6], vec![90, 70]);
    let wide = (vec![9], vec![12]);
    // Above two tiles of 32, with all operands in shared memory: the kernels in tiles, see `tile_grid` of the operation.
    let above_64 = (vec![65, 5, 0, 33, 1], vec![65, 128, 7, 0, 97]);
    let tiles_128 = (vec![128, 64], vec![128, 65]);
    let tiles_200 = (vec![200, 3, 70], vec![200, 199, 129]);
    let mut cases = Vec::new();
    for (name, (queries, keys), (heads, shared, rate), (d_key, d_value)) in [
        ("attention", &ragged, (2, false, 0.0), (43, 20)),
        ("attention, dropout", &ragged, (4, false, 0.2), (8, 33)),
        ("attention, shared", &ragged, (2, true, 0.0), (50, 37)),
        ("attention, shared, dropout", &ragged, (3, true, 0.2), (16, 150)),
        ("attention, one query", &single, (2, true, 0.1), (136, 136)),
        ("attention, one query, not shared", &single, (2, false, 0.1), (17, 40)),
        ("attention, long", &long, (2, false, 0.1), (24, 24)),
        ("attention, long, shared", &long, (2, true, 0.1), (30, 260)),
        ("attention, many and long", &many, (1, false, 0.1), (20, 20)),
        ("attention, many and long, shared", &many, (2, true, 0.1), (20, 24)),
        ("attention, 65 queries, 128 keys", &above_64, (2, false, 0.1), (20, 16)),
        ("attention, 65 queries, 128 keys, shared", &above_64, (2, true, 0.1), (12, 24)),
        ("attention, 128 keys", &tiles_128, (1, false, 0.0), (24, 24)),
        ("attention, 200 keys", &tiles_200, (2, false, 0.1), (16, 12)),
        ("attention, 200 keys, shared", &tiles_200, (3, true, 0.1), (10, 16)),
        ("attention, wide", &wide, (1, false, 0.0), (130, 130)),
    ] {
        let [queries, keys] = [queries, keys].map(|lengths| Ragged::from_lengths(lengths.iter().copied()));
        let n_heads = if shared { 1 } else { heads };
        let inputs = vec![
            matrix(random, queries.total(), heads * d_key),
            matrix(random, keys.total(), n_heads * d_key),
            matrix(random, keys.total(), n_heads * d_value),
        ];
        cases.push(Case::new(name, inputs, move |tape, x| {
            tape.attention(x[0], x[1], x[2], &queries, &keys, form(heads, shared, rate)?)
        }));
    }
    // Keys that are also the values, or the queries too, and the result of another operation.
    for (name, shared) in [("attention, keys as values", false), ("attention, shared keys as values", true)] {
        let [queries, keys] = [&single.0, &single.1].map(|lengths| Ragged::from_lengths(lengths.iter().copied()));
        let width = if shared { 12 } else { 24 };
        let inputs = vec![matrix(random, queries.total(), 24), matrix(random, keys.total(), width)];
        cases.push(Case::new(name, inputs, move |tape, x| {
            let k = tape.activate(x[1], Activation::Tanh);
            tape.attention(x[0], k, k, &queries, &keys, form(2, shared, 0.1)?)
        }));
    }
    let batch = Ragged::from_lengths([5, 0, 40, 1]);
    let own = batch.clone();
    let long = Ragged::from_lengths([65, 0, 200, 128, 1]);
    cases.push(Case::new(
        "self-attention, 65, 128 and 200 tokens",
        vec![matrix(random, 394, 3 * 16)],
        move |tape, x| tape.self_attention(x[0], &long, Heads(2), Dropout::new(0.1, 3, Mode::Train)?),
    ));
    cases.push(Case::new("attention, queries as keys and values", vec![matrix(random, 46, 24)], move |tape, x| {
        let y = tape.activate(x[0], Activation::Sigmoid);
        tape.attention(y, y, y, &own, &own, form(3, false, 0.1)?)
    }));
    cases.push(Case::new("self-attention", vec![matrix(random, 46, 3 * 24)], move |tape, x| {
        let qkv = tape.activate(x[0], Activation::Gelu);
        tape.self_attention(qkv, &batch, Heads(2), Dropout::new(0.1, 3, Mode::Train)?)
    }));
    cases
}

fn form(heads: usize, shared: bool, rate: f32) -> Result<AttentionConfig> {
    Ok(AttentionConfig { heads: Heads(heads), scale: 0.2, shared, dropout: Dropout::new(rate, 7, Mode::Train)? })
}

/// Writes rows of a state table, and computes with rows read before and after.
fn state_table(random: &mut impl Uniform) -> Case {
    let start: Vec<f32> = matrix(random, 90, 11).values().to_vec();
    let rows: Indices = (0..40_u32).map(|i| i * 7 % 90).collect();
    let asked: Indices = (0..120_u32).map(|i| i * i % 90).collect();
    let inputs = vec![matrix(random, 40, 11), matrix(random, 120, 11)];
    Case::on_device("state table", inputs, move |device, tape, x| {
        let table = StateTable::zeros(device, 90, 11)?;
        table.replace(&start)?;
        let before = tape.read_state(&table, &asked)?;
        let kept = tape.activate(x[0], Activation::Tanh);
        tape.write_state(&table, &rows, kept)?;
        let after = tape.read_state(&table, &asked)?;
        table.clear()?;
        tape.write_state(&table, &rows, x[0])?;
        let last = tape.read_state(&table, &rows)?;
        let (before, after) = (tape.mul(before, x[1])?, tape.mul(after, x[1])?);
        let last = tape.mul(last, kept)?;
        tape.concat_rows(&[before, after, last])
    })
}

fn encoder(
    name: &'static str,
    lengths: &[usize],
    (width, heads, rate): (usize, usize, f32),
    per_class: Option<usize>,
    random: &mut impl Uniform,
) -> Case {
    let batch = Ragged::from_lengths(lengths.iter().copied());
    // Pools that differ from the sequences, one of them empty.
    let pools = Ragged::from_lengths(lengths.iter().flat_map(|&n| [n / 3, n - n / 3]));
    let mut inputs = vec![matrix(random, batch.total(), width)];
    for _ in 0..2 {
        let mut norm = || {
            let mut scale = vector(random, width);
            scale.values_mut().iter_mut().for_each(|x| *x = 1.0 + 0.3 * *x);
            [scale, vector(random, width)]
        };
        let (norm1, norm2) = (norm(), norm());
        let mut linear = |n_in: usize, n_out: usize| -> [Tensor; 2] { init::linear(random, n_in, n_out).into() };
        let (qkv, out) = (linear(width, 3 * width), linear(width, width));
        let (up, down) = (linear(width, 4 * width), linear(4 * width, width));
        inputs.extend([norm1, qkv, out, norm2, up, down].into_iter().flatten());
    }
    let n_weights = inputs.len();
    let relations = per_class.map(|per_class| relations(lengths, per_class));
    if let Some(relations) = &relations {
        inputs.push(matrix(random, relations.n_rows(), 2 * heads));
    }
    Case::on_device(name, inputs, move |device, tape, x| {
        let block = |x: &[Var]| BlockVars {
            norm1: [x[0], x[1]],
            qkv: [x[2], x[3]],
            out: [x[4], x[5]],
            norm2: [x[6], x[7]],
            up: [x[8], x[9]],
            down: [x[10], x[11]],
        };
        let blocks: Vec<BlockVars> = x[1..n_weights].chunks_exact(12).map(block).collect();
        let form = EncoderConfig { heads: Heads(heads), dropout: Dropout::new(rate, 11, Mode::Train)? };
        let Some(relations) = relations.clone() else {
            return tape.encoder(x[0], &blocks, form, &batch, &pools);
        };
        device.stage_relations(&relations)?;
        let bias = AttentionBias { table: x[n_weights], relations };
        tape.biased_encoder(x[0], &blocks, form, &batch, &pools, &bias)
    })
}

/// Relations among about `per_class` tokens of each class, every third pair of classes related.
fn relations(lengths: &[usize], per_class: usize) -> Relations {
    let (mut classes, mut pairs, mut n_pairs) = (Vec::new(), Vec::new(), Vec::new());
    for (at, &n) in (0_u32..).zip(lengths) {
        let n_classes = u32::try_from(n.div_ceil(per_class)).unwrap_or(u32::MAX);
        classes.extend((at..).take(n).map(|token| token % n_classes));
        let first = pairs.len();
        for high in 0..n_classes {
            pairs.extend((0..=high).filter(|low| (high + 2 * low + 1).is_multiple_of(3)).map(|low| [high, low]));
        }
        n_pairs.push(pairs.len() - first);
    }
    let sequences = Ragged::from_lengths(lengths.iter().copied());
    Relations::new(&sequences, classes, pairs, Ragged::from_lengths(n_pairs)).expect("classes of these sequences")
}

fn matrix(random: &mut impl Uniform, rows: usize, cols: usize) -> Tensor {
    init::uniform(random, Shape::Matrix(rows, cols), 1.5)
}

fn vector(random: &mut impl Uniform, cols: usize) -> Tensor {
    init::uniform(random, Shape::Vector(cols), 1.5)
}
