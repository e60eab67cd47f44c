//! Sampling and MITE without a model: the bounded history of a node, and when each neighbour interacted with both nodes of a pair.
//!
//! `cargo run --release -p hopedgn --example sampler_and_mite`. Nothing here needs tensors: the same works with the crate `ctdg` alone.

#![allow(clippy::print_stdout, reason = "an example prints")]

use hopedgn::ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery, PairTokens, Side};
use hopedgn::ctdg::random::RandomStream;
use hopedgn::ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
use hopedgn::ctdg::store::Store;
use hopedgn::{Events, Result};

fn main() -> Result<()> {
    let events = Events::collegemsg()?;
    let store = Store::build(&events)?;
    let Some(last) = events.ids().last().map(|id| events.event(id)) else { return Ok(()) };
    let name = |node| events.names().name(node);

    // The five newest events of the source strictly before the last message. Rows are ragged: nothing is padded.
    let mut histories = Histories::default();
    let queries = [NodeQuery { node: last.src, cut: events.cut(last.time) }];
    NeighborSampler::new(&store, Sampling::Recent, 5).sample(
        &queries,
        &RandomStream::named(0, "example"),
        &mut histories,
    );
    let history = histories.row(0);
    for (neighbor, time) in history.neighbors.iter().zip(history.times) {
        println!("{} interacted with {} at {time}", name(last.src), name(*neighbor));
    }

    // Tokens of the pair, both sides: the node itself, then its newest events, each with a MITE row.
    let query = PairQuery { src: last.src, dst: last.dst, time: last.time };
    let mut tokens = PairTokens::default();
    PairEncoder::new(&store, PairEncoderConfig { length: 8, k: 4, ..PairEncoderConfig::default() })
        .encode(&[query], &mut tokens);
    println!(
        "\n{} tokens of ({}, {}), {} distinct nodes",
        tokens.n_tokens(),
        name(last.src),
        name(last.dst),
        tokens.n_rows()
    );

    // Intervals between the query and the interactions of each token's node with the source and with the destination, newest first.
    for token in tokens.tokens(0, Side::Dst) {
        let row = tokens.rows()[token] as usize;
        let [with_src, with_dst] = [Side::Src, Side::Dst].map(|side| tokens.intervals(row, side));
        println!("  {:>4}: with source {with_src:?}, with destination {with_dst:?}", name(tokens.nodes()[token]));
    }
    Ok(())
}
