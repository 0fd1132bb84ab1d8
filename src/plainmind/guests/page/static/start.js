// What a session begins with, against its budget.

import { get } from "./api.js";
import { h } from "./dom.js";
import { linesOf, pageOf, placeLinks, section } from "./lists.js";
import { fillWith, hear, noteHash } from "./shell.js";
import { percent, t } from "./words.js";

function draw(found) {
  const share = Math.min(1, found.chars / Math.max(1, found.maxChars));
  return pageOf(t("start"), t("start.lead"), null,
    h(".meter", { role: "meter", "aria-label": t("start"), "aria-valuemin": "0", "aria-valuemax": found.maxChars, "aria-valuenow": found.chars }, h("i", { style: { width: `${Math.max(1, Math.round(share * 100))}%` } })),
    h("p.note", t("start.used", { chars: found.chars, max: found.maxChars, percent: percent(share), tokens: found.tokens }), " "),
    found.truncated?.length ? h("p.problem", t("start.cut"), " ", found.truncated.map(String).join(", ")) : null,
    section(t("start.files"), found.paths.length && placeLinks(found.paths.map((path) => [noteHash(path), path]))),
    section(t("start.text"), found.text ? linesOf("", found.text) : h("p.note", t("start.nothing"))));
}

let place = null;
const load = () => fillWith(place, () => get("start-context"), draw);
for (const event of ["note.changed", "note.forgotten"]) hear(event, () => place && location.hash === "#/start" && load());

export const start = {
  enter(_, detail) {
    place = detail;
    load();
    return true;
  },
};
