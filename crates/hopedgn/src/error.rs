//! The crate's one error: what was found, what was expected, and the way out.

use std::path::PathBuf;

use ctdg::error::counted;

/// Result of every fallible function of this crate.
///
/// ```
/// fn n_nodes(file: &str) -> hopedgn::Result<usize> {
///     Ok(hopedgn::Events::read(file)?.n_nodes())
/// }
/// assert!(n_nodes("no such file.csv").is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
///
/// ```
/// use hopedgn::{Error, Events, LinkPredictor};
///
/// let events = Events::from_tuples([("ann", "bob", 1.0), ("bob", "ann", 2.0)])?;
/// match LinkPredictor::load("runs/none", &events) {
///     Err(error @ Error::NotARunFolder { .. }) => assert!(error.to_string().contains("runs/none")),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Events, files, splits, metrics.
    #[error(transparent)]
    Data(#[from] ctdg::Error),
    /// Tensors and checkpoints.
    #[error(transparent)]
    Tensor(#[from] hopedgn_tensor::Error),
    /// A checkpoint that does not fit.
    #[error("{}: {problem}; take the run from a copy, or train it again", file.display())]
    Checkpoint {
        /// The file.
        file: PathBuf,
        /// The reason. Not a `source`: it is part of the message and would be printed twice.
        problem: hopedgn_tensor::Error,
    },
    /// A setting that cannot be read, is not known, or has the wrong type.
    #[error("{place}: {detail}")]
    Config {
        /// A file, a preset, or the flag.
        place: String,
        /// What the parser said.
        detail: String,
    },
    /// A file of an experiment that cannot be read, or says what cannot be.
    #[error("{}{}: {detail}", file.display(), line.map_or(String::new(), |line| format!(":{line}")))]
    Experiment {
        /// The file.
        file: PathBuf,
        /// From 1, where one is at fault.
        line: Option<usize>,
        /// What is wrong and what to do.
        detail: String,
    },
    /// A file of a run folder that cannot be understood.
    #[error("{}: {detail}; the file was changed or comes from another version: take the run from a copy", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What the parser said.
        detail: String,
    },
    /// A file of a newer version.
    #[error("{}: found format {found}, expected at most {known}; a newer version wrote the file: update the program", file.display())]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// Settings of a run that are not those it was started with.
    #[error(
        "{}: {} as when the run began; put {} back. Only {} may change when the run is resumed",
        file.display(),
        joined(differences),
        if differences.len() == 1 { "it" } else { "them" },
        changeable.join(", ")
    )]
    ChangedSettings {
        /// Where they were found.
        file: PathBuf,
        /// All that differ.
        differences: Vec<SettingDifference>,
        /// Settings that may change.
        changeable: &'static [&'static str],
    },
    /// A checkpoint of a run with other settings.
    #[error("{}: a checkpoint of other settings: {}; take the file of this run from a copy", file.display(), joined(differences))]
    OtherSettings {
        /// The checkpoint.
        file: PathBuf,
        /// Settings of this run that differ from those of the checkpoint.
        differences: Vec<SettingDifference>,
    },
    /// A setting outside its bounds.
    #[error("found {name} = {found}, expected {expected}")]
    Setting {
        /// e.g. `model.patch`.
        name: &'static str,
        /// Its value.
        found: String,
        /// The bounds.
        expected: String,
    },
    /// The loss is no number any more.
    #[error(
        "the loss became {loss} at step {step} (epoch {epoch}, batch {batch}, seed {seed}); \
         lower train.lr, or look for huge values among the features"
    )]
    Diverged {
        /// NaN or an infinity.
        loss: f64,
        /// Steps taken since the beginning.
        step: u64,
        /// From 1.
        epoch: usize,
        /// Within the epoch, from 1.
        batch: usize,
        /// Of the run.
        seed: u64,
    },
    /// A model that reads another input than the one of its layout.
    #[error(
        "found the input of Layout::{found}, expected that of Layout::{expected}; return that layout from Model::layout"
    )]
    OtherLayout {
        /// The layout of the model.
        found: &'static str,
        /// The layout whose input it reads.
        expected: &'static str,
    },
    /// The model was made for features that its input does not have.
    #[error("the input lacks features that the model was made for; use the dataset it was trained on")]
    MissingInput,
    /// More pairs of nodes than memory is allowed for.
    #[error(
        "the pairs of {n_nodes} nodes would take at least {needed} MiB for each pair asked about, of which {most} MiB are allowed; \
         use fewer layers (model.n-blocks), a smaller model.d-out, model.replacing=met, or a graph of fewer nodes"
    )]
    TooManyPairs {
        /// Nodes that are looked at.
        n_nodes: usize,
        /// MiB.
        needed: usize,
        /// MiB.
        most: usize,
    },
    /// Labels that nothing can be learned from.
    #[error(
        "found {found}; node classification needs events of both labels, 0 and 1; Wikipedia and Reddit of JODIE have them"
    )]
    Labels {
        /// Which, and where.
        found: String,
    },
    /// Work that does not fit in memory, refused before it begins.
    #[error(
        "{what} would take about {} MiB, of which {} MiB are available; end other programs, use a machine with more memory, or a \
         smaller model (model.d-out)", needed >> 20, allowed >> 20
    )]
    TooMuchMemory {
        /// e.g. `the memories of 5,000,000 nodes`.
        what: String,
        /// Bytes.
        needed: u64,
        /// Bytes.
        allowed: u64,
    },
    /// A model whose scores cannot be taken apart by events.
    #[error(
        "found {model}, which {why}; expected a model that sees the newest events of both nodes one by one (HopeDGN, \
         DyGFormer, and TCL or GraphMixer with recent events)"
    )]
    NotExplained {
        /// Its name.
        model: &'static str,
        /// What is in the way.
        why: &'static str,
    },
    /// Node embeddings of a model that has none.
    #[error("{model} has no node embeddings, expected a model whose `nodes` returns them, such as hopedgn or tgn")]
    NoNodeEmbeddings {
        /// Its name.
        model: &'static str,
    },
    /// A model with a node memory in a process group.
    #[error(
        "found {workers} workers for {model}, expected one: every batch reads the memory that the batch before it wrote, so a batch \
         cannot be shared out; train it in one process, or choose a model without a memory, such as hopedgn or tpnet"
    )]
    OneWorker {
        /// The model.
        model: &'static str,
        /// Processes of the group.
        workers: usize,
    },
    /// Events of a rank that are not those of rank 0.
    #[error("rank {rank} reads other events than rank 0; name the same file with the same options on every worker")]
    OtherEvents {
        /// The process.
        rank: usize,
    },
    /// A checkpoint without the memory that its model keeps.
    #[error(
        "found no memory beside the weights, expected one; the file is not of this model, or from another version: train it again"
    )]
    NoMemory,
    /// A part of the split that learning needs is empty.
    #[error(
        "found no {what} events, expected some; the dataset has too few events, or too few distinct times, to split it into three parts"
    )]
    EmptyPart {
        /// e.g. `training`.
        what: &'static str,
    },
    /// A saved state without readable progress.
    #[error("found no readable progress of training: {detail}; the file is not a saved state, or from another version")]
    Progress {
        /// What the parser said.
        detail: String,
    },
    /// The system gives no threads.
    #[error("could not start threads: {detail}")]
    Threads {
        /// What the system said.
        detail: String,
    },
    /// The callback asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A folder of runs that cannot be used as it is.
    #[error("{}: {detail}", folder.display())]
    Run {
        /// The folder.
        folder: PathBuf,
        /// What is wrong and what to do.
        detail: String,
    },
    /// The folder for a new run is not empty.
    #[error("{}: the folder is not empty; continue the run in it, or choose another folder", folder.display())]
    RunFolderTaken {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder without a run.
    #[error("{}: found no config.toml, expected the folder of a run; train a model first", folder.display())]
    NotARunFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// A run without trained weights.
    #[error(
        "{}: found no model.safetensors: no epoch is complete yet, or the file was removed; train first", folder.display()
    )]
    NoWeights {
        /// The folder.
        folder: PathBuf,
    },
    /// A trained run whose checkpoint is missing.
    #[error(
        "{}: found trained weights but no state.safetensors to resume from; take the file from a copy, or train in a new folder",
        folder.display()
    )]
    NoCheckpoint {
        /// The folder.
        folder: PathBuf,
    },
    /// A score that is no number.
    #[error("found a score of {score} for pair {pair}, expected a finite number; the weights are damaged: train again")]
    NonFiniteScore {
        /// NaN or an infinity.
        score: f32,
        /// Position of the pair among those asked for, from 0.
        pair: usize,
    },
    /// A run folder that another process writes to.
    #[error("{}: another process is writing to this run; wait for it, or stop it", folder.display())]
    RunFolderBusy {
        /// The folder.
        folder: PathBuf,
    },
    /// A run whose training is not complete.
    #[error("{}: training is not complete; resume it first", folder.display())]
    TrainingNotComplete {
        /// The folder.
        folder: PathBuf,
    },
    /// A test under TGB's protocol of a run that was trained under another one.
    #[error(
        "found a run with split = {found}, which keeps {} out of training, expected split = tgb, which keeps none; train another \
         run with that split", counted(*masked, "node")
    )]
    OtherSplit {
        /// The split of the run.
        found: &'static str,
        /// Number of masked nodes.
        masked: usize,
    },
    /// Nothing to test.
    #[error("found no event {what}, expected at least one; the last event is at {last}")]
    NoTestEvents {
        /// Which events were asked for.
        what: String,
        /// Time of the last event.
        last: String,
    },
    /// Events other than those a run was trained on.
    #[error(
        "found {} of {}, expected the {} of {} that the run was trained on ({name}), features included; read the same file with the \
         same options",
        counted(*found_events, "other event"), counted(*found_nodes, "node"), counted(*events, "event"), counted(*nodes, "node")
    )]
    DataMismatch {
        /// Name of the data that the run was trained on.
        name: String,
        /// Events of the run.
        events: usize,
        /// Nodes of the run.
        nodes: usize,
        /// Events found.
        found_events: usize,
        /// Nodes found.
        found_nodes: usize,
    },
}

impl Error {
    /// The message with another way out than its own, which stands after the last semicolon: in the words of a front end.
    ///
    /// ```
    /// let error = hopedgn::Error::NotARunFolder { folder: "runs".into() };
    /// assert!(error.with_advice("train first").ends_with("expected the folder of a run; train first"));
    /// ```
    #[must_use]
    pub fn with_advice(&self, advice: &str) -> String {
        let message = self.to_string();
        let finding = message.rsplit_once("; ").map_or(&*message, |(finding, _)| finding);
        format!("{finding}; {advice}")
    }

    /// The kind of failure as one stable word, for programs: `not-a-run-folder`, `data-mismatch`, ….
    ///
    /// Messages may change between versions, these words do not. Errors of events and tensors have the words of their crates.
    ///
    /// ```
    /// let error = hopedgn::Events::read("no such file.csv").unwrap_err();
    /// assert_eq!(error.code(), "io");
    /// ```
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Data(error) => error.code(),
            Self::Tensor(error) | Self::Checkpoint { problem: error, .. } => error.code(),
            Self::Config { .. } => "invalid-config",
            Self::Experiment { .. } => "invalid-experiment",
            Self::Damaged { .. } => "damaged-run-file",
            Self::NewerFormat { .. } => "newer-format",
            Self::ChangedSettings { .. } => "changed-settings",
            Self::OtherSettings { .. } => "other-settings",
            Self::Setting { .. } => "invalid-setting",
            Self::OtherSplit { .. } => "other-split",
            Self::Diverged { .. } => "diverged",
            Self::OtherLayout { .. } => "model-layout",
            Self::MissingInput => "missing-features",
            Self::TooManyPairs { .. } => "too-many-pairs",
            Self::Labels { .. } => "invalid-labels",
            Self::TooMuchMemory { .. } => "too-much-memory",
            Self::NotExplained { .. } => "not-explained",
            Self::NoNodeEmbeddings { .. } => "no-node-embeddings",
            Self::NoMemory => "no-node-memory",
            Self::OneWorker { .. } => "one-worker",
            Self::OtherEvents { .. } => "other-events",
            Self::EmptyPart { .. } => "empty-split",
            Self::Progress { .. } => "damaged-checkpoint",
            Self::Threads { .. } => "no-threads",
            Self::Interrupted => "interrupted",
            Self::Run { .. } => "invalid-run-folder",
            Self::RunFolderTaken { .. } => "run-folder-taken",
            Self::NotARunFolder { .. } => "not-a-run-folder",
            Self::NoWeights { .. } => "no-weights",
            Self::NoCheckpoint { .. } => "no-checkpoint",
            Self::NonFiniteScore { .. } => "non-finite-score",
            Self::RunFolderBusy { .. } => "run-folder-busy",
            Self::TrainingNotComplete { .. } => "training-not-complete",
            Self::NoTestEvents { .. } => "no-test-events",
            Self::DataMismatch { .. } => "data-mismatch",
        }
    }
}

/// One setting with two values.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingDifference {
    /// e.g. `train.lr`.
    pub name: String,
    /// Its value now.
    pub found: String,
    /// Its value before.
    pub expected: String,
}

impl std::fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, found, expected } = self;
        write!(f, "found {name} = {found}, expected {expected}")
    }
}

fn joined(differences: &[SettingDifference]) -> String {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    all.join("; ")
}

/// As [`Display`](std::fmt::Display): a `main` that returns this error prints its message.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}
