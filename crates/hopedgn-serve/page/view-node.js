// A node: its past as a timeline, and whom it is predicted to meet next.

import { api } from "./api.js";
import { el, hash, name, panel, problem, replace, setText, shown, tile } from "./dom.js";
import { count, interval, plural, shortTime, time, units } from "./format.js";
import { subscribe } from "./live.js";
import { partners } from "./partners.js";
import { pickNodes } from "./picker.js";
import { Range, zoomButtons } from "./range.js";
import { nodeField } from "./search.js";
import { markKey, timeline } from "./timeline.js";

const PAGE = 200;
const LANES = 12;

export function mount(place, [id]) {
  if (id === undefined) return pickNodes(place, "node");
  const ends = new AbortController();
  const cleanup = [() => ends.abort()];
  const wait = el("p", { class: "quiet" }, "Loading …");
  replace(place, heading(id), wait);
  api.node(id, { limit: PAGE }, ends.signal).then((node) => {
    wait.remove();
    cleanup.push(...show(place, node, ends.signal));
  }).catch((error) => {
    if (!ends.signal.aborted) wait.replaceWith(problem(error), el("p", {}, "Names are matched exactly. ", el("a", { href: "#/node" }, "Find another node")));
  });
  return () => cleanup.forEach((end) => end());
}

function heading(id) {
  document.title = `${shown(id).slice(0, 60)} · hopedgn`;
  const compare = nodeField({ id: "node-compare", label: "Pair with", required: false, submit: () => open(), change: () => {} });
  const open = () => { if (compare.field.value) location.hash = hash.pair(id, compare.value()); };
  compare.element.classList.add("inline");
  return el("div", { class: "view-head" },
    el("h1", { id: "node-title" }, el("span", { class: "kind" }, "Node"), name(id)),
    el("form", { class: "tools", novalidate: true, onsubmit: (event) => { event.preventDefault(); open(); } },
      el("a", { class: "button", href: hash.graph(id) }, "Graph around it"), compare.element, el("button", { type: "submit" }, "Open")));
}

function show(place, node, signal) {
  const history = node.history;
  const figures = {
    events: tile("Events", count(node.events)),
    partners: tile("Partners", "–"),
    first: tile("First event", time(node.first_time, history.length === node.events ? history.at(-1)?.date : undefined)),
    last: tile("Newest event", time(node.last_time, history[0]?.date)),
  };
  for (const figure of [figures.first, figures.last]) figure.classList.add(units.dates ? "date" : "long");

  const range = new Range(0, 1);
  const line = timeline({ label: "Events by partner over time", range, role: "link", pick: (m) => { location.hash = hash.pair(node.id, m.node); } });
  const older = el("button", { type: "button", class: "small", onclick: loadOlder }, "Load older");
  const rows = el("tbody", { id: "node-history" });
  const note = el("p", { class: "quiet note-line" });
  const settings = { k: 10, unseen: false };
  const top = partners(node.id, () => settings);

  place.append(
    el("div", { class: "tiles" }, Object.values(figures)),
    el("div", { class: "columns wide-left" },
      el("div", { class: "stack" },
        panel("Its past", { id: "node-timeline", tools: [older, zoomButtons(range, "the timeline")] }, note, line.host,
          el("div", { class: "legend" }, markKey("full src", "it is the source"), markKey("", "it is the destination"))),
        el("details", { class: "panel later" }, el("summary", {}, "Events as a table"),
          el("table", { class: "fixed newest" }, el("thead", {}, el("tr", {}, [["Event", "seq"], ["Partner"], ["Role"], ["Time", "when"]].map(([t, c]) => el("th", { scope: "col", class: c }, t)))), rows))),
      panel("Predicted partners", { tools: [
        el("label", {}, "Top ", el("select", { "aria-label": "Number of partners", onchange: (event) => { settings.k = Number(event.target.value); top.again(); } },
          [5, 10, 20, 50].map((k) => el("option", { value: k, selected: k === settings.k }, String(k))))),
        el("label", {}, el("input", { type: "checkbox", onchange: (event) => { settings.unseen = event.target.checked; top.again(); } }), "only new ones"),
      ] }, top.note, top.list)));

  function draw() {
    const by = new Map();
    for (const event of history) {
      const key = String(event.node);
      if (!by.has(key)) by.set(key, { id: event.node, events: [] });
      by.get(key).events.push(event);
    }
    const order = [...by.values()].sort((a, b) => b.events.length - a.events.length);
    const mark = (event) => ({
      key: event.event, node: event.node, time: event.time, class: event.as_source ? "full src" : "", shape: "dot",
      words: `${time(event.time, event.date)}: ${event.as_source ? "to" : "from"} ${shown(event.node).slice(0, 80)}`,
    });
    const lanes = order.slice(0, LANES).map(({ id, events }) => ({
      key: `node ${id}`, label: shown(id), title: `${shown(id)}: ${plural(events.length, "event")}`, marks: events.map(mark),
      choose: () => { location.hash = hash.pair(node.id, id); },
    }));
    const rest = order.slice(LANES);
    if (rest.length) lanes.push({ key: "rest", label: `${count(rest.length)} more`, class: "quiet", marks: rest.flatMap((p) => p.events).map(mark) });
    const from = history.at(-1)?.time ?? 0;
    const to = history[0]?.time ?? 1;
    const pad = (to - from || Math.abs(to) * 1e-3 || 1) * 0.02;
    line.set({ lanes });
    range.setFull(from - pad, to + pad);
    older.hidden = history.length >= node.events;
    setText(note, history.length < node.events
      ? `The newest ${count(history.length)} of ${plural(node.events, "event")}, with ${plural(order.length, "partner")}, over ${interval(to - from)}. A mark opens the pair.`
      : `All ${plural(node.events, "event")}, over ${interval(to - from)}. A mark opens the pair.`);
    setText(figures.events.figure, count(node.events));
    setText(figures.partners.figure, count(order.length));
    setText(figures.partners.below, history.length < node.events ? `in the newest ${count(history.length)} events` : "");
    setText(figures.last.figure, time(node.last_time, history[0]?.date));
    replace(rows, history.slice(0, 300).map((event) => el("tr", { data: { event: event.event } },
      el("td", { class: "seq" }, count(event.event)), el("td", {}, name(event.node, hash.pair(node.id, event.node))),
      el("td", {}, event.as_source ? "source" : "destination"), el("td", { class: "when", title: time(event.time, event.date) }, shortTime(event.time, event.date)))));
  }

  async function loadOlder() {
    older.disabled = true;
    try {
      const oldest = history.at(-1);
      const { history: more } = await api.node(node.id, { limit: PAGE, before: oldest.time }, signal);
      const known = new Set(history.map((event) => event.event));
      history.push(...more.filter((event) => !known.has(event.event)));
      if (!more.length) node.events = history.length;
      draw();
    } catch (error) {
      if (!signal.aborted) setText(note, error.message);
    } finally {
      older.disabled = false;
    }
  }

  // New events of this node come with the stream itself: no question needed.
  const stop = subscribe((message) => {
    const fresh = message.newest.filter((event) => event.event >= node.seq && (String(event.src) === String(node.id) || String(event.dst) === String(node.id)));
    const missed = message.newest.length && message.newest.at(-1).event > node.seq;
    if (missed) {
      // More came than a message holds.
      node.seq = message.events;
      api.node(node.id, { limit: PAGE }, signal).then((now) => {
        const known = new Set(history.map((event) => event.event));
        history.unshift(...now.history.filter((event) => !known.has(event.event)));
        Object.assign(node, { events: now.events, last_time: now.last_time, seq: now.seq });
        draw();
      }).catch(() => {});
      return;
    }
    node.seq = Math.max(node.seq, message.events);
    if (!fresh.length) return;
    node.events += fresh.length;
    node.last_time = fresh[0].time;
    history.unshift(...fresh.map((event) => {
      const source = String(event.src) === String(node.id);
      return { event: event.event, node: source ? event.dst : event.src, as_source: source, time: event.time, date: event.date, label: 0 };
    }));
    draw();
  });
  draw();
  return [stop, () => line.dispose(), () => top.dispose()];
}
