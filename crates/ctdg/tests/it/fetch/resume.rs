//! Transfers that take more than one connection.

use std::fs;
use std::time::Duration;

use ctdg::Problem;
use ctdg::fetch::Options;

use super::server::{Request, Response, Server};
use super::{Target, VERSION, bytes, join, options, plain};

#[test]
fn interrupted_transfer_resumes_in_the_same_call() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Response::file(&served, VERSION, request);
        if request.nth == 0 { answer.cut_after(400) } else { answer }
    });
    let mut target = Target::new();
    target.fetch(&plain(&server)).unwrap();
    let second = &server.requests()[1];
    assert_eq!(second.range.as_deref(), Some("bytes=400-"));
    assert_eq!(second.if_range.as_deref(), Some(VERSION));
    assert!(target.downloaded.is_sorted(), "{:?}", target.downloaded);
    assert!(target.warnings[0].contains("400 bytes"), "{:?}", target.warnings);
    target.assert_holds(&content);
}

#[test]
fn interrupted_transfer_resumes_in_a_later_call() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| match request.nth {
        0 => Response::file(&served, VERSION, request).cut_after(400),
        1..4 => Response::file(&served, VERSION, request).cut_after(0),
        _ => Response::file(&served, VERSION, request),
    });
    let mut target = Target::new();
    let error = target.fetch(&plain(&server)).unwrap_err();
    assert!(matches!(error.problem(), Problem::CutOff { found: 400, .. }), "{error}");
    assert!(error.to_string().contains("expected 1000"), "{error}");
    assert_eq!(target.files(), ["toy.toy.csv.part", "toy.toy.csv.part.json"]);
    assert_eq!(server.requests().len(), 4, "one that brought something and three that did not");

    target.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[4].range.as_deref(), Some("bytes=400-"));
    target.assert_holds(&content);
}

#[test]
fn stalled_transfer_times_out_and_resumes() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Response::file(&served, VERSION, request);
        if request.nth == 0 { answer.silent_after(700) } else { answer }
    });
    let mut target = Target::new();
    let impatient = Options { idle_timeout: Duration::from_millis(500), ..options() };
    target.fetch_with(&plain(&server), &impatient, &join).unwrap();
    assert_eq!(server.requests()[1].from(), Some(700));
    target.assert_holds(&content);
}

#[test]
fn server_without_ranges_restarts_the_download() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Response::whole(&served).header("ETag", VERSION);
        if request.nth == 0 { answer.cut_after(400) } else { answer }
    });
    let mut target = Target::new();
    target.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[1].from(), Some(400));
    target.assert_holds(&content);
}

#[test]
fn unknown_version_is_not_resumed() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Response::whole(&served).header("ETag", "W/\"weak\"");
        if request.nth == 0 { answer.cut_after(400) } else { answer }
    });
    let mut target = Target::new();
    target.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[1].range, None);
    target.assert_holds(&content);
}

/// Leaves 400 bytes of one version in the folder, then fetches from a server that responds to the next request with
/// `stale` and has `content` otherwise.
fn after_a_stale_partial_file(
    content: &[u8],
    stale: impl Fn(&Request) -> Response + Send + 'static,
) -> (Target, Vec<Request>) {
    let (old, new) = (vec![b'x'; 1000], content.to_vec());
    let server = Server::start(move |request| match request.nth {
        0 => Response::file(&old, VERSION, request).cut_after(400),
        1 => stale(request),
        _ => Response::file(&new, "\"v2\"", request),
    });
    let mut target = Target::new();
    target.fetch(&plain(&server)).unwrap();
    (target, server.requests())
}

#[test]
fn changed_file_restarts_the_download() {
    let content = bytes(900);
    let served = content.clone();
    let (target, requests) =
        after_a_stale_partial_file(&content, move |request| Response::file(&served, "\"v2\"", request));
    assert_eq!(requests.len(), 2);
    target.assert_holds(&content);
}

#[test]
fn versions_are_never_mixed() {
    let content = bytes(900);
    let served = content.clone();
    let (target, requests) = after_a_stale_partial_file(&content, move |request| {
        let without_if_range = Request { if_range: None, ..request.clone() };
        Response::file(&served, "\"v2\"", &without_if_range)
    });
    assert_eq!(requests[2].range, None);
    target.assert_holds(&content);
}

#[test]
fn partial_file_longer_than_the_file_is_dropped() {
    let content = bytes(300);
    let (target, requests) =
        after_a_stale_partial_file(&content, |_| Response::status(416).header("Content-Range", "bytes */300"));
    assert_eq!(requests[2].range, None);
    target.assert_holds(&content);
}

#[test]
fn complete_partial_file_is_not_downloaded_again() {
    let content = bytes(400);
    let server = Server::start(|_| Response::status(416).header("Content-Range", "bytes */400"));
    let mut target = Target::new();
    fs::write(target.path("toy.toy.csv.part"), &content).unwrap();
    let info =
        format!(r#"{{"url": "{}", "etag": "\"v1\"", "last_modified": null, "total": null}}"#, server.url("/toy.csv"));
    fs::write(target.path("toy.toy.csv.part.json"), info).unwrap();
    target.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests().len(), 1);
    target.assert_holds(&content);
}

#[test]
fn partial_file_with_damaged_description_is_dropped() {
    let content = bytes(400);
    let served = content.clone();
    let server = Server::start(move |request| Response::file(&served, VERSION, request));
    let mut target = Target::new();
    fs::write(target.path("toy.toy.csv.part"), "xxxx").unwrap();
    fs::write(target.path("toy.toy.csv.part.json"), "{").unwrap();
    target.fetch(&plain(&server)).unwrap();
    target.assert_holds(&content);
}

#[test]
fn redirects_are_followed_with_the_range() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| match (request.path.as_str(), request.nth) {
        ("/toy.csv", _) => Response::status(302).header("Location", "/elsewhere"),
        (_, 0) => Response::file(&served, VERSION, request).cut_after(400),
        _ => Response::file(&served, VERSION, request),
    });
    let mut target = Target::new();
    target.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[3].from(), Some(400));
    target.assert_holds(&content);
}
