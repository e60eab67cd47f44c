// Bars in SVG: a histogram whose bars move, and diverging bars around zero.

import { el, svg } from "./dom.js";
import { chance, count } from "./format.js";

const HEIGHT = 180;
const BOTTOM = 22;
const TOP = 20;

/** Counts of scores between 0 and 1. Heights are square roots on request: most scores are small, and the others matter. */
export function histogram(label) {
  // Widths are percentages and heights pixels: text keeps its size whatever the width.
  const bars = svg("g", {});
  const axis = svg("g", { class: "axis" });
  const most = svg("text", { class: "tick", x: 0, y: 11 });
  const chart = svg("svg", { class: "histogram", width: "100%", height: HEIGHT, role: "img", "aria-label": label }, most, axis, bars);
  const floor = HEIGHT - BOTTOM;
  axis.append(svg("line", { x1: 0, x2: "100%", y1: floor, y2: floor }));
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {
    axis.append(svg("text", { class: "tick", x: `${at * 100}%`, y: HEIGHT - 6, "text-anchor": at === 0 ? "start" : at === 1 ? "end" : "middle" }, String(at)));
  }
  let columns = [];

  return {
    chart,
    set({ counts, total }, roots) {
      if (columns.length !== counts.length) {
        const wide = 100 / counts.length;
        columns = counts.map((_, i) => {
          const title = svg("title", {});
          const bar = svg("rect", { class: "bin", x: `${(i + 0.06) * wide}%`, width: `${wide * 0.88}%`, y: floor, height: 0, rx: 1.5 });
          const catcher = svg("rect", { class: "catch", x: `${i * wide}%`, width: `${wide}%`, y: TOP, height: floor - TOP }, title);
          return { bar, title, group: svg("g", {}, bar, catcher) };
        });
        bars.replaceChildren(...columns.map((c) => c.group));
      }
      const scale = roots ? Math.sqrt : (n) => n;
      const top = Math.max(1, ...counts);
      counts.forEach((n, i) => {
        const high = (scale(n) / scale(top)) * (floor - TOP);
        columns[i].bar.style.height = `${high}px`;
        columns[i].bar.style.y = `${floor - high}px`;
        columns[i].title.textContent = `${(i / counts.length).toFixed(2)} to ${((i + 1) / counts.length).toFixed(2)}: ${count(n)}`;
      });
      most.textContent = total ? `highest bar: ${count(top)}` : "";
      const mode = counts.indexOf(top);
      chart.setAttribute("aria-label", total
        ? `${label}: ${count(total)} scores, most between ${(mode / counts.length).toFixed(2)} and ${((mode + 1) / counts.length).toFixed(2)}`
        : `${label}: none yet`);
    },
  };
}

/** A bar to the right of the middle where the value is positive, to the left where it is negative. */
export function divergingBar(value, most) {
  const part = most > 0 ? Math.min(1, Math.abs(value) / most) * 50 : 0;
  const bar = el("i", { class: value < 0 ? "down" : "up" });
  bar.style.width = `${part}%`;
  return el("span", { class: "diverging", "aria-hidden": "true" }, bar);
}

/** A bar from the left for a part between 0 and 1. */
export function partBar(value, most = 1) {
  const bar = el("i", {});
  bar.style.width = `${most > 0 ? Math.max(0, Math.min(1, value / most)) * 100 : 0}%`;
  return el("span", { class: "part", "aria-hidden": "true", title: chance(value) }, bar);
}
