// Light and dark: the system's choice, or that of the button for as long as the page is open.

const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();
let chosen = null;

export const theme = () => chosen ?? (dark.matches ? "dark" : "light");

/** Canvases do not follow style sheets: whoever draws on one redraws when this is called. */
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const cache = new Map();

/** The value of a colour variable of style.css. */
export function colour(variable) {
  if (!cache.has(variable)) cache.set(variable, getComputedStyle(document.documentElement).getPropertyValue(variable).trim());
  return cache.get(variable);
}

/** A #rrggbb colour with an opacity. */
export function faded(variable, opacity) {
  return `${colour(variable).slice(0, 7)}${Math.round(opacity * 255).toString(16).padStart(2, "0")}`;
}

function apply() {
  document.documentElement.dataset.theme = theme();
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(theme() === "dark"));
  cache.clear();
  for (const listener of [...listeners]) listener();
}

export function toggleTheme() {
  chosen = theme() === "dark" ? "light" : "dark";
  apply();
}

export function startTheme() {
  dark.addEventListener("change", apply);
  document.getElementById("theme").addEventListener("click", toggleTheme);
  apply();
}
