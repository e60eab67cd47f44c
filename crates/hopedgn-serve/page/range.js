// The stretch of time that charts show: one object for all charts on the same axis, with zoom by buttons and keys.

import { el } from "./dom.js";

export class Range {
  #listeners = new Set();

  constructor(min, max) {
    this.full = [min, max];
    this.earliest = min;
    this.min = min;
    this.max = max;
    this.zoomed = false;
  }

  on(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell() {
    for (const listener of [...this.#listeners]) listener(this);
  }

  /** What there is to show; shown as a whole unless someone zoomed in. Zooming out goes on to `earliest`. */
  setFull(min, max, earliest = min) {
    this.full = [min, max];
    this.earliest = earliest;
    if (!this.zoomed) [this.min, this.max] = this.full;
    this.#tell();
  }

  set(min, max) {
    if (!(max > min) || !Number.isFinite(max - min)) return;
    this.zoomed = true;
    this.min = min;
    this.max = max;
    this.#tell();
  }

  zoom(factor, at = (this.min + this.max) / 2) {
    const least = Math.max(Math.abs(this.max) * 1e-12, (this.full[1] - this.full[0]) * 1e-6);
    if (factor < 1 && (this.max - this.min) * factor < least) return;
    const [min, max] = [at - (at - this.min) * factor, at + (this.max - at) * factor];
    if (factor < 1) return this.set(min, max);
    if (max - min < this.full[1] - this.full[0]) return this.set(min, max);
    const before = this.full[1] - (this.full[1] - this.min) * factor;
    if (this.min > this.full[0] || this.earliest >= this.full[0]) return this.reset();
    return this.set(Math.max(before, this.earliest), this.full[1]);
  }

  pan(part) {
    const by = (this.max - this.min) * part;
    this.set(this.min + by, this.max + by);
  }

  reset() {
    this.zoomed = false;
    [this.min, this.max] = this.full;
    this.#tell();
  }
}

/** Buttons for a range: mice can also drag, but fingers and keys need these. */
export function zoomButtons(range, what) {
  const all = el("button", { type: "button", class: "small", title: "Show all (0)", onclick: () => range.reset() }, "All");
  const follow = () => { all.disabled = !range.zoomed; };
  range.on(follow);
  follow();
  return el("div", { class: "group", role: "group", "aria-label": `Zoom ${what}` },
    el("button", { type: "button", class: "small", "aria-label": "Zoom in", title: "Zoom in (+)", onclick: () => range.zoom(0.5) }, "+"),
    el("button", { type: "button", class: "small", "aria-label": "Zoom out", title: "Zoom out (−)", onclick: () => range.zoom(2) }, "−"),
    all);
}

/** Keys on a focused chart: + and − zoom, 0 shows all, Shift and arrows move. */
export function zoomKeys(element, range) {
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      "+": () => range.zoom(0.5), "=": () => range.zoom(0.5), "-": () => range.zoom(2), 0: () => range.reset(),
      ArrowLeft: event.shiftKey && (() => range.pan(-0.2)), ArrowRight: event.shiftKey && (() => range.pan(0.2)),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
