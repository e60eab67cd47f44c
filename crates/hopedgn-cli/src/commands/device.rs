//! `--device` and `--precision`: where and how to compute.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hopedgn::config::ModelConfig;
use hopedgn::tensor::{Error, Heads};
use hopedgn::{CudaOptions, Device, Precision};

use crate::output::Output;

/// Where to compute.
///
/// Flatten it behind a command's own arguments and before [`ReadArgs`](super::data_args::ReadArgs): arguments after it would be
/// listed under its help heading.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct DeviceArgs {
    /// Where to compute
    #[arg(long, value_enum, default_value_t = DeviceArg::Auto)]
    device: DeviceArg,
    /// Precision of matrix products [default: tf32 on a GPU, f32 on the CPU]
    #[arg(long, value_enum)]
    precision: Option<PrecisionArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceArg {
    /// The GPU if there is one, else the CPU
    Auto,
    Cpu,
    /// The first NVIDIA GPU
    Cuda,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PrecisionArg {
    F32,
    Tf32,
    Bf16,
}

impl DeviceArgs {
    /// The device for a model. With `auto`, the CPU if the GPU cannot run the model.
    pub(crate) fn open_for(self, model: &ModelConfig, output: &Output) -> anyhow::Result<Device> {
        let device = self.open(output)?;
        let width = model.encoder_width().unwrap_or(0);
        match (device.check_encoder(width, Heads(model.encoder_heads())), self.device) {
            (Err(error), DeviceArg::Auto) if self.precision.is_none() => {
                output.remark(format_args!("on the CPU: {error}"));
                Ok(Device::cpu())
            }
            (fits, _) => Ok(fits.map(|()| device)?),
        }
    }

    /// The same flags for several processes, and whether they compute on a GPU: without one `auto` is the CPU, so that the remark of
    /// [`DeviceArgs::open`] is printed once.
    pub(crate) fn shared(self, output: &Output) -> anyhow::Result<(Self, bool)> {
        let is_gpu = self.open(output)?.is_gpu();
        let device = if self.device == DeviceArg::Auto && !is_gpu { DeviceArg::Cpu } else { self.device };
        Ok((Self { device, ..self }, is_gpu))
    }

    /// The flags as typed, for the command that resumes a run.
    pub(crate) fn typed(self) -> String {
        let device = self.device_name().filter(|_| self.device != DeviceArg::Auto);
        let precision = self.precision_name();
        let flag = |(flag, value): (&str, Option<String>)| value.map(|value| format!(" {flag} {value}"));
        [("--device", device), ("--precision", precision)].into_iter().filter_map(flag).collect()
    }

    /// The value of `--device`.
    pub(crate) fn device_name(self) -> Option<String> {
        self.device.to_possible_value().map(|value| value.get_name().to_owned())
    }

    /// The value of `--precision`, if there is one.
    pub(crate) fn precision_name(self) -> Option<String> {
        self.precision?.to_possible_value().map(|value| value.get_name().to_owned())
    }

    /// The device. With `auto`, a remark says why it is not the GPU.
    pub(crate) fn open(self, output: &Output) -> anyhow::Result<Device> {
        let precision = self.precision.map_or(Precision::default(), |precision| match precision {
            PrecisionArg::F32 => Precision::F32,
            PrecisionArg::Tf32 => Precision::Tf32,
            PrecisionArg::Bf16 => Precision::Bf16,
        });
        let options = CudaOptions { precision, cache: cache() };
        let device = match self.device {
            DeviceArg::Cpu => Device::cpu(),
            DeviceArg::Cuda => return Ok(Device::cuda(&options)?),
            DeviceArg::Auto => Device::cuda(&options).unwrap_or_else(|error| {
                match error {
                    Error::NoGpu { reason } => output.remark(format_args!("on the CPU: {reason}")),
                    error => output.remark(format_args!("on the CPU: {error}")),
                }
                Device::cpu()
            }),
        };
        anyhow::ensure!(
            device.is_gpu() || self.precision.is_none_or(|precision| precision == PrecisionArg::F32),
            "found another --precision than f32, expected f32: the CPU computes in f32 only"
        );
        Ok(device)
    }
}

/// Cache folder of compiled kernels, in the user's cache folder.
fn cache() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let folder = given("XDG_CACHE_HOME").or_else(|| Some(given("HOME")?.join(".cache")))?;
    Some(folder.join("hopedgn").join("kernels"))
}
