// The graph around a node or a pair, played through time, with predicted links.

import { api } from "./api.js";
import { announce, el, hash, name, problem, replace, setText, shown, still, svg } from "./dom.js";
import { chance, count, plural, time } from "./format.js";
import { subscribe } from "./live.js";
import { pace } from "./pace.js";
import { pickNodes } from "./picker.js";

const STEPS = 1000; // of the slider
const WHOLE = 20; // seconds that the stream takes at normal speed
const SIZES = [100, 300, 1000, 2000];
const TOP = 5; // predicted links of a node

let size = 300; // kept while the page is open

export function mount(place, [id, other]) {
  if (id === undefined) return pickNodes(place, "graph");
  if (other === "") other = undefined;
  const ends = new AbortController();
  const cleanup = [() => ends.abort()];
  let scene = null; // what the current network has to clean up
  const body = el("div", {}, el("p", { class: "quiet" }, "Loading …"));
  const pickSize = el("select", { id: "graph-size", "aria-label": "Nodes at most", onchange: () => { size = Number(pickSize.value); load(); } },
    SIZES.map((n) => el("option", { value: n, selected: n === size }, `≤ ${count(n)} nodes`)));
  document.title = `Graph of ${shown(id).slice(0, 40)} · hopedgn`;
  replace(place,
    el("div", { class: "view-head" },
      el("h1", { id: "graph-title" }, el("span", { class: "kind" }, "Graph around"), el("span", { class: "pair-names" }, name(id, hash.node(id)),
        other !== undefined && [el("span", { class: "arrow" }, "and"), name(other, hash.node(other))])),
      el("div", { class: "tools" }, other === undefined ? el("a", { class: "button", href: hash.node(id) }, "Node") : el("a", { class: "button", href: hash.pair(id, other) }, "Pair"), pickSize)),
    body);

  async function load() {
    try {
      // sigma is as large as all the rest of the page: it comes with the first graph.
      const [{ graphScene, LEVELS }, data] = await Promise.all([import("./graph-scene.js"), api.graph(id, { other, limit: size, top: TOP }, ends.signal)]);
      scene?.();
      scene = show(body, data, graphScene, { id, other, levels: LEVELS, signal: ends.signal, reload: load });
    } catch (error) {
      if (!ends.signal.aborted) replace(body, problem(error));
    }
  }
  load();
  cleanup.push(() => scene?.());
  return () => cleanup.forEach((end) => end());
}

function show(body, data, graphScene, { id, other, levels, signal, reload }) {
  const index = new Map(data.nodes.map((node, i) => [String(node.id), i]));
  const canvas = el("div", { id: "graph", tabindex: "0", role: "application", "aria-label": "Graph. Arrow keys move, plus and minus zoom, 0 shows all, n and b go from node to node. The nodes are also listed below.", "aria-describedby": "graph-summary" });
  const card = el("div", { class: "graph-card", hidden: true, "aria-live": "polite" });
  const slider = el("input", { id: "graph-slider", type: "range", min: 0, max: STEPS, step: 1, value: STEPS, "aria-label": "Time" });
  const moment = el("output", { class: "moment", for: "graph-slider" });
  const play = el("button", { id: "graph-play", type: "button", class: "primary" }, "Play");
  const speed = el("select", { "aria-label": "Speed" }, [[0.5, "½×"], [1, "1×"], [2, "2×"], [4, "4×"]].map(([v, t]) => el("option", { value: v, selected: v === 1 }, t)));
  const summary = el("p", { id: "graph-summary", class: "quiet" });
  const fresh = el("button", { type: "button", class: "small", hidden: true, onclick: reload });
  const zoom = (text, label, act) => el("button", { type: "button", class: "small", "aria-label": label, title: label, onclick: act }, text);

  replace(body,
    el("div", { class: "graph-box" }, canvas, card,
      el("div", { class: "graph-zoom group", role: "group", "aria-label": "Zoom" },
        zoom("+", "Zoom in", () => keys["+"]()), zoom("−", "Zoom out", () => keys["-"]()), zoom("All", "Show all", () => keys["0"]()))),
    el("div", { class: "player" }, play, speed, el("div", { class: "track" }, activity(data), slider), moment),
    el("div", { class: "graph-foot" }, summary, fresh),
    el("div", { class: "legend" }, [["--all", "the node"], other !== undefined && ["--new", "the second node"], other !== undefined && ["--fourth", "met both"], ["--sixth", "others"]]
      .filter(Boolean).map(([c, t]) => key(c, t, "dot")), key("--fifth", "predicted link and its probability", "line dashed"), key("--all", "just active", "line")),
    el("details", { class: "panel" }, el("summary", {}, "Nodes and predicted links as lists"), lists(data, id, (i) => { scene.choose(i); canvas.focus({ preventScroll: true }); })));

  let scene;
  try {
    scene = graphScene(canvas, data, { select, open: (i) => { location.hash = hash.graph(data.nodes[i].id); } });
  } catch (error) {
    // No WebGL: the lists say the same.
    canvas.replaceWith(problem(new Error(`The graph cannot be drawn in this browser (${error.message}). Its nodes are listed below.`)));
    body.querySelector("details").open = true;
    return () => {};
  }

  let chosen = null;
  function select(i) {
    chosen = i;
    card.hidden = i === null;
    if (i === null) return;
    const node = data.nodes[i];
    replace(card, name(node.id), el("span", { class: "quiet" }, plural(node.events, "event")),
      el("span", { class: "tools" }, el("a", { href: hash.node(node.id) }, "Node"), String(node.id) !== String(id) && el("a", { href: hash.pair(id, node.id) }, "Pair"),
        String(node.id) !== String(id) && el("a", { href: hash.graph(node.id) }, "Centre"),
        scene.pinned.has(i) && el("button", { type: "button", class: "link", onclick: () => { scene.unpin(i); select(i); } }, "Unpin")));
  }

  const { camera } = scene;
  const quick = { duration: still() ? 0 : 150 };
  const pan = (x, y) => () => camera.animate({ x: camera.x + x * camera.ratio * 0.15, y: camera.y + y * camera.ratio * 0.15 }, quick);
  const next = (by) => () => scene.choose(chosen === null ? 0 : (chosen + by + data.nodes.length) % data.nodes.length);
  const keys = {
    ArrowLeft: pan(-1, 0), ArrowRight: pan(1, 0), ArrowUp: pan(0, 1), ArrowDown: pan(0, -1),
    "+": () => camera.animatedZoom(quick), "=": () => camera.animatedZoom(quick), "-": () => camera.animatedUnzoom(quick), 0: () => camera.animatedReset(quick),
    n: next(1), b: next(-1), Escape: () => scene.choose(null),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  const at = (step = Number(slider.value)) => (step >= STEPS ? Infinity : data.first_time + ((data.last_time - data.first_time) * step) / STEPS);
  let predicted = data.predicted;
  let asking = null;
  let timer;
  const total = { nodes: data.nodes.length, edges: data.edges.length };

  function draw(level = levels) {
    const t = at();
    const shownNow = scene.setTime(t, level);
    const text = t === Infinity ? `newest, ${time(data.last_time)}` : time(t);
    setText(moment, t === Infinity ? time(data.last_time) : time(t));
    slider.setAttribute("aria-valuetext", text);
    Object.assign(summary.dataset, { nodes: shownNow.nodes, edges: shownNow.edges, predicted: predicted.length });
    setText(summary, `${count(shownNow.nodes)} of ${plural(total.nodes, "node")}, ${count(shownNow.edges)} of ${plural(data.edges.length, "edge")} at ${text}`
      + `${predicted.length ? `, ${plural(predicted.length, "predicted link")}` : ""}${data.truncated ? "; there are more nodes than shown" : ""}`
      + `${level < levels ? "; while it plays, older edges further away are left out" : ""}.`);
    summary.dataset.level = level;
  }

  /** Predictions belong to a moment: those of the slider's, asked for once it rests. */
  function predict() {
    clearTimeout(timer);
    asking?.abort();
    const t = at();
    const show_ = (links) => { predicted = links; scene.setPredicted(links); draw(); };
    if (t === Infinity) { show_(data.predicted); return; }
    if (predicted.length) show_([]);
    if (playing) return;
    timer = setTimeout(async () => {
      asking = new AbortController();
      try {
        const then = await api.graph(id, { other, time: t, limit: size, top: TOP }, asking.signal);
        const here = (i) => index.get(String(then.nodes[i].id));
        show_(then.predicted.map((link) => ({ ...link, source: here(link.source), target: here(link.target) })).filter((link) => link.source !== undefined && link.target !== undefined));
      } catch {
        // Left without predictions at that time.
      }
    }, 350);
  }

  let playing = false;
  let frame;
  function stop() {
    playing = false;
    cancelAnimationFrame(frame);
    setText(play, "Play");
    predict();
    draw();
  }
  function start() {
    playing = true;
    setText(play, "Pause");
    if (Number(slider.value) >= STEPS) slider.value = 0;
    let position = Number(slider.value);
    let before = performance.now();
    let told = 0;
    const pacer = pace(levels);
    predict();
    const step = (now) => {
      if (!playing) return;
      const level = pacer.frame(now);
      position += ((now - before) / 1000 / WHOLE) * STEPS * Number(speed.value);
      before = now;
      // The picture moves with every frame; slider and words five times a second, since painting them costs more than the graph.
      // Those who asked for little motion see five pictures a second.
      if (now - told > 200) {
        told = now;
        slider.value = position;
        draw(level);
      } else if (!still()) scene.setTime(at(position), level);
      if (position >= STEPS) { slider.value = STEPS; draw(); stop(); announce("The end of the stream"); return; }
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  }
  play.addEventListener("click", () => (playing ? stop() : start()));
  slider.addEventListener("input", () => { if (playing) stop(); draw(); predict(); });

  // Events between nodes that are shown appear at once; others wait for a click, because a new layout would move everything.
  let seq = data.seq;
  let unseen = 0;
  const mine = new Set([String(id), String(other ?? id)]);
  const end = subscribe((message) => {
    let drawn = false;
    for (const event of [...message.newest].reverse()) {
      if (event.event < seq) continue;
      const [a, b] = [index.get(String(event.src)), index.get(String(event.dst))];
      if (a !== undefined && b !== undefined) { scene.addEvent(a, b, event.time); drawn = true; }
      else if (mine.has(String(event.src)) || mine.has(String(event.dst))) unseen += 1;
    }
    seq = Math.max(seq, message.events);
    fresh.hidden = unseen === 0;
    setText(fresh, `Reload · ${plural(unseen, "event")} with nodes not shown`);
    if (drawn && at() === Infinity && !playing) draw();
  });
  signal.addEventListener("abort", () => { asking?.abort(); clearTimeout(timer); });
  draw();
  canvas.dataset.ready = "true";
  return () => {
    playing = false;
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    asking?.abort();
    end();
    scene.dispose();
  };
}

/** Events over time, behind the slider. */
function activity({ edges, first_time: from, last_time: to }) {
  const bins = new Array(120).fill(0);
  for (const edge of edges) for (const t of edge.times) bins[Math.min(119, Math.floor(((t - from) / (to - from || 1)) * 120))] += 1;
  const most = Math.max(1, ...bins);
  const d = bins.map((n, i) => `M${i + 0.5} 24V${24 - Math.sqrt(n / most) * 23}`).join("");
  return svg("svg", { class: "activity", viewBox: "0 0 120 24", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d }));
}

function key(variable, text, kind) {
  const sample = el("i", { class: kind, "aria-hidden": "true" });
  if (kind === "dot") sample.style.background = `var(${variable})`;
  else sample.style.borderColor = `var(${variable})`;
  return el("span", {}, sample, text);
}

function lists(data, id, choose) {
  const order = data.nodes.map((node, i) => ({ node, i })).sort((a, b) => b.node.events - a.node.events).slice(0, 100);
  return el("div", { id: "graph-list", class: "columns" },
    el("div", {}, el("h3", {}, data.nodes.length > 100 ? "The 100 nodes with most events" : "Nodes"), el("ul", { class: "plain" }, order.map(({ node, i }) => el("li", {},
      el("button", { type: "button", class: "link", onclick: () => choose(i) }, name(node.id)), el("span", { class: "quiet" }, plural(node.events, "event")))))),
    el("div", {}, el("h3", {}, "Predicted links"), el("ul", { class: "plain" }, data.predicted.map((link) => {
      const [a, b] = [data.nodes[link.source].id, data.nodes[link.target].id];
      return el("li", {}, el("a", { class: "name", href: hash.pair(a, b) }, `${shown(a)} → ${shown(b)}`), el("span", { class: "quiet" }, chance(link.probability ?? link.score)));
    }))));
}
