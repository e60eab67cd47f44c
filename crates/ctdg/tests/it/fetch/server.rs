//! Local HTTP server with scripted responses; records the requests.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A recorded request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) path: String,
    /// How many requests for this path came before.
    pub(super) nth: usize,
    pub(super) range: Option<String>,
    pub(super) if_range: Option<String>,
}

impl Request {
    /// The offset of `Range: bytes=N-`.
    pub(super) fn from(&self) -> Option<usize> {
        self.range.as_ref()?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// A response.
#[derive(Debug, Clone, Default)]
pub(super) struct Response {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    ending: Ending,
}

/// What happens after the body.
#[derive(Debug, Clone, Copy, Default)]
enum Ending {
    /// The whole body was sent.
    #[default]
    Whole,
    /// The same, without a content length.
    Unannounced,
    /// The connection closes after this many bytes of it.
    Cut(usize),
    /// After this many bytes, nothing until the client disconnects.
    Silence(usize),
}

impl Response {
    pub(super) fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// The whole file, for any request.
    pub(super) fn whole(body: &[u8]) -> Self {
        Self { status: 200, body: body.to_vec(), ..Self::default() }
    }

    /// The file with the entity tag `etag`, or the requested range of it.
    pub(super) fn file(body: &[u8], etag: &str, request: &Request) -> Self {
        let same = request.if_range.as_deref().is_none_or(|version| version == etag);
        let answer = match request.from().filter(|_| same) {
            None => Self::whole(body),
            Some(from) if from >= body.len() => {
                Self::status(416).header("Content-Range", format!("bytes */{}", body.len()))
            }
            Some(from) => Self { status: 206, body: body[from..].to_vec(), ..Self::default() }
                .header("Content-Range", format!("bytes {from}-{}/{}", body.len() - 1, body.len())),
        };
        answer.header("ETag", etag.to_owned())
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn unannounced(self) -> Self {
        Self { ending: Ending::Unannounced, ..self }
    }

    pub(super) fn cut_after(self, bytes: usize) -> Self {
        Self { ending: Ending::Cut(bytes), ..self }
    }

    pub(super) fn silent_after(self, bytes: usize) -> Self {
        Self { ending: Ending::Silence(bytes), ..self }
    }
}

/// Listens until dropped.
pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(answer: impl Fn(&Request) -> Response + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stopping = Arc::new(AtomicBool::new(false));
        let thread = {
            let (requests, stopping) = (requests.clone(), stopping.clone());
            std::thread::spawn(move || {
                let mut seen = HashMap::new();
                for stream in listener.incoming() {
                    if stopping.load(Ordering::SeqCst) {
                        break;
                    }
                    // Clients may disconnect early.
                    let _ = serve(&stream.unwrap(), &mut seen, &requests, &answer);
                }
            })
        };
        Self { address, requests, stopping, thread: Some(thread) }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut stream: &TcpStream,
    seen: &mut HashMap<String, usize>,
    requests: &Mutex<Vec<Request>>,
    answer: &impl Fn(&Request) -> Response,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let nth = seen.entry(path.clone()).or_insert(0);
    let request = Request { path, nth: *nth, range: headers.remove("range"), if_range: headers.remove("if-range") };
    *nth += 1;
    requests.lock().unwrap().push(request.clone());

    let Response { status, headers, body, ending } = answer(&request);
    write!(stream, "HTTP/1.1 {status} X\r\nConnection: close\r\n")?;
    if !matches!(ending, Ending::Unannounced) {
        write!(stream, "Content-Length: {}\r\n", body.len())?;
    }
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "\r\n")?;
    match ending {
        Ending::Whole | Ending::Unannounced => stream.write_all(&body)?,
        Ending::Cut(bytes) => stream.write_all(&body[..bytes])?,
        Ending::Silence(bytes) => {
            stream.write_all(&body[..bytes])?;
            let _ = stream.read(&mut [0])?;
        }
    }
    Ok(())
}
