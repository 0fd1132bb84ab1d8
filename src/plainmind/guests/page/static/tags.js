// Tags, most used first, and the notes that have one.

import { encoded, get } from "./api.js";
import { makeList, pageOf, placeLinks, rowOf } from "./lists.js";
import { button } from "./dom.js";
import { empty, fillWith, go, noteHash } from "./shell.js";
import { placeName } from "./search.js";
import { t } from "./words.js";

let list;

const make = () => {
  list = makeList({
    name: "tags", height: 42,
    load: async () => {
      const { tags } = await get("tags");
      return { rows: tags, total: tags.length };
    },
    draw: (row) => rowOf(`#${row.tag}`, t("count.notes", { n: row.notes }), null),
    hash: (row) => `#/tags/${encoded(row.tag)}`,
    none: () => empty("tags", t("tags.none"), t("tags.none.text")),
    events: ["note.changed", "note.forgotten"],
  });
  list.refresh();
  return list;
};

export const tags = {
  list: () => (list ?? make()).pane,
  enter({ name }, detail) {
    if (!name) return false;
    list.choose((row) => row.tag === name);
    fillWith(detail, () => get(`tags/${encoded(name)}`), (found) =>
      pageOf(`#${found.tag}`, t("count.notes", { n: found.notes.length }), [button("search", t("tag.search"), () => go(`#/?tag=${encodeURIComponent(found.tag)}`))],
        placeLinks(found.notes.map((note) => [noteHash(note.path), placeName(note), note.path]))));
    return true;
  },
};
