//! `hopedgn wl`: the k-dimensional dynamic Weisfeiler-Lehman tests.

mod examples;
mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use ctdg::dataset;
use ctdg::event::NodeId;
use ctdg::time::TimeFormat;
use ctdg::wl::{self, Dwl, Graph, svg};
use hopedgn::Events;

use crate::commands::data_args::ReadArgs;
use crate::commands::new_file::Force;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;
use report::Report;

const AFTER: &str = "\
Examples:
  hopedgn wl examples
      which k separates which of the built-in pairs of graphs
  hopedgn wl a.csv b.csv --k 2
      does 2-DWL separate two graphs?
  hopedgn wl a.csv a.csv --k 2 --tuple A,C=A,D --until 4
      does it separate two node pairs of one graph before time 4?
  hopedgn wl a.csv b.csv --marked
      does marked DWL, where a pair sees how other nodes met each other?

The exit status is 0 whether they are separated or not.
A time before the first event is allowed: the graph then has no events.";

/// Test whether k-DWL separates two dynamic graphs, or two tuples of nodes
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = AFTER)]
pub(crate) struct Wl {
    #[command(subcommand)]
    action: Option<Action>,
    /// The first graph: a file of events, or the name of a dataset
    #[arg(required = true)]
    a: Option<String>,
    /// The second graph; the first again to compare two of its tuples
    #[arg(required = true)]
    b: Option<String>,
    /// Compare two tuples of nodes, the first of A, the second of B
    #[arg(long, value_name = "u,v=x,y")]
    tuple: Option<String>,
    /// Use only events strictly before this time
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    until: Option<String>,
    /// Node labels in round 0
    #[arg(long, value_enum, default_value_t = LabelsArg::Constant)]
    labels: LabelsArg,
    #[command(flatten)]
    test: TestArgs,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    Examples(examples::Examples),
}

/// How the test is run.
#[derive(Debug, Clone, PartialEq, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct TestArgs {
    /// Dimension: 1, 2, 3 or 4
    #[arg(long, default_value_t = 2)]
    k: usize,
    /// Marked DWL instead of k-DWL: pairs coloured by 1-DWL with both nodes marked
    #[arg(
        long,
        value_enum,
        value_name = "REACH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "all",
        conflicts_with_all = ["k", "variant", "initial"]
    )]
    marked: Option<MarkedArg>,
    /// Events are directed, in both graphs
    #[arg(long)]
    directed: bool,
    /// Ignore times: 1-WL, k-FWL or k-OWL on the static graph
    #[arg(long = "static")]
    without_times: bool,
    /// Which neighbouring tuples refine a colour
    #[arg(long, value_enum, default_value_t = VariantArg::Folklore)]
    variant: VariantArg,
    /// Initial colour of a tuple [default: labels; types with --static or oblivious, k ≥ 2]
    #[arg(long, value_enum)]
    initial: Option<InitialArg>,
    /// Compare colours by 128-bit hashes only: faster, but "not separated" is then only almost certain
    #[arg(long)]
    approximate: bool,
    /// Stop after this many rounds
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Also decide isomorphism by exhaustive search; at most 64 nodes
    #[arg(long)]
    isomorphism: bool,
    /// Draw both graphs with their final colours as an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LabelsArg {
    /// All equal
    Constant,
    /// Rows of node features
    Features,
    /// Source or destination, in a bipartite graph
    Sides,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum VariantArg {
    /// For each node w, the k tuples with w substituted, jointly: k-DWL, k-FWL
    Folklore,
    /// For each position, all tuples with any node substituted: k-OWL
    Oblivious,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum MarkedArg {
    /// By all nodes
    All,
    /// By nodes that interacted with one of the pair
    Met,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum InitialArg {
    /// The labels of its nodes
    Labels,
    /// Its isomorphism type: labels, equal nodes and events within the tuple
    Types,
}

/// The graphs or tuples to compare, from files or from the examples.
struct Question {
    titles: [String; 2],
    streams: [Events; 2],
    tuples: Option<[Vec<NodeId>; 2]>,
    until: Option<f64>,
    labels: wl::Labels,
}

pub(crate) fn run(args: Wl, output: &Output) -> anyhow::Result<Outcome> {
    if let Some(Action::Examples(examples)) = args.action {
        return examples::run(&examples, output);
    }
    let (a, b) = args.a.zip(args.b).context("found no graphs, expected two: hopedgn wl A B")?;
    let test = args.test.dwl(output.max_memory())?;
    args.test.svg.as_ref().map_or(Ok(()), |path| args.test.force.check(path))?;
    let titles = [a, b];
    let streams = [args.read.load(&titles[0], output)?, args.read.load(&titles[1], output)?];
    let until = args.until.map(|until| parse_until(&until, streams[0].time_format())).transpose()?;
    let tuples = args.tuple.as_deref().map(|text| parse_tuples(text, &titles, &streams)).transpose()?;
    let labels = match args.labels {
        LabelsArg::Constant => wl::Labels::Constant,
        LabelsArg::Features => wl::Labels::Features,
        LabelsArg::Sides => wl::Labels::Sides,
    };
    compare(&Question { titles, streams, tuples, until, labels }, &test, &args.test, output)
}

fn parse_until(text: &str, format: TimeFormat) -> anyhow::Result<f64> {
    let expected = match format {
        TimeFormat::Number => "a finite time",
        TimeFormat::Date => "a date such as 2024-01-31T12:00:00Z, or seconds since 1970",
    };
    format
        .parse(text)
        .with_context(|| format!("found --until {text}, expected {expected}; leave it out to use all events"))
}

/// Runs the test, draws with `--svg`, and prints.
fn compare(question: &Question, test: &Dwl, args: &TestArgs, output: &Output) -> anyhow::Result<Outcome> {
    let reading = wl::GraphOptions {
        until: question.until,
        direction: if args.directed { wl::Direction::Directed } else { wl::Direction::Undirected },
        times: if args.without_times { wl::Times::Dropped } else { wl::Times::Kept },
        labels: question.labels.clone(),
    };
    let read = |side: usize| {
        Graph::new(&question.streams[side], &reading).map_err(|error| error.in_file(&question.titles[side]))
    };
    let graphs = [read(0)?, read(1)?];
    for (graph, title) in graphs.iter().zip(&question.titles) {
        if graph.n_events() == 0
            && let Some(until) = question.until
        {
            output.remark(format!(
                "note: {title} has no event before {}: all its nodes are isolated",
                question.streams[0].time_format().show(until)
            ));
        }
    }
    let tuples = question.tuples.as_ref().map(|[s, t]| (s.as_slice(), t.as_slice()));
    let estimate = test.estimate(&[&graphs[0], &graphs[1]]);
    if estimate.seconds_a_round > 5.0 {
        let (seconds, memory) = (estimate.seconds_a_round, wl::Bytes(estimate.memory));
        output.remark(format!("estimate: {seconds:.0} s per round, {memory} of memory"));
    }
    let spinner = progress::spinner(output, "round 0");
    let start = Instant::now();
    let mut classes = Vec::new();
    let comparison = test.compare_with_progress((&graphs[0], &graphs[1]), tuples, &mut |round| {
        classes.push(round.n_classes);
        spinner.set_message(format!("round {}, {}", round.round, count(round.n_classes, "colour")));
    });
    spinner.finish_and_clear();
    let comparison = comparison?;
    let seconds = start.elapsed().as_secs_f64();
    let isomorphic = if args.isomorphism {
        let (s, t) = tuples.unwrap_or_default();
        Some(wl::tuple_isomorphism((&graphs[0], s), (&graphs[1], t))?.is_some())
    } else {
        None
    };
    if let Some(path) = &args.svg {
        draw(path, question, &graphs, &comparison)?;
        output.remark(format!("figure written to {}", path.display()));
    }
    let report = Report::new(
        report::Facts { question, test, graphs: &graphs, estimate, classes, seconds, isomorphic, args },
        &comparison,
    );
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

fn draw(path: &Path, question: &Question, graphs: &[Graph; 2], comparison: &wl::Comparison) -> anyhow::Result<()> {
    let marked = |side: usize| question.tuples.as_ref().map_or(&[][..], |tuples| &tuples[side]);
    let titles = ["A", "B"].iter().zip(&question.titles).map(|(letter, title)| format!("{letter}: {title}"));
    let titles: Vec<String> = titles.collect();
    let panel = |side: usize| svg::Panel {
        title: &titles[side],
        graph: &graphs[side],
        classes: comparison.coloring.node_classes(side),
        marked: marked(side),
    };
    Ok(dataset::write_file(path, svg::draw(&[panel(0), panel(1)]))?)
}

/// Parses the arguments of a test alone, for their defaults.
#[derive(Debug, Parser)]
struct OnlyTest {
    #[command(flatten)]
    test: TestArgs,
}

impl TestArgs {
    /// Whether any flag differs from its default.
    fn is_changed(&self) -> bool {
        OnlyTest::try_parse_from(["wl"]).is_ok_and(|default| default.test != *self)
    }

    fn dwl(&self, max_memory: Option<u64>) -> anyhow::Result<Dwl> {
        let variant = match self.variant {
            VariantArg::Folklore => wl::Variant::Folklore,
            VariantArg::Oblivious => wl::Variant::Oblivious,
        };
        let mut test = Dwl::new(self.k)?;
        if let Some(reach) = self.marked {
            test = Dwl::marked(match reach {
                MarkedArg::All => wl::Reach::All,
                MarkedArg::Met => wl::Reach::Met,
            })?;
        } else if self.without_times || variant == wl::Variant::Oblivious {
            test = Dwl::static_test(self.k, variant)?;
        }
        match self.initial {
            Some(InitialArg::Labels) => {
                anyhow::ensure!(
                    variant == wl::Variant::Folklore || self.k == 1,
                    "found --initial labels with --variant oblivious, expected --initial types: the oblivious variant reads event sequences in round 0 only"
                );
                test.initial = wl::Initial::Labels;
            }
            Some(InitialArg::Types) => test.initial = wl::Initial::Types,
            None => {}
        }
        if self.approximate {
            test.interning = wl::Interning::Approximate;
        }
        test.max_rounds = self.rounds;
        test.max_memory = max_memory.unwrap_or(test.max_memory);
        Ok(test)
    }
}

/// Parses `u,v=x,y`: nodes of A and nodes of B. In a bipartite graph the first id of a tuple is a source if there is one of
/// that id, the others are destinations.
fn parse_tuples(text: &str, titles: &[String; 2], streams: &[Events; 2]) -> anyhow::Result<[Vec<NodeId>; 2]> {
    let (s, t) = text.split_once('=').with_context(|| {
        format!(
            "found --tuple {text}, expected two tuples of node ids such as u,v=x,y, the first of A, the second of B"
        )
    })?;
    let nodes = |side: usize, names: &str| {
        let lookup = streams[side].names().lookup()?;
        let find = |(position, name): (usize, &str)| {
            let sides = [lookup.source(name), lookup.destination(name)];
            let found = if position == 0 { sides[0].or(sides[1]) } else { sides[1].or(sides[0]) };
            found.ok_or_else(|| {
                let problem = ctdg::Problem::UnknownNode { name: name.to_owned() };
                ctdg::Error::at(ctdg::error::Place::file(&titles[side]), problem)
            })
        };
        names.split(',').map(str::trim).enumerate().map(find).collect::<Result<Vec<_>, _>>()
    };
    let tuples = [nodes(0, s)?, nodes(1, t)?];
    anyhow::ensure!(
        tuples[0].len() == tuples[1].len(),
        "found --tuple {text} with {} and {}, expected as many on both sides",
        count(tuples[0].len(), "node"),
        count(tuples[1].len(), "node")
    );
    Ok(tuples)
}
