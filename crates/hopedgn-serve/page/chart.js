// Line charts by uPlot: colours of the theme, width of their place, drag to zoom, a readout under the cursor, and words for screen readers.

import uPlot from "./vendor-uplot.js";
import { el, setText } from "./dom.js";
import { ticks } from "./format.js";
import { zoomKeys } from "./range.js";
import { colour, faded, onTheme } from "./theme.js";

/** Space left and right of the axis: charts that share one must agree. */
export const gutter = (width) => (width < 560 ? 84 : 148);
export const RIGHT = 14;

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

/**
 * series: [{ label, colour: "--all", area, dash, format }]; `range` is the x axis and what zoom changes.
 * `draw(u)` paints over the lines; `readout(u, index)` says what is under the cursor; `click(x)` is told the time of a click.
 */
export function lineChart({ label, height = 180, series, range, y = {}, left = 52, xTicks, draw, under, readout, click, describe }) {
  const place = el("div", { class: "chart", role: "img", "aria-label": label, tabindex: "0" });
  const words = el("div", { class: "readout", "aria-hidden": "true" });
  const host = el("div", { class: "chart-host" }, place, words);
  const side = (u) => (typeof left === "function" ? left(u?.width ?? place.clientWidth) : left);
  let selecting = false;

  const options = {
    width: 300,
    height,
    padding: [10, RIGHT, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: 6 },
      points: { size: 7, width: 2 },
      bind: { dblclick: () => () => { range.reset(); return null; } },
    },
    scales: {
      x: { time: false, range: () => [range.min, range.max] },
      y: { range: y.range ?? ((_, low, high) => [0, high > 0 ? high * 1.12 : 1]), distr: y.log ? 3 : 1, log: 10 },
    },
    axes: [
      {
        ...axis(),
        size: 30,
        splits: (u, _, min, max) => (xTicks ?? ticks)(min, max, u.bbox.width / devicePixelRatio / 110).map((t) => t.at),
        values: (u, splits) => {
          const known = new Map((xTicks ?? ticks)(range.min, range.max, u.bbox.width / devicePixelRatio / 110).map((t) => [t.at, t.text]));
          // A label that would be cut off at the right edge is left out.
          const room = (at) => u.bbox.width / devicePixelRatio - u.valToPos(at, "x") + RIGHT;
          return splits.map((at) => ((known.get(at) ?? "").length * 3.4 <= room(at) ? known.get(at) : ""));
        },
      },
      { ...axis(), size: side, space: 34, values: y.format && ((_, splits) => splits.map((v) => (v === null ? "" : y.format(v)))) },
    ],
    series: [{}, ...series.map((s) => ({
      label: s.label,
      stroke: () => colour(s.colour),
      width: s.width ?? 1.75,
      dash: s.dash,
      fill: s.area ? () => faded(s.colour, 0.12) : undefined,
      points: { show: s.points ?? false, size: 5 },
      spanGaps: true,
    }))],
    hooks: {
      drawClear: under ? [under] : [],
      draw: draw ? [draw] : [],
      setSelect: [(u) => {
        const { left: from, width } = u.select;
        if (width < 6) return;
        selecting = true;
        setTimeout(() => { selecting = false; });
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        range.set(u.posToVal(from, "x"), u.posToVal(from + width, "x"));
      }],
      setCursor: [(u) => setText(words, u.cursor.idx === null || u.cursor.idx === undefined || u.cursor.left < 0 ? "" : (readout?.(u, u.cursor.idx) ?? ""))],
    },
  };
  const plot = new uPlot(options, [[], ...series.map(() => [])], place);
  if (click) {
    plot.over.addEventListener("click", (event) => {
      if (!selecting) click(plot.posToVal(event.offsetX, "x"));
    });
  }
  zoomKeys(place, range);

  // A chart in a place that is not shown has no width; it is drawn once it has.
  const fit = () => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && width !== plot.width) plot.setSize({ width, height });
  };
  const resize = new ResizeObserver(fit);
  resize.observe(place);
  const stopTheme = onTheme(() => plot.redraw(false, true));
  const stopRange = range.on(() => plot.setScale("x", { min: range.min, max: range.max }));

  return {
    host,
    plot,
    /** Columns: x, then one for each series. */
    set(data) {
      fit(); // at first the observer has not been called yet
      plot.setData(data, false);
      plot.setScale("x", { min: range.min, max: range.max });
      if (describe) place.setAttribute("aria-label", `${label}. ${describe(data)}`);
    },
    redraw: () => plot.redraw(false, false),
    dispose() {
      resize.disconnect();
      stopTheme();
      stopRange();
      plot.destroy();
    },
  };
}

function axis() {
  return {
    stroke: () => colour("--quiet"),
    font: FONT,
    grid: { stroke: () => colour("--grid"), width: 1 },
    ticks: { stroke: () => colour("--grid"), width: 1, size: 4 },
    gap: 5,
  };
}

/** Names of lines, with the colour and dash they have. */
export function legend(series) {
  return el("div", { class: "legend" }, series.map((s) => {
    const line = el("i", { class: s.dash ? "line dashed" : "line", "aria-hidden": "true" });
    line.style.borderColor = `var(${s.colour})`;
    return el("span", {}, line, s.label);
  }));
}
