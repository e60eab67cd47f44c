//! Tensors of answers: scores and likelihoods as JSON, or as little-endian bytes behind it.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use hopedgn::predict::Prediction;
use serde::Serialize;
use utoipa::ToSchema;

/// How many bytes of a body are JSON; the others are those of tensors.
pub(super) const JSON_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Score,
    Probability,
    Intensity,
    Lift,
}

impl Output {
    /// All of them; models that give no probabilities have only the first.
    pub(super) const ALL: [Self; 4] = [Self::Score, Self::Probability, Self::Intensity, Self::Lift];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Probability => "probability",
            Self::Intensity => "intensity",
            Self::Lift => "lift",
        }
    }

    /// The element of a pair.
    pub(super) fn of(self, prediction: &Prediction) -> Option<f32> {
        match self {
            Self::Score => Some(prediction.score),
            Self::Probability => prediction.likelihood.map(|of| of.probability),
            Self::Intensity => prediction.likelihood.map(|of| of.intensity),
            Self::Lift => prediction.likelihood.map(|of| of.lift),
        }
    }
}

/// How a tensor is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Binary,
}

/// Scores of pairs, as tensors.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct InferAnswer {
    /// That of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The model that computed them.
    pub(super) model_name: String,
    pub(super) model_version: &'static str,
    pub(super) parameters: AnswerParameters,
    /// In the order they were asked for.
    pub(super) outputs: Vec<OutputTensor>,
}

/// What an answer says beside tensors.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AnswerParameters {
    /// The number of events the model looked back on.
    pub(super) seq: u64,
}

/// A tensor with an element for each pair.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OutputTensor {
    name: &'static str,
    datatype: &'static str,
    shape: [usize; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<BinarySize>,
    /// Without it, the elements are behind the JSON document.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<f32>>,
}

/// Where the elements of a tensor are, if not in the JSON document.
#[derive(Debug, Serialize, ToSchema)]
struct BinarySize {
    /// How many of the bytes behind the JSON document and the tensors before.
    binary_data_size: usize,
}

impl OutputTensor {
    /// A tensor of `values`, whose bytes come at the end of `binary` where it is sent as such.
    pub(super) fn new(output: Output, values: Vec<f32>, encoding: Encoding, binary: &mut Vec<u8>) -> Self {
        let shape = [values.len()];
        let (parameters, data) = match encoding {
            Encoding::Json => (None, Some(values)),
            Encoding::Binary => {
                let before = binary.len();
                binary.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                (Some(BinarySize { binary_data_size: binary.len() - before }), None)
            }
        };
        Self { name: output.name(), datatype: "FP32", shape, parameters, data }
    }

    fn is_binary(&self) -> bool {
        self.data.is_none()
    }
}

impl InferAnswer {
    /// The response with the bytes of the tensors.
    pub(super) fn with_binary(self, binary: &[u8]) -> Response {
        if !self.outputs.iter().any(OutputTensor::is_binary) {
            return axum::Json(self).into_response();
        }
        let Ok(mut body) = serde_json::to_vec(&self) else {
            return super::Failure::from(crate::lanes::NoAnswer::Defect).into_response();
        };
        let json_length = HeaderValue::from(body.len());
        body.extend_from_slice(binary);
        let kind = HeaderValue::from_static("application/octet-stream");
        ([(CONTENT_TYPE, kind), (JSON_LENGTH, json_length)], body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// The elements as a client reads them.
    fn decoded(tensor: &OutputTensor, binary: &[u8]) -> Vec<f32> {
        let tensor = serde_json::to_string(tensor).unwrap();
        let tensor: Value = serde_json::from_str(&tensor).unwrap();
        if let Some(size) = tensor["parameters"]["binary_data_size"].as_u64() {
            assert_eq!((size, tensor.get("data")), (binary.len() as u64, None));
            return binary.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        }
        assert!(binary.is_empty());
        #[expect(clippy::cast_possible_truncation, reason = "the elements are f32")]
        tensor["data"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect()
    }

    proptest! {
        #[test]
        fn outputs_are_read_back_as_they_were_computed(values in vec(prop::num::f32::NORMAL | prop::num::f32::ZERO, 0..20)) {
            for encoding in [Encoding::Json, Encoding::Binary] {
                let mut binary = Vec::new();
                let tensor = OutputTensor::new(Output::Lift, values.clone(), encoding, &mut binary);
                let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(&decoded(&tensor, &binary)), bits(&values));
            }
        }
    }
}
