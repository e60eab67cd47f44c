//! Train on the bundled messages, then predict, recommend, explain, evaluate, save and load.
//!
//! `cargo run --release --example quick_start -- /tmp/run` takes a few minutes on two cores; one epoch is enough to look around.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use hopedgn::callbacks::{Callback, EpochEnd};
use hopedgn::{Events, LinkPredictor, ModelName, Preset, Result};

/// Prints a line for each epoch.
struct PrintEpochs;

impl Callback for PrintEpochs {
    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        let ap = end.record.val.transductive.map_or(0.0, |metrics| metrics.ap);
        println!("epoch {}: loss {:.4}, validation AP {ap:.4}", end.record.epoch, end.record.loss);
        Ok(())
    }
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "runs/quick-start".to_owned());
    let events = Events::collegemsg()?;
    let predictor = LinkPredictor::builder()
        .model(ModelName::HopeDgn)
        .preset(Preset::Quick)
        .epochs(1)
        .callback(PrintEpochs)
        .fit(&events)?;

    let t = events.end(); // just after the last message
    println!("probability that 9 writes to 32: {:.3}", predictor.predict("9", "32", t)?);
    for item in predictor.recommend("9", 5, t)? {
        let seen = if item.known { "wrote before" } else { "new" };
        println!("  {:>5} {:.3} {seen}", item.dst, item.score);
    }
    let why = predictor.explain("9", "32", t)?;
    print!("{why}");

    let report = predictor.evaluate(&events)?;
    for (negatives, scorers) in &report.negatives {
        let ap = scorers["hopedgn"].transductive.map_or(f64::NAN, |metrics| metrics.ap);
        println!("test AP, {negatives} negatives: {ap:.4}");
    }
    predictor.save(&folder)?;
    let again = LinkPredictor::load(&folder, &events)?;
    assert_eq!(again.predict("9", "32", t)?, predictor.predict("9", "32", t)?);
    println!("saved in {folder}; look at {folder}/report.html");
    Ok(())
}
