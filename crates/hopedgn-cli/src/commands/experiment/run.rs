//! `hopedgn experiment run`: runs every cell that is not done yet, several at once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use ctdg::dataset::{self, write_file};
use hopedgn::ModelRegistry;
use hopedgn::fmt::duration;
use hopedgn_experiments::experiment::{Cell, Evaluate, Experiment, Found, State, Step, reason};

use super::subprocess::{Running, listen};
use super::{Lookup, Run, cluster, report};
use crate::commands::device::DeviceArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress::{self, Bar, Unit};

/// Events of the bundled data for `--smoke`.
const N_SMOKE_EVENTS: usize = 600;

pub(super) fn run(args: &Run, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let experiment = args.files.read(registry)?;
    if let Some(address) = &args.on {
        let was_stopped = cluster::run(args, address, output)?;
        return finish(args, &experiment, was_stopped, output);
    }
    let out = args.files.out(&experiment);
    let found = args.find_runs(&experiment, Lookup::Execute)?;
    std::fs::create_dir_all(out.join("logs")).with_context(|| format!("could not create {}", out.display()))?;
    let smoke_data = args.files.smoke.then(|| write_smoke_data(&out)).transpose()?;
    let n_done = found.iter().filter(|one| one.is_done()).count();
    // Cells with the same settings, as where two sweeps cross, share one run.
    let mut todo: Vec<&Found> = Vec::new();
    for one in &found {
        let is_open = !matches!(one.state, State::Done | State::Missing(_) | State::Running);
        if is_open && !todo.iter().any(|other| other.cell.hash == one.cell.hash) {
            todo.push(one);
        }
    }
    // Nothing is computed without a cell to run.
    let (device, is_gpu) = if todo.is_empty() { (args.device, false) } else { args.device.shared(output)? };
    let n_jobs = n_jobs(args, is_gpu, output)?;
    output.remark(format_args!(
        "{}: {}, {n_done} already done, {} to run, {n_jobs} at once; runs in {}",
        experiment.title(),
        count(found.len(), "cell"),
        todo.len(),
        out.display()
    ));
    let missing = report::missing_data(&found);
    if !missing.is_empty() {
        output.remark(missing.trim_end());
    }
    let grid = Grid { args, output, out: &out, smoke_data: smoke_data.as_deref(), device, n_jobs };
    let was_stopped = grid.run(&todo)?;
    finish(args, &experiment, was_stopped, output)
}

impl Run {
    /// The cells to run, those of `--cell` if there are any, with the run found for each.
    fn find_runs(&self, experiment: &Experiment, lookup: Lookup) -> anyhow::Result<Vec<Found>> {
        let is_known = |name: &String| experiment.cells().iter().any(|cell| cell.name == *name);
        if let Some(unknown) = self.cells.iter().find(|name| !is_known(name)) {
            anyhow::bail!(
                "found --cell {unknown}, expected a cell of the experiment; list them with: hopedgn experiment status {}",
                self.files.arguments()
            );
        }
        let is_wanted = |cell: &&Cell| self.cells.is_empty() || self.cells.contains(&cell.name);
        let cells: Vec<&Cell> = experiment.cells().iter().filter(is_wanted).collect();
        self.files.find_runs_of(experiment, &cells, &self.archive, lookup)
    }
}

/// Prints the state of all cells, read again from their folders.
fn finish(args: &Run, experiment: &Experiment, was_stopped: bool, output: &Output) -> anyhow::Result<Outcome> {
    let found = args.find_runs(experiment, Lookup::Display)?;
    output.answer(report::status_text(&found), &report::status_json(&found))?;
    if was_stopped {
        let on = args.on.as_ref().map(|on| format!(" --on {on}")).unwrap_or_default();
        let jobs = args.jobs.map(|jobs| format!(" --jobs {jobs}")).unwrap_or_default();
        let cells: Vec<String> = args.cells.iter().map(|name| format!(" --cell {name}")).collect();
        let arguments =
            [args.files.arguments(), args.archive.arguments(), args.device.typed(), on, jobs, cells.concat()].concat();
        output.remark(format_args!("stopped; everything is saved. Continue with: hopedgn experiment run {arguments}"));
    }
    let all_done = found.iter().all(Found::is_done);
    if all_done {
        output.remark(format_args!(
            "write the tables with: hopedgn experiment report {}{}",
            args.files.arguments(),
            args.archive.arguments()
        ));
    }
    Ok(if all_done { Outcome::Done } else { Outcome::FellShort })
}

fn n_jobs(args: &Run, is_gpu: bool, output: &Output) -> anyhow::Result<usize> {
    let n_jobs = args.jobs.unwrap_or(1);
    anyhow::ensure!((1..=256).contains(&n_jobs), "found --jobs {n_jobs}, expected 1 to 256");
    if n_jobs > 1 && is_gpu {
        output.remark("the cells share one GPU: their times do not measure speed, and algorithms that are tuned meanwhile may be slower ones");
    }
    Ok(n_jobs)
}

/// Writes the first bundled events with labels, for `--smoke`.
fn write_smoke_data(out: &Path) -> anyhow::Result<PathBuf> {
    let stream = dataset::collegemsg()?;
    // Label: the parity of the number of messages that the source sent before, which a model can learn.
    let mut text = String::from("src,dst,time,label\n");
    let mut sent = vec![0usize; stream.n_nodes()];
    for ((src, dst), time) in stream.src().iter().zip(stream.dst()).zip(stream.times()).take(N_SMOKE_EVENTS) {
        let label = sent[src.index()] % 2;
        sent[src.index()] += 1;
        let _ = writeln!(text, "{},{},{time},{label}", src.0, dst.0);
    }
    let file = out.join("smoke.csv");
    write_file(&file, text)?;
    Ok(file)
}

/// The cells of an experiment being run.
struct Grid<'a> {
    args: &'a Run,
    output: &'a Output,
    out: &'a Path,
    smoke_data: Option<&'a Path>,
    device: DeviceArgs,
    n_jobs: usize,
}

impl Grid<'_> {
    /// Runs all of `todo`; true if Ctrl-C stopped it.
    fn run(&self, todo: &[&Found]) -> anyhow::Result<bool> {
        let pressed = listen(self.output)?;
        let bar = progress::jobs(self.output, Unit::Things("cell", "cells"), todo.len() as u64);
        // Of the cells that ended.
        let mut seconds = 0.0;
        let mut waiting = todo.iter();
        let mut running: Vec<(Found, Running)> = Vec::new();
        let mut n_ended = 0;
        loop {
            let n_pressed = pressed.load(Ordering::SeqCst);
            while n_pressed == 0 && running.len() < self.n_jobs {
                let Some(&one) = waiting.next() else { break };
                match self.start(one) {
                    Ok(child) => running.push((one.clone(), child)),
                    Err(error) => {
                        one.write_error(&format!("error: {error:#}\n"))?;
                        n_ended += 1;
                        bar.suspend(|| self.output.remark(format_args!("{}: {error:#}", one.cell.name)));
                    }
                }
            }
            let mut index = 0;
            while index < running.len() {
                let (one, child) = &mut running[index];
                child.stop(n_pressed);
                let Some(status) = child.ended()? else {
                    index += 1;
                    continue;
                };
                let was_stopped = pressed.load(Ordering::SeqCst) > 0;
                let mut now = if status.success() { after_step(one) } else { Ok(None) };
                if let (Ok(Some(next)), false) = (&now, was_stopped)
                    && next.next_step().is_some()
                {
                    match self.start(next) {
                        Ok(mut process) => {
                            // The time of a cell includes all its steps.
                            process.start = child.start;
                            running[index] = (next.clone(), process);
                            continue;
                        }
                        Err(error) => now = Err(error),
                    }
                }
                n_ended += 1;
                let line = record_end(one, &now, child, status, was_stopped)?;
                seconds += child.start.elapsed().as_secs_f64();
                bar.suspend(|| self.output.remark(format_args!("[{n_ended}/{}] {line}", todo.len())));
                running.swap_remove(index);
            }
            let ran: Vec<f64> = running.iter().map(|(_, child)| child.start.elapsed().as_secs_f64()).collect();
            let left = (n_ended > 0).then(|| seconds_left(seconds / n_ended as f64, &ran, waiting.len(), self.n_jobs));
            show(&bar, n_ended, left, &running);
            if running.is_empty() && (n_pressed > 0 || waiting.len() == 0) {
                break;
            }
            sleep(Duration::from_millis(20));
        }
        bar.finish_and_clear();
        Ok(pressed.load(Ordering::SeqCst) > 0)
    }

    /// Starts the next step of a cell.
    fn start(&self, one: &Found) -> anyhow::Result<Running> {
        let data = match (self.smoke_data, self.args.files.data_dir.find(&one.cell.data)) {
            (Some(file), _) => file.display().to_string(),
            (None, Ok(data)) => data,
            (None, Err(remedy)) => anyhow::bail!("the dataset is missing; get it with: {remedy}"),
        };
        let step = one.next_step().unwrap_or(Step::Train);
        let can_resume = one.prepare()?;
        let folder = one.folder.display().to_string();
        let mut arguments: Vec<String> = match step {
            Step::Train if can_resume => vec!["train".to_owned(), "--resume".to_owned(), folder],
            Step::Train => {
                let arguments = ["train".to_owned(), "--out".to_owned(), folder].into_iter();
                arguments.chain(one.cell.arguments()).chain(self.read_arguments(one)?).collect()
            }
            Step::Evaluate => {
                let arguments = ["evaluate".to_owned(), folder].into_iter();
                arguments.chain(one.cell.evaluate.iter().flat_map(Evaluate::arguments)).collect()
            }
            Step::Classify => {
                let epochs = if self.smoke_data.is_some() { &["--epochs", "1"][..] } else { &[] };
                let arguments = ["classify".to_owned(), folder].into_iter();
                arguments.chain(epochs.iter().map(|&word| word.to_owned())).collect()
            }
        };
        arguments.extend(["--data".to_owned(), data]);
        arguments.extend(self.device.typed().split_whitespace().map(str::to_owned));
        let threads = (rayon::current_num_threads() / self.n_jobs).max(1);
        arguments.extend(["--threads".to_owned(), threads.to_string()]);
        let log_ending = match step {
            Step::Train => "log",
            Step::Evaluate => "evaluate.log",
            Step::Classify => "classify.log",
        };
        let log = self.out.join("logs").join(format!("{}.{log_ending}", one.cell.name));
        Running::start(&arguments, &log, self.output)
    }
}

impl Grid<'_> {
    /// `--config` with a file that says how the data of a cell is read, if the experiment does.
    fn read_arguments(&self, one: &Found) -> anyhow::Result<Vec<String>> {
        let Some(settings) = one.cell.read_settings()? else { return Ok(Vec::new()) };
        let file = self.out.join("logs").join(format!("{}.read.toml", one.cell.data));
        write_file(&file, settings)?;
        Ok(vec!["--config".to_owned(), file.display().to_string()])
    }
}

/// The cell after a successful step; nothing if the step left no result.
fn after_step(one: &Found) -> anyhow::Result<Option<Found>> {
    let now = one.again()?;
    Ok((now.next_step() != one.next_step()).then_some(now))
}

/// Records how a cell ended, and returns the line to print.
fn record_end(
    one: &Found,
    now: &anyhow::Result<Option<Found>>,
    child: &Running,
    status: ExitStatus,
    was_stopped: bool,
) -> anyhow::Result<String> {
    let took = duration(child.start.elapsed().as_secs_f64());
    if let Ok(Some(now)) = now
        && now.is_done()
        && let Some(summary) = now.summary()
    {
        let ap = summary.test.transductive.map_or(String::new(), |metrics| format!("AP {:.2}, ", 100.0 * metrics.ap));
        return Ok(format!("{}: {ap}{took}", one.cell.name));
    }
    if was_stopped {
        return Ok(format!("{}: stopped", one.cell.name));
    }
    let message = match now {
        Err(error) => format!("error: {error:#}"),
        _ => child.last_error(),
    };
    let message = match (message.is_empty(), status.success()) {
        (false, _) => message,
        (true, true) => "error: the process succeeded but left no result".to_owned(),
        (true, false) => format!("error: the process ended with {status} and printed nothing"),
    };
    let message = in_an_experiment(message, &one.cell.data);
    one.write_error(&(message.clone() + "\n"))?;
    Ok(format!("{}: failed: {}", one.cell.name, reason(&message)))
}

/// The error of a cell, with where its flags for reading a file stand in the file of the experiment.
fn in_an_experiment(message: String, data: &str) -> String {
    const FLAGS: [&str; 7] = ["--sort", "--src", "--time-unit", "--delimiter", "--ids", "--label", "--no-header"];
    if message.starts_with("error: ") && FLAGS.iter().any(|flag| message.contains(flag)) {
        return format!(
            "{}; in an experiment such flags stand as `sort = true` under [read.{data}]",
            message.trim_end()
        );
    }
    message
}

/// Seconds until all cells end, if each takes as long as those before did on average: cells that `ran` so long, and those that wait for one
/// of the jobs.
fn seconds_left(mean: f64, ran: &[f64], n_waiting: usize, n_jobs: usize) -> f64 {
    let of_running = ran.iter().map(|ran| (mean - ran).max(0.0));
    if n_waiting == 0 {
        return of_running.fold(0.0, f64::max);
    }
    (of_running.sum::<f64>() + mean * n_waiting as f64) / n_jobs as f64
}

fn show(bar: &Bar, n_ended: usize, left: Option<f64>, running: &[(Found, Running)]) {
    bar.set_estimate(left.map(|left| {
        if left > 0.0 {
            format!("about {} left", duration(left))
        } else {
            "these take longer than the cells before".to_owned()
        }
    }));
    let name = |one: &Found| match one.next_step() {
        Some(Step::Evaluate) => format!("{}: evaluating", one.cell.name),
        Some(Step::Classify) => format!("{}: classifying", one.cell.name),
        _ => one.cell.name.clone(),
    };
    let names: Vec<String> = running.iter().map(|(one, _)| name(one)).collect();
    bar.set_message(names.join(", "));
    bar.set_position(n_ended as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_counts_what_jobs_share_and_nothing_of_cells_that_take_longer_than_the_others() {
        let equal = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        equal(seconds_left(10.0, &[4.0, 10.0], 0, 2), 6.0);
        equal(seconds_left(10.0, &[40.0], 0, 2), 0.0);
        equal(seconds_left(10.0, &[5.0, 40.0], 3, 2), 17.5);
    }

    #[test]
    fn flags_of_a_failed_cell_are_translated_to_keys_of_the_file() {
        let failed = "error: a.csv, line 3: found the time 2 after 3; sort the file, or let --sort do it".to_owned();
        assert!(
            in_an_experiment(failed, "a")
                .ends_with("; in an experiment such flags stand as `sort = true` under [read.a]")
        );
        let other = "error: no GPU can be used: no driver; compute with --device cpu";
        assert_eq!(in_an_experiment(other.to_owned(), "a"), other);
    }
}
