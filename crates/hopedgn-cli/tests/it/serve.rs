//! `hopedgn serve` as its users meet it: events in, answers out, restarts in between.

pub(crate) mod client;
mod views;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::schemas::check;
use crate::{json as answer_of, run};
pub(crate) use client::{Served, signal};

/// A line of the file of events.
pub(crate) type Row = (u32, u32, u32);

/// Forty people who write to a few others again and again, some at equal times.
pub(crate) fn rows(range: std::ops::Range<u32>) -> Vec<Row> {
    range.map(|i| (i * 7 % 40, (i * 7 + 1 + i % 3) % 40, 1000 + i / 2)).collect()
}

fn csv(rows: &[Row]) -> String {
    let lines = rows.iter().map(|(src, dst, time)| format!("{src},{dst},{time}\n"));
    std::iter::once("src,dst,time\n".to_owned()).chain(lines).collect()
}

pub(crate) fn events(rows: &[Row]) -> Value {
    rows.iter().map(|(src, dst, time)| json!({"src": src, "dst": dst, "time": time})).collect()
}

const N_TRAINED: u32 = 600;

/// A folder with `events.csv` and a run `mine` of `model` on it.
pub(crate) fn home(model: &[&str]) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("events.csv"), csv(&rows(0..N_TRAINED))).expect("a file");
    let arguments = ["train", "--data", "events.csv", "--epochs", "1", "--out", "mine", "--quiet"];
    let (status, _, stderr) = run(home.path(), &[&arguments[..], model].concat());
    assert_eq!(status, Some(0), "{stderr}");
    home
}

pub(crate) const STATS: [&str; 2] = ["--model", "stats"];
const JODIE: [&str; 6] = ["--model", "jodie", "--set", "model.d-out=6", "--set", "train.batch=20"];

/// Scores of a few pairs, of known and new nodes, by the server.
fn scores(server: &Served, time: u32) -> Vec<Value> {
    let pairs: Vec<Value> = PAIRS.iter().map(|(src, dst)| json!({"src": src, "dst": dst, "time": time})).collect();
    let answer = server.post("/v1/score", &json!({ "pairs": pairs }));
    answer["scores"].as_array().expect("scores").iter().map(|row| row["score"].clone()).collect()
}

const PAIRS: [(u32, u32); 5] = [(0, 1), (7, 9), (3, 3), (41, 2), (5, 99)];

/// The same by `hopedgn score` on a file.
fn scores_of_file(home: &Path, data: &str, time: u32) -> Vec<Value> {
    let lines = PAIRS.iter().map(|(src, dst)| format!("{src},{dst},{time}\n"));
    fs::write(home.join("pairs.csv"), std::iter::once("src,dst,time\n".to_owned()).chain(lines).collect::<String>())
        .expect("a file");
    let answer = answer_of(home, &["score", "mine", "--data", data, "--pairs", "pairs.csv", "--json", "--quiet"]);
    let rows = answer.get("scores").unwrap_or(&answer).as_array().expect("scores").clone();
    rows.iter().map(|row| row["score"].clone()).collect()
}

#[test]
fn answers_equal_those_of_the_command_line_on_a_file_of_the_events() {
    for model in [&STATS[..], &JODIE] {
        let home = home(model);
        let mut server = Served::start(home.path(), &["mine"]);
        for n in [600, 607, 650, 651, 700] {
            if n > N_TRAINED {
                let sequence = server.get("/v1/status")["events"].as_u64().expect("a number");
                let new = rows(u32::try_from(sequence).expect("small")..n);
                let answer = server.post("/v1/events", &events(&new));
                assert_eq!(answer["last_seq"], n, "{answer}");
            }
            if n == 651 {
                // A restart goes on with the same events, and with the memory of the model.
                assert_eq!(server.terminate(), Some(0));
                assert_eq!(home.path().join("mine/live/memory.safetensors").is_file(), model == JODIE);
                server = Served::start(home.path(), &["mine"]);
            }
            fs::write(home.path().join("grown.csv"), csv(&rows(0..n))).expect("a file");
            let found = scores(&server, 5000);
            assert_eq!(found, scores_of_file(home.path(), "grown.csv", 5000), "{model:?} {n}");
            // The log is a dataset, also while the server runs.
            assert_eq!(found, scores_of_file(home.path(), "mine/live", 5000), "{model:?} {n}");
            let best = server.get("/v1/recommend?src=7&k=5&time=5000&exact=true");
            let arguments =
                ["recommend", "mine", "7", "--data", "grown.csv", "--top", "5", "--at", "5000", "--json", "--quiet"];
            let expected = answer_of(home.path(), &arguments);
            let item = |item: &Value| (item["dst"].clone(), item["probability"].clone(), item["known"].clone());
            let items = |of: &Value| of["items"].as_array().expect("items").iter().map(item).collect::<Vec<_>>();
            assert_eq!(items(&best), items(&expected), "{model:?} {n}");
            assert_eq!((best["seq"].as_u64(), &best["model"]), (Some(n.into()), &json!("mine")));
        }
    }
}

#[test]
fn a_repetition_is_answered_as_the_first_time_and_taken_in_once() {
    let home = home(&STATS);
    let mut server = Served::start(home.path(), &["mine"]);
    let key = [("Idempotency-Key", "monday-1")];
    let batch = events(&rows(600..605));
    let first = server.request("POST", "/v1/events", &key, &batch.to_string());
    assert_eq!(first.0, 200, "{}", first.1);
    let with_ids = json!([
        {"src": "ann", "dst": 1, "time": 2000, "id": "e1"},
        {"src": "ann", "dst": 2, "time": 2000, "id": "e2"},
        {"src": "ann", "dst": 1, "time": 2000, "id": "e1"}
    ]);
    let of_ids = server.post("/v1/events", &with_ids);
    assert_eq!(of_ids, json!({"accepted": 2, "duplicates": 1, "first_seq": 606, "last_seq": 607, "watermark": 2000.0}));
    for restart in [false, true] {
        if restart {
            server.kill();
            server = Served::start(home.path(), &["mine"]);
        }
        assert_eq!(server.request("POST", "/v1/events", &key, &batch.to_string()), first, "{restart}");
        let again = json!({"accepted": 0, "duplicates": 3, "first_seq": 606, "last_seq": 607, "watermark": 2000.0});
        assert_eq!(server.post("/v1/events", &with_ids), again, "{restart}");
        assert_eq!(server.get("/v1/status")["events"], 607);
    }
    // One new event among known ones.
    let more =
        json!([{"src": "ann", "dst": 2, "time": 2000, "id": "e2"}, {"src": 3, "dst": 4, "time": 2001, "id": "e3"}]);
    assert_eq!(
        server.post("/v1/events", &more),
        json!({"accepted": 1, "duplicates": 1, "first_seq": 607, "last_seq": 608, "watermark": 2001.0})
    );
    let other = server.request("POST", "/v1/events", &key, &events(&rows(606..607)).to_string());
    assert_eq!((other.0, &other.1["error"]["code"]), (422, &json!("key-reused")));
    assert_eq!(server.get("/v1/status")["events"], 608);
}

#[test]
fn a_bad_event_is_named_and_nothing_of_its_request_is_taken_in() {
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    let good = json!({"src": 1, "dst": 2, "time": 2000});
    let cases = [
        (json!({"src": 1, "dst": 2, "time": 12}), 422, "late-event", "at least 2000"),
        (json!({"src": 1, "dst": "", "time": 2000}), 422, "not-a-number", "a node id"),
        (json!({"src": 1, "dst": 2}), 400, "invalid-request", "missing field `time`"),
        (json!({"src": 1, "dst": 2, "tim": 2000, "time": 2000}), 400, "invalid-request", "unknown field `tim`"),
        (json!({"src": -1, "dst": 2, "time": 2000}), 400, "invalid-request", "the id of a node"),
        (json!({"src": 1, "dst": 2, "time": "soon"}), 400, "invalid-request", "soon"),
        (json!({"src": 1, "dst": 2, "time": 2000, "features": [1]}), 422, "feature-width", "1"),
    ];
    for (bad, status, code, text) in cases {
        let (found, answer) = server.request("POST", "/v1/events", &[], &json!([good, bad]).to_string());
        let error = &answer["error"];
        assert_eq!((found, &error["code"], &error["row"]), (status, &json!(code), &json!(1)), "{answer}");
        assert!(error["message"].as_str().expect("text").contains(text), "{answer}");
        assert_eq!(server.get("/v1/status")["events"], 600);
    }
    // As lines, as one event, and wrapped.
    let lines = format!("{good}\n\n{good}\n");
    let lines = server.request("POST", "/v1/events", &[("Content-Type", "application/x-ndjson")], &lines);
    assert_eq!(
        lines,
        (200, json!({"accepted": 2, "duplicates": 0, "first_seq": 601, "last_seq": 602, "watermark": 2000.0}))
    );
    assert_eq!(server.post("/v1/events", &good)["last_seq"], 603);
    assert_eq!(server.post("/v1/events", &json!({"events": [good]}))["last_seq"], 604);
    assert_eq!(server.request("POST", "/v1/events", &[], "{\"events\": 7}").0, 400);
    assert_eq!(server.request("POST", "/v1/events", &[("Content-Type", "text/csv")], "1,2,3").0, 415);
    assert_eq!(server.request("GET", "/v1/events", &[], "").0, 405);
    assert_eq!(server.request("GET", "/v1/nothing", &[], "").1["error"]["code"], "not-found");
}

#[test]
fn late_events_are_held_and_put_in_order_if_asked_for() {
    let home = home(&STATS);
    let late = [(1, 2, 2000), (3, 4, 2008), (5, 6, 2004), (7, 8, 2004), (1, 2, 2014), (9, 1, 2009)];
    let mut server = Served::start(home.path(), &["mine", "--lateness", "10"]);
    for row in late {
        server.post("/v1/events", &events(&[row]));
    }
    // 2014 − 10: three events are not after that.
    let status = server.get("/v1/status");
    assert_eq!((&status["events"], &status["held"]), (&json!(603), &json!(3)), "{status}");
    let refused = server.request("POST", "/v1/events", &[], &events(&[(1, 2, 2003)]).to_string());
    assert_eq!((refused.0, &refused.1["error"]["code"]), (422, &json!("late-event")));
    let mut known: Vec<Row> = [rows(0..N_TRAINED), late.to_vec()].concat();
    known.sort_by_key(|row| row.2);
    fs::write(home.path().join("grown.csv"), csv(&known[..603])).expect("a file");
    let expected = scores_of_file(home.path(), "grown.csv", 5000);
    assert_eq!(scores(&server, 5000), expected);
    server.kill();
    server = Served::start(home.path(), &["mine", "--lateness", "10"]);
    assert_eq!(server.get("/v1/status")["held"], 3);
    assert_eq!(scores(&server, 5000), expected, "after a restart");
    server.post("/v1/events", &events(&[(1, 2, 2100)]));
    fs::write(home.path().join("grown.csv"), csv(&known)).expect("a file");
    assert_eq!(scores(&server, 5000), scores_of_file(home.path(), "grown.csv", 5000));
}

#[test]
fn tokens_decide_who_may_do_what() {
    let home = home(&STATS);
    for (name, token) in
        [("read", "a-token-for-reading\n"), ("write", "a-token-for-writing\n\nanother-one-for-writing\n")]
    {
        fs::write(home.path().join(name), token).expect("a file");
    }
    let arguments = ["mine", "--read-token-file", "read", "--write-token-file", "write"];
    let server = Served::start(home.path(), &arguments);
    let status = |method: &str, path: &str, token: Option<&str>| {
        let header = token.map(|token| ("Authorization", format!("Bearer {token}")));
        let headers: Vec<(&str, &str)> = header.iter().map(|(name, value)| (*name, &**value)).collect();
        server.request(method, path, &headers, "[]").0
    };
    assert_eq!([status("GET", "/healthz", None), status("GET", "/readyz", None)], [200; 2]);
    for path in ["/v1/status", "/metrics", "/v1/recommend?src=1", "/v1/nodes/1", "/openapi.json"] {
        assert_eq!(status("GET", path, None), 401, "{path}");
        assert_eq!(status("GET", path, Some("a-token-for-readinf")), 401, "{path}");
        assert_eq!(status("GET", path, Some("a-token-for-reading")), 200, "{path}");
        assert_eq!(status("GET", path, Some("another-one-for-writing")), 200, "{path}");
    }
    let taken = ["a-token-for-reading", "a-token-for-writing"].map(|token| status("POST", "/v1/events", Some(token)));
    assert_eq!(taken, [403, 200]);
    let (code, _, stderr) = run(home.path(), &["serve", "mine", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("without tokens") && stderr.contains("--write-token-file"), "{stderr}");
    fs::write(home.path().join("short"), "1234\n").expect("a file");
    let (code, _, stderr) = run(home.path(), &["serve", "mine", "--read-token-file", "short"]);
    assert!(code == Some(2) && stderr.contains("at least") || stderr.contains("less than 16"), "{stderr}");
}

#[test]
fn a_user_with_events_alone_gets_a_model_first() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("mail.csv"), csv(&rows(0..300))).expect("a file");
    let server = Served::start(home.path(), &["--data", "mail.csv"]);
    check("serve", server.started());
    assert!(server.stderr().contains("no run yet: training"), "{}", server.stderr());
    let status = server.get("/v1/status");
    assert_eq!((&status["events"], &status["model"]), (&json!(300), &json!("mail-stats")));
    drop(server);
    // Without the file: the log has the events, and the run is there.
    fs::remove_file(home.path().join("mail.csv")).expect("our own file");
    let server = Served::start(home.path(), &["--data", "mail.csv"]);
    assert!(!server.stderr().contains("training"), "{}", server.stderr());
    assert_eq!(server.get("/v1/status")["events"], 300);
    let (code, _, stderr) = run(home.path(), &["serve"]);
    assert!(code == Some(2) && stderr.contains("expected one of them"), "{stderr}");
}

#[test]
fn another_model_is_swapped_in_while_the_server_runs() {
    let home = home(&STATS);
    let server = Served::start(home.path(), &["mine"]);
    server.post("/v1/events", &events(&rows(600..640)));
    let arguments = [
        "train",
        "--data",
        "mine/live",
        "--model",
        "stats",
        "--epochs",
        "1",
        "--seed",
        "3",
        "--out",
        "next",
        "--quiet",
    ];
    let (code, _, stderr) = run(home.path(), &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let before = scores(&server, 5000);
    let run_of = home.path().join("next").to_string_lossy().into_owned();
    let swapped = server.post("/v1/models", &json!({ "run": run_of }));
    assert_eq!(swapped, json!({"model": "next", "previous": "mine", "seq": 640}));
    let after = scores(&server, 5000);
    assert_ne!(after, before);
    let (code, answer) = server.request("POST", "/v1/models", &[], "{\"run\": \"nowhere\"}");
    assert!(code == 422 && answer["error"]["message"].as_str().expect("text").contains("stays as it was"), "{answer}");
    assert_eq!(server.get("/v1/models")["name"], "next");
    // SIGHUP loads the same run again.
    signal(server.id(), "HUP");
    server.until("loaded again", |server| server.stderr().matches("another model answers").count() == 2);
    assert_eq!(scores(&server, 5000), after);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_makes_the_server_read_only_and_back() {
    let has_prlimit = Command::new("prlimit").arg("--version").output().is_ok();
    if !has_prlimit {
        return;
    }
    let home = home(&STATS);
    drop(Served::start(home.path(), &["mine"]));
    let size = fs::metadata(home.path().join("mine/live/base.ctdg")).expect("a file").len();
    let server = Served::start_with(home.path(), &["mine"], Some(size + 4096));
    let mut last = 600;
    let refused = loop {
        let (status, answer) = server.request("POST", "/v1/events", &[], &events(&rows(last..last + 20)).to_string());
        if status != 200 {
            break (status, answer);
        }
        last += 20;
    };
    assert_eq!((refused.0, &refused.1["error"]["code"]), (507, &json!("read-only")), "{}", refused.1);
    let status = server.get("/v1/status");
    assert_eq!((&status["log"]["read_only"], &status["events"]), (&json!(true), &json!(last)));
    assert_eq!(scores(&server, 5000).len(), PAIRS.len(), "answers go on");
    let raised = Command::new("prlimit").args(["--fsize=unlimited", "--pid", &server.id().to_string()]).status();
    assert!(raised.expect("prlimit is there").success());
    assert_eq!(server.post("/v1/events", &events(&rows(last..last + 20)))["last_seq"], last + 20);
    assert_eq!(server.get("/v1/status")["log"]["read_only"], false);
    drop(server);
    let server = Served::start(home.path(), &["mine"]);
    assert_eq!(server.get("/v1/status")["events"], last + 20);
}

#[test]
fn explanations_nodes_and_the_description_are_there() {
    let home = home(&["--model", "hopedgn", "--set", "model.d-channel=4", "--set", "model.length=6"]);
    let server = Served::start(home.path(), &["mine"]);
    let why = server.post("/v1/score", &json!({"pairs": [{"src": 7, "dst": 9}], "explain": true}));
    assert!(why["scores"][0]["explanation"]["effects"].as_array().is_some_and(|effects| !effects.is_empty()), "{why}");
    let node = server.get("/v1/nodes/7?limit=2");
    assert_eq!(node["history"].as_array().map(Vec::len), Some(2), "{node}");
    assert_eq!(server.request("GET", "/v1/nodes/unheard-of", &[], "").1["error"]["code"], "unknown-node");
    let paths = server.get("/openapi.json")["paths"].as_object().expect("paths").clone();
    for path in ["/v1/events", "/v1/score", "/v1/recommend", "/v1/nodes/{id}", "/v1/status", "/v1/models", "/metrics"] {
        assert!(paths.contains_key(path), "{path}");
    }
}

/// Whether two documents are equal but for the last digits of numbers, which differ between processors.
fn is_alike(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            let [found, expected] = [found, expected].map(|number| number.as_f64().expect("a number"));
            (found - expected).abs() <= 0.02 * expected.abs()
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_alike(found, expected))
        }
        (Value::Object(found), Value::Object(expected)) => {
            let alike =
                |(name, value): (&String, &Value)| expected.get(name).is_some_and(|other| is_alike(value, other));
            found.len() == expected.len() && found.iter().all(alike)
        }
        _ => found == expected,
    }
}

#[test]
fn the_guide_begins_with_real_answers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/src/serve.md")).expect("a page");
    let block = page.split("```").nth(1).expect("a block");
    let home = tempfile::tempdir().expect("a folder");
    assert_eq!(run(home.path(), &["data", "convert", "collegemsg", "all.csv", "--quiet"]).0, Some(0));
    let all = fs::read_to_string(home.path().join("all.csv")).expect("a file");
    let lines: Vec<&str> = all.lines().take(2001).collect();
    fs::write(home.path().join("messages.csv"), lines.join("\n") + "\n").expect("a file");
    let server = Served::start(home.path(), &["--data", "messages.csv"]);
    let mut lines = block.lines().skip(1);
    let mut n_answers = 0;
    while let Some(command) = lines.next() {
        let command = command.strip_prefix("$ curl ").expect("a command").replace('\'', "");
        let (address, body) = command.split_once(" -d ").unwrap_or((&command, ""));
        let path = address.strip_prefix("localhost:8080").expect("an address");
        let found = server.request(if body.is_empty() { "GET" } else { "POST" }, path, &[], body).1;
        let expected: Value = serde_json::from_str(lines.next().expect("an answer")).expect("JSON");
        assert!(is_alike(&found, &expected), "{path}: {found}");
        n_answers += 1;
    }
    assert_eq!(n_answers, 3);
}
