//! Accepts connections: bounded in number and in time, encrypted where there is a certificate.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::options::Limits;
use crate::patient::Patient;

/// Bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Headers of a request.
const MAX_HEADERS: usize = 64;

/// Serves `router` on `listener` until `stop` is set, then lets requests finish for at most `grace`.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
    grace: Duration,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS);
    let (http, graceful) = (Arc::new(http), GracefulShutdown::new());
    let slots = Arc::new(Semaphore::new(limits.connections.max(1)));
    loop {
        let slot = tokio::select! {
            slot = Arc::clone(&slots).acquire_owned() => slot,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok(slot) = slot else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, say: others will close theirs.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        metrics::counter!("hopedgn_connections_total").increment(1);
        let service = TowerToHyperService::new(router.clone());
        let (http, tls, watcher) = (Arc::clone(&http), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            let stream = Patient::new(stream, limits.request);
            // Errors are those of the client: it went away, or sent what is no request.
            match tls {
                None => {
                    let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
                }
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(limits.head, tls.accept(stream)).await {
                        let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
                    }
                }
            }
            drop(slot);
        });
    }
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were cut off after {} s", grace.as_secs_f64());
    }
}

/// Binds the address.
pub(crate) async fn bind(address: std::net::SocketAddr) -> crate::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|source| crate::Error::io("listen on", address, source))
}
