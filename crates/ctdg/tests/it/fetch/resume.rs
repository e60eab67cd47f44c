//! Transfers that take more than one connection.

use std::fs;
use std::time::Duration;

use ctdg::Problem;
use ctdg::fetch::Options;

use super::server::{Answer, Request, Server};
use super::{Bench, VERSION, bytes, join, options, plain};

#[test]
fn a_cut_off_transfer_goes_on_where_it_stopped() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Answer::file(&served, VERSION, request);
        if request.nth == 0 { answer.cut_after(400) } else { answer }
    });
    let mut bench = Bench::new();
    bench.fetch(&plain(&server)).unwrap();
    let second = &server.requests()[1];
    assert_eq!(second.range.as_deref(), Some("bytes=400-"));
    assert_eq!(second.if_range.as_deref(), Some(VERSION));
    assert!(bench.downloaded.is_sorted(), "{:?}", bench.downloaded);
    assert!(bench.remarks[0].contains("400 bytes"), "{:?}", bench.remarks);
    bench.assert_holds(&content);
}

#[test]
fn a_later_call_goes_on_where_an_earlier_one_gave_up() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| match request.nth {
        0 => Answer::file(&served, VERSION, request).cut_after(400),
        1..4 => Answer::file(&served, VERSION, request).cut_after(0),
        _ => Answer::file(&served, VERSION, request),
    });
    let mut bench = Bench::new();
    let error = bench.fetch(&plain(&server)).unwrap_err();
    assert!(matches!(error.problem(), Problem::CutOff { found: 400, .. }), "{error}");
    assert!(error.to_string().contains("expected 1000"), "{error}");
    assert_eq!(bench.left(), ["toy.toy.csv.part", "toy.toy.csv.part.json"]);
    assert_eq!(server.requests().len(), 4, "one that brought something and three that did not");

    bench.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[4].range.as_deref(), Some("bytes=400-"));
    bench.assert_holds(&content);
}

#[test]
fn a_transfer_that_falls_silent_is_given_up_and_gone_on_with() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Answer::file(&served, VERSION, request);
        if request.nth == 0 { answer.silent_after(700) } else { answer }
    });
    let mut bench = Bench::new();
    let impatient = Options { idle_timeout: Duration::from_millis(500), ..options() };
    bench.fetch_with(&plain(&server), &impatient, &join).unwrap();
    assert_eq!(server.requests()[1].from(), Some(700));
    bench.assert_holds(&content);
}

#[test]
fn a_server_without_ranges_is_asked_for_the_whole_again() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Answer::whole(&served).header("ETag", VERSION);
        if request.nth == 0 { answer.cut_after(400) } else { answer }
    });
    let mut bench = Bench::new();
    bench.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[1].from(), Some(400));
    bench.assert_holds(&content);
}

#[test]
fn bytes_of_an_unknown_version_are_not_continued() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| {
        let answer = Answer::whole(&served).header("ETag", "W/\"weak\"");
        if request.nth == 0 { answer.cut_after(400) } else { answer }
    });
    let mut bench = Bench::new();
    bench.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[1].range, None);
    bench.assert_holds(&content);
}

/// Leaves 400 bytes of one version in the folder, then fetches from a server that answers the next request with
/// `stale` and has `content` otherwise.
fn after_a_stale_part(content: &[u8], stale: impl Fn(&Request) -> Answer + Send + 'static) -> (Bench, Vec<Request>) {
    let (old, new) = (vec![b'x'; 1000], content.to_vec());
    let server = Server::start(move |request| match request.nth {
        0 => Answer::file(&old, VERSION, request).cut_after(400),
        1 => stale(request),
        _ => Answer::file(&new, "\"v2\"", request),
    });
    let mut bench = Bench::new();
    bench.fetch(&plain(&server)).unwrap();
    (bench, server.requests())
}

#[test]
fn a_changed_file_is_taken_from_its_start() {
    let content = bytes(900);
    let served = content.clone();
    let (bench, requests) = after_a_stale_part(&content, move |request| Answer::file(&served, "\"v2\"", request));
    assert_eq!(requests.len(), 2);
    bench.assert_holds(&content);
}

#[test]
fn the_rest_of_another_version_is_not_glued_on() {
    let content = bytes(900);
    let served = content.clone();
    let (bench, requests) = after_a_stale_part(&content, move |request| {
        let careless = Request { if_range: None, ..request.clone() };
        Answer::file(&served, "\"v2\"", &careless)
    });
    assert_eq!(requests[2].range, None);
    bench.assert_holds(&content);
}

#[test]
fn a_part_longer_than_the_file_is_dropped() {
    let content = bytes(300);
    let (bench, requests) =
        after_a_stale_part(&content, |_| Answer::status(416).header("Content-Range", "bytes */300"));
    assert_eq!(requests[2].range, None);
    bench.assert_holds(&content);
}

#[test]
fn a_part_that_turns_out_complete_is_not_downloaded_again() {
    let content = bytes(400);
    let server = Server::start(|_| Answer::status(416).header("Content-Range", "bytes */400"));
    let mut bench = Bench::new();
    fs::write(bench.path("toy.toy.csv.part"), &content).unwrap();
    let info =
        format!(r#"{{"url": "{}", "etag": "\"v1\"", "last_modified": null, "total": null}}"#, server.url("/toy.csv"));
    fs::write(bench.path("toy.toy.csv.part.json"), info).unwrap();
    bench.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests().len(), 1);
    bench.assert_holds(&content);
}

#[test]
fn a_part_with_a_damaged_note_is_dropped() {
    let content = bytes(400);
    let served = content.clone();
    let server = Server::start(move |request| Answer::file(&served, VERSION, request));
    let mut bench = Bench::new();
    fs::write(bench.path("toy.toy.csv.part"), "xxxx").unwrap();
    fs::write(bench.path("toy.toy.csv.part.json"), "{").unwrap();
    bench.fetch(&plain(&server)).unwrap();
    bench.assert_holds(&content);
}

#[test]
fn redirects_are_followed_with_the_range() {
    let content = bytes(1000);
    let served = content.clone();
    let server = Server::start(move |request| match (request.path.as_str(), request.nth) {
        ("/toy.csv", _) => Answer::status(302).header("Location", "/elsewhere"),
        (_, 0) => Answer::file(&served, VERSION, request).cut_after(400),
        _ => Answer::file(&served, VERSION, request),
    });
    let mut bench = Bench::new();
    bench.fetch(&plain(&server)).unwrap();
    assert_eq!(server.requests()[3].from(), Some(400));
    bench.assert_holds(&content);
}
