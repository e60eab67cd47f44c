// An ego network drawn by sigma as it was at a moment. Predicted links are dashed, which sigma cannot draw: they are on a canvas above it.

import { short } from "./dom.js";
import { chance } from "./format.js";
import { colour, onTheme } from "./theme.js";
import { EdgeLineProgram, EdgeRectangleProgram, NodePointProgram, Sigma, UndirectedGraph } from "./vendor-sigma.js";

const ROLE = { center: "--all", other: "--new", common: "--fourth", neighbor: "--sixth", predicted: "--fifth" };
const RECENT = 0.02; // part of the time span in which an edge counts as just active
const FADES = [0.02, 0.1, 0.3, 1.01]; // steps of ageing
const FADE_TO = [1, 0.8, 0.6, 0.42];

/** Levels of detail: edges further away are drawn until so many steps of ageing. */
export const LEVELS = FADES.length;
const THIN = 2; // the level from which on down edges of the node itself are plain lines too, in large graphs

/** A colour mixed with that of the page: opaque, so that thousands of overlapping edges stay quiet and cheap. */
function mixed(variable, part) {
  const [a, b] = [colour(variable), colour("--page")].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return `#${a.map((v, i) => Math.round(v * part + b[i] * (1 - part)).toString(16).padStart(2, "0")).join("")}`;
}

/** How many of the sorted times are not after `t`. */
function until(times, t) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `data` is the answer of /v1/graph; `select(index)` is called with a node's index or null, `open(index)` at a double click. */
export function graphScene(container, data, { select, open }) {
  const { nodes, edges } = data;
  const graph = new UndirectedGraph();
  const many = nodes.length > 600;
  const span = () => Math.max(data.last_time - data.first_time, 1e-9);
  const first = new Float64Array(nodes.length).fill(Infinity); // when each node is first seen
  const codes = []; // what each edge was last drawn as
  let seen = new Uint8Array(nodes.length);
  let moment = Infinity;
  let predicted = data.predicted;
  let selected = null;
  let detail = LEVELS;
  const pinned = new Set();
  const size = (node) => {
    const base = { center: 12, other: 12, common: many ? 4 : 5.5, predicted: many ? 5 : 7 }[node.role] ?? (many ? 2.4 : 4);
    return base + (node.role === "center" || node.role === "other" ? 0 : Math.min(5, Math.log2(1 + node.events) * (many ? 0.35 : 0.5)));
  };
  const key = (source, target) => (source < target ? `${source} ${target}` : `${target} ${source}`);
  const byEnds = new Map();

  // The layout is square; a wide place is used by stretching it.
  const wide = Math.min(1.7, Math.max(1, container.clientWidth / container.clientHeight || 1));
  const laid = (node) => ({ x: node.x * wide, y: node.y });
  const kind = (edge) => (many && (detail <= THIN || !ego(edge)) ? "thin" : "smooth");
  const ego = (edge) => [edge.source, edge.target].some((i) => nodes[i].role === "center" || nodes[i].role === "other");

  nodes.forEach((node, i) => graph.addNode(i, {
    ...laid(node), size: size(node), label: short(node.id, 26), color: "#888888",
    zIndex: { center: 4, other: 4, common: 3, predicted: 2 }[node.role] ?? 1,
    forceLabel: node.role === "center" || node.role === "other" || node.role === "predicted",
  }));
  edges.forEach(addEdge);

  function addEdge(edge, i) {
    first[edge.source] = Math.min(first[edge.source], edge.times[0]);
    first[edge.target] = Math.min(first[edge.target], edge.times[0]);
    byEnds.set(key(edge.source, edge.target), i);
    codes[i] = -1;
    if (edge.source !== edge.target) graph.addUndirectedEdgeWithKey(i, edge.source, edge.target, {
      color: "#888888", size: 1, zIndex: ego(edge) ? 1 : 0, type: kind(edge),
    });
  }

  const renderer = new Sigma(graph, container, {
    // Thousands of edges as plain lines, nodes as points: cheap even where WebGL runs on the CPU, which draws instances one by one.
    // Drawn in this order.
    edgeProgramClasses: { thin: EdgeLineProgram, smooth: EdgeRectangleProgram },
    nodeProgramClasses: { circle: NodePointProgram },
    zIndex: true,
    // While a large graph is moved, its nodes alone: they follow the hand at once, and edges come back when it rests.
    hideEdgesOnMove: many,
    hideLabelsOnMove: many,
    labelFont: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
    labelSize: 12.5,
    labelWeight: "500",
    labelDensity: 0.6,
    labelGridCellSize: 90,
    labelRenderedSizeThreshold: many ? 7 : 5.5,
    minEdgeThickness: 1,
    stagePadding: 44,
    defaultDrawNodeLabel: drawLabel,
    defaultDrawNodeHover: (context, node, settings) => { ring(context, node, 3, colour("--ink")); drawLabel(context, node, settings); },
    allowInvalidContainer: true,
  });

  /** Labels on a halo of the page's colour: readable over edges in both themes. */
  function drawLabel(context, node, settings) {
    if (!node.label) return;
    context.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`;
    context.lineWidth = 3.5;
    context.lineJoin = "round";
    context.strokeStyle = colour("--page");
    context.fillStyle = colour("--ink");
    const [x, y] = [node.x + node.size + 4, node.y + settings.labelSize / 3];
    context.strokeText(node.label, x, y);
    context.fillText(node.label, x, y);
  }

  function ring(context, node, gap, style) {
    context.beginPath();
    context.arc(node.x, node.y, node.size + gap, 0, 2 * Math.PI);
    context.strokeStyle = style;
    context.lineWidth = 1.75;
    context.stroke();
  }

  const overlay = document.createElement("canvas");
  overlay.className = "overlay";
  container.append(overlay);
  renderer.on("afterRender", drawOverlay);

  function at(i) {
    const { x, y } = graph.getNodeAttributes(i);
    return renderer.graphToViewport({ x, y });
  }

  function drawOverlay() {
    overlay.hidden = predicted.length === 0 && pinned.size === 0 && selected === null;
    if (overlay.hidden) return;
    const { width, height } = renderer.getDimensions();
    const dense = devicePixelRatio;
    if (overlay.width !== Math.round(width * dense) || overlay.height !== Math.round(height * dense)) {
      overlay.width = Math.round(width * dense);
      overlay.height = Math.round(height * dense);
    }
    const context = overlay.getContext("2d");
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.clearRect(0, 0, width, height);
    context.strokeStyle = colour("--fifth");
    context.lineWidth = 1.75;
    context.setLineDash([6, 5]);
    const lines = predicted.map((link) => ({ link, from: at(link.source), to: at(link.target) }));
    for (const { from, to } of lines) {
      context.beginPath();
      context.moveTo(from.x, from.y);
      context.lineTo(to.x, to.y);
      context.stroke();
    }
    context.setLineDash([]);
    context.font = "600 11.5px system-ui, -apple-system, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const { link, from, to } of lines) {
      const p = link.probability ?? link.score;
      if (!Number.isFinite(p)) continue;
      const [x, y] = [from.x * 0.42 + to.x * 0.58, from.y * 0.42 + to.y * 0.58];
      const text = chance(p);
      const wide = context.measureText(text).width + 8;
      context.fillStyle = colour("--page");
      context.fillRect(x - wide / 2, y - 8, wide, 16);
      context.fillStyle = colour("--fifth");
      context.fillText(text, x, y + 0.5);
    }
    for (const i of pinned) ring(context, display(i), 2.5, colour("--quiet"));
    if (selected !== null) ring(context, display(selected), 4, colour("--ink"));
  }

  const display = (i) => ({ ...at(i), size: renderer.scaleSize(graph.getNodeAttribute(i, "size")) });

  // Sigma indexes nodes and edges with the next frame; until then parts of the graph cannot be drawn alone.
  let drawn = false;
  renderer.on("afterRender", () => { drawn = true; });
  function redraw() {
    drawn = false;
    renderer.refresh({ schedule: true });
  }

  /** Draws what changed between the moment before and this one; sigma gets only those nodes and edges. */
  function apply(all = false) {
    const changedEdges = [];
    const changedNodes = [];
    const counts = { nodes: 0, edges: 0 };
    const now = Math.min(moment, data.last_time);
    edges.forEach((edge, i) => {
      const n = until(edge.times, moment);
      counts.edges += n > 0;
      if (edge.source === edge.target) return;
      const age = n ? (now - edge.times[n - 1]) / span() : 0;
      const fade = FADES.findIndex((limit) => age <= limit);
      const near = ego(edge);
      const hidden = n === 0 || (!near && fade >= detail);
      const code = hidden ? 0 : 1 + fade * 16 + Math.min(15, n);
      if (!all && code === codes[i]) return;
      codes[i] = code;
      const attributes = graph.getEdgeAttributes(i);
      attributes.hidden = hidden;
      // What the node itself did stands out from what happened around it.
      attributes.color = age <= RECENT ? mixed("--all", near ? 0.95 : 0.6) : mixed("--sixth", FADE_TO[fade] * (near ? 1 : 0.45));
      attributes.size = near ? 1 + Math.log2(1 + Math.min(15, n)) * (many ? 0.4 : 0.6) : 0.8 + Math.log2(1 + Math.min(15, n)) * 0.2;
      changedEdges.push(String(i));
    });
    nodes.forEach((node, i) => {
      const there = first[i] <= moment || node.role === "center" || node.role === "other" || (moment === Infinity && node.role === "predicted") ? 1 : 0;
      counts.nodes += there;
      if (!all && seen[i] === there) return;
      seen[i] = there;
      const attributes = graph.getNodeAttributes(i);
      attributes.color = there ? mixed(ROLE[node.role] ?? "--sixth", 0.95) : mixed("--sixth", 0.18);
      attributes.label = there ? short(node.id, 26) : "";
      changedNodes.push(String(i));
    });
    if (all || !drawn) redraw();
    else if (changedEdges.length || changedNodes.length) {
      renderer.refresh({ partialGraph: { nodes: changedNodes, edges: changedEdges }, skipIndexation: true, schedule: true });
    }
    return counts;
  }

  // A node that was dragged stays where it was put, and the camera does not follow.
  let dragged = null;
  let moved = false;
  renderer.on("downNode", ({ node }) => {
    dragged = Number(node);
    moved = false;
    if (!renderer.getCustomBBox()) renderer.setCustomBBox(renderer.getBBox());
  });
  renderer.on("moveBody", ({ event, preventSigmaDefault }) => {
    if (dragged === null) return;
    graph.mergeNodeAttributes(dragged, renderer.viewportToGraph(event));
    pinned.add(dragged);
    moved = true;
    preventSigmaDefault();
    event.original.preventDefault();
    event.original.stopPropagation();
  });
  const release = () => { dragged = null; };
  renderer.on("upNode", release);
  renderer.on("upStage", release);
  renderer.on("clickNode", ({ node }) => { if (!moved) choose(Number(node)); });
  renderer.on("clickStage", () => choose(null));
  renderer.on("doubleClickNode", ({ node, preventSigmaDefault }) => { preventSigmaDefault(); open(Number(node)); });
  renderer.on("enterNode", () => container.classList.add("hovering"));
  renderer.on("leaveNode", () => container.classList.remove("hovering"));

  function choose(i) {
    selected = i;
    select(i);
    renderer.refresh({ partialGraph: { nodes: [], edges: [] }, skipIndexation: true, schedule: true });
  }

  const resize = new ResizeObserver(() => { renderer.resize(); redraw(); });
  resize.observe(container);
  const stopTheme = onTheme(() => apply(true));
  const camera = renderer.getCamera();
  apply(true);

  return {
    camera,
    pinned,
    choose,
    /** Shows the network as it was at `t`; Infinity is the newest. Returns how many { nodes, edges } there were. */
    setTime(t, level = LEVELS) {
      moment = t;
      const before = detail;
      detail = level;
      // A line of another kind is drawn by another program: all of them are laid out anew.
      const changes = many && (before <= THIN) !== (level <= THIN);
      if (changes) graph.updateEachEdgeAttributes((i, attributes) => ({ ...attributes, type: kind(edges[i]) }), { attributes: ["type"] });
      return apply(changes);
    },
    setPredicted(links) { predicted = links; renderer.refresh({ partialGraph: { nodes: [], edges: [] }, skipIndexation: true, schedule: true }); },
    unpin(i) {
      pinned.delete(i);
      graph.mergeNodeAttributes(i, laid(nodes[i]));
    },
    /** An event between two nodes that are shown. */
    addEvent(source, target, time) {
      data.last_time = Math.max(data.last_time, time);
      const known = byEnds.get(key(source, target));
      if (known !== undefined) edges[known].times.push(time);
      else {
        edges.push({ source, target, times: [time] });
        addEdge(edges.at(-1), edges.length - 1);
      }
    },
    dispose() {
      resize.disconnect();
      stopTheme();
      renderer.kill();
      overlay.remove();
    },
  };
}
