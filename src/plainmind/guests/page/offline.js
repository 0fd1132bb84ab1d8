// The page without a server: answers what the screens ask from the notes that stand in the same file.

import { answerWith, Problem } from "./api.js";

const kept = JSON.parse(document.getElementById("kept").textContent);
const notes = kept.notes.map((note) => ({ ...note, lines: note.text.replace(/\n$/, "").split("\n") }));
const fold = (text) => text.normalize("NFKC").toLowerCase();

/** The words of a question: whole words, and of Chinese, Japanese and Korean each pair of characters. */
function termsOf(query) {
  const terms = new Set();
  for (const word of fold(query).match(/[\p{L}\p{N}_]+/gu) || []) {
    if (!/[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/.test(word)) terms.add(word.length > 4 ? word.slice(0, -1) : word);
    else if (word.length < 3) terms.add(word);
    else for (let i = 0; i + 2 <= word.length; i += 1) terms.add(word.slice(i, i + 2));
  }
  return [...terms];
}

function partsOf(line, terms) {
  const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return escaped.length ? line.split(new RegExp(`((?:${escaped.join("|")})+[\\p{L}\\p{N}]*)`, "iu")) : [line];
}

function headingAbove(note, index) {
  for (let i = index; i >= 0; i -= 1) if (/^#{1,6}\s/.test(note.lines[i])) return note.lines[i].replace(/^#+\s+/, "");
  return "";
}

/** Lines by how much of the question they have; a rare word counts more than a frequent one. */
function search({ query, limit = 30, filters = {} }) {
  const terms = termsOf(query);
  const among = notes.filter((note) =>
    (!filters.tags || filters.tags.some((tag) => note.tags.includes(tag))) &&
    (!filters.since || (note.day && note.day >= filters.since)) &&
    (!filters.scopes || filters.scopes.includes(note.scope)) &&
    (!filters.paths || filters.paths.some((path) => note.path.startsWith(path.replace(/\*+$/, "")))));
  const found = [];
  const seen = new Map(terms.map((term) => [term, 0]));
  for (const note of among)
    note.lines.forEach((line, index) => {
      const text = fold(`${line} ${/^#/.test(line) ? note.path : ""}`);
      const has = terms.filter((term) => text.includes(term));
      for (const term of has) seen.set(term, seen.get(term) + 1);
      if (has.length) found.push({ note, index, has });
    });
  const weight = new Map(terms.map((term) => [term, 1 / Math.sqrt(1 + (seen.get(term) || 0))]));
  const sum = (some) => some.reduce((all, term) => all + weight.get(term), 0);
  const whole = sum(terms.filter((term) => seen.get(term))) || 1;
  const share = terms.filter((term) => seen.get(term)).length / Math.max(1, terms.length);
  const results = found
    .map((hit) => ({ ...hit, score: (0.95 * share * sum(hit.has)) / whole }))
    .sort((a, b) => b.score - a.score || (a.note.day < b.note.day ? 1 : -1))
    .slice(0, limit)
    .map(({ note, index, has, score }) => ({
      path: note.path, startLine: index + 1, endLine: index + 1, bestLine: index + 1, score, source: "memory", headings: headingAbove(note, index),
      day: note.day, snippet: note.lines[index], lines: [{ line: index + 1, parts: partsOf(note.lines[index], has) }], also: [],
      explanation: { matched: has, coverage: score },
    }));
  return { query, results, certain: results[0]?.score > 0.45, understood: [], degraded: [] };
}

const row = ({ path, day, scope, title, text }) => ({
  path, day, scope, title, preview: text.split("\n").filter((line) => line && !/^(#|---)/.test(line)).join(" ").slice(0, 200),
});
const bare = (path) => fold(path.split("/").at(-1).replace(/\.md$/, ""));

function linksOf(path) {
  const own = notes.find((note) => note.path === path);
  const leads = (name) => notes.find((note) => [bare(note.path), fold(note.title || "")].includes(fold(name)))?.path ?? null;
  const found = (note) => note.lines.flatMap((line, index) =>
    [...line.matchAll(/\[\[([^\]|#]+)/g)].map(([, target]) => ({ path: leads(target), target, line: index + 1, text: line })));
  const backlinks = notes.filter((note) => note !== own).flatMap((note) =>
    found(note).filter((link) => link.path === path).map((link) => ({ path: note.path, line: link.line, text: link.text })));
  return { path, tags: own?.tags || [], links: own ? found(own) : [], backlinks };
}

function days() {
  const by = new Map();
  for (const note of notes) {
    if (!note.day) continue;
    const day = by.get(note.day) || { day: note.day, notes: 0, lines: 0 };
    by.set(note.day, { ...day, notes: day.notes + 1, lines: day.lines + note.lines.filter((line) => /^\s*[-*]/.test(line)).length });
  }
  return { days: [...by.values()] };
}

function tags() {
  const counts = new Map();
  for (const note of notes) for (const tag of note.tags) counts.set(tag, (counts.get(tag) || 0) + 1);
  return { tags: [...counts].map(([tag, n]) => ({ tag, notes: n })).sort((a, b) => b.notes - a.notes) };
}

function answer(method, address, body) {
  const [way, query = ""] = address.split("?");
  const asked = Object.fromEntries(new URLSearchParams(query));
  const [, kind, ...rest] = way.split("/").slice(1).map(decodeURIComponent);
  const name = rest.join("/");
  if (way.startsWith("/texts/")) return kept.texts[kind];
  if (kind === "session") return { rights: ["read"], readOnly: true, sources: ["memory"], today: kept.today, workspace: kept.title, places: ["search", "days", "tags"] };
  if (kind === "search") return search(body);
  if (kind === "notes" && !name) {
    const all = notes.filter((note) => note.path.startsWith(asked.prefix || ""));
    const from = Number(asked.offset || 0);
    return { notes: all.slice(from, from + Number(asked.limit || 100)).map(row), total: all.length, next: null };
  }
  const note = notes.find((one) => one.path === name);
  if (kind === "notes" && note) return { ...note, etag: "", totalLines: note.lines.length, writable: false };
  if (kind === "links") return linksOf(name);
  if (kind === "days") return name ? { day: name, notes: notes.filter((one) => one.day === name), sessions: [], changes: [], recalls: [] } : days();
  if (kind === "tags") return name ? { tag: name, notes: notes.filter((one) => one.tags.includes(name)) } : tags();
  throw new Problem(404, { type: "urn:plainmind:not-found", detail: name });
}

answerWith(async (...asked) => answer(...asked));
await import("./app.js");
