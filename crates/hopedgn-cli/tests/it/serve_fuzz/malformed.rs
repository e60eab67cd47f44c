//! Requests that are wrong in every way that a client, or an attacker, gets them wrong.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use ctdg::random::RandomStream;

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// Makes requests.
pub(super) struct Malformed {
    /// Sound ones, with a length.
    sound: Vec<Vec<u8>>,
    /// An Arrow stream of events.
    arrow: Vec<u8>,
}

/// A request with a body of a type.
fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\nconnection: close\r\n");
    [format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").into_bytes()
}

/// Events as an Arrow stream.
fn arrow() -> Vec<u8> {
    let columns: [(&str, ArrayRef); 5] = [
        ("src", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("dst", Arc::new(StringArray::from(vec!["100", "101", "x"]))),
        ("time", Arc::new(Float64Array::from(vec![300.0, 300.0, 301.0]))),
        ("label", Arc::new(Float32Array::from(vec![Some(0.0), None, Some(1.0)]))),
        ("id", Arc::new(StringArray::from(vec![None, None, Some("e1")]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a schema");
    writer.write(&batch).expect("a batch");
    writer.into_inner().expect("a stream")
}

impl Malformed {
    pub(super) fn new() -> Self {
        let arrow = arrow();
        let sound = vec![
            post(
                "/v1/events",
                JSON,
                br#"[{"src": 1, "dst": 2, "time": 250}, {"src": "a", "dst": 2, "time": 250, "id": "e"}]"#,
            ),
            post(
                "/v1/events",
                JSON,
                br#"{"events": [{"src": 1, "dst": 2, "time": 250, "label": 1.5, "features": []}]}"#,
            ),
            post(
                "/v1/events",
                LINES,
                b"{\"src\": 1, \"dst\": 2, \"time\": 250}\n{\"src\": 3, \"dst\": 4, \"time\": 251}\n",
            ),
            post("/v1/events", ARROW, &arrow),
            post("/v1/score", JSON, br#"{"pairs": [{"src": 100, "dst": 101}, {"src": 7, "dst": "x", "time": 99.5}]}"#),
            post("/v1/score", JSON, br#"{"pairs": [{"src": 100, "dst": 101}], "explain": true}"#),
            post("/v1/models", JSON, br#"{"run": "nowhere"}"#),
            get("/v1/recommend?src=100&k=3&exact=false&exclude_seen=true&reasons=true&time=150"),
            get("/v1/recommend?src=100"),
            get("/v1/nodes/100?limit=3"),
            get("/v1/status"),
            get("/v1/models"),
            get("/metrics"),
            get("/openapi.json"),
            get("/readyz"),
        ];
        Self { sound, arrow }
    }

    /// A request of any kind.
    pub(super) fn request(&self, random: &mut RandomStream) -> Vec<u8> {
        match random.index(10) {
            0 => bytes(random, 2_000),
            1..=3 => mutated(self.one(random).to_vec(), random),
            4 => chunked(random),
            5 => wrong_length(random),
            6 => large_head(random),
            7 => {
                let kind =
                    [JSON, LINES, ARROW, "text/plain", "application/json; charset=utf-16", "\u{1}"][random.index(6)];
                post(path(random), kind, &self.body(random))
            }
            8 => post(path(random), JSON, json(random, 0).as_bytes()),
            // Two at once, or a sound one.
            _ if random.chance(0.5) => [self.one(random), self.one(random)].concat(),
            _ => self.one(random).to_vec(),
        }
    }

    fn one(&self, random: &mut RandomStream) -> &[u8] {
        &self.sound[random.index(self.sound.len())]
    }

    fn body(&self, random: &mut RandomStream) -> Vec<u8> {
        match random.index(4) {
            0 => bytes(random, 500),
            1 => json(random, 0).into_bytes(),
            _ => mutated(self.arrow.clone(), random),
        }
    }
}

fn bytes(random: &mut RandomStream, most: usize) -> Vec<u8> {
    let n = 1 + random.index(most);
    (0..n).map(|_| random.next_u32().to_le_bytes()[0]).collect()
}

fn path(random: &mut RandomStream) -> &'static str {
    ["/v1/events", "/v1/events", "/v1/score", "/v1/models", "/nothing"][random.index(5)]
}

/// Changes a few bytes, or moves, removes and doubles parts.
fn mutated(mut bytes: Vec<u8>, random: &mut RandomStream) -> Vec<u8> {
    for _ in 0..=random.index(6) {
        let n = bytes.len().max(1);
        let (from, to) = (random.index(n), random.index(n));
        let (from, to) = (from.min(to).min(bytes.len()), from.max(to).min(bytes.len()));
        match random.index(7) {
            0 | 1 if from < bytes.len() => bytes[from] ^= 1 << random.index(8),
            2 if from < bytes.len() => bytes[from] = b"\0\n\r :/%{[\"-9\xff"[random.index(13)],
            3 => drop(bytes.drain(from..to.min(from + 20))),
            4 => {
                let part = bytes[from..to.min(from + 50)].to_vec();
                bytes.splice(to..to, part);
            }
            5 => bytes.truncate(to),
            _ => {
                let inserted = self::bytes(random, 8);
                bytes.splice(from..from, inserted);
            }
        }
    }
    bytes
}

fn chunked(random: &mut RandomStream) -> Vec<u8> {
    let head = "POST /v1/score HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: ";
    let coding = ["chunked", "chunked, chunked", "gzip, chunked", "identity", "chunked\r\ncontent-length: 5"];
    let sizes = ["5", "0", "-1", "ffffffffffffffff", "fffffffffffffffff", "5;x=y", "5 ", "", "zz", "05", "7fffffff"];
    let ends = ["\r\n", "\n", "", "\r\n\r\n", "\0"];
    let mut text = format!("{head}{}\r\n\r\n", coding[random.index(coding.len())]);
    for _ in 0..random.index(5) {
        let [one, other] = [ends[random.index(ends.len())], ends[random.index(ends.len())]];
        let size = sizes[random.index(sizes.len())];
        text.extend([size, one, ["{\"a\":", "hello", "[1, 2"][random.index(3)], other]);
    }
    text += ["0\r\n\r\n", "0\r\n", "", "0\r\nx: y\r\n\r\n"][random.index(4)];
    text.into_bytes()
}

fn wrong_length(random: &mut RandomStream) -> Vec<u8> {
    let body = r#"{"pairs": [{"src": 100, "dst": 101}]}"#;
    let lengths = [
        "0",
        "3",
        "36",
        "38",
        "1000",
        "-1",
        "+37",
        "37, 37",
        "99999999999",
        "18446744073709551616",
        "x",
        "",
        "37\r\ncontent-length: 5",
    ];
    let method = ["POST", "GET", "PUT", "BREW", "post", "CONNECT", ""][random.index(7)];
    let version = ["HTTP/1.1", "HTTP/1.0", "HTTP/2", "HTTP/9.9", "", "PRI"][random.index(6)];
    let length = lengths[random.index(lengths.len())];
    format!("{method} /v1/score {version}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn large_head(random: &mut RandomStream) -> Vec<u8> {
    let long = "a".repeat(1 << (10 + random.index(8)));
    match random.index(6) {
        0 => get(&format!("/v1/nodes/{long}")),
        1 => format!("GET /v1/status HTTP/1.1\r\nhost: x\r\nx: {long}\r\n\r\n").into_bytes(),
        2 => format!("GET /v1/status HTTP/1.1\r\n{long}: y\r\n\r\n").into_bytes(),
        3 => format!("GET /v1/status HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(random.index(500))).into_bytes(),
        4 => format!(
            "POST /v1/events HTTP/1.1\r\nidempotency-key: {long}\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n[]"
        )
        .into_bytes(),
        _ => get(&format!("/v1/recommend?src={long}&k=%00&k=-1&{}", "%ff%".repeat(random.index(2000)))),
    }
}

/// A document with the right names and wrong values.
fn json(random: &mut RandomStream, depth: usize) -> String {
    const NAMES: [&str; 12] =
        ["src", "dst", "time", "label", "id", "features", "pairs", "events", "explain", "run", "x", "\\ud800"];
    const VALUES: [&str; 20] = [
        "0",
        "-1",
        "1e999",
        "1.5",
        "18446744073709551616",
        "null",
        "true",
        "\"\"",
        "\"\\u0000\"",
        "\"2024-01-31\"",
        "NaN",
        "\"7\"",
        "100",
        "1e308",
        "-1e308",
        "[]",
        "{}",
        "\"\\ud800\"",
        "3e38",
        "\"\u{1f600}\"",
    ];
    match random.index(if depth > 4 { 1 } else { 5 }) {
        0 if depth > 0 => VALUES[random.index(VALUES.len())].to_owned(),
        1 => {
            let items: Vec<String> = (0..random.index(5)).map(|_| json(random, depth + 1)).collect();
            format!("[{}]", items.join(","))
        }
        2 if random.chance(0.2) => {
            let n = random.index(50_000);
            [&"[".repeat(n)[..], "{\"src\":"].concat()
        }
        _ => {
            let mut fields = Vec::new();
            for _ in 0..random.index(6) {
                fields.push(format!("\"{}\":{}", NAMES[random.index(NAMES.len())], json(random, depth + 1)));
            }
            format!("{{{}}}", fields.join(","))
        }
    }
}
