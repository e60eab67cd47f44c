// Events on lanes over one time axis, in SVG. Marks can be picked by mouse and keys; intervals are drawn as lines that end at a moment.

import { el, short, svg } from "./dom.js";
import { gutter, RIGHT } from "./chart.js";
import { ticks } from "./format.js";
import { zoomKeys } from "./range.js";

const LANE = 26;
const AXIS = 26;

const SHAPES = {
  dot: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  diamond: (r) => `M0 ${-r * 1.25}L${r * 1.25} 0L0 ${r * 1.25}L${-r * 1.25} 0Z`,
  up: (r) => `M0 ${-r * 1.1}L${r * 1.15} ${r * 0.9}L${-r * 1.15} ${r * 0.9}Z`,
  down: (r) => `M0 ${r * 1.1}L${r * 1.15} ${-r * 0.9}L${-r * 1.15} ${-r * 0.9}Z`,
};

/**
 * set({ lanes, at, now, intervals }): lanes are { key, label, title, class, marks: [{ key, time, shape, class, words }], choose() };
 * `at` is the moment that intervals end at, `now` that after which the axis is future; intervals are { lane, from, class, words }.
 * `pick(mark)` is called for a mark with a key; `picked` is a set of such keys.
 */
export function timeline({ label, range, pick, picked = new Set(), role = "button" }) {
  const drawing = svg("svg", { class: "timeline", role: "group", "aria-label": label });
  const host = el("div", { class: "timeline-host" }, drawing);
  let content = { lanes: [], intervals: [] };
  let width = 0;
  let focused = null; // lane and mark key of the tab stop, kept when the drawing is made anew

  const left = () => gutter(width);
  const x = (t) => left() + ((t - range.min) / (range.max - range.min)) * (width - left() - RIGHT);
  const back = (px) => range.min + ((px - left()) / (width - left() - RIGHT)) * (range.max - range.min);

  function draw() {
    if (width === 0) return;
    const hadFocus = drawing.contains(document.activeElement);
    const { lanes, intervals = [], at, now = at } = content;
    const height = lanes.length * LANE + AXIS;
    const right = width - RIGHT;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("height", height);
    drawing.setAttribute("width", width);
    const floor = lanes.length * LANE;
    const parts = [];
    if (Number.isFinite(now) && now < range.max) {
      const from = Math.max(left(), x(now));
      parts.push(svg("rect", { class: "future", x: from, y: 0, width: Math.max(0, right - from), height: floor }));
    }
    for (const tick of ticks(range.min, range.max, (width - left()) / 110)) {
      parts.push(svg("line", { class: "grid", x1: x(tick.at), x2: x(tick.at), y1: 0, y2: floor }));
      // A label that would be cut off at the right edge is left out.
      if (tick.text.length * 3.4 <= width - x(tick.at)) parts.push(svg("text", { class: "tick", x: x(tick.at), y: floor + 17, "text-anchor": "middle" }, tick.text));
    }
    const catcher = svg("rect", { class: "catch", x: left(), y: 0, width: Math.max(0, right - left()), height: floor });
    parts.push(catcher);
    lanes.forEach((lane, i) => parts.push(laneHead(lane, i, right)));
    for (const span of intervals) {
      const i = lanes.findIndex((lane) => lane.key === span.lane);
      if (i < 0 || span.from > range.max || at < range.min) continue;
      const y = (i + 0.5) * LANE + (span.shift ?? 0);
      parts.push(svg("path", { class: `interval ${span.class ?? ""}`, d: `M${Math.max(left(), x(span.from))} ${y}H${Math.min(right, x(at))}` },
        svg("title", {}, span.words)));
    }
    const marks = lanes.flatMap((lane, i) => lane.marks.filter((m) => m.time >= range.min && m.time <= range.max).map((m) => mark(m, lane, i)));
    parts.push(...marks);
    if (Number.isFinite(at) && at >= range.min && at <= range.max) {
      parts.push(svg("line", { class: "at", x1: x(at), x2: x(at), y1: 0, y2: floor + 4 }));
    }
    drawing.replaceChildren(...parts);
    const stops = [...drawing.querySelectorAll("[data-mark]")];
    const stop = stops.find((m) => `${m.dataset.lane} ${m.dataset.mark}` === focused) ?? stops[0];
    stop?.setAttribute("tabindex", "0");
    if (hadFocus) stop?.focus();
  }

  function laneHead(lane, i, right) {
    const y = (i + 0.5) * LANE;
    const text = svg("text", { class: "lane-label", x: left() - 10, y: y + 4, "text-anchor": "end" },
      short(lane.label, Math.floor((left() - 14) / 8)), svg("title", {}, lane.title ?? lane.label));
    const head = svg("g", { class: `lane ${lane.class ?? ""}` }, svg("line", { class: "lane-line", x1: left(), x2: right, y1: y, y2: y }), text);
    if (lane.choose) {
      text.classList.add("choice");
      text.addEventListener("click", () => lane.choose());
    }
    return head;
  }

  function mark(m, lane, i) {
    const can = pick && m.key !== undefined;
    const element = svg("path", {
      class: `mark ${m.class ?? ""} ${picked.has(m.key) ? "picked" : ""}`,
      d: SHAPES[m.shape ?? "dot"](m.size ?? 4.5),
      transform: `translate(${x(m.time).toFixed(2)} ${(i + 0.5) * LANE})`,
      role: can ? role : undefined,
      tabindex: can ? "-1" : undefined,
      "aria-label": can ? m.words : undefined,
      "aria-pressed": can && role === "button" ? String(picked.has(m.key)) : undefined,
      data: can ? { mark: m.key, lane: lane.key, time: m.time } : {},
    }, svg("title", {}, m.words));
    if (can) {
      element.addEventListener("click", () => { focused = `${lane.key} ${m.key}`; pick(m); });
      element.addEventListener("focus", () => { focused = `${lane.key} ${m.key}`; });
    }
    return element;
  }

  // One tab stop for all marks; arrows go from one to the next, as in a toolbar.
  drawing.addEventListener("keydown", (event) => {
    const here = event.target.closest?.("[data-mark]");
    if (!here || event.shiftKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      here.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      return;
    }
    const all = [...drawing.querySelectorAll("[data-mark]")];
    const t = Number(here.dataset.time);
    const sameLane = all.filter((m) => m.dataset.lane === here.dataset.lane).sort((a, b) => a.dataset.time - b.dataset.time);
    const lanes = [...new Set(all.map((m) => m.dataset.lane))];
    const near = (key) => all.filter((m) => m.dataset.lane === key)
      .sort((a, b) => Math.abs(a.dataset.time - t) - Math.abs(b.dataset.time - t))[0];
    const next = {
      ArrowLeft: () => sameLane[sameLane.indexOf(here) - 1],
      ArrowRight: () => sameLane[sameLane.indexOf(here) + 1],
      ArrowUp: () => near(lanes[lanes.indexOf(here.dataset.lane) - 1]),
      ArrowDown: () => near(lanes[lanes.indexOf(here.dataset.lane) + 1]),
      Home: () => sameLane[0],
      End: () => sameLane.at(-1),
    }[event.key]?.();
    if (!next) return;
    event.preventDefault();
    here.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
  zoomKeys(drawing, range);
  dragToZoom();

  /** Mice drag a stretch to zoom into; fingers scroll the page. */
  function dragToZoom() {
    let from = null;
    let band = null;
    drawing.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0 || event.offsetX < left()) return;
      from = event.clientX - drawing.getBoundingClientRect().left;
    });
    drawing.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = event.clientX - drawing.getBoundingClientRect().left;
      if (!band && Math.abs(to - from) > 6) {
        drawing.setPointerCapture(event.pointerId);
        band = svg("rect", { class: "band", y: 0, height: content.lanes.length * LANE });
        drawing.append(band);
      }
      band?.setAttribute("x", Math.min(from, to));
      band?.setAttribute("width", Math.abs(to - from));
    });
    drawing.addEventListener("pointerup", (event) => {
      const to = event.clientX - drawing.getBoundingClientRect().left;
      if (band) range.set(back(Math.min(from, to)), back(Math.max(from, to)));
      band?.remove();
      from = band = null;
    });
    drawing.addEventListener("dblclick", (event) => { if (!event.target.dataset?.mark) range.reset(); });
  }

  function measure() {
    const now = Math.floor(host.clientWidth);
    const changed = now !== width;
    width = now;
    return changed;
  }
  const resize = new ResizeObserver(() => { if (measure()) draw(); });
  resize.observe(host);
  const stop = range.on(draw);

  return {
    host,
    set(next) {
      content = next;
      measure(); // at first the observer has not been called yet
      draw();
    },
    /** Shows which marks are picked without making the drawing anew. */
    refreshPicked() {
      for (const m of drawing.querySelectorAll("[data-mark]")) {
        const on = [...picked].some((key) => String(key) === m.dataset.mark);
        m.classList.toggle("picked", on);
        if (role === "button") m.setAttribute("aria-pressed", String(on));
      }
    },
    dispose() { resize.disconnect(); stop(); },
  };
}

/** One mark and what it means, for legends. */
export function markKey(kind, text, shape = "dot") {
  return el("span", {}, svg("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" }, svg("path", { class: `mark ${kind}`, d: SHAPES[shape](4.5) })), text);
}
