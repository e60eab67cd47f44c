//! Reverse-mode automatic differentiation: a list of nodes, each with its shape, value and backward function.

mod cpu;
mod gradients;
mod nodes;

use std::sync::Arc;

use crate::cuda::{CudaParams, CudaTape, PendingCopy};
use crate::{Error, ParameterId, Parameters, Result, Shape, Tensor, Threads};
pub(crate) use cpu::{BackwardCtx, Cpu, CpuTape, GradSink};
pub use gradients::Gradients;
pub(crate) use nodes::{Backend, BackwardPass, Kind, Node, NodeList};

/// A value on a [`Tape`]. It is only meaningful on the tape that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Var(pub(crate) usize);

/// Values of [`Tape::read_later`].
#[derive(Debug)]
pub struct PendingValues(Pending);

#[derive(Debug)]
enum Pending {
    Ready(Vec<f32>),
    OnGpu(PendingCopy),
}

impl PendingValues {
    /// Waits for the values, row-major.
    pub fn wait(self) -> Result<Vec<f32>> {
        match self.0 {
            Pending::Ready(values) => Ok(values),
            Pending::OnGpu(copy) => copy.wait(),
        }
    }
}

/// A forward pass, recorded while it is computed, and its backward pass.
///
/// The operations are methods: each checks shapes, computes its value and stores its backward function. Where the values
/// live is decided once, when the tape is made: [`Tape::new`] computes on the CPU, and the tapes that
/// [`TrainState::step`](crate::TrainState::step) and [`Weights::evaluate`](crate::Weights::evaluate) hand out compute on
/// their [`Device`](crate::Device). Code that uses a tape is the same for both.
///
/// ```
/// use hopedgn_tensor::{Activation, Gradients, Parameters, Shape, Tape, Tensor};
///
/// let mut parameters = Parameters::default();
/// let weight = parameters.add("layer.weight", Tensor::matrix(1, 2, vec![0.5, -0.25])?)?;
///
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::matrix(3, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?); // `[3, 2]`
/// let w = tape.parameter(weight); // `[1, 2]`
/// let y = tape.linear(x, w, None, Some(Activation::Relu))?; // `[3, 1]`
/// assert_eq!(tape.shape(y), Shape::Matrix(3, 1));
/// assert_eq!(tape.read(y)?, [0.5, 0.0, 0.25]);
///
/// let loss = tape.bce_with_logits(y, &[1.0, 0.0, 1.0], 3)?; // `[1]`
/// let mut gradients = Gradients::zeros(&parameters);
/// tape.backward(loss, &mut gradients)?;
/// assert!(gradients.parameter(weight).values()[0] < 0.0);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
pub struct Tape<'p> {
    backend: OnDevice<'p>,
}

/// The node list of a tape, on the device of its values.
pub(crate) enum OnDevice<'p> {
    Cpu(CpuTape<'p>),
    Cuda(Box<CudaTape<'p>>),
}

/// Calls the method of the same name on the CPU or on the CUDA node list: the only place where an operation depends
/// on where its values live.
macro_rules! dispatch {
    ($tape:ident.$method:ident($($arg:expr),* $(,)?)) => {
        match $tape.on_device_mut() {
            $crate::tape::OnDevice::Cpu(tape) => tape.$method($($arg),*),
            $crate::tape::OnDevice::Cuda(tape) => tape.$method($($arg),*),
        }
    };
}
pub(crate) use dispatch;

impl<'p> Tape<'p> {
    /// An empty tape that computes on the CPU with the threads of the current `rayon` pool.
    #[must_use]
    pub fn new(parameters: &'p Parameters) -> Self {
        Self::with_threads(parameters, Threads::Pool)
    }

    /// An empty tape that computes on the CPU.
    #[must_use]
    pub(crate) fn with_threads(parameters: &'p Parameters, threads: Threads) -> Self {
        Self { backend: OnDevice::Cpu(CpuTape::new(parameters, Cpu { threads }, false)) }
    }

    /// An empty tape on the CPU on which parameters require no gradient, so that operations keep nothing for a backward
    /// pass.
    #[must_use]
    pub fn no_grad(parameters: &'p Parameters, threads: Threads) -> Self {
        Self { backend: OnDevice::Cpu(CpuTape::new(parameters, Cpu { threads }, true)) }
    }

    /// An empty tape on the GPU that holds `params`.
    pub(crate) fn on_gpu(parameters: &'p Parameters, params: &Arc<CudaParams>, is_no_grad: bool) -> Self {
        Self { backend: OnDevice::Cuda(Box::new(CudaTape::on_gpu(parameters, params, is_no_grad))) }
    }

    pub(crate) fn on_device_mut(&mut self) -> &mut OnDevice<'p> {
        &mut self.backend
    }

    pub(crate) fn into_backend(self) -> OnDevice<'p> {
        self.backend
    }

    /// A value that requires no gradient.
    ///
    /// An `Arc<Tensor>` is shared, not copied. On a GPU, a tensor that was [uploaded](crate::Weights::upload) or
    /// [staged](crate::Device::stage) before is not copied from the host again.
    pub fn input(&mut self, tensor: impl Into<Arc<Tensor>>) -> Var {
        dispatch!(self.input(tensor.into()))
    }

    /// An input that many tapes read, such as a feature table: a GPU keeps its copy.
    pub fn cached_input(&mut self, tensor: &Arc<Tensor>) -> Var {
        dispatch!(self.cached_input(tensor))
    }

    /// An input that requires a gradient, which [`Gradients::leaf`] returns. On the CPU only.
    pub fn leaf(&mut self, tensor: Tensor) -> Var {
        dispatch!(self.leaf(tensor))
    }

    /// The variable of a parameter. Asked for twice, it is the same variable.
    pub fn parameter(&mut self, id: ParameterId) -> Var {
        dispatch!(self.parameter(id))
    }

    /// The variable of a parameter that training leaves as it is: a constant of the data that is saved with the weights. One tape asks
    /// for a parameter either so or by [`Tape::parameter`].
    ///
    /// ```
    /// use hopedgn_tensor::{Gradients, Parameters, Tape, Tensor};
    ///
    /// let mut parameters = Parameters::default();
    /// let scale = parameters.add("scale", Tensor::vector(vec![2.0]))?;
    /// let weight = parameters.add("weight", Tensor::vector(vec![3.0]))?;
    /// let mut tape = Tape::new(&parameters);
    /// let (scale_var, weight_var) = (tape.frozen(scale), tape.parameter(weight));
    /// let product = tape.mul(scale_var, weight_var)?;
    /// let mut gradients = Gradients::zeros(&parameters);
    /// tape.backward(product, &mut gradients)?;
    /// assert_eq!(gradients.parameter(weight).values(), [2.0]);
    /// assert_eq!(gradients.parameter(scale).values(), [0.0]);
    /// # Ok::<(), hopedgn_tensor::Error>(())
    /// ```
    pub fn frozen(&mut self, id: ParameterId) -> Var {
        dispatch!(self.frozen(id))
    }

    /// A copy of the values of a variable, row-major. Waits for a GPU to compute them.
    pub fn read(&self, var: Var) -> Result<Vec<f32>> {
        match &self.backend {
            OnDevice::Cpu(tape) => Ok(tape.read(var)),
            OnDevice::Cuda(tape) => tape.read(var),
        }
    }

    /// The values of a variable, which a GPU may still be computing.
    ///
    /// ```
    /// use hopedgn_tensor::{Parameters, Tape, Tensor};
    ///
    /// let parameters = Parameters::default();
    /// let mut tape = Tape::new(&parameters);
    /// let x = tape.input(Tensor::vector(vec![1.0, 2.0]));
    /// let values = tape.read_later(x)?;
    /// drop(tape); // not needed any more
    /// assert_eq!(values.wait()?, [1.0, 2.0]);
    /// # Ok::<(), hopedgn_tensor::Error>(())
    /// ```
    pub fn read_later(&self, var: Var) -> Result<PendingValues> {
        Ok(PendingValues(match &self.backend {
            OnDevice::Cpu(tape) => Pending::Ready(tape.read(var)),
            OnDevice::Cuda(tape) => Pending::OnGpu(tape.read_later(var)?),
        }))
    }

    /// The value of a variable on the CPU.
    #[cfg(test)]
    pub(crate) fn value(&self, var: Var) -> &Tensor {
        let OnDevice::Cpu(tape) = &self.backend else { panic!("tests read values on the CPU") };
        tape.value(var)
    }

    /// Whether `var` is, or depends on, a parameter or a leaf.
    #[cfg(test)]
    pub(crate) fn requires_grad(&self, var: Var) -> bool {
        let OnDevice::Cpu(tape) = &self.backend else { panic!("tests run on the CPU") };
        tape.requires_grad(var)
    }

    /// The shape of a variable.
    #[must_use]
    pub fn shape(&self, var: Var) -> Shape {
        match &self.backend {
            OnDevice::Cpu(tape) => tape.shape(var),
            OnDevice::Cuda(tape) => tape.shape(var),
        }
    }

    /// Adds the gradients of `loss`, a single value, to `gradients`.
    ///
    /// # Errors
    /// If `loss` has more than one value, or if the tape is on a GPU, where
    /// [`TrainState`](crate::TrainState) runs the backward pass.
    pub fn backward(self, loss: Var, gradients: &mut Gradients) -> Result<()> {
        self.check_loss(loss)?;
        let seed = Tensor::full(self.shape(loss), 1.0);
        self.backward_from(loss, seed, gradients)
    }

    /// Adds the gradients of the sum of `var · seed` to `gradients`: a backward pass that starts with the gradient `seed`
    /// of `var`.
    ///
    /// # Errors
    /// If `seed` does not have the shape of `var`, or if the tape is on a GPU.
    pub(crate) fn backward_from(self, var: Var, seed: Tensor, gradients: &mut Gradients) -> Result<()> {
        let (got, needed) = (seed.shape(), self.shape(var));
        if got != needed {
            let needed = needed.to_string();
            return Err(Error::Shape { operation: "backward", what: "the gradient", got, needed });
        }
        match self.backend {
            OnDevice::Cpu(tape) => tape.backward_from(var, seed, gradients),
            OnDevice::Cuda(_) => Err(Error::NotOnGpu { operation: "backward into host gradients" }),
        }
    }

    /// Checks that a loss is a single value.
    pub(crate) fn check_loss(&self, loss: Var) -> Result<()> {
        if self.shape(loss).len() == 1 {
            return Ok(());
        }
        Err(self.shape_error("backward", "the loss", loss, "a single value"))
    }

    /// The error of an operand whose shape does not fit.
    pub(crate) fn shape_error(
        &self,
        operation: &'static str,
        what: &'static str,
        var: Var,
        needed: impl std::fmt::Display,
    ) -> Error {
        Error::Shape { operation, what, got: self.shape(var), needed: needed.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_of_a_value_used_twice_are_summed() {
        let mut parameters = Parameters::default();
        let id = parameters.add("w", Tensor::vector(vec![3.0])).unwrap();
        let mut tape = Tape::new(&parameters);
        let (w, again) = (tape.parameter(id), tape.parameter(id));
        assert_eq!(w, again);
        let square = tape.mul(w, w).unwrap();
        let sum = tape.add(square, w).unwrap();
        let mut gradients = Gradients::zeros(&parameters);
        tape.backward(sum, &mut gradients).unwrap();
        assert_eq!(gradients.parameter(id).values(), [7.0]);
    }

    #[test]
    fn gradients_accumulate_over_tapes_until_cleared() {
        let mut parameters = Parameters::default();
        let id = parameters.add("w", Tensor::vector(vec![3.0])).unwrap();
        let mut gradients = Gradients::zeros(&parameters);
        for _ in 0..2 {
            let mut tape = Tape::new(&parameters);
            let w = tape.parameter(id);
            tape.backward(w, &mut gradients).unwrap();
        }
        assert_eq!(gradients.parameter(id).values(), [2.0]);
        gradients.clear();
        assert_eq!(gradients.parameter(id).values(), [0.0]);
    }

    #[test]
    fn a_no_grad_tape_computes_the_same_values_and_no_gradients() {
        let mut parameters = Parameters::default();
        let id = parameters.add("w", Tensor::vector(vec![3.0])).unwrap();
        let mut tape = Tape::no_grad(&parameters, Threads::Caller);
        let w = tape.parameter(id);
        let square = tape.mul(w, w).unwrap();
        assert_eq!(tape.value(square).values(), [9.0]);
        assert!(!tape.requires_grad(w) && !tape.requires_grad(square));
        let mut gradients = Gradients::zeros(&parameters);
        tape.backward(square, &mut gradients).unwrap();
        assert_eq!(gradients.parameter(id).values(), [0.0]);
    }

    #[test]
    fn a_loss_of_two_values_is_refused() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.leaf(Tensor::vector(vec![1.0, 2.0]));
        let error = tape.backward(x, &mut Gradients::zeros(&parameters)).unwrap_err();
        assert_eq!(error.to_string(), "backward: the loss has shape [2], but a single value is needed");
    }
}
