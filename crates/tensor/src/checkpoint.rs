//! Checkpoints: parameters and optimizer state as a safetensors file.
//!
//! Parameters are stored under their own names, so that any reader of safetensors finds them. The state of [`Adam`] is
//! stored under `adam/mean/NAME`, `adam/square/NAME` and `adam/n-steps`; extra tensors under `beside/NAME`; strings in the
//! file's `__metadata__`, so that training progress and weights are written together or not at all. The metadata also hold the
//! format of the file and a checksum of everything in it, which [`load`] verifies.

mod seal;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use safetensors::{Dtype, SafeTensors};
use write::{Entry, Values};

use crate::{Adam, Error, Parameters, Result, Tensor};

const ADAM: &str = "adam/";
const N_STEPS: &str = "adam/n-steps";
const EXTRA: &str = "beside/";

fn mean_name(name: &str) -> String {
    format!("{ADAM}mean/{name}")
}

fn square_name(name: &str) -> String {
    format!("{ADAM}square/{name}")
}

/// Serialises `parameters`, the optimizer state if given, and `metadata` to the bytes of a safetensors file.
///
/// The same values give the same bytes.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use hopedgn_tensor::{Parameters, Tensor, load, save};
///
/// let mut parameters = Parameters::default();
/// let id = parameters.add("head.bias", Tensor::vector(vec![0.5]))?;
/// let metadata = BTreeMap::from([("epoch".to_owned(), "7".to_owned())]);
/// let bytes = save(&parameters, None, &metadata)?;
///
/// parameters.get_mut(id).values_mut()[0] = 0.0;
/// assert_eq!(load(&bytes, &mut parameters, None)?, metadata);
/// assert_eq!(parameters.get(id).values(), [0.5]);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
pub fn save(parameters: &Parameters, adam: Option<&Adam>, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>> {
    save_with_extras(parameters, adam, &[], metadata)
}

/// [`save`] with extra tensors that are not parameters, such as a memory, which [`load_extras`] reads.
pub fn save_with_extras(
    parameters: &Parameters,
    adam: Option<&Adam>,
    extras: &[(&str, &Tensor)],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let mut tensors: Vec<(String, &Tensor)> = Vec::new();
    for (id, name, tensor) in parameters.iter() {
        tensors.push((name.to_owned(), tensor));
        if let Some(adam) = adam {
            tensors.push((mean_name(name), &adam.means[id.0]));
            tensors.push((square_name(name), &adam.squares[id.0]));
        }
    }
    tensors.extend(extras.iter().map(|(name, tensor)| (format!("{EXTRA}{name}"), *tensor)));
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    // The wider type first, so that every value is aligned.
    let mut entries = Vec::with_capacity(tensors.len() + 1);
    entries.extend(adam.map(|adam| Entry { name: N_STEPS, shape: vec![1], values: Values::Steps(adam.n_steps) }));
    for (name, tensor) in &tensors {
        entries.push(Entry { name, shape: tensor.shape().dims(), values: Values::Floats(tensor.values()) });
    }
    Ok(write::file(&entries, metadata))
}

/// Reads the bytes of [`save`] into `parameters` and, if given, into the optimizer, and returns the metadata.
///
/// The file must hold exactly the tensors of `parameters`, with their shapes and finite values, and must not have changed since
/// it was saved. Optimizer state and extra tensors may be left unread. On an error nothing is changed.
pub fn load(bytes: &[u8], parameters: &mut Parameters, adam: Option<&mut Adam>) -> Result<BTreeMap<String, String>> {
    let mut file = File { tensors: SafeTensors::deserialize(bytes)?, seen: BTreeSet::new() };
    let metadata = seal::open(&file.tensors, raw_metadata(bytes)?)?;
    let mut loaded = Vec::new();
    let mut state = Vec::new();
    for (id, name, tensor) in parameters.iter() {
        let weights = file.tensor(name, tensor)?;
        if let Some(&value) = weights.values().iter().find(|value| !value.is_finite()) {
            return Err(Error::NonFinite { name: name.to_owned(), value });
        }
        loaded.push((id, weights));
        if adam.is_some() {
            state.push((file.tensor(&mean_name(name), tensor)?, file.tensor(&square_name(name), tensor)?));
        }
    }
    let n_steps = if adam.is_some() { file.n_steps()? } else { 0 };
    file.check_extra(adam.is_some())?;

    for (id, tensor) in loaded {
        *parameters.get_mut(id) = tensor;
    }
    if let Some(adam) = adam {
        adam.n_steps = n_steps;
        (adam.means, adam.squares) = state.into_iter().unzip();
    }
    Ok(metadata)
}

/// The metadata given to [`save`], without reading the tensors into a model. A damaged file is refused as by [`load`].
///
/// ```
/// use std::collections::BTreeMap;
///
/// use hopedgn_tensor::{Parameters, load_metadata, save};
///
/// let metadata = BTreeMap::from([("epoch".to_owned(), "7".to_owned())]);
/// let mut bytes = save(&Parameters::default(), None, &metadata)?;
/// assert_eq!(load_metadata(&bytes)?, metadata);
/// let at = bytes.windows(7).position(|word| word == b"\"epoch\"").unwrap();
/// bytes[at + 9] = b'8';
/// assert!(load_metadata(&bytes).unwrap_err().to_string().contains("checksum"));
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
pub fn load_metadata(bytes: &[u8]) -> Result<BTreeMap<String, String>> {
    seal::open(&SafeTensors::deserialize(bytes)?, raw_metadata(bytes)?)
}

fn raw_metadata(bytes: &[u8]) -> Result<BTreeMap<String, String>> {
    let (_, header) = SafeTensors::read_metadata(bytes)?;
    Ok(header.metadata().clone().unwrap_or_default().into_iter().collect())
}

/// The extra tensors of a file, by name. The file is not verified again: [`load`] does that.
pub fn load_extras(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>> {
    let tensors = SafeTensors::deserialize(bytes)?;
    let mut extras = BTreeMap::new();
    for name in tensors.names() {
        let Some(short) = name.strip_prefix(EXTRA) else { continue };
        let view = tensors.tensor(name)?;
        let tensor = match (view.dtype(), view.shape()) {
            (Dtype::F32, &[rows, cols]) => Tensor::matrix(rows, cols, floats(view.data()))?,
            (Dtype::F32, &[_]) => Tensor::vector(floats(view.data())),
            (dtype, _) => {
                let got = format!("{dtype:?}");
                return Err(Error::CheckpointKind { name: name.to_owned(), got, needed: "F32" });
            }
        };
        extras.insert(short.to_owned(), tensor);
    }
    Ok(extras)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

struct File<'a> {
    tensors: SafeTensors<'a>,
    /// The names that were read.
    seen: BTreeSet<String>,
}

impl File<'_> {
    fn bytes(&mut self, name: &str, dtype: Dtype, needed: &'static str) -> Result<(Vec<usize>, &[u8])> {
        let missing = |_| Error::Missing { name: name.to_owned() };
        self.seen.insert(name.to_owned());
        let view = self.tensors.tensor(name).map_err(missing)?;
        if view.dtype() != dtype {
            let got = format!("{:?}", view.dtype());
            return Err(Error::CheckpointKind { name: name.to_owned(), got, needed });
        }
        Ok((view.shape().to_vec(), view.data()))
    }

    /// The tensor called `name`, with the shape of `like`.
    fn tensor(&mut self, name: &str, like: &Tensor) -> Result<Tensor> {
        let (got, bytes) = self.bytes(name, Dtype::F32, "F32")?;
        if got != like.shape().dims() {
            return Err(Error::CheckpointShape { name: name.to_owned(), got, needed: like.shape() });
        }
        Tensor::new(like.shape(), floats(bytes))
    }

    fn n_steps(&mut self) -> Result<u64> {
        let (got, bytes) = self.bytes(N_STEPS, Dtype::U64, "U64")?;
        let word = bytes.as_array::<8>().copied();
        let wrong = || Error::CheckpointShape { name: N_STEPS.to_owned(), got, needed: crate::Shape::Vector(1) };
        word.map(u64::from_le_bytes).ok_or_else(wrong)
    }

    /// Refuses tensors that were not read; optimizer state counts only with an optimizer.
    fn check_extra(&self, with_adam: bool) -> Result<()> {
        let mut names = self.tensors.names();
        names.sort_unstable();
        let counts = |name: &str| !name.starts_with(EXTRA) && (with_adam || !name.starts_with(ADAM));
        let extra = names.into_iter().find(|&name| !self.seen.contains(name) && counts(name));
        extra.map_or(Ok(()), |name| Err(Error::Extra { name: name.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::testkit::{matrix, vector};
    use crate::{AdamConfig, Gradients, Shape, Tape};

    fn model(seed: u64) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.add("head.weight", matrix(seed, 2, 3)).unwrap();
        parameters.add("head.bias", vector(seed + 1, 2)).unwrap();
        parameters
    }

    /// A model after one step.
    fn trained() -> (Parameters, Adam) {
        let mut parameters = model(1);
        let mut adam = Adam::new(AdamConfig::default(), &parameters);
        let mut gradients = Gradients::zeros(&parameters);
        let mut tape = Tape::new(&parameters);
        let weight = tape.parameter(parameters.id("head.weight").unwrap());
        tape.backward_from(weight, matrix(9, 2, 3), &mut gradients).unwrap();
        adam.step(&mut parameters, &gradients);
        (parameters, adam)
    }

    #[test]
    fn saved_parameters_and_optimizer_state_load_bit_for_bit() {
        let (parameters, adam) = trained();
        let bytes = save(&parameters, Some(&adam), &BTreeMap::new()).unwrap();
        let mut other = model(5);
        let mut other_adam = Adam::new(AdamConfig::default(), &other);
        load(&bytes, &mut other, Some(&mut other_adam)).unwrap();
        assert_eq!((&other, &other_adam), (&parameters, &adam));
        assert_eq!(save(&other, Some(&other_adam), &BTreeMap::new()).unwrap(), bytes);

        let mut alone = model(5);
        load(&bytes, &mut alone, None).unwrap();
        assert_eq!(alone, parameters);
    }

    #[test]
    fn extra_tensors_are_saved_and_loaded() {
        let (parameters, adam) = trained();
        let extras = BTreeMap::from([("table".to_owned(), matrix(3, 4, 2)), ("row".to_owned(), vector(4, 3))]);
        let by_name: Vec<(&str, &Tensor)> = extras.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let bytes = save_with_extras(&parameters, Some(&adam), &by_name, &BTreeMap::new()).unwrap();
        assert_eq!(load_extras(&bytes).unwrap(), extras);
        let mut alone = model(5);
        load(&bytes, &mut alone, None).unwrap();
        assert_eq!(alone, parameters);
        assert!(load_extras(&save(&parameters, None, &BTreeMap::new()).unwrap()).unwrap().is_empty());
    }

    /// Loading a file of `saved` into `model` fails with `message` and changes nothing.
    fn check(saved: &Parameters, mut model: Parameters, message: &str) {
        let before = model.clone();
        let error = load(&save(saved, None, &BTreeMap::new()).unwrap(), &mut model, None).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
        assert_eq!(model, before);
    }

    #[test]
    fn a_checkpoint_of_another_model_is_refused() {
        let mut larger = model(1);
        larger.add("tail", vector(1, 2)).unwrap();
        check(&model(1), larger.clone(), "the checkpoint has no tensor `tail`");
        check(&larger, model(1), "the checkpoint holds `tail`, which this model does not have");
        let mut wider = Parameters::default();
        wider.add("head.weight", Tensor::zeros(Shape::Matrix(2, 4))).unwrap();
        wider.add("head.bias", vector(1, 2)).unwrap();
        check(&wider, model(1), "`head.weight` has shape [2, 4] in the checkpoint, but [2, 3] in the model");
    }

    #[test]
    fn metadata_is_saved_deterministically() {
        let (parameters, adam) = trained();
        let strings = [("epoch", "7"), ("best", "0.9 \"so far\"\n"), ("ключ", "{\\}"), ("", "")];
        let metadata: BTreeMap<String, String> =
            strings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let bytes = save(&parameters, Some(&adam), &metadata).unwrap();
        assert_eq!(save(&parameters, Some(&adam), &metadata).unwrap(), bytes);
        let mut other = model(5);
        assert_eq!(load(&bytes, &mut other, None).unwrap(), metadata);
        assert_eq!(other, parameters);
        let plain = save(&parameters, Some(&adam), &BTreeMap::new()).unwrap();
        assert_eq!(load(&plain, &mut other, None).unwrap(), BTreeMap::new());
        let mut nothing = Parameters::default();
        let bytes = save(&nothing, None, &metadata).unwrap();
        assert_eq!(load(&bytes, &mut nothing, None).unwrap(), metadata);
    }

    #[test]
    fn a_checkpoint_without_optimizer_state_cannot_restore_an_optimizer() {
        let mut parameters = model(1);
        let bytes = save(&parameters, None, &BTreeMap::new()).unwrap();
        let mut adam = Adam::new(AdamConfig::default(), &parameters);
        let error = load(&bytes, &mut parameters, Some(&mut adam)).unwrap_err();
        assert!(error.to_string().contains("no tensor `adam/mean/head.weight`"), "{error}");
    }

    #[test]
    fn every_flipped_byte_is_refused_or_changes_nothing() {
        let (parameters, adam) = trained();
        let metadata = BTreeMap::from([("epoch".to_owned(), "7".to_owned())]);
        let bytes = save(&parameters, Some(&adam), &metadata).unwrap();
        let mut n_refused = 0;
        for at in 0..bytes.len() {
            for mask in [1, 0x20, 0x80] {
                let mut damaged = bytes.clone();
                damaged[at] ^= mask;
                let mut other = model(5);
                let mut other_adam = Adam::new(AdamConfig::default(), &other);
                match load(&damaged, &mut other, Some(&mut other_adam)) {
                    Ok(found) => assert_eq!(
                        (found, other, other_adam),
                        (metadata.clone(), parameters.clone(), adam.clone()),
                        "{at}"
                    ),
                    Err(_) => n_refused += 1,
                }
            }
        }
        assert!(n_refused > 2 * bytes.len(), "{n_refused} of {}", 3 * bytes.len());
    }

    #[test]
    fn a_newer_format_and_weights_that_are_no_numbers_are_refused() {
        let mut parameters = model(1);
        let bytes = save(&parameters, None, &BTreeMap::new()).unwrap();
        let text = b"\"format\":\"2\"";
        let at = bytes.windows(text.len()).position(|word| word == text).unwrap();
        let mut newer = bytes.clone();
        newer[at + 10] = b'3';
        let error = load(&newer, &mut parameters, None).unwrap_err().to_string();
        assert!(error.contains("found format 3, expected at most 2"), "{error}");

        let id = parameters.id("head.bias").unwrap();
        parameters.get_mut(id).values_mut()[1] = f32::NAN;
        let error = load(&save(&parameters, None, &BTreeMap::new()).unwrap(), &mut model(1), None).unwrap_err();
        assert!(error.to_string().starts_with("found NaN among the values of `head.bias`"), "{error}");
    }

    /// Files of format 1 have no checksum.
    #[test]
    fn a_file_without_a_seal_is_loaded() {
        let parameters = model(1);
        let values: Vec<(String, Vec<usize>, Vec<u8>)> = parameters
            .iter()
            .map(|(_, name, tensor)| {
                let bytes = tensor.values().iter().flat_map(|value| value.to_le_bytes()).collect();
                (name.to_owned(), tensor.shape().dims(), bytes)
            })
            .collect();
        let views = values
            .iter()
            .map(|(name, shape, bytes)| (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
        let bytes = safetensors::serialize(views, None).unwrap();
        let mut other = model(5);
        assert!(load(&bytes, &mut other, None).unwrap().is_empty());
        assert_eq!(other, parameters);
    }

    #[test]
    fn truncated_bytes_are_an_error() {
        let (parameters, _) = trained();
        let bytes = save(&parameters, None, &BTreeMap::new()).unwrap();
        for length in 0..bytes.len() {
            assert!(matches!(load(&bytes[..length], &mut model(1), None), Err(Error::Safetensors { .. })));
        }
    }
}
