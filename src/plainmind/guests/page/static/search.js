// Search as you type: the lines that answer, why each was found, and the newest notes while nothing is asked.

import { get, may, post, session } from "./api.js";
import { button, h, icon, langOf, later, show } from "./dom.js";
import { plain } from "./markdown.js";
import { Parts, Rows } from "./rows.js";
import { empty, failure, go, hear, isWide, noteHash, placeHash } from "./shell.js";
import { ago, dayName, percent, t } from "./words.js";

const state = { query: "", filters: {}, hits: [], result: null, notes: null, turn: 0, abort: null };
let pane, input, hint, rows, holder, filterRow, filterButton;

/** The words of the question as they stand in a hit. */
export function wordsOf(hit) {
  const found = new Map();
  for (const { parts } of hit.lines || []) parts.forEach((part, i) => i % 2 && found.set(part.toLowerCase(), part));
  const words = [...found.keys()];
  for (const word of words) if (words.some((one) => one !== word && word.startsWith(one))) found.delete(word);
  return found.size ? [...found.values()] : hit.explanation?.matched || [];
}

/** Why a hit was found, in words. */
export function reasons(hit) {
  const seen = hit.explanation || {};
  const found = [];
  const words = wordsOf(hit);
  if (hit.newer) found.push(t("why.older", { place: `${hit.newer.path}:${hit.newer.line}` }));
  if (hit.older?.length) found.push(t("why.newer", { place: `${hit.older[0].path}:${hit.older[0].startLine}` }));
  if (words.length) found.push(words.slice(0, 3).map((word) => t("quoted", { word })).join(" "));
  if (seen.exactToken) found.push(t("why.exact"));
  if (seen.meaning >= 0.3) found.push(t("why.meaning"));
  else if (!found.length && seen.meaning > 0) found.push(t("why.remote"));
  if (!words.length && seen.nearby > 0) found.push(t("why.nearby"));
  if (seen.namedDay) found.push(t("why.day"));
  else if (hit.day) found.push(ago(hit.day));
  if (seen.speaker) found.push(t("why.speaker"));
  return found;
}

const lastPart = (path) => path.split("/").at(-1).replace(/\.(md|jsonl)$/, "");

/** What a place is called: the heading above it, else its day, else the file's name. */
export function placeName(row) {
  const heading = (row.headings || "").split(" › ").at(-1) || row.title;
  if (heading && !/^\d{4}-\d{2}-\d{2}$/.test(heading)) return heading;
  if (row.day && lastPart(row.path) === row.day) return dayName(row.day);
  return heading || lastPart(row.path);
}

function drawHit(index) {
  const hit = state.hits[index];
  if (!hit) return null; // the question was just taken back, and the list is still the old one
  const from = Math.max(0, hit.lines.findIndex((line) => line.line === hit.bestLine));
  const isRule = ({ parts }) => /^\s*(-{3,})?\s*$/.test(parts.join(""));
  const text = hit.lines.slice(from).filter((line) => !isRule(line)).slice(0, 3);
  const name = placeName(hit);
  return [
    h(".top", h("b", { lang: langOf(name) }, name),
      h("span.score", { title: t("score.title") }, percent(hit.score))),
    h(".snippet", { lang: langOf(hit.snippet) }, text.map(({ parts }) => [parts.map((part, i) => (i % 2 ? h("mark", part) : plain(part, i === 0))), " "])),
    h(".foot", h("span.path", h("span", hit.path), `:${hit.bestLine || hit.startLine}`),
      h("span.because", reasons(hit).join(" · "))),
  ];
}

function drawNote(index) {
  const note = state.notes.row(index);
  if (!note) return null;
  const name = placeName(note);
  return [
    h(".top", h("b", { lang: langOf(name) }, name), h("span.score", note.modifiedAt ? ago(note.modifiedAt) : "")),
    h(".snippet", { lang: langOf(note.preview || "") }, plain(note.preview || "")),
    h(".foot", h("span.path", h("span", note.path)), note.scope && note.scope !== "private" ? h("span", note.scope) : null),
  ];
}

/** The hit that lines of a note come from, for the reader to explain. */
export const hitAt = (path, line) =>
  state.query ? state.hits.find((hit) => hit.path === path && (!line || (hit.startLine <= line && line <= hit.endLine))) : null;

function place(index) {
  if (state.query) {
    const hit = state.hits[index];
    if (!hit) return null;
    const line = hit.bestLine || hit.startLine;
    return hit.source === "sessions" ? placeHash(hit) : noteHash(hit.path, line);
  }
  const note = state.notes?.row(index);
  return note ? noteHash(note.path) : null;
}

function hashOfQuery() {
  const wanted = new URLSearchParams();
  if (state.query) wanted.set("q", state.query);
  for (const [key, value] of Object.entries(state.filters)) if (value) wanted.set(key, value);
  const text = wanted.toString();
  return text ? `#/?${text}` : "#/";
}

function sayHint() {
  const result = state.result;
  if (!state.query) {
    const total = state.notes?.total ?? 0;
    show(hint, total ? t("notes.recent", { n: total }) : "");
    return;
  }
  if (!result) return;
  const said = [];
  if (state.hits.length && !result.certain) said.push(t("uncertain"));
  else if (state.hits.length) said.push(t("results", { n: state.hits.length }));
  for (const text of result.understood || []) said.push(text);
  for (const text of result.degraded || []) said.push(text);
  show(hint, said.join(" · "));
}

async function loadNotes() {
  const turn = ++state.turn;
  state.notes ??= new Parts(async (offset, limit) => {
    const part = await get("notes", { order: "changed", preview: true, offset, limit, prefix: state.filters.folder });
    return { rows: part.notes, total: part.total };
  });
  const notes = state.notes;
  notes.asked.clear();
  await notes.first();
  if (turn !== state.turn || state.query) return;
  rows.draw = drawNote;
  rows.set(notes.total, { keep: true });
  if (notes.total) show(holder, rows.node);
  else
    show(holder, empty("edit", t("empty.title"), t("empty.text"), may("write") && button("plus", t("note.new"), () => go("#/new"), { class: "primary" })));
  sayHint();
}

function wanted() {
  const { source, since, folder, tag, scope } = state.filters;
  const filters = {};
  if (folder) filters.paths = [`${folder}**`];
  if (tag) filters.tags = [tag];
  if (since) filters.since = since;
  if (scope) filters.scopes = [scope];
  const body = { query: state.query, limit: 30, explain: true };
  if (source) body.sources = [source];
  if (Object.keys(filters).length) body.filters = filters;
  return body;
}

/** Ask for what stands in the field now. */
export async function run({ keep = false } = {}) {
  state.abort?.abort();
  state.isBehind = false;
  if (!state.query) {
    state.hits = [];
    state.result = null;
    pane.removeAttribute("aria-busy");
    return loadNotes().catch((error) => show(holder, failure(error, run)));
  }
  const turn = ++state.turn;
  state.abort = new AbortController();
  pane.setAttribute("aria-busy", "true");
  try {
    const result = await post("search", wanted(), { signal: state.abort.signal });
    if (turn !== state.turn) return undefined;
    state.result = result;
    state.hits = result.results;
    rows.draw = drawHit;
    rows.set(state.hits.length, { keep });
    show(holder, state.hits.length ? rows.node : nothing());
    sayHint();
  } catch (error) {
    if (turn === state.turn && error.name !== "AbortError") {
      show(hint);
      show(holder, failure(error, run));
    }
  } finally {
    if (turn === state.turn) pane.removeAttribute("aria-busy");
  }
  return undefined;
}

function nothing() {
  const filtered = Object.values(state.filters).some(Boolean);
  return empty("search", t("nothing.title"), t(filtered ? "nothing.filtered" : "nothing.text"),
    filtered && button(null, t("filters.clear"), () => setFilters({})));
}

const runSoon = later(70, () => state.isBehind && run());

function typed() {
  state.query = input.value.trim();
  state.isBehind = true;
  pane.classList.toggle("asked", Boolean(state.query));
  if (!/^#\/(\?|$)/.test(location.hash)) history.pushState(null, "", hashOfQuery());
  else history.replaceState(null, "", hashOfQuery());
  runSoon();
}

function setFilters(filters) {
  state.filters = filters;
  state.notes = null;
  drawFilters();
  history.replaceState(null, "", hashOfQuery());
  run();
}

function select(name, label, choices) {
  const node = h("select", {
    "aria-label": label,
    onchange: () => setFilters({ ...state.filters, [name]: node.value || undefined }),
  }, choices.map(([value, text]) => h("option", { value, selected: (state.filters[name] || "") === value }, text)));
  if (state.filters[name]) node.classList.add("on");
  return node;
}

const daysBack = (n) => {
  const day = new Date(`${session.today || new Date().toISOString().slice(0, 10)}T12:00:00`);
  day.setDate(day.getDate() - n);
  return day.toISOString().slice(0, 10);
};

function drawFilters() {
  const f = state.filters;
  const tags = (state.tags || []).map((row) => [row.tag, `#${row.tag}`]);
  if (f.tag && !tags.some(([tag]) => tag === f.tag)) tags.push([f.tag, `#${f.tag}`]);
  const times = [["", t("any.day")], [daysBack(0), t("today")], [daysBack(6), t("last.week")], [daysBack(30), t("last.month")], [daysBack(365), t("last.year")]];
  if (f.since && !times.some(([day]) => day === f.since)) times.push([f.since, t("since", { day: f.since })]);
  const folders = [...new Set([...(state.folders || []), f.folder].filter(Boolean))].sort();
  show(filterRow,
    session.sources.length > 1 && select("source", t("source"), [["", t("all.sources")], ["memory", t("notes")], ["sessions", t("talks")]]),
    select("since", t("when"), times),
    folders.length > 0 && select("folder", t("folder"), [["", t("all.folders")], ...folders.map((folder) => [folder, folder])]),
    tags.length > 0 && select("tag", t("tag"), [["", t("any.tag")], ...tags]),
    select("scope", t("scope"), [["", t("any.scope")], ["private", t("scope.private")], ["shared", t("scope.shared")]]));
  filterButton.classList.toggle("on", Object.values(f).some(Boolean));
}

async function openFilters() {
  const isOpen = filterRow.hidden;
  filterRow.hidden = !isOpen;
  filterButton.setAttribute("aria-expanded", String(isOpen));
  if (!isOpen) return;
  drawFilters();
  const [tags, notes] = await Promise.allSettled([get("tags"), get("notes", { limit: 1000 })]);
  if (tags.value) state.tags = tags.value.tags.slice(0, 200);
  if (notes.value) {
    const folders = new Set();
    for (const note of notes.value.notes) {
      const parts = note.path.split("/").slice(0, -1);
      parts.forEach((_, i) => folders.add(`${parts.slice(0, i + 1).join("/")}/`));
    }
    state.folders = [...folders].slice(0, 300);
  }
  drawFilters();
}

function make() {
  input = h("input", {
    type: "search", id: "ask", class: "ask", placeholder: t("search.placeholder"), "aria-label": t("search"), autocomplete: "off",
    spellcheck: "false", enterkeyhint: "search", maxlength: "1000",
    oninput: (event) => { if (!event.isComposing) typed(); },
    oncompositionend: typed,
    onkeydown: async (event) => {
      if (event.isComposing) return;
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        if (state.isBehind) await run();
        rows.node.focus();
        if (rows.at < 0) rows.go(0);
        if (event.key === "Enter") rows.open(Math.max(0, rows.at));
      } else if (event.key === "Escape") {
        event.preventDefault();
        event.stopPropagation();
        if (!input.value) return rows.node.isConnected ? rows.node.focus() : input.blur();
        input.value = "";
        typed();
      } else if (event.key === "/" && !input.value) event.preventDefault(); // the key that leads here
      return undefined;
    },
  });
  filterRow = h(".filters", { hidden: true });
  filterButton = h("button.tool", { "aria-label": t("filters"), title: t("filters"), "aria-expanded": "false", onclick: openFilters }, icon("settings"));
  hint = h("p.hint", { role: "status" });
  rows = new Rows({
    label: t("results.label"), height: 104, draw: drawNote,
    choose: (index) => { const hash = place(index); if (hash && isWide()) go(hash, { replace: /^#\/(note|talks)/.test(location.hash) }); },
    open: (index) => { const hash = place(index); if (hash) { go(hash, { replace: isWide() && /^#\/(note|talks)/.test(location.hash) }); document.querySelector(".detail .lines")?.focus({ preventScroll: true }); } },
    want: (from, to) => { if (!state.query) state.notes?.want(from, to, () => rows.paint()); },
  });
  holder = h(".holder");
  pane = h(".search", h("h1.hidden", t("search")),
    h(".bar", h("label.field", { for: "ask" }, icon("search"), input), filterButton), filterRow, hint, holder);
  const refresh = later(250, () => { if (pane.isConnected) run({ keep: true }); });
  hear("note.changed", refresh);
  hear("note.forgotten", refresh);
  hear("index", refresh);
  hear("reset", refresh);
  return pane;
}

export const search = {
  list: () => pane ?? make(),
  /** Take query and filters from the address. */
  enter(route) {
    const { q = "", ...filters } = Object.fromEntries(route.params);
    const known = {};
    for (const key of ["source", "since", "folder", "tag", "scope"]) if (filters[key]) known[key] = filters[key];
    const isSame = q === state.query && JSON.stringify(known) === JSON.stringify(state.filters);
    if (isSame && (state.result || state.notes)) return;
    if (JSON.stringify(known) !== JSON.stringify(state.filters)) state.notes = null;
    state.query = q.trim();
    state.filters = known;
    if (input.value.trim() !== state.query) input.value = q;
    if (Object.keys(known).length && filterRow.hidden) openFilters();
    run();
  },
  /** Have something in the list, whatever it is. */
  ensure() {
    search.list();
    if (!state.result && !state.notes) run();
  },
  focus() {
    input.focus();
    input.select();
  },
  hash: hashOfQuery,
};
