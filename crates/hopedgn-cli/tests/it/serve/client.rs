//! A server in a process of its own, and a small client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// `hopedgn serve` on a free port; killed when it is dropped.
pub(crate) struct Served {
    child: Child,
    address: String,
    started: Value,
    stderr: PathBuf,
}

pub(crate) fn signal(process: u32, name: &str) {
    Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().expect("kill is there");
}

impl Served {
    pub(crate) fn start(home: &Path, arguments: &[&str]) -> Self {
        Self::start_with(home, arguments, None)
    }

    /// The same, with a limit on the size of the files it writes.
    pub(crate) fn start_with(home: &Path, arguments: &[&str], max_file: Option<u64>) -> Self {
        let stderr = home.join("stderr.log");
        let program = env!("CARGO_BIN_EXE_hopedgn");
        let mut command = match max_file {
            None => Command::new(program),
            Some(bytes) => {
                let mut limited = Command::new("sh");
                // Without the signal a write that exceeds the limit fails, as on a full disk.
                limited.args([
                    "-c",
                    "trap '' XFSZ; exec prlimit --fsize=\"$0\":unlimited \"$@\"",
                    &bytes.to_string(),
                    program,
                ]);
                limited
            }
        };
        let mut child = command
            .env("CUDA_VISIBLE_DEVICES", "-1")
            .current_dir(home)
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&stderr).expect("a file"))
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut document = String::new();
        for line in &mut lines {
            let line = line.expect("text");
            document += &line;
            if line == "}" {
                break;
            }
        }
        let started: Value = serde_json::from_str(&document)
            .unwrap_or_else(|_| panic!("it did not start: {}", fs::read_to_string(&stderr).unwrap_or_default()));
        let address = started["address"].as_str().expect("an address").trim_start_matches("http://").to_owned();
        Self { child, address, started, stderr }
    }

    /// What it printed when it had started.
    pub(crate) fn started(&self) -> &Value {
        &self.started
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed to stderr.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).expect("a file")
    }

    /// Waits until something holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < Duration::from_mins(1), "{what} never came: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to end, and returns its exit status.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        self.child.wait().expect("it ends").code()
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Status and body of an answer; a body that is no JSON is text.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        request(&self.address, method, path, headers, body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, answer) = self.request("GET", path, &[], "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.request("POST", path, &[], &body.to_string());
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}

/// Sends a request over a connection of its own. Status and body of the answer; a body that is no JSON is text.
pub(crate) fn request(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let lines: String = headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{lines}",
        body.len()
    );
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it is sent");
    let mut answer = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && answer.read_line(&mut head).expect("an answer") > 0 {}
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
    });
    // A driver of a browser keeps the connection, whatever it is asked.
    let mut body = Vec::new();
    answer.take(length.unwrap_or(u64::MAX)).read_to_end(&mut body).expect("a body");
    let body = &*String::from_utf8(body).expect("text");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())))
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
