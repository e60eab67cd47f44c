//! The Open Inference Protocol under `/v2`.

use std::net::SocketAddr;

use hopedgn::ctdg::mite::PairQuery;
use hopedgn_serve::{Limits, ServeOptions, Tokens};
use serde_json::{Value, json};

use crate::common::{Headers, TestRun, events, header, request, start};

const JSON_LENGTH: &str = "Inference-Header-Content-Length";

/// Pairs of nodes with events, and one with a node that has none.
const PAIRS: [(&str, &str); 4] = [("3", "4"), ("3", "9"), ("19", "1"), ("3", "new")];

/// Trains a model that gives scores and no probabilities.
const SCORES_ONLY: &[&str] = &["train.objective=dyglib"];

fn get(address: SocketAddr, path: &str) -> (u16, Value) {
    let (status, _, body) = request(address, "GET", path, &[], &[]);
    (status, serde_json::from_slice(&body).unwrap())
}

/// Sends a document with the bytes of tensors behind it; returns the document and the bytes of the answer.
fn infer(address: SocketAddr, path: &str, document: &Value, binary: &[u8]) -> (u16, Value, Vec<u8>) {
    let mut body = document.to_string().into_bytes();
    let length = body.len().to_string();
    body.extend_from_slice(binary);
    let headers = [(JSON_LENGTH, &*length)];
    let headers = if binary.is_empty() { &[] } else { &headers[..] };
    let (status, headers, mut body) = request(address, "POST", path, headers, &body);
    let binary = match json_length(&headers) {
        Some(length) => body.split_off(length),
        None => Vec::new(),
    };
    (status, serde_json::from_slice(&body).unwrap(), binary)
}

fn json_length(headers: &Headers) -> Option<usize> {
    header(headers, "inference-header-content-length").map(|length| length.parse().unwrap())
}

/// The inputs of [`PAIRS`] as JSON.
fn json_inputs() -> Value {
    let n = PAIRS.len();
    json!([
        { "name": "src", "shape": [n], "datatype": "BYTES", "data": PAIRS.map(|(src, _)| src) },
        { "name": "dst", "shape": [n, 1], "datatype": "BYTES", "data": PAIRS.map(|(_, dst)| [dst]) },
    ])
}

/// The bits of an output, which is in the document, or at the start of `binary` and removed from it.
fn bits(output: &Value, name: &str, binary: &mut Vec<u8>) -> Vec<u32> {
    assert_eq!((&output["name"], &output["datatype"]), (&json!(name), &json!("FP32")));
    let values: Vec<u32> = match output["parameters"]["binary_data_size"].as_u64() {
        Some(size) => {
            let bytes: Vec<u8> = binary.drain(..usize::try_from(size).unwrap()).collect();
            bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
        }
        #[expect(clippy::cast_possible_truncation, reason = "the elements are f32")]
        None => {
            output["data"].as_array().unwrap().iter().map(|value| (value.as_f64().unwrap() as f32).to_bits()).collect()
        }
    };
    assert_eq!(output["shape"], json!([values.len()]));
    values
}

/// Those of the library.
fn expected(run: &TestRun) -> Vec<u32> {
    let end = events().end();
    let pairs = PAIRS.map(|(src, dst)| (src, dst, end));
    run.predictor().predict_many(&pairs).unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn scores_as_json_equal_those_of_the_library() {
    let run = TestRun::train(SCORES_ONLY);
    let server = start(run.options());
    let document = json!({ "id": "42", "inputs": json_inputs() });
    for path in ["/v2/models/small/infer", "/v2/models/small/versions/1/infer"] {
        let (status, answer, mut binary) = infer(server.address(), path, &document, &[]);
        assert_eq!(status, 200, "{answer}");
        assert_eq!(
            (&answer["id"], &answer["model_name"], &answer["model_version"]),
            (&json!("42"), &json!("small"), &json!("1"))
        );
        assert_eq!(answer["parameters"], json!({ "seq": events().len() }));
        assert_eq!(bits(&answer["outputs"][0], "score", &mut binary), expected(&run));
        assert_eq!((answer["outputs"].as_array().unwrap().len(), binary.len()), (1, 0));
    }
}

#[test]
fn scores_as_bytes_equal_those_of_the_library() {
    let run = TestRun::train(SCORES_ONLY);
    let server = start(run.options());
    let texts = |texts: [&str; 4]| -> Vec<u8> {
        texts
            .iter()
            .flat_map(|text| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat())
            .collect()
    };
    let (src, dst) = (texts(PAIRS.map(|(src, _)| src)), texts(PAIRS.map(|(_, dst)| dst)));
    let input = |name, bytes: &[u8]| json!({ "name": name, "shape": [4], "datatype": "BYTES", "parameters": { "binary_data_size": bytes.len() } });
    let document =
        json!({ "inputs": [input("src", &src), input("dst", &dst)], "parameters": { "binary_data_output": true } });
    let (status, answer, mut binary) =
        infer(server.address(), "/v2/models/small/infer", &document, &[src, dst].concat());
    assert_eq!((status, answer["outputs"][0].get("data")), (200, None), "{answer}");
    assert_eq!(bits(&answer["outputs"][0], "score", &mut binary), expected(&run));
    assert!(binary.is_empty());
}

#[test]
fn nodes_and_times_may_be_integers() {
    let run = TestRun::train(SCORES_ONLY);
    let server = start(run.options());
    let (src, dst, times) = ([3_i64, 3, 19], [4_u64, 9, 1], [100_i64, 150, 500]);
    let document = json!({ "inputs": [
        { "name": "src", "shape": [3], "datatype": "INT64", "parameters": { "binary_data_size": 24 } },
        { "name": "dst", "shape": [3], "datatype": "UINT64", "data": dst },
        { "name": "time", "shape": [3], "datatype": "INT64", "parameters": { "binary_data_size": 24 } },
    ] });
    let bytes = |numbers: [i64; 3]| numbers.map(i64::to_le_bytes).concat();
    let binary = [bytes(src), bytes(times)].concat();
    let (status, answer, mut rest) = infer(server.address(), "/v2/models/small/infer", &document, &binary);
    assert_eq!(status, 200, "{answer}");
    let pairs = [("3", "4", 100.0), ("3", "9", 150.0), ("19", "1", 500.0)];
    let expected: Vec<u32> = run.predictor().predict_many(&pairs).unwrap().into_iter().map(f32::to_bits).collect();
    assert_eq!(bits(&answer["outputs"][0], "score", &mut rest), expected);
}

#[test]
fn likelihoods_are_outputs_where_the_model_gives_them() {
    let run = TestRun::train(&["train.objective=intensity"]);
    let server = start(run.options());
    let (_, metadata) = get(server.address(), "/v2/models/small");
    let names: Vec<&Value> = metadata["outputs"].as_array().unwrap().iter().map(|output| &output["name"]).collect();
    assert_eq!(names, ["score", "probability", "intensity", "lift"]);

    let (predictor, events) = (run.predictor(), events());
    let (src, dst, time) = (events.src()[7], events.dst()[7], 200.0);
    let likelihood =
        predictor.predictions(&[PairQuery { src, dst, time }], &mut |_| {}).unwrap()[0].likelihood.unwrap();
    let document = json!({
        "inputs": [
            { "name": "src", "shape": [1], "datatype": "BYTES", "data": [events.names().name(src)] },
            { "name": "dst", "shape": [1], "datatype": "BYTES", "data": [events.names().name(dst)] },
            { "name": "time", "shape": [1], "datatype": "FP64", "data": [time] },
        ],
        "outputs": [
            { "name": "lift", "parameters": { "binary_data": true } },
            { "name": "probability" },
            { "name": "intensity", "parameters": { "binary_data": true } },
        ],
    });
    let (status, answer, mut binary) = infer(server.address(), "/v2/models/small/infer", &document, &[]);
    assert_eq!(status, 200, "{answer}");
    let expected =
        [("lift", likelihood.lift), ("probability", likelihood.probability), ("intensity", likelihood.intensity)];
    for (at, (name, value)) in expected.into_iter().enumerate() {
        assert_eq!(bits(&answer["outputs"][at], name, &mut binary), [value.to_bits()]);
    }
    assert!(binary.is_empty());
}

#[test]
fn metadata_says_what_server_and_model_are() {
    let run = TestRun::train(SCORES_ONLY);
    let server = start(run.options());
    let get = |path: &str| get(server.address(), path);
    assert_eq!(get("/v2/health/live"), (200, json!({ "live": true })));
    assert_eq!(get("/v2/health/ready"), (200, json!({ "ready": true })));
    let (status, metadata) = get("/v2");
    assert_eq!((status, &metadata["extensions"]), (200, &json!(["binary_tensor_data"])));
    let tensor = |name, datatype| json!({ "name": name, "datatype": datatype, "shape": [-1] });
    let model = json!({
        "name": "small", "versions": ["1"], "platform": "hopedgn_safetensors",
        "inputs": [tensor("src", "BYTES"), tensor("dst", "BYTES"), tensor("time", "FP64")],
        "outputs": [tensor("score", "FP32")],
    });
    for of in ["/v2/models/small", "/v2/models/small/versions/1"] {
        assert_eq!(get(of), (200, model.clone()));
        assert_eq!(get(&format!("{of}/ready")), (200, json!({ "name": "small", "ready": true })));
    }
    let (status, _, index) = request(server.address(), "POST", "/v2/repository/index", &[], &[]);
    let index: Value = serde_json::from_slice(&index).unwrap();
    assert_eq!((status, index), (200, json!([{ "name": "small", "version": "1", "state": "READY", "reason": "" }])));
    let (_, description) = get("/openapi.json");
    assert!(description["paths"]["/v2/models/{model}/versions/{version}/infer"]["post"].is_object());
}

#[test]
fn every_error_is_one_text() {
    let run = TestRun::train(SCORES_ONLY);
    let limits = Limits { pairs: 3, body_bytes: 4096, ..Limits::default() };
    let server = start(ServeOptions { limits, ..run.options() });
    let check = |method: &str, path: &str, body: &[u8], expected: u16, text: &str| {
        let (status, _, body) = request(server.address(), method, path, &[], body);
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, answer.as_object().map(serde_json::Map::len)), (expected, Some(1)), "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(text), "{answer}");
    };
    let infer = "/v2/models/small/infer";
    for path in ["/v2/models/large", "/v2/models/large/ready", "/v2/models/large/versions/1"] {
        check("GET", path, b"", 404, r#"found no model "large", expected "small""#);
    }
    check("GET", "/v2/models/small/versions/2/ready", b"", 404, r#"found no version "2", expected "1""#);
    check("GET", "/v2/nothing", b"", 404, "found no /v2/nothing");
    check("GET", infer, b"", 405, "found another method");
    check("POST", "/v2/models/large/infer", b"", 404, "found no model");
    check("POST", infer, b"{", 400, "found no inference request as JSON");
    check("POST", infer, &[b' '; 4097], 413, "limit");
    check(
        "POST",
        infer,
        json!({ "inputs": json_inputs() }).to_string().as_bytes(),
        413,
        "found 4 pairs, expected at most 3",
    );
    check("GET", "/v2/models/%ff", b"", 400, "");
    // Errors of other paths have a code.
    let (_, other) = get(server.address(), "/v1/nothing");
    assert_eq!(other["error"]["code"], "not-found");
}

#[test]
fn bodies_that_are_compressed_or_shorter_than_their_header_says_are_refused() {
    let run = TestRun::train(SCORES_ONLY);
    let server = start(run.options());
    let check = |headers: &[(&str, &str)], expected: u16, text: &str| {
        let (status, _, body) = request(server.address(), "POST", "/v2/models/small/infer", headers, b"{}");
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, answer["error"].as_str()), (expected, Some(text)));
    };
    check(
        &[("Content-Encoding", "gzip")],
        415,
        "found a body with Content-Encoding \"gzip\", expected one that is not compressed",
    );
    check(&[(JSON_LENGTH, "3")], 400, "found a body of 2 bytes, expected 3 of JSON by its header");
    check(&[(JSON_LENGTH, "-1")], 400, "found \"-1\" as Inference-Header-Content-Length, expected a number of bytes");
}

#[test]
fn only_health_is_open_without_a_token() {
    let run = TestRun::train(SCORES_ONLY);
    let tokens = Tokens { read: vec!["of a reader".into()], write: Vec::new() };
    let server = start(ServeOptions { tokens, ..run.options() });
    let ask = |method, path, headers: &[(&str, &str)]| request(server.address(), method, path, headers, &[]);
    for path in ["/v2/health/live", "/v2/health/ready"] {
        assert_eq!(ask("GET", path, &[]).0, 200);
    }
    for (method, path) in [
        ("GET", "/v2"),
        ("GET", "/v2/models/small"),
        ("GET", "/v2/models/small/versions/1/ready"),
        ("POST", "/v2/repository/index"),
        ("POST", "/v2/models/small/infer"),
    ] {
        let (status, headers, body) = ask(method, path, &[]);
        assert_eq!((status, header(&headers, "www-authenticate")), (401, Some("Bearer")), "{path}");
        assert!(serde_json::from_slice::<Value>(&body).unwrap()["error"].is_string());
        assert_ne!(ask(method, path, &[("Authorization", "Bearer of a reader")]).0, 401, "{path}");
    }
}
