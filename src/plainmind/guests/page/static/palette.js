// Everything by its name: commands first, then notes, from one field.

import { post } from "./api.js";
import { h, icon, langOf, later, show } from "./dom.js";
import { placeName } from "./search.js";
import { dialog, go, noteHash, placeHash } from "./shell.js";
import { t } from "./words.js";

/** Show the palette over the page. */
export function openPalette(commands) {
  let items = [];
  let chosen = 0;
  const list = h(".choices", { role: "listbox", id: "choices", "aria-label": t("palette") });
  const field = h("input", {
    type: "text", class: "ask", placeholder: t("palette.placeholder"), role: "combobox", "aria-expanded": "true", "aria-controls": "choices",
    "aria-label": t("palette"), autocomplete: "off", spellcheck: "false",
    oninput: (event) => { if (!event.isComposing) typed(); },
    oncompositionend: () => typed(),
    onkeydown: (event) => {
      if (event.isComposing) return;
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by && items.length) {
        event.preventDefault();
        chosen = (chosen + by + items.length) % items.length;
        point();
      } else if (event.key === "Enter" && items[chosen]) {
        event.preventDefault();
        run(items[chosen]);
      }
    },
  });
  const node = dialog(t("palette"), h(".palette", field, list));
  node.classList.add("high");
  const run = (item) => { node.close(); item.act(); };
  const point = () => {
    [...list.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === chosen)));
    const row = list.children[chosen];
    if (row) field.setAttribute("aria-activedescendant", row.id);
    else field.removeAttribute("aria-activedescendant");
    row?.scrollIntoView({ block: "nearest" });
  };
  const draw = () => {
    chosen = 0;
    show(list, items.map((item, i) => h(".choice", { role: "option", id: `choice-${i}`, "aria-selected": "false", onclick: () => run(item) },
      icon(item.icon), h("span", { lang: langOf(item.name) }, item.name), item.more && h("small", item.more))));
    point();
  };
  const fits = (name, words) => words.every((word) => name.toLowerCase().includes(word));
  const ask = later(90, async (text) => {
    const { results } = await post("search", { query: text, limit: 6 }).catch(() => ({ results: [] }));
    if (field.value.trim() !== text || !node.open) return;
    items = [...items.filter((item) => !item.isNote), ...results.map((hit) => ({
      isNote: true, icon: hit.source === "sessions" ? "talks" : "start", name: placeName(hit), more: `${hit.path}:${hit.bestLine || hit.startLine}`,
      act: () => go(hit.source === "sessions" ? placeHash(hit) : noteHash(hit.path, hit.bestLine || hit.startLine)),
    }))];
    draw();
  });
  const typed = () => {
    const text = field.value.trim();
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    items = commands.filter((item) => fits(item.name, words));
    draw();
    if (text.length > 1 || langOf(text)) ask(text);
  };
  typed();
  field.focus();
}
