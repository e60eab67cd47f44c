//! `hopedgn serve`: a live model that takes in events and answers over HTTP.

mod logging;
mod quick;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use ctdg::dataset::log;
use hopedgn::fmt::grouped;
use hopedgn::run::RunFolder;
use hopedgn::{Events, ModelRegistry};
use hopedgn_serve::{Limits, ServeOptions, Server, StartReport, TlsFiles, Tokens};
use serde_json::json;

use crate::commands::data_args::ReadArgs;
use crate::commands::device::DeviceArgs;
use crate::commands::run_args::load_events;
use crate::output::{Outcome, Output};
use crate::plural::count;

/// Serve a trained model: take in events as they happen, durably, and answer over HTTP
///
/// Events are acknowledged when they are on disk, in the log, which begins with the data of the run. Every answer equals that of `score`
/// or `recommend` on a file of the events so far. Without a run, `--data` trains a quick one first.
///
/// SIGTERM and Ctrl-C finish what was begun and end; SIGHUP loads the run again. The log is a dataset: `hopedgn train --data DIR` reads it,
/// also while the server runs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn serve runs/mine
  hopedgn serve --data events.csv
  hopedgn serve runs/mine --listen 0.0.0.0:8080 --write-token-file tokens.txt
  hopedgn serve runs/mine --tls-cert cert.pem --tls-key key.pem --lateness 60
  curl -X POST localhost:8080/v1/events -d '[{\"src\": 42, \"dst\": 77, \"time\": 1700000000}]'
  curl -X POST localhost:8080/v1/score -d '{\"pairs\": [{\"src\": 42, \"dst\": 77}]}'
  curl 'localhost:8080/v1/recommend?src=42&k=3'")]
pub(crate) struct Serve {
    /// The run folder [default: the one in the folder of the log, trained first if there is none]
    #[arg(index = 1)]
    run: Option<PathBuf>,
    /// The events that a new log begins with: a bundled or fetched dataset, or a file [default: the data of the run]
    #[arg(long, value_name = "D")]
    data: Option<String>,
    /// The folder of the log [default: live in the run folder, or NAME-live]
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
    /// Where to listen; another address than that of this machine needs tokens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Hold events back so long, in units of time of the data, and put late ones in order, instead of refusing them
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = parse_seconds)]
    lateness: f64,
    /// Keep every whole event of a damaged log, and go on without the others
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    bounds: Bounds,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    from: ReadArgs,
}

/// Who may do what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
struct Access {
    /// Bearer tokens that may ask, one a line
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,
    /// Bearer tokens that may also send events and load models, one a line
    #[arg(long, value_name = "FILE")]
    write_token_file: Option<PathBuf>,
    /// Encrypt connections with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// Bounds on what clients may ask for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct Bounds {
    /// Bytes of a request
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body_bytes)]
    max_body: usize,
    /// Events of a request
    #[arg(long, value_name = "N", default_value_t = Limits::default().events)]
    max_events: usize,
    /// Pairs of a request
    #[arg(long, value_name = "N", default_value_t = Limits::default().pairs)]
    max_pairs: usize,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// Seconds for a request
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = parse_seconds)]
    timeout: f64,
    /// Seconds that requests may take to finish when the server stops
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = parse_seconds)]
    grace: f64,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| "expected a number of at least 0".to_owned())
}

impl Serve {
    /// The run folder and the folder of the log.
    fn folders(&self) -> anyhow::Result<(PathBuf, PathBuf)> {
        match (&self.run, &self.log, &self.data) {
            (Some(run), log, _) => Ok((run.clone(), log.clone().unwrap_or_else(|| run.join("live")))),
            (None, Some(log), _) => Ok((log.join("run"), log.clone())),
            (None, None, Some(data)) => {
                let log = PathBuf::from(format!("{}-live", hopedgn::config::folder_stem(data)));
                Ok((log.join("run"), log))
            }
            (None, None, None) => anyhow::bail!(
                "found neither a run nor data, expected one of them; `hopedgn serve RUN`, or `hopedgn serve --data events.csv` to train one"
            ),
        }
    }

    fn options(
        &self,
        run: &Path,
        folder: &Path,
        registry: &ModelRegistry,
        output: &Output,
    ) -> anyhow::Result<ServeOptions> {
        let config = RunFolder::open(run)?.config(registry)?;
        let tls = self.access.tls_cert.clone().zip(self.access.tls_key.clone());
        let limits = Limits {
            body_bytes: self.bounds.max_body,
            events: self.bounds.max_events,
            pairs: self.bounds.max_pairs,
            connections: self.bounds.max_connections,
            request: Duration::from_secs_f64(self.bounds.timeout),
            ..Limits::default()
        };
        Ok(ServeOptions {
            address: self.listen,
            lateness: self.lateness,
            tokens: Tokens {
                read: tokens(self.access.read_token_file.as_deref())?,
                write: tokens(self.access.write_token_file.as_deref())?,
            },
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            limits,
            registry: registry.clone(),
            device: self.device.open_for(&config.model, output)?,
            grace: Duration::from_secs_f64(self.bounds.grace),
            ..ServeOptions::new(run, folder)
        })
    }
}

/// The tokens in a file, one a line.
fn tokens(file: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
    let tokens: Vec<String> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    anyhow::ensure!(!tokens.is_empty(), "{}: found no token, expected one a line", file.display());
    let short = tokens.iter().position(|token| token.len() < 16);
    if let Some(at) = short {
        anyhow::bail!(
            "{}: found a token of less than 16 characters as number {}, expected longer ones",
            file.display(),
            at + 1
        );
    }
    Ok(tokens)
}

pub(crate) fn run(args: &Serve, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let (run, folder) = args.folders()?;
    let base = args.base(&run, &folder, registry, output)?;
    if args.repair && log::is_log(&folder) {
        repair(&folder, output)?;
    }
    logging::start(output);
    let options = args.options(&run, &folder, registry, output)?;
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let server = Server::start(options, base.as_deref()).map_err(plain)?;
    announce(&server, scheme, &folder, output)?;
    server.run().map_err(plain)?;
    Ok(Outcome::Done)
}

impl Serve {
    /// The events that a new log begins with; none if there is a log. Trains a run if there is none.
    fn base(
        &self,
        run: &Path,
        folder: &Path,
        registry: &ModelRegistry,
        output: &Output,
    ) -> anyhow::Result<Option<Events>> {
        let has_log = log::is_log(folder);
        if has_log && let Some(data) = &self.data {
            output.remark(format_args!("{data} is not read: {} is a log already", folder.display()));
        }
        if self.run.is_none() && !run.join("config.toml").is_file() {
            let data = if has_log {
                folder.to_string_lossy().into_owned()
            } else {
                self.data
                    .clone()
                    .with_context(|| format!("{}: found no log and no run, expected --data", folder.display()))?
            };
            let events = self.from.load(&data, output)?;
            quick::train(&events, run, self.device, registry, output)?;
            return Ok((!has_log).then_some(events));
        }
        if has_log {
            return Ok(None);
        }
        let manifest = RunFolder::open(run)?.manifest()?;
        load_events(run, &manifest, self.data.as_deref(), &self.from, output).map(Some)
    }
}

fn repair(folder: &Path, output: &Output) -> anyhow::Result<()> {
    let Some(repaired) = log::repair(folder)? else {
        output.remark("the log has no damage: nothing to repair");
        return Ok(());
    };
    for damage in &repaired.damage {
        let (bytes, events) = (&damage.bytes, &damage.events);
        let n = usize::try_from(events.end - events.start).unwrap_or(usize::MAX);
        output.remark(format_args!(
            "bytes {} to {} were damaged: {} lost, from number {} on",
            bytes.start,
            bytes.end,
            count(n, "event"),
            events.start
        ));
    }
    output.remark(format_args!("the damaged log is kept as {}", repaired.kept_as.display()));
    Ok(())
}

/// Says where the server listens, and what it found.
fn announce(server: &Server, scheme: &str, folder: &Path, output: &Output) -> anyhow::Result<()> {
    let StartReport { model, n_events, n_nodes, n_cut, mended, .. } = server.report();
    if *n_cut > 0 {
        output.remark(format_args!(
            "cut off {} of an append that had not been acknowledged",
            count(usize::try_from(*n_cut)?, "byte")
        ));
    }
    for what in mended {
        output.remark(format_args!("mended {what}"));
    }
    let address = format!("{scheme}://{}", server.address());
    let text = format!(
        "serving {model} on {address}: {} events of {} nodes, log in {}\n",
        grouped(*n_events),
        grouped(*n_nodes),
        folder.display()
    );
    let json = json!({ "address": address, "model": model, "events": n_events, "nodes": n_nodes, "log": folder.display().to_string() });
    output.answer(text, &json)
}

/// The error below, so that its remedy is found.
fn plain(error: hopedgn_serve::Error) -> anyhow::Error {
    match error {
        hopedgn_serve::Error::Hopedgn(error) => error.into(),
        error @ hopedgn_serve::Error::OpenToAll { .. } => {
            anyhow::anyhow!(
                "{error}; name files of tokens with --read-token-file and --write-token-file, or --listen on 127.0.0.1"
            )
        }
        error => error.into(),
    }
}
