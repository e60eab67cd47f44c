//! Train on a CSV of your own with columns of any names: `cargo run --release --example own_csv -- FILE SRC DST TIME`.
//!
//! Without arguments it writes a small file of payments and uses that.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::fmt::Write;

use hopedgn::ctdg::dataset::ColumnRef;
use hopedgn::{Error, Events, LinkPredictor, Preset, ReadOptions, Result};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let file = args.next().map_or_else(sample_file, |file| Ok(file.into()))?;
    let mut column = |default: &str| Some(ColumnRef::Name(args.next().unwrap_or_else(|| default.to_owned())));
    let options = ReadOptions {
        src: column("payer"),
        dst: column("payee"),
        time: column("paid_at"),
        sort: true, // the file need not be in order of time
        ..ReadOptions::default()
    };
    let events = Events::read_with(&file, &options)?;
    println!("{}: {} events of {} nodes", events.name(), events.len(), events.n_nodes());

    let predictor = LinkPredictor::builder().preset(Preset::Quick).epochs(3).fit(&events)?;
    let Some(summary) = predictor.summary() else { return Ok(()) };
    if let Some(test) = summary.test.transductive {
        println!("test AP {:.3}, AUC {:.3}", test.ap, test.auc);
    }
    for (name, metrics) in &summary.heuristics {
        println!("  untrained {name}: AP {:.3}", metrics.transductive.map_or(f64::NAN, |metrics| metrics.ap));
    }
    let last = events.event(events.ids().last().expect("at least one event"));
    let payer = events.names().name(last.src);
    for item in predictor.recommend(&payer, 3, events.end())? {
        println!("{payer} -> {}: {:.3}", item.dst, item.score);
    }
    Ok(())
}

/// Forty shops and customers; each customer keeps to two shops.
fn sample_file() -> Result<std::path::PathBuf> {
    let mut text = String::from("paid_at,payer,payee,amount\n");
    for i in 0..1500_u32 {
        let customer = i * 7 % 40;
        let shop = (customer + 3 * (i / 40 % 2)) % 12;
        let _ = writeln!(text, "{},customer-{customer},shop-{shop},{}", 1_700_000_000 + 60 * i, 5 + i % 20);
    }
    let file = std::env::temp_dir().join("hopedgn-payments.csv");
    std::fs::write(&file, text).map_err(|error| Error::from(hopedgn::ctdg::Error::io(&file, "write", error)))?;
    Ok(file)
}
