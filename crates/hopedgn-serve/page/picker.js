// What views show when their address names no node: fields to choose from, and the nodes with most events.

import { api } from "./api.js";
import { el, hash, name, panel, problem, replace } from "./dom.js";
import { count, time } from "./format.js";
import { nodeField } from "./search.js";

const WORDS = {
  node: ["A node", "Its past as a timeline, and whom it is predicted to meet next.", 1],
  pair: ["A pair", "Two histories on one time axis, what moved the score, and what if it had not happened.", 2],
  graph: ["The graph around a node", "Who met whom, played through time, with predicted links. A second node is optional.", 1.5],
};

export function pickNodes(place, view) {
  const [title, text, fields] = WORDS[view];
  const ends = new AbortController();
  const go = () => {
    const a = first.value();
    const b = second?.value();
    if (a === "") first.field.focus();
    else if (fields === 1) location.hash = hash.node(a);
    else if (b === "" && fields === 2) second.field.focus();
    else if (view === "pair") location.hash = hash.pair(a, b);
    else location.hash = hash.graph(a, b === "" ? undefined : b);
  };
  const first = nodeField({ id: "pick-first", label: fields === 1 ? "Node" : fields === 2 ? "Source" : "Node", submit: go });
  const second = fields > 1 ? nodeField({ id: "pick-second", label: fields === 2 ? "Destination" : "Second node, optional", required: fields === 2, submit: go }) : null;
  const rows = el("tbody", {});
  replace(place,
    el("div", { class: "view-head" }, el("h1", {}, title)),
    el("p", { class: "quiet" }, text),
    el("form", { class: "panel picking", novalidate: true, onsubmit: (event) => { event.preventDefault(); go(); } },
      first.element, second?.element, el("button", { class: "primary", type: "submit" }, "Open")),
    panel("Nodes with most events", {}, el("table", { class: "fixed" },
      el("thead", {}, el("tr", {}, ["Node", "Events", "Newest"].map((t) => el("th", { scope: "col" }, t)))), rows)));
  api.nodes("", 12, ends.signal).then(({ nodes }) => replace(rows, nodes.length ? nodes.map((node) => el("tr", {},
    el("td", {}, view === "pair"
      ? el("button", { type: "button", class: "link", onclick: () => (first.field.value ? second : first).set(node.id) }, name(node.id))
      : name(node.id, view === "node" ? hash.node(node.id) : hash.graph(node.id))),
    el("td", {}, count(node.events)), el("td", { class: "quiet" }, time(node.last_time, node.date))))
    : el("tr", {}, el("td", { colspan: "3", class: "quiet" }, "No events yet."))))
    .catch((error) => { if (!ends.signal.aborted) replace(rows, el("tr", {}, el("td", { colspan: "3" }, problem(error)))); });
  first.field.focus({ preventScroll: true });
  return () => ends.abort();
}
