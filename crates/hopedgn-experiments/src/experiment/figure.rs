//! Figures of an experiment: bars, lines over a sweep, labelled points, each panel a picture of its own so that letters keep
//! their size on narrow pages.

mod label;
mod plot;

use super::file::{self, Shape};
use super::inherit::Located;
use super::measure::{Measure, Metric};
use super::table::{Reference, Table};
use super::{Cell, Experiment, Found};
use hopedgn::Result;
use hopedgn::evaluate::Negatives;
use hopedgn::html::escaped;
use plot::{Key, Mark, Panel, Scale};

pub(super) use plot::STYLE;

/// A figure: its panels, and what it lacks.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Stands above it.
    pub title: String,
    /// The panels that have something to show.
    pub pictures: Vec<Picture>,
    /// What it should show and cannot yet: data sets, and what is missing on each.
    pub missing: Vec<(String, Vec<String>)>,
    /// How much it should show on each data set.
    n_wanted: usize,
}

impl Figure {
    fn lacks(&mut self, data: &str, what: &str) {
        match self.missing.iter_mut().find(|(known, _)| known == data) {
            Some((_, known)) if known.iter().any(|known| known == what) => {}
            Some((_, known)) => known.push(what.to_owned()),
            None => self.missing.push((data.to_owned(), vec![what.to_owned()])),
        }
    }

    /// What it cannot show yet in words; nothing if it shows all.
    #[must_use]
    pub fn lacking(&self) -> Option<String> {
        let part = |(data, rows): &(String, Vec<String>)| {
            let what = if rows.len() == self.n_wanted { "all".to_owned() } else { rows.join("; ") };
            format!("{data} ({what})")
        };
        let parts: Vec<String> = self.missing.iter().map(part).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// One panel.
#[derive(Debug, Clone)]
pub struct Picture {
    /// Its file is called so, without the ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    body: String,
}

impl Picture {
    /// As a part of a page that has the style of figures.
    #[must_use]
    pub fn inline(&self) -> &str {
        &self.body
    }

    /// As a file of its own.
    #[must_use]
    pub fn file(&self) -> String {
        self.body.replacen('>', &format!(">\n<style>{STYLE}</style>"), 1)
    }
}

impl Experiment {
    /// Every figure from what was found of the cells.
    #[must_use]
    pub fn figures(&self, found: &[Found]) -> Vec<Figure> {
        self.file
            .figures
            .iter()
            .map(|figure| Drawing { experiment: self, found, figure: &figure.item }.draw())
            .collect()
    }

    /// Refuses figures that could never show anything.
    pub(super) fn check_figures(&self) -> Result<()> {
        for Located { item: figure, at } in &self.file.figures {
            let metrics = [Some(figure.metric), figure.against];
            metrics.into_iter().flatten().try_for_each(|metric| self.file.check_metric(metric, at))?;
            let detail = match (figure.kind, &figure.sweep, figure.against) {
                (Shape::Lines, None, _) => {
                    "found lines without sweep, expected what their variants are called before the number"
                }
                (Shape::Lines, Some(sweep), _) if !self.cells.iter().any(|cell| number(cell, sweep).is_some()) => {
                    "found a sweep without variants, expected some called by its name, - and a number"
                }
                (Shape::Scatter, _, None) => "found points without against, expected what lies across",
                (Shape::Bars | Shape::Scatter, Some(_), _) => "found sweep, expected it with lines only",
                (Shape::Bars | Shape::Lines, _, Some(_)) => "found against, expected it with kind = \"scatter\" only",
                _ => continue,
            };
            return Err(at.wrong(format!("{detail}; correct figure {}", figure.name)));
        }
        Ok(())
    }
}

/// The number of the variant of `cell`, if it is one of the sweep.
fn number(cell: &Cell, sweep: &str) -> Option<f64> {
    cell.variant.as_ref()?.strip_prefix(sweep)?.strip_prefix('-')?.parse().ok()
}

/// A figure at work.
struct Drawing<'a> {
    experiment: &'a Experiment,
    found: &'a [Found],
    figure: &'a file::Figure,
}

impl Drawing<'_> {
    fn draw(&self) -> Figure {
        let n_wanted = match &self.figure.sweep {
            Some(sweep) => self.models().len() * self.file_variants(sweep),
            None => self.rows().len(),
        };
        let mut figure =
            Figure { title: self.figure.title.clone(), pictures: Vec::new(), missing: Vec::new(), n_wanted };
        for measure in self.measures() {
            let table = Table::of(self.experiment, self.found, measure);
            match self.figure.kind {
                Shape::Bars => self.bars(&table, &mut figure),
                Shape::Lines => self.lines(&table, &mut figure),
                Shape::Scatter => self.scatter(&table, &mut figure),
            }
        }
        figure
    }

    /// Each model, with and without MITE, once.
    fn models(&self) -> Vec<String> {
        let mut models: Vec<String> = Vec::new();
        for model in self.experiment.cells.iter().map(Cell::model_row) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }

    /// The variants of a sweep.
    fn file_variants(&self, sweep: &str) -> usize {
        let mut numbers: Vec<f64> = self.experiment.cells.iter().filter_map(|cell| number(cell, sweep)).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.len()
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = self.experiment.measures_of(self.figure.metric);
        let wanted = self.figure.setting;
        measures.retain(|measure| wanted.is_none() || measure.setting.is_none() || measure.setting == wanted);
        measures
    }

    fn add(&self, panel: &Panel, what: &str, figure: &mut Figure) {
        let Some(svg) = panel.draw() else { return };
        let mut name = format!("{}-{}", self.experiment.stem(), self.figure.name);
        if !what.is_empty() {
            name = format!("{name}-{what}");
        }
        let title = panel.title.clone();
        let label = format!("<svg class=\"plot\" role=\"img\" aria-label=\"{}\"", escaped(&title));
        figure.pictures.push(Picture { name, body: svg.replacen("<svg", &label, 1), title });
    }

    /// The rows of the grid without heuristics, and what each is called where only variants differ.
    fn rows(&self) -> Vec<(String, String)> {
        let has_one_model = self.experiment.cells.iter().all(|cell| cell.model == self.experiment.cells[0].model);
        let mut rows: Vec<(String, String)> = Vec::new();
        for cell in &self.experiment.cells {
            let row = cell.row();
            if !rows.iter().any(|(known, _)| *known == row) {
                let short = if has_one_model { cell.variant_title().to_owned() } else { row.clone() };
                rows.push((row, short));
            }
        }
        rows
    }

    fn bars(&self, table: &Table, figure: &mut Figure) {
        let rows = self.rows();
        let mut shown: Vec<(usize, usize, Reference)> = Vec::new();
        for (group, data) in table.columns.iter().enumerate() {
            for (series, (row, short)) in rows.iter().enumerate() {
                match table.entry(row, data) {
                    Some(entry) if entry.ours.is_some() => {
                        shown.extend(entry.ours.map(|ours| (group, series, ours)));
                    }
                    Some(_) => figure.lacks(data, short),
                    None => {}
                }
            }
        }
        // Groups without any bar take no room.
        let mut groups: Vec<usize> = shown.iter().map(|(group, ..)| *group).collect();
        groups.dedup();
        let metric = table.measure.metric;
        let Some(lowest) = shown.iter().map(|(.., ours)| ours.mean).reduce(f64::min) else { return };
        let highest = shown.iter().map(|(.., ours)| ours.mean + ours.deviation.unwrap_or(0.0)).fold(0.0, f64::max);
        // Chance tells a pair from another half the time.
        let is_above_chance = matches!(metric, Metric::Ap | Metric::Auc) && lowest > 50.0;
        let y = if is_above_chance { Scale::from_chance() } else { Scale::from_nothing(highest, metric) };
        let floor = y.low;
        let width = 0.8 / rows.len() as f64;
        let mut marks = Vec::new();
        for (group, series, ours) in shown {
            let middle = groups.iter().position(|known| *known == group).unwrap_or(0) as f64;
            let left = middle - 0.4 + width * series as f64;
            marks.push(Mark::Bar { series, from: (left + 0.06 * width, floor), to: (left + 0.94 * width, ours.mean) });
            marks.extend(Mark::spread(left + width / 2.0, &ours));
        }
        let names = groups.iter().enumerate().map(|(place, &group)| (place as f64, table.columns[group].clone()));
        let x = Scale { low: -0.5, high: groups.len() as f64 - 0.5, ticks: names.collect() };
        let keys = rows.iter().enumerate().map(|(series, (_, short))| Key::Bar(series, short.clone())).collect();
        let note = if floor > 0.0 { "bars begin at 50, which is chance" } else { "" };
        let panel =
            Panel { title: axis_title(table.measure), x, y, x_title: note.to_owned(), keys, marks, is_tall: false };
        self.add(&panel, &file_part(table.measure), figure);
    }

    fn lines(&self, table: &Table, figure: &mut Figure) {
        let Some(sweep) = &self.figure.sweep else { return };
        let metric = table.measure.metric;
        let (mut marks, mut keys, mut points_of_all) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers: Vec<f64> = Vec::new();
        let models = self.models();
        let lines = table.columns.iter().flat_map(|data| models.iter().map(move |model| (data, model)));
        for (series, (data, model)) in lines.enumerate() {
            let mut points: Vec<(f64, Reference)> = Vec::new();
            let is_on_line = |cell: &&Cell| cell.data == *data && cell.model_row() == *model;
            for cell in self.experiment.cells.iter().filter(is_on_line) {
                let Some(value) = number(cell, sweep) else { continue };
                numbers.push(value);
                match table.entry(&cell.row(), data).and_then(|entry| entry.ours) {
                    Some(ours) => points.push((value, ours)),
                    None if models.len() > 1 => figure.lacks(data, &cell.row()),
                    None => figure.lacks(data, cell.variant_title()),
                }
            }
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points.dedup_by(|a, b| a.0 == b.0);
            if points.is_empty() {
                continue;
            }
            let name = if models.len() > 1 { format!("{model}, {data}") } else { data.clone() };
            keys.push(Key::Line(series, name));
            let places: Vec<(f64, f64)> = points.iter().map(|(x, ours)| (x.log10(), ours.mean)).collect();
            marks.extend(points.iter().filter_map(|(x, ours)| Mark::spread(x.log10(), ours)));
            marks.extend(places.iter().map(|&at| Mark::Dot { series, at }));
            marks.push(Mark::Line { series, points: places });
            points_of_all.extend(points.iter().map(|(_, ours)| *ours));
        }
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        let Some(y) = Scale::around(&points_of_all, metric) else { return };
        let x = Scale::over(&numbers);
        let x_title = self.figure.axis.clone().unwrap_or_else(|| sweep.clone());
        let panel = Panel { title: axis_title(table.measure), x, y, x_title, keys, marks, is_tall: false };
        self.add(&panel, &file_part(table.measure), figure);
    }

    fn scatter(&self, table: &Table, figure: &mut Figure) {
        let Some(against) = self.figure.against else { return };
        let measures = self.experiment.measures_of(against);
        let same = measures.iter().find(|measure| measure.setting == table.measure.setting);
        let Some(&across) = same.or(measures.first()) else { return };
        let across = Table::of(self.experiment, self.found, across);
        for data in &table.columns {
            let (mut marks, mut points, mut xs) = (Vec::new(), Vec::new(), Vec::new());
            for (row, short) in self.rows() {
                let Some(entry) = table.entry(&row, data) else { continue };
                let x = across.entry(&row, data).and_then(|entry| entry.ours).map(|ours| ours.mean);
                let (Some(x), Some(ours)) = (x.filter(|x| *x > 0.0), entry.ours) else {
                    figure.lacks(data, &short);
                    continue;
                };
                let series = usize::from(!self.is_swept(&row));
                let at = (x.log10(), ours.mean);
                marks.extend(Mark::spread(at.0, &ours));
                marks.push(Mark::Dot { series, at });
                marks.push(Mark::Label { text: short, at });
                points.push(ours);
                xs.push(x);
            }
            let Some(y) = Scale::around(&points, table.measure.metric) else { continue };
            let title = format!("{}: {}", data, axis_title(table.measure));
            let x_title = lower_first(against.title());
            let panel = Panel { title, x: Scale::decades(&xs), y, x_title, keys: Vec::new(), marks, is_tall: true };
            let several = self.figure.setting.is_none().then(|| format!("-{}", file_part(table.measure)));
            self.add(&panel, &format!("{data}{}", several.unwrap_or_default()), figure);
        }
    }

    /// Whether a row has others of the same model beside it.
    fn is_swept(&self, row: &str) -> bool {
        let cells = &self.experiment.cells;
        let model = cells.iter().find(|cell| cell.row() == row).map(|cell| cell.model);
        cells.iter().any(|cell| Some(cell.model) == model && cell.row() != row)
    }
}

/// Over the vertical axis.
fn axis_title(measure: Measure) -> String {
    let title = measure.title();
    if measure.metric.is_cost() { title } else { format!("{title}, %") }
}

/// What tells the file of a panel from that of another.
fn file_part(measure: Measure) -> String {
    let setting = measure.setting.map(super::Setting::title);
    let negatives = measure.negatives.filter(|kind| *kind != Negatives::Random).map(Negatives::as_str);
    let parts: Vec<&str> = setting.into_iter().chain(negatives).collect();
    parts.join("-")
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
