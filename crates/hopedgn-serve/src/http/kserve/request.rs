//! Requests: a JSON document and, behind it, the bytes of tensors.

use ctdg::time::TimeFormat;
use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::ToSchema;

use super::super::Failure;
use super::outputs::{Encoding, Output};
use super::tensor::{Datatype, Element, Elements};
use crate::lanes::Pair;
use crate::wire::Time;

/// Pairs to score, as tensors. Parameters of extensions that the server does not have are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct InferRequest {
    /// The answer has the same.
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parameters: Option<RequestParameters>,
    /// `src` and `dst`, and perhaps `time`.
    inputs: Vec<InputTensor>,
    /// What is asked for; everything that the model gives by default.
    #[serde(default)]
    outputs: Option<Vec<RequestedOutput>>,
}

/// What holds for the whole request.
#[derive(Debug, Deserialize, ToSchema)]
struct RequestParameters {
    /// Whether outputs come as bytes behind the JSON document, unless they say themselves.
    #[serde(default)]
    binary_data_output: Option<bool>,
}

/// A tensor with an element for each pair.
#[derive(Debug, Deserialize, ToSchema)]
struct InputTensor {
    /// `src`, `dst`, or `time`; without times, just after the newest event.
    name: String,
    /// The number of pairs, perhaps with a 1 behind it.
    shape: Vec<u64>,
    /// `BYTES` or integers for nodes, `FP64` or integers for times.
    datatype: String,
    #[serde(default)]
    parameters: Option<InputParameters>,
    /// The elements, unless their bytes are behind the JSON document.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    data: Option<Elements>,
}

/// Where the elements of a tensor are, if not in the JSON document.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct InputParameters {
    /// How many of the bytes behind the JSON document and the tensors before.
    #[serde(default)]
    binary_data_size: Option<u64>,
}

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
struct RequestedOutput {
    /// `score` and, where the model gives probabilities, `probability`, `intensity` and `lift`.
    name: String,
    #[serde(default)]
    parameters: Option<OutputParameters>,
}

/// How an output is asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct OutputParameters {
    /// Whether it comes as bytes behind the JSON document.
    #[serde(default)]
    binary_data: Option<bool>,
    /// Refused: an answer without it would be taken for another.
    #[serde(default)]
    #[schema(ignore)]
    classification: Option<IgnoredAny>,
    #[serde(default)]
    #[schema(ignore)]
    shared_memory_region: Option<IgnoredAny>,
}

/// What a request asks for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: Option<String>,
    pub(super) pairs: Vec<Pair>,
    pub(super) outputs: Vec<(Output, Encoding)>,
}

/// What requests are read for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    /// The outputs of the model.
    pub(super) offered: &'static [Output],
    /// The most pairs.
    pub(super) most: usize,
    pub(super) format: TimeFormat,
}

impl Reader {
    /// Reads a body of which so many bytes are JSON, all of them by default.
    pub(super) fn read(self, body: &[u8], json_length: Option<usize>) -> Result<Asked, Failure> {
        let split = body.split_at_checked(json_length.unwrap_or(body.len()));
        let (json, binary) = split.ok_or_else(|| {
            let length = json_length.unwrap_or_default();
            Failure::invalid(format!("found a body of {} bytes, expected {length} of JSON by its header", body.len()))
        })?;
        let request: InferRequest = serde_json::from_slice(json)
            .map_err(|error| Failure::invalid(format!("found no inference request as JSON: {error}")))?;
        let is_binary = request.parameters.and_then(|parameters| parameters.binary_data_output).unwrap_or(false);
        let outputs = self.outputs(request.outputs.unwrap_or_default(), is_binary)?;
        Ok(Asked { id: request.id, pairs: self.pairs(request.inputs, binary)?, outputs })
    }

    fn outputs(self, requested: Vec<RequestedOutput>, is_binary: bool) -> Result<Vec<(Output, Encoding)>, Failure> {
        let encoding = |is_binary| if is_binary { Encoding::Binary } else { Encoding::Json };
        if requested.is_empty() {
            return Ok(self.offered.iter().map(|output| (*output, encoding(is_binary))).collect());
        }
        let mut outputs: Vec<(Output, Encoding)> = Vec::new();
        for RequestedOutput { name, parameters } in requested {
            let Some(&output) = self.offered.iter().find(|output| output.name() == name) else {
                let offered: Vec<&str> = self.offered.iter().map(|output| output.name()).collect();
                return Err(Failure::invalid(format!("found the output {name:?}, expected {}", offered.join(", "))));
            };
            if outputs.iter().any(|(other, _)| *other == output) {
                return Err(Failure::invalid(format!("found the output {name:?} twice, expected it once")));
            }
            let OutputParameters { binary_data, classification, shared_memory_region } = parameters.unwrap_or_default();
            if classification.is_some() || shared_memory_region.is_some() {
                let message = format!(
                    "output {name:?}: found classification or shared memory, expected `binary_data` or no parameter"
                );
                return Err(Failure::invalid(message));
            }
            outputs.push((output, encoding(binary_data.unwrap_or(is_binary))));
        }
        Ok(outputs)
    }

    fn pairs(self, inputs: Vec<InputTensor>, mut binary: &[u8]) -> Result<Vec<Pair>, Failure> {
        let (mut src, mut dst, mut time) = (None, None, None);
        for input in inputs {
            let (into, datatypes) = match &*input.name {
                "src" => (&mut src, &Datatype::OF_IDS),
                "dst" => (&mut dst, &Datatype::OF_IDS),
                "time" => (&mut time, &Datatype::OF_TIMES),
                name => return Err(Failure::invalid(format!("found the input {name:?}, expected src, dst and time"))),
            };
            let name = input.name.clone();
            let elements = self.elements(input, datatypes, &mut binary)?;
            if into.replace(elements).is_some() {
                return Err(Failure::invalid(format!("found the input {name:?} twice, expected it once")));
            }
        }
        if !binary.is_empty() {
            let message = format!("found {} bytes behind those of the inputs, expected none", binary.len());
            return Err(Failure::invalid(message));
        }
        let required = |name: &str| Failure::invalid(format!("found no input {name:?}, expected src and dst"));
        let (src, dst) = (src.ok_or_else(|| required("src"))?, dst.ok_or_else(|| required("dst"))?);
        let n = src.len();
        for (name, found) in [("dst", Some(dst.len())), ("time", time.as_ref().map(Vec::len))] {
            if let Some(found) = found.filter(|found| *found != n) {
                let message = format!("input {name:?}: found {found} elements, expected {n} as of src");
                return Err(Failure::invalid(message));
            }
        }
        let mut times = self.times(time)?.into_iter();
        let nodes = src.into_iter().zip(dst);
        Ok(nodes.map(|(src, dst)| Pair { src: id(src), dst: id(dst), time: times.next() }).collect())
    }

    /// The elements of `input`, from its data or from the first of the bytes.
    fn elements(self, input: InputTensor, among: &[Datatype], binary: &mut &[u8]) -> Result<Vec<Element>, Failure> {
        let InputTensor { name, shape, datatype, parameters, data } = input;
        let wrong = |message: String| Failure::invalid(format!("input {name:?}: {message}"));
        let n = match *shape {
            [n] | [n, 1] => usize::try_from(n).unwrap_or(usize::MAX),
            _ => return Err(wrong(format!("found the shape {shape:?}, expected [n] or [n, 1]"))),
        };
        if n > self.most {
            return Err(Failure::too_many("pairs", n, self.most));
        }
        let Some(kind) = among.iter().find(|kind| kind.name() == datatype) else {
            let names: Vec<&str> = among.iter().map(|kind| kind.name()).collect();
            return Err(wrong(format!("found the datatype {datatype:?}, expected {}", names.join(", "))));
        };
        match (data, parameters.unwrap_or_default().binary_data_size) {
            (Some(data), None) => kind.check(n, data).map_err(wrong),
            (None, Some(size)) => {
                let split = usize::try_from(size).ok().and_then(|size| binary.split_at_checked(size));
                let found = || format!("found {} bytes behind the JSON document, expected {size}", binary.len());
                let (bytes, rest) = split.ok_or_else(|| wrong(found()))?;
                *binary = rest;
                kind.decode(n, bytes).map_err(wrong)
            }
            (Some(_), Some(_)) => Err(wrong("found data and binary_data_size, expected one of them".to_owned())),
            (None, None) => Err(wrong("found neither data nor binary_data_size, expected one of them".to_owned())),
        }
    }

    fn times(self, elements: Option<Vec<Element>>) -> Result<Vec<f64>, Failure> {
        let time = |(at, element): (usize, Element)| {
            let number = match element {
                Element::Float(number) => number,
                Element::Integer(number) => number as f64,
                Element::Text(_) => f64::NAN,
            };
            let wrong = |message| Failure::invalid(format!("input \"time\": element {at}: {message}"));
            Time::Number(number).value(self.format).map_err(wrong)
        };
        elements.unwrap_or_default().into_iter().enumerate().map(time).collect()
    }
}

/// The id of a node.
fn id(element: Element) -> String {
    match element {
        Element::Text(text) => text,
        Element::Integer(number) => number.to_string(),
        Element::Float(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests;
