use super::*;
use crate::metrics::{RankingMetrics, RankingTest};
use ctdg::event::EventStream;
use serde_json::{Value, json};

const NASTY: &str = "<script>alert('x')</script> & \"quotes\" \u{1b}[1m\0";

fn metrics(ap: f64) -> LinkMetrics {
    LinkMetrics { ap, auc: ap - 0.01, ap_global: ap - 0.02, auc_global: ap - 0.03 }
}

fn both(ap: f64) -> PerSetting {
    PerSetting { transductive: Some(metrics(ap)), inductive: Some(metrics(ap - 0.05)) }
}

fn history(n: usize) -> Vec<EpochRecord> {
    let record = |epoch: usize| EpochRecord {
        epoch,
        loss: 0.7 / epoch as f64,
        val: both(0.95 - 0.3 / epoch as f64),
        val_historical: None,
        val_mrr: None,
        better: true,
        train_seconds: 12.0,
        eval_seconds: 3.0,
        pairs_per_second: 4321.0,
    };
    (1..=n).map(record).collect()
}

fn summary(epochs: usize) -> Summary {
    Summary {
        data: "collegemsg".into(),
        model: "hopedgn".into(),
        seed: 0,
        epochs,
        best_epoch: epochs,
        val: both(0.93),
        test: both(0.92),
        heuristics: [("memory".to_owned(), both(0.9)), ("recency".to_owned(), both(0.925))].into(),
        seconds_per_epoch: 15.0,
        device: "cpu".into(),
        hardware: None,
        precision: None,
        parameters: 1_234_567,
        peak_memory: Some(900 << 20),
    }
}

fn page(history: &[EpochRecord], summary: Option<&Summary>) -> String {
    evaluated_page(history, summary, None)
}

fn evaluated_page(history: &[EpochRecord], summary: Option<&Summary>, evaluation: Option<&Evaluation>) -> String {
    let stream = EventStream::from_events([(0, 3, 1.0), (0, 3, 1.0), (1, 4, 2.0), (2, 2, 2.0), (0, 3, 5.0)]).unwrap();
    let data = ctdg::summary::Summary::of(&stream);
    let page = html(&Report { title: NASTY, config_toml: NASTY, data: Some(&data), history, summary, evaluation });
    check_well_formed(&page);
    assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains("inf "), "{page}");
    page
}

/// Every tag that opens closes in its turn, attributes are quoted, and `&` begins an entity.
fn check_well_formed(page: &str) {
    let mut open = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(start) = rest.find('<') {
        let (text, from) = rest.split_at(start);
        assert!(!text.contains('>') || open.last() == Some(&"style"), "{text}");
        for entity in text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| entity.starts_with(known)), "{entity}");
        }
        let (tag, after) = from[1..].split_once('>').unwrap();
        rest = after;
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    assert_eq!(rest.trim(), "");
}

#[test]
fn text_from_outside_is_escaped() {
    let mut summary = summary(3);
    for text in [&mut summary.data, &mut summary.model, &mut summary.device] {
        NASTY.clone_into(text);
    }
    summary.heuristics.insert(NASTY.to_owned(), both(0.99));
    let page = page(&history(3), Some(&summary));
    assert!(!page.contains("<script") && !page.contains('\u{1b}') && !page.contains('\0'));
    let shown = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;quotes&quot; \\u{1b}[1m\\u{0}";
    // Title twice, configuration, data, model thrice, device, heuristic in four tiles, a note and two tables.
    assert_eq!(page.matches(shown).count(), 16);
}

#[test]
fn the_page_has_no_scripts_and_no_external_resources() {
    let page = page(&history(3), Some(&summary(3)));
    for foreign in ["http:", "https:", "//", "url(", "@import", "<script", " src=", " onload"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn the_best_of_each_column_is_bold() {
    let page = page(&history(3), Some(&summary(3)));
    for bold in ["92.50", "91.50", "90.50", "89.50", "87.50", "86.50", "85.50", "84.50"] {
        assert_eq!(page.matches(&format!("<td><b>{bold}</b></td>")).count(), 1, "{bold}");
    }
    assert_eq!(page.matches("<td><b>").count(), 8);
    assert!(
        page.contains("<b>92.00<i>\u{a0}%</i></b>")
            && page.contains("<small>best heuristic: 92.50\u{a0}%, recency</small>")
    );
}

#[test]
fn a_single_epoch_is_marked_as_best_in_every_chart() {
    let page = page(&history(1), Some(&summary(1)));
    assert_eq!(page.matches("best: epoch 1<").count(), 3);
    assert_eq!(page.matches("class=\"dot large ").count(), 5);
}

#[test]
fn a_page_without_epochs_or_summary_is_well_formed() {
    let empty = page(&[], None);
    assert!(empty.contains("No epoch has ended yet") && !empty.contains("Training loss"));
    assert!(page(&[], Some(&summary(0))).contains("Test results"));
    check_well_formed(&html(&Report {
        title: "",
        config_toml: "",
        data: None,
        history: &[],
        summary: None,
        evaluation: None,
    }));
}

#[test]
fn an_interrupted_run_shows_its_best_validation_so_far() {
    let mut history = history(5);
    history[4].better = false;
    let page = page(&history, None);
    assert!(page.contains("has not been tested yet") && !page.contains("Test results"));
    assert!(page.contains("Validation AP, transductive</span><b>87.50<i>\u{a0}%</i></b>"), "of epoch 4");
    assert!(page.contains("best so far: epoch 4<") && page.contains("<tr class=\"best\"><th scope=\"row\">4</th>"));
}

#[test]
fn a_page_with_constant_and_missing_values_is_well_formed() {
    let mut history = history(4);
    for record in &mut history {
        record.loss = 0.5;
        record.val.inductive = None;
        record.val.transductive = Some(metrics(1.0));
    }
    history[2].val.transductive = None;
    history[3].loss = f64::NAN;
    history[3].val.transductive = Some(metrics(f64::NAN));
    let mut summary = summary(4);
    summary.test.inductive = None;
    summary.heuristics.values_mut().for_each(|settings| settings.inductive = None);
    let page = page(&history, Some(&summary));
    assert!(page.contains("There are none.") && !page.contains("inductive</text>"));
    let all_gone = EpochRecord { val: PerSetting { transductive: None, inductive: None }, ..history[3].clone() };
    assert!(
        html(&Report { title: "", config_toml: "", data: None, history: &[all_gone], summary: None, evaluation: None })
            .contains("no values")
    );
}

/// As `evaluation.json` holds it: 0.95 of the heuristic against historical negatives, everything else is the model's.
fn evaluation() -> Evaluation {
    let scorers = |ap| [("hopedgn".to_owned(), both(0.9)), (NASTY.to_owned(), both(ap))].into();
    let ranks = |mrr| PerSetting {
        transductive: Some(RankingMetrics { mrr, hits_at_10: 0.77, ndcg_at_10: Some(0.66) }),
        inductive: None,
    };
    let ranking = |count: Value| RankingTest {
        candidates: count,
        protocol: None,
        scorers: [("hopedgn".to_owned(), ranks(0.61)), ("a".to_owned(), ranks(0.5))].into(),
    };
    Evaluation {
        run: String::new(),
        data: "collegemsg".into(),
        model: "hopedgn".into(),
        device: "cpu".into(),
        negatives: [("random".to_owned(), scorers(0.1)), ("historical".to_owned(), scorers(0.95))].into(),
        ranking: Some(ranking(json!(100))),
        calibration: None,
        tested: None,
        incomplete: Vec::new(),
        other_rankings: vec![ranking(json!("all"))],
    }
}

#[test]
fn hard_negatives_and_rankings_are_shown_beside_the_test() {
    let page = evaluated_page(&history(3), Some(&summary(3)), Some(&evaluation()));
    assert_eq!(page.matches("<h3>").count(), 3);
    for part in [
        "<h3>Against historical negatives</h3>",
        "<h3>Ranking among at most 100 other destinations</h3>",
        "<h3>Ranking among all other destinations</h3>",
        "<td><b>61.00</b></td><td><b>77.00</b></td><td><b>66.00</b></td>",
        "<th scope=\"col\">MRR</th><th scope=\"col\">Hits@10</th><th scope=\"col\">NDCG@10</th>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script") && !page.contains("Against random"));
    assert!(!self::page(&history(3), Some(&summary(3))).contains("<h3>"));
}

#[test]
fn a_run_under_the_protocol_of_tgb_shows_its_mrr() {
    let mut history = history(3);
    assert!(!page(&history, None).contains("MRR"));
    for record in &mut history {
        record.val_mrr = Some(0.625);
    }
    let mut evaluation = evaluation();
    evaluation.ranking.as_mut().unwrap().protocol = Some("tgb".to_owned());
    let of_tgb = evaluation.ranking.clone().unwrap();
    evaluation.other_rankings = vec![RankingTest { candidates: json!("lists<.jsonl"), ..of_tgb }];
    let page = evaluated_page(&history, Some(&summary(3)), Some(&evaluation));
    for part in [
        "Validation MRR, %",
        "<th scope=\"col\">MRR</th>",
        "<td>62.50</td>",
        "<h3>Ranking among at most 100 other destinations, TGB\u{2019}s protocol</h3>",
        "<h3>Ranking among the candidates of lists&lt;.jsonl, TGB\u{2019}s protocol</h3>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("There are none."), "TGB has no test of new nodes");
}

#[test]
fn a_better_heuristic_is_named_in_a_note() {
    let mut summary = summary(3);
    let shown = page(&history(3), Some(&summary));
    assert!(
        shown.contains(
            "<p class=\"note\">recency, an untrained heuristic, has the higher AP: 92.50 against 92.00 (random negatives). Train"
        ),
        "{shown}"
    );
    summary.heuristics.clear();
    assert!(!page(&history(3), Some(&summary)).contains("class=\"note\""));
    let page = evaluated_page(&history(3), Some(&summary), Some(&evaluation()));
    assert!(page.contains("has the higher AP: 95.00 against 90.00 (historical negatives). Train longer"), "{page}");
    assert!(!page.contains("(random negatives)") && !page.contains("(ranking)"));
}

#[test]
fn equal_runs_give_equal_pages() {
    assert_eq!(page(&history(7), Some(&summary(7))), page(&history(7), Some(&summary(7))));
}

#[test]
fn the_page_of_a_long_run_stays_small() {
    let page = page(&history(1000), Some(&summary(1000)));
    assert!(page.len() < 400_000, "{} bytes", page.len());
}
