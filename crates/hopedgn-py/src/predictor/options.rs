//! Options of the Python layer, which come as JSON.

use std::path::PathBuf;
use std::time::Duration;

use ctdg::negative::{CandidateCount, Candidates};
use hopedgn::config::{Config, ModelConfig, Preset, Protocol};
use hopedgn::distributed::{self, GroupOptions};
use hopedgn::evaluate::{Negatives, TestRange};
use hopedgn::tensor::{Heads, ProcessGroup};
use hopedgn::{
    CudaOptions, Device, Error, EvaluateOptions, Events, LinkPredictor, LinkPredictorBuilder, ModelName, ModelRegistry,
    Precision, Result,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::callback::PythonCallback;

/// Reads options; what is wrong with them is an error of the Python layer's arguments.
pub(super) fn parse<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| Error::Config { place: "options".into(), detail: error.to_string() })
}

/// Where and how to compute.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceOptions {
    device: DeviceName,
    precision: Option<PrecisionName>,
    /// Cache folder of compiled kernels.
    cache: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeviceName {
    Auto,
    Cpu,
    Cuda,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PrecisionName {
    F32,
    Tf32,
    Bf16,
}

impl DeviceOptions {
    /// The device for a model. With `auto`, the CPU if there is no GPU or it cannot run the model.
    pub(super) fn open_for(&self, model: &ModelConfig) -> Result<Device> {
        let precision = self.precision.map_or(Precision::default(), |precision| match precision {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::Tf32 => Precision::Tf32,
            PrecisionName::Bf16 => Precision::Bf16,
        });
        let options = CudaOptions { precision, cache: self.cache.clone() };
        let device = match self.device {
            DeviceName::Cpu => Device::cpu(),
            DeviceName::Cuda => Device::cuda(&options)?,
            DeviceName::Auto => Device::cuda(&options).unwrap_or_else(|_| Device::cpu()),
        };
        if !device.is_gpu() && self.precision.is_some_and(|precision| precision != PrecisionName::F32) {
            let (found, expected) = ("another one".to_owned(), "f32: the CPU computes in f32 only".to_owned());
            return Err(Error::Setting { name: "precision", found, expected });
        }
        let fits = device.check_encoder(model.encoder_width().unwrap_or(0), Heads(model.encoder_heads()));
        match fits {
            Err(_) if self.device == DeviceName::Auto && self.precision.is_none() => Ok(Device::cpu()),
            fits => Ok(fits.map(|()| device)?),
        }
    }
}

/// What to train.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FitOptions {
    model: String,
    preset: Option<String>,
    /// The rules of a benchmark, below the settings.
    protocol: Option<Protocol>,
    /// `NAME=VALUE`, in order.
    settings: Vec<String>,
    #[serde(flatten)]
    pub(super) device: DeviceOptions,
    /// The run folder.
    pub(super) run: PathBuf,
    /// Whether to continue the run that is there.
    resume: bool,
    /// A run whose weights training begins with.
    warm_start: Option<PathBuf>,
    command: Vec<String>,
    /// The processes that train together.
    #[serde(default)]
    group: Option<GroupArguments>,
}

/// The place of this process among those that train together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupArguments {
    rank: usize,
    workers: usize,
    address: String,
    /// Whether rank 0 opens the rendezvous.
    hosts: bool,
    /// Where another rank saves what it has trained.
    folder: Option<PathBuf>,
    /// Seconds.
    silence: Option<f64>,
    patience: Option<f64>,
}

impl GroupArguments {
    fn join(&self) -> Result<ProcessGroup> {
        let seconds = |given: Option<f64>, usual: Duration| {
            given
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|time| !time.is_zero())
                .unwrap_or(usual)
        };
        distributed::join(GroupOptions {
            hosts: self.hosts && self.rank == 0,
            silence: seconds(self.silence, GroupOptions::SILENCE),
            patience: seconds(self.patience, GroupOptions::PATIENCE),
            ..GroupOptions::new(self.rank, self.workers, &self.address)
        })
    }
}

impl FitOptions {
    pub(super) fn parse(json: &str) -> Result<Self> {
        parse(json)
    }

    /// The settings for data of this name, chosen as the command line chooses them: the dataset's own preset, unless another one is
    /// named that replaces it.
    pub(super) fn config(&self, data: &str) -> Result<Config> {
        self.with_presets(data)?.resolve(data)
    }

    fn builder<'c>(&self) -> Result<LinkPredictorBuilder<'c>> {
        let builder = LinkPredictor::builder().model(self.model()?);
        Ok(self.settings().fold(builder, LinkPredictorBuilder::set))
    }

    fn settings(&self) -> impl Iterator<Item = String> {
        self.protocol.map(Protocol::settings).unwrap_or_default().into_iter().chain(self.settings.iter().cloned())
    }

    fn model(&self) -> Result<ModelName> {
        ModelRegistry::default().named(&self.model)
    }

    fn with_presets<'c>(&self, data: &str) -> Result<LinkPredictorBuilder<'c>> {
        let presets = Preset::of_run(Preset::for_data(data), self.preset.as_deref())?;
        Ok(presets.into_iter().fold(self.builder()?, LinkPredictorBuilder::preset))
    }

    /// Trains, resumes, or begins with the weights of another run.
    ///
    /// Of several processes rank 0 trains in the run folder; each other one saves what it has trained in its own.
    pub(super) fn train(&self, events: &Events, device: Device, callback: PythonCallback<'_>) -> Result<LinkPredictor> {
        let group = self.group.as_ref().map(GroupArguments::join).transpose()?.unwrap_or_default();
        let own = self.group.as_ref().and_then(|group| group.folder.as_deref()).filter(|_| group.rank() > 0);
        let trained = self.train_in(group, events, device.clone(), callback)?;
        let Some(own) = own else { return Ok(trained) };
        trained.save(own)?;
        LinkPredictor::loader().device(device).load(own, events)
    }

    fn train_in(
        &self,
        group: ProcessGroup,
        events: &Events,
        device: Device,
        callback: PythonCallback<'_>,
    ) -> Result<LinkPredictor> {
        if self.resume {
            let builder = LinkPredictor::builder().device(device).group(group).callback(callback);
            let builder =
                self.settings().filter(|setting| is_changeable(setting)).fold(builder, LinkPredictorBuilder::set);
            return builder.resume(&self.run, events);
        }
        let builder = match &self.warm_start {
            Some(run) => self.settings().fold(LinkPredictor::builder(), LinkPredictorBuilder::set).warm_start(run),
            None => self.with_presets(events.name())?,
        };
        let builder = builder.device(device).group(group).command(self.command.iter().cloned());
        builder.run_folder(&self.run).callback(callback).fit(events)
    }
}

fn is_changeable(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default().trim();
    hopedgn::config::CHANGEABLE.contains(&name)
}

/// What to measure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EvaluateArguments {
    negatives: Vec<Negatives>,
    /// Candidates of a ranking: a number, or all of them.
    ranking: Option<usize>,
    rank_all: bool,
    tgb: bool,
    candidates: Option<PathBuf>,
    new: bool,
    from: Option<f64>,
    until: Option<f64>,
}

pub(super) fn evaluate_options(json: &str) -> Result<EvaluateOptions> {
    let arguments: EvaluateArguments = parse(json)?;
    let count = match (arguments.ranking, arguments.rank_all) {
        (_, true) => Some(CandidateCount::All),
        (count, false) => count.map(CandidateCount::Some),
    };
    let ranking = match (arguments.candidates, count) {
        (Some(file), _) => Some(Candidates::File(file)),
        (None, Some(count)) if arguments.tgb => Some(Candidates::Tgb(count.into())),
        (None, count) => count.map(Into::into),
    };
    let range = match arguments.from {
        Some(from) => TestRange::Times { from, until: arguments.until },
        None if arguments.new => TestRange::New,
        None => TestRange::Split,
    };
    Ok(EvaluateOptions { negatives: arguments.negatives, ranking, range })
}
