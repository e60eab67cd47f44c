//! Figures of an experiment: bars, lines over a sweep, scatter plots; each panel is a picture of its own.

use super::file::{self, Shape};
use super::inherit::Located;
use super::measure::{Measure, Metric};
use super::table::{Reference, Table};
use super::{Cell, Experiment, Found};
use hopedgn::Result;
use hopedgn::chart::{Axis, Chart, Key, Mark, N_LOOKS, N_SERIES, Size};
use hopedgn::evaluate::Negatives;

/// A figure: its panels, and what is missing in them.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Its heading.
    pub title: String,
    /// Panels with at least one value.
    pub pictures: Vec<Picture>,
    /// Datasets with missing results, and which.
    pub missing: Vec<(String, Vec<String>)>,
    /// Results it should show for each dataset.
    n_wanted: usize,
}

impl Figure {
    fn add_missing(&mut self, data: &str, what: &str) {
        match self.missing.iter_mut().find(|(known, _)| known == data) {
            Some((_, known)) if known.iter().any(|known| known == what) => {}
            Some((_, known)) => known.push(what.to_owned()),
            None => self.missing.push((data.to_owned(), vec![what.to_owned()])),
        }
    }

    /// The missing results in words; `None` if there are none.
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
    /// Name of its file, without the extension.
    pub name: String,
    chart: Chart,
}

impl Picture {
    /// Its title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.chart.title
    }

    /// As a part of a page that has the style sheet of charts.
    #[must_use]
    pub fn inline(&self) -> String {
        self.chart.inline()
    }

    /// As a file of its own.
    #[must_use]
    pub fn file(&self) -> String {
        self.chart.standalone()
    }
}

impl Experiment {
    /// Every figure of the cells in `found`.
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
                    "found lines without sweep, expected the name of their variants before the number"
                }
                (Shape::Lines, Some(sweep), _) if !self.cells.iter().any(|cell| number(cell, sweep).is_some()) => {
                    "found a sweep without variants, expected some called by its name, - and a number"
                }
                (Shape::Scatter, _, None) => "found points without against, expected the metric of the horizontal axis",
                (Shape::Bars | Shape::Scatter, Some(_), _) => "found sweep, expected it with lines only",
                (Shape::Bars | Shape::Lines, _, Some(_)) => "found against, expected it with kind = \"scatter\" only",
                _ => continue,
            };
            return Err(at.wrong(format!("{detail}; correct figure {}", figure.name)));
        }
        Ok(())
    }
}

/// The number in the variant's name, if it belongs to the sweep.
fn number(cell: &Cell, sweep: &str) -> Option<f64> {
    cell.variant.as_ref()?.strip_prefix(sweep)?.strip_prefix('-')?.parse().ok()
}

/// A figure under construction.
struct Drawing<'a> {
    experiment: &'a Experiment,
    found: &'a [Found],
    figure: &'a file::Figure,
}

impl Drawing<'_> {
    fn draw(&self) -> Figure {
        let n_wanted = match &self.figure.sweep {
            Some(sweep) => self.models().len() * self.n_variants(sweep),
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

    /// Models, with and without MITE, in order.
    fn models(&self) -> Vec<String> {
        let mut models: Vec<String> = Vec::new();
        for model in self.experiment.cells.iter().map(Cell::model_row) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }

    /// How many variants a sweep has.
    fn n_variants(&self, sweep: &str) -> usize {
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

    fn add(&self, chart: Chart, part: &str, figure: &mut Figure) {
        if chart.marks.is_empty() {
            return;
        }
        let mut name = format!("{}-{}", self.experiment.stem(), self.figure.name);
        if !part.is_empty() {
            name = format!("{name}-{part}");
        }
        figure.pictures.push(Picture { name, chart });
    }

    /// Rows of the grid without heuristics, each with its short name: that of the variant if there is one model.
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
                    Some(_) => figure.add_missing(data, short),
                    None => {}
                }
            }
        }
        // Groups without bars are left out.
        let mut groups: Vec<usize> = shown.iter().map(|(group, ..)| *group).collect();
        groups.dedup();
        let metric = table.measure.metric;
        let Some(lowest) = shown.iter().map(|(.., ours)| ours.mean).reduce(f64::min) else { return };
        let highest = shown.iter().map(|(.., ours)| ours.mean + ours.deviation.unwrap_or(0.0)).fold(0.0, f64::max);
        // Random scores reach 50 % of AP and AUC.
        let is_above_chance = matches!(metric, Metric::Ap | Metric::Auc) && lowest > 50.0;
        let y = if is_above_chance {
            Axis::above_chance()
        } else {
            with_units(Axis::around(0.0, highest.max(1.0), [0.0, f64::INFINITY]), metric)
        };
        let width = 0.8 / rows.len() as f64;
        let mut marks = Vec::new();
        for (group, series, ours) in shown {
            let middle = groups.iter().position(|known| *known == group).unwrap_or(0) as f64;
            let left = middle - 0.4 + width * series as f64;
            marks.push(Mark::Bar { series, x: [left + 0.06 * width, left + 0.94 * width], value: ours.mean });
            marks.extend(error_bar(left + width / 2.0, &ours));
        }
        let note = if is_above_chance { "bars begin at 50, the level of random scores" } else { "" };
        let x = Axis::categories(groups.iter().map(|&group| table.columns[group].clone())).titled(note);
        let legend = rows.iter().enumerate().map(|(series, (_, short))| Key::bar(series, short)).collect();
        let chart = Chart { title: axis_title(table.measure), size: Size::Wide, x, y, legend, marks };
        self.add(chart, &file_part(table.measure), figure);
    }

    fn lines(&self, table: &Table, figure: &mut Figure) {
        let Some(sweep) = &self.figure.sweep else { return };
        let metric = table.measure.metric;
        let (mut marks, mut legend, mut all_values) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers: Vec<f64> = Vec::new();
        let models = self.models();
        let n_data = table.columns.len();
        let places = (0..n_data).flat_map(|data| (0..models.len()).map(move |model| (data, model)));
        for (place, (data_at, model_at)) in places.enumerate() {
            let (data, model) = (&table.columns[data_at], &models[model_at]);
            let series = match (models.len(), n_data) {
                // One colour a dataset, one look a model.
                (2..=N_LOOKS, 2..=N_SERIES) => data_at + N_SERIES * model_at,
                _ => place,
            };
            let mut points: Vec<(f64, Reference)> = Vec::new();
            let is_on_line = |cell: &&Cell| cell.data == *data && cell.model_row() == *model;
            for cell in self.experiment.cells.iter().filter(is_on_line) {
                let Some(value) = number(cell, sweep) else { continue };
                numbers.push(value);
                match table.entry(&cell.row(), data).and_then(|entry| entry.ours) {
                    Some(ours) => points.push((value, ours)),
                    None if models.len() > 1 => figure.add_missing(data, &cell.row()),
                    None => figure.add_missing(data, cell.variant_title()),
                }
            }
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points.dedup_by(|a, b| a.0 == b.0);
            if points.is_empty() {
                continue;
            }
            legend.push(Key::line(series, if models.len() > 1 { format!("{model}, {data}") } else { data.clone() }));
            let line: Vec<[f64; 2]> = points.iter().map(|(x, ours)| [*x, ours.mean]).collect();
            marks.extend(points.iter().filter_map(|(x, ours)| error_bar(*x, ours)));
            marks.extend(line.iter().map(|&at| Mark::Dot { series, at, is_large: false }));
            marks.push(Mark::Line { series, points: line });
            all_values.extend(points.iter().map(|(_, ours)| *ours));
        }
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        let Some(y) = axis_around(&all_values, metric) else { return };
        let x = Axis::log_of(&numbers).titled(self.figure.axis.as_ref().unwrap_or(sweep));
        let chart = Chart { title: axis_title(table.measure), size: Size::Wide, x, y, legend, marks };
        self.add(chart, &file_part(table.measure), figure);
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
                    figure.add_missing(data, &short);
                    continue;
                };
                let series = usize::from(!self.has_variants(&row));
                let at = [x, ours.mean];
                marks.extend(error_bar(x, &ours));
                marks.push(Mark::Dot { series, at, is_large: false });
                marks.push(Mark::Label { at, text: short });
                points.push(ours);
                xs.push(x);
            }
            let Some(y) = axis_around(&points, table.measure.metric) else { continue };
            let title = format!("{}: {}", data, axis_title(table.measure));
            let x = Axis::log_around(&xs).titled(lower_first(against.title()));
            let chart = Chart { title, size: Size::Square, x, y, legend: Vec::new(), marks };
            let several = self.figure.setting.is_none().then(|| format!("-{}", file_part(table.measure)));
            self.add(chart, &format!("{data}{}", several.unwrap_or_default()), figure);
        }
    }

    /// Whether the model of a row has other rows.
    fn has_variants(&self, row: &str) -> bool {
        let cells = &self.experiment.cells;
        let model = cells.iter().find(|cell| cell.row() == row).map(|cell| cell.model);
        cells.iter().any(|cell| Some(cell.model) == model && cell.row() != row)
    }
}

/// Round numbers around means and their deviations; costs from zero, so that lengths compare.
fn axis_around(values: &[Reference], metric: Metric) -> Option<Axis> {
    let low = values.iter().map(|one| one.mean - one.deviation.unwrap_or(0.0)).reduce(f64::min)?;
    let high = values.iter().map(|one| one.mean + one.deviation.unwrap_or(0.0)).reduce(f64::max)?;
    let (low, most) = if metric.is_cost() { (0.0, f64::INFINITY) } else { (low, 100.0) };
    Some(with_units(Axis::around(low, high, [0.0, most]), metric))
}

/// Large costs as tables show them.
fn with_units(axis: Axis, metric: Metric) -> Axis {
    axis.labelled(|value| (metric.is_cost() && value >= 1000.0).then(|| metric.text(value)))
}

/// The deviation of a mean over several runs.
fn error_bar(x: f64, value: &Reference) -> Option<Mark> {
    let deviation = value.deviation.filter(|deviation| *deviation > 0.0)?;
    Some(Mark::ErrorBar { x, y: [value.mean - deviation, value.mean + deviation] })
}

/// Title of the vertical axis.
fn axis_title(measure: Measure) -> String {
    let title = measure.title();
    if measure.metric.is_cost() { title } else { format!("{title}, %") }
}

/// The part of a panel's file name that its measure decides.
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
