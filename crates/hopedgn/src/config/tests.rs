use super::*;

fn resolve_for(model: ModelName, presets: &[Preset], settings: &[&str]) -> Result<Config> {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    Config::resolve(model, presets, &settings)
}

fn resolve(settings: &[&str]) -> Result<Config> {
    resolve_for(ModelName::HopeDgn, &[], settings)
}

fn message(settings: &[&str]) -> String {
    resolve(settings).unwrap_err().to_string()
}

#[test]
fn config_survives_its_file_for_every_model_and_preset() {
    for &preset in Preset::all() {
        for model in ModelName::ALL {
            let config = resolve_for(model, &[preset], &["data=a b.csv", "train.lr=1"]).unwrap();
            assert_eq!((config.model.name(), config.model.has_mite()), (model, model == ModelName::HopeDgn));
            assert_eq!(Config::from_toml(&config.to_toml().unwrap(), "config.toml").unwrap(), config);
        }
    }
    let config = resolve(&["model.k=7", "data=a b.csv", "train.lr=1", "model.pooling=node"]).unwrap();
    assert_eq!((config.data.as_str(), config.train.lr), ("a b.csv", 1.0));
    let ModelSettings::HopeDgn(settings) = &config.model.settings else { panic!("another model") };
    assert_eq!((settings.mite.k, settings.pooling), (7, Pooling::Node));
}

#[test]
fn config_file_lists_only_the_settings_of_its_model() {
    let text = resolve_for(ModelName::Jodie, &[], &[]).unwrap().to_toml().unwrap();
    let (_, model) = text.split_once("[model]\n").unwrap();
    let (model, _) = model.split_once("\n[train]").unwrap();
    let names: Vec<&str> = model.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "name",
            "d-out",
            "d-time",
            "dropout",
            "stats",
            "d-stats",
            "triads",
            "walks",
            "walk-layers",
            "d-walk",
            "walk-decay",
            "message-order"
        ]
    );
    assert!(model.contains("dropout = 0.1\n"), "{model}");
}

#[test]
fn settings_of_walks_have_bounds_and_an_effect() {
    let refused = |setting: &str| message(&["model.walks=true", setting]);
    assert_eq!(refused("model.walk-layers=9"), "found model.walk-layers = 9, expected 1 to 8");
    assert_eq!(refused("model.walk-decay=-1"), "found model.walk-decay = -1, expected a number of at least 0");
    let without = resolve_for(ModelName::TpNet, &[], &["model.walks=false"]).unwrap_err().to_string();
    assert_eq!(without, "found model.walks = false, expected true: this model is made of them");
    let settings = ["model.d-walk=64".to_owned()];
    let message = resolve(&["model.d-walk=64"]).unwrap().check_effects(&settings).unwrap_err().to_string();
    assert_eq!(message, "model.d-walk=64: found no effect: HopeDGN does not read walks; add model.walks=true");
    assert!(resolve_for(ModelName::TpNet, &[], &["model.d-walk=64"]).unwrap().check_effects(&settings).is_ok());
}

/// As the program wrote it before each model had settings of its own.
#[test]
fn config_file_with_settings_of_all_models_still_loads() {
    let text = "data = \"events.csv\"\nseed = 3\nsplit = \"dyglib\"\n[model]\nname = \"tgn\"\nlength = 32\nneighbors = 7\n\
                sampling = \"recent\"\npatch = 1\nd-channel = 50\nd-time = 100\nd-out = 172\nd-cooccurrence = 50\nn-blocks = 1\n\
                n-heads = 2\ndropout = 0.1\ntime-encoding = true\nmite = false\nd-mite = 50\nk = 32\nmite-history = \"truncated\"\n\
                mite-normaliser = \"log1p\"\nmite-filler = 0.0\nmite-valid-bit = true\npadding = \"none\"\npooling = \"pair\"\n\
                message-order = \"newest\"\nbeta = 0.00001\nreplacing = \"all\"\npair-start = \"features\"\nf32-times = false\n\
                [train]\nepochs = 5\npatience = 10\nbatch = 200\nlr = 0.0001\nsave-every = 60.0\n";
    let config = Config::from_toml(text, "config.toml").unwrap();
    let expected =
        resolve_for(ModelName::Tgn, &[], &["model.neighbors=7", "seed=3", "data=events.csv", "train.epochs=5"]);
    assert_eq!(config, expected.unwrap());
    let message = Config::from_toml(&text.replace("beta =", "alpha ="), "config.toml").unwrap_err().to_string();
    assert!(message.starts_with("config.toml: model.alpha: TGN has no setting `alpha`; TGN has: "), "{message}");
}

#[test]
fn a_run_from_before_a_setting_keeps_what_was_computed_then() {
    let revision = |config: Config| config.model.table().unwrap()["revision"].as_integer();
    let without = "[model]\nname = \"pint\"\nbeta = 0.25\n";
    assert_eq!(revision(Config::from_toml(without, "config.toml").unwrap()), Some(1), "the complete file of a run");
    let resolve =
        |text: &str| ConfigFile::parse(text, "my.toml").unwrap().resolve(&ModelRegistry::default(), None, &[], &[]);
    assert_eq!(revision(resolve(without).unwrap()), Some(2), "a file of some settings");
    assert_eq!(
        revision(resolve(&format!("format = 2\n{without}")).unwrap()),
        Some(1),
        "the file of a run as settings of another"
    );
    let message = resolve_for(ModelName::Pint, &[], &["model.revision=3"]).unwrap_err().to_string();
    assert_eq!(message, "found model.revision = 3, expected 1 or 2");
}

#[test]
fn setting_of_another_model_is_refused_with_the_names_of_its_models() {
    let found = message(&["model.neighbors=5"]);
    let expected = "model.neighbors=5: HopeDGN has no setting `neighbors`, which belongs to TGAT, TCL, GraphMixer, CAWN, DyRep, \
                    TGN, PINT, TPNet; HopeDGN has: d-channel, d-mite, d-out, ";
    assert!(found.starts_with(expected), "{found}");
    let found = resolve_for(ModelName::Jodie, &[], &["model.mite=true"]).unwrap_err().to_string();
    assert!(found.contains("JODIE has no setting `mite`, which belongs to HopeDGN, DyGFormer, "), "{found}");
}

#[test]
fn wrong_setting_is_refused_with_what_is_expected() {
    assert!(message(&["model.kay=7"]).contains("HopeDGN has no setting `kay`; HopeDGN has: "));
    assert!(message(&["modle.k=7"]).contains("found no group `modle`, expected one of model, train"));
    assert!(message(&["train.rate=7"]).contains("found no setting `rate`, expected one of batch, epochs, "));
    assert!(message(&["model.k"]).contains("expected NAME=VALUE"));
    assert!(message(&["model.k=many"]).starts_with("model.k=many: found \"many\", expected a whole number"));
    assert!(message(&["model.k=-1"]).contains("found -1, expected a whole number of at least 0"));
    assert!(message(&["model.dropout=some"]).contains("expected a number"));
    assert!(message(&["model.mite=1"]).contains("found 1, expected true or false"));
    assert!(message(&["train.epochs=1.5"]).contains("found 1.5, expected a whole number"));
    assert!(message(&["model.padding=some"]).contains("found some, expected none or dyglib"));
    assert_eq!(
        message(&["model.n-heads=3"]),
        "found model.n-heads = 3, expected a divisor of the width 200 (4 · model.d-channel)"
    );
    assert_eq!(
        message(&["model.dropout=1"]),
        "found model.dropout = 1, expected a number from 0 up to but not including 1"
    );
    assert_eq!(message(&["model.patch=33"]), "found model.patch = 33, expected 1 to 32");
    for (model, setting) in [("graphmixer", "neighbors=1048576"), ("cawn", "n-heads=16384"), ("tcl", "d-out=16384")] {
        let message = message(&[&format!("model.name={model}"), &format!("model.{setting}")]);
        assert!(message.ends_with("a model of fewer than 268 million weights"), "{message}");
    }
    assert!(resolve(&["model.name=tgat", "model.neighbors=513"]).is_err());
}

#[test]
fn misspelt_setting_names_the_nearest() {
    for (setting, meant) in [
        ("dropout=0.1", "model.dropout"),
        ("epochs=3", "train.epochs"),
        ("model.lr=1", "train.lr"),
        ("model.kk=3", "model.k"),
        ("train.epoch=3", "train.epochs"),
        ("modle.k=7", "model.k"),
        ("sed=3", "seed"),
        ("patiense=3", "train.patience"),
        ("model.time_encoding=true", "model.time-encoding"),
    ] {
        let found = message(&[setting]);
        assert!(found.ends_with(&format!("; did you mean `{meant}`?")), "{setting}: {found}");
    }
    for setting in ["model.kay=7", "colour=red", "model.pooling=5x"] {
        assert!(!message(&[setting]).contains("did you mean"), "{setting}");
    }
}

#[test]
fn later_layers_win_and_presets_skip_what_a_model_lacks() {
    let HopeDgnSettings { patches, .. } = {
        let config = resolve_for(ModelName::HopeDgn, &[Preset::Enron], &["model.dropout=0.3"]).unwrap();
        assert_eq!(config.model.common.dropout, 0.3);
        let ModelSettings::HopeDgn(settings) = config.model.settings else { panic!("another model") };
        settings
    };
    assert_eq!((patches.length, patches.patch), (256, 8));
    for quoted in ["model.name = tgn", "model.name=\"tgn\""] {
        assert_eq!(resolve(&[quoted]).unwrap().model.name(), ModelName::Tgn);
    }
    let presets = [Preset::CollegeMsg, Preset::DyGLib];
    let config = resolve_for(ModelName::HopeDgn, &presets, &["model.name=cawn"]).unwrap();
    let ModelSettings::Cawn(settings) = &config.model.settings else { panic!("another model") };
    assert_eq!((settings.past.neighbors, settings.past.f32_times, config.train.epochs), (64, true, 100));
}

#[test]
fn settings_of_other_models_name_the_one_that_is_meant() {
    let refused = |model, setting: &str| Config::resolve(model, &[], &[setting.to_owned()]).unwrap_err().to_string();
    let of_other = refused(ModelName::HopeDgn, "model.neighbors=5");
    assert!(of_other.ends_with("; did you mean `model.length`?"), "{of_other}");
    assert!(refused(ModelName::Tgat, "model.length=5").ends_with("did you mean `model.neighbors`?"));
}
