//! Evaluation of a [`LinkPredictor`] under every protocol, pass by pass; in a run folder it continues after an interruption.

use std::collections::BTreeMap;
use std::path::Path;

use ctdg::negative::{CandidateCount, Candidates, Pass};
use ctdg::split::{SplitMode, SplitRule};
use serde_json::json;

use super::LinkPredictor;
use crate::callbacks::{Callback, HtmlReport, NoCallback, TrainEnd, TrainStart};
use crate::config::Objective;
use crate::evaluate::{Evaluation, Evaluator, Negatives, PASSES, RankingTest, TestRange, put};
use crate::run::{PartialEvaluation, RunFolder};
use crate::{Error, Events, Result};

/// What [`LinkPredictor::evaluate_with`] measures. The default is every protocol.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// use hopedgn::{EvaluateOptions, callbacks::NoCallback, evaluate::Negatives};
///
/// let options = EvaluateOptions { negatives: vec![Negatives::Random], ranking: None, ..EvaluateOptions::default() };
/// let evaluation = predictor.evaluate_with(&events, &options, &mut NoCallback)?;
/// assert!(evaluation.negatives.contains_key("random") && evaluation.ranking.is_none());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluateOptions {
    /// Kinds of negatives for AP and AUC.
    pub negatives: Vec<Negatives>,
    /// Other destinations that each true one is ranked among, for MRR, Hits and NDCG. Candidates of TGB and of a file are for runs with
    /// TGB's split, and rank all test events only, as TGB does.
    pub ranking: Option<Candidates>,
    /// Which events are tested.
    pub range: TestRange,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        Self {
            negatives: Negatives::ALL.to_vec(),
            ranking: Some(CandidateCount::Some(100).into()),
            range: TestRange::Split,
        }
    }
}

/// One test of an evaluation, in one or two passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test<'o> {
    Links(Negatives),
    Ranking(&'o Candidates),
}

impl Test<'_> {
    fn title(self) -> String {
        match self {
            Self::Links(negatives) => format!("{} negatives", negatives.as_str()),
            Self::Ranking(_) => "ranking".to_owned(),
        }
    }

    /// All events, and those with new nodes, of which TGB has no test.
    fn passes(self) -> &'static [Pass] {
        match self {
            Self::Ranking(Candidates::Tgb(_) | Candidates::File(_)) => &PASSES[..1],
            Self::Links(_) | Self::Ranking(Candidates::Drawn(_)) => &PASSES,
        }
    }

    /// The name of one of its passes.
    fn pass_title(self, pass: Pass) -> String {
        match pass {
            Pass::NewNodeTest => format!("{}, new nodes", self.title()),
            _ => self.title(),
        }
    }
}

impl EvaluateOptions {
    fn tests(&self) -> impl Iterator<Item = Test<'_>> {
        let links = self.negatives.iter().map(|&negatives| Test::Links(negatives));
        links.chain(self.ranking.iter().map(Test::Ranking))
    }

    /// The passes of all tests, in order.
    fn passes(&self) -> impl Iterator<Item = (Test<'_>, Pass)> {
        self.tests().flat_map(|test| test.passes().iter().map(move |&pass| (test, pass)))
    }

    /// What is missing where these passes are done; a test is named without its passes if all are missing.
    fn missing(&self, done: &[String]) -> Vec<String> {
        let first_missing = |test: Test<'_>| {
            let mut titles = test.passes().iter().map(|&pass| test.pass_title(pass));
            titles.find(|title| !done.contains(title))
        };
        self.tests().filter_map(first_missing).collect()
    }

    /// All that decides the metrics besides model and events.
    fn text(&self) -> String {
        let kinds: Vec<&str> = self.negatives.iter().map(|kind| kind.as_str()).collect();
        // A file of candidates may be changed between two calls.
        let file = match &self.ranking {
            Some(Candidates::File(path)) => std::fs::metadata(path).ok(),
            _ => None,
        };
        let file = file.map(|file| (file.len(), file.modified().ok()));
        format!("{} {:?} {file:?} {:?}", kinds.join(","), self.ranking, self.range)
    }

    /// Refuses candidates of TGB for another split.
    fn check_split(&self, rule: &SplitRule) -> Result<()> {
        match (&self.ranking, rule.mode) {
            (None | Some(Candidates::Drawn(_)), _) | (_, SplitMode::Tgb) => Ok(()),
            (_, mode) => Err(Error::OtherSplit { found: mode.as_str(), masked: rule.masked.len() }),
        }
    }
}

/// A ranking without results, as an [`Evaluation`] states it.
fn ranking_test(candidates: &Candidates) -> RankingTest {
    let file_name =
        |path: &Path| path.file_name().map_or(path.display().to_string(), |name| name.to_string_lossy().into());
    let (candidates, protocol) = match candidates {
        Candidates::Drawn(CandidateCount::Some(count)) => (json!(count), None),
        Candidates::Drawn(CandidateCount::All) => (json!("all"), None),
        Candidates::Tgb(rule) => (rule.limit().map_or(json!("all"), |n| json!(n)), Some("tgb".to_owned())),
        Candidates::File(path) => (json!(file_name(path)), Some("tgb".to_owned())),
    };
    RankingTest { candidates, protocol, scorers: BTreeMap::new() }
}

impl LinkPredictor {
    /// Test metrics under every protocol: random, historical and inductive negatives, all nodes and new ones, and ranking
    /// among 100 destinations, with untrained heuristics beside the model.
    ///
    /// `events` are those the model was trained on; later ones at their end are not tested, unless [`EvaluateOptions::range`] asks
    /// for them.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// let evaluation = predictor.evaluate(&events)?;
    /// let random = &evaluation.negatives["random"];
    /// assert!(random.contains_key("hopedgn") && random.len() > 1); // heuristics beside the model
    /// println!("{:?}", random["hopedgn"].transductive.map(|metrics| metrics.ap));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn evaluate(&self, events: &Events) -> Result<Evaluation> {
        self.evaluate_with(events, &EvaluateOptions::default(), &mut NoCallback)
    }

    /// The same for some protocols, with progress.
    ///
    /// [`EvaluateOptions`] has an example.
    pub fn evaluate_with(
        &self,
        events: &Events,
        options: &EvaluateOptions,
        callback: &mut dyn Callback,
    ) -> Result<Evaluation> {
        let mut partial = self.nothing_measured(String::new());
        self.measure(events, options, &mut partial, &mut |_| {}, callback)?;
        Ok(partial.evaluation)
    }

    /// The same for [`LinkPredictor::events`]. When the callback asks to stop, the passes that are complete are returned, and
    /// [`Evaluation::incomplete`] names the others.
    ///
    /// The folder of a complete run keeps a checkpoint after each pass over its test part, from which the next call with the same
    /// options continues. [`LinkPredictor::keep_evaluation`] keeps the result.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let place = tempfile::tempdir()?;
    /// # let folder = place.path().join("mine");
    /// # LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?.save(&folder)?;
    /// use hopedgn::{EvaluateOptions, callbacks::Callback};
    ///
    /// struct Stop; // e.g. on Ctrl-C
    /// impl Callback for Stop {
    ///     fn should_stop(&self) -> bool {
    ///         true
    ///     }
    /// }
    /// let predictor = LinkPredictor::load(&folder, &events)?;
    /// let stopped = predictor.evaluate_run(&EvaluateOptions::default(), &mut Stop)?;
    /// assert_eq!(stopped.incomplete, ["random negatives", "historical negatives", "inductive negatives", "ranking"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn evaluate_run(&self, options: &EvaluateOptions, callback: &mut dyn Callback) -> Result<Evaluation> {
        let folder = self.evaluated_folder(options)?;
        let key = folder.as_ref().map(|folder| self.evaluation_key(folder, options)).transpose()?.unwrap_or_default();
        let earlier = folder.as_ref().and_then(|folder| folder.partial_evaluation(&key));
        let mut partial = earlier.unwrap_or_else(|| self.nothing_measured(key.clone()));
        let keep = &mut |partial: &PartialEvaluation| {
            if let Some(folder) = &folder {
                // Best effort: without it, an interrupted evaluation starts again.
                let _ = folder.write_partial_evaluation(partial);
            }
        };
        match self.measure(&self.events, options, &mut partial, keep, callback) {
            Err(Error::Interrupted) => {
                let mut incomplete = options.missing(&partial.done);
                if self.trained.config.train.objective == Objective::Intensity {
                    incomplete.push("calibration".to_owned());
                }
                return Ok(Evaluation { incomplete, ..partial.evaluation });
            }
            measured => measured?,
        }
        Ok(partial.evaluation)
    }

    /// Adds a complete evaluation of the test part to `evaluation.json` in the run folder, and shows it in `report.html`. False if
    /// there is nothing to keep: no folder, another evaluation, or a run that is not complete or was trained further.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let place = tempfile::tempdir()?;
    /// # let folder = place.path().join("mine");
    /// # LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?.save(&folder)?;
    /// use hopedgn::{EvaluateOptions, callbacks::NoCallback, run::RunFolder};
    ///
    /// let predictor = LinkPredictor::load(&folder, &events)?;
    /// let evaluation = predictor.evaluate_run(&EvaluateOptions::default(), &mut NoCallback)?;
    /// assert!(predictor.keep_evaluation(&evaluation)?);
    /// assert_eq!(RunFolder::open(&folder)?.evaluation()?, Some(evaluation));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_evaluation(&self, evaluation: &Evaluation) -> Result<bool> {
        let is_of_test = evaluation.tested.as_ref().is_some_and(|tested| tested.range == TestRange::Split.as_str());
        let Some(folder) = self.trained.folder.as_deref().filter(|_| is_of_test && evaluation.is_complete()) else {
            return Ok(false);
        };
        let folder = RunFolder::open(folder)?;
        let _lock = folder.lock()?;
        if self.trained.summary.is_none() || folder.summary()? != self.trained.summary {
            return Ok(false);
        }
        folder.keep_evaluation(evaluation)?;
        let known = self.known(&self.events)?;
        let task = self.known_task(&known)?;
        let mut report = HtmlReport::new(folder.path());
        report.on_train_start(&TrainStart {
            config: &self.trained.config,
            task: &task,
            history: &self.trained.epochs,
        })?;
        report.on_train_end(&TrainEnd { history: &self.trained.epochs, summary: self.trained.summary.as_ref() })?;
        folder.record_views()?;
        Ok(true)
    }

    /// How many passes of such an evaluation were measured before it was interrupted, and of how many.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// assert_eq!(predictor.passes_measured(&hopedgn::EvaluateOptions::default())?, (0, 8));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn passes_measured(&self, options: &EvaluateOptions) -> Result<(usize, usize)> {
        let n_passes = options.passes().count();
        let Some(folder) = self.evaluated_folder(options)? else { return Ok((0, n_passes)) };
        let partial = folder.partial_evaluation(&self.evaluation_key(&folder, options)?);
        Ok((partial.map_or(0, |partial| partial.done.len()), n_passes))
    }

    /// Runs the passes that `partial` lacks; `keep` is called after each.
    fn measure(
        &self,
        events: &Events,
        options: &EvaluateOptions,
        partial: &mut PartialEvaluation,
        keep: &mut dyn FnMut(&PartialEvaluation),
        callback: &mut dyn Callback,
    ) -> Result<()> {
        let test = self.test(events, options.range)?;
        partial.evaluation.tested = Some(test.tested.clone());
        if options.range != TestRange::Split {
            // Other events than the run's own test part may be in another file.
            events.name().clone_into(&mut partial.evaluation.data);
        }
        let task = test.task()?;
        options.check_split(&task.split.rule)?;
        let memory = self.memory_before(&test, &task, callback)?;
        let evaluator = self.evaluator(&task, memory.as_ref());
        for (test, pass) in options.passes() {
            let title = test.pass_title(pass);
            if partial.done.contains(&title) {
                continue;
            }
            run_pass(&evaluator, test, pass, &mut partial.evaluation, callback)?;
            partial.done.push(title);
            keep(partial);
        }
        if partial.evaluation.calibration.is_none() {
            partial.evaluation.calibration = evaluator.calibration(Pass::Test, callback)?;
        }
        Ok(())
    }

    fn nothing_measured(&self, key: String) -> PartialEvaluation {
        let evaluation = Evaluation {
            run: self.trained.folder.as_ref().map(|folder| folder.display().to_string()).unwrap_or_default(),
            data: self.trained.config.data.clone(),
            model: self.trained.config.model.name().as_str().to_owned(),
            device: self.device().name().to_owned(),
            negatives: BTreeMap::new(),
            ranking: None,
            calibration: None,
            tested: None,
            incomplete: Vec::new(),
            other_rankings: Vec::new(),
        };
        PartialEvaluation { key, done: Vec::new(), evaluation }
    }

    /// The folder that keeps such an evaluation.
    fn evaluated_folder(&self, options: &EvaluateOptions) -> Result<Option<RunFolder>> {
        let is_kept = options.range == TestRange::Split && self.trained.summary.is_some();
        self.trained.folder.as_deref().filter(|_| is_kept).map(RunFolder::open).transpose()
    }

    fn evaluation_key(&self, folder: &RunFolder, options: &EvaluateOptions) -> Result<String> {
        let (device, precision) = (self.device().name(), self.device().precision().as_str());
        folder.evaluation_key(&format!("{} {device} {precision} {}", options.text(), env!("CARGO_PKG_VERSION")))
    }
}

/// Measures one pass and adds its metrics to `evaluation`.
fn run_pass(
    evaluator: &Evaluator<'_>,
    test: Test<'_>,
    pass: Pass,
    evaluation: &mut Evaluation,
    callback: &mut dyn Callback,
) -> Result<()> {
    match test {
        Test::Links(negatives) => {
            let metrics = evaluator.links_of(pass, negatives, callback)?;
            put(evaluation.negatives.entry(negatives.as_str().to_owned()).or_default(), pass, metrics);
        }
        Test::Ranking(candidates) => {
            let metrics = evaluator.ranks_of(pass, candidates, callback)?;
            let ranking = evaluation.ranking.get_or_insert_with(|| ranking_test(candidates));
            put(&mut ranking.scorers, pass, metrics);
        }
    }
    Ok(())
}
