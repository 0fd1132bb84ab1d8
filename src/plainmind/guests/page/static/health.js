// Whether all is well: what is known, where it is kept, what leaves this machine, and what could be wrong.

import { get, session } from "./api.js";
import { h, icon } from "./dom.js";
import { pageOf, section } from "./lists.js";
import { fillWith } from "./shell.js";
import { number, t } from "./words.js";

const readable = (value) =>
  value === null || value === undefined || value === "" ? "–" : typeof value === "number" ? number(value) : Array.isArray(value) ? value.map(readable).join(", ") || "–" : typeof value === "object" ? Object.entries(value).map(([key, inner]) => `${key} ${readable(inner)}`).join(", ") : String(value);

const pairs = (rows) => h("dl.facts", rows.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => h("div", h("dt", name), h("dd", value))));

function draw(status) {
  const checks = h("div");
  const settings = h("div");
  fillWith(checks, () => get("doctor"), (found) => h("ul.checks", found.checks.map((check) => h("li", { class: check.verdict },
    h("i", { role: "img", "aria-label": t(`verdict.${check.verdict}`) }), h("div", h("b", check.name), h("p", check.detail), check.hint && h("p.note", check.hint))))));
  const more = h("details.plain-details", h("summary", t("settings")), settings);
  more.addEventListener("toggle", () => { if (more.open && !settings.firstChild) fillWith(settings, () => get("settings"), (found) => pairs(found.settings.map((row) => [row.key, `${readable(row.value)}  (${readable(row.origin)})`]))); });
  const leaves = status.sendsTextTo ?? status.leaves;
  const goes = Array.isArray(leaves) ? leaves.length > 0 : Boolean(leaves);
  return pageOf(t("health"), session.workspace, null,
    h("div", { class: goes ? "leaves goes" : "leaves" }, icon("lock"), h("p", goes ? t("leaves", { where: readable(leaves) }) : t("leaves.nothing"))),
    section(t("known"), pairs([[t("count.files"), readable(status.files)], [t("count.passages"), readable(status.chunks)], [t("known.model"), readable(status.embedding?.model ?? status.model)], [t("known.store"), readable(status.store?.driver ?? status.store)], [t("known.pending"), number((status.pending?.changed || 0) + (status.pending?.missing || 0))], [t("workspace"), status.workspaceDir ?? session.workspace], [t("version"), session.version]])),
    section(t("checks"), checks), h("section", more));
}

export const health = {
  enter(_, detail) {
    fillWith(detail, () => get("status"), draw);
    return true;
  },
};
