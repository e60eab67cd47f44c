use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const READER: Reader = Reader { offered: &Output::ALL, most: 4, format: TimeFormat::Number };

fn read(request: &Value, binary: &[u8]) -> Result<Asked, Failure> {
    let mut body = request.to_string().into_bytes();
    let length = body.len();
    body.extend_from_slice(binary);
    READER.read(&body, Some(length))
}

fn message(request: &Value, binary: &[u8]) -> String {
    read(request, binary).expect_err("malformed").message().to_owned()
}

/// Of one pair, in bytes.
fn binary_request() -> (Value, Vec<u8>) {
    let src = json!({ "name": "src", "shape": [1], "datatype": "BYTES", "parameters": { "binary_data_size": 5 } });
    let dst = json!({ "name": "dst", "shape": [1, 1], "datatype": "INT64", "parameters": { "binary_data_size": 8 } });
    let binary = [&[1, 0, 0, 0, b'a'][..], &(-7_i64).to_le_bytes()].concat();
    (json!({ "inputs": [src, dst], "parameters": { "binary_data_output": true } }), binary)
}

#[test]
fn tensors_of_bytes_follow_the_document_in_order() {
    let (request, binary) = binary_request();
    let Asked { id, pairs, outputs } = read(&request, &binary).unwrap();
    assert_eq!((id, pairs.len()), (None, 1));
    assert_eq!((&*pairs[0].src, &*pairs[0].dst, pairs[0].time), ("a", "-7", None));
    assert_eq!(outputs, Output::ALL.map(|output| (output, Encoding::Binary)));
}

#[test]
fn requested_outputs_say_how_they_come() {
    let (mut request, binary) = binary_request();
    request["outputs"] = json!([{ "name": "lift" }, { "name": "score", "parameters": { "binary_data": false } }]);
    let outputs = read(&request, &binary).unwrap().outputs;
    assert_eq!(outputs, [(Output::Lift, Encoding::Binary), (Output::Score, Encoding::Json)]);
    request["outputs"] = json!([{ "name": "rank" }]);
    assert_eq!(message(&request, &binary), r#"found the output "rank", expected score, probability, intensity, lift"#);
    request["outputs"] = json!([{ "name": "lift" }, { "name": "lift" }]);
    assert_eq!(message(&request, &binary), r#"found the output "lift" twice, expected it once"#);
    request["outputs"] = json!([{ "name": "lift", "parameters": { "classification": 2 } }]);
    assert!(message(&request, &binary).contains("found classification"));
}

#[test]
fn nulls_and_unknown_parameters_are_ignored() {
    let ids =
        |name| json!({ "name": name, "shape": [2], "datatype": "UINT64", "parameters": null, "data": [[1], [2]] });
    let time = json!({ "name": "time", "shape": [2], "datatype": "FP64", "data": [3, 4.5], "parameters": { "x": 1 } });
    let request = json!({
        "id": "mine", "outputs": null, "parameters": { "priority": 3 }, "inputs": [time, ids("dst"), ids("src")]
    });
    let asked = read(&request, &[]).unwrap();
    assert_eq!(asked.id.as_deref(), Some("mine"));
    let pairs: Vec<(&str, &str, Option<f64>)> =
        asked.pairs.iter().map(|pair| (&*pair.src, &*pair.dst, pair.time)).collect();
    assert_eq!(pairs, [("1", "1", Some(3.0)), ("2", "2", Some(4.5))]);
}

#[test]
fn errors_say_what_was_found_and_expected() {
    let input = |name: &str, shape: Value, datatype: &str, data: Value| json!({ "name": name, "shape": shape, "datatype": datatype, "data": data });
    let [src, dst] = ["src", "dst"].map(|name| input(name, json!([1]), "BYTES", json!(["a"])));
    let with = |third: Value| json!({ "inputs": [src.clone(), dst.clone(), third] });
    for (request, expected) in [
        (json!({ "inputs": [src] }), r#"found no input "dst", expected src and dst"#),
        (with(src.clone()), r#"found the input "src" twice, expected it once"#),
        (with(input("x", json!([1]), "BYTES", json!(["a"]))), r#"found the input "x", expected src, dst and time"#),
        (
            with(input("time", json!([2]), "FP64", json!([1, 2]))),
            r#"input "time": found 2 elements, expected 1 as of src"#,
        ),
        (
            with(input("time", json!([1, 2]), "FP64", json!([1, 2]))),
            r#"input "time": found the shape [1, 2], expected [n] or [n, 1]"#,
        ),
        (
            with(input("time", json!([1]), "BYTES", json!(["1"]))),
            r#"input "time": found the datatype "BYTES", expected FP64, INT64, UINT64, INT32, UINT32"#,
        ),
        (
            with(json!({ "name": "time", "shape": [1], "datatype": "FP64" })),
            r#"input "time": found neither data nor binary_data_size, expected one of them"#,
        ),
        (
            with(json!({ "name": "time", "shape": [1], "datatype": "FP64", "parameters": { "binary_data_size": 8 } })),
            r#"input "time": found 0 bytes behind the JSON document, expected 8"#,
        ),
        (
            json!({ "inputs": [input("src", json!([5]), "BYTES", json!([]))] }),
            "found 5 pairs, expected at most 4; send them in several requests",
        ),
    ] {
        assert_eq!(message(&request, &[]), expected);
    }
    let nan = json!({ "name": "time", "shape": [1], "datatype": "FP64", "parameters": { "binary_data_size": 8 } });
    let not_finite = r#"input "time": element 0: found the time NaN, expected a finite number"#;
    assert_eq!(message(&with(nan), &f64::NAN.to_le_bytes()), not_finite);
    let (request, binary) = binary_request();
    let more = [&*binary, &[0; 3]].concat();
    assert_eq!(message(&request, &more), "found 3 bytes behind those of the inputs, expected none");
    let long = READER.read(b"{}", Some(3)).unwrap_err();
    assert_eq!(long.message(), "found a body of 2 bytes, expected 3 of JSON by its header");
}

proptest! {
    /// Only the request that is right as it stands is read; no other panics.
    #[test]
    fn sizes_that_do_not_fit_are_refused(
        sizes in [prop_oneof![0_u64..16, any::<u64>()], prop_oneof![0_u64..16, any::<u64>()]],
        shapes in [prop_oneof![0_u64..4, any::<u64>()], prop_oneof![0_u64..4, any::<u64>()]],
        length in prop_oneof![0_usize..400, any::<usize>()],
        cut in 0_usize..13,
    ) {
        let (mut request, binary) = binary_request();
        let is_right = sizes == [5, 8] && shapes == [1, 1] && cut == 0;
        for at in 0..2 {
            request["inputs"][at]["parameters"]["binary_data_size"] = json!(sizes[at]);
            request["inputs"][at]["shape"] = json!([shapes[at]]);
        }
        prop_assert_eq!(read(&request, &binary[..binary.len() - cut]).is_ok(), is_right);
        let mut body = request.to_string().into_bytes();
        let right = body.len();
        body.extend_from_slice(&binary);
        prop_assert!(length == right || READER.read(&body, Some(length)).is_err());
    }
}
