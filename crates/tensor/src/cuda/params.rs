//! Parameters on the GPU, in one buffer, and their Adam state.

use std::collections::VecDeque;
use std::sync::Arc;

use super::context::Context;
use super::kernels::{adam as adam_step, check_finite, f32_to_elem};
use super::memory::{Buffer, Event, Pinned};
use super::nccl::Nccl;
use super::tape::{DeviceCopy, to_gemm_operand};
use crate::adam::Update;
use crate::tape::OnDevice;
use crate::{
    Adam, Error, Gradients, ParameterId, Parameters, Precision, ProcessGroup, Result, StepResult, Tape, Tensor, Var,
};

/// Parameters begin at multiples of this many values, so that vector loads are aligned.
const ALIGNMENT: usize = 128;

/// The first value of each parameter, and the number of values in all.
fn offsets(parameters: &Parameters) -> (Vec<usize>, usize) {
    let mut end = 0;
    let mut offset = |tensor: &Tensor| {
        let first = end;
        end += tensor.shape().len().next_multiple_of(ALIGNMENT);
        first
    };
    (parameters.iter().map(|(_, _, tensor)| offset(tensor)).collect(), end)
}

/// Tensors in one buffer, at their offsets.
fn flatten<'t>(tensors: impl Iterator<Item = &'t Tensor>, offsets: &[usize], total: usize) -> Vec<f32> {
    let mut values = vec![0.0; total];
    for (tensor, &first) in tensors.zip(offsets) {
        values[first..first + tensor.shape().len()].copy_from_slice(tensor.values());
    }
    values
}

/// Parameters on the GPU.
#[derive(Debug)]
pub(crate) struct CudaParams {
    pub(super) cuda: Arc<Context>,
    values: Arc<Buffer>,
    /// Copies for GEMMs, where those do not read `f32`.
    gemm_copies: Option<Arc<Buffer>>,
    /// The number 1: the gradient of a loss with respect to itself.
    pub(super) one: Arc<Buffer>,
    offsets: Vec<usize>,
    total: usize,
}

impl CudaParams {
    pub(crate) fn new(cuda: &Arc<Context>, parameters: &Parameters) -> Result<Self> {
        cuda.enter()?;
        let (offsets, total) = offsets(parameters);
        let values = cuda.upload(&flatten(parameters.iter().map(|(_, _, tensor)| tensor), &offsets, total))?;
        let mut gemm_copies = None;
        if cuda.precision == Precision::Bf16 {
            let copies = cuda.alloc(2 * total)?;
            cuda.launch_1d(total, f32_to_elem(values.ptr(), copies.ptr(), total as u64))?;
            gemm_copies = Some(copies);
        }
        let one = cuda.upload(&[1.0_f32])?;
        Ok(Self { cuda: Arc::clone(cuda), values, gemm_copies, one, offsets, total })
    }

    /// Makes the context current; called before every forward pass.
    pub(crate) fn enter(&self) -> Result<()> {
        self.cuda.enter()
    }

    pub(super) fn offset(&self, id: ParameterId) -> usize {
        self.offsets[id.0]
    }

    /// The device pointer of a parameter.
    pub(super) fn value(&self, id: ParameterId) -> u64 {
        self.values.ptr() + 4 * self.offsets[id.0] as u64
    }

    /// A parameter in the element type of GEMM operands.
    pub(super) fn gemm_copy(&self, id: ParameterId) -> u64 {
        self.gemm_copies.as_ref().map_or(self.value(id), |copies| copies.ptr() + 2 * self.offsets[id.0] as u64)
    }

    /// Copies the parameters to the host, with the names of `like`.
    pub(crate) fn download(&self, like: &Parameters) -> Result<Parameters> {
        self.cuda.enter()?;
        let mut values = vec![0.0; self.total];
        self.cuda.download(self.values.ptr(), &mut values)?;
        let mut parameters = like.clone();
        for (tensor, &first) in parameters.values_mut().zip(&self.offsets) {
            let len = tensor.shape().len();
            tensor.values_mut().copy_from_slice(&values[first..first + len]);
        }
        Ok(parameters)
    }

    /// Copies `tensor` to the GPU, unless it is there already.
    pub(crate) fn upload_tensor(&self, tensor: &Tensor) -> Result<()> {
        if tensor.device_copy().is_some_and(|copy| copy.is_of(&self.cuda)) {
            return Ok(());
        }
        self.cuda.enter()?;
        let values = self.cuda.upload(tensor.values())?;
        let gemm_copy = to_gemm_operand(&self.cuda, values.ptr(), tensor.shape().len())?.buffer;
        tensor.set_device_copy(DeviceCopy { values, gemm_copy });
        Ok(())
    }
}

/// Gradients and Adam state on the GPU.
#[derive(Debug)]
pub(crate) struct CudaAdam {
    cuda: Arc<Context>,
    gradients: Arc<Buffer>,
    means: Arc<Buffer>,
    squares: Arc<Buffer>,
    /// Not 0 once a gradient or a loss was not finite: no further step is taken.
    flag: Arc<Buffer>,
    /// Submitted steps whose results have not been read, oldest first.
    pending: VecDeque<PendingStep>,
    /// Reports that have been read, for reuse.
    spare: Vec<Report>,
    offsets: Vec<usize>,
    total: usize,
    /// The GPUs of a process group, once they have met.
    nccl: Option<Nccl>,
}

impl CudaAdam {
    pub(crate) fn new(cuda: Arc<Context>, parameters: &Parameters) -> Result<Self> {
        cuda.enter()?;
        let (offsets, total) = offsets(parameters);
        let zeros = || -> Result<Arc<Buffer>> {
            let buffer = cuda.alloc_f32(total)?;
            cuda.fill_zero(buffer.ptr(), 4 * total)?;
            Ok(buffer)
        };
        let (gradients, means, squares) = (zeros()?, zeros()?, zeros()?);
        let flag = cuda.alloc_f32(1)?;
        cuda.fill_zero(flag.ptr(), 4)?;
        let (pending, spare) = (VecDeque::new(), Vec::new());
        Ok(Self { cuda, gradients, means, squares, flag, pending, spare, offsets, total, nccl: None })
    }

    /// Copies the Adam state to the host.
    pub(crate) fn download(&self, adam: &mut Adam) -> Result<()> {
        self.cuda.enter()?;
        for (from, to) in [(&self.means, &mut adam.means), (&self.squares, &mut adam.squares)] {
            let mut values = vec![0.0; self.total];
            self.cuda.download(from.ptr(), &mut values)?;
            for (tensor, &first) in to.iter_mut().zip(&self.offsets) {
                let len = tensor.shape().len();
                tensor.values_mut().copy_from_slice(&values[first..first + len]);
            }
        }
        Ok(())
    }

    /// Replaces the Adam state.
    pub(crate) fn upload(&mut self, adam: &Adam) -> Result<()> {
        self.cuda.enter()?;
        let means = self.cuda.upload(&flatten(adam.means.iter(), &self.offsets, self.total))?;
        let squares = self.cuda.upload(&flatten(adam.squares.iter(), &self.offsets, self.total))?;
        (self.means, self.squares) = (means, squares);
        self.pending.clear();
        self.cuda.fill_zero(self.flag.ptr(), 4)?;
        Ok(())
    }

    /// Runs all chunks forward and backward. Returns the losses, still on the GPU.
    pub(crate) fn losses<T, E: From<Error>>(
        &mut self,
        parameters: &Parameters,
        params: &Arc<CudaParams>,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E>,
    ) -> Result<Vec<Arc<Buffer>>, E> {
        self.cuda.enter()?;
        // A previous pass that failed may have left work on the gradient stream.
        self.cuda.drop_sums();
        self.cuda.join()?;
        self.cuda.fill_zero(self.gradients.ptr(), 4 * self.total)?;
        let mut losses = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let mut tape = Tape::on_gpu(parameters, params, false);
            let loss = forward(&mut tape, chunk)?;
            losses.push(tape.backward_on_gpu(loss, self.gradients.ptr())?);
        }
        Ok(losses)
    }

    /// Replaces the gradients by their sums over all ranks of `group`.
    pub(crate) fn sum_over(&mut self, group: &ProcessGroup) -> Result<()> {
        let nccl = match &mut self.nccl {
            Some(nccl) => nccl,
            None => self.nccl.insert(Nccl::new(&self.cuda, group, self.total)?),
        };
        nccl.sum_in_order(self.gradients.ptr())
    }

    /// Submits an Adam step, which has no effect if a gradient or a loss is or was not finite. The host does not wait;
    /// [`CudaAdam::results`] reads the outcome.
    pub(crate) fn step(&mut self, params: &CudaParams, adam: &mut Adam, losses: &[Arc<Buffer>]) -> Result<()> {
        let (cuda, flag, n) = (&self.cuda, self.flag.ptr(), self.total as u64);
        // In one buffer, so that one copy downloads them all.
        let count = losses.len() + 1;
        let report_values = cuda.alloc_f32(count)?;
        let slot = |i: usize| report_values.ptr() + 4 * i as u64;
        for (i, loss) in losses.iter().enumerate() {
            // The gradients are checked with the first loss.
            let n = if i == 0 { self.total } else { 0 };
            cuda.launch_1d(n.max(1), check_finite(self.gradients.ptr(), loss.ptr(), slot(i), flag, n as u64))?;
        }
        let update = adam.next_update();
        let copies = params.gemm_copies.as_ref().map_or(0, |copies| copies.ptr());
        let (grads, means, squares) = (self.gradients.ptr(), self.means.ptr(), self.squares.ptr());
        let report = slot(losses.len());
        let weights = params.values.ptr();
        let call = adam_step(weights, grads, means, squares, copies, flag, report, update.as_array(), n);
        cuda.launch_1d(self.total.max(1), call)?;
        adam.n_steps += 1;
        let mut report = match self.spare.pop().filter(|report| report.memory.has_room(count)) {
            Some(report) => report,
            None => Report::new(count.next_multiple_of(64))?,
        };
        cuda.download_async(report_values.ptr(), &mut report.memory, count)?;
        report.written.record(cuda.stream)?;
        self.pending.push_back(PendingStep { report, count });
        Ok(())
    }

    /// The results of submitted steps, oldest first. Waits for all but the newest `max_pending`.
    pub(crate) fn results(&mut self, max_pending: usize) -> Result<Vec<StepResult>> {
        self.cuda.enter()?;
        let mut steps = Vec::new();
        while self.pending.len() > max_pending {
            let Some(PendingStep { report, count }) = self.pending.pop_front() else { break };
            report.written.wait()?;
            let (flag, losses) = report.memory.floats(count).split_last().unwrap_or((&0.0, &[]));
            let loss = losses.iter().map(|&loss| f64::from(loss)).sum();
            steps.push(StepResult { loss, is_finite: flag.to_bits() == 0 });
            self.spare.push(report);
        }
        Ok(steps)
    }

    /// Waits for `losses` and sums them.
    pub(crate) fn sum_losses(&self, losses: &[Arc<Buffer>]) -> Result<f64> {
        let mut sum = 0.0;
        for loss in losses {
            let mut value = [0.0];
            self.cuda.download(loss.ptr(), &mut value)?;
            sum += f64::from(value[0]);
        }
        Ok(sum)
    }

    /// Copies the gradients to the host.
    pub(crate) fn gradients(&self, parameters: &Parameters) -> Result<Gradients> {
        let mut values = vec![0.0; self.total];
        self.cuda.download(self.gradients.ptr(), &mut values)?;
        let mut gradients = Gradients::zeros(parameters);
        for (tensor, &first) in gradients.parameters.iter_mut().zip(&self.offsets) {
            let len = tensor.shape().len();
            tensor.values_mut().copy_from_slice(&values[first..first + len]);
        }
        Ok(gradients)
    }
}

/// A submitted step.
#[derive(Debug)]
struct PendingStep {
    report: Report,
    /// The number of losses, plus one for the flag after them.
    count: usize,
}

/// Pinned memory for the results of a step.
#[derive(Debug)]
struct Report {
    memory: Pinned,
    written: Event,
}

impl Report {
    fn new(room: usize) -> Result<Self> {
        Ok(Self { memory: Pinned::new(4 * room)?, written: Event::new()? })
    }
}

impl Update {
    /// The scalars in the order of the kernel's `struct Update`.
    fn as_array(self) -> [f32; 7] {
        let Self { grad_share, square_decay, square_share, root_correction, eps, step_size, weight_decay } = self;
        [grad_share, square_decay, square_share, root_correction, eps, step_size, weight_decay]
    }
}

impl Tape<'_> {
    /// Adds the gradients of `loss` to those at `gradients`; returns the loss, still on the GPU.
    fn backward_on_gpu(self, loss: Var, gradients: u64) -> Result<Arc<Buffer>> {
        self.check_loss(loss)?;
        match self.into_backend() {
            OnDevice::Cuda(tape) => tape.backward(loss, gradients),
            OnDevice::Cpu(_) => Err(Error::OtherDevice { operation: "backward" }),
        }
    }
}
