// The review inbox: what upkeep proposes, as a diff with its reasons. Nothing is changed until a person accepts.

import { get, may, post } from "./api.js";
import { drawDiff } from "./changes.js";
import { button, h } from "./dom.js";
import { makeList, pageOf, placeLinks, rowOf, section } from "./lists.js";
import { empty, fail, fillWith, go, noteHash, placeHash, tell, toast } from "./shell.js";
import { ago, t } from "./words.js";

let list;
let open = null;

const make = () => {
  let next = null;
  list = makeList({
    name: "review",
    load: async (offset, limit) => {
      const part = await get("proposals", { state: "waiting", limit, cursor: offset ? next : undefined });
      next = part.next;
      return { rows: part.proposals, total: Math.max(part.waiting ?? 0, offset + part.proposals.length) };
    },
    draw: (row) => rowOf(t(`kind.${row.kind}`).replace(/^kind\./, ""), row.at ? ago(row.at) : "", `${row.edits?.[0]?.path || ""} · ${row.reason || ""}`),
    hash: (row) => `#/review/${row.id}`,
    none: () => empty("review", t("review.none"), t("review.none.text"), may("review") && button(null, t("review.run"), run)),
    events: ["proposal"],
  });
  list.refresh();
  return list;
};

async function run() {
  try {
    await post("upkeep");
    toast(t("review.running"));
  } catch (error) {
    fail(error);
  }
}

async function decide(how, body = {}) {
  const row = open;
  if (!row || !may("review")) return;
  try {
    await post(`proposals/${row.id}/${how}`, body);
    for (const edit of how === "accept" ? row.edits || [] : []) tell("note.changed", { path: edit.path });
    toast(t(`review.${how}ed`), how === "accept" && row.edits?.[0] ? { action: t("history"), act: () => go(`${noteHash(row.edits[0].path)}!history`) } : {});
    await list.refresh();
    if (list.rows.count) list.rows.go(Math.min(Math.max(0, list.rows.at), list.rows.count - 1));
    else go("#/review", { replace: true });
  } catch (error) {
    fail(error);
  }
}

function drawProposal(row) {
  open = row;
  const fields = [];
  const isEditing = h("div");
  const change = () => {
    fields.length = 0;
    const texts = row.edits.map((edit, i) => { const field = h("textarea", { rows: "4", "aria-label": `${edit.path}:${edit.startLine}`, value: edit.new ?? "" }); fields[i] = field; return field; });
    isEditing.replaceChildren(...texts, h(".actions", h("button.primary", { onclick: () => decide("accept", { edits: row.edits.map((edit, i) => ({ ...edit, new: fields[i].value })) }) }, t("review.accept"))));
    texts[0]?.focus();
  };
  row.change = change;
  return pageOf(t(`kind.${row.kind}`).replace(/^kind\./, ""), t("review.calm"), null,
    h("p.lead", row.reason),
    (row.edits || []).map((edit) => section(h("a", { href: noteHash(edit.path, edit.startLine, edit.endLine) }, `${edit.path}:${edit.startLine}`), drawDiff(edit.old ?? "", edit.new ?? ""))),
    section(t("review.because"), row.cites?.length && placeLinks(row.cites.map((cite) => [placeHash(cite), `${cite.path}:${cite.startLine}`, cite.text]))),
    isEditing,
    may("review") && h(".actions",
      button(null, t("review.later"), () => list.rows.step(1)), button(null, t("review.edit"), change), button(null, t("review.reject"), () => decide("reject")),
      button(null, t("review.accept"), () => decide("accept"), { class: "primary" })));
}

export const review = {
  list: () => (list ?? make()).pane,
  enter({ name }, detail) {
    open = null;
    if (!name) return false;
    fillWith(detail, async () => list.all().find((row) => row.id === name) || (await get("proposals", { state: "waiting", limit: 200 })).proposals.find((row) => row.id === name) || Promise.reject(new Error(t("review.gone"))), drawProposal);
    return true;
  },
  keys: { a: () => decide("accept"), r: () => decide("reject"), e: () => open?.change?.(), l: () => list.rows.step(1) },
};
