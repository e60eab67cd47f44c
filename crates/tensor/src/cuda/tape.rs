//! The CUDA backend of a tape: values are buffers in GPU memory.

use std::sync::{Arc, OnceLock};

use super::context::Context;
use super::kernels::{accumulate, f32_to_elem};
use super::memory::{Buffer, PendingCopy};
use super::params::CudaParams;
use super::streams::Stream;
use crate::indices::RowListSizes;
use crate::op::cross_attention::CachedGroups;
use crate::tape::{Backend, BackwardPass, Kind, Node, NodeList};
use crate::{Error, Indices, ParameterId, Parameters, Precision, Ragged, Result, Shape, Tensor, Var};

/// A tape whose values are in GPU memory.
pub(crate) type CudaTape<'p> = NodeList<'p, Cuda>;

pub(crate) struct Cuda {
    context: Arc<Context>,
    params: Arc<CudaParams>,
    /// Indices that are on the GPU already: channels of a model share theirs.
    indices: Vec<(Indices, DeviceIndices)>,
    /// Offsets of ragged batches that are on the GPU already.
    offsets: Vec<(Ragged, Arc<Buffer>)>,
    attention_groups: Vec<CachedGroups>,
    /// The last cross-entropy. Its backward only reads the gradient it is given, and as a loss finds it to be 1.
    cross_entropy: Option<Var>,
    /// The error of an operation that cannot return one; the next operation returns it.
    deferred_error: Option<Error>,
}

impl Cuda {
    /// The value of a parameter.
    fn parameter_value(&self, id: ParameterId) -> DeviceValue {
        DeviceValue { ptr: self.params.value(id), buffer: None, gemm_copy: OnceLock::new() }
    }
}

/// A value in GPU memory.
pub(crate) struct DeviceValue {
    ptr: u64,
    /// `None` for a parameter, which [`CudaParams`] owns.
    buffer: Option<Arc<Buffer>>,
    /// A copy in the element type of GEMM operands, made at its first use.
    gemm_copy: OnceLock<Arc<Buffer>>,
}

/// Indices on the GPU, followed there by their [row lists](crate::indices::RowLists) if they were staged with them.
#[derive(Clone)]
pub(crate) struct DeviceIndices {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) lists: Option<RowListSizes>,
}

/// A tensor's values on the GPU, with a copy for GEMMs where those do not read `f32`.
#[derive(Debug, Clone)]
pub(crate) struct DeviceCopy {
    pub(super) values: Arc<Buffer>,
    pub(super) gemm_copy: Option<Arc<Buffer>>,
}

impl DeviceCopy {
    /// Whether the copy was made by `cuda`, in its precision.
    pub(super) fn is_of(&self, cuda: &Arc<Context>) -> bool {
        self.values.is_of(cuda)
    }
}

type Backward = Box<dyn FnOnce(Arc<Buffer>, &mut CudaBackwardCtx<'_>) -> Result<()> + Send>;

impl Backend for Cuda {
    type Value = DeviceValue;
    type Grad = Arc<Buffer>;
    type Backward = Backward;
    /// The device pointer of the gradients of all parameters.
    type Gradients = u64;

    fn call_backward(
        nodes: &CudaTape<'_>,
        _output: Var,
        backward: Backward,
        grad: Arc<Buffer>,
        pass: BackwardPass<'_, Self>,
    ) -> Result<()> {
        backward(grad, &mut CudaBackwardCtx { tape: nodes, pass })
    }

    fn release(value: &mut DeviceValue) {
        value.buffer = None;
        value.gemm_copy = OnceLock::new();
    }
}

/// An operand of a GEMM, and the buffer that keeps it alive.
pub(crate) struct GemmOperand {
    pub(crate) ptr: u64,
    pub(crate) buffer: Option<Arc<Buffer>>,
}

/// A value in whichever element type it is stored.
pub(crate) struct StoredValue {
    pub(crate) ptr: u64,
    /// Whether it is `f32` rather than the element type of GEMM operands.
    pub(crate) is_f32: bool,
    pub(crate) buffer: Option<Arc<Buffer>>,
}

impl<'p> CudaTape<'p> {
    pub(crate) fn on_gpu(parameters: &'p Parameters, params: &Arc<CudaParams>, is_no_grad: bool) -> Self {
        let backend = Cuda {
            context: Arc::clone(&params.cuda),
            params: Arc::clone(params),
            indices: Vec::new(),
            offsets: Vec::new(),
            attention_groups: Vec::new(),
            cross_entropy: None,
            deferred_error: None,
        };
        Self::new(parameters, backend, is_no_grad)
    }

    pub(crate) fn cuda(&self) -> &Arc<Context> {
        &self.backend.context
    }

    pub(crate) fn ptr(&self, var: Var) -> u64 {
        self.node(var).value.ptr
    }

    pub(crate) fn buffer(&self, var: Var) -> Option<&Arc<Buffer>> {
        self.node(var).value.buffer.as_ref()
    }

    /// The buffer of a value; for a parameter, a copy of it.
    pub(crate) fn buffer_or_copy(&self, var: Var) -> Result<Arc<Buffer>> {
        if let Some(buffer) = self.buffer(var) {
            return Ok(Arc::clone(buffer));
        }
        let count = self.shape(var).len();
        let copy = self.cuda().alloc_f32(count)?;
        self.cuda().copy(self.ptr(var), copy.ptr(), 4 * count)?;
        Ok(copy)
    }

    /// A value that requires no gradient. An upload that fails is reported by the next operation.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of the CPU tape, which shares the tensor")]
    pub(crate) fn input(&mut self, tensor: Arc<Tensor>) -> Var {
        self.upload_input(&tensor)
    }

    pub(crate) fn upload_input(&mut self, tensor: &Tensor) -> Var {
        let cuda = self.cuda();
        let on_gpu = if let Some(copy) = tensor.device_copy().filter(|copy| copy.is_of(cuda)) {
            Ok(copy.clone())
        } else {
            let staged = tensor.staged().filter(|staged| staged.is_of(cuda));
            let values = staged.map_or_else(|| cuda.upload(tensor.values()), |staged| cuda.upload_staged(staged));
            values.map(|values| DeviceCopy { values, gemm_copy: None })
        };
        let (ptr, buffer, gemm_copy) = match on_gpu {
            Ok(DeviceCopy { values, gemm_copy }) => (values.ptr(), Some(values), gemm_copy),
            Err(error) => {
                self.backend.deferred_error.get_or_insert(error);
                (0, None, None)
            }
        };
        let gemm_copy = gemm_copy.map_or_else(OnceLock::new, OnceLock::from);
        let value = DeviceValue { ptr, buffer, gemm_copy };
        self.push_node(Node { shape: tensor.shape(), value, kind: Kind::Constant })
    }

    /// An input that many tapes read: it is uploaded once.
    pub(crate) fn cached_input(&mut self, tensor: &Arc<Tensor>) -> Var {
        if let Err(error) = self.backend.params.upload_tensor(tensor) {
            self.backend.deferred_error.get_or_insert(error);
        }
        self.upload_input(tensor)
    }

    #[expect(clippy::needless_pass_by_value, reason = "the signature of the CPU tape, which owns the tensor")]
    pub(crate) fn leaf(&mut self, tensor: Tensor) -> Var {
        self.or_defer(Err(Error::NotOnGpu { operation: "the gradient of an input" }), tensor.shape())
    }

    pub(crate) fn parameter(&mut self, id: ParameterId) -> Var {
        self.parameter_with(id, |cuda| cuda.parameter_value(id))
    }

    pub(crate) fn frozen(&mut self, id: ParameterId) -> Var {
        self.frozen_with(id, |cuda| cuda.parameter_value(id))
    }

    /// Indices on the GPU.
    pub(crate) fn indices(&mut self, indices: &Indices) -> Result<DeviceIndices> {
        if let Some((_, known)) = self.backend.indices.iter().find(|(known, _)| known.is_same(indices)) {
            return Ok(known.clone());
        }
        let cuda = self.cuda();
        let on_gpu = match indices.staged().filter(|ready| ready.staged.is_of(cuda)) {
            Some(ready) => DeviceIndices { buffer: cuda.upload_staged(&ready.staged)?, lists: ready.lists },
            None => DeviceIndices { buffer: cuda.upload(indices)?, lists: None },
        };
        self.backend.indices.push((indices.clone(), on_gpu.clone()));
        Ok(on_gpu)
    }

    /// The offsets of a ragged batch on the GPU.
    pub(crate) fn offsets(&mut self, batch: &Ragged) -> Result<Arc<Buffer>> {
        if let Some((_, known)) = self.backend.offsets.iter().find(|(known, _)| known.is_same(batch)) {
            return Ok(Arc::clone(known));
        }
        let cuda = self.cuda();
        let staged = batch.staged().filter(|staged| staged.is_of(cuda));
        let on_gpu = staged.map_or_else(|| cuda.upload(&batch.offsets_u32()), |staged| cuda.upload_staged(staged))?;
        self.backend.offsets.push((batch.clone(), Arc::clone(&on_gpu)));
        Ok(on_gpu)
    }

    pub(crate) fn attention_groups(&mut self) -> &mut Vec<CachedGroups> {
        &mut self.backend.attention_groups
    }

    pub(crate) fn set_cross_entropy(&mut self, var: Var) {
        self.backend.cross_entropy = Some(var);
    }

    /// Returns the error of an earlier operation that could not return it.
    pub(crate) fn check_deferred(&mut self) -> Result<()> {
        self.backend.deferred_error.take().map_or(Ok(()), Err)
    }

    /// The result of an operation that returns no error; where it failed, a placeholder of its shape, and the next
    /// operation returns the error.
    pub(crate) fn or_defer(&mut self, result: Result<Var>, shape: Shape) -> Var {
        result.unwrap_or_else(|error| {
            self.backend.deferred_error.get_or_insert(error);
            let value = DeviceValue { ptr: 0, buffer: None, gemm_copy: OnceLock::new() };
            self.push_node(Node { shape, value, kind: Kind::Constant })
        })
    }

    /// Adds the result of an operation and its backward function.
    pub(crate) fn push(
        &mut self,
        operands: &[Var],
        shape: Shape,
        buffer: Arc<Buffer>,
        backward: impl FnOnce(Arc<Buffer>, &mut CudaBackwardCtx<'_>) -> Result<()> + Send + 'static,
    ) -> Var {
        let value = DeviceValue { ptr: buffer.ptr(), buffer: Some(buffer), gemm_copy: OnceLock::new() };
        self.push_operation(operands, shape, value, || Box::new(backward))
    }

    /// The value in the element type of GEMM operands.
    pub(crate) fn gemm_operand(&self, var: Var) -> Result<GemmOperand> {
        let Node { shape, value, .. } = self.node(var);
        if self.cuda().precision != Precision::Bf16 {
            return Ok(GemmOperand { ptr: value.ptr, buffer: None });
        }
        if let (None, Some(id)) = (&value.buffer, self.parameter_of(var)) {
            return Ok(GemmOperand { ptr: self.backend.params.gemm_copy(id), buffer: None });
        }
        if let Some(copy) = value.gemm_copy.get() {
            return Ok(GemmOperand { ptr: copy.ptr(), buffer: Some(Arc::clone(copy)) });
        }
        let operand = to_gemm_operand(self.cuda(), value.ptr, shape.len())?;
        if let Some(copy) = &operand.buffer {
            let _ = value.gemm_copy.set(Arc::clone(copy));
        }
        Ok(operand)
    }

    /// The value without a conversion: its GEMM copy if there is one, else the `f32` values.
    pub(crate) fn stored_value(&self, var: Var) -> StoredValue {
        let value = &self.node(var).value;
        match value.gemm_copy.get() {
            Some(copy) => StoredValue { ptr: copy.ptr(), is_f32: false, buffer: Some(Arc::clone(copy)) },
            None => StoredValue { ptr: value.ptr, is_f32: true, buffer: value.buffer.clone() },
        }
    }

    /// Waits for a value and copies it to the host.
    pub(crate) fn read(&self, var: Var) -> Result<Vec<f32>> {
        let mut values = vec![0.0; self.shape(var).len()];
        self.cuda().download(self.ptr(var), &mut values)?;
        Ok(values)
    }

    /// Copies a value to the host without waiting for it.
    pub(crate) fn read_later(&self, var: Var) -> Result<PendingCopy> {
        self.cuda().download_later(self.ptr(var), self.shape(var).len())
    }

    /// Adds the gradients of `loss`, a single value, to those at `gradients`; returns the loss, still on the GPU.
    pub(crate) fn backward(mut self, loss: Var, mut gradients: u64) -> Result<Arc<Buffer>> {
        self.check_deferred()?;
        let loss_value = self.buffer(loss).cloned().ok_or(Error::NotOnGpu { operation: "a loss without a model" })?;
        let mut pending: Vec<Option<Arc<Buffer>>> = (0..self.len()).map(|_| None).collect();
        // Other operations may write to the gradient they are given, so that it cannot be shared.
        let is_read_only = self.backend.cross_entropy == Some(loss);
        let one = if is_read_only { Arc::clone(&self.backend.params.one) } else { self.cuda().upload(&[1.0_f32])? };
        pending[loss.0] = Some(one);
        self.run_backward(pending, &mut gradients)?;
        self.cuda().join()?;
        Ok(loss_value)
    }
}

/// `count` values at `ptr` in the element type of GEMM operands; a copy where that is not `f32`.
pub(super) fn to_gemm_operand(cuda: &Arc<Context>, ptr: u64, count: usize) -> Result<GemmOperand> {
    if cuda.precision != Precision::Bf16 {
        return Ok(GemmOperand { ptr, buffer: None });
    }
    let copy = cuda.alloc(2 * count)?;
    cuda.launch_1d(count, f32_to_elem(ptr, copy.ptr(), count as u64))?;
    Ok(GemmOperand { ptr: copy.ptr(), buffer: Some(copy) })
}

/// What a backward function reads, and where it accumulates the gradients of its operands.
pub(crate) struct CudaBackwardCtx<'a> {
    pub(crate) tape: &'a CudaTape<'a>,
    pass: BackwardPass<'a, Cuda>,
}

/// Where a gradient is written.
#[derive(Clone, Copy)]
pub(crate) struct GradTarget {
    pub(crate) ptr: u64,
    /// Whether to add to the values there instead of overwriting them.
    pub(crate) accumulate: bool,
}

impl CudaBackwardCtx<'_> {
    pub(crate) fn cuda(&self) -> &Arc<Context> {
        self.tape.cuda()
    }

    /// Whether `grad` is the shared constant 1 of a loss.
    pub(crate) fn is_one(&self, grad: &Arc<Buffer>) -> bool {
        Arc::ptr_eq(grad, &self.tape.backend.params.one)
    }

    /// `values` in the element type of GEMM operands.
    pub(crate) fn to_gemm_operand(&self, values: &Buffer, count: usize) -> Result<GemmOperand> {
        to_gemm_operand(self.cuda(), values.ptr(), count)
    }

    /// The stream on which the gradients of `vars` are accumulated: the main one where another operation reads one of them.
    /// All work submitted so far is visible there.
    pub(crate) fn grad_stream(&self, vars: &[Var]) -> Result<Stream> {
        let is_read = |&var: &Var| matches!(self.tape.node(var).kind, Kind::Operation(_));
        if vars.iter().any(is_read) { Ok(Stream::Main) } else { self.cuda().fork() }
    }

    /// Where the gradient of `var` goes; `None` where it requires none.
    pub(crate) fn grad_target(&mut self, var: Var) -> Result<Option<GradTarget>> {
        self.grad_target_on(Stream::Main, var)
    }

    /// [`grad_target`](Self::grad_target) for work on `stream`. A parameter's gradient may still be accumulating on the
    /// other stream.
    pub(crate) fn grad_target_on(&mut self, stream: Stream, var: Var) -> Result<Option<GradTarget>> {
        let tape = self.tape;
        match tape.node(var).kind {
            Kind::Constant | Kind::Leaf => Ok(None),
            Kind::Parameter(id) => {
                if stream == Stream::Main {
                    self.cuda().join()?;
                }
                let ptr = *self.pass.gradients + 4 * tape.backend.params.offset(id) as u64;
                Ok(Some(GradTarget { ptr, accumulate: true }))
            }
            Kind::Operation(_) => {
                if let Some(sum) = &self.pass.pending[var.0] {
                    return Ok(Some(GradTarget { ptr: sum.ptr(), accumulate: true }));
                }
                let fresh = tape.cuda().alloc_f32(tape.shape(var).len())?;
                let target = GradTarget { ptr: fresh.ptr(), accumulate: false };
                self.pass.pending[var.0] = Some(fresh);
                Ok(Some(target))
            }
        }
    }

    /// The pointer to add the gradient of `var` to; 0 where it requires none.
    pub(crate) fn grad_sum(&mut self, var: Var) -> Result<u64> {
        self.grad_sum_on(Stream::Main, var)
    }

    /// [`grad_sum`](Self::grad_sum) for work on `stream`.
    pub(crate) fn grad_sum_on(&mut self, stream: Stream, var: Var) -> Result<u64> {
        let Some(target) = self.grad_target_on(stream, var)? else { return Ok(0) };
        if !target.accumulate {
            self.cuda().fill_zero(target.ptr, 4 * self.tape.shape(var).len())?;
        }
        Ok(target.ptr)
    }

    /// Adds `grad` to the gradient of `var`, without a copy where it is the first.
    pub(crate) fn accumulate(&mut self, var: Var, grad: Arc<Buffer>) -> Result<()> {
        let is_operation = matches!(self.tape.node(var).kind, Kind::Operation(_));
        if is_operation && self.pass.pending[var.0].is_none() {
            self.pass.pending[var.0] = Some(grad);
            return Ok(());
        }
        let count = self.tape.shape(var).len();
        match self.grad_target(var)? {
            None => Ok(()),
            Some(target) => self.cuda().launch_1d(count, accumulate(target.ptr, grad.ptr(), count as u64)),
        }
    }

    /// Adds `count` values at `from`, which stay readable, to the gradient of `var`.
    pub(crate) fn accumulate_part(&mut self, var: Var, from: u64, count: usize) -> Result<()> {
        match self.grad_target(var)? {
            None => Ok(()),
            Some(_) if count == 0 => Ok(()),
            Some(to) if to.accumulate => self.cuda().launch_1d(count, accumulate(to.ptr, from, count as u64)),
            Some(to) => self.cuda().copy(from, to.ptr, 4 * count),
        }
    }
}
