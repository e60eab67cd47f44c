//! Files of a run that were damaged: whatever is done with the run ends in an error or in the same result, never in another one.
//!
//! `HOPEDGN_TRIES` and `HOPEDGN_SEED` in the environment say how often each file is damaged and where.

use std::fs;
use std::path::Path;

use ctdg::event::EventStream;
use ctdg::random::RandomStream;
use hopedgn::config::{Config, ModelConfig, ModelName, TrainConfig};
use hopedgn::{Error, Events, LinkPredictor, Result};

use crate::tries;

fn events() -> Events {
    let mut random = RandomStream::named(4, "damage");
    let events: Vec<_> = (0..200_u32).map(|i| (random.below(12), random.below(12), f64::from(i / 2))).collect();
    Events::from_stream("test", EventStream::from_events(events).unwrap())
}

fn config(name: ModelName) -> Config {
    let sizes = ["length=4", "neighbors=3", "k=2", "d-channel=2", "d-time=2", "d-mite=2", "d-out=4", "n-heads=2"];
    Config {
        model: ModelConfig::new(name).with_known(&sizes).unwrap(),
        train: TrainConfig { epochs: 1, batch: 30, lr: 1e-3, ..TrainConfig::default() },
        ..Config::default()
    }
}

/// What a user gets out of a run folder.
#[derive(Debug, PartialEq)]
struct Answers {
    /// Of some pairs, as bits.
    scores: Vec<u32>,
    /// AP and loss of each epoch.
    epochs: Vec<(f64, Option<f64>)>,
    test_ap: Option<f64>,
    /// The weights after another epoch.
    trained_further: Vec<u8>,
}

/// Loads the run, then trains it further.
fn answers(run: &Path, events: &Events) -> Result<Answers> {
    let predictor = LinkPredictor::load(run, events)?;
    let scores = (0..6).map(|i| predictor.predict(&i.to_string(), &(i + 3).to_string(), 120.0).map(f32::to_bits));
    let epoch = |record: &hopedgn::metrics::EpochRecord| (record.loss, record.val.transductive.map(|m| m.ap));
    let (scores, epochs) = (scores.collect::<Result<_>>()?, predictor.history().iter().map(epoch).collect());
    let test_ap = predictor.summary().and_then(|summary| summary.test.transductive).map(|metrics| metrics.ap);
    LinkPredictor::builder().epochs(2).resume(run, events)?;
    Ok(Answers { scores, epochs, test_ap, trained_further: fs::read(run.join("model.safetensors")).unwrap() })
}

/// Copies the files of a run into a new folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The ways to damage `bytes`, most of them at random places.
fn damaged(bytes: &[u8], random: &mut RandomStream, n: u64) -> Vec<(String, Vec<u8>)> {
    let mut all = vec![("emptied".to_owned(), Vec::new()), ("zeroed".to_owned(), vec![0; bytes.len()])];
    let lines: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for _ in 0..n {
        let (at, bit) = (random.index(bytes.len()), random.index(8));
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << bit;
        all.push((format!("bit {bit} of byte {at} flipped"), flipped));
        let end = random.index(bytes.len());
        all.push((format!("cut to {end} bytes"), bytes[..end].to_vec()));
        let (start, len) = (random.index(bytes.len()), 1 + random.index(40));
        let mut zeroed = bytes.to_vec();
        zeroed[start..].iter_mut().take(len).for_each(|byte| *byte = 0);
        all.push((format!("{len} bytes from {start} zeroed"), zeroed));
        if let Some(&end) = lines.get(random.index(lines.len().max(1))) {
            all.push((format!("cut at the end of a line, to {end} bytes"), bytes[..end].to_vec()));
        }
    }
    all
}

fn check_damage(name: ModelName) {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    LinkPredictor::builder().config(config(name)).run_folder(&run).fit(&events).unwrap();
    let again = home.path().join("again");
    copy(&run, &again);
    let expected = answers(&again, &events).unwrap();
    let mut names: Vec<_> = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let (n, seed) = (tries::number(3), tries::seed());
    let (mut n_tries, mut n_refused) = (0, 0);
    for name in names.iter().filter(|name| *name != ".lock") {
        let bytes = fs::read(run.join(name)).unwrap();
        let mut random = RandomStream::named(seed, &format!("damage {}", name.to_string_lossy()));
        let removed = ("removed".to_owned(), Vec::new());
        for (at, (how, bytes)) in [removed].into_iter().chain(damaged(&bytes, &mut random, n)).enumerate() {
            let copy_of_run = home.path().join("copy");
            copy(&run, &copy_of_run);
            if at == 0 {
                fs::remove_file(copy_of_run.join(name)).unwrap();
            } else {
                fs::write(copy_of_run.join(name), bytes).unwrap();
            }
            n_tries += 1;
            match answers(&copy_of_run, &events) {
                // A run without `summary.json` is one whose test is not done yet: resuming it does that.
                Ok(found) if at == 0 && *name == "summary.json" => {
                    assert!(found.test_ap.is_none());
                    assert_eq!(Answers { test_ap: expected.test_ap, ..found }, expected);
                }
                Ok(found) => assert_eq!(found, expected, "{} {how}", name.to_string_lossy()),
                Err(Error::Interrupted) => unreachable!("nothing asks to stop"),
                Err(error) => {
                    n_refused += 1;
                    let text = error.to_string();
                    assert!(
                        text.contains(&*name.to_string_lossy()) || at == 0,
                        "{} {how}: {text}",
                        name.to_string_lossy()
                    );
                }
            }
            fs::remove_dir_all(&copy_of_run).unwrap();
        }
    }
    tries::report(&format!("damage of {}, {n_refused} refused", name.as_str()), n_tries);
    assert!(n_refused > n_tries / 3, "{n_refused} of {n_tries}");
}

#[test]
fn a_damaged_file_of_a_run_is_refused_or_changes_nothing() {
    check_damage(ModelName::HopeDgn);
}

#[test]
fn a_damaged_file_of_a_run_with_a_memory_is_refused_or_changes_nothing() {
    check_damage(ModelName::Tgn);
}

#[test]
fn a_run_that_dies_while_files_are_written_is_not_taken_for_damaged() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = home.path().join("run");
    LinkPredictor::builder().config(config(ModelName::HopeDgn)).run_folder(&run).fit(&events).unwrap();
    let folder = hopedgn::run::RunFolder::open(&run).unwrap();
    let evaluation = LinkPredictor::load(&run, &events).unwrap().evaluate(&events).unwrap();
    let before = fs::read(run.join("manifest.json")).unwrap();
    folder.write_evaluation(&evaluation).unwrap();
    let pending = fs::read(run.join("manifest.json")).unwrap();
    assert_ne!(before, pending);
    assert!(folder.evaluation().unwrap().is_some(), "the new file with the manifest that announced it");
    fs::remove_file(run.join("evaluation.json")).unwrap();
    assert!(folder.evaluation().unwrap().is_none(), "announced, but the process died before it was written");
    assert!(folder.verify().is_ok());

    // Written twice: the manifest knows the first content and the second, but no other.
    folder.write_evaluation(&evaluation).unwrap();
    let first = fs::read(run.join("evaluation.json")).unwrap();
    let changed = hopedgn::Evaluation { device: "another".to_owned(), ..evaluation };
    folder.write_evaluation(&changed).unwrap();
    assert_eq!(folder.evaluation().unwrap().unwrap().device, "another");
    fs::write(run.join("evaluation.json"), &first).unwrap();
    assert!(folder.evaluation().is_ok(), "died before the second was written");
    fs::write(run.join("evaluation.json"), &first[1..]).unwrap();
    let refused = folder.evaluation().unwrap_err().to_string();
    assert!(refused.contains("evaluation.json: found content with the SHA-256"), "{refused}");
    assert!(
        answers(&run, &events).is_ok(),
        "not read by these, and removed with the other results when training goes on"
    );
}

/// A run that has done one of its three epochs.
fn half_done(home: &Path, events: &Events) -> std::path::PathBuf {
    let run = home.join("run");
    LinkPredictor::builder().config(config(ModelName::HopeDgn)).run_folder(&run).fit(events).unwrap();
    run
}

/// Replaces `from` by `to` in `config.toml`.
fn edit(run: &Path, from: &str, to: &str) {
    let file = run.join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn an_edited_config_is_refused_with_the_name_of_the_setting() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = half_done(home.path(), &events);
    let original = fs::read_to_string(run.join("config.toml")).unwrap();
    let load = || LinkPredictor::load(&run, &events).map(drop);
    let resume = || LinkPredictor::builder().epochs(2).resume(&run, &events).map(drop);
    for (from, to, expected) in [
        ("seed = 0", "seed = 1", "found seed = 1, expected 0"),
        ("lr = 0.001", "lr = 0.01", "found train.lr = 0.01, expected 0.001"),
        ("length = 4", "length = 5", "found model.length = 5, expected 4"),
        ("epochs = 1", "epochs = 9", "found train.epochs = 9, expected 1"),
        ("batch = 30\n", "", "found train.batch = 200, expected 30"),
        ("name = \"hopedgn\"", "name = \"dygformer\"", "model.name"),
    ] {
        edit(&run, from, to);
        for refused in [load().unwrap_err(), resume().unwrap_err()] {
            let text = refused.to_string();
            assert!(text.contains("config.toml: ") && text.contains(expected), "{to}: {text}");
        }
        fs::write(run.join("config.toml"), &original).unwrap();
    }
    // Cut at the end of a line, missing settings would become defaults.
    let end = original.find("[train]").unwrap();
    fs::write(run.join("config.toml"), &original[..end]).unwrap();
    let text = resume().unwrap_err().to_string();
    assert!(text.contains("found train.epochs = 50, expected 1; found train.lr = 0.0001, expected 0.001"), "{text}");
    assert!(
        text.ends_with("Only train.epochs, train.patience, train.save-every may change when the run is resumed"),
        "{text}"
    );
    // What has no meaning may change.
    fs::write(run.join("config.toml"), format!("# the good one\n{original}\n")).unwrap();
    assert!(load().is_ok() && resume().is_ok());
}

#[test]
fn only_settings_that_decide_when_training_stops_may_change_on_resume() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = half_done(home.path(), &events);
    let resume = |settings: &[&str]| {
        let builder = settings.iter().fold(LinkPredictor::builder(), |builder, setting| builder.set(*setting));
        builder.resume(&run, &events)
    };
    let refused = resume(&["train.epochs=2", "train.lr=0.5"]).unwrap_err().to_string();
    assert!(refused.contains("found settings = train.lr=0.5, expected train.epochs, train.patience"), "{refused}");
    let changed = resume(&["train.epochs=2", "train.patience = 3", "train.save-every=5"]).unwrap();
    assert_eq!((changed.history().len(), changed.config().train.patience), (2, 3));
    assert_eq!(LinkPredictor::load(&run, &events).unwrap().config().train.save_every, 5.0);
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = half_done(home.path(), &events);
    let other = home.path().join("other");
    let changed = Config { seed: 7, ..config(ModelName::HopeDgn) };
    LinkPredictor::builder().config(changed).run_folder(&other).fit(&events).unwrap();
    for name in ["state.safetensors", "model.safetensors"] {
        let copy_of_run = home.path().join(name);
        copy(&run, &copy_of_run);
        fs::copy(other.join(name), copy_of_run.join(name)).unwrap();
        let refused = answers(&copy_of_run, &events).unwrap_err().to_string();
        let expected = if name == "state.safetensors" { "found seed = 0, expected 7" } else { "found content with" };
        assert!(refused.contains(name) && refused.contains(expected), "{refused}");
    }
}

#[test]
fn files_of_a_newer_version_are_refused() {
    let (events, home) = (events(), tempfile::tempdir().unwrap());
    let run = half_done(home.path(), &events);
    for (name, from, to) in
        [("config.toml", "format = 2", "format = 3"), ("manifest.json", "\"format\": 2", "\"format\": 3")]
    {
        let original = fs::read_to_string(run.join(name)).unwrap();
        assert!(original.contains(from), "{original}");
        fs::write(run.join(name), original.replace(from, to)).unwrap();
        let refused = LinkPredictor::load(&run, &events).unwrap_err().to_string();
        let expected =
            format!("{name}: found format 3, expected at most 2; a newer version wrote the file: update the program");
        assert!(refused.ends_with(&expected), "{refused}");
        fs::write(run.join(name), original).unwrap();
    }
}
