//! Parameters on a device, their optimizer state, and training steps.

use std::borrow::Cow;
use std::sync::Arc;

use crate::chunks::{self, Chunks};
use crate::cuda::{CudaAdam, CudaParams};
use crate::{Adam, AdamConfig, Device, Error, Gradients, Parameters, ProcessGroup, Result, Tape, Tensor, Var};

/// Parameters on a device, for forward passes.
#[derive(Debug)]
pub struct Weights {
    device: Device,
    /// The parameters on the CPU; for a GPU their names and shapes.
    parameters: Parameters,
    on_gpu: Option<Arc<CudaParams>>,
    /// The processes that hold the same weights.
    group: ProcessGroup,
}

impl Weights {
    /// Copies `parameters` to `device`.
    pub fn new(device: &Device, parameters: Parameters) -> Result<Self> {
        let on_gpu = device.context().map(|cuda| CudaParams::new(cuda, &parameters)).transpose()?.map(Arc::new);
        Ok(Self { device: device.clone(), parameters, on_gpu, group: ProcessGroup::default() })
    }

    /// The same weights, held by all processes of `group`: work with them is shared out.
    #[must_use]
    pub fn in_group(self, group: &ProcessGroup) -> Self {
        Self { group: group.clone(), ..self }
    }

    /// The processes that hold the same weights; by default this one alone.
    #[must_use]
    pub fn group(&self) -> &ProcessGroup {
        &self.group
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The current values; a copy if they are on a GPU.
    pub fn parameters(&self) -> Result<Cow<'_, Parameters>> {
        match &self.on_gpu {
            None => Ok(Cow::Borrowed(&self.parameters)),
            Some(params) => Ok(Cow::Owned(params.download(&self.parameters)?)),
        }
    }

    /// Runs `forward` for every chunk on a tape without gradients, and returns its results in order.
    pub fn evaluate<T: Sync, R: Send, E: From<Error> + Send>(
        &self,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let Some(params) = &self.on_gpu else { return chunks::evaluate(&self.parameters, chunks, forward) };
        let evaluate_chunk = |chunk: &T| -> Result<R, E> {
            params.enter()?;
            forward(&mut Tape::on_gpu(&self.parameters, params, true), chunk)
        };
        chunks.iter().map(evaluate_chunk).collect()
    }

    /// Copies `tensor` to the device of the weights, so that [`Tape::input`] need not. Does nothing on the CPU.
    pub fn upload(&self, tensor: &Tensor) -> Result<()> {
        self.on_gpu.as_ref().map_or(Ok(()), |params| params.upload_tensor(tensor))
    }
}

/// The result of a training step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    /// The sum of the losses of all chunks.
    pub loss: f64,
    /// Whether the loss and all gradients are finite. If not, the weights were not changed, and a GPU takes no further
    /// step.
    pub is_finite: bool,
}

/// Parameters and optimizer state on a device.
///
/// ```
/// use hopedgn_tensor::{AdamConfig, Device, Error, Parameters, Shape, Tape, Tensor, TrainState};
///
/// let mut parameters = Parameters::default();
/// let weight = parameters.add("weight", Tensor::zeros(Shape::Matrix(1, 1)))?;
/// let adam = AdamConfig { lr: 0.1, ..AdamConfig::default() };
/// let mut state = TrainState::new(&Device::cpu(), parameters, adam)?;
///
/// // Chunks are anything; here a row of features and its label.
/// let batch = [(2.0, 1.0), (-1.0, 0.0)];
/// for _ in 0..20 {
///     state.step(&batch, |tape: &mut Tape<'_>, &(x, label)| -> Result<_, Error> {
///         let x = tape.input(Tensor::matrix(1, 1, vec![x])?);
///         let weight = tape.parameter(weight);
///         let logit = tape.linear(x, weight, None, None)?; // `[1, 1]`
///         tape.bce_with_logits(logit, &[label], batch.len())
///     })?;
/// }
/// let steps = state.step_results(0)?;
/// assert!(steps[19].loss < steps[0].loss);
/// assert!(state.weights().parameters()?.get(weight).values()[0] > 0.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct TrainState {
    weights: Weights,
    /// The optimizer state on the CPU; for a GPU its configuration and number of steps.
    adam: Adam,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Cpu { gradients: Box<Gradients>, chunks: Chunks, results: Vec<StepResult> },
    Cuda(CudaAdam),
}

impl TrainState {
    /// The state before the first step.
    pub fn new(device: &Device, parameters: Parameters, adam: AdamConfig) -> Result<Self> {
        let adam = Adam::new(adam, &parameters);
        let backend = match device.context() {
            None => Backend::Cpu {
                gradients: Box::new(Gradients::zeros(&parameters)),
                chunks: Chunks::new(&parameters),
                results: Vec::new(),
            },
            Some(cuda) => Backend::Cuda(CudaAdam::new(Arc::clone(cuda), &parameters)?),
        };
        Ok(Self { weights: Weights::new(device, parameters)?, adam, backend })
    }

    /// The same state, trained by all processes of `group`: each computes its share of every step.
    #[must_use]
    pub fn in_group(self, group: &ProcessGroup) -> Self {
        Self { weights: self.weights.in_group(group), ..self }
    }

    /// The current weights, for forward passes.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Host copies of the parameters and the optimizer state, the same for every device.
    pub fn snapshot(&self) -> Result<(Parameters, Adam)> {
        let parameters = self.weights.parameters()?.into_owned();
        let mut adam = self.adam.clone();
        if let Backend::Cuda(cuda_adam) = &self.backend {
            cuda_adam.download(&mut adam)?;
        }
        Ok((parameters, adam))
    }

    /// Continues from a [`snapshot`](Self::snapshot) of any device.
    ///
    /// # Panics
    /// If it is of another model.
    pub fn restore(&mut self, parameters: Parameters, adam: Adam) -> Result<()> {
        assert_eq!(parameters.len(), self.weights.parameters.len(), "a snapshot of the same model");
        let weights = Weights::new(&self.weights.device, parameters)?.in_group(&self.weights.group);
        match &mut self.backend {
            Backend::Cpu { results, .. } => results.clear(),
            Backend::Cuda(cuda_adam) => cuda_adam.upload(&adam)?,
        }
        self.weights = weights;
        self.adam = adam;
        Ok(())
    }

    /// The chunks, of `n` of a step, that this process computes: all of them, unless others of its group compute the rest.
    #[must_use]
    pub fn own_chunks(&self, n: usize) -> Vec<usize> {
        let group = &self.weights.group;
        if self.weights.device.is_gpu() {
            return group.share(n).collect();
        }
        chunks::chunks_of(chunks::share(group, n), n).collect()
    }

    /// Submits one Adam step on the gradients of the sum of the chunks' losses, which `forward` returns. A GPU may still be
    /// computing when this returns; [`step_results`](Self::step_results) waits for the loss.
    pub fn step<T: Sync, E: From<Error> + Send>(
        &mut self,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E> + Sync,
    ) -> Result<(), E> {
        match &mut self.backend {
            Backend::Cpu { gradients, chunks: groups, results } => {
                let loss = cpu_losses(&self.weights, groups, gradients, chunks, forward)?;
                let is_finite = loss.is_finite() && gradients.is_finite();
                if is_finite {
                    self.adam.step(&mut self.weights.parameters, gradients);
                }
                results.push(StepResult { loss, is_finite });
            }
            Backend::Cuda(cuda_adam) => {
                let Some(params) = &self.weights.on_gpu else { unreachable!("weights are on the optimizer's device") };
                let group = &self.weights.group;
                let own = &chunks[group.share(chunks.len())];
                let losses = cuda_adam.losses(&self.weights.parameters, params, own, forward)?;
                if !group.is_alone() {
                    cuda_adam.sum_over(group)?;
                }
                cuda_adam.step(params, &mut self.adam, &losses)?;
            }
        }
        Ok(())
    }

    /// The results of the steps since the last call, oldest first. Waits for all but the newest `max_pending`, which a GPU
    /// may still be computing.
    pub fn step_results(&mut self, max_pending: usize) -> Result<Vec<StepResult>> {
        match &mut self.backend {
            Backend::Cpu { results, .. } => Ok(std::mem::take(results)),
            Backend::Cuda(cuda_adam) => {
                let results = cuda_adam.results(max_pending)?;
                results.into_iter().map(|own| of_all_ranks(&self.weights.group, own)).collect()
            }
        }
    }

    /// The sum of the chunks' losses and its gradients, without a step. Several GPUs each compute all of it.
    pub fn loss_and_gradients<T: Sync, E: From<Error> + Send>(
        &mut self,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E> + Sync,
    ) -> Result<(f64, Gradients), E> {
        match &mut self.backend {
            Backend::Cpu { gradients, chunks: groups, .. } => {
                let loss = cpu_losses(&self.weights, groups, gradients, chunks, forward)?;
                Ok((loss, Gradients::clone(gradients)))
            }
            Backend::Cuda(cuda_adam) => {
                let Some(params) = &self.weights.on_gpu else { unreachable!("weights are on the optimizer's device") };
                let losses = cuda_adam.losses(&self.weights.parameters, params, chunks, forward)?;
                let gradients = cuda_adam.gradients(&self.weights.parameters)?;
                Ok((cuda_adam.sum_losses(&losses)?, gradients))
            }
        }
    }
}

/// The result of a step of which every rank knows its own chunks.
fn of_all_ranks(group: &ProcessGroup, own: StepResult) -> Result<StepResult> {
    if group.is_alone() {
        return Ok(own);
    }
    let losses = group.all_gather(&own.loss.to_le_bytes())?;
    let loss = losses.iter().filter_map(|part| Some(f64::from_le_bytes(*part.first_chunk()?))).sum();
    Ok(StepResult { loss, is_finite: !group.any(!own.is_finite)? })
}

/// The sum of the losses; overwrites `gradients` with its gradients.
fn cpu_losses<T: Sync, E: From<Error> + Send>(
    weights: &Weights,
    groups: &mut Chunks,
    gradients: &mut Gradients,
    chunks: &[T],
    forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E> + Sync,
) -> Result<f64, E> {
    let Weights { parameters, group, .. } = weights;
    let forward = |tape: &mut Tape<'_>, chunk: &T| -> Result<(Var, f32), E> {
        let loss = forward(tape, chunk)?;
        let value = tape.read(loss)?.first().copied().unwrap_or_default();
        Ok((loss, value))
    };
    let losses = if group.is_alone() {
        gradients.clear();
        groups.run(parameters, chunks, gradients, forward)?
    } else {
        // A rank whose chunks fail reports it with the error that it returns.
        let own = groups.compute(parameters, chunks, chunks::share(group, chunks.len()), forward)?;
        groups.sum_over(group, (chunks.len(), &own), gradients)?
    };
    Ok(losses.into_iter().map(f64::from).sum())
}
