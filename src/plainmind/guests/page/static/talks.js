// Conversations: read them, land on a cited line, keep a line as a note.

import { get, may } from "./api.js";
import { button, h, icon, langOf } from "./dom.js";
import { forget, quickNote } from "./changes.js";
import { makeList, pageOf, rowOf } from "./lists.js";
import { empty, fail, fillWith, talkHash } from "./shell.js";
import { ago, moment, named, t } from "./words.js";

const AT_ONCE = 200;
let list;
let isAll = false;

const make = () => {
  list = makeList({
    name: "talks",
    load: async (offset, limit) => {
      const part = await get("sessions", { offset, limit });
      return { rows: part.sessions, total: part.total };
    },
    draw: (row) => rowOf(row.title || row.name, row.updatedAt ? ago(row.updatedAt) : "", row.name),
    hash: (row) => talkHash(row.name),
    none: () => empty("talks", t("talks.none"), t("talks.none.text"), h("code", "plainmind import")),
    events: ["session.grew"],
  });
  list.refresh();
  return list;
};

function lineOf(line, name, chosen) {
  const isUser = /^user$/i.test(line.speaker);
  return h("div", { class: `say${isUser ? " user" : ""}${line.line === chosen ? " chosen" : ""}`, id: `L${line.line}` },
    h("p.who", h("a.no", { href: talkHash(name, line.line), "aria-label": t("line", { n: line.line }) }, line.line), h("b", named("who", line.speaker)), line.at && h("time", { datetime: line.at }, moment(line.at)),
      may("write") && h("button.quiet.keep", { onclick: () => quickNote(line.text) }, icon("plus"), t("talk.keep"))),
    h(".text", { lang: langOf(line.text) }, line.text.split("\n").map((text) => h("p", text || "\u200b"))));
}

function drawTalk(talk, chosen) {
  const box = h(".says");
  const name = talk.name;
  const add = (part) => {
    box.append(...part.lines.map((line) => lineOf(line, name, chosen)));
    if (!part.nextLine) return;
    const more = button(null, t("talk.more"), async () => {
      try {
        const next = await get(`sessions/${encodeURIComponent(name)}`, { from: part.nextLine, limit: AT_ONCE, all: isAll });
        more.remove();
        add(next);
      } catch (error) {
        fail(error);
      }
    });
    box.append(more);
  };
  add(talk);
  const first = talk.lines[0]?.line || 1;
  const page = pageOf(talk.title || name, [talk.updatedAt && moment(talk.updatedAt), talk.citation].filter(Boolean).join(" · "), [
    h("label.check", h("input", { type: "checkbox", checked: isAll, onchange: (event) => { isAll = event.target.checked; window.dispatchEvent(new PopStateEvent("popstate")); } }), h("span", t("talk.all"))),
    may("forget") && button("forget", t("forget"), () => forget(null, { session: talk.key || name })),
  ], first > 3 && h("a", { href: talkHash(name) }, t("talk.begin")), talk.lines.length ? box : h("p.note", t("talk.empty")));
  requestAnimationFrame(() => page.querySelector(".say.chosen")?.scrollIntoView({ block: "center" }));
  return page;
}

export const talks = {
  list: () => (list ?? make()).pane,
  enter({ name, from }, detail) {
    if (!name) return false;
    list.choose((row) => row.name === name || row.citation === name);
    fillWith(detail, () => get(`sessions/${encodeURIComponent(name)}`, { from: Math.max(1, from - 20), limit: AT_ONCE, all: isAll }), (talk) => drawTalk(talk, from));
    return true;
  },
};
