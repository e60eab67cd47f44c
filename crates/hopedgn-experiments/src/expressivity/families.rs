//! Families of graphs and node pairs that are hard to separate.

use ctdg::event::{EventStream, NodeId};
use ctdg::generate::TriadicSpec;
use ctdg::random::RandomStream;
use ctdg::wl::examples;

use hopedgn::Result;

/// Two graphs, or two pairs of nodes in them.
#[derive(Debug, Clone)]
pub struct Case {
    /// The first graph.
    pub a: EventStream,
    /// The second, or the first again.
    pub b: EventStream,
    /// Only events strictly before this time count.
    pub until: f64,
    /// One pair of each graph; `None` if the graphs are compared.
    pub pairs: Option<[[NodeId; 2]; 2]>,
}

impl Case {
    /// Whether a node has two simultaneous events.
    #[must_use]
    pub fn has_ties(&self) -> bool {
        [&self.a, &self.b].into_iter().any(|stream| {
            let mut last = vec![f64::NEG_INFINITY; stream.n_nodes()];
            stream.ids().map(|id| stream.event(id)).take_while(|event| event.time < self.until).any(|event| {
                [event.src, event.dst]
                    .into_iter()
                    .any(|node| std::mem::replace(&mut last[node.index()], event.time) == event.time)
            })
        })
    }
}

/// Cases of one kind.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Description.
    pub about: String,
    /// At least one.
    pub cases: Vec<Case>,
}

/// Later events that push earlier ones out of the history in `long-ago`: more than any model keeps.
const N_HIDING: u32 = 30;

/// All families; random ones have `n_cases` each.
pub fn all(n_cases: u64, seed: u64) -> Result<Vec<Family>> {
    let mut families = Vec::new();
    for example in examples::all()? {
        let until = example.until.unwrap_or_else(|| after(&example.a).max(after(&example.b)));
        let pairs = example.tuples.as_ref().map(|tuples| tuples.each_ref().map(|tuple| [tuple[0], tuple[1]]));
        let case = Case { a: example.a, b: example.b, until, pairs };
        families.push(Family { name: example.name.to_owned(), about: example.about.to_owned(), cases: vec![case] });
    }
    let mut add = |name: &str, about: &str, case: &dyn Fn(&mut RandomStream) -> Result<Case>| -> Result<()> {
        let random = RandomStream::named(seed, &format!("lab/{name}"));
        let cases = (0..n_cases).map(|index| case(&mut random.fork(index))).collect::<Result<_>>()?;
        families.push(Family { name: name.to_owned(), about: about.to_owned(), cases });
        Ok(())
    };
    add(
        "triadic",
        "(A, C) and (A, C') of an episode of `hopedgn data generate triadic`: one has a common neighbour",
        &triadic,
    )?;
    for n_links in [3, 4, 5] {
        let about = format!(
            "two paths of {n_links} events at the same random times: both ends of one, and the first end of one with the last \
             of the other"
        );
        add(&format!("path-{n_links}"), &about, &|random| path(random, n_links))?;
    }
    let about = format!("as triadic, but A and A' each had {N_HIDING} later events with another node");
    add("long-ago", &about, &long_ago)?;
    for n_nodes in [8, 12, 16] {
        let about =
            format!("{n_nodes} nodes, three random perfect matchings without a common pair, at times 1, 2, 3; twice");
        add(&format!("regular-{n_nodes}"), &about, &|random| regular(random, n_nodes))?;
    }
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

fn triadic(random: &mut RandomStream) -> Result<Case> {
    let triadic = TriadicSpec { n_episodes: 1, ..TriadicSpec::default() }.generate(random.next_u64())?;
    let first = triadic.queries[0];
    let is_mirrored = |query: &&ctdg::generate::Query| query.src == first.src && query.dst != first.dst;
    let other = triadic.queries.iter().find(is_mirrored).copied().unwrap_or(first);
    let pairs = Some([[first.src, first.dst], [other.src, other.dst]]);
    Ok(Case { a: triadic.stream.clone(), b: triadic.stream, until: first.time, pairs })
}

/// Two paths with as many events at the same times:
///
/// ```text
/// A ──t1── B ──t2── … ──── Z
/// A'──t1── B'──t2── … ──── Z'          (A, Z) or (A, Z')
/// ```
///
/// Ends three or more events apart have no common neighbour: one-hop neighbourhoods of both are equal in both pairs.
fn path(random: &mut RandomStream, n_links: u32) -> Result<Case> {
    let mut times: Vec<u32> = (1..=n_links).collect();
    random.shuffle(&mut times);
    let links: Vec<(u32, u32, u32)> = (0..n_links).zip(&times).map(|(at, &time)| (at, at + 1, time)).collect();
    mirrored(random, &links, n_links, n_links + 1)
}

/// A and C have an event with B; then A has many with D.
fn long_ago(random: &mut RandomStream) -> Result<Case> {
    let since = 3 + random.below(20);
    let mut links = vec![(0, 1, 1), (2, 1, 2)];
    links.extend((0..N_HIDING).map(|i| (0, 3, since + i)));
    mirrored(random, &links, 2, since + N_HIDING)
}

/// `links` twice, between disjoint nodes: node 0 with node `end`, and with the copy of `end`.
fn mirrored(random: &mut RandomStream, links: &[(u32, u32, u32)], end: u32, until: u32) -> Result<Case> {
    let n = 1 + links.iter().map(|&(u, v, _)| u.max(v)).max().unwrap_or(0);
    let mut names: Vec<u32> = (0..2 * n).collect();
    random.shuffle(&mut names);
    let name = |node: u32| names[node as usize];
    let mut events = Vec::new();
    for &(u, v, time) in links {
        events.extend([0, n].map(|half| (name(u + half), name(v + half), f64::from(time))));
    }
    events.sort_by(|one, other| one.2.total_cmp(&other.2));
    let stream = EventStream::from_events(events)?;
    let pairs = Some([end, end + n].map(|last| [NodeId(name(0)), NodeId(name(last))]));
    Ok(Case { a: stream.clone(), b: stream, until: f64::from(until), pairs })
}

/// All nodes have the same 1-DWL colour: each has one event at each time.
fn regular(random: &mut RandomStream, n_nodes: u32) -> Result<Case> {
    let mut draw = || {
        let mut events: Vec<(u32, u32, f64)> = Vec::new();
        for time in [1.0, 2.0, 3.0] {
            let mut nodes: Vec<u32> = (0..n_nodes).collect();
            let are_linked = |u: u32, v: u32| events.iter().any(|&(s, t, _)| [(u, v), (v, u)].contains(&(s, t)));
            loop {
                random.shuffle(&mut nodes);
                if !nodes.chunks_exact(2).any(|pair| are_linked(pair[0], pair[1])) {
                    break;
                }
            }
            events.extend(nodes.chunks_exact(2).map(|pair| (pair[0], pair[1], time)));
        }
        EventStream::from_events(events)
    };
    Ok(Case { a: draw()?, b: draw()?, until: 4.0, pairs: None })
}

/// Events between six nodes, each of which occurs.
fn random_pairs(random: &mut RandomStream, n_events: u32) -> Vec<(u32, u32)> {
    let mut draw = |i: u32| {
        let u = if i < 6 { i } else { random.below(6) };
        (u, (u + 1 + random.below(5)) % 6)
    };
    (0..n_events).map(&mut draw).collect()
}

fn twins(random: &mut RandomStream) -> Result<Case> {
    let pairs = random_pairs(random, 10);
    let mut permuted = pairs.clone();
    random.shuffle(&mut permuted);
    let read = |pairs: &[(u32, u32)]| {
        EventStream::from_events((1_u32..).zip(pairs).map(|(time, &(u, v))| (u, v, f64::from(time))))
    };
    Ok(Case { a: read(&pairs)?, b: read(&permuted)?, until: 11.0, pairs: None })
}

fn copies(random: &mut RandomStream, turned: bool) -> Result<Case> {
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
