//! `hopedgn selftest`: does it compute rightly here?

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use crate::commands::device::DeviceArgs;
use crate::output::{Outcome, Output};

/// Check in a few seconds that this program computes rightly on this machine
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn selftest --device cpu")]
pub(crate) struct Selftest {
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn run(args: &Selftest, output: &Output) -> anyhow::Result<Outcome> {
    let device = args.device.name()?;
    let checks = hopedgn::selftest::run()?;
    let ok = checks.iter().all(|check| check.ok);
    let mut text = String::new();
    for check in &checks {
        let verdict = if check.ok { "ok" } else { "FAILED" };
        let _ = writeln!(text, "{verdict:<6}  {:<10}  {}", check.name, check.detail);
    }
    output.answer(text, &json!({ "device": device, "ok": ok, "checks": checks }))?;
    Ok(if ok { Outcome::Done } else { Outcome::FellShort })
}
