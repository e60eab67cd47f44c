//! `hopedgn serve` against clients that send what is no request: it answers or closes, and stays as it was.

mod malformed;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ctdg::random::RandomStream;
use hopedgn_serve::bench::{ServerProcess, get};
use serde_json::Value;

use crate::train::home;
use crate::tries;
use malformed::Malformed;

/// Connections at a time.
const CONNECTIONS: u64 = 8;
/// Requests after which memory is measured the first time.
const WARM_UP: u64 = 300;
/// How much memory may grow: buffers, and the events that were valid.
const MOST_GROWTH: u64 = 64 << 20;
/// How long a server may take with anything; it is set up to take much less.
const PATIENCE: Duration = Duration::from_mins(1);

fn command(home: &Path, state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopedgn"));
    command.env("CUDA_VISIBLE_DEVICES", "-1").current_dir(home);
    command.args(["serve", "--data", "events.csv", "--listen", "127.0.0.1:0", "--json", "--quiet", "--timeout", "3"]);
    command.arg("--log").arg(state);
    command
}

/// What a server does with bytes.
#[derive(Debug, PartialEq, Eq)]
enum Reaction {
    Answered(u16),
    Closed,
    Silent,
}

/// Reads until the server closes; whether it did before the time of the connection was over.
fn read_all(stream: &mut TcpStream, answer: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(n) => answer.extend(&buffer[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A reset: it closed without reading all.
            Err(_) => return true,
        }
    }
}

/// Sends `bytes`, and then nothing more.
fn react(address: SocketAddr, bytes: &[u8], waits: bool) -> Reaction {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    // It may close before all is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut is_over = false;
    if waits {
        // A request that is whole is answered now; else the server waits for the rest.
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
        is_over = read_all(&mut stream, &mut answer);
    }
    if !is_over {
        let _ = stream.shutdown(Shutdown::Write);
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        is_over = read_all(&mut stream, &mut answer);
    }
    let text = String::from_utf8_lossy(&answer);
    match text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok()) {
        Some(status) => Reaction::Answered(status),
        None if is_over => Reaction::Closed,
        None => Reaction::Silent,
    }
}

/// Sends one byte every 100 ms; true once the server has answered or closed.
fn trickle(address: SocketAddr, bytes: &[u8]) -> bool {
    let (mut stream, start) = (TcpStream::connect(address).expect("a connection"), Instant::now());
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
    // Without any bytes it stays silent.
    let more = if bytes.is_empty() { 0 } else { usize::MAX };
    let mut bytes = bytes.iter().chain(std::iter::repeat_n(&b'a', more));
    let mut answer = Vec::new();
    while start.elapsed() < PATIENCE {
        let is_sent = bytes.next().is_none_or(|&byte| stream.write_all(&[byte]).is_ok());
        // Waiting for an answer takes the 100 ms.
        if read_all(&mut stream, &mut answer) || !answer.is_empty() || !is_sent {
            return true;
        }
    }
    false
}

fn status(server: &ServerProcess, path: &str) -> (u16, Vec<u8>) {
    let mut client = server.client().expect("a connection");
    let answer = client.ask(&get(path)).expect("an answer");
    (answer.status, answer.body.to_vec())
}

fn sequence(server: &ServerProcess) -> Value {
    let (code, body) = status(server, "/v1/status");
    assert_eq!(code, 200);
    serde_json::from_slice::<Value>(&body).expect("JSON")["events"].clone()
}

/// `HOPEDGN_TRIES` and `HOPEDGN_SEED` in the environment say how many requests, and which.
#[test]
fn malformed_requests_are_answered_or_closed_and_leave_the_server_as_it_was() {
    let home = home();
    let launch = |state: &Path| command(home.path(), state);
    let state = home.path().join("live");
    let server = ServerProcess::start(&launch, &state).expect("it starts");
    let (address, malformed, n_tries) = (server.address(), Malformed::new(), tries::number(2_000));
    let random = RandomStream::named(tries::seed(), "serve-fuzz");
    let attack = |range: std::ops::Range<u64>| -> Vec<String> {
        let next = AtomicU64::new(range.start);
        let connection = || {
            let mut found = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= range.end {
                    return found;
                }
                let mut random = random.fork(number);
                let (bytes, waits) = (malformed.request(&mut random), random.chance(0.5));
                let reaction = react(address, &bytes, waits);
                if matches!(reaction, Reaction::Silent | Reaction::Answered(500)) {
                    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
                    found.push(format!("request {number} ({} bytes): {reaction:?}: {start:?}", bytes.len()));
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(connection)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect()
        })
    };
    // One never says anything.
    let slow: [&[u8]; 4] = [
        b"",
        b"GET /healthz HTTP/1.1\r\nx: ",
        b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n[",
        b"POST /v1/score HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nfff\r\n",
    ];
    let (found, resident) = std::thread::scope(|scope| {
        let slow = slow.map(|bytes| scope.spawn(move || trickle(address, bytes)));
        let mut found = attack(0..WARM_UP.min(n_tries));
        let before = server.resident();
        found.extend(attack(WARM_UP.min(n_tries)..n_tries));
        let resident = before.zip(server.resident());
        assert!(slow.into_iter().all(|thread| thread.join().expect("it ends")), "a slow client was not cut off");
        (found, resident)
    });
    let stderr = std::fs::read_to_string(state.with_extension("stderr")).expect("a file");
    let shown = found[..found.len().min(10)].join("\n");
    assert!(found.is_empty(), "{} of {n_tries}:\n{shown}\n{stderr}", found.len());
    let is_bounded = |(before, after): (u64, u64)| after.saturating_sub(before) < MOST_GROWTH;
    assert!(resident.is_none_or(is_bounded), "resident memory grew: {resident:?}");
    assert_eq!(status(&server, "/healthz").0, 200);
    let (_, metrics) = status(&server, "/metrics");
    let panics = String::from_utf8_lossy(&metrics)
        .lines()
        .find(|line| line.starts_with("hopedgn_panics_total"))
        .map(str::to_owned);
    assert!(panics.as_ref().is_none_or(|line| line.ends_with(" 0")) && !server.has_panicked(), "{panics:?}");
    // What was taken in must not keep the next server from starting.
    let before = sequence(&server);
    server.stop().expect("it ends");
    let server = ServerProcess::start(&launch, &state).expect("it starts again");
    assert_eq!(sequence(&server), before);
    tries::report(&format!("malformed requests, resident bytes {resident:?}"), usize::try_from(n_tries).expect("few"));
}
