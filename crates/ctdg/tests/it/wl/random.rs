//! Random small streams with edge cases: equal times, repeats, self-loops, isolated nodes, near misses.

use super::Event;

/// A seeded generator, the same on every machine.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(n)).unwrap()
    }

    pub(super) fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for last in (1..n).rev() {
            order.swap(last as usize, self.below(last + 1) as usize);
        }
        order
    }
}

/// Two streams.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) n_nodes: [u32; 2],
    pub(super) a: Vec<Event>,
    pub(super) b: Vec<Event>,
    /// The node of `b` for each node of `a`, if `b` is a renamed copy.
    pub(super) renaming: Option<Vec<u32>>,
}

pub(super) fn events(draw: &mut Draw, n_nodes: u32, most: u32) -> Vec<Event> {
    if n_nodes == 0 {
        return Vec::new();
    }
    let n_times = 1 + draw.below(3);
    (0..draw.below(most + 1))
        .map(|_| (draw.below(n_nodes), draw.below(n_nodes), f64::from(draw.below(n_times))))
        .collect()
}

pub(super) fn renamed(events: &[Event], names: &[u32]) -> Vec<Event> {
    events.iter().map(|&(u, v, t)| (names[u as usize], names[v as usize], t)).collect()
}

/// A renamed copy, events in another order, some of them reversed if `flip`.
pub(super) fn copy(draw: &mut Draw, n_nodes: u32, events: &[Event], flip: bool) -> (Vec<Event>, Vec<u32>) {
    let names = draw.permutation(n_nodes);
    let mut copy = renamed(events, &names);
    for last in (1..copy.len()).rev() {
        let other = draw.below(u32::try_from(last).unwrap() + 1) as usize;
        copy.swap(last, other);
    }
    for event in &mut copy {
        if flip && draw.below(2) == 0 {
            *event = (event.1, event.0, event.2);
        }
    }
    (copy, names)
}

/// A pair of one of five kinds: a renamed copy; a copy with two endpoints swapped, which keeps all degrees; a copy with one
/// event moved; rings of different lengths; two unrelated streams.
pub(super) fn pair(seed: u64, most_nodes: u32) -> Pair {
    let mut draw = Draw::new(seed);
    let n = draw.below(most_nodes + 1);
    let a = events(&mut draw, n, 2 * n);
    let kind = draw.below(5);
    if kind == 3 && most_nodes >= 6 {
        return rings(&mut draw);
    }
    if kind == 4 || a.len() < 2 {
        let m = if draw.below(4) == 0 { draw.below(most_nodes + 1) } else { n };
        let b = events(&mut draw, m, 2 * m);
        return Pair { n_nodes: [n, m], a, b, renaming: None };
    }
    let (mut b, names) = copy(&mut draw, n, &a, true);
    let len = u32::try_from(b.len()).unwrap();
    let [one, other] = [draw.below(len), draw.below(len)].map(|index| index as usize);
    let renaming = match kind {
        0 => Some(names),
        1 => {
            (b[one].1, b[other].1) = (b[other].1, b[one].1);
            None
        }
        _ => {
            b[one].2 = f64::from(draw.below(3));
            None
        }
    };
    Pair { n_nodes: [n, n], a, b, renaming }
}

/// Six, seven or eight nodes in rings of different lengths, times equal or alternating.
fn rings(draw: &mut Draw) -> Pair {
    let lengths: [&[u32]; 9] = [&[6], &[3, 3], &[7], &[3, 4], &[8], &[4, 4], &[3, 5], &[2, 6], &[2, 2, 4]];
    let n = 6 + draw.below(3);
    let fitting: Vec<&[u32]> = lengths.into_iter().filter(|rings| rings.iter().sum::<u32>() == n).collect();
    let alternate = draw.below(2) == 1;
    let mut one = || {
        let rings = fitting[draw.below(u32::try_from(fitting.len()).unwrap()) as usize];
        let names = draw.permutation(n);
        let (mut events, mut first) = (Vec::new(), 0);
        for &length in rings {
            for node in 0..length {
                let time = if alternate { node % 2 } else { 0 };
                events.push((first + node, first + (node + 1) % length, f64::from(time)));
            }
            first += length;
        }
        renamed(&events, &names)
    };
    let (a, b) = (one(), one());
    Pair { n_nodes: [n, n], a, b, renaming: None }
}
