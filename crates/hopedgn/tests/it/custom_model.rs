//! The model of `examples/custom_model.rs`, written with public items only, does all that built-in models do.

#[path = "../../examples/custom_model.rs"]
#[allow(dead_code, unreachable_pub, reason = "its `main` is not called here")]
mod example;

use example::DeepSets;
use hopedgn::callbacks::Callback;
use hopedgn::collate::{FeatureWidths, Input};
use hopedgn::ctdg::mite::PairEncoderConfig;
use hopedgn::model::{CommonSettings, CustomModel, NoSettings};
use hopedgn::tensor::{Dropout, Parameters, Tape, Var};
use hopedgn::{Error, Events, LinkPredictor, LinkPredictorBuilder, Model, ModelName, ModelRegistry, Preset};

/// Thirty nodes, each of which writes to its two neighbours in turn.
fn events() -> Events {
    let event = |i: u32| ((i % 30).to_string(), ((i + 1 + i / 30 % 2) % 30).to_string(), f64::from(i));
    Events::from_tuples((0..600).map(event)).unwrap()
}

fn builder<'c>() -> LinkPredictorBuilder<'c> {
    let builder = LinkPredictor::builder().register::<DeepSets>().unwrap();
    builder.set("model.tokens=6").set("model.d-out=8").set("model.d-time=4").set("train.lr=0.01").epochs(4)
}

fn registry() -> ModelRegistry {
    let mut registry = ModelRegistry::default();
    registry.register::<DeepSets>().unwrap();
    registry
}

/// Asks to stop after the first batch.
struct StopAtOnce;

impl Callback for StopAtOnce {
    fn should_stop(&self) -> bool {
        true
    }
}

#[test]
fn a_custom_model_trains_resumes_and_is_evaluated_explained_and_compared() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let whole = builder().fit(&events).unwrap();
    let summary = whole.summary().unwrap();
    assert_eq!(summary.model, "deep-sets");
    assert!(summary.test.transductive.unwrap().ap > 0.7, "{summary:?}");

    let run = home.path().join("run");
    let stopped = builder().run_folder(&run).callback(StopAtOnce).fit(&events);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let resumed = LinkPredictor::builder().registry(registry()).resume(&run, &events).unwrap();
    let pairs: Vec<(String, String, f64)> = (0..30).map(|i| (i.to_string(), "7".to_owned(), 600.0)).collect();
    assert_eq!(resumed.predict_many(&pairs).unwrap(), whole.predict_many(&pairs).unwrap(), "bit-identical");

    let loaded = LinkPredictor::loader().registry(registry()).load(&run, &events).unwrap();
    assert_eq!(loaded.predict("3", "7", 600.0).unwrap(), whole.predict_many(&pairs).unwrap()[3], "alone as in a batch");
    assert!(!loaded.explain("3", "4", 600.0).unwrap().effects.is_empty());
    let report = loaded.evaluate(&events).unwrap();
    assert!(report.negatives["random"].contains_key("recency-popularity"), "heuristics beside it");
    assert!(report.ranking.unwrap().scorers.contains_key("deep-sets"));
}

/// A model whose name is that of a heuristic, which would hide its metrics.
#[derive(Debug)]
struct NamedLikeAHeuristic;

impl Model for NamedLikeAHeuristic {
    fn name(&self) -> ModelName {
        ModelName::Custom(Self::NAME)
    }

    fn encoding(&self) -> PairEncoderConfig {
        PairEncoderConfig::default()
    }

    fn logits(&self, _: &mut Tape<'_>, input: &Input, _: Dropout) -> hopedgn::Result<Var> {
        input.patches().map(|_| unreachable!("its layout is the default one, of hops"))
    }
}

impl CustomModel for NamedLikeAHeuristic {
    const NAME: &'static str = "recency-popularity";
    type Settings = NoSettings;

    fn new(_: &NoSettings, _: &CommonSettings, _: FeatureWidths, _: u64) -> hopedgn::Result<(Self, Parameters)> {
        Ok((Self, Parameters::default()))
    }
}

#[test]
fn a_model_named_like_a_heuristic_is_refused() {
    let error = ModelRegistry::default().register::<NamedLikeAHeuristic>().unwrap_err().to_string();
    assert!(error.contains("found the name of a heuristic"), "{error}");
}

#[test]
fn presets_leave_the_sizes_of_custom_models_alone() {
    let builder = LinkPredictor::builder().register::<DeepSets>().unwrap().preset(Preset::Quick);
    let config = builder.resolve("events").unwrap();
    assert_eq!((config.model.common.d_out, config.model.common.d_time, config.train.epochs), (64, 32, 4));
}

#[test]
fn names_and_settings_of_custom_models_are_checked() {
    let events = events();
    let mut registry = registry();
    assert!(registry.register::<DeepSets>().is_err(), "the name is taken");
    assert_eq!(registry.named("deep-sets").unwrap(), ModelName::Custom("deep-sets"));
    let refused = |setting: &str| builder().set(setting).fit(&events).unwrap_err().to_string();
    let message = refused("model.length=3");
    assert!(message.contains("deep-sets has no setting `length`") && message.contains("tokens"), "{message}");
    assert!(refused("model.tokens=many").contains("whole number"), "{}", refused("model.tokens=many"));

    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    builder().epochs(1).fit(&events).unwrap().save(&run).unwrap();
    let unknown = LinkPredictor::load(&run, &events).unwrap_err().to_string();
    assert!(unknown.contains("deep-sets"), "{unknown}");
}
