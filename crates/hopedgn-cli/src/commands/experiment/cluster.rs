//! `hopedgn experiment run --on`: the cells as tasks of a Ray cluster, by the Python package.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use serde_json::json;

use super::Run;
use super::subprocess::listen;
use crate::output::Output;

/// Prints the version of the package and whether Ray is there, without importing Ray.
const CHECK: &str =
    "import hopedgn, importlib.util; print(hopedgn.__version__, importlib.util.find_spec('ray') is not None)";

/// Exit status of the Python side when it could not run; stdout then holds why.
const COULD_NOT_RUN: i32 = 2;

/// Runs all cells that are not done on the cluster at `address`; true if Ctrl-C stopped it.
pub(super) fn run(args: &Run, address: &str, output: &Output) -> anyhow::Result<bool> {
    check_package(args)?;
    let pressed = listen(output)?;
    let text = |path: &Path| path.display().to_string();
    let results: Vec<String> = args.archive.patterns().iter().flatten().map(|path| text(path)).collect();
    let options = json!({
        "file": text(&args.files.file), "address": address, "runs": text(&args.files.runs), "out": args.files.out.as_deref().map(text),
        "smoke": args.files.smoke, "data_dir": args.files.data_dir.folder().map(text), "results": results,
        "num_cpus": args.cpus.unwrap_or(1), "num_gpus": args.gpus, "device": args.device.device_name(), "precision": args.device.precision_name(),
        "progress": if output.is_quiet() { json!(false) } else { json!("lines") },
    });
    let mut command = Command::new(&args.python);
    command.args(["-m", "hopedgn.ray", "experiment", &options.to_string()]).stdin(Stdio::null());
    let ended = command.stderr(Stdio::inherit()).output().with_context(|| could_not_start(args))?;
    match ended.status.code() {
        Some(COULD_NOT_RUN) => anyhow::bail!("{}", String::from_utf8_lossy(&ended.stdout).trim()),
        Some(0) => Ok(pressed.load(Ordering::SeqCst) > 0),
        _ if pressed.load(Ordering::SeqCst) > 0 => Ok(true),
        _ => anyhow::bail!("{} ended with {} while it ran the cells on Ray", args.python.display(), ended.status),
    }
}

/// Refuses a Python without the package of this version, or without Ray.
fn check_package(args: &Run) -> anyhow::Result<()> {
    const REMEDY: &str = "install it with: pip install 'hopedgn[ray]'; another Python is named with --python";
    let python = args.python.display();
    let found = Command::new(&args.python).args(["-c", CHECK]).stdin(Stdio::null()).output();
    let found = found.with_context(|| could_not_start(args))?;
    anyhow::ensure!(found.status.success(), "{python}: found no Python package hopedgn, which --on needs; {REMEDY}");
    let words = String::from_utf8_lossy(&found.stdout);
    let (version, has_ray) = words.trim().split_once(' ').unwrap_or_default();
    anyhow::ensure!(
        version == env!("CARGO_PKG_VERSION"),
        "{python}: found version {version} of the Python package hopedgn, expected {}, that of this program; {REMEDY}",
        env!("CARGO_PKG_VERSION")
    );
    anyhow::ensure!(has_ray == "True", "{python}: found no Ray, which --on needs; {REMEDY}");
    Ok(())
}

fn could_not_start(args: &Run) -> String {
    format!("could not start {}, the Python that --on needs; name one with --python", args.python.display())
}
