// The events that moved the score of a pair most, as bars; and what if some of them had not happened.

import { api } from "./api.js";
import { divergingBar } from "./bars.js";
import { el, name, problem, replace, shown, svg } from "./dom.js";
import { chance, chanceOf, change, count, plural, time, units } from "./format.js";

const SYMBOL = { src: "M0 -4.5L4.8 4L-4.8 4Z", dst: "M0 4.5L4.8 -4L-4.8 -4Z", both: "M0 -5.5L5.5 0L0 5.5L-5.5 0Z" };
const symbol = (side) => svg("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" },
  svg("path", { class: `mark full ${side === "both" ? "met" : side}`, d: SYMBOL[side] ?? SYMBOL.both }));

/** `state` has { src, dst, explanation, pair, picked }; `toggle(events)` is called with the numbers of events to take away or put back. */
export function pairEffects(state, toggle) {
  let by = "events";
  const list = el("ul", { class: "effects", id: "pair-effects" });
  const tab = (key, text) => el("button", { type: "button", class: "small", "aria-pressed": String(by === key), onclick: (event) => {
    by = key;
    for (const b of event.currentTarget.parentElement.children) b.setAttribute("aria-pressed", String(b === event.currentTarget));
    draw();
  } }, text);
  const tools = el("div", { class: "group", role: "group", "aria-label": "Bars for" }, tab("events", "Events"), tab("groups", "Neighbours"));

  /** Who met whom: the side that the event belongs to, and the other node. */
  const what = (side, node) => {
    const who = shown(side === "dst" ? state.dst : state.src).slice(0, 40);
    return side === "both" ? ["they met"] : [el("span", { class: "unseen" }, `${who} met `), name(node)];
  };

  function row({ side, node, small, value, most, events, data }) {
    const on = events.length > 0 && events.every((event) => state.picked.has(event));
    return el("li", {}, el("button", {
      type: "button", class: "effect", "aria-pressed": String(on), disabled: events.length === 0, data: { ...data, events: events.join(" ") },
      title: events.length ? "Take as not happened, or put back" : "Older than the histories shown",
      onclick: () => toggle(events),
    }, symbol(side), el("span", { class: "what" }, el("span", { class: "name" }, what(side, node)), el("small", {}, small)),
    divergingBar(value, most), el("span", { class: "change" }, change(value))));
  }

  function draw() {
    const { effects = [], groups = [] } = state.explanation ?? {};
    const rows = by === "events" ? effects : groups;
    const most = Math.max(...rows.map((r) => Math.abs(r.change)), 0);
    replace(list, rows.length ? rows.map((r) => (by === "events"
      ? row({ side: r.side, node: r.node, small: time(r.time, r.date), value: r.change, most, events: [r.event], data: { event: r.event, change: r.change } })
      : row({ side: r.side, node: r.node, small: `${plural(r.events, "event")}, newest ${time(r.last_time, r.last_date)}`, value: r.change, most, events: of(r), data: { group: r.node, change: r.change } })))
      : el("li", { class: "quiet" }, state.unexplained ?? "No past event moved the score."));
  }

  /** The events of a group that the histories show. */
  function of({ side, node }) {
    const sides = side === "both" ? ["src"] : [side];
    const other = side === "both" ? String(state.dst) : String(node);
    return [...new Set(sides.flatMap((s) => state.pair[`${s}_history`].filter((event) => String(event.node) === other).map((event) => event.event)))];
  }

  return {
    list,
    tools,
    draw,
    refreshPicked() {
      for (const button of list.querySelectorAll("button")) {
        const events = button.dataset.events.split(" ").map(Number);
        button.setAttribute("aria-pressed", String(events.every((event) => state.picked.has(event))));
      }
    },
  };
}

/** The answer to "what if these had not happened". */
export function whatIf(state, toggle) {
  const box = el("div", { id: "what-if", "aria-live": "polite" });
  let asking = null;

  async function refresh() {
    asking?.abort();
    const mine = new AbortController();
    asking = mine;
    delete box.dataset.probability;
    if (state.unexplained !== undefined) {
      replace(box, el("p", { class: "quiet" }, "This model cannot say what a score would be without an event."));
      return;
    }
    if (!state.picked.size) {
      replace(box, el("p", { class: "quiet" }, "Click an event, a bar here or a mark on the time axis, to see the ", units.probability, " without it. Several may be taken away."));
      return;
    }
    try {
      const answer = await api.score([{ src: state.src, dst: state.dst, time: state.at }], { without: [...state.picked] }, mine.signal);
      const now = chanceOf(answer.scores[0]);
      const was = chanceOf(state.score);
      box.dataset.probability = now;
      replace(box,
        el("div", { class: "what-if" }, el("span", { class: "was" }, chance(was)), el("span", { class: "arrow", "aria-label": "becomes" }, "→"), el("b", {}, chance(now)),
          el("span", { class: now < was ? "moved down" : "moved up" }, change(now - was)),
          el("span", { class: "quiet" }, `without ${plural(state.picked.size, "event")}`)),
        el("div", { class: "chips" }, [...state.picked].slice(0, 12).map((seq) => el("button", {
          type: "button", class: "small", "aria-label": `put event ${seq} back`, onclick: () => toggle([seq]),
        }, `${count(seq)} ×`)), state.picked.size > 12 && el("span", { class: "quiet" }, `and ${count(state.picked.size - 12)} more`),
        el("button", { type: "button", class: "small", onclick: () => toggle([...state.picked]) }, "Put all back")));
    } catch (error) {
      if (!mine.signal.aborted) replace(box, problem(error));
    }
  }

  return { box, refresh, dispose: () => asking?.abort() };
}
