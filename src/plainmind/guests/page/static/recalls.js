// What was given to whom, and why: each recall with its places, and a verdict on each place.

import { encoded, get, may, post } from "./api.js";
import { button, h, show } from "./dom.js";
import { makeList, pageOf, rowOf, section } from "./lists.js";
import { plain } from "./markdown.js";
import { empty, fail, fillWith, placeHash, toast } from "./shell.js";
import { moment, number, percent, t } from "./words.js";

const VERDICTS = ["useful", "wrong", "outdated", "never-again"];
let list;

const facts = (row) => [row.who, t("tokens", { n: row.tokens }), `${number(Math.round(row.ms))} ms`].filter(Boolean).join(" · ");
const nameOf = (row) => row.question || t(`recall.${row.kind}`);

const make = () => {
  let next = null;
  list = makeList({
    name: "recalls",
    load: async (offset, limit) => {
      const part = await get("recalls", { limit, cursor: offset ? next : undefined });
      next = part.next;
      return { rows: part.recalls, total: offset + part.recalls.length + (next ? 1 : 0) };
    },
    draw: (row) => rowOf(nameOf(row), moment(row.at), `${facts(row)} · ${t("recall.given", { n: row.given.length })}`),
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
      const now = await post(`recalls/${row.id}/verdict`, { verdict: place.verdict === verdict ? "" : verdict, line: place.number });
      toast(t("verdict.kept"));
      fillWith(detail, async () => now, (fresh) => drawRecall(fresh, detail));
    } catch (error) {
      fail(error);
    }
  };
  const text = h("p");
  if (place.startLine && !place.path.startsWith("sessions/"))
    get(`notes/${encoded(place.path)}`, { lines: `${place.bestLine || place.startLine}` }).then((found) => show(text, plain(found.text)), () => {});
  return h("li.card",
    h(".top", h("a", { href: placeHash(place) }, place.startLine ? `${place.path}:${place.bestLine || place.startLine}` : place.path), h("span.score", place.score != null ? percent(place.score) : "")),
    text, place.reason && h("p.note", place.reason),
    !place.reason && may("review") && h(".verdicts", { role: "group", "aria-label": t("verdict") }, VERDICTS.map((verdict) =>
      button(null, t(`verdict.${verdict}`), () => judge(verdict), { "aria-pressed": String(place.verdict === verdict) }))));
}

function drawRecall(row, detail) {
  return pageOf(nameOf(row), [moment(row.at), facts(row), row.session].filter(Boolean).join(" · "), null,
    section(t("recall.got"), row.given.length ? h("ul.cards", row.given.map((place) => placeOf(row, place, detail))) : h("p.note", t("recall.nothing"))),
    section(t("recall.withheld"), row.withheld?.length && h("ul.cards", row.withheld.map((place) => placeOf(row, place, detail)))));
}

export const recalls = {
  list: () => (list ?? make()).pane,
  enter({ name }, detail) {
    if (!name) return false;
    list.choose((row) => row.id === name);
    fillWith(detail, () => get(`recalls/${name}`), (row) => drawRecall(row, detail));
    return true;
  },
};
