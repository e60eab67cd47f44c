//! Training that is stopped: Ctrl-C, kill, a full disk.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ctdg::random::RandomStream;
use serde_json::Value;

use crate::train::{SMALL, home, with_small};
use crate::{json, tries};

/// Starts a training of some seconds that saves after every step.
fn start(home: &Path, out: &str) -> Child {
    let arguments = ["train", "--data", "events.csv", "--out", out, "--epochs", "6", "--set", "train.save-every=0"];
    Command::new(env!("CARGO_BIN_EXE_hopedgn"))
        .current_dir(home)
        .args(with_small(&arguments))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    status.expect("kill is there");
}

fn resumed(home: &Path, out: &str) -> Value {
    json(home, &["train", "--resume", out, "--json"])
}

#[test]
fn ctrl_c_saves_and_names_the_command_to_continue() {
    let home = home();
    let unbroken = start(home.path(), "whole").wait().expect("it ends");
    assert!(unbroken.success());
    let child = start(home.path(), "stopped");
    while !home.path().join("stopped/state.safetensors").exists() {
        sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Training may have ended before the signal.
    if output.status.code() == Some(1) {
        assert!(stderr.contains("Continue with: hopedgn train --resume stopped"), "{stderr}");
    }
    resumed(home.path(), "stopped");
    let model = |out: &str| fs::read(home.path().join(out).join("model.safetensors")).expect("a model");
    assert_eq!(model("stopped"), model("whole"));
}

/// Models that are killed: of tokens, of hops, and two with a memory.
const MODELS: [&[&str]; 4] = [
    &SMALL,
    &["--model", "tgat", "--set", "model.d-out=6", "--set", "model.neighbors=3", "--set", "train.batch=20"],
    &["--model", "tgn", "--set", "model.d-out=6", "--set", "model.neighbors=3", "--set", "train.batch=20"],
    &["--model", "jodie", "--set", "model.d-out=6", "--set", "train.batch=20"],
];

/// Starts `hopedgn train` and stops it by `signal` after so many milliseconds, if it has not ended before.
fn stopped(home: &Path, arguments: &[&str], signal_name: &str, delay: u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopedgn"))
        .current_dir(home)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    sleep(Duration::from_millis(delay));
    signal(&child, signal_name);
    child.wait().expect("it ends");
}

/// `HOPEDGN_TRIES` and `HOPEDGN_SEED` in the environment say how many runs are stopped, and when.
#[test]
fn a_run_stopped_by_any_signal_at_any_time_resumes_to_the_same_bits() {
    let home = home();
    let model = |out: &str| fs::read(home.path().join(out).join("model.safetensors")).expect("a model");
    let train = |out: &str, which: usize| -> Vec<String> {
        let fixed = ["train", "--data", "events.csv", "--epochs", "3", "--set", "train.save-every=0", "--out", out];
        fixed.iter().chain(MODELS[which]).map(|&word| word.to_owned()).collect()
    };
    let mut seconds = [0; MODELS.len()];
    for (which, duration) in seconds.iter_mut().enumerate() {
        let start = Instant::now();
        let arguments = train(&format!("whole{which}"), which);
        json(home.path(), &arguments.iter().map(String::as_str).chain(["--json"]).collect::<Vec<_>>());
        *duration = u64::try_from(start.elapsed().as_millis()).expect("short");
    }
    let mut random = RandomStream::named(tries::seed(), "signals");
    let (mut n_stops, n_runs) = (0, tries::number(6));
    for index in 0..n_runs {
        let which = random.index(MODELS.len());
        let out = format!("run{index}");
        let mut arguments = train(&out, which);
        for _ in 0..=random.index(3) {
            let name = ["KILL", "INT", "TERM"][random.index(3)];
            let delay = random.index(usize::try_from(seconds[which]).expect("short").max(2)) as u64;
            stopped(home.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>(), name, delay);
            n_stops += 1;
            if home.path().join(&out).join("config.toml").exists() {
                arguments = ["train", "--resume", &out].map(str::to_owned).to_vec();
            }
        }
        json(home.path(), &arguments.iter().map(String::as_str).chain(["--json"]).collect::<Vec<_>>());
        assert_eq!(model(&out), model(&format!("whole{which}")), "{out} of {:?}", MODELS[which]);
        fs::remove_dir_all(home.path().join(&out)).expect("a folder");
    }
    let left: Vec<_> = fs::read_dir(home.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    tries::report(&format!("{n_stops} signals to training runs"), usize::try_from(n_runs).expect("few"));
}

#[test]
fn full_disk_is_an_error_and_not_a_panic() {
    let home = home();
    let program = env!("CARGO_BIN_EXE_hopedgn");
    // No file may grow beyond 4 blocks of 512 bytes; the ignored signal turns that into a failed write.
    let small = SMALL.join(" ");
    let script =
        format!("trap '' XFSZ; ulimit -f 4; exec {program} train --data events.csv --out run --epochs 1 {small}");
    let output = Command::new("sh").current_dir(home.path()).args(["-c", &script]).output().expect("sh");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("could not write") && !stderr.contains("panicked"), "{stderr}");
}
