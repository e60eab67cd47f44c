//! Explanations as text.

use std::fmt::{self, Display};

use super::{CommonNeighbor, EffectSide, EventEffect, Explanation, GroupEffect, NeighborPath};
use crate::fmt::{age, grouped};

/// Neighbours, paths and groups that are shown.
const MAX_SHOWN: usize = 5;

/// Times of one neighbour that are shown.
const MAX_TIMES: usize = 4;

impl<N: Display + PartialEq> Display for Explanation<N> {
    /// A line for each finding, those below it indented by two blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { src, dst, .. } = self;
        match (&*self.pair_times, self.effects.len()) {
            ([], 0) => writeln!(f, "{src} and {dst} have not interacted before.")?,
            ([], n) => {
                let events = plural(n, "event");
                writeln!(f, "{src} and {dst} have not interacted within the {events} that the model sees.")?;
            }
            (times, _) => writeln!(f, "{src} and {dst} have interacted at: {}.", self.newest(times))?,
        }
        self.fmt_neighbors(f)?;
        if self.effects.is_empty() {
            return writeln!(f, "Neither has a history: this is the model's score for two new nodes.");
        }
        writeln!(f, "Largest effects on the score, leaving out all interactions with one node:")?;
        self.groups.iter().take(MAX_SHOWN).try_for_each(|group| self.fmt_group(f, group))
    }
}

impl<N: Display + PartialEq> Explanation<N> {
    fn fmt_neighbors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { src, dst, .. } = self;
        match (self.common.len(), self.n_paths) {
            (0, 0) => writeln!(f, "They have no common past neighbour.")?,
            (0, n) => writeln!(f, "No common past neighbour; paths of three events between them: {}.", grouped(n))?,
            (n, _) => writeln!(f, "Common past neighbours: {n}.")?,
        }
        for CommonNeighbor { node, src_times, dst_times } in self.common.iter().take(MAX_SHOWN) {
            let (src_times, dst_times) = (self.newest(src_times), self.newest(dst_times));
            writeln!(f, "  {node}: with {src} at {src_times}; with {dst} at {dst_times}")?;
        }
        for path in self.paths.iter().take(MAX_SHOWN) {
            let NeighborPath { src_neighbor: a, dst_neighbor: b, .. } = path;
            let last = [&path.src_times, &path.between_times, &path.dst_times].map(|times| self.newest(&times[..1]));
            writeln!(f, "  {src} with {a} at {}, {b} with {a} at {}, {b} with {dst} at {}", last[0], last[1], last[2])?;
        }
        Ok(())
    }

    fn fmt_group(&self, f: &mut fmt::Formatter<'_>, group: &GroupEffect<N>) -> fmt::Result {
        let GroupEffect { side, node, n_events, n_seen, last_time, change } = group;
        let root = if *side == EffectSide::Dst { &self.dst } else { &self.src };
        let last = format!("{}, {}", self.shown(*last_time), self.age(*last_time));
        if *n_events == 1 {
            return writeln!(f, "  {}: {root} with {node} at {last}", moved(*change));
        }
        let (moved_by, events) = (moved(*change), plural(*n_events, "interaction"));
        write!(f, "  {moved_by} together: {events} of {root} with {node}, the last at {last}")?;
        if n_seen < n_events {
            write!(f, "; the model sees {}", grouped(*n_seen))?;
        }
        writeln!(f)?;
        // Effects are in order of size. One event is worth a line if it alone does at least half of what all do.
        let in_group = |effect: &&EventEffect<N>| effect.side == *side && effect.node == *node;
        match self.effects.iter().find(in_group) {
            Some(effect) if 2.0 * effect.change.abs() >= change.abs() => {
                writeln!(f, "    the one at {} alone {}", self.shown(effect.time), moved(effect.change))
            }
            _ => Ok(()),
        }
    }

    fn shown(&self, time: f64) -> String {
        self.time_format.show(time)
    }

    /// The newest few of `times`, and how many more there are.
    fn newest(&self, times: &[f64]) -> String {
        let mut shown: Vec<String> = times.iter().take(MAX_TIMES).map(|&at| self.shown(at)).collect();
        if times.len() > MAX_TIMES {
            shown.push(format!("and {} earlier", times.len() - MAX_TIMES));
        }
        shown.join(", ")
    }

    /// How long before the query time `time` is.
    fn age(&self, time: f64) -> String {
        age(self.time_format, time, self.time)
    }
}

fn moved(change: f32) -> String {
    format!("{} by {:.4}", if change >= 0.0 { "raised" } else { "lowered" }, change.abs())
}

fn plural(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}
