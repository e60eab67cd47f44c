//! Probabilities of models that were trained for intensities.

use ctdg::event::EventId;
use ctdg::generate::InteractionSpec;
use ctdg::mite::PairQuery;
use hopedgn::callbacks::NoCallback;
use hopedgn::predict::ScoreMeaning;
use hopedgn::{EvaluateOptions, Events, LinkPredictor, LinkPredictorBuilder, ModelName, RecommendOptions};

/// Users and items, many of whose pairs repeat.
fn events() -> Events {
    let spec = InteractionSpec::like_lastfm().scaled(0.003).unwrap();
    Events::from_stream("users and items", spec.generate(1).unwrap())
}

fn intensity<'c>(model: ModelName) -> LinkPredictorBuilder<'c> {
    LinkPredictor::builder().model(model).set("train.objective=intensity").set("train.lr=1e-3")
}

#[test]
fn probabilities_of_all_destinations_sum_to_one_on_test_events() {
    let events = events();
    let predictor = intensity(ModelName::Stats).epochs(8).fit(&events).unwrap();
    let options = EvaluateOptions { negatives: Vec::new(), ranking: None, ..EvaluateOptions::default() };
    let evaluation = predictor.evaluate_with(&events, &options, &mut NoCallback).unwrap();
    let calibration = evaluation.calibration.expect("a model of intensities");
    assert!((calibration.mean_sum - 1.0).abs() < 0.1, "{calibration:?}");
    assert!(calibration.bits > 0.5 && calibration.error < 0.4, "{calibration:?}");
    assert_eq!(calibration.bins.iter().map(|bin| bin.happened).sum::<usize>(), calibration.events, "{calibration:?}");
}

#[test]
fn without_the_objective_nothing_is_called_a_probability() {
    let events = events();
    let predictor =
        LinkPredictor::builder().model(ModelName::Stats).set("train.objective=dyglib").epochs(1).fit(&events).unwrap();
    assert_eq!(predictor.score_meaning().unwrap(), ScoreMeaning::Separation);
    let query = PairQuery::of(&events, &[EventId(9)]);
    let prediction = predictor.predictions(&query, &mut |_| {}).unwrap()[0];
    let logit = predictor.logits(&query).unwrap()[0];
    assert_eq!((prediction.score, prediction.likelihood), (hopedgn::predict::sigmoid(logit), None));
    let src = events.names().name(events.src()[9]);
    let best = predictor.recommend(&src, 3, events.end()).unwrap();
    assert!(best.iter().all(|item| item.probability.is_none() && item.score > 0.0));
    let options = EvaluateOptions { negatives: Vec::new(), ranking: None, ..EvaluateOptions::default() };
    assert_eq!(predictor.evaluate_with(&events, &options, &mut NoCallback).unwrap().calibration, None);
}

#[test]
fn predictions_recommendations_and_explanations_agree() {
    // With a memory and without one.
    for model in [ModelName::Stats, ModelName::Jodie, ModelName::GraphMixer] {
        let events =
            Events::from_tuples((0..200).map(|i| (format!("u{}", i % 7), format!("v{}", i % 5), f64::from(i))))
                .unwrap();
        let predictor = intensity(model).epochs(1).fit(&events).unwrap();
        let end = events.end();
        let query = PairQuery { src: events.src()[3], dst: events.dst()[3], time: end };
        let prediction = predictor.predictions(&[query], &mut |_| {}).unwrap()[0];
        let likelihood = prediction.likelihood.unwrap();
        assert_eq!(prediction.score, likelihood.probability, "{model:?}");
        assert_eq!(prediction.score, predictor.predict("u3", "v3", end).unwrap(), "{model:?}");
        let ScoreMeaning::NextPartner { log_destinations, .. } = predictor.score_meaning().unwrap() else {
            panic!("{model:?}")
        };
        let chance = (-log_destinations).exp();
        assert!((likelihood.lift / (likelihood.probability / chance) - 1.0).abs() < 1e-4, "{model:?}");
        assert!(likelihood.intensity > 0.0, "{model:?}");
        let items = predictor.recommend_with("u3", &RecommendOptions::at(end), &mut |_| {}).unwrap();
        assert_eq!(items.len(), 5, "{model:?}: all destinations");
        let same = items.iter().find(|item| item.dst == "v3").unwrap();
        assert_eq!((same.score, same.probability), (prediction.score, Some(prediction.score)), "{model:?}");
        if let Ok(why) = predictor.explain("u3", "v3", end) {
            assert_eq!(why.probability, prediction.score, "{model:?}");
        }
    }
}

#[test]
fn calibration_of_a_memory_measures_every_event_with_its_own_past() {
    let events =
        Events::from_tuples((0..200).map(|i| (format!("u{}", i % 7), format!("v{}", i % 5), f64::from(i)))).unwrap();
    let predictor =
        intensity(ModelName::Jodie).set("model.d-out=4").set("train.batch=8").epochs(1).fit(&events).unwrap();
    let options = EvaluateOptions { negatives: Vec::new(), ranking: None, ..EvaluateOptions::default() };
    let calibration = predictor.evaluate_with(&events, &options, &mut NoCallback).unwrap().calibration.unwrap();
    assert_eq!((calibration.events, calibration.of_events, calibration.candidates), (30, 30, 5.0));
}
