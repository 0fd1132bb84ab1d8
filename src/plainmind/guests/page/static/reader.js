// A note with its line numbers: read, choose lines, correct with a diff before saving, look at what it was before.

import { encoded, get, has, may, note as load, post, put } from "./api.js";
import { button, h, icon, langOf, show } from "./dom.js";
import { merge } from "./diff.js";
import { did, drawDiff, forget, forgetText, offerUndo } from "./changes.js";
import { drawLine, finder, kinds, markIn } from "./markdown.js";
import { hitAt, reasons, wordsOf } from "./search.js";
import { confirm, empty, fail, failure, fillWith, go, hear, isTyping, noteHash, placeHash, sentence, tell, toast } from "./shell.js";
import { ago, moment, named, percent, t } from "./words.js";

const AT_ONCE = 800;

const at = { path: "", note: null, from: 0, to: 0, mode: "read", shown: "", hit: null, turn: 0 };
let lines, body, head, pill, foot, node;

const links = {
  note: (name, part) => `#/find/${encodeURIComponent(name || at.path)}${part ? encodeURIComponent(part) : ""}`,
  path: (path) => {
    const base = new URL(`http://x/${encoded(at.path)}`);
    const [file] = path.split("#");
    if (!file) return noteHash(at.path);
    return `#/note${new URL(file, base).pathname}`;
  },
  tag: (tag) => `#/?tag=${encodeURIComponent(tag)}`,
};

function drawHead() {
  const { note, path } = at;
  const crumbs = path.split("/");
  const file = crumbs.pop();
  const edit = may("write") && note?.writable !== false;
  show(head,
    h("button.tool.back", { "aria-label": t("back"), onclick: () => history.back() }, icon("back")),
    h(".crumbs",
      h("h1.ways", crumbs.length ? h("span", crumbs.map((part) => [h("span", { lang: langOf(part) }, part), h("span.slash", "/")])) : null, h("span", { lang: langOf(file) }, file)),
      note && h("p.meta", [note.modifiedAt && t("changed", { when: ago(note.modifiedAt) }), t("lines", { n: note.totalLines }), note.scope && named("scope", note.scope), note.writable === false && t("read.only")].filter(Boolean).join(" · "))),
    at.mode === "read" && h(".tools", { role: "toolbar", "aria-label": t("actions") },
      edit && button("edit", t("edit"), startEdit, { title: `${t("edit")} (e)` }),
      may("forget") && button("forget", t("forget"), forgetChosen, { title: `${t("forget")} (f)` }),
      has("history") && button("history", t("history"), openHistory, { title: `${t("history")} (h)` }),
      has("graph") && button("graph", t("graph"), () => go(`#/graph/${encoded(path)}`))));
}

function drawWhy() {
  const hit = at.hit;
  if (!hit?.explanation) return null;
  const seen = hit.explanation;
  const bars = [["why.words", seen.coverage], ["why.closeness", seen.meaning], ["why.passage", seen.passage], ["why.fresh", seen.recency]].filter(([, value]) => typeof value === "number");
  const node = h("details.why", { open: localStorage.getItem("plainmind.why") === "open" },
    h("summary", h("b", t("why.title")), h("span", reasons(hit).join(" · ")), h("span.score", t("why.sure", { percent: percent(hit.score) }))),
    h(".bars", bars.map(([name, value]) => h(".bar", h("span", t(name)),
      h("i", { role: "img", "aria-label": percent(Math.min(1, value)) }, h("i", { style: { width: `${Math.round(100 * Math.min(1, value))}%` } }))))),
    hit.also?.length ? h("p", t("why.also"), " ", hit.also.map((place) => [h("a", { href: placeHash(place) }, `${place.path}:${place.startLine}`), " "])) : null);
  node.addEventListener("toggle", () => localStorage.setItem("plainmind.why", node.open ? "open" : "shut"));
  return node;
}

function lineNode(text, kind, number) {
  const row = h(".line", { id: `L${number}` },
    h("a.no", { href: noteHash(at.path, number), tabindex: "-1", "aria-label": t("line", { n: number }) }, number),
    drawLine(text, kind, links));
  row.dataset.line = number;
  return row;
}

function drawLines() {
  const texts = at.note.text.replace(/\n$/, "").split("\n");
  const all = [...kinds(texts)];
  const find = at.hit ? finder(wordsOf(at.hit)) : null;
  at.texts = texts;
  if (!at.note.text.trim()) return show(lines, empty("edit", t("note.empty")));
  show(lines);
  const add = (from, to) => {
    const part = document.createDocumentFragment();
    for (let i = from; i < Math.min(to, texts.length); i += 1) {
      const row = lineNode(texts[i], all[i], i + 1);
      if (find && at.hit.startLine <= i + 1 && i + 1 <= at.hit.endLine) markIn(row.lastChild, find);
      part.append(row);
    }
    lines.append(part);
    if (to >= texts.length) return;
    const rest = h(".rest", "…");
    lines.append(rest);
    const watch = new IntersectionObserver((seen) => {
      if (!seen.some((entry) => entry.isIntersecting)) return;
      watch.disconnect();
      rest.remove();
      add(to, to + AT_ONCE);
    }, { rootMargin: "1500px" });
    watch.observe(rest);
  };
  add(0, Math.max(AT_ONCE, at.to + 200));
  return lines;
}

function mark({ scroll = false } = {}) {
  for (const row of lines.querySelectorAll(".line.chosen")) {
    row.classList.remove("chosen");
    row.removeAttribute("aria-current");
  }
  for (let i = at.from; at.from && i <= at.to; i += 1) {
    const row = lines.querySelector(`#L${i}`);
    row?.classList.add("chosen");
    row?.setAttribute("aria-current", "true");
    if (i === at.from && scroll) row?.scrollIntoView({ block: scroll });
  }
  drawPill();
}

function drawPill() {
  if (!at.from || at.mode !== "read") return show(pill);
  const name = at.to > at.from ? t("lines.range", { from: at.from, to: at.to }) : t("line", { n: at.from });
  return show(pill, h(".pill", { role: "toolbar", "aria-label": name }, h("b", name),
    may("write") && at.note?.writable !== false && button("edit", t("edit"), startEdit),
    may("forget") && button("forget", t("forget"), forgetChosen),
    button("link", t("copy.link"), copyLink),
    h("button.x", { "aria-label": t("close"), onclick: () => choose(0, 0) }, icon("close"))));
}

function choose(from, to, how = {}) {
  at.from = Math.max(0, Math.min(from, to));
  at.to = Math.min(at.texts?.length || 0, Math.max(from, to));
  history.replaceState(null, "", noteHash(at.path, at.from, at.to));
  mark(how);
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(`${location.origin}/${noteHash(at.path, at.from, at.to)}`);
    toast(t("copied"));
  } catch {
    toast(noteHash(at.path, at.from, at.to));
  }
}

function forgetChosen() {
  if (!may("forget")) return;
  if (!at.from) {
    toast(t("forget.choose"), { action: t("forget.text"), act: forgetText });
    return;
  }
  forget(`${at.path}#L${at.from}-L${at.to}`);
}

// ---- correct -------------------------------------------------------------------------------------------------------

function startEdit() {
  if (!may("write") || !at.note || at.note.writable === false || at.mode === "edit") return;
  at.base = at.note;
  editText(at.note.text);
}

function editText(text) {
  at.mode = at.shown = "edit";
  drawHead();
  show(pill);
  const field = h("textarea.editor", { "aria-label": t("edit.label", { path: at.path }), spellcheck: "true", value: text });
  const problem = h("p.problem", { role: "alert" });
  const review = () => (field.value === at.base.text ? stopEdit() : reviewEdit(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      review();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      leaveEdit(field.value);
    }
  });
  at.draft = () => field.value;
  show(body, h(".edit", field, problem,
    h(".actions.sticky", h("span.grow"), button(null, t("cancel"), () => leaveEdit(field.value)),
      h("button.primary", { onclick: review }, t("edit.review"), h("kbd", "⌃S")))));
  const line = at.from || 1;
  const place = text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const end = text.indexOf("\n", place);
  field.focus();
  field.setSelectionRange(at.from ? (end < 0 ? text.length : end) : 0, at.from ? (end < 0 ? text.length : end) : 0);
  const grow = () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + 4}px`;
  };
  field.addEventListener("input", grow);
  grow();
  const height = field.scrollHeight / Math.max(1, text.split("\n").length);
  body.scrollTop = Math.max(0, (line - 6) * height);
}

async function leaveEdit(text) {
  if (text !== at.base.text && !(await confirm(t("edit.leave"), t("edit.leave.text"), t("edit.discard")))) return;
  stopEdit();
}

function stopEdit() {
  at.mode = "read";
  at.draft = null;
  open(at.path, at.from, at.to, { fresh: true });
}

function reviewEdit(text) {
  at.draft = () => text;
  const save = h("button.primary", { onclick: () => saveEdit(text) }, t("save"), h("kbd", "⏎"));
  show(body, h(".edit", h("h2", t("edit.diff")), drawDiff(at.base.text, text),
    h(".actions.sticky", h("span.grow"), button(null, t("edit.back"), () => editText(text)), save)));
  save.focus();
}

async function saveEdit(text, allowShrink = false) {
  try {
    const saved = await put(at.path, text, at.base.etag, allowShrink);
    const old = at.base.text;
    stopEdit();
    tell("note.changed", { path: at.path, own: true });
    offerUndo(t("saved"), at.path, old, saved.etag);
  } catch (error) {
    if (error.status === 412) return showConflict(text, error.body.current);
    if (error.kind === "would-shrink") {
      if (await confirm(t("shrink.title"), sentence(error), t("save"))) return saveEdit(text, true);
      return undefined;
    }
    return fail(error);
  }
  return undefined;
}

/** Somebody else saved first: show what they wrote, and put ours on top where that is safe. */
function showConflict(mine, current) {
  if (!current) {
    at.base = { ...at.base, etag: null, text: "" };
    show(body, h(".edit", h("h2", t("conflict.gone")), drawDiff("", mine),
      h(".actions.sticky", button(null, t("conflict.theirs"), stopEdit),
        h("button.primary", { onclick: () => saveEdit(mine) }, t("conflict.again")))));
    return;
  }
  const base = at.base.text.split("\n");
  const joined = merge(base, mine.split("\n"), current.text.split("\n"))?.join("\n") ?? null;
  const theirs = h("details", h("summary", t("conflict.what")), drawDiff(at.base.text, current.text));
  at.base = { ...at.base, text: current.text, etag: current.etag };
  const next = joined ?? mine;
  at.draft = () => next;
  const primary = joined === null
    ? h("button.primary", { onclick: () => editText(mine) }, t("conflict.edit"))
    : h("button.primary", { onclick: () => saveEdit(joined) }, t("conflict.save"));
  show(body, h(".edit.conflict", h("h2", t("conflict.title")),
    h("p", t(joined === null ? "conflict.clash" : "conflict.fits")), theirs, h("h3", t("conflict.yours")), drawDiff(current.text, next),
    h(".actions.sticky", h("span.grow"), button(null, t("conflict.theirs"), stopEdit),
      joined !== null && button(null, t("conflict.edit"), () => editText(joined)), primary)));
  primary.focus();
}

// ---- what it was before --------------------------------------------------------------------------------------------

function openHistory() {
  at.mode = at.shown = "history";
  history.replaceState(null, "", `${noteHash(at.path, at.from, at.to)}!history`);
  drawHead();
  show(pill);
  const leave = () => { at.mode = "read"; go(noteHash(at.path, at.from, at.to), { replace: true }); };
  const list = h("ol.versions");
  const side = h(".version");
  show(body, h(".past", h(".title", h("h2", t("history")), button("close", t("history.close"), leave, { class: "quiet" })), list, side));
  let chosen = null;
  const pick = (version, button) => {
    chosen?.setAttribute("aria-pressed", "false");
    chosen = button;
    button.setAttribute("aria-pressed", "true");
    fillWith(side, () => get(`history/${version.id}`), (full) => drawVersion(version, full));
  };
  fillWith(list, () => get("history", { path: at.path, limit: 100 }), ({ versions }) => {
    if (!versions.length) return h("li", h("p.note", t("history.none")));
    const items = versions.map((version) => {
      const b = h("button", { "aria-pressed": "false", onclick: () => pick(version, b) },
        h("b", did(version)), h("time", { datetime: version.at }, moment(version.at)));
      return h("li", b);
    });
    queueMicrotask(() => { const first = list.querySelector("button"); first?.click(); first?.focus(); });
    return items;
  });
}

function drawVersion(version, full) {
  if (!version.available && full.text == null) return h("p.note", t("history.gone"));
  const isAppend = version.operation === "append";
  const was = isAppend && full.before == null ? null : full.before;
  const actions = [];
  if (may("write") && version.available && !isAppend && full.text !== at.note?.text)
    actions.push(button("history", t("restore"), () => restore(version.id), { class: "primary" }));
  const shown = isAppend ? drawDiff(full.before ?? "", full.before == null ? full.text : `${full.before.replace(/\n$/, "")}\n${full.text}`) : drawDiff(was ?? "", full.text ?? "");
  const parts = [h("h3", t("history.did")), shown];
  if (!isAppend && full.text !== at.note?.text) parts.push(h("h3", t("history.restore")), drawDiff(at.note?.text ?? "", full.text ?? ""));
  return [parts, actions.length ? h(".actions.sticky", h("span.grow"), actions) : null];
}

async function restore(id) {
  const old = at.note;
  try {
    const made = await post(`history/${id}/restore`);
    at.note = null;
    go(noteHash(at.path), { replace: true });
    tell("note.changed", { path: at.path, own: true });
    if (old) offerUndo(t("restored"), at.path, old.text, made.etag);
    else toast(t("restored"));
  } catch (error) {
    fail(error);
  }
}

// ---- what leads here -----------------------------------------------------------------------------------------------

async function drawFoot() {
  const { path, turn } = at;
  show(foot);
  try {
    const found = await get(`links/${encoded(path)}`);
    if (turn !== at.turn || at.mode !== "read") return;
    show(foot,
      found.tags?.length ? h("p.tagline", found.tags.map((tag) => [h("a.tag", { href: links.tag(tag) }, `#${tag}`), " "])) : null,
      found.backlinks?.length ? h("section.backlinks", h("h2", t("backlinks", { n: found.backlinks.length })),
        h("ul", found.backlinks.slice(0, 100).map((link) => h("li", h("a", { href: noteHash(link.path, link.line) }, h("b", link.path), h("span", { lang: langOf(link.text) }, link.text.replace(/<!--.*?-->/g, "").trim())))))) : null);
  } catch {
    // A note is readable without knowing who links to it.
  }
}

// ---- open ----------------------------------------------------------------------------------------------------------

/** Show lines of a note. `fresh` loads it again even when it is the one that is open. */
export async function open(path, from = 0, to = from, { fresh = false, history: past = false } = {}) {
  const same = at.path === path && at.note && !fresh;
  if (at.draft && at.path === path && !fresh) return;
  const turn = ++at.turn;
  const scrollTop = fresh && at.path === path ? body.scrollTop : null;
  const hit = hitAt(path, from);
  try {
    const note = same ? at.note : await load(path);
    if (turn !== at.turn) return;
    if (fresh && at.mode === "history" && at.path === path) {
      at.note = note;
      return;
    }
    const moved = at.from !== from || at.to !== to;
    const again = hit !== at.hit;
    // All at once: what a key does now is done to the note that is on the screen.
    Object.assign(at, { path, note, from, to, hit, draft: null });
    if (past) {
      openHistory();
      return;
    }
    at.mode = "read";
    drawHead();
    if (!same || again || at.shown !== "read") {
      at.shown = "read";
      show(body, drawWhy(), lines, foot);
      drawLines();
      drawFoot();
      body.scrollTop = scrollTop ?? 0;
    }
    at.to = Math.min(at.to, at.texts.length);
    mark({ scroll: from && scrollTop === null && (moved || !same) ? "center" : false });
  } catch (error) {
    if (turn !== at.turn) return;
    Object.assign(at, { path, from: 0, to: 0, note: null, draft: null, mode: "read", shown: "" });
    drawHead();
    show(pill);
    if (error.status === 404) show(body, empty("forget", t("note.missing"), path, has("history") && button("history", t("history"), openHistory)));
    else show(body, failure(error, () => open(path, from, to, { fresh: true })));
  }
}

function key(event) {
  if (at.mode !== "read" || isTyping() || event.ctrlKey || event.metaKey || event.altKey) return;
  const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
  if (by && at.texts) {
    event.preventDefault();
    const last = at.texts.length;
    if (event.shiftKey && at.from) choose(at.from, Math.max(at.from, Math.min(last, at.to + by)), { scroll: "nearest" });
    else {
      const next = Math.max(1, Math.min(last, (at.from || 0) + by));
      choose(next, next, { scroll: "nearest" });
    }
  }
}

/** Where a wiki link's name leads: the note that has it. */
export async function find(name) {
  try {
    const [title] = name.split("#");
    const { results } = await post("search", { query: title, limit: 5 });
    const bare = (path) => path.split("/").at(-1).replace(/\.md$/, "").toLowerCase();
    const { links: known } = at.path ? await get(`links/${encoded(at.path)}`).catch(() => ({ links: [] })) : { links: [] };
    const leads = known.find((link) => link.path && link.target.split("#")[0].toLowerCase() === title.toLowerCase());
    if (leads) return go(noteHash(leads.path, leads.targetLine || 0), { replace: true });
    const best = results.find((hit) => bare(hit.path) === title.toLowerCase());
    if (best) return go(noteHash(best.path), { replace: true });
    return go(`#/?q=${encodeURIComponent(title)}`, { replace: true });
  } catch (error) {
    return fail(error);
  }
}

export const reader = {
  make() {
    if (node) return node;
    head = h("header.head");
    lines = h(".lines", { tabindex: "0", role: "group", "aria-label": t("text.of.note"), onkeydown: key });
    lines.addEventListener("click", (event) => {
      const number = event.target.closest("a.no");
      if (!number) return;
      event.preventDefault();
      const n = Number(number.parentNode.dataset.line);
      if (event.shiftKey && at.from) choose(Math.min(at.from, n), Math.max(at.from, n));
      else if (at.from === n && at.to === n) choose(0, 0);
      else choose(n, n);
    });
    foot = h("footer.about");
    body = h(".body", lines, foot);
    pill = h(".pills");
    node = h("article.reader", head, body, pill);
    const changed = ({ path, own, etag }) => {
      if (path !== at.path || own || (etag && etag === at.note?.etag)) return;
      if (at.draft) toast(t("conflict.live"));
      else if (node.isConnected && at.mode === "read") open(at.path, at.from, at.to, { fresh: true });
    };
    hear("note.changed", changed);
    hear("note.forgotten", ({ path }) => { if (path === at.path) { at.from = at.to = 0; changed({ path }); } });
    hear("reset", () => changed({ path: at.path }));
    return node;
  },
  /** Single keys that act on the open note. */
  keys: {
    e: startEdit,
    f: forgetChosen,
    h: () => at.note && has("history") && openHistory(),
    w: () => { const why = node?.querySelector("details.why"); if (why) why.open = !why.open; },
  },
  /** Whether leaving now would lose a text. */
  isUnsaved: () => Boolean(at.draft && at.draft() !== at.base.text),
  isOpen: () => Boolean(node?.isConnected),
  leave() {
    at.draft = null;
    at.mode = "read";
  },
};
