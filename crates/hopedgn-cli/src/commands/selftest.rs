//! `hopedgn selftest`: checks that this machine computes correctly.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use crate::commands::device::DeviceArgs;
use crate::output::{Outcome, Output};

/// Check in a few seconds that this machine computes correctly
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hopedgn selftest\n  hopedgn selftest --device cpu\n  hopedgn selftest --device cuda --precision bf16 --seed 7"
)]
pub(crate) struct Selftest {
    /// Seed of the random inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn run(args: &Selftest, output: &Output) -> anyhow::Result<Outcome> {
    let device = args.device.open(output)?;
    let checks = hopedgn_experiments::selftest::run(&device, args.seed)?;
    let ok = checks.iter().all(|check| check.ok);
    let mut text = String::new();
    for check in &checks {
        let verdict = if check.ok { "ok" } else { "FAILED" };
        let _ = writeln!(text, "{verdict:<6}  {:<16}  {}", check.name, check.detail);
    }
    output.answer(text, &json!({ "device": device.name(), "ok": ok, "checks": checks }))?;
    Ok(if ok { Outcome::Done } else { Outcome::FellShort })
}
