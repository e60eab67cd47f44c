//! Every operation on a device beside the same operation on the CPU: values and gradients, on random inputs.

use std::sync::Arc;

use crate::init::{self, Uniform};
use crate::{
    Activation, AdamConfig, BlockVars, Device, Dropout, EncoderForm, Gradients, Heads, Learner, Mode, Parameters,
    Precision, Ragged, Result, Shape, Tape, Tensor, Var,
};

/// How far a device is from the CPU in one operation, as [`off`] measures it.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The operation.
    pub name: &'static str,
    /// Of its result.
    pub value: f64,
    /// Of the gradient that is furthest off.
    pub gradient: f64,
    /// Whether a second run gave the same bits.
    pub repeats: bool,
}

/// The largest error of one rounding of the numbers that products are made of.
#[must_use]
pub fn rounding(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 2_f64.powi(-24),
        Precision::Tf32 => 2_f64.powi(-11),
        Precision::Bf16 => 2_f64.powi(-8),
    }
}

/// The largest difference that rounding explains: some roundings of factors, and sums of thousands of `f32`.
#[must_use]
pub fn tolerance(precision: Precision) -> f64 {
    8.0 * rounding(precision) + 64.0 * rounding(Precision::F32)
}

type Function = Box<dyn Fn(&mut Tape<'_>, &[Var]) -> Result<Var> + Sync>;

struct Case {
    name: &'static str,
    inputs: Vec<Tensor>,
    function: Function,
}

impl Case {
    fn new(
        name: &'static str,
        inputs: Vec<Tensor>,
        function: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var> + Sync + 'static,
    ) -> Self {
        Self { name, inputs, function: Box::new(function) }
    }

    /// The result, and the gradients of a weighted sum of it.
    fn run(&self, device: &Device) -> Result<(Vec<f32>, Gradients)> {
        let mut parameters = Parameters::default();
        let mut ids = Vec::new();
        for (index, input) in self.inputs.iter().enumerate() {
            ids.push(parameters.add(index.to_string(), input.clone())?);
        }
        let mut learner = Learner::new(device, parameters, AdamConfig::default())?;
        let apply = |tape: &mut Tape<'_>| {
            let vars: Vec<Var> = ids.iter().map(|&id| tape.parameter(id)).collect();
            (self.function)(tape, &vars)
        };
        let mut values = learner.weights().evaluate(&[()], |tape, ()| {
            let result = apply(tape)?;
            tape.read(result)
        })?;
        let (_, gradients) = learner.differentiate(&[()], |tape, ()| -> Result<Var> {
            let result = apply(tape)?;
            let count = tape.shape(result).len();
            let row = tape.reshape(result, 1, count)?;
            let weights = (0..count).map(|at| ((at * 7919 % 101) as f32 - 50.0) / 50.0).collect();
            let weights = tape.input(Tensor::matrix(1, count, weights)?);
            tape.linear(row, weights, None, None)
        })?;
        Ok((values.pop().unwrap_or_default(), gradients))
    }

    fn compare(&self, device: &Device) -> Result<Difference> {
        let (expected, expected_gradients) = self.run(&Device::cpu())?;
        let (got, gradients) = self.run(device)?;
        let again = self.run(device)?;
        let pairs = expected_gradients.parameters.iter().zip(&gradients.parameters);
        let gradient = pairs.map(|(expected, got)| off(expected.values(), got.values())).fold(0.0, f64::max);
        let repeats = again == (got.clone(), gradients);
        Ok(Difference { name: self.name, value: off(&expected, &got), gradient, repeats })
    }
}

/// The length of the difference, relative to the length of what is expected.
#[must_use]
pub fn off(expected: &[f32], got: &[f32]) -> f64 {
    let square = |sum: f64, x: f64| sum + x * x;
    let length = expected.iter().map(|&x| f64::from(x)).fold(0.0, square).sqrt().max(1e-6);
    let pairs = expected.iter().zip(got);
    let distance = pairs.map(|(&x, &y)| f64::from(x) - f64::from(y)).fold(0.0, square).sqrt() / length;
    if distance.is_nan() || expected.len() != got.len() { f64::INFINITY } else { distance }
}

/// Runs every operation that models use on `device` and on the CPU.
pub fn operations(device: &Device, random: &mut impl Uniform) -> Result<Vec<Difference>> {
    cases(random).iter().map(|case| case.compare(device)).collect()
}

fn cases(random: &mut impl Uniform) -> Vec<Case> {
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
            // Far from 0 on either side: near it, a rounding decides whether there is a gradient at all.
            bias.values_mut().iter_mut().for_each(|x| *x = x.signum() * 40.0);
        }
        let inputs = vec![matrix(random, 1300, 36), matrix(random, 52, 36), bias];
        cases.push(Case::new(name, inputs, move |tape, x| tape.linear(x[0], x[1], Some(x[2]), activation)));
    }
    let mut ages = matrix(random, 700, 1);
    ages.values_mut().iter_mut().for_each(|age| *age *= 1e5);
    let inputs = vec![matrix(random, 24, 1), vector(random, 24)];
    cases.push(Case::new("time encoding", inputs, move |tape, x| {
        let ages = tape.input(ages.clone());
        tape.linear(ages, x[0], Some(x[1]), Some(Activation::Cos))
    }));
    let picked: Arc<[u32]> = (0..400_u32).map(|i| i * i % 90).collect();
    let places: Arc<[u32]> = (0..400_u32).map(|i| i * 7 % 450).collect();
    let in_order: Arc<[u32]> = (0..400_u32).map(|i| i + i / 9).collect();
    cases.push(Case::new("gather", vec![matrix(random, 90, 7)], move |tape, x| tape.gather(x[0], Arc::clone(&picked))));
    cases.push(Case::new("scatter", vec![matrix(random, 400, 7)], move |tape, x| {
        tape.scatter(x[0], Arc::clone(&places), 450)
    }));
    cases.push(Case::new("scatter, in order", vec![matrix(random, 400, 7)], move |tape, x| {
        tape.scatter(x[0], Arc::clone(&in_order), 450)
    }));
    cases.push(Case::new("reshape", vec![matrix(random, 40, 6)], |tape, x| tape.reshape(x[0], 20, 12)));
    cases.push(Case::new("repeat row", vec![vector(random, 33)], |tape, x| tape.repeat_row(x[0], 700)));
    let inputs = vec![matrix(random, 300, 50), matrix(random, 300, 3), matrix(random, 300, 50)];
    cases.push(Case::new("concat", inputs, |tape, x| tape.concat(&[x[0], x[1], x[2]])));
    let targets: Vec<f32> = (0..500_u16).map(|i| f32::from(i % 2)).collect();
    cases.push(Case::new("cross-entropy", vec![matrix(random, 500, 1)], move |tape, x| {
        tape.bce_with_logits(x[0], &targets, 700)
    }));
    for (name, lengths, width, heads, rate) in [
        ("encoder", vec![64; 6], 200, 2, 0.0),
        ("encoder, dropout", vec![64; 6], 200, 2, 0.1),
        ("encoder, ragged", vec![3, 64, 0, 1, 40, 17, 63, 5, 33], 48, 4, 0.2),
        ("encoder, long", vec![150, 65, 300, 2], 32, 2, 0.1),
    ] {
        cases.push(encoder(name, &lengths, (width, heads, rate), random));
    }
    cases
}

fn encoder(
    name: &'static str,
    lengths: &[usize],
    (width, heads, rate): (usize, usize, f32),
    random: &mut impl Uniform,
) -> Case {
    let batch = Ragged::from_lengths(lengths.iter().copied());
    // Pools that are not the sequences, one of them empty.
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
    Case::new(name, inputs, move |tape, x| {
        let block = |x: &[Var]| BlockVars {
            norm1: [x[0], x[1]],
            qkv: [x[2], x[3]],
            out: [x[4], x[5]],
            norm2: [x[6], x[7]],
            up: [x[8], x[9]],
            down: [x[10], x[11]],
        };
        let blocks: Vec<BlockVars> = x[1..].chunks_exact(12).map(block).collect();
        let form = EncoderForm { heads: Heads(heads), dropout: Dropout::new(rate, 11, Mode::Train)? };
        tape.encoder(x[0], &blocks, form, &batch, &pools)
    })
}

fn matrix(random: &mut impl Uniform, rows: usize, cols: usize) -> Tensor {
    init::uniform(random, Shape::Matrix(rows, cols), 1.5)
}

fn vector(random: &mut impl Uniform, cols: usize) -> Tensor {
    init::uniform(random, Shape::Vector(cols), 1.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_no_further_from_itself_than_nothing() {
        let mut x = 0.0_f64;
        let mut random = move || {
            x = (x + 0.618_033_988_749_895).fract();
            x
        };
        for difference in operations(&Device::cpu(), &mut random).unwrap() {
            assert_eq!((difference.value, difference.gradient, difference.repeats), (0.0, 0.0, true));
        }
    }
}
