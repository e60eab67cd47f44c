//! Test support: random values, finite differences, fixtures made with PyTorch.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Gradients, Parameters, Result, Shape, Tape, Tensor, Var};

/// Half the step of a finite difference. At 2⁻⁷ the error of the formula and that of `f32` are of the same size.
const STEP: f32 = 1.0 / 128.0;

/// The largest difference between a finite difference and a gradient, relative to the larger of 1 and the largest gradient.
const DIFFERENCE_TOLERANCE: f64 = 2e-3;

/// The largest difference from the `f64` values of PyTorch, relative to the larger of 1 and the largest value: some tens of
/// roundings of 6e-8.
const FIXTURE_TOLERANCE: f64 = 4e-6;

/// The weights of a transformer block as the fixtures name them, in the order of `BlockVars`.
pub(crate) const BLOCK: [&str; 12] = [
    "scale1",
    "shift1",
    "in_weight",
    "in_bias",
    "out_weight",
    "out_bias",
    "scale2",
    "shift2",
    "up_weight",
    "up_bias",
    "down_weight",
    "down_bias",
];

/// `count` values in [−1.5, 1.5), the same for the same `seed`.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32
    };
    for _ in 0..20 {
        next();
    }
    (0..count).map(|_| 3.0 * next() - 1.5).collect()
}

pub(crate) fn matrix(seed: u64, rows: usize, cols: usize) -> Tensor {
    Tensor::matrix(rows, cols, noise(seed, rows * cols)).unwrap()
}

pub(crate) fn vector(seed: u64, cols: usize) -> Tensor {
    Tensor::vector(noise(seed, cols))
}

/// Compares the gradients of a weighted sum of `function`'s values with central differences, for every input value.
pub(crate) fn check_gradients(inputs: &[Tensor], function: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var>) {
    let (output, _) = run(inputs, None, &function);
    let seed = Tensor::new(output.shape(), noise(99, output.shape().len())).unwrap();
    let (_, gradients) = run(inputs, Some(&seed), &function);
    let weighted = |inputs: &[Tensor]| -> f64 {
        let (output, _) = run(inputs, None, &function);
        output.values().iter().zip(seed.values()).map(|(y, w)| f64::from(*y) * f64::from(*w)).sum()
    };
    for (which, gradient) in gradients.iter().enumerate() {
        let scale = gradient.values().iter().fold(1.0_f64, |max, g| max.max(f64::from(g.abs())));
        for at in 0..inputs[which].shape().len() {
            let mut moved = inputs.to_vec();
            let x = inputs[which].values()[at];
            moved[which].values_mut()[at] = x + STEP;
            let above = weighted(&moved);
            moved[which].values_mut()[at] = x - STEP;
            let difference = (above - weighted(&moved)) / f64::from((x + STEP) - (x - STEP));
            let got = f64::from(gradient.values()[at]);
            assert!(
                (difference - got).abs() <= DIFFERENCE_TOLERANCE * scale,
                "input {which}, value {at}: difference {difference}, gradient {got}"
            );
        }
    }
}

/// The value of `function` and, given the gradient of its result, those of its inputs.
fn run(
    inputs: &[Tensor],
    seed: Option<&Tensor>,
    function: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var>,
) -> (Tensor, Vec<Tensor>) {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters);
    let vars: Vec<Var> = inputs.iter().map(|input| tape.leaf(input.clone())).collect();
    let output = function(&mut tape, &vars).unwrap();
    let value = tape.value(output).clone();
    let Some(seed) = seed else { return (value, Vec::new()) };
    let mut gradients = Gradients::zeros(&parameters);
    tape.backward_from(output, seed.clone(), &mut gradients).unwrap();
    let of = |(var, input): (&Var, &Tensor)| gradients.leaf(*var).cloned().unwrap_or(Tensor::zeros(input.shape()));
    (value, vars.iter().zip(inputs).map(of).collect())
}

/// A file of `fixtures/tensor`.
pub(crate) fn fixture(file: &str) -> Value {
    let path = format!("{}/../../fixtures/tensor/{file}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A tensor as `make.py` writes it.
#[expect(clippy::cast_possible_truncation, reason = "inputs are f32 values written in decimal")]
pub(crate) fn tensor(written: &Value) -> Tensor {
    let number = |value: &Value| value.as_f64().unwrap() as f32;
    let values: Vec<f32> = written["values"].as_array().unwrap().iter().map(number).collect();
    let size = |at: usize| written["shape"][at].as_u64().map(|size| usize::try_from(size).unwrap());
    let shape = size(1).map_or(Shape::Vector(values.len()), |cols| Shape::Matrix(size(0).unwrap(), cols));
    Tensor::new(shape, values).unwrap()
}

/// One operation with PyTorch's output and gradients.
pub(crate) struct Case {
    name: String,
    inputs: BTreeMap<String, Tensor>,
    output: Tensor,
    seed: Tensor,
    gradients: BTreeMap<String, Tensor>,
}

impl Case {
    pub(crate) fn load(name: &str) -> Self {
        let case = &fixture("ops.json")[name];
        let tensors = |key: &str| {
            let named = case[key].as_object().unwrap_or_else(|| panic!("no case {name}"));
            named.iter().map(|(key, written)| (key.clone(), tensor(written))).collect()
        };
        Self {
            name: name.to_owned(),
            inputs: tensors("inputs"),
            output: tensor(&case["output"]),
            seed: tensor(&case["seed"]),
            gradients: tensors("gradients"),
        }
    }

    /// Runs `function` on the inputs called `names` and compares its value and all gradients.
    pub(crate) fn check(&self, names: &[&str], function: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var>) {
        assert_eq!(names.len(), self.inputs.len(), "{}: every input is used", self.name);
        let inputs: Vec<Tensor> = names.iter().map(|&name| self.inputs[name].clone()).collect();
        let (output, gradients) = run(&inputs, Some(&self.seed), function);
        assert_close(&self.name, &output, &self.output);
        for (name, gradient) in names.iter().zip(&gradients) {
            assert_close(&format!("{}, gradient of {name}", self.name), gradient, &self.gradients[*name]);
        }
    }
}

fn assert_close(what: &str, got: &Tensor, expected: &Tensor) {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    let scale = expected.values().iter().fold(1.0_f64, |max, x| max.max(f64::from(x.abs())));
    for (at, (got, expected)) in got.values().iter().zip(expected.values()).enumerate() {
        let difference = (f64::from(*got) - f64::from(*expected)).abs();
        assert!(difference <= FIXTURE_TOLERANCE * scale, "{what}, value {at}: found {got}, PyTorch has {expected}");
    }
}
