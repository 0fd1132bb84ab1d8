// What the screens besides search have in common: a list at the left, a page at the right.

import { h, icon, langOf, later, show } from "./dom.js";
import { drawLine, kinds } from "./markdown.js";
import { Parts, Rows } from "./rows.js";
import { failure, go, hear, isWide, noteHash, waiting } from "./shell.js";
import { t } from "./words.js";

/**
 * A list of rows from the server. load(offset, limit) gives {rows, total}; draw(row) the children of a row; hash(row) its
 * address; none() what stands there when there are no rows; events are those after which it is loaded again.
 */
export function makeList({ name, height = 66, load, draw, hash, none, events = [], top = null }) {
  let parts = new Parts(load);
  const holder = h(".holder");
  const follow = (index, enter) => {
    const row = parts.row(index);
    if (row && (enter || isWide())) go(hash(row), { replace: isWide() && location.hash.startsWith(`#/${name}/`) });
    if (row && enter) document.querySelector(".detail .body")?.focus({ preventScroll: true });
  };
  const rows = new Rows({
    label: t(name), height,
    draw: (index) => { const row = parts.row(index); return row ? draw(row) : null; },
    choose: (index) => follow(index, false),
    open: (index) => follow(index, true),
    want: (from, to) => parts.want(from, to, () => rows.paint()),
  });
  let wanted = () => false;
  const point = () => {
    const index = [...parts.rows].find(([, row]) => wanted(row))?.[0];
    if (index !== undefined && index !== rows.at) rows.go(index, { quiet: true });
  };
  const refresh = async (keep = true) => {
    const fresh = new Parts(load);
    try {
      if (!holder.firstChild) show(holder, waiting());
      await fresh.first();
      parts = fresh;
      rows.set(parts.total, { keep });
      if (!parts.total) show(holder, none());
      else if (holder.firstChild !== rows.node) show(holder, rows.node);
      point();
    } catch (error) {
      show(holder, failure(error, refresh));
    }
  };
  const pane = h(".pane", h("h1.pane-title", t(name)), top, holder);
  const soon = later(300, () => pane.isConnected && refresh());
  for (const event of [...events, "reset"]) hear(event, soon);
  return { pane, rows, refresh, all: () => [...parts.rows.values()], choose: (test) => { wanted = test; point(); } };
}

/** The children of a row: a name, something at the right, a line below. */
export const rowOf = (name, right, below) => [
  h(".top", h("b", { lang: langOf(name) }, name), h("span.score", right)),
  h(".below", below),
];

/** A page at the right: its title, what it may do, its content. */
export const pageOf = (title, meta, tools, ...content) =>
  h("article.reader",
    h("header.head",
      h("button.tool.back", { "aria-label": t("back"), onclick: () => history.back() }, icon("back")),
      h(".crumbs", h("h1", { lang: langOf(title) }, title), meta && h("p.meta", meta)),
      tools && h(".tools", tools)),
    h(".body", { tabindex: "0", role: "group", "aria-label": title }, h(".page", content)));

/** A heading and what stands below it; nothing when that is nothing. */
export const section = (title, ...content) =>
  content.flat(Infinity).filter(Boolean).length ? h("section", h("h2", title), content) : null;

/** Links to places, one below the other. */
export const placeLinks = (rows) =>
  h("ul.backlinks.plain", rows.map(([href, name, below]) => h("li", h("a", { href }, h("b", { lang: langOf(name) }, name), below && h("span", { lang: langOf(below) }, below)))));

/** A text as lines; those of a note lead to it. */
export function linesOf(path, text) {
  const texts = text.replace(/\n$/, "").split("\n");
  const links = { note: (name) => `#/find/${encodeURIComponent(name)}`, path: () => noteHash(path), tag: (tag) => `#/?tag=${encodeURIComponent(tag)}` };
  const all = [...kinds(texts)];
  return h(path ? ".lines" : ".lines.bare", texts.map((line, i) => h(".line",
    path && h("a.no", { href: noteHash(path, i + 1), tabindex: "-1", "aria-label": t("line", { n: i + 1 }) }, i + 1), drawLine(line, all[i], links))));
}
