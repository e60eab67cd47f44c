//! Weights on the card, one after another in one piece of memory, and what teaches them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::context::{Context, args};
use super::memory::{Buffer, Event, Pinned};
use super::tape::{Copies, Record, narrow};
use crate::adam::Update;
use crate::train_state::Step;
use crate::{Adam, Error, Gradients, Parameters, Precision, Result, Shape, Tape, Tensor, Var};

/// Where each parameter begins, in values: at multiples of what makes wide loads possible.
const STEP: usize = 128;

fn offsets(parameters: &Parameters) -> (Vec<usize>, usize) {
    let mut end = 0;
    let mut offset = |tensor: &Tensor| {
        let first = end;
        end += tensor.shape().len().next_multiple_of(STEP);
        first
    };
    (parameters.iter().map(|(_, _, tensor)| offset(tensor)).collect(), end)
}

/// Tensors one after another, as they lie on the card.
fn flat<'t>(tensors: impl Iterator<Item = &'t Tensor>, offsets: &[usize], total: usize) -> Vec<f32> {
    let mut values = vec![0.0; total];
    for (tensor, &first) in tensors.zip(offsets) {
        values[first..first + tensor.shape().len()].copy_from_slice(tensor.values());
    }
    values
}

/// Weights on the card.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(super) cuda: Arc<Context>,
    values: Arc<Buffer>,
    /// Copies for products, where those are not made of `f32`.
    factors: Option<Arc<Buffer>>,
    /// The number 1: a loss's gradient of itself.
    pub(super) one: Arc<Buffer>,
    offsets: Vec<usize>,
    total: usize,
}

impl Resident {
    pub(crate) fn new(cuda: &Arc<Context>, parameters: &Parameters) -> Result<Self> {
        cuda.enter()?;
        let (offsets, total) = offsets(parameters);
        let values = cuda.upload(&flat(parameters.iter().map(|(_, _, tensor)| tensor), &offsets, total))?;
        let mut factors = None;
        if cuda.precision == Precision::Bf16 {
            let copies = cuda.take(2 * total)?;
            cuda.each("to_elem", total, args![values.ptr(), copies.ptr(), total as u64])?;
            factors = Some(copies);
        }
        let one = cuda.upload(&[1.0_f32])?;
        Ok(Self { cuda: Arc::clone(cuda), values, factors, one, offsets, total })
    }

    /// Before every forward pass.
    pub(crate) fn begin(&self) -> Result<()> {
        self.cuda.enter()
    }

    pub(super) fn offset(&self, id: usize) -> usize {
        self.offsets[id]
    }

    pub(super) fn value(&self, id: usize) -> u64 {
        self.values.ptr() + 4 * self.offsets[id] as u64
    }

    /// The parameter as products read it.
    pub(super) fn factor(&self, id: usize) -> u64 {
        self.factors.as_ref().map_or(self.value(id), |copies| copies.ptr() + 2 * self.offsets[id] as u64)
    }

    /// The weights as they are now, with the names of `like`.
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

    /// Leaves a copy of `tensor` on the card, unless there is one.
    pub(crate) fn place(&self, tensor: &Tensor) -> Result<()> {
        if tensor.placed().is_some_and(|copies| copies.is_on(&self.cuda)) {
            return Ok(());
        }
        self.cuda.enter()?;
        let values = self.cuda.upload(tensor.values())?;
        let factor = narrow(&self.cuda, values.ptr(), tensor.shape().len())?.keep;
        tensor.set_placed(Copies { values, factor });
        Ok(())
    }
}

/// Gradients and Adam's state on the card.
#[derive(Debug)]
pub(crate) struct CudaAdam {
    cuda: Arc<Context>,
    gradients: Arc<Buffer>,
    means: Arc<Buffer>,
    squares: Arc<Buffer>,
    /// Not 0 once a gradient or a loss was no number: no step is taken any more.
    flag: Arc<Buffer>,
    /// The steps that were asked for and whose losses nobody has read, oldest first.
    asked: VecDeque<Asked>,
    /// Reports that have been read, to be used again.
    spare: Vec<Report>,
    offsets: Vec<usize>,
    total: usize,
}

impl CudaAdam {
    pub(crate) fn new(cuda: Arc<Context>, parameters: &Parameters) -> Result<Self> {
        cuda.enter()?;
        let (offsets, total) = offsets(parameters);
        let zeros = || -> Result<Arc<Buffer>> {
            let buffer = cuda.floats(total)?;
            cuda.fill_zero(buffer.ptr(), 4 * total)?;
            Ok(buffer)
        };
        let (gradients, means, squares) = (zeros()?, zeros()?, zeros()?);
        let flag = cuda.floats(1)?;
        cuda.fill_zero(flag.ptr(), 4)?;
        let (asked, spare) = (VecDeque::new(), Vec::new());
        Ok(Self { cuda, gradients, means, squares, flag, asked, spare, offsets, total })
    }

    /// Reads Adam's state.
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

    /// Takes up Adam's state.
    pub(crate) fn upload(&mut self, adam: &Adam) -> Result<()> {
        self.cuda.enter()?;
        let means = self.cuda.upload(&flat(adam.means.iter(), &self.offsets, self.total))?;
        let squares = self.cuda.upload(&flat(adam.squares.iter(), &self.offsets, self.total))?;
        (self.means, self.squares) = (means, squares);
        self.asked.clear();
        self.cuda.fill_zero(self.flag.ptr(), 4)?;
        Ok(())
    }

    /// Runs all chunks forward and backward. What comes back are the losses, still on the card.
    pub(crate) fn losses<T, E: From<Error>>(
        &mut self,
        parameters: &Parameters,
        resident: &Resident,
        chunks: &[T],
        forward: impl Fn(&mut Tape<'_>, &T) -> Result<Var, E>,
    ) -> Result<Vec<Arc<Buffer>>, E> {
        self.cuda.enter()?;
        // Should the pass before have failed, its work on the other stream is still to end.
        self.cuda.forget_sums();
        self.cuda.join()?;
        self.cuda.fill_zero(self.gradients.ptr(), 4 * self.total)?;
        let mut losses = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let mut tape = Tape::on_card(parameters, resident, false);
            let loss = forward(&mut tape, chunk)?;
            losses.push(tape.backward_on_card(loss, self.gradients.ptr())?);
        }
        Ok(losses)
    }

    /// Adam, unless something is or was no number. The host does not wait; how it went is read by [`CudaAdam::results`].
    pub(crate) fn step(&mut self, resident: &Resident, adam: &mut Adam, losses: &[Arc<Buffer>]) -> Result<()> {
        let (cuda, flag, n) = (&self.cuda, self.flag.ptr(), self.total as u64);
        // Side by side, so that one copy brings them all.
        let count = losses.len() + 1;
        let side_by_side = cuda.floats(count)?;
        let place = |i: usize| side_by_side.ptr() + 4 * i as u64;
        for (i, loss) in losses.iter().enumerate() {
            // All gradients are looked at once.
            let n = if i == 0 { self.total } else { 0 };
            cuda.each("find_bad", n.max(1), args![self.gradients.ptr(), loss.ptr(), place(i), flag, n as u64])?;
        }
        let update = adam.next_update();
        let factors = resident.factors.as_ref().map_or(0, |copies| copies.ptr());
        let (grads, means, squares) = (self.gradients.ptr(), self.means.ptr(), self.squares.ptr());
        let report = place(losses.len());
        let arguments = args![resident.values.ptr(), grads, means, squares, factors, flag, report, words(update), n];
        cuda.each("adam", self.total.max(1), arguments)?;
        adam.n_steps += 1;
        let mut report = match self.spare.pop().filter(|report| report.memory.has_room(count)) {
            Some(report) => report,
            None => Report::new(count.next_multiple_of(64))?,
        };
        cuda.report(side_by_side.ptr(), &mut report.memory, count)?;
        report.written.record(cuda.stream)?;
        self.asked.push_back(Asked { report, count });
        Ok(())
    }

    /// How the steps went that were asked for, oldest first, but for the newest `behind` of them.
    pub(crate) fn results(&mut self, behind: usize) -> Result<Vec<Step>> {
        self.cuda.enter()?;
        let mut steps = Vec::new();
        while self.asked.len() > behind {
            let Some(Asked { report, count }) = self.asked.pop_front() else { break };
            report.written.wait()?;
            let (flag, losses) = report.memory.floats(count).split_last().unwrap_or((&0.0, &[]));
            let loss = losses.iter().map(|&loss| f64::from(loss)).sum();
            steps.push(Step { loss, is_finite: flag.to_bits() == 0 });
            self.spare.push(report);
        }
        Ok(steps)
    }

    /// The sum of `losses`.
    pub(crate) fn read(&self, losses: &[Arc<Buffer>]) -> Result<f64> {
        let mut sum = 0.0;
        for loss in losses {
            let mut value = [0.0];
            self.cuda.download(loss.ptr(), &mut value)?;
            sum += f64::from(value[0]);
        }
        Ok(sum)
    }

    /// Host copies of the gradients.
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

/// A step whose losses are on their way.
#[derive(Debug)]
struct Asked {
    report: Report,
    /// Losses, and the flag behind them.
    count: usize,
}

/// Where the card writes what the host will read.
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

/// The scalars of a step in the order of the kernel's `Update`.
fn words(update: Update) -> [f32; 7] {
    let Update { grad_share, keep_square, square_share, root_correction, eps, step_size, weight_decay } = update;
    [grad_share, keep_square, square_share, root_correction, eps, step_size, weight_decay]
}

impl<'p> Tape<'p> {
    /// An empty tape on the card; a frozen one keeps nothing for a way back.
    pub(crate) fn on_card(parameters: &'p Parameters, resident: &'p Resident, frozen: bool) -> Self {
        let record = Record::new(resident, parameters.len(), frozen);
        Self::with_record(parameters, record, frozen)
    }

    /// Adds the gradients of `loss` to those at `gradients`; the loss.
    fn backward_on_card(self, loss: Var, gradients: u64) -> Result<Arc<Buffer>> {
        if self.shape(loss).len() != 1 {
            let needed = "a single value".to_owned();
            let got: Shape = self.shape(loss);
            return Err(Error::Shape { operation: "backward", what: "the loss", got, needed });
        }
        self.into_record().ok_or(Error::NotOnGpu { operation: "backward" })?.backward(loss.0, gradients)
    }
}
