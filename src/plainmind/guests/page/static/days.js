// Day by day: a strip of what happened, and each day's notes, conversations, changes and recalls.

import { get, session } from "./api.js";
import { did } from "./changes.js";
import { h, icon, show } from "./dom.js";
import { linesOf, makeList, pageOf, placeLinks, rowOf, section } from "./lists.js";
import { empty, fillWith, go, noteHash, talkHash } from "./shell.js";
import { dayName, moment, monthName, t } from "./words.js";

let list, strip, month;

const total = (row) => (row.lines || 0) + 3 * (row.sessions || 0) + (row.changes || 0) + (row.recalls || 0);
const counts = (row) =>
  ["lines", "sessions", "changes", "recalls"].filter((key) => row[key]).map((key) => t(`day.${key}`, { n: row[key] })).join(" · ");

function drawStrip() {
  const rows = new Map(list.all().map((row) => [row.day, row]));
  month ??= [...rows.keys()][0]?.slice(0, 7) || (session.today || new Date().toISOString()).slice(0, 7);
  const [year, number] = month.split("-").map(Number);
  const last = new Date(year, number, 0).getDate();
  const most = Math.max(1, ...[...rows.values()].map(total));
  const move = (by) => {
    const date = new Date(year, number - 1 + by, 15);
    month = `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}`;
    drawStrip();
  };
  show(strip,
    h(".month", h("button.tool", { "aria-label": t("month.before"), onclick: () => move(-1) }, icon("back")),
      h("span", monthName(month)), h("button.tool", { "aria-label": t("month.after"), onclick: () => move(1) }, icon("next"))),
    h(".strip", { "aria-hidden": "true" }, Array.from({ length: last }, (_, i) => {
      const day = `${month}-${String(i + 1).padStart(2, "0")}`;
      const row = rows.get(day);
      const height = row ? 18 + Math.round(82 * Math.sqrt(total(row) / most)) : 6;
      return h("i", { class: row ? "on" : "", title: row ? `${dayName(day)}: ${counts(row)}` : null, onclick: row && (() => go(`#/days/${day}`)) }, h("i", { style: { height: `${height}%` } }));
    })));
}

function make() {
  strip = h(".months");
  list = makeList({
    name: "days", top: strip,
    load: async () => {
      const { days } = await get("days", { from: "1970-01-01", to: "2999-12-31" });
      const rows = days.sort((a, b) => (a.day < b.day ? 1 : -1));
      queueMicrotask(() => setTimeout(drawStrip));
      return { rows, total: rows.length };
    },
    draw: (row) => rowOf(dayName(row.day), "", counts(row)),
    hash: (row) => `#/days/${row.day}`,
    none: () => empty("days", t("days.none"), t("empty.text")),
    events: ["note.changed", "note.forgotten", "session.grew", "recall"],
  });
  list.refresh();
  return list;
}

function drawDay(day) {
  return pageOf(dayName(day.day), counts({ lines: day.notes.reduce((n, note) => n + note.text.split("\n").filter((line) => line.trim() && line[0] !== "#").length, 0), sessions: day.sessions.length, changes: day.changes.length, recalls: day.recalls.length }), null,
    day.notes.map((note) => h("section", h("h2", h("a", { href: noteHash(note.path) }, note.path)), linesOf(note.path, note.text))),
    section(t("talks"), day.sessions.length && placeLinks(day.sessions.map((row) => [talkHash(row.name), row.title || row.name, moment(row.updatedAt)]))),
    section(t("day.changed"), day.changes.length && placeLinks(day.changes.map((row) => [`${noteHash(row.path)}!history`, row.path, `${did(row)}, ${moment(row.at)}`]))),
    section(t("recalls"), day.recalls.length && placeLinks(day.recalls.map((row) => [`#/recalls/${row.id}`, row.question, [row.who, moment(row.at)].filter(Boolean).join(", ")]))));
}

export const days = {
  list: () => (list ?? make()).pane,
  enter({ name }, detail) {
    if (!name) return false;
    month = name.slice(0, 7);
    drawStrip();
    list.choose((row) => row.day === name);
    fillWith(detail, () => get(`days/${name}`), drawDay);
    return true;
  },
};
