//! Time encoding of TGAT: `cos(ω·Δt + φ)`.

use std::sync::Arc;

use hopedgn_tensor::{Activation, ParameterId, Shape, Tape, Tensor, Var};

use super::ParamBuilder;
use crate::Result;
use crate::collate::Hop;

/// `cos(ω·Δt + φ)` with trainable frequencies `ω` and phases `φ`, both `Dt` wide.
///
/// ```
/// # use hopedgn::{nn::ParamBuilder, tensor::{Parameters, Tape, Tensor}};
/// # let mut parameters = Parameters::default();
/// let time = ParamBuilder::new(&mut parameters, 0).time_encoding("time", 2)?;
/// let mut tape = Tape::new(&parameters);
/// let dt = tape.input(Tensor::matrix(2, 1, vec![0.0, 1.0])?);
/// let encoded = time.forward(&mut tape, dt)?; // [2, 2]
/// let encoded = tape.read(encoded)?;
/// assert_eq!(encoded[..2], [1.0, 1.0]); // cos 0
/// assert!((encoded[2] - 1.0_f32.cos()).abs() < 1e-6); // the first frequency is 1
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TimeEncoding {
    frequency: ParameterId,
    phase: ParameterId,
}

impl ParamBuilder<'_> {
    /// A time encoding that starts with [`frequencies`] and phase 0.
    pub fn time_encoding(&mut self, name: &str, width: usize) -> Result<TimeEncoding> {
        Ok(TimeEncoding {
            frequency: self.parameters.add(format!("{name}.frequency"), frequencies(width)?)?,
            phase: self.parameters.add(format!("{name}.phase"), Tensor::zeros(Shape::Vector(width)))?,
        })
    }
}

impl TimeEncoding {
    /// `[M, Dt]` for time differences `dt` `[M, 1]`.
    pub fn forward(self, tape: &mut Tape<'_>, dt: Var) -> Result<Var> {
        let (frequency, phase) = (tape.parameter(self.frequency), tape.parameter(self.phase));
        Ok(tape.linear(dt, frequency, Some(phase), Some(Activation::Cos))?)
    }

    /// The time since the event of each entry of a hop, `[entries, Dt]`.
    pub fn of_hop(self, tape: &mut Tape<'_>, hop: &Hop) -> Result<Var> {
        let ages = tape.input(Arc::clone(&hop.ages));
        self.forward(tape, ages)
    }

    /// The encoding of Δt = 0, `[n_rows, Dt]`.
    pub fn of_now(self, tape: &mut Tape<'_>, n_rows: usize) -> Result<Var> {
        let now = tape.input(Tensor::zeros(Shape::Matrix(1, 1)));
        let now = self.forward(tape, now)?;
        Ok(tape.repeat_row(now, n_rows)?)
    }
}

/// Initial frequencies `[width, 1]`: from 1 down to 10⁻⁹, equally spaced in their logarithm.
///
/// ```
/// let frequencies = hopedgn::nn::frequencies(4)?;
/// assert_eq!(frequencies.values(), [1.0, 1e-3, 1e-6, 1e-9]);
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn frequencies(width: usize) -> Result<Tensor> {
    #[expect(clippy::cast_possible_truncation, reason = "computed in f64, kept in f32")]
    let frequency = |i: usize| 10_f64.powf(-9.0 * i as f64 / (width.max(2) - 1) as f64) as f32;
    Ok(Tensor::matrix(width, 1, (0..width).map(frequency).collect())?)
}
