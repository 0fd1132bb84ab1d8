// Single things that agents keep: read them, let one in that waits, forget one.

import { get, may, post } from "./api.js";
import { forget } from "./changes.js";
import { button, h, langOf } from "./dom.js";
import { makeList, pageOf, rowOf } from "./lists.js";
import { empty, fail, fillWith, go, hear, tell } from "./shell.js";
import { ago, named, percent, t } from "./words.js";

let list;
const facts = (row) => [row.waiting && t("entries.waits"), row.category, percent(row.importance), named("scope", row.scope)].filter(Boolean).join(" · ");

const make = () => {
  let next = null;
  let waiting = [];
  list = makeList({
    name: "entries",
    load: async (offset, limit) => {
      if (!offset) ({ entries: waiting } = await get("entries", { waiting: true, limit: 50 }));
      const part = await get("entries", offset ? { limit, cursor: next } : { limit: limit - waiting.length });
      next = part.next;
      return { rows: offset ? part.entries : [...waiting, ...part.entries], total: waiting.length + part.total };
    },
    draw: (row) => rowOf(row.text, ago(row.createdAt), facts(row)),
    hash: (row) => `#/entries/${row.id}`,
    none: () => empty("entries", t("entries.none"), t("entries.none.text")),
    events: ["entry"],
  });
  list.refresh();
  hear("entry", () => location.hash.startsWith("#/entries/") && go("#/entries", { replace: true }));
  return list;
};

const draw = (row) => pageOf(t("entries"), `${facts(row)} · ${ago(row.createdAt)}`, may("forget") && [button("forget", t("forget"), () => forget(row.id))],
  h("p.lead", { lang: langOf(row.text) }, row.text),
  row.waiting && may("review") && h(".actions", button(null, t("review.accept"), async () => {
    try {
      await post(`entries/${row.id}/accept`);
      tell("entry");
    } catch (error) {
      fail(error);
    }
  }, { class: "primary" })));

export const entries = {
  list: () => (list ?? make()).pane,
  enter({ name }, detail) {
    if (!name) return false;
    list.choose((row) => row.id === name);
    fillWith(detail, async () => {
      if (!list.all().length) await list.refresh();
      const found = list.all().find((row) => row.id === name);
      if (!found) throw new Error(t("entries.none"));
      return found;
    }, draw);
    return true;
  },
};
