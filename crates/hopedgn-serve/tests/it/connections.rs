//! Encrypted connections, slow and silent clients, and more requests than can be answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hopedgn_serve::{Limits, ServeOptions, TlsFiles};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::{TestRun, header, request, start};

/// A certificate of `localhost` for tests, signed by itself.
fn certificate() -> TlsFiles {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }
}

#[test]
fn connections_are_encrypted_with_the_certificate() {
    let run = TestRun::train(&[]);
    let server = start(ServeOptions { tls: Some(certificate()), ..run.options() });
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate().certificate).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(server.address()).unwrap());
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");

    // Plain text gets no answer.
    let mut plain = TcpStream::connect(server.address()).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn a_certificate_that_does_not_fit_is_named() {
    let run = TestRun::train(&[]);
    let TlsFiles { certificate, key } = certificate();
    let swapped = TlsFiles { certificate: key, key: certificate };
    let options = ServeOptions { tls: Some(swapped), ..run.options() };
    let error = hopedgn_serve::Server::start(options, None).unwrap_err();
    assert!(error.code() == "invalid-secret" && error.to_string().contains(".pem"), "{error}");
}

#[test]
fn slow_and_silent_clients_are_cut() {
    let run = TestRun::train(&[]);
    let short = Duration::from_millis(200);
    let limits = Limits { head: short, request: short, connections: 2, ..Limits::default() };
    let server = start(ServeOptions { limits, ..run.options() });
    let beginnings: [&[u8]; 4] = [
        b"",
        b"GET /healthz HTT",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"pairs\"",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pa",
    ];
    for beginning in beginnings {
        let mut silent = TcpStream::connect(server.address()).unwrap();
        silent.write_all(beginning).unwrap();
        let mut answer = Vec::new();
        // It ends, with an answer or without.
        let _ = silent.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
    }
    // None of them holds one of the two connections any more.
    assert_eq!(request(server.address(), "GET", "/healthz", &[], b"").0, 200);
}

fn scored(body: &[u8]) -> Value {
    serde_json::from_slice::<Value>(body).unwrap()["scores"].clone()
}

#[test]
fn too_many_requests_are_told_so_and_the_others_are_answered_as_ever() {
    let run = TestRun::train(&[]);
    let limits = Limits { waiting_scores: 1, waiting_events: 1, waiting_answers: 1, ..Limits::default() };
    let server = start(ServeOptions { limits, ..run.options() });
    let body = json!({"pairs": [{"src": 3, "dst": 4, "time": 500}, {"src": 5, "dst": 9, "time": 500}]}).to_string();
    let alone = scored(&request(server.address(), "POST", "/v1/score", &[], body.as_bytes()).2);
    let address = server.address();
    let n_answered: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let mut n_answered = 0;
                    for _ in 0..20 {
                        let (status, headers, answer) = request(address, "POST", "/v1/score", &[], body.as_bytes());
                        if status == 200 {
                            assert_eq!(scored(&answer), alone, "whoever shares its forward pass");
                            n_answered += 1;
                        } else {
                            assert_eq!((status, header(&headers, "retry-after")), (429, Some("1")));
                        }
                    }
                    n_answered
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(n_answered > 0);
}

#[test]
fn more_than_the_limits_is_refused() {
    let run = TestRun::train(&[]);
    let limits = Limits { body_bytes: 300, events: 2, pairs: 1, top: 3, ..Limits::default() };
    let server = start(ServeOptions { limits, ..run.options() });
    let status = |method: &str, path: &str, body: &str| {
        let (status, _, answer) = request(server.address(), method, path, &[], body.as_bytes());
        (status, serde_json::from_slice::<Value>(&answer).unwrap()["error"]["code"].as_str().unwrap().to_owned())
    };
    let pair = r#"{"src": 1, "dst": 2}"#;
    let too_many = (413, "too-many-rows".to_owned());
    assert_eq!(status("POST", "/v1/score", &format!("{{\"pairs\": [{pair}, {pair}]}}")), too_many);
    let event = r#"{"src": 1, "dst": 2, "time": 900}"#;
    assert_eq!(status("POST", "/v1/events", &format!("[{event}, {event}, {event}]")), too_many);
    assert_eq!(status("POST", "/v1/events", &" ".repeat(301)), (413, "body-too-large".to_owned()));
    assert_eq!(status("GET", "/v1/recommend?src=1&k=4", ""), (400, "invalid-request".to_owned()));
    assert_eq!(status("GET", "/v1/recommend?src=1&tops=1", ""), (400, "invalid-request".to_owned()));
}
