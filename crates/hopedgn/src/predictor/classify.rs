//! Node classification with a [`LinkPredictor`].

use super::LinkPredictor;
use crate::callbacks::Callback;
use crate::classify::{LabelConfig, classify};
use crate::metrics::Classification;
use crate::run::RunFolder;
use crate::{Error, Result};

impl LinkPredictor {
    /// Trains a classifier of event labels on frozen embeddings of the source nodes, and tests it. Labels are 0 and 1.
    ///
    /// A run folder keeps the result as `classification.json`. When the callback asks to stop, nothing is written and
    /// [`Error::Interrupted`] returned.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor, ModelName, ctdg::event::EventStream};
    /// # let messages = EventStream::from_events((0..200).map(|i| (i % 10, (i + 1) % 10, f64::from(i))))?;
    /// # let mut columns = messages.into_columns();
    /// use hopedgn::{callbacks::NoCallback, classify::LabelConfig};
    ///
    /// columns.label = (0..200u16).map(|i| f32::from(i % 3 == 0)).collect::<Vec<_>>().into(); // 0 or 1 for each event
    /// let events = Events::from_stream("labelled", EventStream::new(columns)?);
    /// let builder = LinkPredictor::builder().model(ModelName::GraphMixer).set("model.d-out=8").set("model.neighbors=4");
    /// let predictor = builder.epochs(1).fit(&events)?;
    /// let labels = LabelConfig { epochs: 2, ..LabelConfig::default() };
    /// let result = predictor.classify(&labels, &mut NoCallback)?;
    /// assert!(result.test.auc.is_some_and(|auc| (0.0..=1.0).contains(&auc)));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn classify(&self, labels: &LabelConfig, callback: &mut dyn Callback) -> Result<Classification> {
        let folder = self.trained.folder.as_deref().map(RunFolder::open).transpose()?;
        let _lock = folder.as_ref().map(RunFolder::lock).transpose()?;
        if let (Some(folder), None) = (&folder, &self.trained.summary) {
            return Err(Error::TrainingNotComplete { folder: folder.path().to_owned() });
        }
        let known = self.known(&self.events)?;
        let task = self.known_task(&known)?;
        let classified = classify(&self.evaluator(&task, None), labels, callback)?;
        let classification = Classification::new(&self.trained.config, labels, self.device(), &classified);
        if let Some(folder) = &folder {
            folder.write_classification(&classification)?;
        }
        Ok(classification)
    }
}
