//! The tape's record of a forward pass on the card: values, and the way back to what they were made from.

use std::sync::{Arc, OnceLock};

use super::context::{Context, args};
use super::cross_attention::Known;
use super::memory::Buffer;
use super::params::Resident;
use super::rows::starts;
use super::streams::Lane;
use crate::indices::ListSizes;
use crate::{Error, Indices, Precision, Ragged, Result, Shape, Tensor};

/// Values of a forward pass on the card. Its places are those of the tape's variables.
pub(crate) struct Record<'p> {
    pub(super) cuda: Arc<Context>,
    pub(super) resident: &'p Resident,
    nodes: Vec<Node>,
    used: Vec<Option<usize>>,
    frozen: bool,
    /// Row numbers that are on the card already: channels of a model share theirs.
    indices: Vec<(Indices, DeviceIndices)>,
    /// And where sequences and groups begin.
    starts: Vec<(Ragged, Arc<Buffer>)>,
    groups: Vec<Known>,
    /// The last cross-entropy: an operation that only reads its gradient, and as a loss finds it to be 1.
    pub(super) cross_entropy: Option<usize>,
    /// What went wrong in an operation that cannot say so.
    failure: Option<Error>,
}

struct Node {
    shape: Shape,
    ptr: u64,
    /// Nothing where the value is a parameter.
    buffer: Option<Arc<Buffer>>,
    /// A copy for products, once one was needed.
    factor: OnceLock<Arc<Buffer>>,
    kind: Kind,
}

/// Row numbers on the card, and behind them where each is named, if they were staged with that.
#[derive(Clone)]
pub(super) struct DeviceIndices {
    pub(super) numbers: Arc<Buffer>,
    pub(super) lists: Option<ListSizes>,
}

/// A tensor's values on the card, and a copy for products where those are not made of `f32`.
#[derive(Debug, Clone)]
pub(crate) struct Copies {
    pub(super) values: Arc<Buffer>,
    pub(super) factor: Option<Arc<Buffer>>,
}

impl Copies {
    /// Whether they are where `cuda` reads them, made of what its products read.
    pub(super) fn is_on(&self, cuda: &Arc<Context>) -> bool {
        self.values.is_of(cuda)
    }
}

enum Kind {
    Constant,
    Parameter(usize),
    Operation(Option<Backward>),
}

type Backward = Box<dyn FnOnce(Arc<Buffer>, &mut Back<'_, '_>) -> Result<()> + Send>;

/// A factor of a product: where it is, and what keeps it there.
pub(super) struct Operand {
    pub(super) ptr: u64,
    pub(super) keep: Option<Arc<Buffer>>,
}

/// A value to read: `f32`, or what products are made of.
pub(super) struct Source {
    pub(super) ptr: u64,
    pub(super) is_wide: bool,
    pub(super) keep: Option<Arc<Buffer>>,
}

impl<'p> Record<'p> {
    pub(crate) fn new(resident: &'p Resident, n_parameters: usize, frozen: bool) -> Self {
        let cuda = Arc::clone(&resident.cuda);
        Self {
            cuda,
            resident,
            nodes: Vec::new(),
            used: vec![None; n_parameters],
            frozen,
            indices: Vec::new(),
            starts: Vec::new(),
            groups: Vec::new(),
            cross_entropy: None,
            failure: None,
        }
    }

    pub(crate) fn shape(&self, var: usize) -> Shape {
        self.nodes[var].shape
    }

    pub(crate) fn wants_gradient(&self, var: usize) -> bool {
        !matches!(self.nodes[var].kind, Kind::Constant)
    }

    pub(super) fn ptr(&self, var: usize) -> u64 {
        self.nodes[var].ptr
    }

    pub(super) fn buffer(&self, var: usize) -> Option<&Arc<Buffer>> {
        self.nodes[var].buffer.as_ref()
    }

    /// The value in memory that lives as long as somebody has it; of a parameter that is a copy.
    pub(super) fn held(&self, var: usize) -> Result<Arc<Buffer>> {
        if let Some(buffer) = self.buffer(var) {
            return Ok(Arc::clone(buffer));
        }
        let count = self.shape(var).len();
        let copy = self.cuda.floats(count)?;
        self.cuda.copy(self.ptr(var), copy.ptr(), 4 * count)?;
        Ok(copy)
    }

    /// A value that gets no gradient. Should it not reach the card, the next operation says so.
    pub(crate) fn input(&mut self, tensor: &Tensor) -> usize {
        let placed = if let Some(copies) = tensor.placed().filter(|copies| copies.is_on(&self.cuda)) {
            Ok(copies.clone())
        } else {
            let staged = tensor.staged().filter(|staged| staged.is_for(&self.cuda));
            let values = staged.map_or_else(|| self.cuda.upload(tensor.values()), |staged| self.cuda.bring(staged));
            values.map(|values| Copies { values, factor: None })
        };
        let (ptr, buffer, factor) = match placed {
            Ok(Copies { values, factor }) => (values.ptr(), Some(values), factor),
            Err(error) => {
                self.failure.get_or_insert(error);
                (0, None, None)
            }
        };
        let factor = factor.map_or_else(OnceLock::new, OnceLock::from);
        self.node(Node { shape: tensor.shape(), ptr, buffer, factor, kind: Kind::Constant })
    }

    /// The same of what many tapes read: it is brought to the card once.
    pub(crate) fn table(&mut self, tensor: &Tensor) -> usize {
        if let Err(error) = self.resident.place(tensor) {
            self.failure.get_or_insert(error);
        }
        self.input(tensor)
    }

    pub(crate) fn parameter(&mut self, id: usize, shape: Shape) -> usize {
        if let Some(var) = self.used[id] {
            return var;
        }
        let kind = if self.frozen { Kind::Constant } else { Kind::Parameter(id) };
        let var = self.node(Node { shape, ptr: self.resident.value(id), buffer: None, factor: OnceLock::new(), kind });
        self.used[id] = Some(var);
        var
    }

    /// Row numbers on the card.
    pub(super) fn indices(&mut self, indices: &Indices) -> Result<DeviceIndices> {
        if let Some((_, known)) = self.indices.iter().find(|(known, _)| known.is_same(indices)) {
            return Ok(known.clone());
        }
        let brought = match indices.staged().filter(|ready| ready.staged.is_for(&self.cuda)) {
            Some(ready) => DeviceIndices { numbers: self.cuda.bring(&ready.staged)?, lists: ready.lists },
            None => DeviceIndices { numbers: self.cuda.upload(indices)?, lists: None },
        };
        self.indices.push((indices.clone(), brought.clone()));
        Ok(brought)
    }

    /// Where sequences begin, and the last one ends, on the card.
    pub(super) fn starts(&mut self, batch: &Ragged) -> Result<Arc<Buffer>> {
        if let Some((_, known)) = self.starts.iter().find(|(known, _)| known.is_same(batch)) {
            return Ok(Arc::clone(known));
        }
        let staged = batch.staged().filter(|staged| staged.is_for(&self.cuda));
        let brought = staged.map_or_else(|| self.cuda.upload(&starts(batch)), |staged| self.cuda.bring(staged))?;
        self.starts.push((batch.clone(), Arc::clone(&brought)));
        Ok(brought)
    }

    pub(super) fn known_groups(&mut self) -> &mut Vec<Known> {
        &mut self.groups
    }

    /// The error that is still to be told.
    pub(super) fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// An operation that there is not on the card.
    pub(crate) fn refuse(&mut self, operation: &'static str, shape: Shape) -> usize {
        self.or_fail(Err(Error::NotOnGpu { operation }), shape)
    }

    /// The result of an operation, or, where that failed, something of its shape: the next operation tells the error.
    pub(super) fn or_fail(&mut self, result: Result<usize>, shape: Shape) -> usize {
        result.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            self.node(Node { shape, ptr: 0, buffer: None, factor: OnceLock::new(), kind: Kind::Constant })
        })
    }

    pub(super) fn push(
        &mut self,
        operands: &[usize],
        shape: Shape,
        buffer: Arc<Buffer>,
        backward: impl FnOnce(Arc<Buffer>, &mut Back<'_, '_>) -> Result<()> + Send + 'static,
    ) -> usize {
        let kind = if operands.iter().any(|&var| self.wants_gradient(var)) {
            Kind::Operation(Some(Box::new(backward)))
        } else {
            Kind::Constant
        };
        self.node(Node { shape, ptr: buffer.ptr(), buffer: Some(buffer), factor: OnceLock::new(), kind })
    }

    fn node(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The value as a factor of a product.
    pub(super) fn operand(&self, var: usize) -> Result<Operand> {
        let node = &self.nodes[var];
        if self.cuda.precision != Precision::Bf16 {
            return Ok(Operand { ptr: node.ptr, keep: None });
        }
        if let (None, Some(id)) = (&node.buffer, self.used.iter().position(|used| *used == Some(var))) {
            return Ok(Operand { ptr: self.resident.factor(id), keep: None });
        }
        if let Some(copy) = node.factor.get() {
            return Ok(Operand { ptr: copy.ptr(), keep: Some(Arc::clone(copy)) });
        }
        let operand = narrow(&self.cuda, node.ptr, node.shape.len())?;
        if let Some(copy) = &operand.keep {
            let _ = node.factor.set(Arc::clone(copy));
        }
        Ok(operand)
    }

    /// The value as it lies there already.
    pub(super) fn source(&self, var: usize) -> Source {
        let node = &self.nodes[var];
        match node.factor.get() {
            Some(copy) => Source { ptr: copy.ptr(), is_wide: false, keep: Some(Arc::clone(copy)) },
            None => Source { ptr: node.ptr, is_wide: true, keep: node.buffer.clone() },
        }
    }

    /// Waits, and reads a value.
    pub(crate) fn read(&self, var: usize) -> Result<Vec<f32>> {
        let node = &self.nodes[var];
        let mut values = vec![0.0; node.shape.len()];
        self.cuda.download(node.ptr, &mut values)?;
        Ok(values)
    }

    /// Adds to the gradients at `gradients` those of `loss`, which must be a single value; the loss.
    pub(crate) fn backward(mut self, loss: usize, gradients: u64) -> Result<Arc<Buffer>> {
        self.check()?;
        let loss_value =
            self.nodes[loss].buffer.clone().ok_or(Error::NotOnGpu { operation: "a loss without a model" })?;
        let mut pending: Vec<Option<Arc<Buffer>>> = self.nodes.iter().map(|_| None).collect();
        // Others may write to the gradient they are handed.
        let is_read = self.cross_entropy == Some(loss);
        pending[loss] = Some(if is_read { Arc::clone(&self.resident.one) } else { self.cuda.upload(&[1.0_f32])? });
        for index in (0..self.nodes.len()).rev() {
            let Some(grad) = pending[index].take() else { continue };
            let Kind::Operation(backward) = &mut self.nodes[index].kind else { continue };
            let Some(backward) = backward.take() else { continue };
            backward(grad, &mut Back { record: &self, pending: &mut pending, gradients })?;
            // What was made from this value has been walked already, so that nobody reads it again.
            self.nodes[index].buffer = None;
            self.nodes[index].factor = OnceLock::new();
        }
        self.cuda.join()?;
        Ok(loss_value)
    }
}

/// A copy of `count` values for products, where those are not made of `f32`.
pub(super) fn narrow(cuda: &Arc<Context>, ptr: u64, count: usize) -> Result<Operand> {
    if cuda.precision != Precision::Bf16 {
        return Ok(Operand { ptr, keep: None });
    }
    let copy = cuda.take(2 * count)?;
    cuda.each("to_elem", count, args![ptr, copy.ptr(), count as u64])?;
    Ok(Operand { ptr: copy.ptr(), keep: Some(copy) })
}

/// What an operation sees on the way back, and where it leaves gradients.
pub(super) struct Back<'a, 'p> {
    pub(super) record: &'a Record<'p>,
    pending: &'a mut [Option<Arc<Buffer>>],
    gradients: u64,
}

/// Where a gradient goes: to be written, or added to.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) ptr: u64,
    pub(super) add: bool,
}

impl Back<'_, '_> {
    pub(super) fn cuda(&self) -> &Arc<Context> {
        &self.record.cuda
    }

    /// The stream on which the gradients of `vars` grow, and on which what they grow from is ready: the main one where
    /// another operation is to read one of them.
    pub(super) fn lane(&self, vars: &[usize]) -> Result<Lane> {
        let is_read = |&var: &usize| matches!(self.record.nodes[var].kind, Kind::Operation(_));
        if vars.iter().any(is_read) { Ok(Lane::Main) } else { self.cuda().fork() }
    }

    /// Where the gradient of `var` goes; nothing where nobody wants it.
    pub(super) fn target(&mut self, var: usize) -> Result<Option<Target>> {
        self.target_on(Lane::Main, var)
    }

    /// The same for work on one of the streams. A parameter's sum may still be growing on the other.
    pub(super) fn target_on(&mut self, lane: Lane, var: usize) -> Result<Option<Target>> {
        match self.record.nodes[var].kind {
            Kind::Constant => Ok(None),
            Kind::Parameter(id) => {
                if lane == Lane::Main {
                    self.cuda().join()?;
                }
                Ok(Some(Target { ptr: self.gradients + 4 * self.record.resident.offset(id) as u64, add: true }))
            }
            Kind::Operation(_) => {
                if let Some(sum) = &self.pending[var] {
                    return Ok(Some(Target { ptr: sum.ptr(), add: true }));
                }
                let fresh = self.record.cuda.floats(self.record.shape(var).len())?;
                let target = Target { ptr: fresh.ptr(), add: false };
                self.pending[var] = Some(fresh);
                Ok(Some(target))
            }
        }
    }

    /// Where the gradient of a parameter is added to; 0 where nobody wants it.
    pub(super) fn sum_of(&mut self, var: usize) -> Result<u64> {
        self.sum_on(Lane::Main, var)
    }

    /// The same for work on one of the streams.
    pub(super) fn sum_on(&mut self, lane: Lane, var: usize) -> Result<u64> {
        let Some(target) = self.target_on(lane, var)? else { return Ok(0) };
        if !target.add {
            self.cuda().fill_zero(target.ptr, 4 * self.record.shape(var).len())?;
        }
        Ok(target.ptr)
    }

    /// Adds `grad` to the gradient of `var`, without copying it where it is the first.
    pub(super) fn give(&mut self, var: usize, grad: Arc<Buffer>) -> Result<()> {
        if matches!(self.record.nodes[var].kind, Kind::Operation(_)) && self.pending[var].is_none() {
            self.pending[var] = Some(grad);
            return Ok(());
        }
        let count = self.record.shape(var).len();
        match self.target(var)? {
            None => Ok(()),
            Some(target) => self.cuda().each("add_to", count, args![target.ptr, grad.ptr(), count as u64]),
        }
    }
}
