// The review inbox: what upkeep proposes, as a diff with its reasons. Nothing is changed until a person accepts.

import { get, may, post } from "./api.js";
import { drawDiff, undoLatest } from "./changes.js";
import { button, h } from "./dom.js";
import { makeList, pageOf, placeLinks, rowOf, section } from "./lists.js";
import { empty, fail, fillWith, go, noteHash, placeHash, tell, toast } from "./shell.js";
import { ago, named, t } from "./words.js";

let list;
let open = null;
const kindOf = (row) => named("kind", row.kind);

const make = () => {
  list = makeList({
    name: "review",
    load: async () => {
      const { proposals } = await get("proposals");
      return { rows: proposals, total: proposals.length };
    },
    draw: (row) => rowOf(kindOf(row), row.at ? ago(row.at) : "", `${row.edits[0]?.path || ""} · ${row.reason}`),
    hash: (row) => `#/review/${row.id}`,
    none: () => empty("review", t("review.none"), t("review.none.text"), may("review") && button(null, t("review.run"), run)),
    events: ["proposal"],
  });
  list.refresh();
  return list;
};

async function run() {
  try {
    toast(t("review.running"));
    await post("upkeep");
    await list.refresh();
  } catch (error) {
    fail(error);
  }
}

async function decide(how) {
  const row = open;
  if (!row || !may("review")) return;
  try {
    const done = await post(`proposals/${row.id}/${how}`);
    for (const path of done.changed) tell("note.changed", { path });
    if (done.void.length) toast(done.void[0].why, { bad: true });
    else toast(t(`review.${how}ed`), how === "accept" ? { action: t("undo"), act: undoLatest } : {});
    await list.refresh();
    if (list.rows.count) list.rows.go(Math.max(0, list.rows.at));
    else go("#/review", { replace: true });
  } catch (error) {
    fail(error);
  }
}

function drawProposal(row) {
  open = row;
  return pageOf(kindOf(row), t("review.calm"), null,
    h("p.lead", row.reason),
    row.edits.map((edit) => section(h("a", { href: noteHash(edit.path, edit.line) }, `${edit.path}:${edit.line || edit.section || ""}`), drawDiff(edit.old.join("\n"), edit.new.join("\n"), edit.line || 1))),
    section(t("review.because"), row.cites.length && placeLinks(row.cites.map((cite) => [placeHash(cite), `${cite.path}:${cite.startLine}`, cite.text]))),
    may("review") && h(".actions", button(null, t("review.later"), () => list.rows.step(1)), button(null, t("review.reject"), () => decide("reject")),
      button(null, t("review.accept"), () => decide("accept"), { class: "primary" })));
}

export const review = {
  list: () => (list ?? make()).pane,
  enter({ name }, detail) {
    open = null;
    if (!name) return false;
    fillWith(detail, async () => {
      const found = [...list.all(), ...(list.all().length ? [] : (await get("proposals")).proposals)].find((row) => row.id === name);
      if (!found) throw new Error(t("review.gone"));
      return found;
    }, drawProposal);
    return true;
  },
  keys: { a: () => decide("accept"), r: () => decide("reject"), l: () => list.rows.step(1) },
};
