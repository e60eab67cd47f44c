//! The node list of a tape: shapes, values and backward functions, generic over where values live.

use super::Var;
use crate::{ParameterId, Parameters, Result, Shape};

/// Where the values of a tape live and how its backward functions are called.
pub(crate) trait Backend: Sized {
    /// The value of a node.
    type Value;
    /// The gradient of a node.
    type Grad;
    /// The backward function of an operation.
    type Backward;
    /// Where the gradients of parameters are accumulated.
    type Gradients;

    /// Calls `backward` with the gradient of `output`.
    fn call_backward(
        nodes: &NodeList<'_, Self>,
        output: Var,
        backward: Self::Backward,
        grad: Self::Grad,
        pass: BackwardPass<'_, Self>,
    ) -> Result<()>;

    /// Frees the memory of a value that is not read again.
    fn release(value: &mut Self::Value);
}

/// The gradients of a backward pass that is under way.
pub(crate) struct BackwardPass<'a, B: Backend> {
    /// Gradients of operations that have not been visited yet, by node.
    pub(crate) pending: &'a mut [Option<B::Grad>],
    /// Gradients of parameters.
    pub(crate) gradients: &'a mut B::Gradients,
}

pub(crate) struct NodeList<'p, B: Backend> {
    pub(crate) backend: B,
    parameters: &'p Parameters,
    nodes: Vec<Node<B>>,
    /// The variable of each parameter that has been used.
    parameter_vars: Vec<Option<Var>>,
    /// Whether parameters are constants.
    is_no_grad: bool,
}

pub(crate) struct Node<B: Backend> {
    pub(crate) shape: Shape,
    pub(crate) value: B::Value,
    pub(crate) kind: Kind<B::Backward>,
}

/// Where the gradient of a node goes.
pub(crate) enum Kind<Backward> {
    /// Nowhere: the node does not require one.
    Constant,
    /// To the gradients of leaves.
    Leaf,
    Parameter(ParameterId),
    /// To the operands, through the backward function, which is taken when it is called.
    Operation(Option<Backward>),
}

impl<'p, B: Backend> NodeList<'p, B> {
    pub(crate) fn new(parameters: &'p Parameters, backend: B, is_no_grad: bool) -> Self {
        Self { backend, parameters, nodes: Vec::new(), parameter_vars: vec![None; parameters.len()], is_no_grad }
    }

    pub(crate) fn parameters(&self) -> &'p Parameters {
        self.parameters
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, var: Var) -> &Node<B> {
        &self.nodes[var.0]
    }

    pub(crate) fn shape(&self, var: Var) -> Shape {
        self.node(var).shape
    }

    /// Whether `var` is, or depends on, a parameter or a leaf.
    pub(crate) fn requires_grad(&self, var: Var) -> bool {
        !matches!(self.node(var).kind, Kind::Constant)
    }

    pub(crate) fn any_requires_grad(&self, vars: &[Var]) -> bool {
        vars.iter().any(|&var| self.requires_grad(var))
    }

    /// The variable of parameter `id`; `value` is called at its first use.
    pub(crate) fn parameter_with(&mut self, id: ParameterId, value: impl FnOnce(&B) -> B::Value) -> Var {
        if let Some(var) = self.parameter_vars[id.0] {
            return var;
        }
        let kind = if self.is_no_grad { Kind::Constant } else { Kind::Parameter(id) };
        let (shape, value) = (self.parameters.get(id).shape(), value(&self.backend));
        let var = self.push_node(Node { shape, value, kind });
        self.parameter_vars[id.0] = Some(var);
        var
    }

    /// The same without a gradient.
    pub(crate) fn frozen_with(&mut self, id: ParameterId, value: impl FnOnce(&B) -> B::Value) -> Var {
        if let Some(var) = self.parameter_vars[id.0] {
            return var;
        }
        let (shape, value) = (self.parameters.get(id).shape(), value(&self.backend));
        let var = self.push_node(Node { shape, value, kind: Kind::Constant });
        self.parameter_vars[id.0] = Some(var);
        var
    }

    /// The parameter that `var` is, if it is one.
    pub(crate) fn parameter_of(&self, var: Var) -> Option<ParameterId> {
        self.parameter_vars.iter().position(|used| *used == Some(var)).map(ParameterId)
    }

    /// Adds the result of an operation. Its backward function is dropped where no operand requires a gradient.
    pub(crate) fn push_operation(
        &mut self,
        operands: &[Var],
        shape: Shape,
        value: B::Value,
        backward: impl FnOnce() -> B::Backward,
    ) -> Var {
        let kind = if self.any_requires_grad(operands) { Kind::Operation(Some(backward())) } else { Kind::Constant };
        self.push_node(Node { shape, value, kind })
    }

    pub(crate) fn push_node(&mut self, node: Node<B>) -> Var {
        self.nodes.push(node);
        Var(self.nodes.len() - 1)
    }

    /// Calls the backward functions from the last node to the first, starting with the gradients in `pending`.
    pub(crate) fn run_backward(
        &mut self,
        mut pending: Vec<Option<B::Grad>>,
        gradients: &mut B::Gradients,
    ) -> Result<()> {
        for index in (0..self.nodes.len()).rev() {
            let Some(grad) = pending[index].take() else { continue };
            let Kind::Operation(backward) = &mut self.nodes[index].kind else { continue };
            let Some(backward) = backward.take() else { continue };
            let pass = BackwardPass { pending: &mut pending, gradients };
            B::call_backward(self, Var(index), backward, grad, pass)?;
            // Every node that reads this value has a higher index and has been visited.
            B::release(&mut self.nodes[index].value);
        }
        Ok(())
    }
}
