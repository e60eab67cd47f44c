//! A small trained run, a server of it on a free port, and a plain HTTP client.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use hopedgn::{Events, LinkPredictor, ModelName};
use hopedgn_serve::{ServeOptions, Server};
use tempfile::TempDir;

/// Twenty people, each of whom writes to the next one, or to the one after that, again and again.
pub(crate) fn events() -> Events {
    let message = |i: u32| ((i % 20).to_string(), ((i + 1 + i % 3 / 2) % 20).to_string(), f64::from(i));
    Events::from_tuples((0..200).map(message)).unwrap()
}

/// A run trained on [`events`], and room for the log of a server; both are removed at the end.
pub(crate) struct TestRun {
    folder: TempDir,
}

impl TestRun {
    /// Trains for an epoch with settings such as `train.objective=intensity`.
    pub(crate) fn train(settings: &[&str]) -> Self {
        let run = Self { folder: tempfile::tempdir().unwrap() };
        let builder = LinkPredictor::builder().model(ModelName::Stats).epochs(1).run_folder(run.run_folder());
        let builder = settings.iter().fold(builder, |builder, setting| builder.set(*setting));
        builder.fit(&events()).unwrap();
        run
    }

    /// The run folder; a server calls its model `small`.
    pub(crate) fn run_folder(&self) -> PathBuf {
        self.folder.path().join("small")
    }

    /// A server of the run on a free port of this machine.
    pub(crate) fn options(&self) -> ServeOptions {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        ServeOptions { address, ..ServeOptions::new(self.run_folder(), self.folder.path().join("log")) }
    }

    /// The same model on the events of training, without a server.
    pub(crate) fn predictor(&self) -> LinkPredictor {
        LinkPredictor::load(self.run_folder(), &events()).unwrap()
    }
}

/// A running server; it ends when it is dropped.
pub(crate) struct TestServer {
    server: Server,
}

/// Starts a server. A log that does not exist yet begins with [`events`].
pub(crate) fn start(options: ServeOptions) -> TestServer {
    TestServer { server: Server::start(options, Some(&events())).unwrap() }
}

impl TestServer {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

/// Headers of an answer, their names in lower case.
pub(crate) type Headers = Vec<(String, String)>;

/// Sends a request on a connection of its own; returns the status, the headers and the body of the answer.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, Headers, Vec<u8>) {
    let lines: String = headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
    let n = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{lines}Content-Length: {n}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();

    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
    let head = str::from_utf8(&answer[..end]).unwrap();
    let (status, head) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let headers: Headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let body = answer.split_off(end + 4);
    let length = header(&headers, "content-length").map(|length| length.parse().unwrap());
    assert_eq!(length.unwrap_or(body.len()), body.len(), "the whole body came, in one piece");
    (status, headers, body)
}

/// The value of a header.
pub(crate) fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
}
