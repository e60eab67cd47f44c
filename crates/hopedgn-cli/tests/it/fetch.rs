//! `hopedgn data fetch` from a local server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use crate::{json, run, schemas};

const JODIE: &str =
    "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n0,0,5,0,0.5\n1,0,7,1,0.5\n";

/// Answers every request with `body`, or with 404 for paths that contain `missing`; returns the address.
fn serve(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut request = String::new();
            while reader.read_line(&mut request).is_ok_and(|n| n > 2) {}
            let (status, body) = if request.contains("missing") { ("404 Not Found", "") } else { ("200 OK", body) };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            // The client may close early.
            let _ = reader.into_inner().write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

/// A list of addresses with one for `wikipedia`.
fn sources(url: &str, events: u64) -> String {
    format!(
        "[[source]]\nname = \"wikipedia\"\nnodes = 3\nevents = {events}\n[[source.home]]\nurl = \"{url}\"\n\
         format = \"jodie\"\nat-most-mib = 1\n"
    )
}

#[test]
fn fetched_dataset_is_known_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.toml"), sources(&format!("{}/wikipedia.csv", serve(JODIE)), 2)).expect("written");
    let fetch = ["data", "fetch", "wikipedia", "--sources", "s.toml", "--data-dir", "d", "--insecure", "--json"];
    let fetched = json(folder.path(), &fetch);
    schemas::check("data-fetch", &fetched);
    assert_eq!((&fetched["fetched"][0]["events"], &fetched["fetched"][0]["was_here"]), (&2.into(), &false.into()));
    assert_eq!(json(folder.path(), &fetch)["fetched"][0]["was_here"], true, "not fetched twice");
    let info = json(folder.path(), &["data", "info", "wikipedia", "--data-dir", "d", "--json"]);
    assert_eq!((&info["nodes"], &info["edge_features"], &info["labelled"]), (&3.into(), &1.into(), &1.into()));
    let list = json(folder.path(), &["data", "list", "--data-dir", "d", "--json"]);
    let here = list["data"].as_array().expect("a list").iter().find(|entry| entry["name"] == "wikipedia");
    assert_eq!(here.expect("listed")["status"], "here");
}

#[test]
fn missing_and_wrong_downloads_are_refused_and_leave_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(JODIE);
    for (path, events, code, expected) in [
        ("missing.csv", 2, "http-status", "found status 404 at"),
        ("wikipedia.csv", 9, "wrong-counts", "found 3 nodes and 2 events, expected 3 and 9"),
    ] {
        fs::write(folder.path().join("s.toml"), sources(&format!("{server}/{path}"), events)).expect("written");
        let fetch = ["data", "fetch", "wikipedia", "--sources", "s.toml", "--data-dir", "d", "--insecure", "--json"];
        let (status, stdout, stderr) = run(folder.path(), &fetch);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stdout.contains(&format!("\"code\": \"{code}\"")), "{stdout}");
        assert!(stderr.contains(expected), "{stderr}");
        assert!(!folder.path().join("d/wikipedia.ctdg").exists());
    }
}

#[test]
fn a_missing_name_is_asked_for_with_the_names_there_are() {
    let home = tempfile::tempdir().expect("a folder");
    let (status, _, stderr) = run(home.path(), &["data", "fetch"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("found no name, expected at least one of reddit, wikipedia, "), "{stderr}");
    assert!(stderr.contains("`hopedgn data list`"), "{stderr}");
}
