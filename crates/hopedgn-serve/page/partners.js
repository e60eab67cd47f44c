// Top k predicted partners of a node as a list that follows the stream: rows glide to their new ranks.

import { api } from "./api.js";
import { partBar } from "./bars.js";
import { el, hash, name, problem, replace, setText, still } from "./dom.js";
import { chance, chanceOf, count, plural, time, units } from "./format.js";
import { subscribe } from "./live.js";

const PAUSE = 1500; // ms between refreshes at the least: events may come by the thousand

/** `settings()` gives { k, unseen }. */
export function partners(id, settings) {
  const list = el("ol", { class: "partners", id: "node-partners", "aria-label": "Predicted partners" });
  const note = el("p", { class: "quiet note-line" });
  const ends = new AbortController();
  let seq = -1; // number of events that the list looks back on
  let wanted = 0;
  let busy = false;
  let last = 0;
  let timer;
  let scale = 1;

  async function refresh() {
    clearTimeout(timer);
    if (busy) return;
    const rest = last + PAUSE - Date.now();
    if (rest > 0) { timer = setTimeout(refresh, rest); return; }
    busy = true;
    try {
      const answer = await api.recommend(id, { ...settings(), reasons: true }, ends.signal);
      seq = answer.seq;
      draw(answer);
    } catch (error) {
      if (!ends.signal.aborted) replace(list, problem(error));
    } finally {
      busy = false;
      last = Date.now();
    }
    if (wanted > seq && !ends.signal.aborted) refresh();
  }

  function draw({ items, compared, time: at, date }) {
    const before = new Map([...list.children].map((row) => [row.dataset.id, { row, top: row.getBoundingClientRect().top }]));
    scale = Math.max(...items.map(chanceOf), 1e-9);
    const rows = items.map((item) => {
      const key = String(item.dst);
      const row = before.get(key)?.row ?? newRow(item);
      update(row, item, scale, before.size > 0 && !before.has(key));
      return row;
    });
    // Moved only where the order differs, so that a focused link keeps its focus.
    rows.forEach((row, i) => { if (list.children[i] !== row) list.insertBefore(row, list.children[i] ?? null); });
    while (list.children.length > rows.length) list.lastElementChild.remove();
    list.dataset.seq = seq;
    setText(note, items.length
      ? `${units.probability === "score" ? "Scores" : "Probabilities"} just after the newest event, ${time(at, date)}; ${plural(compared, "node")} compared. Bars are relative to the first.`
      : "Nobody to recommend yet.");
    if (still()) return;
    for (const row of rows) {
      const old = before.get(row.dataset.id);
      const by = old ? old.top - row.getBoundingClientRect().top : 0;
      if (Math.abs(by) > 2) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 350, easing: "ease-out" });
    }
  }

  function newRow(item) {
    return el("li", { data: { id: item.dst } },
      el("span", { class: "rank" }), name(item.dst, hash.pair(id, item.dst)), el("span", { class: "reason" }),
      el("span", { class: "value" }), partBar(0));
  }

  function update(row, item, most, fresh) {
    const [rank, , reason, value, bar] = row.children;
    const old = Number(rank.dataset.rank) || 0;
    row.dataset.probability = chanceOf(item);
    if (old !== item.rank) {
      rank.dataset.rank = item.rank;
      const up = fresh || (old && item.rank < old);
      replace(rank, count(item.rank), (fresh || old > 0) && el("span", { class: up ? "moved up" : "moved down", title: fresh ? "new in the list" : `was ${old}` }, up ? "▴" : "▾"));
    } else rank.querySelector(".moved")?.remove();
    setText(value, chance(chanceOf(item)));
    bar.firstElementChild.style.width = `${(chanceOf(item) / most) * 100}%`;
    setText(reason, item.reason ?? (item.known ? "met before" : "never met"));
    reason.title = item.reason ?? "";
  }

  const stop = subscribe((message) => {
    wanted = message.events;
    if (message.events !== seq) refresh();
  });
  refresh();

  return {
    list,
    note,
    /** After a change of the settings. */
    again() { last = 0; refresh(); },
    dispose() { stop(); ends.abort(); clearTimeout(timer); },
  };
}
