// Building elements. Data becomes text nodes and attributes only, never markup, so that names stay inert whatever they contain.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "data") Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** el("p", { class: "quiet", onclick: f }, "text", element, …) */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Sets text only where it changed: screen readers and selections are left alone otherwise. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Characters that would be invisible, break lines, or turn the direction of what follows.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A node's id as text for people: unseen characters are made visible, blank names get words. */
export function shown(id) {
  const text = String(id);
  if (text === "") return "(empty name)";
  if (text.trim() === "") return `(${text.length} blank${text.length === 1 ? "" : "s"})`;
  return text.replace(UNSEEN, (c) => ESCAPES[c] ?? `‹${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

/** At most `length` characters of it, for charts. */
export function short(id, length = 18) {
  const letters = Array.from(shown(id));
  return letters.length <= length ? letters.join("") : `${letters.slice(0, length - 1).join("")}…`;
}

const part = (id) => encodeURIComponent(String(id));
export const hash = {
  node: (id) => `#/node/${part(id)}`,
  pair: (src, dst, time) => `#/pair/${part(src)}/${part(dst)}${time === undefined ? "" : `/${time}`}`,
  graph: (id, other) => `#/graph/${part(id)}${other === undefined ? "" : `/${part(other)}`}`,
  try: (src, dst) => `#/try/${part(src)}/${part(dst)}`,
};

/** A name that is cut off by style where it is too long; its title says all of it. */
export function name(id, href) {
  const blank = String(id).trim() === "";
  const inner = el("bdi", {}, shown(id));
  const attributes = { class: blank ? "name blank" : "name", title: shown(id).slice(0, 2000) };
  return href === undefined ? el("span", attributes, inner) : el("a", { ...attributes, href }, inner);
}

/** A section with a heading; `tools` stand at the right of it. */
export function panel(title, { id, tools, note, class: extra, level = "h2" } = {}, ...children) {
  return el("section", { class: `panel ${extra ?? ""}`, id, "aria-label": title },
    el("div", { class: "panel-head" }, el(level, {}, title), tools && el("div", { class: "tools" }, tools)),
    note && el("p", { class: "quiet note-line" }, note),
    ...children);
}

export function tile(label, value, small, id) {
  const figure = el("b", { id }, value);
  const below = el("small", {}, small ?? "");
  return Object.assign(el("div", { class: "tile" }, el("span", {}, label), figure, below), { figure, below });
}

/** Says something to screen readers only; the region is in index.html. */
export function announce(text) {
  setText(document.getElementById("announce"), text);
}

export const problem = (error) => el("p", { class: "note", role: "alert" }, error?.message ?? String(error));

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
