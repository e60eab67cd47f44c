//! Weights on a device, and what teaches them there.

use std::borrow::Cow;
use std::sync::Arc;

use crate::chunks::{self, Chunks};
use crate::cuda::{self, Resident};
use crate::{Adam, AdamConfig, Device, Error, Gradients, Parameters, Result, Tape, Tensor, Var};

/// Weights on a device, to compute with.
#[derive(Debug)]
pub struct Weights {
    device: Device,
    /// The weights themselves on the CPU; elsewhere their names and shapes.
    parameters: Parameters,
    resident: Option<Resident>,
}

impl Weights {
    /// Brings `parameters` to `device`.
    pub fn new(device: &Device, parameters: Parameters) -> Result<Self> {
        let resident = device.context().map(|cuda| Resident::new(cuda, &parameters)).transpose()?;
        Ok(Self { device: device.clone(), parameters, resident })
    }

    /// Where they are.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The values as they are now.
    pub fn parameters(&self) -> Result<Cow<'_, Parameters>> {
        match &self.resident {
            None => Ok(Cow::Borrowed(&self.parameters)),
            Some(resident) => Ok(Cow::Owned(resident.download(&self.parameters)?)),
        }
    }

    /// Runs `forward` for every chunk on a tape that keeps nothing for a way back, and returns what it returned, in
    /// order.
    pub fn evaluate<T: Sync, R: Send, E: From<Error> + Send>(
        &self,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let Some(resident) = &self.resident else { return chunks::evaluate(&self.parameters, chunks, forward) };
        let one = |chunk: &T| -> Result<R, E> {
            resident.begin()?;
            forward(&mut Tape::on_card(&self.parameters, resident, true), chunk)
        };
        chunks.iter().map(one).collect()
    }

    /// Leaves a copy of `tensor` where the weights are, so that [`Tape::input`] need not bring it there.
    pub fn place(&self, tensor: &Tensor) -> Result<()> {
        self.resident.as_ref().map_or(Ok(()), |resident| resident.place(tensor))
    }
}

/// How a step went.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The sum of the chunks' losses.
    pub loss: f64,
    /// Whether the loss and all gradients are finite. Where they are not, the weights were left alone, and a card takes
    /// no further step.
    pub is_finite: bool,
}

/// Weights with the optimiser that moves them.
#[derive(Debug)]
pub struct TrainState {
    weights: Weights,
    /// The state itself on the CPU; elsewhere the settings.
    adam: Adam,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Cpu { gradients: Box<Gradients>, chunks: Chunks, results: Vec<Step> },
    Cuda(cuda::CudaAdam),
}

impl TrainState {
    /// No step taken yet.
    pub fn new(device: &Device, parameters: Parameters, adam: AdamConfig) -> Result<Self> {
        let adam = Adam::new(adam, &parameters);
        let home = match device.context() {
            None => Home::Cpu {
                gradients: Box::new(Gradients::zeros(&parameters)),
                chunks: Chunks::new(&parameters),
                results: Vec::new(),
            },
            Some(cuda) => Home::Cuda(cuda::CudaAdam::new(Arc::clone(cuda), &parameters)?),
        };
        Ok(Self { weights: Weights::new(device, parameters)?, adam, home })
    }

    /// The weights as they are now, to compute with.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Host copies of the weights and the optimiser's state, the same for every device.
    pub fn snapshot(&self) -> Result<(Parameters, Adam)> {
        let parameters = self.weights.parameters()?.into_owned();
        let mut adam = self.adam.clone();
        if let Home::Cuda(teacher) = &self.home {
            teacher.download(&mut adam)?;
        }
        Ok((parameters, adam))
    }

    /// Goes on from what [`snapshot`](Self::snapshot) gave, wherever it was taken.
    ///
    /// # Panics
    /// If they are of another model.
    pub fn replace(&mut self, parameters: Parameters, adam: Adam) -> Result<()> {
        assert_eq!(parameters.len(), self.weights.parameters.len(), "weights of the same model");
        let weights = Weights::new(&self.weights.device, parameters)?;
        match &mut self.home {
            Home::Cpu { results, .. } => results.clear(),
            Home::Cuda(teacher) => teacher.upload(&adam)?,
        }
        self.weights = weights;
        self.adam = adam;
        Ok(())
    }

    /// Asks for one step of Adam against the gradients of the sum of the chunks' losses, which `forward` returns. A card
    /// may still be busy with it afterwards; how it went is told by [`results`](Self::results).
    pub fn step<T: Sync, E: From<Error> + Send>(
        &mut self,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E> + Sync,
    ) -> Result<(), E> {
        match &mut self.home {
            Home::Cpu { gradients, chunks: groups, results } => {
                let loss = cpu_losses(&self.weights.parameters, groups, gradients, chunks, forward)?;
                let is_finite = loss.is_finite() && gradients.is_finite();
                if is_finite {
                    self.adam.step(&mut self.weights.parameters, gradients);
                }
                results.push(Step { loss, is_finite });
            }
            Home::Cuda(teacher) => {
                let Some(resident) = &mut self.weights.resident else { unreachable!("weights are where they learn") };
                let losses = teacher.losses(&self.weights.parameters, resident, chunks, forward)?;
                teacher.step(resident, &mut self.adam, &losses)?;
            }
        }
        Ok(())
    }

    /// How the steps went that were asked for since the last call, oldest first. Waits for all but the newest `behind`,
    /// which a card may go on with.
    pub fn results(&mut self, behind: usize) -> Result<Vec<Step>> {
        match &mut self.home {
            Home::Cpu { results, .. } => Ok(std::mem::take(results)),
            Home::Cuda(teacher) => teacher.results(behind),
        }
    }

    /// The sum of the chunks' losses and its gradients, without a step.
    pub fn differentiate<T: Sync, E: From<Error> + Send>(
        &mut self,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E> + Sync,
    ) -> Result<(f64, Gradients), E> {
        match &mut self.home {
            Home::Cpu { gradients, chunks: groups, .. } => {
                let loss = cpu_losses(&self.weights.parameters, groups, gradients, chunks, forward)?;
                Ok((loss, Gradients::clone(gradients)))
            }
            Home::Cuda(teacher) => {
                let Some(resident) = &mut self.weights.resident else { unreachable!("weights are where they learn") };
                let losses = teacher.losses(&self.weights.parameters, resident, chunks, forward)?;
                let gradients = teacher.gradients(&self.weights.parameters)?;
                Ok((teacher.read(&losses)?, gradients))
            }
        }
    }
}

/// The sum of the losses; `gradients` become its gradients.
fn cpu_losses<T: Sync, E: From<Error> + Send>(
    parameters: &Parameters,
    groups: &mut Chunks,
    gradients: &mut Gradients,
    chunks: &[T],
    forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E> + Sync,
) -> Result<f64, E> {
    gradients.clear();
    let forward = |tape: &mut Tape<'_>, chunk: &T| -> Result<(Var, f64), E> {
        let loss = forward(tape, chunk)?;
        let value = tape.value(loss).values().first().copied().unwrap_or_default();
        Ok((loss, f64::from(value)))
    };
    Ok(groups.run(parameters, chunks, gradients, forward)?.iter().sum())
}
