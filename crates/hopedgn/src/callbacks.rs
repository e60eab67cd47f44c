//! Callbacks of training and evaluation: progress, early interruption, files written along the way.
//!
//! Every method of [`Callback`] has an empty default. Several callbacks are joined by [`CallbackList`].
//!
//! ```
//! use hopedgn::callbacks::{Callback, EpochEnd};
//!
//! struct PrintLoss;
//!
//! impl Callback for PrintLoss {
//!     fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> hopedgn::Result<()> {
//!         println!("epoch {}: loss {:.4}", end.record.epoch, end.record.loss);
//!         Ok(())
//!     }
//! }
//! ```

mod print;
pub mod report;
mod run_files;
pub mod tensorboard;

use crate::Result;
use crate::config::Config;
use crate::metrics::{EpochRecord, LabelEpoch, Summary};
use crate::task::Task;

pub use print::PrintEpochs;
pub use run_files::{HtmlReport, TensorBoard};

/// A stage of long work, with its own count of parts.
///
/// ```
/// use hopedgn::callbacks::{Callback, Stage};
///
/// struct Percent(usize);
/// impl Callback for Percent {
///     fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
///         if stage == Stage::Train {
///             self.0 = 100 * done / total.max(1);
///         }
///     }
/// }
/// let mut percent = Percent(0);
/// percent.on_progress(Stage::Train, 1, 4);
/// assert_eq!(percent.0, 25);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Batches of a training epoch.
    Train,
    /// Batches of an evaluation pass.
    Evaluate,
    /// Events of a ranking.
    Rank,
    /// Batches whose source nodes are embedded.
    Embed,
    /// Epochs of training a node classifier.
    Classify,
}

/// Training is about to start, or to resume.
///
/// What [`Callback::on_train_start`] gets.
#[derive(Debug, Clone, Copy)]
pub struct TrainStart<'a> {
    /// All settings.
    pub config: &'a Config,
    /// The dataset with its split.
    pub task: &'a Task<'a>,
    /// The epochs that earlier sessions of this run trained.
    pub history: &'a [EpochRecord],
}

/// An epoch is trained, validated and saved.
///
/// What [`Callback::on_epoch_end`] gets; the [module](self) has an example.
#[derive(Debug, Clone, Copy)]
pub struct EpochEnd<'a> {
    /// The epoch.
    pub record: &'a EpochRecord,
    /// All epochs so far, this one included.
    pub history: &'a [EpochRecord],
}

/// Training has ended.
///
/// ```
/// use hopedgn::callbacks::{Callback, TrainEnd};
///
/// #[derive(Default)]
/// struct Best(usize);
/// impl Callback for Best {
///     fn on_train_end(&mut self, end: &TrainEnd<'_>) -> hopedgn::Result<()> {
///         Ok(self.0 = end.summary.map_or(0, |summary| summary.best_epoch))
///     }
/// }
/// let mut best = Best(9);
/// best.on_train_end(&TrainEnd { history: &[], summary: None })?; // interrupted
/// assert_eq!(best.0, 0);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TrainEnd<'a> {
    /// All epochs.
    pub history: &'a [EpochRecord],
    /// Test metrics of the best epoch; `None` if training was interrupted.
    pub summary: Option<&'a Summary>,
}

/// Hooks into training and evaluation.
///
/// ```
/// # use hopedgn::Events;
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// use hopedgn::{Error, LinkPredictor, callbacks::Callback};
///
/// struct Stop; // e.g. on Ctrl-C
/// impl Callback for Stop {
///     fn should_stop(&self) -> bool {
///         true
///     }
/// }
/// let stopped = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").callback(Stop).fit(&events);
/// assert!(matches!(stopped, Err(Error::Interrupted)));
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub trait Callback {
    /// Called once before the first batch.
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        let _ = start;
        Ok(())
    }

    /// `done` of `total` parts of a stage are done.
    fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
        let _ = (stage, done, total);
    }

    /// Called after every epoch. Its checkpoint is written before, or about a second later where epochs are shorter.
    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        let _ = end;
        Ok(())
    }

    /// Called when training is complete or interrupted.
    fn on_train_end(&mut self, end: &TrainEnd<'_>) -> Result<()> {
        let _ = end;
        Ok(())
    }

    /// Called after every epoch of a node classifier.
    fn on_label_epoch_end(&mut self, record: &LabelEpoch) {
        let _ = record;
    }

    /// Asked after every batch. `true` saves a checkpoint and ends the work with
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    fn should_stop(&self) -> bool {
        false
    }
}

/// A callback without any effect.
///
/// ```
/// use hopedgn::callbacks::{Callback, NoCallback};
///
/// assert!(!NoCallback.should_stop());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCallback;

impl Callback for NoCallback {}

/// Several callbacks, called in order. The first error ends the work.
///
/// ```
/// # use hopedgn::Events;
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// use hopedgn::LinkPredictor;
/// use hopedgn::callbacks::{CallbackList, HtmlReport, TensorBoard};
///
/// # let folder = tempfile::tempdir()?;
/// let mut files = CallbackList::default();
/// files.push(HtmlReport::new(folder.path()));
/// files.push(TensorBoard::new(folder.path()));
/// LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).callback(files).fit(&events)?;
/// assert!(folder.path().join("report.html").is_file());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct CallbackList<'a> {
    callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl<'a> CallbackList<'a> {
    /// Appends a callback.
    pub fn push(&mut self, callback: impl Callback + 'a) {
        self.callbacks.push(Box::new(callback));
    }

    fn try_each(&mut self, mut call: impl FnMut(&mut dyn Callback) -> Result<()>) -> Result<()> {
        self.callbacks.iter_mut().try_for_each(|callback| call(&mut **callback))
    }
}

impl std::fmt::Debug for CallbackList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallbackList").field("len", &self.callbacks.len()).finish()
    }
}

impl Callback for CallbackList<'_> {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        self.try_each(|callback| callback.on_train_start(start))
    }

    fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
        self.callbacks.iter_mut().for_each(|callback| callback.on_progress(stage, done, total));
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        self.try_each(|callback| callback.on_epoch_end(end))
    }

    fn on_train_end(&mut self, end: &TrainEnd<'_>) -> Result<()> {
        self.try_each(|callback| callback.on_train_end(end))
    }

    fn on_label_epoch_end(&mut self, record: &LabelEpoch) {
        self.callbacks.iter_mut().for_each(|callback| callback.on_label_epoch_end(record));
    }

    fn should_stop(&self) -> bool {
        self.callbacks.iter().any(|callback| callback.should_stop())
    }
}

/// A borrowed callback is one too, so that the caller can look at it afterwards.
impl<C: Callback + ?Sized> Callback for &mut C {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        (**self).on_train_start(start)
    }

    fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
        (**self).on_progress(stage, done, total);
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        (**self).on_epoch_end(end)
    }

    fn on_train_end(&mut self, end: &TrainEnd<'_>) -> Result<()> {
        (**self).on_train_end(end)
    }

    fn on_label_epoch_end(&mut self, record: &LabelEpoch) {
        (**self).on_label_epoch_end(record);
    }

    fn should_stop(&self) -> bool {
        (**self).should_stop()
    }
}
