//! Saving a [`LinkPredictor`] as a run folder, and loading one.

use std::path::Path;

use hopedgn_tensor::{Device, Weights};

use super::{LinkPredictor, Trained};
use crate::callbacks::{Callback, HtmlReport, TensorBoard, TrainEnd, TrainStart};
use crate::collate::FeatureTables;
use crate::config::ModelRegistry;
use crate::run::RunFolder;
use crate::{Events, Result};

impl LinkPredictor {
    /// Writes a new run folder: settings, weights, checkpoint, metrics, `report.html` and `TensorBoard` files. The command line
    /// works with it, and [`LinkPredictor::load`] reads it.
    ///
    /// Refused if the folder is not empty.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// # let place = tempfile::tempdir()?;
    /// let folder = place.path().join("mine");
    /// predictor.save(&folder)?;
    /// assert!(folder.join("model.safetensors").is_file() && folder.join("report.html").is_file());
    /// assert!(predictor.save(&folder).is_err()); // the folder is not empty
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let target = RunFolder::create(folder.as_ref(), &self.trained.config, &self.trained.manifest)?;
        let saved = self.write_to(&target);
        if saved.is_err() {
            // A half-written run must not look like a whole one; what cannot be removed is still named by the error.
            let _ = std::fs::remove_dir_all(target.path());
        }
        saved
    }

    fn write_to(&self, target: &RunFolder) -> Result<()> {
        let state = match (&self.trained.state, &self.trained.folder) {
            (Some(state), _) => Some(state.clone()),
            (None, Some(folder)) => RunFolder::open(folder)?.state()?,
            (None, None) => None,
        };
        target.write_trained(
            &self.trained.config,
            &self.trained.weights,
            self.trained.memory.as_ref(),
            state.as_deref(),
        )?;
        target.write_metrics(&self.trained.epochs)?;
        if let Some(summary) = &self.trained.summary {
            target.write_summary(summary)?;
        }
        let known = self.known(&self.events)?;
        let task = self.known_task(&known)?;
        let start = TrainStart { config: &self.trained.config, task: &task, history: &self.trained.epochs };
        let end = TrainEnd { history: &self.trained.epochs, summary: self.trained.summary.as_ref() };
        let (mut report, mut log) = (HtmlReport::new(target.path()), TensorBoard::new(target.path()));
        for callback in [&mut report as &mut dyn Callback, &mut log] {
            callback.on_train_start(&start)?;
            callback.on_train_end(&end)?;
        }
        target.record_views()
    }

    /// The best weights of a run folder, on the CPU, with `events` as the history of predictions.
    ///
    /// `events` must begin with those the run was trained on; later ones extend the history.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// # let place = tempfile::tempdir()?;
    /// # let folder = place.path().join("mine");
    /// predictor.save(&folder)?;
    /// let again = LinkPredictor::load(&folder, &events)?;
    /// assert_eq!(again.predict("3", "4", 200.0)?, predictor.predict("3", "4", 200.0)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(folder: impl AsRef<Path>, events: &Events) -> Result<Self> {
        Self::loader().load(folder, events)
    }

    /// Options for loading a run folder.
    ///
    /// [`LinkPredictorLoader`] has an example.
    #[must_use]
    pub fn loader() -> LinkPredictorLoader {
        LinkPredictorLoader::default()
    }

    /// Whether the events begin with those the model was trained on; appended events and new nodes may follow.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// assert!(predictor.check_events().is_ok());
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn check_events(&self) -> Result<()> {
        self.trained.manifest.data.check_by_name(&self.events)
    }
}

/// Options for loading a run folder; made by [`LinkPredictor::loader`].
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// # let place = tempfile::tempdir()?;
/// # let folder = place.path().join("mine");
/// # predictor.save(&folder)?;
/// let others = Events::from_tuples([("ann", "bob", 1.0), ("bob", "ann", 2.0)])?;
/// assert!(LinkPredictor::load(&folder, &others).is_err()); // the run was trained on other events
/// let applied = LinkPredictor::loader().any_events().load(&folder, &others)?;
/// assert!(applied.predict("ann", "bob", 3.0)? > 0.0 && applied.check_events().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinkPredictorLoader {
    registry: ModelRegistry,
    device: Device,
    any_events: bool,
    max_memory: Option<u64>,
}

impl Default for LinkPredictorLoader {
    fn default() -> Self {
        Self { registry: ModelRegistry::default(), device: Device::cpu(), any_events: false, max_memory: None }
    }
}

/// Copies of a node memory when a run is loaded and tested: the file, what was read of it, the memory itself, and one to go back to.
const MEMORY_COPIES: u64 = 4;

impl LinkPredictorLoader {
    /// The models that the run may name; the built-in ones by default.
    #[must_use]
    pub fn registry(mut self, registry: ModelRegistry) -> Self {
        self.registry = registry;
        self
    }

    /// Where to compute; the CPU by default.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Accepts events other than those the run was trained on, so that the model is applied to another stream. Only the widths
    /// of the features must fit. [`LinkPredictor::check_events`] compares them later.
    #[must_use]
    pub fn any_events(mut self) -> Self {
        self.any_events = true;
        self
    }

    /// Bytes that the node memory of a model may take; a run that needs more is refused before it is loaded. By default what the
    /// system has.
    #[must_use]
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// Loads the best weights of a run folder, with `events` as the history of predictions.
    pub fn load(self, folder: impl AsRef<Path>, events: &Events) -> Result<LinkPredictor> {
        let folder = RunFolder::open(folder.as_ref())?;
        let (config, manifest) = (folder.config(&self.registry)?, folder.manifest()?);
        if !self.any_events {
            manifest.data.check_by_name(events)?;
        }
        let tables = FeatureTables::of(events)?;
        let (model, mut parameters) = config.build(&self.registry, tables.widths())?;
        if let Some(form) = model.memory() {
            form.check_fits(events.n_nodes(), MEMORY_COPIES, self.max_memory)?;
        }
        let memory = folder.load_best(&config, &mut parameters)?;
        let trained = Trained {
            weights: Weights::new(&self.device, parameters)?,
            epochs: folder.metrics()?,
            summary: folder.summary()?,
            config,
            manifest,
            model,
            memory,
            folder: Some(folder.path().to_owned()),
            state: None,
        };
        Ok(LinkPredictor::new(trained, events, tables))
    }
}
