//! Options for training a [`LinkPredictor`].

use std::path::{Path, PathBuf};

use hopedgn_tensor::{Device, ProcessGroup};

use super::{LinkPredictor, Trained};
use crate::callbacks::{Callback, CallbackList, HtmlReport, TensorBoard};
use crate::collate::FeatureTables;
use crate::config::{CHANGEABLE, Config, ModelName, ModelRegistry, Preset};
use crate::model::CustomModel;
use crate::run::{DataRecord, Manifest, RunFolder, Session, WarmStart};
use crate::task::Task;
use crate::train::set_data_constants;
use crate::{Error, Events, Result, system};

/// Options for training; made by [`LinkPredictor::builder`].
///
/// Settings come from the model's defaults, then the preset, then [`set`](Self::set); the last one wins.
///
/// ```
/// use hopedgn::{LinkPredictor, ModelName, Preset};
///
/// let builder = LinkPredictor::builder().model(ModelName::Tgat).preset(Preset::Quick).set("model.neighbors=5").seed(7);
/// let config = builder.resolve("mail")?;
/// assert_eq!((config.data.as_str(), config.model.name(), config.seed), ("mail", ModelName::Tgat, 7));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct LinkPredictorBuilder<'c> {
    model: ModelName,
    presets: Vec<Preset>,
    settings: Vec<String>,
    config: Option<Config>,
    registry: ModelRegistry,
    device: Device,
    group: ProcessGroup,
    callbacks: CallbackList<'c>,
    run_folder: Option<PathBuf>,
    warm_start: Option<PathBuf>,
    max_memory: Option<u64>,
    command: Vec<String>,
    commit: Option<String>,
}

impl Default for LinkPredictorBuilder<'_> {
    fn default() -> Self {
        Self {
            model: ModelName::default(),
            presets: Vec::new(),
            settings: Vec::new(),
            config: None,
            registry: ModelRegistry::default(),
            device: Device::cpu(),
            group: ProcessGroup::default(),
            callbacks: CallbackList::default(),
            run_folder: None,
            warm_start: None,
            max_memory: None,
            command: Vec::new(),
            commit: None,
        }
    }
}

impl<'c> LinkPredictorBuilder<'c> {
    /// The model; HopeDGN by default.
    #[must_use]
    pub fn model(mut self, model: ModelName) -> Self {
        self.model = model;
        self
    }

    /// A model of your own: makes it known by its name and selects it.
    ///
    /// [`Model`](crate::Model) has an example.
    pub fn register<M: CustomModel>(mut self) -> Result<Self> {
        self.model = self.registry.register::<M>()?;
        Ok(self)
    }

    /// The models that can be named; the built-in ones by default.
    #[must_use]
    pub fn registry(mut self, registry: ModelRegistry) -> Self {
        self.registry = registry;
        self
    }

    /// Settings that go together. Several are applied in order.
    ///
    /// ```
    /// use hopedgn::{LinkPredictor, Preset};
    ///
    /// let config = LinkPredictor::builder().preset(Preset::Enron).preset(Preset::Quick).resolve("enron")?;
    /// assert!(config.train.epochs < 50);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        self.presets.push(preset);
        self
    }

    /// Whether the model sees MITE, the times at which each neighbour interacted with both nodes. HopeDGN does by default.
    ///
    /// ```
    /// use hopedgn::{LinkPredictor, ModelName};
    ///
    /// let config = LinkPredictor::builder().model(ModelName::Tgat).mite(true).resolve("mail")?;
    /// assert!(config.model.has_mite());
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn mite(self, mite: bool) -> Self {
        self.set(format!("model.mite={mite}"))
    }

    /// One setting as `NAME=VALUE`, e.g. `model.k=16` or `train.lr=0.001`.
    ///
    /// ```
    /// use hopedgn::LinkPredictor;
    ///
    /// let config = LinkPredictor::builder().set("train.lr=0.001").set("model.k=16").resolve("mail")?;
    /// assert_eq!(config.train.lr, 0.001);
    /// let error = LinkPredictor::builder().set("model.kk=16").resolve("mail").unwrap_err();
    /// assert!(error.to_string().contains("`kk`"), "{error}");
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn set(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Training epochs at most.
    #[must_use]
    pub fn epochs(self, epochs: usize) -> Self {
        self.set(format!("train.epochs={epochs}"))
    }

    /// The seed of initial weights, training negatives and dropout.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.set(format!("seed={seed}"))
    }

    /// All settings at once, resolved elsewhere; model, presets and single settings of this builder do not count then.
    ///
    /// ```
    /// use hopedgn::{Config, LinkPredictor, ModelName};
    ///
    /// let config = Config::resolve(ModelName::Tcl, &[], &["train.epochs=3".to_owned()])?;
    /// assert_eq!(LinkPredictor::builder().config(config.clone()).resolve("mail")?, config);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Where to compute; the CPU by default.
    ///
    /// ```no_run
    /// use hopedgn::{CudaOptions, Device, LinkPredictor};
    ///
    /// let builder = LinkPredictor::builder().device(Device::cuda(&CudaOptions::default())?);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Trains together with the other processes of `group`: each computes its share of every batch, and all end with the same
    /// predictor, bit for bit that of one process. Rank 0 writes the run folder; if it holds a run of the same settings already,
    /// that run goes on, so that a rank 0 that was started again finds its place.
    ///
    /// [`distributed`](crate::distributed) has an example.
    #[must_use]
    pub fn group(mut self, group: ProcessGroup) -> Self {
        self.group = group;
        self
    }

    /// A callback of training; may be given many times. Pass `&mut callback` to look at it afterwards.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::LinkPredictor;
    /// use hopedgn::callbacks::{Callback, EpochEnd};
    ///
    /// #[derive(Default)]
    /// struct Losses(Vec<f64>);
    /// impl Callback for Losses {
    ///     fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> hopedgn::Result<()> {
    ///         Ok(self.0.push(end.record.loss))
    ///     }
    /// }
    /// let mut losses = Losses::default();
    /// LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(2).callback(&mut losses).fit(&events)?;
    /// assert_eq!(losses.0.len(), 2);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'c) -> Self {
        self.callbacks.push(callback);
        self
    }

    /// A new folder for checkpoints, metrics, `report.html` and `TensorBoard` files. Without it everything stays in memory
    /// until [`LinkPredictor::save`].
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::LinkPredictor;
    ///
    /// # let place = tempfile::tempdir()?;
    /// let folder = place.path().join("run");
    /// LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).run_folder(&folder).fit(&events)?;
    /// assert!(["config.toml", "metrics.jsonl", "summary.json"].iter().all(|name| folder.join(name).is_file()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn run_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.run_folder = Some(folder.into());
        self
    }

    /// Begins with the best weights of another run, whose events [`fit`](Self::fit) must begin with, instead of random ones: a
    /// warm start on a log that has grown. The optimizer starts afresh, the split is that of all events, and the other run stays as
    /// it is.
    ///
    /// Settings are those of the other run, changed by [`set`](Self::set); sizes of the model must stay.
    ///
    /// ```
    /// # let message = |i: i32| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i));
    /// use hopedgn::{Events, LinkPredictor};
    ///
    /// # let place = tempfile::tempdir()?;
    /// let run = place.path().join("monday");
    /// let events = Events::from_tuples((0..100).map(message))?;
    /// LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").run_folder(&run).epochs(1).fit(&events)?;
    /// let grown = Events::from_tuples((0..130).map(message))?; // thirty more messages
    /// let updated = LinkPredictor::builder().warm_start(&run).epochs(1).fit(&grown)?;
    /// assert_eq!(updated.history().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn warm_start(mut self, run: impl Into<PathBuf>) -> Self {
        self.warm_start = Some(run.into());
        self
    }

    /// Bytes that the node memory of a model may take in training; a run that needs more is refused before it begins. By default what
    /// the system has.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::{Error, LinkPredictor, ModelName};
    ///
    /// let refused = LinkPredictor::builder().model(ModelName::Tgn).max_memory(1 << 10).fit(&events);
    /// assert!(matches!(refused, Err(Error::TooMuchMemory { .. })));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// The command line to record in the manifest of the run.
    #[must_use]
    pub fn command(mut self, command: impl IntoIterator<Item = String>) -> Self {
        self.command = command.into_iter().collect();
        self
    }

    /// The commit that the program was built from, to record in the manifest of the run.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::{LinkPredictor, run::RunFolder};
    ///
    /// # let place = tempfile::tempdir()?;
    /// let run = place.path().join("run");
    /// let builder = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1);
    /// builder.commit("0123abc").run_folder(&run).fit(&events)?; // perhaps env!("GIT_COMMIT") of a build script
    /// assert_eq!(RunFolder::open(&run)?.manifest()?.commit.as_deref(), Some("0123abc"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn commit(mut self, commit: impl Into<String>) -> Self {
        self.commit = Some(commit.into());
        self
    }

    /// The settings that [`fit`](Self::fit) uses for data called `data`.
    pub fn resolve(&self, data: &str) -> Result<Config> {
        if let Some(run) = &self.warm_start {
            let config = RunFolder::open(run)?.config(&self.registry)?.changed_by(&self.registry, &self.settings)?;
            return Ok(Config { data: data.to_owned(), ..config });
        }
        if let Some(config) = &self.config {
            return Ok(config.clone());
        }
        let config = Config::resolve_with(&self.registry, self.model, &self.presets, &self.settings)?;
        config.check_effects(&self.settings)?;
        Ok(Config { data: data.to_owned(), ..config })
    }

    /// Trains on the training part of `events`, selects the best epoch on the validation part, and tests it on the rest.
    ///
    /// A callback that asks to stop ends this with [`Error::Interrupted`](crate::Error::Interrupted); with a run folder,
    /// [`resume`](Self::resume) continues from there.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::{LinkPredictor, ModelName};
    ///
    /// let builder = LinkPredictor::builder().model(ModelName::Tcl).set("model.d-out=8").set("model.neighbors=4");
    /// let predictor = builder.epochs(2).fit(&events)?;
    /// assert_eq!(predictor.history().len(), 2);
    /// assert!(predictor.summary().is_some()); // test metrics of the best epoch
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn fit(mut self, events: &Events) -> Result<LinkPredictor> {
        let config = self.resolve(events.name())?;
        let from = self.warm_start.as_deref().map(RunFolder::open).transpose()?;
        if let Some(from) = &from {
            self.check_settings_are_of_the_run("settings of a model: those of the run are taken", |_| true)?;
            from.manifest()?.data.known_part(events)?;
        }
        let task = Task::new(events, config.split)?;
        let warm_start = from.as_ref().map(WarmStart::of).transpose()?;
        let manifest = Manifest { warm_start, ..self.manifest(events, &task) };
        let Some(path) = self.run_folder.take().filter(|_| self.group.rank() == 0) else {
            return self.train(events, config, manifest, &task, None);
        };
        if !self.group.is_alone()
            && RunFolder::open(&path).is_ok_and(|run| run.is_of(&self.registry, &config, &manifest))
        {
            return self.train(events, config, manifest, &task, Some(&RunFolder::open(&path)?));
        }
        let folder = match RunFolder::create(&path, &config, &manifest) {
            Ok(folder) => folder,
            Err(error) => {
                self.group.abort(&error.to_string());
                return Err(error);
            }
        };
        let trained = self.train(events, config, manifest, &task, Some(&folder));
        if trained.is_err() {
            folder.remove_unless_begun();
        }
        trained
    }

    /// Continues the training in a run folder; the result is bit-identical to that of a run without interruption.
    ///
    /// `events` must begin with those the run was started on; training continues on exactly those, and later ones extend the
    /// history of predictions. Settings are the run's own, except for those of [`CHANGEABLE`](crate::config::CHANGEABLE), such as
    /// [`epochs`](Self::epochs), given to this builder.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::LinkPredictor;
    ///
    /// # let place = tempfile::tempdir()?;
    /// let folder = place.path().join("run");
    /// LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").run_folder(&folder).epochs(1).fit(&events)?;
    /// let longer = LinkPredictor::builder().epochs(2).resume(&folder, &events)?;
    /// assert_eq!(longer.history().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(self, folder: impl AsRef<Path>, events: &Events) -> Result<LinkPredictor> {
        let folder = RunFolder::open(folder.as_ref())?;
        let name = |setting: &str| setting.split('=').next().unwrap_or_default().trim().to_owned();
        let is_allowed = |setting: &str| CHANGEABLE.contains(&&*name(setting));
        let expected = format!("{} at most: a run resumes with its own settings", CHANGEABLE.join(", "));
        self.check_settings_are_of_the_run(&expected, is_allowed)?;
        let (config, manifest) = (folder.config(&self.registry)?, folder.manifest()?);
        let config = config.changed_by(&self.registry, &self.settings)?;
        let known = manifest.data.known_part(events)?;
        let task = Task::with_rule(&known.events, &manifest.split)?;
        let folder = Some(&folder).filter(|_| self.group.rank() == 0);
        self.train(events, config, manifest, &task, folder)
    }

    /// Refuses a preset, a whole configuration, and settings that are not allowed.
    fn check_settings_are_of_the_run(&self, expected: &str, is_allowed: impl Fn(&str) -> bool) -> Result<()> {
        let other = self.settings.iter().find(|setting| !is_allowed(setting)).cloned();
        let other = other.or_else(|| self.presets.first().map(|preset| format!("preset {}", preset.name())));
        let other = other.or_else(|| self.config.as_ref().map(|_| "other settings".to_owned()));
        match other {
            Some(found) => Err(Error::Setting { name: "settings", found, expected: expected.to_owned() }),
            None => Ok(()),
        }
    }

    fn train(
        mut self,
        events: &Events,
        config: Config,
        manifest: Manifest,
        task: &Task<'_>,
        folder: Option<&RunFolder>,
    ) -> Result<LinkPredictor> {
        let (model, mut initial) = config.build(&self.registry, task.tables.widths())?;
        set_data_constants(&mut initial, &*model, task)?;
        if let Some(start) = manifest.warm_start.as_ref().filter(|_| !folder.is_some_and(RunFolder::has_state)) {
            start.load(&mut initial)?;
        }
        if let Some(folder) = folder {
            // Files first, so that a callback of the user finds them.
            let mut files = CallbackList::default();
            files.push(HtmlReport::new(folder.path()));
            files.push(TensorBoard::new(folder.path()));
            files.push(self.callbacks);
            self.callbacks = files;
        }
        let (max_memory, group) = (self.max_memory, self.group);
        let session =
            Session { config: &config, task, model: &*model, initial, device: &self.device, folder, max_memory, group };
        let trained = session.train(&mut self.callbacks)?;
        let has_grown = events.len() > task.stream.len();
        let trained = Trained {
            config,
            manifest,
            model,
            weights: trained.weights,
            memory: trained.memory,
            epochs: trained.history,
            summary: Some(trained.summary),
            folder: folder.map(|folder| folder.path().to_owned()),
            state: trained.state,
        };
        let tables = if has_grown { FeatureTables::of(events)? } else { task.tables.clone() };
        Ok(LinkPredictor::new(trained, events, tables))
    }

    fn manifest(&self, events: &Events, task: &Task<'_>) -> Manifest {
        Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: self.commit.clone(),
            command: self.command.clone(),
            started: system::wall_time(),
            threads: rayon::current_num_threads(),
            machine: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            data: DataRecord::of(events),
            split: task.split.rule.clone(),
            warm_start: None,
        }
    }
}
