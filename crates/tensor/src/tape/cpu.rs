//! The CPU backend of a tape: values are tensors in host memory.

use std::sync::Arc;

use super::nodes::{Backend, BackwardPass, Kind, Node, NodeList};
use super::{Gradients, Var};
use crate::gemm::Weight;
use crate::scratch::{self, Scratch};
use crate::vector::add_to;
use crate::{ParameterId, Result, Shape, Tensor, Threads};

/// A tape whose values are in host memory.
pub(crate) type CpuTape<'p> = NodeList<'p, Cpu>;

pub(crate) struct Cpu {
    pub(crate) threads: Threads,
}

pub(crate) enum Value {
    Owned(Tensor),
    Shared(Arc<Tensor>),
    Parameter(ParameterId),
}

type Backward = Box<dyn FnOnce(Scratch, &BackwardCtx<'_>, &mut GradSink<'_>) + Send>;

impl Backend for Cpu {
    type Value = Value;
    type Grad = Scratch;
    type Backward = Backward;
    type Gradients = Gradients;

    fn call_backward(
        nodes: &CpuTape<'_>,
        output: Var,
        backward: Backward,
        grad: Scratch,
        pass: BackwardPass<'_, Self>,
    ) -> Result<()> {
        let ctx = BackwardCtx { tape: nodes, threads: nodes.backend.threads, output };
        backward(grad, &ctx, &mut GradSink { tape: nodes, pass });
        Ok(())
    }

    fn release(value: &mut Value) {
        *value = Value::Owned(Tensor::zeros(Shape::Vector(0)));
    }
}

impl CpuTape<'_> {
    pub(crate) fn threads(&self) -> Threads {
        self.backend.threads
    }

    pub(crate) fn input(&mut self, tensor: Arc<Tensor>) -> Var {
        let shape = tensor.shape();
        self.push_node(Node { shape, value: Value::Shared(tensor), kind: Kind::Constant })
    }

    pub(crate) fn cached_input(&mut self, tensor: &Arc<Tensor>) -> Var {
        self.input(Arc::clone(tensor))
    }

    pub(crate) fn leaf(&mut self, tensor: Tensor) -> Var {
        self.push_node(Node { shape: tensor.shape(), value: Value::Owned(tensor), kind: Kind::Leaf })
    }

    pub(crate) fn parameter(&mut self, id: ParameterId) -> Var {
        self.parameter_with(id, |_| Value::Parameter(id))
    }

    pub(crate) fn frozen(&mut self, id: ParameterId) -> Var {
        self.frozen_with(id, |_| Value::Parameter(id))
    }

    pub(crate) fn value(&self, var: Var) -> &Tensor {
        match &self.node(var).value {
            Value::Owned(tensor) => tensor,
            Value::Shared(tensor) => tensor,
            Value::Parameter(id) => self.parameters().get(*id),
        }
    }

    /// A variable as the right operand of a GEMM.
    pub(crate) fn weight(&self, var: Var) -> Weight<'_> {
        match self.node(var).value {
            Value::Parameter(id) => self.parameters().weight(id),
            Value::Owned(_) | Value::Shared(_) => Weight::new(self.value(var), None),
        }
    }

    pub(crate) fn read(&self, var: Var) -> Vec<f32> {
        self.value(var).values().to_vec()
    }

    /// Adds the result of an operation and its backward function.
    pub(crate) fn push(
        &mut self,
        operands: &[Var],
        value: Tensor,
        backward: impl FnOnce(Scratch, &BackwardCtx<'_>, &mut GradSink<'_>) + Send + 'static,
    ) -> Var {
        self.push_operation(operands, value.shape(), Value::Owned(value), || Box::new(backward))
    }

    /// Adds to `gradients` the gradients of the sum of `var · seed`.
    pub(crate) fn backward_from(mut self, var: Var, seed: Tensor, gradients: &mut Gradients) -> Result<()> {
        let mut pending: Vec<Option<Scratch>> = (0..self.len()).map(|_| None).collect();
        let pass = BackwardPass { pending: &mut pending, gradients: &mut *gradients };
        GradSink { tape: &self, pass }.accumulate(var, seed.into_values());
        self.run_backward(pending, gradients)
    }
}

/// What a backward function reads: the values of the forward pass.
pub(crate) struct BackwardCtx<'a> {
    tape: &'a CpuTape<'a>,
    pub(crate) threads: Threads,
    output: Var,
}

impl BackwardCtx<'_> {
    pub(crate) fn value(&self, var: Var) -> &Tensor {
        self.tape.value(var)
    }

    pub(crate) fn weight(&self, var: Var) -> Weight<'_> {
        self.tape.weight(var)
    }

    /// The operation's own result.
    pub(crate) fn output(&self) -> &Tensor {
        self.value(self.output)
    }
}

/// Where a backward function accumulates the gradients of its operands.
pub(crate) struct GradSink<'a> {
    tape: &'a CpuTape<'a>,
    pass: BackwardPass<'a, Cpu>,
}

impl GradSink<'_> {
    pub(crate) fn requires_grad(&self, var: Var) -> bool {
        self.tape.requires_grad(var)
    }

    /// Lets `add` add to the gradient of `var`; does nothing where `var` requires none.
    pub(crate) fn accumulate_with(&mut self, var: Var, add: impl FnOnce(&mut [f32])) {
        let BackwardPass { pending, gradients } = &mut self.pass;
        let Node { shape, kind, .. } = self.tape.node(var);
        match kind {
            Kind::Constant => {}
            Kind::Leaf => add(gradients.leaf_mut(var, *shape).values_mut()),
            Kind::Parameter(id) => add(gradients.parameters[id.0].values_mut()),
            Kind::Operation(_) => add(pending[var.0].get_or_insert_with(|| scratch::take_zeros(shape.len()))),
        }
    }

    /// Adds `grad` to the gradient of `var`, without a copy where it is the first.
    pub(crate) fn accumulate(&mut self, var: Var, grad: Scratch) {
        let is_first = self.pass.pending[var.0].is_none();
        if is_first && matches!(self.tape.node(var).kind, Kind::Operation(_)) {
            self.pass.pending[var.0] = Some(grad);
        } else {
            self.accumulate_with(var, |sum| add_to(sum, &grad));
        }
    }
}
