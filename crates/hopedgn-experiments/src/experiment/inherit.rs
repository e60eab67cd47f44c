//! Inheritance of experiment files with `extends`; every part keeps its file and line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::file::{File, Grid, Layer, line};
use super::measure::Metric;
use super::paper::PaperFile;
use hopedgn::evaluate::Negatives;
use hopedgn::fmt::in_words;
use hopedgn::{Error, Result};

/// A line of a file.
#[derive(Debug, Clone)]
pub(super) struct At {
    file: PathBuf,
    /// From 1.
    pub(super) line: usize,
}

impl At {
    /// An error about this line.
    pub(super) fn wrong(&self, detail: String) -> Error {
        Error::Experiment { file: self.file.clone(), line: Some(self.line), detail }
    }
}

/// A value with its location.
#[derive(Debug)]
pub(super) struct Located<T> {
    pub(super) item: T,
    pub(super) at: At,
}

/// A parsed file.
struct Source {
    path: PathBuf,
    text: String,
    layer: Layer,
}

impl Source {
    fn parse(path: &Path, text: &str) -> Result<Self> {
        let with_help = |detail: &str| {
            let separator = if detail.ends_with('?') { "" } else { ";" };
            format!("{detail}{separator} `hopedgn experiment --help` shows a whole file")
        };
        let layer = toml::from_str(text).map_err(|error| Error::Experiment {
            file: path.to_owned(),
            line: error.span().map(|span| line(text, span.start)),
            detail: with_help(&in_words(&error.message())),
        })?;
        Ok(Self { path: path.to_owned(), text: text.to_owned(), layer })
    }

    fn at(&self, place: usize) -> At {
        At { file: self.path.clone(), line: line(&self.text, place) }
    }

    fn locate<T>(&self, items: Vec<Spanned<T>>) -> Vec<Located<T>> {
        items.into_iter().map(|item| Located { at: self.at(item.span().start), item: item.into_inner() }).collect()
    }
}

impl File {
    /// The text of the file `path`, merged with the files it extends: single values and lists of the grid replace inherited
    /// ones, tables in double brackets are appended.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self> {
        let mut sources = vec![Source::parse(path, text)?];
        while let Some(extends) = &sources[0].layer.extends {
            let (first, place) = (&sources[0], extends.span().start);
            let below = first.path.parent().unwrap_or(Path::new("")).join(extends.get_ref());
            let same = |a: &Path, b: &Path| {
                a == b || fs::canonicalize(a).ok().is_some_and(|a| fs::canonicalize(b).ok() == Some(a))
            };
            if sources.iter().any(|source| same(&source.path, &below)) {
                let detail =
                    format!("found that {} extends itself, expected no cycle; remove one `extends`", below.display());
                return Err(first.at(place).wrong(detail));
            }
            let text = fs::read_to_string(&below).map_err(|error| {
                let detail = format!("could not read {}, which it extends: {error}; correct the name", below.display());
                first.at(place).wrong(detail)
            })?;
            sources.insert(0, Source::parse(&below, &text)?);
        }
        Self::join(sources, path)
    }

    fn join(sources: Vec<Source>, path: &Path) -> Result<Self> {
        let missing = |name: &str| Error::Experiment {
            file: path.to_owned(),
            line: None,
            detail: format!("found no {name}, expected one; `hopedgn experiment --help` shows a whole file"),
        };
        let (mut title, mut kind, mut metrics, mut negatives) = (None, None, None, None);
        let mut file = Self {
            title: String::new(),
            about: String::new(),
            note: String::new(),
            kind: super::Kind::LinkPrediction,
            metrics: Metric::usual(),
            negatives: vec![Negatives::Random],
            heuristics: Vec::new(),
            standings: false,
            improvement_of: None,
            grid: Grid { model: Vec::new(), data: Vec::new(), seed: Vec::new(), mite: Vec::new() },
            read: BTreeMap::new(),
            evaluate: None,
            baseline: true,
            variants: Vec::new(),
            excludes: Vec::new(),
            overrides: Vec::new(),
            paper: Vec::new(),
            paper_files: Vec::new(),
            expect: Vec::new(),
            figures: Vec::new(),
        };
        for mut source in sources {
            let layer = std::mem::take(&mut source.layer);
            title = layer.title.or(title);
            kind = layer.kind.or(kind);
            put(&mut file.about, layer.about);
            put(&mut file.note, layer.note);
            put(&mut file.heuristics, layer.heuristics);
            put(&mut file.standings, layer.standings);
            if let Some(row) = layer.improvement_of {
                let at = source.at(row.span().start);
                file.improvement_of = Some(Located { item: row.into_inner(), at });
            }
            put(&mut file.grid.model, layer.grid.model);
            put(&mut file.grid.data, layer.grid.data);
            put(&mut file.grid.seed, layer.grid.seed);
            put(&mut file.grid.mite, layer.grid.mite);
            for (name, options) in layer.read {
                let at = source.at(options.span().start);
                file.read.insert(name, Located { item: options.into_inner(), at });
            }
            file.evaluate = layer.evaluate.or(file.evaluate);
            metrics = layer.metrics.map(|list| (source.at(list.span().start), list.into_inner())).or(metrics);
            negatives = layer.negatives.map(|list| (source.at(list.span().start), list.into_inner())).or(negatives);
            put(&mut file.baseline, layer.baseline);
            file.variants.extend(source.locate(layer.variants));
            file.excludes.extend(source.locate(layer.excludes));
            file.overrides.extend(source.locate(layer.overrides));
            file.paper.extend(source.locate(layer.paper));
            for from in source.locate(layer.paper_from) {
                file.paper_files.push(PaperFile::read(from, &source.path)?);
            }
            file.expect.extend(source.locate(layer.expect));
            file.figures.extend(source.locate(layer.figures));
        }
        file.title = title.ok_or_else(|| missing("title"))?;
        file.kind = kind.ok_or_else(|| missing("kind"))?;
        file.check(path)?;
        if let Some((at, list)) = metrics {
            if list.is_empty() {
                return Err(at.wrong("found no metric, expected at least one; name it, or remove `metrics`".to_owned()));
            }
            file.metrics = list;
            file.metrics.iter().try_for_each(|&metric| file.check_metric(metric, &at))?;
        } else if file.kind == super::Kind::NodeClassification {
            file.metrics = vec![Metric::Auc];
        } else if file.evaluate.is_some_and(|evaluate| evaluate.candidates().is_some()) {
            file.metrics.extend([Metric::Mrr, Metric::HitsAt10, Metric::NdcgAt10]);
        }
        if let Some((at, list)) = negatives {
            if list.is_empty() {
                let detail = "found no kind of negatives, expected at least one; name it, or remove `negatives`";
                return Err(at.wrong(detail.to_owned()));
            }
            file.negatives = list;
            file.check_negatives(&at)?;
        } else if let Some(evaluate) = file.evaluate {
            // Every run is tested against random ones.
            file.negatives.extend(evaluate.kinds().into_iter().filter(|kind| *kind != Negatives::Random));
        }
        Ok(file)
    }
}

/// Replaces `place` if a value is stated.
fn put<T>(place: &mut T, stated: Option<T>) {
    if let Some(stated) = stated {
        *place = stated;
    }
}
