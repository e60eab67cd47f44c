// A pair: its probability over time, both histories on the same axis, what moved the score, and what if it had not happened.

import { api } from "./api.js";
import { el, hash, name, panel, problem, replace, setText, shown, tile } from "./dom.js";
import { chance, chanceOf, count, interval, parseTime, plural, time, units } from "./format.js";
import { live, subscribe } from "./live.js";
import { pairCurve } from "./pair-curve.js";
import { pairEffects, whatIf } from "./pair-effects.js";
import { pairHistory } from "./pair-history.js";
import { pickNodes } from "./picker.js";
import { Range, zoomButtons } from "./range.js";

const PAUSE = 2500; // ms between refreshes at the least

export function mount(place, [src, dst, at]) {
  if (src === undefined || dst === undefined) return pickNodes(place, "pair");
  const asked = at === undefined || at === "" || !Number.isFinite(Number(at)) ? undefined : Number(at);
  const ends = new AbortController();
  const cleanup = [() => ends.abort()];
  const wait = el("p", { class: "quiet" }, "Loading …");
  replace(place, heading(src, dst, asked), wait);
  const state = { src, dst, time: asked, picked: new Set(), met: [] };
  load(state, ends.signal).then(() => {
    wait.remove();
    cleanup.push(...show(place, state, ends.signal));
  }).catch((error) => { if (!ends.signal.aborted) wait.replaceWith(problem(error)); });
  return () => cleanup.forEach((end) => end());
}

async function load(state, signal) {
  // At one moment, so that the histories and the score look back on the same events.
  const pair = await api.pair(state.src, state.dst, { time: state.time }, signal);
  const asked = [{ src: pair.src, dst: pair.dst, time: pair.time }];
  const { scores, seq } = await api.score(asked, { explain: state.unexplained === undefined }, signal).catch((error) => {
    // Models with a memory, walks or two hops have scores, but no reasons and no "what if".
    if (error.code !== "not-explained") throw error;
    state.unexplained = error.message;
    return api.score(asked, {}, signal);
  });
  Object.assign(state, {
    src: pair.src, dst: pair.dst, pair, met: pair.met, score: scores[0], explanation: scores[0].explanation, at: pair.time, seq,
    now: Math.max(live.latest?.watermark ?? -Infinity, state.time === undefined ? pair.time : -Infinity),
  });
  if (!Number.isFinite(state.now)) state.now = pair.time;
}

function heading(src, dst, asked) {
  document.title = `${shown(src).slice(0, 30)} → ${shown(dst).slice(0, 30)} · hopedgn`;
  const field = el("input", { id: "pair-time", type: "text", inputmode: "decimal", value: asked ?? "", placeholder: "newest", title: units.dates ? "A date, or seconds since 1970" : "A time of the data" });
  const go = (event) => {
    event.preventDefault();
    const t = parseTime(field.value);
    if (Number.isNaN(t)) { field.setCustomValidity("not a time"); field.reportValidity(); field.setCustomValidity(""); return; }
    location.hash = hash.pair(src, dst, t);
  };
  return el("div", { class: "view-head" },
    el("h1", { id: "pair-title" }, el("span", { class: "kind" }, "Pair"),
      el("span", { class: "pair-names" }, name(src, hash.node(src)), el("span", { class: "arrow" }, "→"), name(dst, hash.node(dst)))),
    el("form", { class: "tools", novalidate: true, onsubmit: go },
      el("a", { class: "button", href: hash.pair(dst, src, asked), title: "The other direction" }, "Swap"),
      el("a", { class: "button", href: hash.graph(src, dst) }, "Graph"),
      el("a", { class: "button", href: hash.try(src, dst) }, "Try this event"),
      el("div", { class: "field inline" }, el("label", { for: "pair-time" }, "Scored at"), field), el("button", { type: "submit" }, "Go"),
      asked !== undefined && el("a", { class: "button", href: hash.pair(src, dst) }, "Newest")));
}

function show(place, state, signal) {
  const figure = tile(units.probability === "score" ? "Score" : "Probability", "–", "", "pair-probability");
  figure.classList.add("main");
  const lift = tile("Lift", "–", "times likelier than by chance");
  const met = tile("Met", "–");
  const common = tile("Common neighbours", "–", "past neighbours of both");
  const range = new Range(0, 1);
  const note = el("p", { class: "quiet note-line" });
  const refreshButton = el("button", { type: "button", class: "small", hidden: true, onclick: () => again() }, "Refresh");

  const toggle = (events) => {
    if (state.unexplained !== undefined) return;
    const all = events.every((event) => state.picked.has(event));
    for (const seq of events) if (all) state.picked.delete(seq); else state.picked.add(seq);
    history.refreshPicked();
    effects.refreshPicked();
    replace(names, curve.names());
    result.refresh();
    curve.refresh({ keep: true }).catch(() => {});
  };
  const curve = pairCurve(state, range, (t) => { location.hash = hash.pair(state.src, state.dst, Number(t.toPrecision(12))); });
  const history = pairHistory(state, range, (seq) => toggle([seq]));
  const effects = pairEffects(state, toggle);
  const result = whatIf(state, toggle);
  const names = el("div", {});
  const commonNote = el("p", { class: "quiet note-line" });

  place.append(
    el("div", { class: "tiles" }, figure, lift, met, common),
    el("div", { class: "columns wide-left" },
      el("div", { class: "stack" },
        panel("Over time", { class: "time-chart", tools: [refreshButton, zoomButtons(range, "the time axis")] }, note, curve.host, names, el("h3", {}, "Both histories"), history.host, history.legend),
        panel("Common past neighbours", { class: "later" }, commonNote, history.table())),
      el("div", { class: "stack" },
        panel("What if it had not happened", {}, result.box),
        panel("What moved the score", { tools: effects.tools, note: `Score with the event minus score without it. Click a row to take it away.` }, effects.list))));

  function draw() {
    const { score, pair } = state;
    const p = chanceOf(score);
    figure.figure.dataset.probability = p;
    setText(figure.figure, chance(p));
    setText(figure.below, `${state.time === undefined ? "just after the newest event" : "at"} ${state.time === undefined ? "" : time(state.at, score.date)}`.trim());
    lift.hidden = !Number.isFinite(score.lift);
    setText(lift.figure, Number.isFinite(score.lift) ? `${score.lift >= 100 ? count(score.lift) : Number(score.lift.toPrecision(3))}×` : "–");
    setText(met.figure, pair.met.length ? plural(pair.met.length, "time") : "never");
    setText(met.below, pair.met.length ? `last ${interval(state.at - pair.met[0])} before` : "");
    setText(common.figure, count(pair.common.length));
    const unknown = [["src", state.src], ["dst", state.dst]].filter(([side]) => score.known && !score.known[side]);
    const ends = [...pair.src_history.slice(-1), ...pair.dst_history.slice(-1)].map((event) => event.time);
    const oldest = Math.min(...ends, ends.length ? Infinity : state.at);
    const span = (Math.max(state.now, state.at) - oldest) || Math.max(Math.abs(state.at) * 1e-3, 1);
    // Meetings older than the histories that were asked for are reached by zooming out.
    range.setFull(oldest - span * 0.02, Math.max(state.now, state.at) + span * 0.16, Math.min(oldest, ...pair.met.slice(-1)) - span * 0.02);
    setText(note, unknown.length ? `No events yet: ${unknown.map(([, id]) => shown(id).slice(0, 60)).join(", ")}.` : "Click the curve to score the pair at that time.");
    setText(commonNote, history.note());
    history.draw();
    effects.draw();
    replace(names, curve.names());
    result.refresh();
    curve.refresh().catch((error) => { if (!signal.aborted) setText(note, error.message); });
  }

  let busy = false;
  let waiting = null;
  let last = Date.now();
  async function again() {
    if (busy) return;
    busy = true;
    refreshButton.hidden = true;
    try {
      await load(state, signal);
      draw();
    } catch (error) {
      if (!signal.aborted) { setText(note, error.message); refreshButton.hidden = false; }
    } finally {
      busy = false;
      last = Date.now();
    }
  }

  // New events of either node change the score. What someone is trying out stays as it is: then a button says so.
  const mine = new Set([String(state.src), String(state.dst)]);
  const stop = subscribe((message) => {
    if (state.time !== undefined || message.events <= state.seq) return;
    const fresh = message.newest.filter((event) => event.event >= state.seq && (mine.has(String(event.src)) || mine.has(String(event.dst))));
    if (!fresh.length) return;
    // Nothing moves under a hand either.
    const busyHand = place.querySelector(".columns:hover") || document.activeElement?.closest(".effects, .timeline");
    if (state.picked.size || range.zoomed || busyHand) {
      refreshButton.hidden = false;
      setText(refreshButton, `Refresh · ${plural(fresh.length, "new event")}`);
    } else if (!waiting) {
      waiting = setTimeout(() => { waiting = null; if (!state.picked.size) again(); }, Math.max(0, last + PAUSE - Date.now()));
    }
  });
  draw();
  return [stop, () => clearTimeout(waiting), () => curve.dispose(), () => history.dispose(), () => result.dispose()];
}
