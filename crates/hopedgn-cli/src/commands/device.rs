//! Where to compute: the flags, and what is found of them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hopedgn::{CudaOptions, Device, Precision, TensorError as Error};

use crate::output::Output;

/// Where to compute.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DeviceArgs {
    /// Where to compute
    #[arg(long, value_enum, default_value_t = DeviceArg::Auto)]
    device: DeviceArg,
    /// Numbers to multiply: tf32 on a GPU unless told otherwise; the CPU knows f32 only
    #[arg(long, value_enum)]
    precision: Option<PrecisionArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceArg {
    /// The fastest there is
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
    /// The device; a person who leaves the choice to us learns why it is not the GPU.
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
            device.name() != "cpu" || self.precision.is_none_or(|precision| precision == PrecisionArg::F32),
            "found another --precision than f32, which is all the CPU knows"
        );
        Ok(device)
    }
}

/// Where programs of this person keep what can be made again.
fn cache() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let folder = given("XDG_CACHE_HOME").or_else(|| Some(given("HOME")?.join(".cache")))?;
    Some(folder.join("hopedgn").join("kernels"))
}
