// What was given to whom, and why: each recall with its places, and a verdict on each place.

import { get, may, post } from "./api.js";
import { button, h } from "./dom.js";
import { makeList, pageOf, rowOf, section } from "./lists.js";
import { empty, fail, fillWith, placeHash, toast } from "./shell.js";
import { moment, number, percent, t } from "./words.js";

const VERDICTS = ["useful", "wrong", "outdated", "never-again"];
let list;

const facts = (row) => [row.who, row.tokens != null && t("tokens", { n: row.tokens }), row.ms != null && `${number(Math.round(row.ms))} ms`].filter(Boolean).join(" · ");

const make = () => {
  let next = null;
  let loaded = 0;
  list = makeList({
    name: "recalls",
    load: async (offset, limit) => {
      const part = await get("recalls", { limit, cursor: offset ? next : undefined });
      next = part.next;
      loaded = offset + part.recalls.length;
      return { rows: part.recalls, total: part.total ?? loaded + (next ? limit : 0) };
    },
    draw: (row) => rowOf(row.question || t("recall.silent"), moment(row.at), `${facts(row)} · ${t("recall.given", { n: row.given.length })}`),
    hash: (row) => `#/recalls/${row.id}`,
    none: () => empty("recalls", t("recalls.none"), t("recalls.none.text")),
    events: ["recall"],
  });
  list.refresh();
  return list;
};

function placeOf(row, place, detail) {
  const judge = async (verdict) => {
    try {
      const now = await post(`recalls/${row.id}/verdict`, { verdict, path: place.path, line: place.startLine });
      toast(t("verdict.kept"));
      fillWith(detail, async () => now, (fresh) => drawRecall(fresh, detail));
    } catch (error) {
      fail(error);
    }
  };
  return h("li.card",
    h(".top", h("a", { href: placeHash(place) }, `${place.path}:${place.startLine}`), h("span.score", place.score != null ? percent(place.score) : "")),
    place.text && h("p", place.text), place.reason && h("p.note", place.reason),
    !place.reason && may("review") && h(".verdicts", { role: "group", "aria-label": t("verdict") }, VERDICTS.map((verdict) =>
      button(null, t(`verdict.${verdict}`), () => judge(verdict), { "aria-pressed": String(place.verdict === verdict) }))));
}

function drawRecall(row, detail) {
  return pageOf(row.question || t("recall.silent"), [moment(row.at), facts(row), row.session].filter(Boolean).join(" · "), null,
    section(t("recall.got"), row.given.length ? h("ul.cards", row.given.map((place) => placeOf(row, place, detail))) : h("p.note", t("recall.nothing"))),
    section(t("recall.withheld"), row.withheld?.length && h("ul.cards", row.withheld.map((place) => placeOf(row, { reason: t("recall.unsure"), ...place }, detail)))));
}

export const recalls = {
  list: () => (list ?? make()).pane,
  enter({ name }, detail) {
    if (!name) return false;
    list.choose((row) => row.id === name);
    fillWith(detail, async () => list.all().find((row) => row.id === name) || (await get("recalls", { limit: 200 })).recalls.find((row) => row.id === name) || Promise.reject(new Error(t("recall.gone"))),
      (row) => drawRecall(row, detail));
    return true;
  },
};
