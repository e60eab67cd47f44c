//! A blocking HTTP/1.1 client that keeps its connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Bytes of an answer's head.
const MAX_HEAD: usize = 64 << 10;

/// A connection to a server, kept open between requests.
///
/// ```no_run
/// use hopedgn_serve::bench::{Client, get};
///
/// let mut client = Client::connect("127.0.0.1:8080".parse()?)?;
/// assert_eq!(client.ask(&get("/healthz"))?.status, 200);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    /// What was received and not yet read.
    received: Vec<u8>,
    /// Bytes of it that the last answer took.
    taken: usize,
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// The body as JSON; null if it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(self.body).unwrap_or_default()
    }

    /// Status and the beginning of the body, for messages.
    #[must_use]
    pub fn excerpt(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(300)]);
        format!("status {}: {}", self.status, body.trim())
    }
}

/// The bytes of a request without a body.
#[must_use]
pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

/// The bytes of a request with a JSON body, and perhaps a key that tells its repetition.
#[must_use]
pub fn post(path: &str, key: Option<&str>, body: &str) -> Vec<u8> {
    let key = key.map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n"));
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{key}");
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl Client {
    /// Connects to the server at `address`.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, received: Vec::new(), taken: 0 })
    }

    /// Sends the bytes of a request, as [`get`] and [`post`] make them, and waits for the answer.
    pub fn ask(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        self.received.drain(..self.taken);
        self.taken = 0;
        self.stream.write_all(request)?;
        let end_of_head = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.received.len() > MAX_HEAD {
                return Err(io::Error::other("found an answer with an endless head"));
            }
            self.receive()?;
        };
        let head = String::from_utf8_lossy(&self.received[..end_of_head]).into_owned();
        let (status, length) =
            parse_head(&head).ok_or_else(|| io::Error::other(format!("found the answer {head:?}")))?;
        while self.received.len() < end_of_head + length {
            self.receive()?;
        }
        self.taken = end_of_head + length;
        Ok(Answer { status, body: &self.received[end_of_head..self.taken] })
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                self.received.extend(&buffer[..n]);
                Ok(())
            }
        }
    }
}

/// Status and length of the body. The server states the length of every answer.
fn parse_head(head: &str) -> Option<(u16, usize)> {
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value.trim())
    });
    Some((status, length?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn answers_that_arrive_in_pieces_or_together_are_told_from_each_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 1000];
            let n = stream.read(&mut buffer).unwrap();
            for piece in [
                "HTTP/1.1 200 OK\r\nContent-Le",
                "ngth: 3\r\n\r\na",
                "bcHTTP/1.1 429 Busy\r\ncontent-length: 0\r\n\r\n",
            ] {
                stream.write_all(piece.as_bytes()).unwrap();
                stream.flush().unwrap();
            }
            let _ = stream.read(&mut buffer[n..]);
            n
        });
        let mut client = Client::connect(address).unwrap();
        let request = get("/x");
        let answer = client.ask(&request).unwrap();
        assert_eq!((answer.status, answer.body), (200, &b"abc"[..]));
        assert_eq!(client.ask(&request).unwrap().status, 429);
        drop(client);
        assert_eq!(server.join().unwrap(), request.len());
    }

    #[test]
    fn a_body_is_sent_with_its_length_in_bytes() {
        let text = String::from_utf8(post("/v1/events", Some("k1"), "é")).unwrap();
        assert!(
            text.contains("\r\nidempotency-key: k1\r\n") && text.ends_with("\r\ncontent-length: 2\r\n\r\né"),
            "{text}"
        );
    }
}
