// Completion of node names: a text field with a list, usable by mouse and by keys (the combobox pattern of WAI-ARIA).

import { api } from "./api.js";
import { el, name } from "./dom.js";
import { count } from "./format.js";

let lists = 0;

/** Adds completion to a field; `pick(id)` is called with the id as the server wrote it, `submit(text)` where no option was chosen. */
export function complete(field, list, { pick, submit }) {
  let rows = [];
  let active = -1;
  let asked = 0; // answers to older questions are dropped
  let timer;

  list.id ||= `options-${(lists += 1)}`;
  for (const [key, value] of Object.entries({
    role: "combobox", "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list", "aria-haspopup": "listbox",
  })) field.setAttribute(key, value);

  function close() {
    asked += 1;
    clearTimeout(timer);
    list.hidden = true;
    list.replaceChildren();
    rows = [];
    active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function choose(row) {
    close();
    pick(row.id);
  }

  function mark(index) {
    active = index;
    [...list.children].forEach((option, i) => {
      option.setAttribute("aria-selected", String(i === active));
      if (i === active) {
        field.setAttribute("aria-activedescendant", option.id);
        option.scrollIntoView({ block: "nearest" });
      }
    });
    if (active < 0) field.removeAttribute("aria-activedescendant");
  }

  function show(nodes) {
    rows = nodes;
    active = -1;
    list.replaceChildren(...nodes.map((row, i) => {
      const option = el("li", { role: "option", id: `${list.id}-${i}`, "aria-selected": "false", data: { id: row.id } },
        name(row.id), el("span", { class: "quiet" }, `${count(row.events)} events`));
      // Before the field loses its focus, which would close the list.
      option.addEventListener("pointerdown", (event) => event.preventDefault());
      option.addEventListener("click", () => choose(row));
      return option;
    }));
    if (!nodes.length) list.append(el("li", { class: "quiet none" }, "No such node"));
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
  }

  async function ask() {
    const mine = (asked += 1);
    try {
      const { nodes } = await api.nodes(field.value, 10);
      if (mine === asked && document.activeElement === field) show(nodes);
    } catch {
      if (mine === asked) close();
    }
  }

  field.addEventListener("input", () => {
    asked += 1;
    clearTimeout(timer);
    timer = setTimeout(ask, 80);
  });
  field.addEventListener("click", () => { if (list.hidden) ask(); });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) { await ask(); if (rows.length && !list.hidden) mark(0); return; }
      if (rows.length) mark((active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1) + rows.length) % rows.length);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!list.hidden && active >= 0) choose(rows[active]);
      else {
        const text = field.value;
        close();
        submit(text);
      }
    }
  });
  return { close };
}

/** A labelled field with completion, for forms. `value()` is the id: that of the option while its text is unchanged, else the text. */
export function nodeField({ id, label, value, required = true, submit, change }) {
  let chosen = value;
  const field = el("input", { id, type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", required, value: value ?? "", placeholder: "name of a node" });
  const list = el("ul", { class: "options", role: "listbox", "aria-label": `${label}: nodes`, hidden: true });
  const set = (next) => { chosen = next; field.value = String(next); change?.(); };
  complete(field, list, { pick: set, submit: () => { change?.(); submit?.(); } });
  field.addEventListener("change", () => change?.());
  return {
    element: el("div", { class: "field searching" }, el("label", { for: id }, label), field, list),
    field,
    set,
    value: () => (chosen !== undefined && String(chosen) === field.value ? chosen : field.value),
  };
}
