// Both histories of a pair on one time axis, their common past neighbours, and the MITE intervals of the one that is chosen.

import { el, hash, name, replace, shown } from "./dom.js";
import { count, interval, plural, time } from "./format.js";
import { markKey, timeline } from "./timeline.js";

const LANES = 8; // common neighbours with a lane of their own
const SHOWN = 6; // intervals of a side in the table

/** `state` has { src, dst, at, now, pair, picked }; `pick(seq)` is called when a mark is clicked. */
export function pairHistory(state, range, pick) {
  const line = timeline({ label: "Events of both nodes over time. Arrow keys move between events, Enter takes one as not happened.", range, pick: (m) => pick(m.key), picked: state.picked });
  const table = el("tbody", { id: "pair-common" });
  const host = el("div", { id: "pair-timeline" }, line.host);
  let chosen = null;

  const common = () => state.pair.common.filter((c) => ![String(state.src), String(state.dst)].includes(String(c.node)));

  function choose(id) {
    chosen = chosen === String(id) ? null : String(id);
    draw();
  }

  function draw() {
    const { src, dst, at, pair } = state;
    const all = common();
    const shared = new Set(all.map((c) => String(c.node)));
    const other = { src: String(dst), dst: String(src) };
    const own = String(src) === String(dst);
    const label = { src: shown(src), dst: shown(dst) };
    const words = (side, event) => `${time(event.time, event.date)}: ${label[side].slice(0, 60)} ${event.as_source ? "→" : "←"} ${shown(event.node).slice(0, 60)}, ${interval(at - event.time)} before`;
    const mark = (side) => (event) => {
      const key = String(event.node);
      return {
        key: event.event, time: event.time, shape: "dot", size: shared.has(key) ? 4.75 : 3.5, words: words(side, event),
        class: `${shared.has(key) ? `full ${side}` : ""} ${chosen === key ? "lit" : ""}`,
      };
    };
    const apart = (side) => pair[`${side}_history`].filter((event) => String(event.node) !== other[side]);
    const together = pair.src_history.filter((event) => String(event.node) === other.src);
    const lanes = [{ key: "src", label: label.src, class: "src", marks: apart("src").map(mark("src")) }];
    lanes.push({
      key: "met", label: own ? "with itself" : "met", class: "met", title: `Times they met: ${count(pair.met.length)}`,
      marks: [
        ...together.map((event) => ({ key: event.event, time: event.time, shape: "diamond", class: "full met", words: words("src", event) })),
        // Older meetings than the histories reach: shown, but without a number to take them away by.
        ...pair.met.filter((t) => !together.some((event) => event.time === t)).map((t) => ({ time: t, shape: "diamond", class: "met", words: `${time(t)}: they met` })),
      ],
    });
    if (!own) lanes.push({ key: "dst", label: label.dst, class: "dst", marks: apart("dst").map(mark("dst")) });

    const order = [...all].sort((a, b) => (String(b.node) === chosen) - (String(a.node) === chosen));
    for (const c of order.slice(0, LANES)) {
      const key = String(c.node);
      const seq = (side, t) => pair[`${side}_history`].find((event) => event.time === t && String(event.node) === key)?.event;
      const marks = ["src", "dst"].flatMap((side) => c[`${side}_times`].map((t) => ({
        key: seq(side, t), time: t, shape: side === "src" ? "up" : "down", class: `full ${side}`, size: 4.5,
        words: `${time(t)}: ${label[side].slice(0, 60)} met ${shown(c.node).slice(0, 60)}, ${interval(at - t)} before`,
      })));
      lanes.push({ key: `common ${key}`, label: shown(c.node), title: `${shown(c.node)}: show its MITE intervals`, class: chosen === key ? "chosen" : "", marks, choose: () => choose(c.node) });
    }
    const picked = all.find((c) => String(c.node) === chosen);
    const intervals = picked ? ["src", "dst"].flatMap((side) => picked[`${side}_times`].slice(0, SHOWN).map((t, i) => ({
      lane: `common ${chosen}`, from: t, class: side, shift: (side === "src" ? -1 : 1) * (3.5 + 1.6 * i),
      words: `MITE interval: ${interval(at - t)}`,
    }))) : [];
    line.set({ lanes, at, now: state.now, intervals });
    drawTable(all);
  }

  function drawTable(all) {
    const focused = table.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.id : undefined;
    const list = (times) => {
      const text = times.slice(0, SHOWN).map((t) => interval(state.at - t)).join(", ");
      return times.length > SHOWN ? `${text} and ${count(times.length - SHOWN)} more` : text;
    };
    replace(table, all.length ? all.map((c) => el("tr", { data: { id: c.node }, class: chosen === String(c.node) ? "best" : undefined },
      el("td", {}, el("button", { type: "button", class: "link", "aria-pressed": String(chosen === String(c.node)), onclick: () => choose(c.node) }, name(c.node))),
      el("td", { class: "intervals src-ink" }, list(c.src_times)), el("td", { class: "intervals dst-ink" }, list(c.dst_times)),
      el("td", {}, el("a", { href: hash.node(c.node), "aria-label": `open node ${shown(c.node).slice(0, 60)}` }, "open"))))
      : el("tr", {}, el("td", { colspan: "4", class: "quiet" }, "No node has met both before this time.")));
    if (focused !== undefined) [...table.children].find((row) => row.dataset.id === focused)?.querySelector("button").focus();
  }

  return {
    host,
    legend: el("div", { class: "legend" }, markKey("full src", "with a common neighbour (source)"), markKey("full dst", "with a common neighbour (destination)"),
      markKey("", "with anyone else"), markKey("full met", "they met", "diamond"), markKey("picked", "taken as not happened")),
    table: () => el("div", { class: "common", tabindex: "0", role: "region", "aria-label": "Common past neighbours" }, el("table", { class: "fixed mite" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Neighbour"), el("th", { scope: "col" }, "Since it met the source"),
        el("th", { scope: "col" }, "Since it met the destination"), el("th", { scope: "col", class: "narrow" }, ""))), table)),
    note: () => {
      const n = common().length;
      return n ? `${plural(n, "node")} met both. MITE intervals run from each meeting to the time that is scored; choose a neighbour to see its intervals on the time axis.` : "";
    },
    draw,
    refreshPicked: () => line.refreshPicked(),
    dispose: () => line.dispose(),
  };
}
