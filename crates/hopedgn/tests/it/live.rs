//! A model on a stream that grows, against the same model on a file of the events so far: every answer is the same to the last bit.
//!
//! Every model is tried at random prefixes, with equal times, self-loops, new nodes, restarts and rebuilds in between. `HOPEDGN_TRIES` and
//! `HOPEDGN_SEED` in the environment say how many streams and which.

use std::path::Path;
use std::sync::Arc;

use ctdg::live::{LiveStore, NewEvent};
use ctdg::random::RandomStream;
use hopedgn::{Config, Events, LinkPredictor, LivePredictor, ModelName, RecommendOptions};

use crate::tries;

/// Source, destination, time.
type Row = (String, String, f64);

/// Events that the run is trained on.
const N_TRAINED: usize = 120;
const N_EVENTS: usize = 190;

/// Nodes meet a few others again and again; some are alone with themselves, some come late.
fn rows(random: &mut RandomStream, integers: bool) -> Vec<Row> {
    let mut time = 5.0;
    let mut row = |at: usize| {
        time += f64::from(random.below(3)) / 2.0;
        let late = at / 30;
        let src = random.index(9 + late);
        let dst = if random.below(20) == 0 { src } else { (src + 1 + random.index(3)) % (9 + late) };
        let name = |node: usize| if integers { (node * 7).to_string() } else { format!("n{node}") };
        (name(src), name(dst), time)
    };
    (0..N_EVENTS).map(&mut row).collect()
}

fn events(rows: &[Row]) -> Events {
    Events::from_tuples(rows.iter().map(|(src, dst, time)| (src, dst, *time))).unwrap()
}

/// Settings of every model, small; some also with statistics and walks.
fn models() -> Vec<(ModelName, Vec<&'static str>)> {
    let mut all: Vec<(ModelName, Vec<&str>)> = ModelName::ALL.into_iter().map(|name| (name, Vec::new())).collect();
    all.push((ModelName::Stats, vec!["model.walks=true", "model.d-walk=16", "model.walk-decay=0.05"]));
    all.push((
        ModelName::HopeDgn,
        vec!["model.stats=true", "model.triads=true", "model.direction=true", "train.objective=intensity"],
    ));
    all.push((
        ModelName::HopeDgn,
        vec!["model.relations=true", "model.stats=true", "model.walks=true", "model.d-walk=16"],
    ));
    all.push((ModelName::Tgn, vec!["model.stats=true", "model.walks=true", "model.d-walk=16"]));
    all.push((ModelName::Cawn, vec!["model.sampling=time-interval-aware"]));
    all
}

fn trained(model: ModelName, settings: &[&str], events: &Events, folder: &Path) {
    let sizes = ["length=5", "neighbors=3", "k=3", "d-channel=4", "d-time=4", "d-mite=4", "d-out=8", "n-heads=2"];
    let settings = settings.iter().copied().chain(["train.batch=16", "train.epochs=1"]).map(str::to_owned);
    let mut config = Config::resolve(model, &[], &settings.collect::<Vec<_>>()).unwrap();
    config.model = config.model.with_known(&sizes).unwrap();
    LinkPredictor::builder().config(config).run_folder(folder).fit(events).unwrap();
}

/// Scores, recommendations and explanations of a predictor, as text that holds every bit.
fn answers(predictor: &LinkPredictor, pairs: &[Row]) -> Vec<String> {
    let bits = |value: f32| value.to_bits();
    let mut all: Vec<String> =
        predictor.predict_many(pairs).unwrap().into_iter().map(|p| bits(p).to_string()).collect();
    for (src, dst, time) in &pairs[..2] {
        let options = RecommendOptions { top: 6, reasons: true, ..RecommendOptions::at(*time) };
        let best = predictor.recommend_with(src, &options, &mut |_| {}).unwrap();
        all.extend(best.iter().map(|best| format!("{} {} {:?}", best.dst, bits(best.score), best.reason)));
        if predictor.check_explains().is_ok() {
            let why = predictor.explain(src, dst, *time).unwrap();
            all.push(format!("{why} {}", bits(why.probability)));
        }
    }
    all
}

fn append(store: &mut LiveStore, rows: &[Row]) {
    let events: Vec<NewEvent<'_>> = rows.iter().map(|(src, dst, time)| NewEvent::new(src, dst, *time)).collect();
    store.append(&events).unwrap();
}

/// Pairs of known, late and unknown nodes, before, at and after the newest time.
fn pairs(random: &mut RandomStream, rows: &[Row], n: usize) -> Vec<Row> {
    let newest = rows[n - 1].2;
    let mut pair = |at: usize| {
        let name = |random: &mut RandomStream| match random.below(8) {
            0 => "unheard-of".to_owned(),
            1 => rows[random.index(rows.len())].0.clone(),
            _ => rows[random.index(n)].1.clone(),
        };
        let time = match at % 4 {
            0 => newest + 0.5,
            1 => newest,
            2 => newest + 1e6,
            _ => rows[random.index(n)].2,
        };
        (name(random), name(random), time)
    };
    (0..12).map(&mut pair).collect()
}

#[test]
fn after_any_prefix_every_answer_equals_that_of_a_file_of_it() {
    let mut n_checked = 0;
    for index in 0..tries::number(1) {
        for (at, (model, settings)) in (0..).zip(models()) {
            let mut random = RandomStream::named(tries::seed(), "live").fork(index).fork(at);
            let rows = rows(&mut random, at % 2 == 0);
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("run");
            trained(model, &settings, &events(&rows[..N_TRAINED]), &folder);
            let load = |rows: &[Row]| LinkPredictor::load(&folder, &events(rows)).unwrap();

            let mut live = LivePredictor::new(&load(&rows[..N_TRAINED]));
            let mut store = live.store(&events(&rows[..N_TRAINED])).unwrap();
            let (mut n, mut rebuilt) = (N_TRAINED, None);
            while n < N_EVENTS {
                let end = N_EVENTS.min(n + 1 + random.index(12));
                append(&mut store, &rows[n..end]);
                n = end;
                let snapshot = Arc::new(store.snapshot());
                match random.below(6) {
                    0 => rebuilt = Some(snapshot.rebuild().unwrap()),
                    1 => rebuilt.take().into_iter().for_each(|rebuilt| store.adopt(rebuilt)),
                    2 => {
                        // A restart: the log and what the model kept are read again.
                        let memory = live.memory_state().unwrap();
                        live = LivePredictor::new(&load(&rows[..n]));
                        store = live.store(&events(&rows[..n])).unwrap();
                        rebuilt = None;
                        if let Some(memory) = memory {
                            let kept = hopedgn::ResidentMemory::from_bytes(&memory.to_bytes().unwrap()).unwrap();
                            live.restore_memory(&Arc::new(store.snapshot()), &kept).unwrap();
                        }
                    }
                    _ => {}
                }
                if random.below(3) > 0 {
                    continue;
                }
                let pairs = pairs(&mut random, &rows, n);
                let found = answers(&live.at(&Arc::new(store.snapshot())).unwrap(), &pairs);
                assert_eq!(found, answers(&load(&rows[..n]), &pairs), "{model:?} {settings:?} after {n} events");
                n_checked += 1;
            }
        }
    }
    tries::report("prefixes of live streams", n_checked);
    assert!(n_checked > 30);
}
