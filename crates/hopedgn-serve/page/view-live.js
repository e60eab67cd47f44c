// Live: events coming in, latency, scores, and the model that answers.

import { api } from "./api.js";
import { histogram } from "./bars.js";
import { legend, lineChart } from "./chart.js";
import { el, hash, name, panel, problem, replace, setText, still, tile } from "./dom.js";
import { chance, count, latency, plural, rate, shortTime, span, time, units } from "./format.js";
import { live, past, subscribe } from "./live.js";
import { Range, zoomButtons } from "./range.js";

const WINDOWS = [[60, "1 min"], [300, "5 min"], [900, "15 min"]];

export function mount(place) {
  const ends = new AbortController();
  const tiles = {
    events: tile("Events", "–", "", "live-events"),
    rate: tile("Events per second", "–", "", "live-rate"),
    watermark: tile("Watermark", "–", "time of the newest event", "live-watermark"),
    nodes: tile("Nodes", "–", "with at least one event", "live-nodes"),
  };
  tiles.watermark.classList.add(units.dates ? "date" : "long");
  const newest = el("tbody", { id: "newest" });
  const moving = movingCharts();
  const scores = scoresPanel();
  const model = el("div", { id: "model" }, el("p", { class: "quiet" }, "Loading …"));

  replace(place,
    el("h1", { class: "unseen" }, "Live"),
    el("div", { class: "tiles" }, tiles.events, tiles.rate, tiles.watermark, tiles.nodes),
    el("div", { class: "columns wide-left" },
      el("div", { class: "stack" },
        panel("Events per second", { id: "rate-chart", tools: moving.tools }, moving.rates.host),
        panel("Latency", { class: "later", note: "Answers of the last minute, by path. A row shows its course below." },
          el("div", { class: "scroll" }, el("table", { class: "fixed latency" },
            el("thead", {}, el("tr", {}, ["Path", "Answers", "p50", "p90", "p99"].map((t) => el("th", { scope: "col" }, t)))),
            moving.rows)),
          moving.latencies.host, moving.names)),
      el("div", { class: "stack" },
        panel("Newest events", {},
          el("table", { class: "fixed newest" },
            el("thead", {}, el("tr", {}, [["Event", "seq"], ["From"], ["To"], ["Time", "when"]].map(([t, c]) => el("th", { scope: "col", class: c }, t)))),
            newest)))),
    el("div", { class: "columns" }, scores.element, panel("Model", { tools: el("a", { href: "#/runs" }, "Compare runs") }, model)));

  const first = live.shown?.events;
  let since = first;
  const stop = subscribe((message) => {
    since ??= message.events;
    setText(tiles.events.figure, count(message.events));
    setText(tiles.events.below, message.events > since ? `${count(message.events - since)} since you came` : "none since you came");
    setText(tiles.rate.figure, rate(message.events_per_second));
    setText(tiles.rate.below, message.read_only ? "log is read-only: events are refused" : message.held ? `${count(message.held)} held back` : "over the last second");
    setText(tiles.watermark.figure, time(message.watermark, message.watermark_date));
    setText(tiles.nodes.figure, count(message.nodes));
    setText(tiles.nodes.below, `up for ${span(Math.floor(message.uptime))}`);
    drawNewest(newest, message.newest);
    moving.draw(message);
    scores.draw(message.scores);
  });
  drawModel(model, ends.signal);

  return () => {
    stop();
    ends.abort();
    moving.dispose();
  };
}

/** Rows are kept by number: only what is new is added, so that a selection or a focused link survives. */
function drawNewest(body, events) {
  const known = new Map([...body.children].map((row) => [row.dataset.event, row]));
  const initial = known.size === 0;
  if (!events.length && initial) {
    replace(body, el("tr", {}, el("td", { colspan: "4", class: "quiet" }, "No events yet. They show up here as they arrive.")));
    return;
  }
  const rows = events.map((event) => known.get(String(event.event)) ?? el("tr", { data: { event: event.event }, class: initial ? undefined : "fresh" },
    el("td", { class: "seq" }, el("a", { href: hash.pair(event.src, event.dst), "aria-label": `event ${event.event}: open the pair` }, count(event.event))),
    el("td", {}, name(event.src, hash.node(event.src))),
    el("td", {}, name(event.dst, hash.node(event.dst))),
    el("td", { class: "when", title: time(event.time, event.date) }, shortTime(event.time, event.date))));
  rows.forEach((row, i) => { if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null); });
  while (body.children.length > rows.length) body.lastElementChild.remove();
}

/** Rate and latency over the time since the page was opened, on one axis. */
function movingCharts() {
  let wide = WINDOWS[0][0];
  let path = null;
  const now = () => Date.now() / 1000;
  const range = new Range(now() - wide, now());
  const rates = lineChart({
    label: "Events per second over time", height: 190, range, xTicks: clock,
    series: [{ label: "events per second", colour: "--all", area: true }],
    y: { range: (_, low, high) => [0, Math.max(4, (high ?? 0) * 1.15)], format: rate },
    readout: (u, i) => `${clockText(u.data[0][i])}: ${rate(u.data[1][i])} events per second`,
    describe: ([, y]) => (y.length ? `Now ${rate(y.at(-1))}, at most ${rate(Math.max(...y))}.` : "Nothing yet."),
  });
  const lines = [{ label: "p50", colour: "--all" }, { label: "p90", colour: "--third" }, { label: "p99", colour: "--new" }];
  const latencies = lineChart({
    label: "Latency percentiles over time", height: 150, range, xTicks: clock, series: lines,
    y: { log: true, range: (_, low, high) => (high > 0 ? [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high) + 0.01)] : [1e-4, 1e-1]), format: latency },
    readout: (u, i) => (u.data[1][i] == null ? "" : `${clockText(u.data[0][i])}: p50 ${latency(u.data[1][i])}, p90 ${latency(u.data[2][i])}, p99 ${latency(u.data[3][i])}`),
    describe: ([, y]) => (y.length && y.at(-1) != null ? `${path}: median now ${latency(y.at(-1))}.` : "Nothing yet."),
  });
  const rows = el("tbody", { id: "latency" });
  const windows = el("div", { class: "group", role: "group", "aria-label": "Time shown" }, WINDOWS.map(([seconds, text]) => el("button", {
    type: "button", class: "small", "aria-pressed": String(seconds === wide),
    onclick: (event) => {
      wide = seconds;
      for (const button of windows.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      range.zoomed = false;
      move();
    },
  }, text)));

  function course() {
    const x = past.map((p) => p.at);
    rates.set([x, past.map((p) => p.rate)]);
    const of = (key) => past.map((p) => p.latency.find((row) => row.path === path)?.[key] ?? null);
    latencies.set([x, of("p50"), of("p90"), of("p99")]);
  }

  // Between messages the axis moves on by itself, a pixel at a time; nothing moves for those who asked for stillness.
  const move = () => range.setFull(now() - wide, now());
  const timer = setInterval(() => {
    if (!live.paused && !range.zoomed && live.connected && !document.hidden && !still()) move();
  }, 100);

  return {
    rates,
    latencies,
    rows,
    names: legend(lines),
    tools: [windows, zoomButtons(range, "the charts")],
    draw(message) {
      // Answers about the data: files of the page and this stream would only push them down.
      const paths = message.latency.filter((row) => /^\/v\d/.test(row.path) && row.path !== "/v1/live");
      if (!paths.some((row) => row.path === path)) {
        path = (paths.find((row) => row.path === "/v1/score") ?? [...paths].sort((a, b) => b.count - a.count)[0])?.path ?? null;
      }
      drawLatency(rows, paths, path, (chosen) => { path = chosen; course(); });
      if (!range.zoomed) [range.full, range.min, range.max] = [[now() - wide, now()], now() - wide, now()];
      course();
    },
    dispose() {
      clearInterval(timer);
      rates.dispose();
      latencies.dispose();
    },
  };
}

function drawLatency(body, paths, chosen, choose) {
  const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.path : null;
  replace(body, paths.length ? paths.map((row) => el("tr", { data: { path: row.path }, class: row.path === chosen ? "best" : undefined },
    el("td", {}, el("button", { type: "button", class: "link", "aria-pressed": String(row.path === chosen), title: row.path, onclick: () => { choose(row.path); drawLatency(body, paths, row.path, choose); } }, row.path)),
    el("td", {}, count(row.count)), el("td", {}, latency(row.p50)), el("td", {}, latency(row.p90)), el("td", {}, latency(row.p99))))
    : el("tr", {}, el("td", { colspan: "5", class: "quiet" }, "No answers in the last minute.")));
  if (focused) [...body.children].find((row) => row.dataset.path === focused)?.querySelector("button").focus();
}

function scoresPanel() {
  const bars = histogram("Distribution of scores");
  let roots = true;
  let last = null;
  const note = el("p", { class: "quiet note-line" });
  const button = el("button", {
    type: "button", class: "small", "aria-pressed": "true", title: "Heights are square roots of counts, so that rare scores can be seen",
    onclick: () => { roots = !roots; button.setAttribute("aria-pressed", String(roots)); if (last) bars.set(last, roots); },
  }, "√ heights");
  return {
    element: panel("Scores", { tools: button }, note, el("div", { id: "scores-chart" }, bars.chart)),
    draw(scores) {
      last = scores;
      setText(note, scores.total ? `${plural(scores.total, "score")} answered since the start, from 0 to 1.` : "None answered yet. Open a pair to ask for one.");
      bars.set(scores, roots);
    },
  };
}

async function drawModel(box, signal) {
  try {
    const [status, { runs }] = await Promise.all([api.status(signal), api.runs(signal).catch((error) => {
      if (signal.aborted) throw error;
      return { runs: [] }; // a server may have no runs to compare
    })]);
    const run = runs.find((r) => r.current);
    const figures = [];
    const add = (label, value, text = chance) => { if (Number.isFinite(value)) figures.push(tile(label, text(value))); };
    add("AP, transductive", run?.test?.transductive?.ap);
    add("AP, inductive", run?.test?.inductive?.ap);
    add("MRR", run?.ranking?.mrr);
    add("Calibration error", run?.calibration?.error);
    const facts = [["Name", name(status.model)], ["Architecture", status.architecture], ["Answers", status.probabilities ? "probabilities" : "scores"],
      run && ["Trained on", run.data], run && ["Epochs", `${run.epochs}, best ${run.best_epoch}`], run && ["Device", run.device]];
    replace(box, el("div", { class: "tiles small" }, figures),
      el("dl", {}, facts.filter(Boolean).map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value)))),
      !run && el("p", { class: "quiet" }, "No test results of this model at hand."));
  } catch (error) {
    if (!signal.aborted) replace(box, problem(error));
  }
}

const two = (n) => String(n).padStart(2, "0");
function clockText(at) {
  const d = new Date(at * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** Round moments of the wall clock. */
function clock(min, max, n) {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600].find((s) => s >= (max - min) / n) ?? 900;
  const out = [];
  for (let at = Math.ceil(min / step) * step; at <= max; at += step) out.push({ at, text: step < 60 ? clockText(at) : clockText(at).slice(0, 5) });
  return out;
}
