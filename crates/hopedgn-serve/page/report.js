// The report of a run in a dialog. A frame would inherit our Content-Security-Policy and lose the report's style sheet, so its elements
// are copied into a shadow root: known ones only, without links, handlers or anything that loads.

import { api } from "./api.js";
import { el, problem, replace, shown } from "./dom.js";

const KNOWN = new Set(("a b body br caption circle code dd details div dl dt em figcaption figure g h1 h2 h3 h4 hr i li line main ol p path polygon "
  + "polyline pre rect s section small span strong sub summary sup svg table tbody td text tfoot th thead title tr tspan ul").split(" "));
const KEPT = /^(class|id|role|scope|colspan|rowspan|open|tabindex|aria-.*|viewBox|d|[xyr]|[xy][12]|c[xy]|r[xy]|d[xy]|width|height|points|transform|text-anchor|dominant-baseline|fill|stroke|stroke-.*|font-.*|opacity|preserveAspectRatio)$/;

function copy(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE || !KNOWN.has(node.localName)) return null;
  const made = node.localName === "body" ? el("div", { class: "report" }) : document.createElementNS(node.namespaceURI, node.localName);
  for (const { name, value } of node.attributes) if (KEPT.test(name) && !value.includes("url(")) made.setAttribute(name, value);
  for (const child of node.childNodes) {
    const inner = copy(child);
    if (inner) made.append(inner);
  }
  return made;
}

const STYLE = /<style\b[^>]*>([\s\S]*?)<\/style>/gi;

/** The report's own style sheet; its colours are the page's, which have the same names and follow the theme. */
function styleOf(html) {
  const sheet = new CSSStyleSheet();
  const text = Array.from(html.matchAll(STYLE), (match) => match[1]).join("\n");
  sheet.replaceSync(text.replaceAll(":root", ".no-such-class").replace(/(^|[\s},;])body(?=[\s{,.:>])/g, "$1.report"));
  return sheet;
}

export async function showReport(run) {
  const place = el("div", { class: "report-place" }, el("p", { class: "quiet" }, "Loading …"));
  const dialog = el("dialog", { id: "report-dialog", class: "large", "aria-label": `Report of ${shown(run)}` },
    el("div", { class: "dialog-bar" }, el("button", { type: "button", onclick: () => dialog.close() }, "Close")), place);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  try {
    const html = await api.report(run);
    // Parsing inline styles would already be a violation of the policy.
    const parsed = new DOMParser().parseFromString(html.replace(STYLE, "").replace(/\sstyle="[^"]*"/gi, ""), "text/html");
    const host = el("div", {});
    const root = host.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [styleOf(html)];
    root.append(copy(parsed.body));
    replace(place, host);
  } catch (error) {
    replace(place, problem(error));
  }
}
