//! A line of text for each epoch.

use std::io::Write;

use super::{Callback, EpochEnd};
use crate::Result;
use crate::fmt::{percent, seconds};

/// Writes a line for each epoch: loss, validation metrics and time.
///
/// ```
/// use hopedgn::callbacks::PrintEpochs;
/// use hopedgn::{Events, LinkPredictor};
///
/// let events = Events::from_tuples((0..60).map(|i| ((i % 6).to_string(), ((i + 1) % 6).to_string(), f64::from(i))))?;
/// let mut log = PrintEpochs::new(Vec::new()); // or std::io::stderr()
/// LinkPredictor::builder().set("model.d-channel=4").epochs(1).callback(&mut log).fit(&events)?;
/// assert!(String::from_utf8_lossy(log.get_ref()).starts_with("epoch 1: loss "));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct PrintEpochs<W> {
    writer: W,
}

impl<W: Write> PrintEpochs<W> {
    /// Writes to `writer`, e.g. `std::io::stderr()`.
    pub fn new(writer: W) -> Self {
        Self { writer }
    }

    /// The writer.
    pub fn get_ref(&self) -> &W {
        &self.writer
    }
}

impl<W: Write> Callback for PrintEpochs<W> {
    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        let record = end.record;
        let val = record.val.transductive;
        let (ap, auc) = (val.map_or(f64::NAN, |val| val.ap), val.map_or(f64::NAN, |val| val.auc));
        // Training goes on if the reader of the log is gone.
        let _ = writeln!(
            self.writer,
            "epoch {}: loss {:.4}, validation AP {}, AUC {}{}, {}{}",
            record.epoch,
            record.loss,
            percent(ap),
            percent(auc),
            record.val_mrr.map_or(String::new(), |mrr| format!(", MRR {}", percent(mrr))),
            seconds(record.train_seconds + record.eval_seconds),
            if record.better { ", best so far" } else { "" }
        );
        Ok(())
    }
}
