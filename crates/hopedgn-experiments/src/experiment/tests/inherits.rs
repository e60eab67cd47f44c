//! Inheritance between files, and values that are refused.

use super::*;
use hopedgn::ModelRegistry;

/// The error of `top.toml` with this text, in a folder with `base.toml`.
fn refused(base: &str, top: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("base.toml"), base).unwrap();
    std::fs::write(home.path().join("top.toml"), top).unwrap();
    let message = Experiment::read(&home.path().join("top.toml"), &ModelRegistry::default()).unwrap_err().to_string();
    message.replace(&format!("{}/", home.path().display()), "")
}

#[test]
fn a_file_overrides_the_one_it_extends() {
    let home = tempfile::tempdir().unwrap();
    let base = format!("{HEAD}[[variant]]\nname = \"plain\"\n");
    std::fs::write(home.path().join("base.toml"), base).unwrap();
    let top = "extends = \"base.toml\"\ntitle = \"Another\"\n[grid]\nseed = [7]\nmite = []\n\
               [[variant]]\nname = \"k-4\"\ntitle = \"K = 4\"\nset = { model.k = 4 }\n";
    std::fs::write(home.path().join("top.toml"), top).unwrap();
    let experiment = Experiment::read(&home.path().join("top.toml"), &ModelRegistry::default()).unwrap();
    assert_eq!(experiment.title(), "Another");
    let names: Vec<&str> = experiment.cells().iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names[..3], ["uci-tgat-plain-7", "uci-tgat-k-4-7", "uci-tcl-plain-7"]);
    assert_eq!(experiment.cells()[1].row(), "TGAT, K = 4");
}

#[test]
fn errors_name_the_file_they_are_in() {
    let found = refused(&with("[[exclude]]\nwhen = { model = \"tgn\" }\n"), "extends = \"base.toml\"\n");
    assert!(found.starts_with("base.toml:8: found an exclusion that fits no cell"), "{found}");
    let found = refused(HEAD, "title = \"x\"\nextends = \"bse.toml\"\n");
    assert!(found.starts_with("top.toml:2: could not read bse.toml, which it extends"), "{found}");
    let found = refused("\nextends = \"top.toml\"\n", "extends = \"base.toml\"\n");
    assert!(found.starts_with("base.toml:2: found that top.toml extends itself"), "{found}");
    let found = refused("kind = \"link-prediction\"\n[gird]\n", "extends = \"base.toml\"\n");
    assert!(found.starts_with("base.toml:2: unknown field `gird`"), "{found}");
    let found = refused("[grid]\nmodel = [\"tgat\"]\ndata = [\"uci\"]\nseed = [0]\n", "extends = \"base.toml\"\n");
    assert!(found.starts_with("top.toml: found no title"), "{found}");
}

#[test]
fn metrics_that_no_run_has_are_refused_with_their_line() {
    let before = |line: &str| format!("{line}\n{HEAD}");
    let message = |text: &str| parse(text).unwrap_err().to_string();
    let found = message(&before("metrics = [\"mrr\"]"));
    assert!(found.starts_with("grid.toml:1: found the metric MRR, expected [evaluate] with ranking = N"), "{found}");
    let found = message(&before("negatives = [\"historical\"]"));
    assert!(found.starts_with("grid.toml:1: found historical negatives, expected [evaluate]"), "{found}");
    let found = message(&before("metrics = [\"ap\"]").replace("link-prediction", "node-classification"));
    assert!(found.starts_with("grid.toml:1: found the metric AP, expected auc"), "{found}");
    let found = message(&before("heuristics = [\"edgebank\"]"));
    assert!(found.starts_with("grid.toml:1: found edgebank, expected one of edgebank-unlimited, "), "{found}");
    let figure =
        |rest: &str| message(&with(&format!("[[figure]]\nname = \"f\"\ntitle = \"F\"\nmetric = \"ap\"\n{rest}\n")));
    let found = figure("kind = \"lines\"");
    assert!(found.starts_with("grid.toml:8: found lines without sweep"), "{found}");
    let found = figure("kind = \"lines\"\nsweep = \"k\"");
    assert!(found.starts_with("grid.toml:8: found a sweep without variants"), "{found}");
    let found = figure("kind = \"scatter\"");
    assert!(found.starts_with("grid.toml:8: found points without against"), "{found}");
    let found = figure("kind = \"bars\"\nagainst = \"auc\"");
    assert!(found.starts_with("grid.toml:8: found against"), "{found}");
    let found = figure("kind = \"pie\"");
    assert!(found.starts_with("grid.toml:12: found pie, expected one of bars, lines, scatter; "), "{found}");
}

#[test]
fn published_values_come_from_a_file_and_stated_ones_win() {
    let home = tempfile::tempdir().unwrap();
    let values = "paper = [\n{ model = \"tgat\", data = \"uci\", transductive = { ap = [80.0, 1.0], auc = [81.0, 1.0] } },\n\
                  { model = \"tgat\", data = \"uci\", mite = true, transductive = { ap = [90.0, 1.0] } },\n\
                  { model = \"tgn\", data = \"uci\", transductive = { ap = [70.0, 1.0] } },\n]\n";
    std::fs::write(home.path().join("paper.toml"), values).unwrap();
    let read = |rest: &str| {
        std::fs::write(home.path().join("top.toml"), with(rest)).unwrap();
        Experiment::read(&home.path().join("top.toml"), &ModelRegistry::default())
    };
    let published = |experiment: &Experiment, name: &str, metric: Metric| {
        let cell = experiment.cells().iter().find(|cell| cell.name == name).unwrap();
        let measure = Measure { metric, setting: Some(Setting::Transductive), negatives: None };
        experiment.file.published(cell, measure).map(|[mean, _]| mean)
    };
    let from = "[[paper-from]]\nfile = \"paper.toml\"\n";
    let experiment = read(from).unwrap();
    assert_eq!(published(&experiment, "uci-tgat-0", Metric::Ap), Some(80.0));
    assert_eq!(published(&experiment, "uci-tgat-mite-0", Metric::Ap), Some(90.0));
    assert_eq!(published(&experiment, "uci-tcl-0", Metric::Ap), None);

    let stated = "[[paper]]\nmodel = \"tgat\"\ndata = \"uci\"\nmite = false\ntransductive = { ap = [85.0, 1.0] }\n";
    let experiment = read(&format!("{from}when = {{ mite = false }}\n{stated}")).unwrap();
    assert_eq!(published(&experiment, "uci-tgat-0", Metric::Ap), Some(85.0));
    assert_eq!(published(&experiment, "uci-tgat-0", Metric::Auc), Some(81.0));
    assert_eq!(published(&experiment, "uci-tgat-mite-0", Metric::Ap), None, "excluded by `when`");

    let found = read(&format!("{from}when = {{ model = \"tcl\" }}\n")).unwrap_err().to_string();
    assert!(found.contains("top.toml:8: found a reference to published values that fits no cell"), "{found}");
    let found = read("[[paper-from]]\nfile = \"papers.toml\"\n").unwrap_err().to_string();
    assert!(found.contains("top.toml:8: could not read") && found.contains("papers.toml"), "{found}");
}

#[test]
fn what_is_evaluated_is_shown_unless_the_file_chooses() {
    let titles = |text: &str| -> Vec<String> {
        let measures = parse(text).unwrap().measures();
        let transductive = measures.iter().filter(|one| one.setting == Some(Setting::Transductive));
        transductive.map(Measure::title).collect()
    };
    let evaluated = with("[evaluate]\nnegatives = \"all\"\nranking = 100\n");
    let hard = ["", ", historical negatives", ", inductive negatives"];
    let mut expected: Vec<String> =
        ["AP", "AUC"].iter().flat_map(|metric| hard.map(|kind| format!("{metric}, transductive{kind}"))).collect();
    expected.extend(["MRR, transductive", "Hits@10, transductive", "NDCG@10, transductive"].map(str::to_owned));
    assert_eq!(titles(&evaluated), expected);
    let chosen = format!("metrics = [\"ap\"]\nnegatives = [\"inductive\"]\n{evaluated}");
    assert_eq!(titles(&chosen), ["AP, transductive, inductive negatives"]);
    assert_eq!(titles(HEAD), ["AP, transductive", "AUC, transductive"]);
}

#[test]
fn the_protocol_of_tgb_trains_and_ranks_by_its_rules() {
    let experiment = parse(&format!("metrics = [\"mrr\"]\n{}", with("[evaluate]\nprotocol = \"tgb\"\n"))).unwrap();
    let measures: Vec<String> = experiment.measures().iter().map(Measure::title).collect();
    assert_eq!(measures, ["MRR, transductive"], "TGB has no test of new nodes");
    let cell = &experiment.cells()[0];
    let arguments = cell.arguments().join(" ");
    assert!(arguments.contains("--set split=tgb --set train.select=mrr"), "{arguments}");
    assert_eq!(cell.evaluate.unwrap().arguments().join(" "), "--protocol tgb --ranking 999");
    assert_eq!(cell.config.train.select, hopedgn::config::Selection::Mrr);
    let few = parse(&with("[evaluate]\nprotocol = \"tgb\"\nnegatives = \"historical\"\nranking = 20\n")).unwrap();
    let arguments = few.cells()[0].evaluate.unwrap().arguments().join(" ");
    assert_eq!(arguments, "--protocol tgb --negatives historical --ranking 20");
    assert!(parse(&with("[evaluate]\nprotocol = \"ogb\"\n")).unwrap_err().to_string().contains("tgb"));
}
