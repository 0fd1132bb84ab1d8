// What hangs together: a note, its neighbours and theirs, as a drawing and as a table that says the same.

import { get } from "./api.js";
import { button, h, s, langOf } from "./dom.js";
import { pageOf } from "./lists.js";
import { empty, fillWith, go, noteHash } from "./shell.js";
import { t } from "./words.js";

const SIZE = 1000;
let depth = 1;
let isTable = false;

/** Places for the nodes: rings by distance, then pushed apart. The same graph always looks the same. */
function layOut(nodes, edges) {
  const at = new Map();
  const rings = [0, 250, 420];
  const byDepth = [0, 1, 2].map((d) => nodes.filter((node) => Math.min(2, node.depth ?? 1) === d));
  byDepth.forEach((ring, d) => ring.forEach((node, i) => {
    const angle = (2 * Math.PI * i) / ring.length + d;
    at.set(node.path, { node, x: SIZE / 2 + rings[d] * Math.cos(angle), y: SIZE / 2 + rings[d] * Math.sin(angle) });
  }));
  const all = [...at.values()];
  const near = Math.min(330, 1600 / Math.sqrt(all.length + 3));
  const rounds = all.length > 200 ? 40 : 160;
  for (let round = 0; round < rounds; round += 1) {
    const heat = 12 * (1 - round / rounds);
    for (const p of all) { p.dx = (SIZE / 2 - p.x) * 0.01; p.dy = (SIZE / 2 - p.y) * 0.01; }
    for (let i = 0; i < all.length; i += 1)
      for (let j = i + 1; j < all.length; j += 1) {
        const dx = all[i].x - all[j].x || 0.1 * (i - j);
        const dy = all[i].y - all[j].y || 0.1;
        const d2 = dx * dx + dy * dy;
        if (d2 > near * near * 4) continue;
        const f = (near * near * 0.035) / (d2 + 40);
        all[i].dx += dx * f; all[i].dy += dy * f; all[j].dx -= dx * f; all[j].dy -= dy * f;
      }
    for (const edge of edges) {
      const a = at.get(edge.from);
      const b = at.get(edge.to);
      if (!a || !b) continue;
      const pull = 0.012;
      a.dx += (b.x - a.x) * pull; a.dy += (b.y - a.y) * pull; b.dx += (a.x - b.x) * pull; b.dy += (a.y - b.y) * pull;
    }
    for (const p of all) {
      if (p.node.depth === 0) { p.x = SIZE / 2; p.y = SIZE / 2; continue; }
      const length = Math.hypot(p.dx, p.dy) || 1;
      p.x = Math.max(60, Math.min(SIZE - 60, p.x + (p.dx / length) * Math.min(length, heat)));
      p.y = Math.max(30, Math.min(SIZE - 40, p.y + (p.dy / length) * Math.min(length, heat)));
    }
  }
  return at;
}

const nameOf = (node) => node.title || node.path.split("/").at(-1).replace(/\.md$/, "");

function drawing(found) {
  const at = layOut(found.nodes, found.edges);
  return h(".drawing", { "aria-hidden": "true" }, s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}` },
    found.edges.map((edge) => {
      const a = at.get(edge.from);
      const b = at.get(edge.to);
      return a && b && s("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y });
    }),
    [...at.values()].map(({ node, x, y }) => {
      const radius = 6 + Math.min(12, 2 * Math.sqrt(node.links || 0));
      const label = nameOf(node);
      return s("g", { class: node.depth === 0 ? "node here" : "node", transform: `translate(${x} ${y})`, onclick: () => go(noteHash(node.path)) },
        s("title", null, node.path), s("circle", { r: radius }), found.nodes.length <= 80 && s("text", { y: radius + 20, lang: langOf(label) }, label.length > 26 ? `${label.slice(0, 25)}…` : label));
    })));
}

const table = (found) => {
  const names = new Map(found.nodes.map((node) => [node.path, nameOf(node)]));
  const cell = (path) => h("td", h("a", { href: noteHash(path) }, names.get(path) || path));
  return h("table", h("thead", h("tr", h("th", { scope: "col" }, t("graph.from")), h("th", { scope: "col" }, t("graph.to")), h("th", { scope: "col" }, t("graph.count")))),
    h("tbody", found.edges.map((edge) => h("tr", cell(edge.from), cell(edge.to), h("td", edge.count)))));
};

export const graph = {
  enter(at, detail) {
    const again = () => graph.enter(at, detail);
    fillWith(detail, () => get("graph", { note: at.name, depth, limit: 500 }), (found) =>
      pageOf(t("graph"), at.name, [
        h("a", { href: at.name ? noteHash(at.name) : "#/" }, t("graph.back")),
        button(null, t(depth === 1 ? "graph.wider" : "graph.nearer"), () => { depth = 3 - depth; again(); }),
        button(null, t(isTable ? "as.drawing" : "as.table"), () => { isTable = !isTable; again(); }),
      ],
        found.truncated && h("p.note", t("graph.cut", { n: found.nodes.length })),
        !found.edges.length ? empty("graph", t("graph.none"), t("graph.none.text")) : isTable ? table(found) : [drawing(found), h(".hidden", table(found))]));
    return true;
  },
};
