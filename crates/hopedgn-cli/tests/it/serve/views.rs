//! What the page asks for: nodes, pairs, graphs, runs, the live stream and its own files.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{N_TRAINED, Row, STATS, Served, events, home, rows};

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Times at which `a` and `b` met, newest first.
fn met(rows: &[Row], a: u32, b: u32) -> Vec<f64> {
    let together = rows.iter().filter(|&&(src, dst, _)| (src, dst) == (a, b) || (src, dst) == (b, a));
    together.rev().map(|&(_, _, time)| f64::from(time)).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(|number| number.as_f64().expect("a number")).collect()
}

#[test]
fn nodes_are_found_by_the_beginning_of_their_name_then_by_what_it_contains() {
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    server.post(
        "/v1/events",
        &json!([{"src": "Bob1", "dst": "..", "time": 2000}, {"src": "Bob1", "dst": 1, "time": 2000}]),
    );
    let found = server.get("/v1/nodes?prefix=1&limit=100");
    let ids: Vec<String> =
        list(&found["nodes"]).iter().map(|node| node["id"].as_str().expect("text").to_owned()).collect();
    let n_first = ids.iter().take_while(|id| id.starts_with('1')).count();
    assert_eq!(n_first, 11, "1 and 10 to 19: {ids:?}");
    assert_eq!(
        ids[n_first..].iter().collect::<BTreeSet<_>>(),
        BTreeSet::from(["21", "31", "Bob1"].map(String::from).each_ref())
    );
    assert_eq!(server.get("/v1/nodes?prefix=bo")["nodes"][0], json!({"id": "Bob1", "events": 2, "last_time": 2000.0}));
    assert_eq!(server.get("/v1/nodes?prefix=unknown")["nodes"], json!([]));
    assert_eq!(server.get("/v1/node?id=..")["history"][0]["node"], "Bob1");
    assert_eq!(server.request("GET", "/v1/node?id=", &[], "").1["error"]["code"], "unknown-node");
}

#[test]
fn a_pair_and_the_graph_around_it_are_those_of_the_file() {
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    let known = rows(0..N_TRAINED);
    let pair = server.get("/v1/pair?src=7&dst=9&limit=1000");
    assert_eq!(numbers(&pair["met"]), met(&known, 7, 9));
    let neighbors = |node: u32| -> BTreeSet<u32> {
        let ends = known.iter().filter(|(src, dst, _)| *src == node || *dst == node);
        ends.map(|&(src, dst, _)| if src == node { dst } else { src }).collect()
    };
    let common: BTreeSet<u32> =
        neighbors(7).intersection(&neighbors(9)).copied().filter(|w| ![7, 9].contains(w)).collect();
    assert!(common.len() > 1);
    let number = |value: &Value| u32::try_from(value.as_u64().expect("a number")).expect("small");
    assert_eq!(list(&pair["common"]).iter().map(|row| number(&row["node"])).collect::<BTreeSet<_>>(), common);
    for row in list(&pair["common"]) {
        let node = number(&row["node"]);
        assert_eq!([&row["src_times"], &row["dst_times"]].map(numbers), [met(&known, 7, node), met(&known, 9, node)]);
    }
    // Strictly before the time that is asked about.
    let early = server.get("/v1/pair?src=7&dst=9&time=1100&limit=1000");
    assert!(numbers(&early["met"]).iter().all(|&time| time < 1100.0));
    assert_eq!(server.get("/v1/pair?src=unknown&dst=9")["src_history"], json!([]));

    let graph = server.get("/v1/graph?node=7&other=9&limit=30&top=4");
    let nodes = list(&graph["nodes"]);
    assert!(nodes.len() <= 30 && list(&graph["predicted"]).len() == 4);
    assert_eq!(
        (&nodes[0]["id"], &nodes[0]["role"], &nodes[1]["id"], &nodes[1]["role"]),
        (&json!(7), &json!("center"), &json!(9), &json!("other"))
    );
    let with_role = |role: &str| {
        nodes.iter().filter(|node| node["role"] == role).map(|node| number(&node["id"])).collect::<BTreeSet<_>>()
    };
    assert_eq!(with_role("common"), common);
    for edge in list(&graph["edges"]) {
        let [a, b] = ["source", "target"]
            .map(|end| number(&nodes[usize::try_from(edge[end].as_u64().expect("an index")).expect("small")]["id"]));
        let mut times = numbers(&edge["times"]);
        times.reverse();
        assert_eq!(times, met(&known, a, b)[..times.len()], "{a} {b}");
        assert!(!times.is_empty());
    }
    assert!(nodes.iter().all(|node| ["x", "y"].iter().all(|axis| node[axis].as_f64().is_some_and(|x| x.abs() <= 1.0))));
    assert_eq!(server.request("GET", "/v1/graph?node=7&limit=3000", &[], "").0, 400);
    assert_eq!(server.request("GET", "/v1/graph?node=unknown", &[], "").0, 404);
}

#[test]
fn a_score_without_events_is_that_of_a_file_without_them() {
    // Statistics would still count how many events ago something happened in the whole stream.
    let home = home(&["--model", "hopedgn", "--set", "model.d-channel=4", "--set", "model.length=8"]);
    let server = Served::start(home.path(), &["mine"]);
    let pair = json!([{"src": 7, "dst": 9, "time": 5000}]);
    let score = |server: &Served, body: Value| server.post("/v1/score", &body)["scores"][0]["score"].clone();
    let left_out = [3_usize, 599, 100];
    let found = score(&server, json!({"pairs": pair, "without": left_out}));
    drop(server);
    let mut rest: Vec<Row> = rows(0..N_TRAINED);
    rest = (0..).zip(rest).filter(|(at, _)| !left_out.contains(at)).map(|(_, row)| row).collect();
    fs::write(home.path().join("rest.csv"), super::csv(&rest)).expect("a file");
    fs::write(home.path().join("pairs.csv"), "src,dst,time\n7,9,5000\n").expect("a file");
    let arguments = ["score", "mine", "--data", "rest.csv", "--pairs", "pairs.csv", "--json", "--quiet"];
    let expected = crate::json(home.path(), &arguments)["scores"][0]["score"].clone();
    assert_eq!(found, expected);
}

#[test]
fn runs_and_their_reports_are_listed_and_no_other_file_is_read() {
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    fs::create_dir(home.path().join("secret")).expect("a folder");
    fs::write(home.path().join("secret/report.html"), "secret").expect("a file");
    let runs = server.get("/v1/runs");
    assert_eq!(list(&runs["runs"]).len(), 1);
    let run = &runs["runs"][0];
    assert_eq!(
        (&run["name"], &run["current"], &run["model"], list(&run["curve"]).len()),
        (&json!("mine"), &json!(true), &json!("stats"), 1)
    );
    assert!(run["test"]["transductive"]["ap"].is_f64());
    let (status, report) = server.request("GET", "/v1/runs/mine/report", &[], "");
    assert!(status == 200 && report.as_str().is_some_and(|html| html.contains("<html")), "{status}");
    for name in ["secret", "..%2Fmine", "%2e%2e", "mine%2Flive", "mine%00"] {
        assert_eq!(server.request("GET", &format!("/v1/runs/{name}/report"), &[], "").0, 404, "{name}");
    }
}

/// Head of an answer, and a reader of the rest.
fn get(server: &Served, path: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).expect("it is sent");
    let (mut head, mut reader) = (String::new(), BufReader::new(stream));
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).expect("an answer") > 0 {}
    (head.to_lowercase(), reader)
}

#[test]
fn the_live_stream_tells_of_events_and_ends_with_the_server() {
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    let (head, mut stream) = get(&server, "/v1/live");
    assert!(head.starts_with("http/1.1 200") && head.contains("text/event-stream"), "{head}");
    let mut message = || loop {
        let mut line = String::new();
        if stream.read_line(&mut line).expect("a stream") == 0 {
            return Value::Null;
        }
        if let Some(data) = line.strip_prefix("data:") {
            return serde_json::from_str(data).expect("JSON");
        }
    };
    assert_eq!(message()["events"], 600);
    server.post("/v1/score", &json!({"pairs": [{"src": 7, "dst": 9}]}));
    server.post("/v1/events", &events(&rows(600..603)));
    let seen = std::iter::repeat_with(&mut message).find(|seen| seen["events"] == 603).expect("there is one");
    assert_eq!((&seen["newest"][0]["event"], &seen["scores"]["total"]), (&json!(602), &json!(1)));
    assert!(list(&seen["latency"]).iter().any(|row| row["path"] == "/v1/score" && row["count"] == 1), "{seen}");
    assert_eq!(server.terminate(), Some(0), "it waits for no stream");
}

#[test]
fn the_page_is_open_and_confined_and_its_data_is_not_open() {
    let home = home(&STATS);
    fs::write(home.path().join("read"), "a-token-for-reading\n").expect("a file");
    let server = Served::start(home.path(), &["mine", "--read-token-file", "read"]);
    let (head, _) = get(&server, "/");
    assert!(head.starts_with("http/1.1 200") && head.contains("text/html"), "{head}");
    for part in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    let (head, _) = get(&server, "/assets/app.js");
    assert!(head.contains("text/javascript"), "{head}");
    for missing in ["/assets/nothing.js", "/assets/..%2fCargo.toml", "/assets/package.json", "/assets/"] {
        assert!(get(&server, missing).0.starts_with("http/1.1 404"), "{missing}");
    }
    for path in
        ["/v1/live", "/v1/nodes", "/v1/pair?src=1&dst=2", "/v1/graph?node=1", "/v1/runs", "/v1/runs/mine/report"]
    {
        assert!(get(&server, path).0.starts_with("http/1.1 401"), "{path}");
    }
}
