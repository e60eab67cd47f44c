//! Explanations as JSON: times as numbers, and as dates beside them where the data has dates.

use ctdg::time::TimeFormat;
use serde::{Serialize, Serializer};

use super::{EffectSide, Explanation};

impl<N: Serialize> Serialize for Explanation<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dates = Dates(self.time_format);
        let common = self.common.iter().map(|common| CommonView {
            node: &common.node,
            with_src: &common.src_times,
            with_src_dates: dates.of_all(&common.src_times),
            with_dst: &common.dst_times,
            with_dst_dates: dates.of_all(&common.dst_times),
        });
        let paths = self.paths.iter().map(|path| PathView {
            src_neighbor: &path.src_neighbor,
            dst_neighbor: &path.dst_neighbor,
            with_src: &path.src_times,
            with_src_dates: dates.of_all(&path.src_times),
            between: &path.between_times,
            between_dates: dates.of_all(&path.between_times),
            with_dst: &path.dst_times,
            with_dst_dates: dates.of_all(&path.dst_times),
        });
        let groups = self.groups.iter().map(|group| GroupView {
            side: group.side,
            node: &group.node,
            events: group.n_events,
            seen: group.n_seen,
            last_time: group.last_time,
            last_date: dates.of(group.last_time),
            change: group.change,
        });
        let effects = self.effects.iter().map(|effect| EffectView {
            side: effect.side,
            node: &effect.node,
            event: effect.event.0,
            time: effect.time,
            date: dates.of(effect.time),
            change: effect.change,
        });
        let view = View {
            src: &self.src,
            dst: &self.dst,
            time: self.time,
            date: dates.of(self.time),
            probability: self.probability,
            met: &self.pair_times,
            met_dates: dates.of_all(&self.pair_times),
            common_neighbors: common.collect(),
            n_paths: self.n_paths,
            paths: paths.collect(),
            groups: groups.collect(),
            events_seen: self.effects.len(),
            effects: effects.collect(),
        };
        view.serialize(serializer)
    }
}

/// Times as dates, if the data has dates.
struct Dates(TimeFormat);

impl Dates {
    fn of(&self, time: f64) -> Option<String> {
        (self.0 == TimeFormat::Date).then(|| self.0.show(time))
    }

    fn of_all(&self, times: &[f64]) -> Option<Vec<String>> {
        times.iter().map(|&time| self.of(time)).collect::<Option<_>>().filter(|_| self.0 == TimeFormat::Date)
    }
}

#[derive(Serialize)]
struct View<'a, N> {
    src: &'a N,
    dst: &'a N,
    time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    probability: f32,
    met: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    met_dates: Option<Vec<String>>,
    common_neighbors: Vec<CommonView<'a, N>>,
    n_paths: usize,
    paths: Vec<PathView<'a, N>>,
    groups: Vec<GroupView<'a, N>>,
    events_seen: usize,
    effects: Vec<EffectView<'a, N>>,
}

#[derive(Serialize)]
struct CommonView<'a, N> {
    node: &'a N,
    with_src: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    with_src_dates: Option<Vec<String>>,
    with_dst: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    with_dst_dates: Option<Vec<String>>,
}

#[derive(Serialize)]
struct PathView<'a, N> {
    src_neighbor: &'a N,
    dst_neighbor: &'a N,
    with_src: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    with_src_dates: Option<Vec<String>>,
    between: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    between_dates: Option<Vec<String>>,
    with_dst: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    with_dst_dates: Option<Vec<String>>,
}

#[derive(Serialize)]
struct GroupView<'a, N> {
    side: EffectSide,
    node: &'a N,
    events: usize,
    seen: usize,
    last_time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_date: Option<String>,
    change: f32,
}

#[derive(Serialize)]
struct EffectView<'a, N> {
    side: EffectSide,
    node: &'a N,
    event: u64,
    time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    change: f32,
}
