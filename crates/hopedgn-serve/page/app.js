// The page: routes by the hash so that every view has an address, the header, and keys that work everywhere.

import { api } from "./api.js";
import { hash, problem, replace, setText } from "./dom.js";
import { count, plural, units } from "./format.js";
import { connect, live, onState, setPaused, subscribe } from "./live.js";
import { complete } from "./search.js";
import { startTheme, toggleTheme } from "./theme.js";
import * as liveView from "./view-live.js";

/** Views come when they are first opened, except the first one; each has `mount(place, parameters)`, which returns how to end it. */
const VIEWS = {
  live: async () => liveView,
  node: () => import("./view-node.js"),
  pair: () => import("./view-pair.js"),
  graph: () => import("./view-graph.js"),
  runs: () => import("./view-runs.js"),
  try: () => import("./view-try.js"),
};

const place = document.getElementById("view");
let dispose = null;
let opened = 0;

function route() {
  const [, view = "live", ...rest] = location.hash.split("/");
  const parameters = rest.map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // a stray % that somebody typed
    }
  });
  return { view: view in VIEWS && Object.hasOwn(VIEWS, view) ? view : "live", parameters };
}

async function open() {
  if (location.hash === "#view") return; // the skip link
  const mine = (opened += 1);
  const { view, parameters } = route();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const module = await VIEWS[view]();
    if (mine !== opened) return;
    dispose?.();
    dispose = null;
    place.replaceChildren();
    const first = document.body.dataset.view === undefined;
    document.body.dataset.view = view;
    document.title = `${view === "try" ? "Try an event" : view[0].toUpperCase() + view.slice(1)} · hopedgn`;
    scrollTo(0, 0);
    dispose = module.mount(place, parameters);
    // Screen readers go on at the new view; at first they start at the top.
    if (!first && !document.activeElement?.closest("nav")) place.focus({ preventScroll: true });
  } catch (error) {
    if (mine === opened) replace(place, problem(error));
  }
}

function header() {
  const field = document.getElementById("search");
  const go = (id) => {
    field.value = "";
    field.blur();
    location.hash = hash.node(id);
  };
  complete(field, document.getElementById("search-results"), { pick: go, submit: (text) => { if (text) go(text); } });

  const button = document.getElementById("pause");
  button.addEventListener("click", () => setPaused(!live.paused));
  const connection = document.getElementById("connection");
  onState(() => {
    const state = live.paused ? "paused" : live.connected ? "live" : "waiting";
    connection.dataset.state = state;
    setText(connection.lastElementChild, { live: "Live", paused: "Paused", waiting: live.latest ? "Reconnecting" : "Connecting" }[state]);
    const missed = live.paused && live.latest ? live.latest.events - live.shown.events : 0;
    button.setAttribute("aria-pressed", String(live.paused));
    setText(button, live.paused ? (missed > 0 ? `Resume · ${count(missed)} new` : "Resume") : "Pause");
  });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search").focus();
  } else if (event.key === "p") setPaused(!live.paused);
  else if (event.key === "t") toggleTheme();
});

async function start() {
  startTheme();
  header();
  addEventListener("hashchange", open);
  connect();
  try {
    const status = await api.status();
    units.dates = status.has_dates;
    units.probability = status.probabilities ? "probability" : "score";
    setText(document.getElementById("about"), `hopedgn ${status.version} · model ${status.model} (${status.architecture}) · ${plural(status.nodes, "node")}`);
  } catch (error) {
    replace(place, problem(error)); // views say what they lack themselves
  }
  await open();
  // After the views' own listeners: what they show of the first message has been drawn.
  const stop = subscribe(() => {
    if (document.body.dataset.ready !== "true") performance.mark("ready"); // for measurements
    document.body.dataset.ready = "true";
    setTimeout(() => stop());
  });
}

start();
