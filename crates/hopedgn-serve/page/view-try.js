// Try an event: adds one, and shows what it changed.

import { api, hasWriteToken, setWriteToken } from "./api.js";
import { announce, el, hash, name, panel, problem, replace, shown } from "./dom.js";
import { chance, chanceOf, change, count, justAfter, parseTime, time, units } from "./format.js";
import { subscribe } from "./live.js";
import { nodeField } from "./search.js";

const TOP = 10;

export function mount(place, [from, to]) {
  const ends = new AbortController();
  const src = nodeField({ id: "event-src", label: "From (source)", value: from });
  const dst = nodeField({ id: "event-dst", label: "To (destination)", value: to });
  const when = el("input", { id: "event-time", type: "text", autocomplete: "off" });
  const token = el("input", { id: "event-token", type: "password", autocomplete: "off", spellcheck: "false" });
  const tokenField = el("div", { class: "field", hidden: true }, el("label", { for: "event-token" }, "Writing token"), token);
  const send = el("button", { id: "event-send", class: "primary", type: "submit" }, "Send event");
  const result = el("div", { id: "event-result" });
  const stop = subscribe((message) => { when.placeholder = message.watermark === null ? "a time" : `${time(message.watermark, message.watermark_date)}, the watermark`; });
  api.status(ends.signal).then((status) => { tokenField.hidden = status.may_write && !hasWriteToken(); }).catch(() => {});

  replace(place,
    el("div", { class: "view-head" }, el("h1", {}, "Try an event")),
    el("p", { class: "quiet" }, "Adds an event to the stream, as any client would: it is written to the log and stays there. Names that are not known yet become new nodes."),
    el("form", { id: "event-form", class: "panel picking", novalidate: true, autocomplete: "off", onsubmit: submit },
      src.element, dst.element, el("div", { class: "field" }, el("label", { for: "event-time" }, units.dates ? "Time or date, UTC" : "Time"), when), tokenField, send),
    result);

  async function submit(event) {
    event.preventDefault();
    const t = parseTime(when.value);
    if (Number.isNaN(t)) {
      replace(result, problem(new Error(`${when.value} is not a time`)));
      when.focus();
      return;
    }
    if (token.value) {
      setWriteToken(token.value);
      token.value = "";
    }
    send.disabled = true;
    replace(result, el("p", { class: "quiet" }, "Sending …"));
    try {
      await add(src.value(), dst.value(), t);
    } catch (error) {
      if (ends.signal.aborted) return;
      if (error.status === 401 || error.status === 403) tokenField.hidden = false;
      replace(result, problem(error), (error.status === 401 || error.status === 403) && el("p", {}, "Enter a token that may write."));
      if (!tokenField.hidden && error.status === 401) token.focus();
    } finally {
      send.disabled = false;
    }
  }

  async function add(a, b, t) {
    const newest = async () => (await api.status(ends.signal)).watermark ?? t ?? 0;
    const top = (at) => api.recommend(a, { k: TOP, time: at }, ends.signal);
    const score = async (at, without) => chanceOf((await api.score([{ src: a, dst: b, time: at }], { without }, ends.signal)).scores[0]);
    const first = justAfter(Math.max(t ?? -Infinity, await newest()));
    const [before, scored] = await Promise.all([top(first), score(first)]);
    let moment;
    let answer;
    for (let tries = 1; answer === undefined; tries += 1) {
      moment = t ?? await newest();
      try {
        answer = await api.add({ src: a, dst: b, time: moment });
      } catch (error) {
        // With no time given, a busy stream may have moved on meanwhile: its new watermark is meant.
        if (t !== undefined || error.code !== "late-event" || tries === 5) throw error;
      }
    }
    const at = Math.max(justAfter(moment), before.time);
    let after = await top(at);
    for (let tries = 0; after.seq < answer.last_seq && tries < 20; tries += 1) {
      await new Promise((done) => setTimeout(done, 100));
      after = await top(at);
    }
    const event = await find(a, b, moment, at);
    // The same moment with and without it: what differs is this event alone, whatever else came in. Models that cannot tell
    // are compared with what they said before.
    const without = event === undefined ? scored : await score(at, [event]).catch((error) => {
      if (error.code !== "not-explained") throw error;
      return scored;
    });
    draw({ a, b, moment, event, answer, before: { p: without, items: before.items }, after: { p: await score(at), items: after.items } });
  }

  /** The id of the event; undefined while it is held back until none can come before it. */
  async function find(a, b, moment, at) {
    const { src_history: history } = await api.pair(a, b, { time: at, limit: 50 }, ends.signal);
    return history.filter((row) => row.time === moment && String(row.node) === String(b) && row.as_source).map((row) => row.event).sort((x, y) => y - x)[0];
  }

  function draw({ a, b, moment, event, answer, before, after }) {
    const ranks = new Map(before.items.map((item) => [String(item.dst), item]));
    const left = before.items.filter((item) => !after.items.some((now) => String(now.dst) === String(item.dst)));
    announce(`Accepted. ${units.probability} of the pair: ${chance(before.p)} becomes ${chance(after.p)}`);
    replace(result,
      el("div", { class: "columns" },
        panel("The event", {}, el("p", {}, answer.duplicates ? "It was in the log already." : `Accepted${event === undefined ? "" : ` as event ${count(event)}`} at ${time(moment)}.`,
          event === undefined ? " It is held back until none can come before it; answers do not see it yet." : ""),
        el("p", { class: "tools start" }, el("a", { class: "button", href: hash.pair(a, b) }, "Open the pair"), el("a", { class: "button", href: hash.node(a) }, "Open the source"), el("a", { class: "button", href: "#/live" }, "See it live"))),
        panel(`${units.probability === "score" ? "Score" : "Probability"} of the pair`, { note: "Just after the event, without it and with it." },
          el("div", { class: "what-if" }, el("b", { id: "event-before", class: "before", data: { probability: before.p } }, chance(before.p)), el("span", { class: "arrow", "aria-label": "becomes" }, "→"),
            el("b", { id: "event-after", data: { probability: after.p } }, chance(after.p)), el("span", { class: after.p < before.p ? "moved down" : "moved up" }, change(after.p - before.p))))),
      panel(`Top partners of ${shown(a).slice(0, 60)}`, { id: "event-partners" }, el("table", { class: "fixed before-after" },
        el("thead", {}, el("tr", {}, ["Partner", "Rank before", "Rank after", "Before", "After", "Change"].map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, after.items.map((item) => {
          const old = ranks.get(String(item.dst));
          const by = old ? old.rank - item.rank : null;
          return el("tr", { class: String(item.dst) === String(b) ? "best" : undefined, data: { id: item.dst } }, el("td", {}, name(item.dst, hash.pair(a, item.dst))),
            el("td", {}, old ? count(old.rank) : `> ${TOP}`),
            el("td", {}, count(item.rank), by === 0 ? "" : el("span", { class: by === null || by > 0 ? "moved up" : "moved down" }, by === null ? " new" : by > 0 ? ` ▴${by}` : ` ▾${-by}`)),
            el("td", {}, old ? chance(chanceOf(old)) : "–"), el("td", {}, chance(chanceOf(item))), el("td", {}, old ? change(chanceOf(item) - chanceOf(old)) : "–"));
        }), left.map((item) => el("tr", { class: "quiet" }, el("td", {}, name(item.dst, hash.pair(a, item.dst))), el("td", {}, count(item.rank)), el("td", {}, `> ${TOP}`), el("td", {}, chance(chanceOf(item))), el("td", {}, "–"), el("td", {}, "–")))))));
  }

  return () => { stop(); ends.abort(); };
}
