//! Device parity: values and gradients of every operation on a device, compared with the CPU on random inputs.

mod cases;

use hopedgn_tensor::init::Uniform;
use hopedgn_tensor::{AdamConfig, Device, Gradients, Parameters, Precision, Result, Tape, Tensor, TrainState, Var};

/// Difference between device and CPU in one operation, as [`relative_error`] measures it.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The operation.
    pub name: &'static str,
    /// Error of the result.
    pub value: f64,
    /// Largest error of a gradient; of one far shorter than the longest, relative to a hundredth of that.
    pub gradient: f64,
    /// Whether a second run is bit-identical.
    pub repeats: bool,
}

/// Unit roundoff of the factors of matrix products.
#[must_use]
pub fn rounding(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 2_f64.powi(-24),
        Precision::Tf32 => 2_f64.powi(-11),
        Precision::Bf16 => 2_f64.powi(-8),
    }
}

/// The largest error that rounding explains: several roundings of factors, and sums of thousands of `f32`.
#[must_use]
pub fn tolerance(precision: Precision) -> f64 {
    8.0 * rounding(precision) + 64.0 * rounding(Precision::F32)
}

type Function = Box<dyn Fn(&Device, &mut Tape<'_>, &[Var]) -> Result<Var> + Sync>;

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
        Self::on_device(name, inputs, move |_, tape, x| function(tape, x))
    }

    /// A function that stores something on the device.
    fn on_device(
        name: &'static str,
        inputs: Vec<Tensor>,
        function: impl Fn(&Device, &mut Tape<'_>, &[Var]) -> Result<Var> + Sync + 'static,
    ) -> Self {
        Self { name, inputs, function: Box::new(function) }
    }

    /// The result, and gradients of a weighted sum of it.
    fn run(&self, device: &Device) -> Result<(Vec<f32>, Gradients)> {
        let mut parameters = Parameters::default();
        let mut ids = Vec::new();
        for (index, input) in self.inputs.iter().enumerate() {
            ids.push(parameters.add(index.to_string(), input.clone())?);
        }
        let mut state = TrainState::new(device, parameters, AdamConfig::default())?;
        let apply = |tape: &mut Tape<'_>| {
            let vars: Vec<Var> = ids.iter().map(|&id| tape.parameter(id)).collect();
            (self.function)(device, tape, &vars)
        };
        let mut values = state.weights().evaluate(&[()], |tape, ()| {
            let result = apply(tape)?;
            tape.read(result)
        })?;
        let (_, gradients) = state.loss_and_gradients(&[()], |tape, ()| -> Result<Var> {
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
        // A gradient far smaller than the others is what is left of values that cancel, as of a bias that most scores of a softmax share:
        // it has their rounding. So none is taken to be shorter than a hundredth of the longest.
        let longest = expected_gradients.iter().map(|expected| length(expected.values())).fold(0.0, f64::max);
        let pairs = expected_gradients.iter().zip(gradients.iter());
        let gradient = pairs
            .map(|(expected, got)| {
                let error = relative_error(expected.values(), got.values());
                let own = length(expected.values()).max(1e-6);
                if error.is_finite() && longest.is_finite() {
                    error * own / own.max(longest / 100.0)
                } else {
                    f64::INFINITY
                }
            })
            .fold(0.0, f64::max);
        let repeats = again == (got.clone(), gradients);
        Ok(Difference { name: self.name, value: relative_error(&expected, &got), gradient, repeats })
    }
}

/// Norm of the difference, relative to the norm of the expected values.
#[must_use]
pub fn relative_error(expected: &[f32], got: &[f32]) -> f64 {
    let differences = expected.iter().zip(got).map(|(&x, &y)| f64::from(x) - f64::from(y));
    let distance = differences.fold(0.0, |sum, x| sum + x * x).sqrt() / length(expected).max(1e-6);
    if distance.is_nan() || expected.len() != got.len() { f64::INFINITY } else { distance }
}

/// The Euclidean norm.
fn length(values: &[f32]) -> f64 {
    values.iter().map(|&x| f64::from(x)).fold(0.0, |sum, x| sum + x * x).sqrt()
}

/// Compares every operation that models use on `device` with the CPU.
pub fn operations(device: &Device, random: &mut impl Uniform) -> Result<Vec<Difference>> {
    cases::all(random).iter().map(|case| case.compare(device)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_equals_itself_bit_by_bit() {
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
