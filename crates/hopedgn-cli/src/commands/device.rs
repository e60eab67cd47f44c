//! `--device`: where to compute.

use clap::{Args, ValueEnum};

/// Where to compute.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DeviceArgs {
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    device: Device,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Device {
    /// The fastest there is
    Auto,
    Cpu,
    Cuda,
}

impl DeviceArgs {
    /// The name of the device to use.
    pub(crate) fn name(self) -> anyhow::Result<&'static str> {
        anyhow::ensure!(
            self.device != Device::Cuda,
            "found --device cuda, expected auto or cpu; this version computes on the CPU only"
        );
        Ok("cpu")
    }
}
