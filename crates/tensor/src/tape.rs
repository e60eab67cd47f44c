//! Reverse-mode differentiation: a list of values, each with the way back to what it was made from.

use std::sync::Arc;

use rayon::prelude::*;

use crate::cuda::Record;
use crate::gemm::Weight;
use crate::scratch::{self, Scratch};
use crate::vector::add_to;
use crate::{Error, ParameterId, Parameters, Result, Shape, Tensor, Threads};

/// A value on a [`Tape`]. It is meaningful on the tape that made it and on no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Var(pub(crate) usize);

/// A forward pass, written down as it is computed.
///
/// The operations are methods, each beside its own backward in the file of its subject. Parameters are read in place;
/// everything else the tape owns.
pub struct Tape<'p> {
    parameters: &'p Parameters,
    threads: Threads,
    nodes: Vec<Node>,
    /// The variable of each parameter that has been used.
    used: Vec<Option<Var>>,
    /// Whether parameters are constants.
    frozen: bool,
    /// The values and their way back, where they are on a card.
    record: Option<Box<Record<'p>>>,
}

struct Node {
    value: Value,
    kind: Kind,
}

enum Value {
    Owned(Tensor),
    Shared(Arc<Tensor>),
    Parameter(ParameterId),
}

/// Where a gradient that arrives at a node goes.
enum Kind {
    /// Nowhere: nothing before this node wants one.
    Constant,
    /// Into the caller's [`Gradients`].
    Watched,
    Parameter(ParameterId),
    /// On to the operands. Taken when it is called.
    Operation(Option<Backward>),
}

type Backward = Box<dyn FnOnce(Scratch, &At<'_>, &mut Sink<'_>) + Send>;

impl<'p> Tape<'p> {
    /// An empty tape that computes with the threads of the current pool.
    #[must_use]
    pub fn new(parameters: &'p Parameters) -> Self {
        Self::with_threads(parameters, Threads::Pool)
    }

    /// An empty tape.
    #[must_use]
    pub fn with_threads(parameters: &'p Parameters, threads: Threads) -> Self {
        Self { parameters, threads, nodes: Vec::new(), used: vec![None; parameters.len()], frozen: false, record: None }
    }

    /// An empty tape on which parameters get no gradient, so that operations keep nothing for a way back.
    #[must_use]
    pub fn frozen(parameters: &'p Parameters, threads: Threads) -> Self {
        Self { frozen: true, ..Self::with_threads(parameters, threads) }
    }

    /// An empty tape on a card.
    pub(crate) fn with_record(parameters: &'p Parameters, record: Record<'p>, frozen: bool) -> Self {
        let record = Some(Box::new(record));
        Self { frozen, record, ..Self::with_threads(parameters, Threads::Caller) }
    }

    pub(crate) fn record(&mut self) -> Option<&mut Record<'p>> {
        self.record.as_deref_mut()
    }

    pub(crate) fn into_record(self) -> Option<Record<'p>> {
        self.record.map(|record| *record)
    }

    /// A value that gets no gradient; one that is shared is not copied, nor is one that has been
    /// [placed](crate::Weights::place) on the card.
    pub fn input(&mut self, tensor: impl Into<Arc<Tensor>>) -> Var {
        let tensor = tensor.into();
        if let Some(record) = &mut self.record {
            return Var(record.input(&tensor));
        }
        self.node(Value::Shared(tensor), Kind::Constant)
    }

    /// The same of a value that many tapes read; a card keeps it.
    pub fn table(&mut self, tensor: &Arc<Tensor>) -> Var {
        match &mut self.record {
            Some(record) => Var(record.table(tensor)),
            None => self.input(Arc::clone(tensor)),
        }
    }

    /// A value whose gradient [`Gradients::of`] will know.
    pub fn watched(&mut self, tensor: Tensor) -> Var {
        if let Some(record) = &mut self.record {
            return Var(record.refuse("a watched value", tensor.shape()));
        }
        self.node(Value::Owned(tensor), Kind::Watched)
    }

    /// A parameter; asked for twice, it is the same variable.
    pub fn parameter(&mut self, id: ParameterId) -> Var {
        if let Some(record) = &mut self.record {
            return Var(record.parameter(id.0, self.parameters.get(id).shape()));
        }
        if let Some(var) = self.used[id.0] {
            return var;
        }
        let kind = if self.frozen { Kind::Constant } else { Kind::Parameter(id) };
        let var = self.node(Value::Parameter(id), kind);
        self.used[id.0] = Some(var);
        var
    }

    /// A copy of the values of a variable, row after row; waits for a card to have computed them.
    pub fn read(&self, var: Var) -> Result<Vec<f32>> {
        match &self.record {
            Some(record) => record.read(var.0),
            None => Ok(self.value(var).values().to_vec()),
        }
    }

    /// The value of a variable, on the CPU.
    pub(crate) fn value(&self, var: Var) -> &Tensor {
        value(&self.nodes, self.parameters, var)
    }

    /// A variable as the right factor of products.
    pub(crate) fn weight(&self, var: Var) -> Weight<'_> {
        weight(&self.nodes, self.parameters, var)
    }

    /// The shape of a variable.
    #[must_use]
    pub fn shape(&self, var: Var) -> Shape {
        match &self.record {
            Some(record) => record.shape(var.0),
            None => self.value(var).shape(),
        }
    }

    /// Adds to `gradients` the derivatives of `loss`, which must be a single value.
    pub fn backward(self, loss: Var, gradients: &mut Gradients) -> Result<()> {
        let seed = Tensor::full(self.shape(loss), 1.0);
        if seed.shape().len() != 1 {
            let needed = "a single value".to_owned();
            return Err(Error::Shape { operation: "backward", what: "the loss", got: seed.shape(), needed });
        }
        self.backward_from(loss, seed, gradients)
    }

    /// Adds to `gradients` the derivatives of the sum of `var · seed`: what lies behind `var` has the gradient `seed`.
    pub fn backward_from(mut self, var: Var, seed: Tensor, gradients: &mut Gradients) -> Result<()> {
        let (got, needed) = (seed.shape(), self.shape(var));
        if got != needed {
            let needed = needed.to_string();
            return Err(Error::Shape { operation: "backward", what: "the gradient", got, needed });
        }
        let mut pending: Vec<Option<Scratch>> = self.nodes.iter().map(|_| None).collect();
        Sink { nodes: &self.nodes, pending: &mut pending, gradients }.give(var, seed.into_values());
        for index in (0..self.nodes.len()).rev() {
            let Some(grad) = pending[index].take() else { continue };
            let Kind::Operation(backward) = &mut self.nodes[index].kind else { continue };
            let Some(backward) = backward.take() else { continue };
            let at = At { nodes: &self.nodes, parameters: self.parameters, threads: self.threads, output: Var(index) };
            backward(grad, &at, &mut Sink { nodes: &self.nodes, pending: &mut pending, gradients });
            // What was made from this value has been walked already, so that nobody reads it again.
            self.nodes[index].value = Value::Owned(Tensor::zeros(Shape::Vector(0)));
        }
        Ok(())
    }

    pub(crate) fn threads(&self) -> Threads {
        self.threads
    }

    /// Whether a gradient would go anywhere from `var`.
    pub(crate) fn wants_gradient(&self, var: Var) -> bool {
        match &self.record {
            Some(record) => record.wants_gradient(var.0),
            None => !matches!(self.nodes[var.0].kind, Kind::Constant),
        }
    }

    /// Writes down the result of an operation and its way back, which is dropped where no operand wants a gradient.
    pub(crate) fn push(
        &mut self,
        operands: &[Var],
        value: Tensor,
        backward: impl FnOnce(Scratch, &At<'_>, &mut Sink<'_>) + Send + 'static,
    ) -> Var {
        let kind = if operands.iter().any(|&var| self.wants_gradient(var)) {
            Kind::Operation(Some(Box::new(backward)))
        } else {
            Kind::Constant
        };
        self.node(Value::Owned(value), kind)
    }

    fn node(&mut self, value: Value, kind: Kind) -> Var {
        self.nodes.push(Node { value, kind });
        Var(self.nodes.len() - 1)
    }

    /// The error of an operand that does not fit.
    pub(crate) fn misfit(
        &self,
        operation: &'static str,
        what: &'static str,
        var: Var,
        needed: impl std::fmt::Display,
    ) -> Error {
        Error::Shape { operation, what, got: self.shape(var), needed: needed.to_string() }
    }
}

fn value<'a>(nodes: &'a [Node], parameters: &'a Parameters, var: Var) -> &'a Tensor {
    match &nodes[var.0].value {
        Value::Owned(tensor) => tensor,
        Value::Shared(tensor) => tensor,
        Value::Parameter(id) => parameters.get(*id),
    }
}

fn weight<'a>(nodes: &'a [Node], parameters: &'a Parameters, var: Var) -> Weight<'a> {
    match nodes[var.0].value {
        Value::Parameter(id) => parameters.weight(id),
        Value::Owned(_) | Value::Shared(_) => Weight::new(value(nodes, parameters, var), None),
    }
}

/// What an operation sees on the way back.
pub(crate) struct At<'a> {
    nodes: &'a [Node],
    parameters: &'a Parameters,
    pub(crate) threads: Threads,
    output: Var,
}

impl At<'_> {
    pub(crate) fn value(&self, var: Var) -> &Tensor {
        value(self.nodes, self.parameters, var)
    }

    pub(crate) fn weight(&self, var: Var) -> Weight<'_> {
        weight(self.nodes, self.parameters, var)
    }

    /// The operation's own result.
    pub(crate) fn output(&self) -> &Tensor {
        self.value(self.output)
    }
}

/// Where an operation leaves the gradients of its operands.
pub(crate) struct Sink<'a> {
    nodes: &'a [Node],
    pending: &'a mut [Option<Scratch>],
    gradients: &'a mut Gradients,
}

impl Sink<'_> {
    pub(crate) fn wants(&self, var: Var) -> bool {
        !matches!(self.nodes[var.0].kind, Kind::Constant)
    }

    /// Lets `add` add to the gradient of `var`; does nothing where nobody wants it.
    pub(crate) fn add(&mut self, var: Var, add: impl FnOnce(&mut [f32])) {
        match &self.nodes[var.0] {
            Node { kind: Kind::Constant, .. } => {}
            Node { kind: Kind::Parameter(id), .. } => add(self.gradients.parameters[id.0].values_mut()),
            Node { kind: Kind::Watched, value: Value::Owned(tensor) } => {
                add(self.gradients.watched_mut(var, tensor.shape()).values_mut());
            }
            Node { value: Value::Owned(tensor), .. } => {
                add(self.pending[var.0].get_or_insert_with(|| scratch::take_zeros(tensor.shape().len())));
            }
            Node { value: Value::Shared(_) | Value::Parameter(_), .. } => {
                unreachable!("inputs are constants, and a parameter's value is of a parameter's kind")
            }
        }
    }

    /// Adds `grad` to the gradient of `var`, without copying it where it is the first.
    pub(crate) fn give(&mut self, var: Var, grad: Scratch) {
        if matches!(self.nodes[var.0].kind, Kind::Operation(_)) && self.pending[var.0].is_none() {
            self.pending[var.0] = Some(grad);
        } else {
            self.add(var, |sum| add_to(sum, &grad));
        }
    }
}

/// Derivatives with respect to every parameter, and to the variables a tape [watched](Tape::watched).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gradients {
    pub(crate) parameters: Vec<Tensor>,
    watched: Vec<(Var, Tensor)>,
}

impl Gradients {
    /// Zero for every parameter.
    #[must_use]
    pub fn zeros(parameters: &Parameters) -> Self {
        let parameters = parameters.iter().map(|(_, _, tensor)| Tensor::zeros(tensor.shape())).collect();
        Self { parameters, watched: Vec::new() }
    }

    /// The gradients of all parameters, in the order the parameters were added.
    pub fn iter(&self) -> impl Iterator<Item = &Tensor> {
        self.parameters.iter()
    }

    /// Back to zero, keeping the memory.
    pub fn clear(&mut self) {
        self.parameters.iter_mut().for_each(|tensor| tensor.values_mut().fill(0.0));
        self.watched.clear();
    }

    /// The gradient of a parameter; zero where the loss does not depend on it.
    ///
    /// # Panics
    /// If `id` is not of the parameters these gradients were made for.
    #[must_use]
    pub fn parameter(&self, id: ParameterId) -> &Tensor {
        &self.parameters[id.0]
    }

    /// The gradient of a watched variable; nothing where the loss does not depend on it.
    #[must_use]
    pub fn of(&self, var: Var) -> Option<&Tensor> {
        self.watched.iter().find(|(watched, _)| *watched == var).map(|(_, grad)| grad)
    }

    /// Adds the gradients of the parameters in all of `others`, in their order, value by value on all threads.
    pub(crate) fn add_all(&mut self, others: &[Self]) {
        const CHUNK: usize = 1 << 13;
        let sums = self.parameters.par_iter_mut().enumerate();
        sums.flat_map(|(at, sum)| sum.values_mut().par_chunks_mut(CHUNK).enumerate().map(move |part| (at, part)))
            .for_each(|(at, (chunk, sum))| {
                for other in others {
                    add_to(sum, &other.parameters[at].values()[chunk * CHUNK..][..sum.len()]);
                }
            });
    }

    /// Whether no gradient of a parameter is NaN or infinite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.parameters.iter().all(Tensor::is_finite)
    }

    fn watched_mut(&mut self, var: Var, shape: Shape) -> &mut Tensor {
        let known = self.watched.iter().position(|(watched, _)| *watched == var);
        let index = known.unwrap_or_else(|| {
            self.watched.push((var, Tensor::zeros(shape)));
            self.watched.len() - 1
        });
        &mut self.watched[index].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_used_twice_gets_both_gradients() {
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
    fn gradients_add_up_over_tapes_until_cleared() {
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
    fn a_frozen_tape_computes_the_same_and_leads_nowhere() {
        let mut parameters = Parameters::default();
        let id = parameters.add("w", Tensor::vector(vec![3.0])).unwrap();
        let mut tape = Tape::frozen(&parameters, Threads::Caller);
        let w = tape.parameter(id);
        let square = tape.mul(w, w).unwrap();
        assert_eq!(tape.value(square).values(), [9.0]);
        assert!(!tape.wants_gradient(w) && !tape.wants_gradient(square));
        let mut gradients = Gradients::zeros(&parameters);
        tape.backward(square, &mut gradients).unwrap();
        assert_eq!(gradients.parameter(id).values(), [0.0]);
    }

    #[test]
    fn only_a_single_value_is_a_loss() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.watched(Tensor::vector(vec![1.0, 2.0]));
        let error = tape.backward(x, &mut Gradients::zeros(&parameters)).unwrap_err();
        assert_eq!(error.to_string(), "backward: the loss has shape [2], but a single value is needed");
    }
}
