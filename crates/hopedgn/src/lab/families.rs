//! Graphs and pairs of nodes that are hard to tell apart.

use ctdg::event::{EventStream, NodeId};
use ctdg::generate::TriadicSpec;
use ctdg::random::Stream;
use ctdg::wl::examples;

use crate::Result;

/// Two graphs, or two pairs of nodes in them.
#[derive(Debug, Clone)]
pub struct Case {
    /// The first graph.
    pub a: EventStream,
    /// The second, or the first again.
    pub b: EventStream,
    /// Only events strictly before this time are seen.
    pub until: f64,
    /// The pairs in question, one of each graph; without, the graphs are.
    pub pairs: Option<[[NodeId; 2]; 2]>,
}

/// Cases of one kind.
#[derive(Debug, Clone)]
pub struct Family {
    /// What the table calls it.
    pub name: String,
    /// What they are.
    pub about: String,
    /// At least one.
    pub cases: Vec<Case>,
}

/// Graphs of more events than this take too long for models that look at neighbours of neighbours of all pairs.
const MOST_EVENTS: usize = 100;

/// All families; random ones have `n_cases` each.
pub fn all(n_cases: u64, seed: u64) -> Result<Vec<Family>> {
    let mut families = Vec::new();
    for example in examples::all()?.into_iter().filter(|example| example.a.len() <= MOST_EVENTS) {
        let until = example.until.unwrap_or_else(|| after(&example.a).max(after(&example.b)));
        let pairs = example.tuples.as_ref().map(|tuples| tuples.each_ref().map(|tuple| [tuple[0], tuple[1]]));
        let case = Case { a: example.a, b: example.b, until, pairs };
        families.push(Family { name: example.name.to_owned(), about: example.about.to_owned(), cases: vec![case] });
    }
    let mut add = |name: &str, about: &str, case: &dyn Fn(&mut Stream) -> Result<Case>| -> Result<()> {
        let random = Stream::named(seed, &format!("lab/{name}"));
        let cases = (0..n_cases).map(|index| case(&mut random.fork(index))).collect::<Result<_>>()?;
        families.push(Family { name: name.to_owned(), about: about.to_owned(), cases });
        Ok(())
    };
    add("triadic", "(A, C) and (A, C') of an episode of `hopedgn data generate triadic`", &triadic)?;
    add("regular", "eight nodes, three random perfect matchings at times 1, 2, 3, twice", &regular)?;
    add("time-twins", "six nodes, ten random events, and the same with the times permuted", &twins)?;
    add("copies", "a random graph, and itself with other names and another order of simultaneous events", &|random| {
        copies(random, false)
    })?;
    add("copies-turned", "the same, with source and destination of some events exchanged", &|random| {
        copies(random, true)
    })?;
    Ok(families)
}

/// A time after all events.
fn after(stream: &EventStream) -> f64 {
    stream.times().last().map_or(0.0, |last| last + 1.0)
}

fn triadic(random: &mut Stream) -> Result<Case> {
    let triadic = TriadicSpec { n_episodes: 1, ..TriadicSpec::default() }.generate(random.next_u64())?;
    let first = triadic.queries[0];
    let is_mirrored = |query: &&ctdg::generate::Query| query.src == first.src && query.dst != first.dst;
    let other = triadic.queries.iter().find(is_mirrored).copied().unwrap_or(first);
    let pairs = Some([[first.src, first.dst], [other.src, other.dst]]);
    Ok(Case { a: triadic.stream.clone(), b: triadic.stream, until: first.time, pairs })
}

fn regular(random: &mut Stream) -> Result<Case> {
    let mut draw = || {
        let mut events = Vec::new();
        for time in [1.0, 2.0, 3.0] {
            let mut nodes: Vec<u32> = (0..8).collect();
            random.shuffle(&mut nodes);
            events.extend(nodes.chunks_exact(2).map(|pair| (pair[0], pair[1], time)));
        }
        EventStream::from_events(events)
    };
    Ok(Case { a: draw()?, b: draw()?, until: 4.0, pairs: None })
}

/// So many events among six nodes, all of which take part, at times 1, 2, … .
fn random_pairs(random: &mut Stream, n_events: u32) -> Vec<(u32, u32)> {
    let mut draw = |i: u32| {
        let u = if i < 6 { i } else { random.below(6) };
        (u, (u + 1 + random.below(5)) % 6)
    };
    (0..n_events).map(&mut draw).collect()
}

fn twins(random: &mut Stream) -> Result<Case> {
    let pairs = random_pairs(random, 10);
    let mut permuted = pairs.clone();
    random.shuffle(&mut permuted);
    let read = |pairs: &[(u32, u32)]| {
        EventStream::from_events((1_u32..).zip(pairs).map(|(time, &(u, v))| (u, v, f64::from(time))))
    };
    Ok(Case { a: read(&pairs)?, b: read(&permuted)?, until: 11.0, pairs: None })
}

fn copies(random: &mut Stream, turned: bool) -> Result<Case> {
    let mut pairs = random_pairs(random, 12);
    random.shuffle(&mut pairs);
    let mut names: Vec<u32> = (0..6).collect();
    random.shuffle(&mut names);
    // Three events at a time.
    let mut copied = pairs.clone();
    for simultaneous in copied.chunks_mut(3) {
        random.shuffle(simultaneous);
    }
    for pair in &mut copied {
        *pair = (names[pair.0 as usize], names[pair.1 as usize]);
        if turned && random.chance(0.5) {
            *pair = (pair.1, pair.0);
        }
    }
    let read = |pairs: &[(u32, u32)]| {
        EventStream::from_events((0_u32..).zip(pairs).map(|(i, &(u, v))| (u, v, f64::from(1 + i / 3))))
    };
    Ok(Case { a: read(&pairs)?, b: read(&copied)?, until: 5.0, pairs: None })
}
