//! `hopedgn experiment run`: every cell that is not done yet, some at a time.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use ctdg::dataset::{self, write_file};
use hopedgn::fmt::duration;
use hopedgn_experiments::experiment::{Evaluate, Experiment, Found, State, Step, reason};
use indicatif::ProgressBar;

use super::subprocess::{Running, listen};
use super::{Purpose, Run, report};
use crate::output::{Outcome, Output};
use crate::progress;

/// Events of the bundled data that a cell is tried on.
const N_SMALL: usize = 600;

pub(super) fn run(args: &Run, output: &Output) -> anyhow::Result<Outcome> {
    let experiment = args.files.read()?;
    let out = args.files.out(&experiment);
    let found = args.files.found(&experiment, &args.kept, Purpose::Work)?;
    std::fs::create_dir_all(out.join("logs")).with_context(|| format!("could not create {}", out.display()))?;
    let n_jobs = n_jobs(args, output)?;
    let small = args.files.smoke.then(|| small_data(&out)).transpose()?;
    let n_done = found.iter().filter(|one| one.is_done()).count();
    // Cells with the same settings, as where two sweeps meet, are one run.
    let mut todo: Vec<&Found> = Vec::new();
    for one in &found {
        let is_open = !matches!(one.state, State::Done | State::Missing(_) | State::Running);
        if is_open && !todo.iter().any(|other| other.cell.hash == one.cell.hash) {
            todo.push(one);
        }
    }
    output.remark(format_args!(
        "{}: {} cells, {n_done} done before, {} to run, {n_jobs} at a time; runs in {}",
        experiment.title(),
        found.len(),
        todo.len(),
        out.display()
    ));
    let missing = report::missing(&found);
    if !missing.is_empty() {
        output.remark(missing.trim_end());
    }
    let grid = Grid { args, output, out: &out, small: small.as_deref(), n_jobs };
    let was_stopped = grid.run(&todo)?;
    conclude(args, &experiment, was_stopped, output)
}

/// What came of it, looked up again from the folders.
fn conclude(args: &Run, experiment: &Experiment, was_stopped: bool, output: &Output) -> anyhow::Result<Outcome> {
    let found = args.files.found(experiment, &args.kept, Purpose::Show)?;
    output.answer(report::text(&found), &report::of_cells(&found))?;
    if was_stopped {
        let typed = format!("{}{}{}", args.files.typed(), args.kept.typed(), args.device.typed());
        output.remark(format_args!("stopped; everything is saved. Go on with: hopedgn experiment run {typed}"));
    }
    let all_done = found.iter().all(Found::is_done);
    if all_done {
        output.remark(format_args!(
            "see it with: hopedgn experiment report {}{}",
            args.files.typed(),
            args.kept.typed()
        ));
    }
    Ok(if all_done { Outcome::Done } else { Outcome::FellShort })
}

fn n_jobs(args: &Run, output: &Output) -> anyhow::Result<usize> {
    let n_jobs = args.jobs.unwrap_or(1);
    anyhow::ensure!((1..=256).contains(&n_jobs), "found --jobs {n_jobs}, expected 1 to 256");
    if n_jobs > 1 && args.device.open(output)?.is_gpu() {
        output.remark("on a GPU cells are trained one after the other; for --jobs, add --device cpu");
        return Ok(1);
    }
    Ok(n_jobs)
}

/// A file with the first of the bundled events, labelled.
fn small_data(out: &Path) -> anyhow::Result<PathBuf> {
    let stream = dataset::collegemsg()?;
    // Labels that tell whether the source sent an even number of messages before: something that can be learned.
    let mut text = String::from("src,dst,time,label\n");
    let mut sent = vec![0usize; stream.n_nodes()];
    for ((src, dst), time) in stream.src().iter().zip(stream.dst()).zip(stream.times()).take(N_SMALL) {
        let label = sent[src.index()] % 2;
        sent[src.index()] += 1;
        let _ = writeln!(text, "{},{},{time},{label}", src.0, dst.0);
    }
    let file = out.join("smoke.csv");
    write_file(&file, text)?;
    Ok(file)
}

/// A grid at work.
struct Grid<'a> {
    args: &'a Run,
    output: &'a Output,
    out: &'a Path,
    small: Option<&'a Path>,
    n_jobs: usize,
}

impl Grid<'_> {
    /// Runs all of `todo`; true if it was stopped before that.
    fn run(&self, todo: &[&Found]) -> anyhow::Result<bool> {
        let pressed = listen(self.output)?;
        let start = Instant::now();
        let bar = progress::pieces(self.output, todo.len() as u64);
        // All cells together, as far as those that are over tell.
        let mut whole = None;
        let mut waiting = todo.iter();
        let mut running: Vec<(Found, Running)> = Vec::new();
        let mut n_over = 0;
        loop {
            let n_pressed = pressed.load(Ordering::SeqCst);
            while n_pressed == 0 && running.len() < self.n_jobs {
                let Some(&one) = waiting.next() else { break };
                match self.start(one) {
                    Ok(child) => running.push((one.clone(), child)),
                    Err(error) => {
                        one.write_error(&format!("error: {error:#}\n"))?;
                        n_over += 1;
                        bar.suspend(|| self.output.remark(format_args!("{}: {error:#}", one.cell.name)));
                    }
                }
            }
            let mut place = 0;
            while place < running.len() {
                let (one, child) = &mut running[place];
                child.stop(n_pressed);
                let Some(status) = child.ended()? else {
                    place += 1;
                    continue;
                };
                let was_stopped = pressed.load(Ordering::SeqCst) > 0;
                let mut now = if status.success() { self.advanced(one) } else { Ok(None) };
                if let (Ok(Some(further)), false) = (&now, was_stopped)
                    && further.next_step().is_some()
                {
                    match self.start(further) {
                        Ok(mut next) => {
                            // The time of a cell is that of all its steps.
                            next.start = child.start;
                            running[place] = (further.clone(), next);
                            continue;
                        }
                        Err(error) => now = Err(error),
                    }
                }
                n_over += 1;
                let line = ended(one, &now, child, status, was_stopped)?;
                whole = Some(start.elapsed().as_secs_f64() / n_over as f64 * todo.len() as f64);
                bar.suspend(|| self.output.remark(format_args!("[{n_over}/{}] {line}", todo.len())));
                running.swap_remove(place);
            }
            let left = whole.map(|whole| whole - start.elapsed().as_secs_f64());
            show(&bar, n_over, left, &running);
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
        let data = match (self.small, self.args.files.place.find(&one.cell.data)) {
            (Some(small), _) => small.display().to_string(),
            (None, Ok(data)) => data,
            (None, Err(remedy)) => anyhow::bail!("the data are not there; get them with: {remedy}"),
        };
        let step = one.next_step().unwrap_or(Step::Train);
        let is_there = one.prepare()?;
        let folder = one.folder.display().to_string();
        let mut arguments: Vec<String> = match step {
            Step::Train if is_there => vec!["train".to_owned(), "--resume".to_owned(), folder],
            Step::Train => {
                let arguments = ["train".to_owned(), "--out".to_owned(), folder].into_iter();
                arguments.chain(one.cell.arguments()).collect()
            }
            Step::Evaluate => {
                let arguments = ["evaluate".to_owned(), folder, "--json".to_owned()].into_iter();
                arguments.chain(one.cell.evaluate.iter().flat_map(Evaluate::arguments)).collect()
            }
            Step::Classify => {
                let epochs = if self.small.is_some() { &["--epochs", "1"][..] } else { &[] };
                let arguments = ["classify".to_owned(), folder, "--json".to_owned()].into_iter();
                arguments.chain(epochs.iter().map(|&word| word.to_owned())).collect()
            }
        };
        arguments.extend(["--data".to_owned(), data]);
        arguments.extend(self.args.device.typed().split_whitespace().map(str::to_owned));
        let threads = (rayon::current_num_threads() / self.n_jobs).max(1);
        arguments.extend(["--threads".to_owned(), threads.to_string()]);
        let words = match step {
            Step::Train => "log",
            Step::Evaluate => "evaluate.log",
            Step::Classify => "classify.log",
        };
        let (answer, log) = (self.answer(one), self.log(one, words));
        Running::start(&arguments, (step == Step::Evaluate).then_some(&*answer), &log)
    }

    /// Where a run says what it does.
    fn log(&self, one: &Found, ending: &str) -> PathBuf {
        self.out.join("logs").join(format!("{}.{ending}", one.cell.name))
    }

    /// Where its answer goes until it is known to be whole.
    fn answer(&self, one: &Found) -> PathBuf {
        self.log(one, "json")
    }

    /// The cell after a step that went well; nothing if the step left nothing behind.
    fn advanced(&self, one: &Found) -> anyhow::Result<Option<Found>> {
        let step = one.next_step();
        if step == Some(Step::Evaluate) {
            let answer = self.answer(one);
            let text =
                std::fs::read_to_string(&answer).with_context(|| format!("could not read {}", answer.display()))?;
            one.keep_evaluation(&text)?;
            // Best effort: it lies in the run now.
            let _ = std::fs::remove_file(answer);
        }
        let now = one.again()?;
        Ok((now.next_step() != step).then_some(now))
    }
}

/// Writes down how a cell ended, and says it.
fn ended(
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
    let words = match now {
        Err(error) => format!("error: {error:#}"),
        _ => child.last_words(),
    };
    let words = match (words.is_empty(), status.success()) {
        (false, _) => words,
        (true, true) => "error: it ended well but left no result".to_owned(),
        (true, false) => format!("error: it ended with {status} and said nothing"),
    };
    one.write_error(&(words.clone() + "\n"))?;
    Ok(format!("{}: failed: {}", one.cell.name, reason(&words)))
}

fn show(bar: &ProgressBar, n_over: usize, left: Option<f64>, running: &[(Found, Running)]) {
    bar.set_position(n_over as u64);
    let left = left.map(|left| format!(", about {} left", duration(left)));
    bar.set_prefix(left.unwrap_or_default());
    let name = |one: &Found| match one.next_step() {
        Some(Step::Evaluate) => format!("{}: evaluating", one.cell.name),
        Some(Step::Classify) => format!("{}: classifying", one.cell.name),
        _ => one.cell.name.clone(),
    };
    let names: Vec<String> = running.iter().map(|(one, _)| name(one)).collect();
    bar.set_message(names.join(", "));
}
