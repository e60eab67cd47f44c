//! [`LinkPredictor`]: train, predict, recommend, explain, evaluate, save and load.

mod builder;
mod classify;
mod evaluate;
mod folder;
mod grown;
mod live;
mod recommend;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ctdg::event::EventId;
use ctdg::live::Snapshot;
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use hopedgn_tensor::{Device, Weights};

use crate::collate::FeatureTables;
use crate::config::Config;
use crate::explain::{self, Explanation};
use crate::memory::MemoryState;
use crate::metrics::{EpochRecord, Summary};
use crate::model::Model;
use crate::predict::{NamedPairs, Resident, resident_logits};
use crate::run::Manifest;
use crate::{Error, Events, Result};

pub use builder::LinkPredictorBuilder;
pub use evaluate::EvaluateOptions;
pub use folder::LinkPredictorLoader;
pub use live::{LivePredictor, ResidentMemory};
pub use recommend::{RecommendOptions, Recommendation};

/// A trained model together with the events it looks back on.
///
/// ```
/// use hopedgn::{Events, LinkPredictor, ModelName};
///
/// // Twenty people, each of whom writes to the next one again and again.
/// let messages = (0..400).map(|i| ((i % 20).to_string(), ((i + 1) % 20).to_string(), f64::from(i)));
/// let events = Events::from_tuples(messages)?;
/// let predictor = LinkPredictor::builder()
///     .model(ModelName::HopeDgn)
///     .set("model.d-channel=4")
///     .set("model.length=4")
///     .epochs(2)
///     .fit(&events)?;
///
/// let p = predictor.predict("3", "4", 400.0)?; // between 0 and 1
/// assert!((0.0..=1.0).contains(&p));
/// let best = predictor.recommend("3", 5, 400.0)?; // the five most likely destinations
/// assert_eq!(best.len(), 5);
/// assert!(best[0].score >= best[4].score);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct LinkPredictor {
    trained: Arc<Trained>,
    events: Events,
    tables: FeatureTables,
    store: OnceLock<Store>,
    /// Where the events come from, if they are those of a live stream.
    snapshot: Option<Arc<Snapshot>>,
    /// What the model keeps of them.
    resident: Option<Arc<Resident>>,
}

/// What training made.
#[derive(Debug)]
struct Trained {
    config: Config,
    manifest: Manifest,
    model: Box<dyn Model>,
    weights: Weights,
    memory: Option<MemoryState>,
    epochs: Vec<EpochRecord>,
    summary: Option<Summary>,
    folder: Option<PathBuf>,
    /// The last checkpoint, where no folder holds it.
    state: Option<Vec<u8>>,
}

impl LinkPredictor {
    /// Options for training a model.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::{LinkPredictor, ModelName};
    ///
    /// let builder = LinkPredictor::builder().model(ModelName::GraphMixer).set("model.d-out=8").epochs(1);
    /// let predictor = builder.fit(&events)?;
    /// assert_eq!(predictor.history().len(), 1);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    #[must_use]
    pub fn builder<'c>() -> LinkPredictorBuilder<'c> {
        LinkPredictorBuilder::default()
    }

    /// The score of `src` and `dst` at time `t`, from events strictly before `t`: a number between 0 and 1, the higher the likelier they
    /// interact. A model that was trained for intensities gives the probability that the next partner of `src` is `dst`; see
    /// [`ScoreMeaning`](crate::predict::ScoreMeaning).
    ///
    /// An id without any event is a node without a history, which is a question a model can answer;
    /// [`LinkPredictor::knows_source`] and [`LinkPredictor::knows_destination`] tell a known id from a new or misspelt one.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// let p = predictor.predict("3", "4", 200.0)?;
    /// assert!((0.0..=1.0).contains(&p));
    /// assert!(predictor.predict("3", "zoe", 200.0).is_ok()); // a new node without history
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn predict(&self, src: &str, dst: &str, t: f64) -> Result<f32> {
        let pairs = self.named_pairs(&[(src, dst, t)])?;
        Ok(self.scores(pairs.queries())?[0])
    }

    /// The score of each of `pairs` (source, destination, time), the same as [`LinkPredictor::predict`] gives for each
    /// alone, but in batches.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// let both = predictor.predict_many(&[("3", "4", 200.0), ("3", "7", 100.0)])?;
    /// assert_eq!(both, [predictor.predict("3", "4", 200.0)?, predictor.predict("3", "7", 100.0)?]);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn predict_many<S: AsRef<str>, D: AsRef<str>>(&self, pairs: &[(S, D, f64)]) -> Result<Vec<f32>> {
        self.scores(self.named_pairs(pairs)?.queries())
    }

    /// The logit of each of `queries`: what [`LinkPredictor::score_meaning`] turns into a score.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// use hopedgn::{ctdg::mite::PairQuery, predict::sigmoid};
    ///
    /// let (src, dst) = (events.src()[0], events.dst()[0]); // "0" and "1"
    /// let logits = predictor.logits(&[PairQuery { src, dst, time: 200.0 }])?;
    /// assert_eq!(sigmoid(logits[0]), predictor.predict("0", "1", 200.0)?);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn logits(&self, queries: &[PairQuery]) -> Result<Vec<f32>> {
        self.logits_with_progress(queries, &mut |_| {})
    }

    /// The same; `on_progress` is called with the number of newly scored pairs. Scores that are no numbers, as damaged weights give
    /// them, are an error.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// use hopedgn::ctdg::{event::EventId, mite::PairQuery};
    ///
    /// let queries = PairQuery::of(&events, &[EventId(7), EventId(8)]);
    /// let mut done = 0;
    /// predictor.logits_with_progress(&queries, &mut |n| done += n)?;
    /// assert_eq!(done, 2);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn logits_with_progress(&self, queries: &[PairQuery], on_progress: &mut dyn FnMut(usize)) -> Result<Vec<f32>> {
        let (model, weights) = (&*self.trained.model, &self.trained.weights);
        let logits = resident_logits(&self.past()?, self.resident.as_deref(), model, weights, queries, on_progress)?;
        match logits.iter().position(|logit| !logit.is_finite()) {
            Some(pair) => Err(Error::NonFiniteScore { score: logits[pair], pair }),
            None => Ok(logits),
        }
    }

    /// Why `src` and `dst` get their score at time `t`: common past neighbours or paths of three events, and the effect of each event
    /// and of all interactions with one node. An [`Explanation`] displays as text.
    ///
    /// Refused for models whose score is not a function of the recent events of both nodes ([`Error::NotExplained`]).
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// let why = predictor.explain("3", "5", 200.0)?;
    /// assert_eq!(why.common[0].node, "4"); // both wrote with 4 before
    /// assert!(why.pair_times.is_empty()); // and never with each other
    /// assert!(why.effects[0].change.abs() >= why.effects[1].change.abs());
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn explain(&self, src: &str, dst: &str, t: f64) -> Result<Explanation<String>> {
        let pairs = self.named_pairs(&[(src, dst, t)])?;
        Ok(self.explain_query(pairs.queries()[0])?.map_nodes(|node| pairs.name(node)))
    }

    /// The same for a pair of node ids.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// let query = hopedgn::ctdg::mite::PairQuery { src: events.src()[3], dst: events.src()[5], time: 100.0 };
    /// assert_eq!(predictor.explain_query(query)?.common[0].node, events.src()[4]);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn explain_query(&self, query: PairQuery) -> Result<Explanation> {
        explain::explain(&*self.trained.model, &self.trained.weights, &self.tables, self.store()?, query)
    }

    /// The score of `src` and `dst` at time `t` if the events `left_out` had not happened. Refused where [`LinkPredictor::explain`] is.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// let effect = predictor.explain("3", "5", 200.0)?.effects[0].clone();
    /// let without = predictor.predict_without("3", "5", 200.0, &[effect.event])?;
    /// assert_eq!(predictor.predict("3", "5", 200.0)? - without, effect.change);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn predict_without(&self, src: &str, dst: &str, t: f64, left_out: &[EventId]) -> Result<f32> {
        let query = self.named_pairs(&[(src, dst, t)])?.queries()[0];
        let mut left_out = left_out.to_vec();
        left_out.sort_unstable();
        left_out.dedup();
        let (model, weights) = (&*self.trained.model, &self.trained.weights);
        Ok(explain::scores_without(model, weights, &self.tables, self.store()?, query, &[&left_out])?[0])
    }

    /// Whether [`LinkPredictor::explain`] works for this model.
    ///
    /// ```
    /// # use hopedgn::Events;
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// use hopedgn::{LinkPredictor, ModelName};
    ///
    /// let jodie = LinkPredictor::builder().model(ModelName::Jodie).set("model.d-out=4").epochs(1).fit(&events)?;
    /// assert!(jodie.check_explains().is_err()); // its memory depends on all earlier events
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn check_explains(&self) -> Result<()> {
        explain::check(&*self.trained.model)
    }

    /// Whether `src` is the id of a node that may be a source: of any node, or in bipartite data of a source.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// assert!(predictor.knows_source("3")? && predictor.knows_destination("4")?);
    /// assert!(!predictor.knows_source("three")?);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn knows_source(&self, src: &str) -> Result<bool> {
        Ok(self.events.lookup()?.source(src).is_some())
    }

    /// Whether `dst` is the id of a node that may be a destination: of any node, or in bipartite data of a destination.
    pub fn knows_destination(&self, dst: &str) -> Result<bool> {
        Ok(self.events.lookup()?.destination(dst).is_some())
    }

    /// The events that predictions look back on.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// All settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.trained.config
    }

    /// The model without its weights.
    #[must_use]
    pub fn model(&self) -> &dyn Model {
        &*self.trained.model
    }

    /// Loss and validation metrics of every epoch.
    #[must_use]
    pub fn history(&self) -> &[EpochRecord] {
        &self.trained.epochs
    }

    /// Test metrics against random negatives, if training is complete.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.trained.summary.as_ref()
    }

    /// The run folder, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.trained.folder.as_deref()
    }

    /// Where the model computes.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.trained.weights.device()
    }

    /// A trained model that looks back on `events`.
    fn new(trained: Trained, events: &Events, tables: FeatureTables) -> Self {
        let trained = Arc::new(trained);
        Self { trained, events: events.clone(), tables, store: OnceLock::new(), snapshot: None, resident: None }
    }

    fn store(&self) -> Result<&Store> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let store = Store::build(&self.events)?;
        Ok(self.store.get_or_init(|| store))
    }

    fn named_pairs<S: AsRef<str>, D: AsRef<str>>(&self, pairs: &[(S, D, f64)]) -> Result<NamedPairs<'_>> {
        let mut named = NamedPairs::new(&self.events)?;
        for (src, dst, time) in pairs {
            if !time.is_finite() {
                let (found, expected) = (time.to_string(), "a finite number".to_owned());
                return Err(Error::Setting { name: "time", found, expected });
            }
            named.push(src.as_ref(), dst.as_ref(), *time)?;
        }
        Ok(named)
    }
}
