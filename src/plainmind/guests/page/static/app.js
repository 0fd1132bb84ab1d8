// The frame around the screens: who may look, where we are, the keys, and what happens while we watch.

import { begin, has, isAlone, listen, loadJson, may, session, whenOver } from "./api.js";
import { forgetText, quickNote, undoLatest } from "./changes.js";
import { button, h, icon, show } from "./dom.js";
import { openPalette } from "./palette.js";
import { find, open, reader } from "./reader.js";
import { screens } from "./screens.js";
import { search } from "./search.js";
import { confirm, dialog, empty, go, hear, isTyping, isWide, mountToasts, tell } from "./shell.js";
import { LANGUAGES, loadTexts, t } from "./words.js";

/** The places of the page: those of a group stand together. */
const PLACES = [["search", "days", "talks"], ["recalls", "start", "review"], ["entries", "tags", "map", "health"]];
const hashOf = (name) => (name === "search" ? search.hash() : `#/${name}`);

let list, detail, main, nav, live;
let current = "search";
let shown = "";

function parse() {
  const [way, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const isPast = way.endsWith("!history");
  const [screen, ...rest] = (isPast ? way.slice(0, -8) : way).split("/");
  let name = rest.map(decodeURIComponent).join("/");
  const lines = /:(\d+)(?:-(\d+))?$/.exec(name);
  if (lines) name = name.slice(0, lines.index);
  const from = lines ? Number(lines[1]) : 0;
  return { screen: screen || "search", name, from, to: lines?.[2] ? Number(lines[2]) : from, params: new URLSearchParams(query), isPast };
}

async function mayLeave() {
  if (location.hash === shown) return true;
  if (reader.isUnsaved()) {
    const wanted = location.hash;
    history.replaceState(null, "", shown);
    if (!(await confirm(t("edit.leave"), t("edit.leave.text"), t("edit.discard")))) return false;
    history.replaceState(null, "", wanted);
  }
  reader.leave();
  return true;
}

async function route() {
  if (!(await mayLeave())) return;
  const at = parse();
  if (at.screen === "find") return find(at.name);
  if (at.screen === "new") {
    go("#/", { replace: true });
    return quickNote();
  }
  shown = location.hash;
  const isNote = at.screen === "note";
  if (!isNote) current = screens[at.screen] ? at.screen : "search";
  else if (!screens[current].list) current = "search";
  const screen = screens[current];
  main.className = screen.list ? "" : "wide";
  if (screen.list && list.firstChild !== screen.list()) show(list, screen.list());
  list.hidden = !screen.list;
  let hasDetail = true;
  if (isNote) {
    if (current === "search") search.ensure();
    if (detail.firstChild !== reader.make()) show(detail, reader.make());
    open(at.name, at.from, at.to, { history: at.isPast });
  } else {
    hasDetail = Boolean(screen.enter(at, detail));
    if (!hasDetail) show(detail, welcome());
  }
  main.dataset.pane = hasDetail ? "detail" : "list";
  for (const link of nav.querySelectorAll("a[data-name]")) link.ariaCurrent = link.dataset.name === current ? "page" : null;
  document.title = `${isNote ? at.name.split("/").at(-1) : t(current)} · Plainmind`;
  return undefined;
}

/** The keys that do something here, or the first of them: a page that is only read changes nothing. */
const KEYS = [["/", "key.search"], ["↑ ↓", "key.move"], ["⏎", "key.open"], ["e", "edit", "write"], ["f", "forget", "forget"], ["h", "history"], ["w", "why.title"], ["n", "note.new", "write"], ["u", "undo", "write"], ["⌃K", "palette"], ["?", "key.help"]];
const keyList = (left = "") => h("dl.keys", KEYS.filter(([key, name, right = "read"]) => may(right) && (key !== "h" || has(name)) && !left.includes(key))
  .map(([key, name]) => h("div", h("dt", h("kbd", key)), h("dd", t(name)))));

/** The text says what this is, and in a second sentence what can be done with it. */
function welcome() {
  return h(".welcome", h("h1.brand", "Plainmind"), h("p", t("welcome").split(/(?<=[.。])/).slice(0, may("write") ? 2 : 1)), keyList("hwnu?"));
}

function help() {
  const node = dialog(t("key.help"), h("h2", t("key.help")), keyList(),
    h(".actions", h("button", { onclick: () => node.close() }, t("close"))));
}

function setTheme(theme) {
  if (theme) localStorage.setItem("plainmind.theme", theme);
  const kept = localStorage.getItem("plainmind.theme") || "system";
  document.documentElement.dataset.theme = kept;
  return kept;
}

function preferences() {
  const theme = h("select", { id: "theme", onchange: () => setTheme(theme.value) },
    ["system", "light", "dark"].map((name) => h("option", { value: name, selected: setTheme() === name }, t(`theme.${name}`))));
  const tongue = h("select", { id: "tongue", onchange: () => { localStorage.setItem("plainmind.language", tongue.value); location.reload(); } },
    Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, lang: code, selected: code === document.documentElement.lang }, name)));
  const node = dialog(t("preferences"), h("h2", t("preferences")),
    h(".pairs", h("label", { for: "theme" }, t("theme")), theme, h("label", { for: "tongue" }, t("language")), tongue,
      h("span", t("workspace")), h("code", session.workspace)),
    h(".actions", h("button.primary", { onclick: () => node.close() }, t("close"))));
}

const place = (name) => {
  const link = h("a", { href: `#/${name === "search" ? "" : name}`, title: t(name) }, icon(name), h("span", t(name)));
  link.dataset.name = name;
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(hashOf(name));
  });
  return link;
};

function more() {
  const node = dialog(t("more"), h("nav.sheet-nav", { "aria-label": t("more") }, PLACES.flat().slice(3).filter(has).map((name) => {
    const link = place(name);
    link.addEventListener("click", () => node.close());
    return link;
  }), button("settings", t("preferences"), () => { node.close(); preferences(); })));
}

function frame() {
  live = h("span.live", { role: "status", title: t("live.off") }, h("i"), h("span", t("live.off")));
  nav = h("nav.side", { "aria-label": t("places") },
    h("p.brand", "Plainmind"),
    may("write") && button("plus", t("note.new"), () => quickNote(), { class: "new", title: `${t("note.new")} (n)` }),
    PLACES.map((group) => h("ul", group.filter(has).map((name) => h("li", { class: `go-${name}` }, place(name))))),
    button("more", t("more"), more, { class: "go-more" }),
    h(".low", isAlone() ? h("span.live") : live, session.readOnly && h("span.badge", t("read.only")),
      h("button.tool", { "aria-label": t("palette"), title: `${t("palette")} (Ctrl K)`, onclick: () => openPalette(commands()) }, h("kbd", "⌃K")),
      h("button.tool", { "aria-label": t("preferences"), title: t("preferences"), onclick: preferences }, icon("settings"))));
  list = h("section.list", { "aria-label": t("list") });
  detail = h("section.detail", { "aria-label": t("detail") });
  main = h("main", list, detail);
  show(document.body, nav, main);
  mountToasts();
}

/** What the palette offers besides notes. */
const commands = () => [
  ...PLACES.flat().filter(has).map((name) => ({ name: t(name), icon: name, act: () => go(hashOf(name)) })),
  may("write") && { name: t("note.new"), icon: "plus", act: () => quickNote() },
  may("write") && { name: t("undo.latest"), icon: "history", act: undoLatest },
  may("forget") && { name: t("forget.text"), icon: "forget", act: forgetText },
  { name: t("preferences"), icon: "settings", act: preferences },
  ...["light", "dark", "system"].map((theme) => ({ name: `${t("theme")}: ${t(`theme.${theme}`)}`, icon: "settings", act: () => setTheme(theme) })),
  { name: t("key.help"), icon: "more", act: help },
].filter(Boolean);

function onKey(event) {
  if (event.isComposing) return;
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) openPalette(commands());
    return;
  }
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    const inDetail = detail.contains(document.activeElement);
    const rows = list.querySelector(".rows");
    if (inDetail && rows && isWide()) rows.focus();
    else if (main.dataset.pane === "detail" && !isWide()) history.back();
    return;
  }
  if (isTyping()) return;
  const acts = {
    "/": () => { if (current !== "search" || list.hidden) go(search.hash()); if (!isWide() && main.dataset.pane === "detail") go(search.hash()); search.focus(); },
    n: () => quickNote(),
    u: () => may("write") && undoLatest(),
    "?": help,
    ...(reader.isOpen() ? reader.keys : {}),
    ...(screens[current].keys || {}),
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
}

function locked(problem) {
  const how = problem.kind === "gone" ? t("server.gone") : t("locked.text");
  document.body.className = "";
  show(document.body, h("main.locked", empty(problem.kind === "gone" ? "health" : "lock", t(problem.kind === "gone" ? "gone.title" : "locked.title"), how,
    h("code", "plainmind page"), button(null, t("again"), () => location.reload(), { class: "primary" }))));
}

async function start() {
  setTheme();
  await loadTexts(loadJson);
  try {
    await begin();
  } catch (problem) {
    locked(problem);
    return;
  }
  whenOver(locked);
  frame();
  hear("route", route);
  addEventListener("popstate", route);
  addEventListener("hashchange", route);
  addEventListener("keydown", onKey);
  addEventListener("beforeunload", (event) => { if (reader.isUnsaved()) event.preventDefault(); });
  await route();
  // Who types at once is searching; but a telephone would bring up its keyboard, and in a host one types to the host.
  const isAsked = ["", "#/"].includes(location.hash) && !document.querySelector("dialog[open]");
  if (isAsked && isWide() && window.parent === window) search.focus();
  if (isAlone()) return;
  listen(tell, (isLive) => {
    live.classList.toggle("on", isLive);
    live.title = t(isLive ? "live.on" : "live.off");
    live.lastChild.textContent = live.title;
  });
}

start();
