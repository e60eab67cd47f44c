//! Several processes that train together, named by the environment: killed, stopped, missing.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::train::{home, with_small};

/// Starts one of `n_ranks` processes of a training of some seconds.
fn start(home: &Path, rank: usize, n_ranks: usize, port: u16, variables: &[(&str, &str)]) -> Child {
    let arguments =
        ["train", "--data", "events.csv", "--out", "together", "--epochs", "6", "--set", "train.save-every=0"];
    Command::new(env!("CARGO_BIN_EXE_hopedgn"))
        .current_dir(home)
        .args(with_small(&arguments))
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", n_ranks.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .env("HOPEDGN_SILENCE", "2")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn free_port() -> u16 {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    taken.local_addr().expect("it has an address").port()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    status.expect("kill is there");
}

fn ended(child: Child) -> Output {
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn ranks_that_are_killed_or_stopped_are_replaced_and_the_weights_are_those_of_one_process() {
    let home = home();
    let home = home.path();
    let alone = ["train", "--data", "events.csv", "--out", "alone", "--epochs", "6", "--set", "train.save-every=0"];
    let alone = Command::new(env!("CARGO_BIN_EXE_hopedgn")).current_dir(home).args(with_small(&alone)).status();
    assert!(alone.expect("it starts").success());
    let model = |out: &str| fs::read(home.join(out).join("model.safetensors")).expect("a model");
    // Rank 0 has the folder and the rendezvous; a stopped process is silent, but its connections stay open.
    for (victim, how) in [(1, "KILL"), (0, "KILL"), (1, "STOP")] {
        let port = free_port();
        let start = |rank| start(home, rank, 2, port, &[]);
        let mut ranks: Vec<Child> = (0..2).map(start).collect();
        while !home.join("together/state.safetensors").exists() {
            sleep(Duration::from_millis(2));
        }
        signal(&ranks[victim], how);
        if how == "STOP" {
            sleep(Duration::from_secs(3));
            signal(&ranks[victim], "KILL");
        }
        // It may have ended before the signal; then the same command ends at once, with the same result.
        let dead = std::mem::replace(&mut ranks[victim], start(victim));
        let survived = dead.wait_with_output().expect("it ends").status.success();
        if survived {
            for rank in ranks {
                signal(&rank, "KILL");
                drop(rank.wait_with_output());
            }
        } else {
            let outputs: Vec<Output> = ranks.into_iter().map(ended).collect();
            assert!(String::from_utf8_lossy(&outputs[0].stdout).contains("report.html"), "rank 0 prints the table");
            assert!(outputs[1].stdout.is_empty(), "the others print nothing");
            assert_eq!(model("together"), model("alone"), "{how} of rank {victim}");
        }
        fs::remove_dir_all(home.join("together")).expect("it is there");
    }
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let home = home();
    let child = start(home.path(), 1, 3, free_port(), &[("HOPEDGN_PATIENCE", "1")]);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no process group: rank 1 found no process at 127.0.0.1:"), "{stderr}");
    let child = start(home.path(), 0, 2, free_port(), &[("HOPEDGN_PATIENCE", "2")]);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("found no rank 1 at 127.0.0.1:"), "{stderr}");
}

#[test]
fn variables_that_are_missing_are_named() {
    let home = home();
    let child = start(home.path(), 1, 2, 1, &[("MASTER_PORT", "")]);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("found WORLD_SIZE but no MASTER_PORT"), "{stderr}");
}
