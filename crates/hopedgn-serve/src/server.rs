//! Starts a server, and ends it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use ctdg::dataset::log::{self, EventLog, LogRequest};
use ctdg::event::EventStream;
use ctdg::live::LiveStore;
use hopedgn::Events;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::engine::{Engine, LoadedModel};
use crate::http::{self, App};
use crate::intake::{Intake, Seen, Writer};
use crate::lanes::{AnswerLane, ScoreLane};
use crate::{Error, Result, ServeOptions, listen, memory_file, tls};

/// A running server. It ends when [`Server::stop`] is called, or when it is dropped.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    address: SocketAddr,
    app: Option<Arc<App>>,
    stop: watch::Sender<bool>,
    serving: Option<tokio::task::JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
    report: StartReport,
}

/// What a server found when it started.
#[derive(Debug, Clone, Default)]
pub struct StartReport {
    /// The name of the model.
    pub model: String,
    /// Events of the log.
    pub n_events: usize,
    /// Nodes of the log.
    pub n_nodes: usize,
    /// Bytes of an unfinished append that were cut off.
    pub n_cut: u64,
    /// Damage that changed nothing and was mended.
    pub mended: Vec<String>,
    /// Events that the node memory had seen before.
    pub n_remembered: Option<usize>,
}

impl Server {
    /// Opens the log, loads the model and listens. If there is no log yet, it begins with `base`.
    pub fn start(options: ServeOptions, base: Option<&EventStream>) -> Result<Self> {
        let is_open = options.tokens.read.is_empty() && options.tokens.write.is_empty();
        if is_open && !options.address.ip().is_loopback() {
            return Err(Error::OpenToAll { address: options.address });
        }
        let acceptor = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let metrics = recorder();
        let (engine, writer, report) = open(&options, base)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("http").build();
        let runtime = runtime.map_err(|source| Error::io("start", "threads", source))?;
        let listener = runtime.block_on(listen::bind(options.address))?;
        let address = listener.local_addr().map_err(|source| Error::io("listen on", options.address, source))?;

        let threads = |source| Error::io("start", "threads", source);
        let (intake, writer) = Intake::start(writer).map_err(threads)?;
        let app = Arc::new(App {
            scores: ScoreLane::start(Arc::clone(&engine), options.limits.waiting_scores).map_err(threads)?,
            answers: AnswerLane::start(Arc::clone(&engine), options.limits.waiting_answers).map_err(threads)?,
            run: Mutex::new(options.run.clone()),
            started: Instant::now(),
            engine,
            intake,
            options,
            metrics,
        });
        let (stop, stopped) = watch::channel(false);
        let (router, limits, grace) = (http::router(Arc::clone(&app)), app.options.limits, app.options.grace);
        let serving = runtime.spawn(listen::serve(listener, acceptor, router, limits, stopped, grace));
        Ok(Self {
            runtime: Some(runtime),
            app: Some(app),
            serving: Some(serving),
            writer: Some(writer),
            address,
            stop,
            report,
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was found at the start.
    #[must_use]
    pub fn report(&self) -> &StartReport {
        &self.report
    }

    /// Loads the run of the model again and answers with it from then on.
    pub fn reload(&self) {
        let Some(app) = &self.app else { return };
        let run = app.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(failure) = http::swap(app, &run) {
            tracing::error!(run = %run.display(), "{}", failure.message());
        }
    }

    /// Serves until the process is asked to end, by Ctrl-C or SIGTERM; SIGHUP loads the run again.
    pub fn run(mut self) -> Result<()> {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(signals(&self)).map_err(|source| Error::io("wait for", "signals", source))?;
        }
        self.end()
    }

    /// Finishes requests, writes what is to be kept, and ends.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let (Some(runtime), Some(app)) = (self.runtime.take(), self.app.take()) else { return Ok(()) };
        app.engine.state().set_stopping();
        let _ = self.stop.send(true);
        if let Some(serving) = self.serving.take() {
            let _ = runtime.block_on(serving);
        }
        let (engine, state) = (Arc::clone(&app.engine), app.options.log.clone());
        drop(app);
        // Drops requests that were cut off, and with them the last handles of the threads.
        runtime.shutdown_timeout(std::time::Duration::from_secs(1));
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        memory_file::save(&engine, &state)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "not everything was kept");
        }
    }
}

/// Waits for a signal to end; reloads at others.
#[cfg(unix)]
async fn signals(server: &Server) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    loop {
        tokio::select! {
            _ = term.recv() => break,
            interrupted = tokio::signal::ctrl_c() => return interrupted,
            _ = hangup.recv() => tokio::task::block_in_place(|| server.reload()),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
async fn signals(_: &Server) -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Metrics are those of the process: a second server adds to the same.
fn recorder() -> PrometheusHandle {
    static HANDLE: std::sync::OnceLock<PrometheusHandle> = std::sync::OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
            let builder = PrometheusBuilder::new().set_buckets(&buckets).unwrap_or_else(|_| PrometheusBuilder::new());
            let recorder = builder.build_recorder();
            let handle = recorder.handle();
            // Another recorder of the process stays.
            let _ = metrics::set_global_recorder(recorder);
            handle
        })
        .clone()
}

/// Opens the log and loads the model over its events.
fn open(options: &ServeOptions, base: Option<&EventStream>) -> Result<(Arc<Engine>, Writer, StartReport)> {
    if !log::is_log(&options.log) {
        let empty = EventStream::from_events([])?;
        drop(EventLog::create(&options.log, base.unwrap_or(&empty))?);
    }
    let mut seen = Seen::new(options.remembered_keys);
    let mut keep = |sequence: u64, request: LogRequest| {
        seen.remember(sequence, &request);
        Ok(())
    };
    let (log, opened) = EventLog::open(&options.log, &mut keep)?;
    let stream = log::read(&options.log).or_else(|error| match error.problem() {
        ctdg::Problem::Empty => EventStream::from_events([]),
        _ => Err(error),
    })?;
    // Later events may still come before those of the last moments, but not before those that the log began with.
    let watermark = stream.times().last().map_or(f64::INFINITY, |newest| newest - options.lateness);
    let n_base = usize::try_from(log.n_base()).unwrap_or(usize::MAX);
    let n_ready = ctdg::event::up_to(stream.times(), watermark).n_events().max(n_base);
    let waiting = held(&stream, n_ready);
    let ready = if n_ready < stream.len() { stream.prefix(n_ready)?.stream } else { stream };

    let events = Events::from_stream("log", ready);
    let model = LoadedModel::load(&options.run, &events, options)?;
    // With statistics, whatever the model reads: another one may take its place, and reasons state them.
    let store = LiveStore::new(&events, true)?;
    let mut report = StartReport {
        model: model.name.clone(),
        n_events: events.len() + waiting.len(),
        n_nodes: store.n_nodes(),
        n_cut: opened.n_cut,
        mended: opened.mended,
        n_remembered: None,
    };
    let snapshot = store.snapshot();
    report.n_remembered = memory_file::load(&model, &Arc::new(store.snapshot()), &options.log);
    let engine = Arc::new(Engine::new(model, snapshot));
    let mut writer = Writer::new(log, store, Arc::clone(&engine), seen, options);
    for event in waiting {
        writer.hold(event);
    }
    Ok((engine, writer, report))
}

/// The events of `stream` from number `n_ready` on.
fn held(stream: &EventStream, n_ready: usize) -> Vec<log::LogEvent> {
    let name = |node| stream.names().name(node);
    let event = |id: ctdg::event::EventId| {
        let event = stream.event(id);
        let features = stream.edge_features().map_or_else(Vec::new, |features| features.row(id.index()).to_vec());
        let (src, dst) = (name(event.src), name(event.dst));
        log::LogEvent { src, dst, time: event.time, label: event.label, features, id: None }
    };
    stream.ids().skip(n_ready).map(event).collect()
}
