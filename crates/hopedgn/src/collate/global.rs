//! Input of global HopeDGN: the node pairs of each layer.
//!
//! Shapes, as in `model/global.rs`: `S₀` pairs below the first layer, `Sₗ` pairs that layer `l` computes, `Wₗ` triples (pair,
//! replacing node) of layer `l`, `Z` lists of intervals, `I` intervals in them, `V` distinct pairs of lists.
//!
//! Only pairs that the logits depend on are there: with one layer those of the queried pair with every node, with three or more
//! layers all of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use ctdg::event::{Cut, NodeId};
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use hopedgn_tensor::{Indices, Ragged, Tensor};

use super::canonical::{self, Draft};
use super::{FeatureTables, PairStart, Replacing, Rows};
use crate::fmt::narrow;
use crate::{Error, Result};

/// Which pairs a global model computes.
///
/// ```
/// use hopedgn::collate::{FeatureTables, GlobalInput, GlobalLayout, PairStart, Replacing};
/// use hopedgn::ctdg::{event::{EventStream, NodeId}, mite::PairQuery, store::Store};
///
/// let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)])?;
/// let store = Store::build(&stream)?;
/// let layout = GlobalLayout { n_layers: 1, replacing: Replacing::All, start: PairStart::Types, width: 8 };
/// layout.check(&store)?;
/// let query = PairQuery { src: NodeId(0), dst: NodeId(2), time: 3.0 };
/// let input = GlobalInput::of(layout, &FeatureTables::of(&stream)?, &store, &[query])?;
/// assert_eq!(input.layers[0].groups.total(), 3); // each of the three nodes replaces one of the pair's
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalLayout {
    /// Layers.
    pub n_layers: usize,
    /// Which nodes replace one of a pair's own.
    pub replacing: Replacing,
    /// What the first embedding of a pair is made of.
    pub start: PairStart,
    /// Width of an embedding; bounds the memory.
    pub width: usize,
}

/// What a global model reads of some pairs.
///
/// See [`GlobalLayout`].
#[derive(Debug, Clone)]
pub struct GlobalInput {
    /// The pairs of each layer, the first layer first.
    pub layers: Vec<PairLayer>,
    /// `[I, 1]`: query time minus event time.
    pub ages: Arc<Tensor>,
    /// `[I, 1]`: ln(1 + age).
    pub log_ages: Arc<Tensor>,
    /// `Z` lists over the intervals. List 0 is empty: that of pairs without events.
    pub lists: Ragged,
    /// `[V]` each: the list of `(u, w)`, and that of `(v, w)`.
    pub views: [Indices; 2],
    /// `[S₀, 2·Dn]`: features of both nodes.
    pub nodes: Option<Rows>,
    /// `[S₀, 1]`: 1 for a node with itself.
    pub same: Arc<Tensor>,
    /// `[S₀]`: the list of the pair.
    pub start_lists: Indices,
    /// `[B]`: the row of each queried pair in the last layer.
    pub queried: Indices,
}

/// Row numbers of one layer.
///
/// See [`GlobalLayout`].
#[derive(Debug, Clone)]
pub struct PairLayer {
    /// `[Sₗ]`: the pair itself one layer below.
    pub own: Indices,
    /// `[Wₗ]` each: the pairs `(u, w)` and `(v, w)` one layer below.
    pub sides: [Indices; 2],
    /// `[Wₗ]`: their intervals, a row of [`GlobalInput::views`].
    pub views: Indices,
    /// The triples of each pair: `Sₗ` sequences over `Wₗ` rows, in an order that does not depend on node numbers.
    pub groups: Ragged,
}

impl GlobalInput {
    /// The input of `queries`. Each sees the nodes with events before its time, and its own two.
    pub fn of(layout: GlobalLayout, tables: &FeatureTables, store: &Store, queries: &[PairQuery]) -> Result<Self> {
        Builder::new(layout, store).run(tables, queries)
    }
}

/// Bytes at most of the pairs that are computed at once.
const MOST_BYTES: usize = 1 << 30;

/// Embeddings that one row of a layer keeps, backward pass included.
const VALUES_PER_ROW: usize = 20;

impl GlobalLayout {
    /// Refuses a dataset on which one query takes too much memory: any query, or with [`Replacing::Met`], where that depends on
    /// the pair, one about the two nodes with most neighbours, after all events.
    pub fn check(&self, store: &Store) -> Result<()> {
        if self.replacing == Replacing::All {
            return self.check_nodes(store.n_nodes());
        }
        let end = store.cut(f64::INFINITY);
        let n_neighbors = |node: NodeId| {
            let mut neighbors = store.history(node, end).neighbors.to_vec();
            neighbors.sort_unstable();
            neighbors.dedup();
            neighbors.len()
        };
        let nodes = (0..store.n_nodes()).filter_map(NodeId::from_index);
        let mut busiest: Vec<(usize, NodeId)> = nodes.map(|node| (n_neighbors(node), node)).collect();
        busiest.sort_unstable_by(|one, other| other.cmp(one));
        let &[(_, src), (_, dst), ..] = &busiest[..] else { return Ok(()) };
        Builder::new(*self, store).layers(&[PairQuery { src, dst, time: f64::INFINITY }]).map(drop)
    }

    fn check_nodes(&self, n_nodes: usize) -> Result<()> {
        let (mut pairs, mut rows) = (1_usize, 0_usize);
        for _ in 0..self.n_layers {
            rows = rows.saturating_add(pairs.saturating_mul(n_nodes));
            pairs = pairs.saturating_mul(2 * n_nodes + 1).min(n_nodes.saturating_mul(n_nodes));
        }
        self.check_rows(rows, n_nodes)
    }

    fn check_rows(&self, rows: usize, n_nodes: usize) -> Result<()> {
        let needed = rows.saturating_mul(4 * VALUES_PER_ROW * self.width);
        if needed <= MOST_BYTES {
            return Ok(());
        }
        Err(Error::TooManyPairs { n_nodes, needed: needed.div_ceil(1 << 20), most: MOST_BYTES >> 20 })
    }
}

/// A pair of nodes as of a moment.
type Key = (usize, NodeId, NodeId);

/// A query time and the nodes that are visible then.
struct Moment {
    time: f64,
    cut: Cut,
    /// Nodes of the query without events before it.
    newcomers: Vec<NodeId>,
    /// All visible nodes, in order.
    nodes: Vec<NodeId>,
}

struct Builder<'a> {
    layout: GlobalLayout,
    store: &'a Store,
    moments: Vec<Moment>,
    /// Intervals of each list.
    lists: Vec<Vec<f64>>,
    of_pair: HashMap<Key, u32>,
}

/// The layers of some queries before sorting.
struct Drafts {
    /// The first layer first.
    layers: Vec<Draft>,
    /// The pairs below the first layer.
    start: Numbered<Key>,
    /// The pairs of lists of all layers.
    views: Numbered<[u32; 2]>,
    /// The row of each query in the last layer.
    queried: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(layout: GlobalLayout, store: &'a Store) -> Self {
        Self { layout, store, moments: Vec::new(), lists: vec![Vec::new()], of_pair: HashMap::new() }
    }

    fn layers(&mut self, queries: &[PairQuery]) -> Result<Drafts> {
        let mut top = Numbered::default();
        let mut queried = Vec::with_capacity(queries.len());
        for query in queries {
            let moment = self.moment(query);
            queried.push(top.number((moment, query.src, query.dst)));
        }
        let mut views = Numbered::default();
        let mut layers = Vec::with_capacity(self.layout.n_layers);
        let mut n_rows = 0;
        for _ in 0..self.layout.n_layers {
            let (layer, below) = self.layer(&top, &mut views, &mut n_rows)?;
            layers.push(layer);
            top = below;
        }
        layers.reverse();
        Ok(Drafts { layers, start: top, views, queried })
    }

    fn run(mut self, tables: &FeatureTables, queries: &[PairQuery]) -> Result<GlobalInput> {
        let Drafts { mut layers, start: top, views, queried } = self.layers(queries)?;
        self.sort(&mut layers, &top, &views, tables);
        let layers = layers.into_iter().map(pair_layer).collect();
        let start_lists = top.keys.iter().map(|&(moment, u, v)| self.list(moment, u, v)).collect();
        let same = top.keys.iter().map(|&(_, u, v)| f32::from(u8::from(u == v))).collect();
        let ages: Vec<f64> = self.lists.concat();
        let column = |value: fn(f64) -> f64| -> Result<Arc<Tensor>> {
            #[expect(clippy::cast_possible_truncation, reason = "computed in f64, kept in f32")]
            let values = ages.iter().map(|&age| value(age) as f32).collect();
            Ok(Tensor::matrix(ages.len(), 1, values)?.into())
        };
        Ok(GlobalInput {
            layers,
            ages: column(|age| age)?,
            log_ages: column(f64::ln_1p)?,
            lists: Ragged::from_lengths(self.lists.iter().map(Vec::len)),
            views: [0, 1].map(|side| views.keys.iter().map(|view: &[u32; 2]| view[side]).collect()),
            nodes: tables.node.as_ref().map(|table| rows_of(table, &top.keys)),
            same: Tensor::matrix(top.keys.len(), 1, same)?.into(),
            start_lists,
            queried: queried.into(),
        })
    }

    /// The triples of the pairs of `top`, and the pairs one layer below.
    fn layer(
        &mut self,
        top: &Numbered<Key>,
        views: &mut Numbered<[u32; 2]>,
        n_rows: &mut usize,
    ) -> Result<(Draft, Numbered<Key>)> {
        let mut below = Numbered::default();
        let own = top.keys.iter().map(|&pair| below.number(pair)).collect();
        let (mut rows, mut lengths) = (Vec::new(), Vec::new());
        for &(moment, u, v) in &top.keys {
            let replacing = self.replacing(moment, u, v);
            *n_rows += replacing.len();
            self.layout.check_rows(*n_rows, self.moments[moment].nodes.len())?;
            lengths.push(replacing.len());
            for w in replacing {
                let sides = [below.number((moment, u, w)), below.number((moment, v, w))];
                let view = views.number([self.list(moment, u, w), self.list(moment, v, w)]);
                rows.push([sides[0], sides[1], view]);
            }
        }
        Ok((Draft { own, rows, lengths }, below))
    }

    /// Sorts the rows of `layers`; `start` are the pairs below the first.
    fn sort(
        &mut self,
        layers: &mut [Draft],
        start: &Numbered<Key>,
        views: &Numbered<[u32; 2]>,
        tables: &FeatureTables,
    ) {
        let of_start: Vec<u32> = match self.layout.start {
            PairStart::Types => start.keys.iter().map(|&(moment, u, v)| self.list(moment, u, v)).collect(),
            PairStart::Features => vec![0; start.keys.len()],
        };
        let lists: Vec<u64> =
            self.lists.iter().map(|list| canonical::key(list.iter().map(|age| age.to_bits()))).collect();
        let keys = start.keys.iter().zip(of_start).map(|(&(_, u, v), list)| {
            let is_same = self.layout.start == PairStart::Types && u == v;
            let features = tables.node.iter().flat_map(|table| [u, v].map(|node| row_of(table, node))).flatten();
            let features = features.map(|value| u64::from(value.to_bits()));
            canonical::key([u64::from(is_same), lists[list as usize]].into_iter().chain(features))
        });
        let views: Vec<u64> =
            views.keys.iter().map(|view| canonical::key(view.map(|list| lists[list as usize]))).collect();
        canonical::sort(layers, keys.collect(), &views);
    }

    /// The nodes `w` of a pair, in order.
    fn replacing(&self, moment: usize, u: NodeId, v: NodeId) -> Vec<NodeId> {
        let Moment { cut, nodes, .. } = &self.moments[moment];
        if self.layout.replacing == Replacing::All {
            return nodes.clone();
        }
        let mut neighbors: Vec<NodeId> =
            [u, v].iter().flat_map(|&node| self.store.history(node, *cut).neighbors).copied().collect();
        neighbors.sort_unstable();
        neighbors.dedup();
        neighbors
    }

    /// The number of the list of intervals of `u` and `v`.
    fn list(&mut self, moment: usize, u: NodeId, v: NodeId) -> u32 {
        let Moment { time, cut, .. } = &self.moments[moment];
        let events = self.store.pair_events(u, v, *cut);
        if events.is_empty() {
            return 0;
        }
        let (lists, store) = (&mut self.lists, self.store);
        *self.of_pair.entry((moment, u.min(v), u.max(v))).or_insert_with(|| {
            // A self-loop is listed twice.
            let step = if u == v { 2 } else { 1 };
            lists.push(events.iter().step_by(step).map(|event| time - store.time(event)).collect());
            narrow(lists.len() - 1)
        })
    }

    /// The moment of `query`, shared by queries at one time that see the same nodes.
    fn moment(&mut self, query: &PairQuery) -> usize {
        let (store, cut) = (self.store, self.store.cut(query.time));
        let mut newcomers = vec![query.src.min(query.dst), query.src.max(query.dst)];
        newcomers.dedup();
        newcomers.retain(|&node| store.history(node, cut).neighbors.is_empty());
        let is_it = |moment: &Moment| moment.time.to_bits() == query.time.to_bits() && moment.newcomers == newcomers;
        if let Some(found) = self.moments.iter().position(is_it) {
            return found;
        }
        let all = (0..store.n_nodes()).filter_map(NodeId::from_index);
        let mut nodes: Vec<NodeId> = all.filter(|&node| !store.history(node, cut).neighbors.is_empty()).collect();
        nodes.extend(&newcomers);
        nodes.sort_unstable();
        self.moments.push(Moment { time: query.time, cut, newcomers, nodes });
        self.moments.len() - 1
    }
}

/// Keys numbered in the order in which they first occur.
struct Numbered<K> {
    keys: Vec<K>,
    numbers: HashMap<K, u32>,
}

impl<K> Default for Numbered<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), numbers: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Numbered<K> {
    fn number(&mut self, key: K) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            narrow(self.keys.len() - 1)
        })
    }
}

fn pair_layer(Draft { own, rows, lengths }: Draft) -> PairLayer {
    let column = |at: usize| rows.iter().map(|row| row[at]).collect();
    PairLayer {
        own: own.into(),
        sides: [column(0), column(1)],
        views: column(2),
        groups: Ragged::from_lengths(lengths),
    }
}

/// The features of `node`; zeros for a node beyond the table.
fn row_of(table: &Tensor, node: NodeId) -> &[f32] {
    let row = node.index().min(table.rows() - 1);
    &table.values()[row * table.cols()..][..table.cols()]
}

/// The features of both nodes of `pairs`; zeros for nodes beyond the table.
fn rows_of(table: &Arc<Tensor>, pairs: &[Key]) -> Rows {
    let none = table.rows() - 1;
    let row = |node: NodeId| narrow(node.index().min(none));
    Rows::choose(table, pairs.iter().flat_map(|&(_, u, v)| [row(u), row(v)]).collect(), 2)
}
