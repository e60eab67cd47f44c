//! Which events a model looked at, alone and by the other node, and what leaving them out changes.

use std::collections::{BTreeMap, BTreeSet};

use ctdg::event::{EventId, NodeId};
use ctdg::mite::{PairQuery, PairTokens, Side};
use ctdg::store::Store;

use super::{EffectSide, EventEffect, GroupEffect};

/// The events among the tokens of a pair.
pub(super) struct SeenEvents {
    /// Each once, in the order of the tokens.
    events: Vec<SeenEvent>,
    groups: Vec<Group>,
    /// Whether the model also reads statistics, which count every event.
    are_all_counted: bool,
}

struct SeenEvent {
    event: [EventId; 1],
    time: f64,
    side: EffectSide,
    node: NodeId,
}

/// All events of one side with one node.
struct Group {
    side: EffectSide,
    node: NodeId,
    /// All before the query time, oldest first, each once.
    events: Vec<EventId>,
    last_time: f64,
    /// Those of [`SeenEvents::events`].
    seen: Vec<usize>,
}

impl SeenEvents {
    pub(super) fn of(tokens: &PairTokens, store: &Store, query: PairQuery, are_all_counted: bool) -> Self {
        let mut known = BTreeSet::new();
        let mut events = Vec::new();
        for (side, other) in [(Side::Src, query.dst), (Side::Dst, query.src)] {
            let nodes = &tokens.nodes()[tokens.tokens(0, side)][1..];
            for (&node, event) in nodes.iter().zip(tokens.events(0, side)) {
                // An event of both nodes is in both histories, a self-loop twice in one.
                if !known.insert(event) {
                    continue;
                }
                let (side, node) = match side {
                    _ if query.src == query.dst => (EffectSide::Both, node),
                    _ if node == other => (EffectSide::Both, query.dst),
                    Side::Src => (EffectSide::Src, node),
                    Side::Dst => (EffectSide::Dst, node),
                };
                events.push(SeenEvent { event: [event], time: store.time(event), side, node });
            }
        }
        let mut seen = BTreeMap::<(EffectSide, NodeId), Vec<usize>>::new();
        for (index, event) in events.iter().enumerate() {
            seen.entry((event.side, event.node)).or_default().push(index);
        }
        let cut = store.cut(query.time);
        let group = |((side, node), seen): ((EffectSide, NodeId), Vec<usize>)| {
            let root = if side == EffectSide::Dst { query.dst } else { query.src };
            let mut all = store.pair_events(root, node, cut).to_vec();
            all.dedup();
            let last_time = all.last().map_or(query.time, |&event| store.time(event));
            Group { side, node, events: all, last_time, seen }
        };
        let groups = seen.into_iter().map(group).collect();
        Self { events, groups, are_all_counted }
    }

    /// The events that each variant leaves out: nothing, each event alone, each group of several.
    pub(super) fn left_out(&self) -> Vec<&[EventId]> {
        let alone = self.events.iter().map(|seen| seen.event.as_slice());
        std::iter::once(&[][..]).chain(alone).chain(self.several().map(|group| group.events.as_slice())).collect()
    }

    /// Groups that are more than one of the events.
    fn several(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.events.len() > 1)
    }

    /// The effects of groups and of single events, the largest first, from the probability of each variant of
    /// [`SeenEvents::left_out`].
    pub(super) fn effects(&self, probabilities: &[f32]) -> (Vec<GroupEffect>, Vec<EventEffect>) {
        let changes: Vec<f32> = probabilities.iter().map(|without| probabilities[0] - without).collect();
        let (alone, mut of_several) = (&changes[1..=self.events.len()], changes[self.events.len() + 1..].iter());
        let group = |group: &Group| {
            let change = if group.events.len() > 1 { of_several.next().copied() } else { Some(alone[group.seen[0]]) };
            GroupEffect {
                side: group.side,
                node: group.node,
                n_events: group.events.len(),
                n_seen: if self.are_all_counted { group.events.len() } else { group.seen.len() },
                last_time: group.last_time,
                change: change.expect("a variant for each group"),
            }
        };
        let mut groups: Vec<GroupEffect> = self.groups.iter().map(group).collect();
        let effect = |(seen, &change): (&SeenEvent, &f32)| {
            let SeenEvent { event: [event], time, side, node } = *seen;
            EventEffect { side, node, event, time, change }
        };
        let mut effects: Vec<EventEffect> = self.events.iter().zip(alone).map(effect).collect();
        groups.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        effects.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        (groups, effects)
    }
}
