// The runs at hand, side by side: a table to sort, and curves of those that are chosen.

import { api } from "./api.js";
import { legend, lineChart } from "./chart.js";
import { el, name, panel, problem, replace, shown } from "./dom.js";
import { chance, count, span } from "./format.js";
import { Range, zoomButtons } from "./range.js";
import { showReport } from "./report.js";

const COLOURS = ["--all", "--new", "--third", "--fourth", "--fifth", "--sixth"];
const DASHES = [undefined, [6, 4], [2, 4]];
const AT_FIRST = 4; // runs with curves

/** Columns: heading, value, text, and whether more or less is better. */
const COLUMNS = [
  ["AP", (r) => r.test?.transductive?.ap, chance, 1, "Average precision, transductive"],
  ["AP new", (r) => r.test?.inductive?.ap, chance, 1, "Average precision, inductive: with nodes not seen in training"],
  ["AUC", (r) => r.test?.transductive?.auc, chance, 1, "Area under the ROC curve, transductive"],
  ["MRR", (r) => r.ranking?.mrr, chance, 1, "Mean reciprocal rank"],
  ["Hits@10", (r) => r.ranking?.hits_at_10, chance, 1, "Share of events whose destination ranks among the first ten"],
  ["Calibration", (r) => r.calibration?.error, chance, -1, "Calibration error"],
  ["Loss", (r) => r.curve?.find((e) => e.epoch === r.best_epoch)?.loss ?? r.curve?.at(-1)?.loss, chance, 0, "Training loss of the best epoch"],
  ["Epoch", (r) => r.best_epoch, (n, r) => `${count(n)} of ${count(r.epochs)}`, 0, "Best epoch of all"],
  ["Per epoch", (r) => r.seconds_per_epoch, (s, r) => `${span(s)} (${r.device})`, 0, "Time for an epoch, and the device"],
];

export function mount(place) {
  const ends = new AbortController();
  const cleanup = [() => ends.abort()];
  const body = el("div", {}, el("p", { class: "quiet" }, "Loading …"));
  replace(place, el("div", { class: "view-head" }, el("h1", {}, "Runs")), body);
  api.runs(ends.signal).then(({ runs }) => {
    if (runs.length) cleanup.push(show(body, runs));
    else replace(body, el("p", {}, "No runs at hand. The server shows the run folders beside that of its model."));
  }).catch((error) => { if (!ends.signal.aborted) replace(body, problem(error)); });
  return () => cleanup.forEach((end) => end());
}

function show(body, runs) {
  runs.forEach((run, i) => { run.colour = COLOURS[i % COLOURS.length]; run.dash = DASHES[Math.floor(i / COLOURS.length) % DASHES.length]; });
  const chosen = new Set([...runs].sort((a, b) => b.current - a.current).slice(0, AT_FIRST));
  let order = { column: null, down: true };
  const rows = el("tbody", {});
  const heads = COLUMNS.map((column) => el("th", { scope: "col", "aria-sort": "none" },
    el("button", { type: "button", class: "link", title: column[4], onclick: () => sort(column) }, column[0])));
  const charts = el("div", { class: "columns three" });
  let dispose = () => {};

  replace(body,
    panel("Test results", { note: "The best of each column in bold. Chosen runs are drawn below." },
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Test results" }, el("table", { id: "runs-table", class: "runs" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"), el("th", { scope: "col" }, el("span", { class: "unseen" }, "Report")), el("th", { scope: "col" }, "Model"), el("th", { scope: "col" }, "Data"), heads)),
        rows))),
    charts);

  function sort(column) {
    order = { column, down: order.column === column ? !order.down : column[3] >= 0 };
    COLUMNS.forEach((c, i) => heads[i].setAttribute("aria-sort", c === column ? (order.down ? "descending" : "ascending") : "none"));
    drawTable();
  }

  function drawTable() {
    const best = new Map(COLUMNS.filter((c) => c[3] !== 0).map((c) => [c, Math.max(...runs.map((r) => (Number.isFinite(c[1](r)) ? c[1](r) * c[3] : -Infinity)))]));
    const sorted = order.column ? [...runs].sort((a, b) => {
      const [x, y] = [order.column[1](a), order.column[1](b)];
      if (!Number.isFinite(x) || !Number.isFinite(y)) return Number.isFinite(y) - Number.isFinite(x); // unknown ones last
      return order.down ? y - x : x - y;
    }) : runs;
    replace(rows, sorted.map((run) => {
      const swatch = el("i", { class: run.dash ? "line dashed" : "line", "aria-hidden": "true" });
      swatch.style.borderColor = `var(${run.colour})`;
      return el("tr", { data: { run: run.name }, class: run.current ? "best" : undefined },
        el("td", {}, el("label", { class: "run" }, el("input", { type: "checkbox", checked: chosen.has(run), "aria-label": `draw ${shown(run.name)}`, onchange: (event) => { if (event.target.checked) chosen.add(run); else chosen.delete(run); drawCharts(); } }),
          swatch, name(run.name), run.current && el("span", { class: "badge" }, "answers now"))),
        el("td", {}, run.has_report && el("button", { type: "button", class: "small", "aria-label": `report of ${shown(run.name)}`, onclick: () => showReport(run.name) }, "Report")),
        el("td", {}, run.model), el("td", {}, el("span", { class: "name cut", title: `${run.data}, seed ${run.seed}` }, run.data)),
        COLUMNS.map((c) => {
          const value = c[1](run);
          const top = best.has(c) && value * c[3] === best.get(c) && runs.length > 1;
          return el("td", {}, top ? el("b", {}, c[2](value, run)) : Number.isFinite(value) ? c[2](value, run) : "–");
        }));
    }));
  }

  function drawCharts() {
    dispose();
    const drawn = runs.filter((run) => chosen.has(run));
    const made = [curves("Loss", "runs-loss", "loss", drawn), curves("AP in validation", "runs-ap", "val_ap", drawn), calibration(drawn)];
    replace(charts, made.map((c) => c.element));
    dispose = () => made.forEach((c) => c.dispose());
  }
  drawTable();
  drawCharts();
  return () => dispose();
}

const lines = (runs) => runs.map((run) => ({ label: shown(run.name).slice(0, 40), colour: run.colour, dash: run.dash, points: true }));

/** Lines of one number by epoch. */
function curves(title, id, field, runs) {
  const epochs = [...new Set(runs.flatMap((run) => (run.curve ?? []).filter((e) => Number.isFinite(e[field])).map((e) => e.epoch)))].sort((a, b) => a - b);
  if (!epochs.length) return { element: panel(title, { id }, el("p", { class: "quiet" }, "Nothing to draw.")), dispose() {} };
  const range = new Range(epochs[0] - 0.3, epochs.at(-1) + 0.3);
  const series = lines(runs);
  const chart = lineChart({
    label: `${title} by epoch`, height: 220, range, series, xTicks: wholeTicks,
    y: { range: (_, low, high) => (high > low ? [low - (high - low) * 0.08, high + (high - low) * 0.08] : [low - 0.01, high + 0.01]), format: (v) => Number(v.toPrecision(3)).toString() },
    readout: (u, i) => `epoch ${u.data[0][i]}: ${runs.map((_, k) => chance(u.data[k + 1][i] ?? NaN)).join(", ")}`,
    describe: () => runs.map((run) => `${shown(run.name).slice(0, 40)}: ${chance(run.curve?.at(-1)?.[field])} at the end`).join("; "),
  });
  chart.set([epochs, ...runs.map((run) => epochs.map((epoch) => run.curve?.find((e) => e.epoch === epoch)?.[field] ?? null))]);
  return { element: panel(title, { id, tools: zoomButtons(range, title) }, chart.host, legend(series)), dispose: () => chart.dispose() };
}

function wholeTicks(min, max, n) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((s) => s >= (max - min) / (n * 1.7)) ?? 1000;
  const out = [];
  for (let at = Math.ceil(min / step) * step; at <= max; at += step) out.push({ at, text: String(at) });
  return out;
}

/** Predicted against observed, by bins. Small probabilities need logarithms on both axes. */
function calibration(all) {
  const title = "Calibration";
  const id = "runs-calibration";
  const runs = all.filter((run) => run.calibration?.bins?.some((bin) => bin.predicted > 0));
  if (!runs.length) return { element: panel(title, { id }, el("p", { class: "quiet" }, "None of the chosen runs was calibrated.")), dispose() {} };
  const bins = runs.map((run) => run.calibration.bins.filter((bin) => bin.count > 0 && bin.predicted > 0));
  const logs = Math.min(...bins.flat().map((bin) => bin.predicted)) < 0.005;
  const to = (p) => (logs ? (p > 0 ? Math.log10(p) : null) : p);
  const text = (v) => (logs ? (Math.abs(v - Math.round(v)) < 1e-6 ? Number(`1e${Math.round(v)}`).toString() : "") : v.toFixed(2));
  const low = logs ? Math.floor(Math.min(...bins.flat().map((bin) => to(bin.predicted)))) : 0;
  const range = new Range(low, logs ? 0.1 : 1.02);
  const x = [...new Set([low, logs ? 0 : 1, ...bins.flat().map((bin) => to(bin.predicted))])].sort((a, b) => a - b);
  const series = [...lines(runs), { label: "as predicted", colour: "--quiet", dash: [3, 4], width: 1.25 }];
  const chart = lineChart({
    label: "Observed against predicted probability", height: 220, range, series, left: 62,
    xTicks: logs ? (a, b) => wholeTicks(a, b, 6).map((t) => ({ at: t.at, text: text(t.at) })) : undefined,
    y: { range: () => [range.min, range.max], format: text },
    readout: (u, i) => `predicted ${chance(logs ? 10 ** u.data[0][i] : u.data[0][i])}: observed ${runs.map((_, k) => (u.data[k + 1][i] == null ? "–" : chance(logs ? 10 ** u.data[k + 1][i] : u.data[k + 1][i]))).join(", ")}`,
    describe: () => runs.map((run) => `${shown(run.name).slice(0, 40)}: error ${chance(run.calibration.error)}`).join("; "),
  });
  chart.set([x, ...bins.map((b) => x.map((at) => { const bin = b.find((one) => to(one.predicted) === at); return bin ? to(bin.observed) : null; })), x]);
  return { element: panel(title, { id, tools: zoomButtons(range, title) }, chart.host, legend(series)), dispose: () => chart.dispose() };
}
