// Markdown drawn line by line as nodes: every line of the file is a line on the screen, and keeps its number.

import { h, langOf } from "./dom.js";

const INLINE = new RegExp(
  [
    "(`+)(?<code>.+?)\\1",
    "!\\[(?<alt>[^\\]]*)\\]\\((?<src>[^)\\s]*)[^)]*\\)",
    "!?\\[\\[(?<wiki>[^\\]|#]*)(?<part>#[^\\]|]*)?(?:\\|(?<as>[^\\]]*))?\\]\\]",
    "\\[(?<label>[^\\]]+)\\]\\((?<to>[^)\\s]+)[^)]*\\)",
    "\\*\\*(?<bold>\\S(?:.*?\\S)?)\\*\\*",
    "~~(?<gone>\\S(?:.*?\\S)?)~~",
    "(?<![\\w*])\\*(?<em>[^\\s*](?:[^*]*[^\\s*])?)\\*(?![\\w*])",
    "(?<![\\w_])_(?<em2>[^\\s_](?:[^_]*[^\\s_])?)_(?![\\w_])",
    "(?<url>https?://[^\\s<>\"')\\]]+[^\\s<>\"')\\].,;:!?])",
    "(?<![\\w/#&])#(?<tag>[\\p{L}_][\\p{L}\\p{N}_/-]*)",
    "(?<id><!-- m:[\\w-]+ -->)",
    "(?<comment><!--.*?-->)",
  ].join("|"),
  "gu",
);

const outside = (href, text) => h("a", { href, target: "_blank", rel: "noreferrer noopener" }, text);

/** The nodes of a text inside a line. `links` says where a name or a path leads; see `drawLines`. */
export function inline(text, links, depth = 0) {
  const nodes = [];
  let end = 0;
  for (const found of depth > 4 ? [] : text.matchAll(INLINE)) {
    if (found.index > end) nodes.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    const g = found.groups;
    const again = (inner) => inline(inner, links, depth + 1);
    if (g.code !== undefined) nodes.push(h("code", g.code));
    else if (g.src !== undefined) nodes.push(h("span.image", { title: g.src }, g.alt || g.src));
    else if (g.wiki !== undefined) {
      const label = g.as || g.wiki + (g.part || "");
      nodes.push(h("a.wiki", { href: links.note(g.wiki, g.part) }, label));
    } else if (g.to !== undefined) {
      if (/^https?:\/\//i.test(g.to)) nodes.push(outside(g.to, again(g.label)));
      else if (/^[a-z][a-z0-9+.-]*:/i.test(g.to)) nodes.push(found[0]);
      else nodes.push(h("a", { href: links.path(g.to) }, again(g.label)));
    } else if (g.bold !== undefined) nodes.push(h("strong", again(g.bold)));
    else if (g.gone !== undefined) nodes.push(h("del", again(g.gone)));
    else if (g.em !== undefined || g.em2 !== undefined) nodes.push(h("em", again(g.em ?? g.em2)));
    else if (g.url !== undefined) nodes.push(outside(g.url, g.url.replace(/^https?:\/\//, "")));
    else if (g.tag !== undefined) nodes.push(h("a.tag", { href: links.tag(g.tag) }, `#${g.tag}`));
    else if (g.comment !== undefined) nodes.push(h("span.comment", g.comment));
    // What is left is the name of a note: for programs, and nothing to read.
  }
  if (end < text.length) nodes.push(text.slice(end));
  return nodes;
}

const INDENT = (spaces) => Math.min(6, Math.floor(spaces.replace(/\t/g, "  ").length / 2));

/** What kind each line is, in one pass: front matter and fences reach over lines. */
export function* kinds(lines) {
  let fence = null;
  let front = lines[0]?.trim() === "---" && lines.indexOf("---", 1) > 0;
  for (let i = 0; i < lines.length; i += 1) {
    const line = lines[i];
    if (front) {
      yield "front";
      if (i > 0 && line.trim() === "---") front = false;
      continue;
    }
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence) {
      yield mark && mark.startsWith(fence) ? "fence" : "code";
      if (mark && mark.startsWith(fence)) fence = null;
    } else if (mark) {
      fence = mark;
      yield "fence";
    } else yield "text";
  }
}

function textLine(line, links) {
  let m;
  if (!line.trim()) return h(".t.blank", "\u200b");
  if ((m = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line)))
    return h("div", { class: `t h${m[1].length}`, role: "heading", "aria-level": m[1].length + 1 }, inline(m[2], links));
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) return h(".t", h("hr"));
  if ((m = /^(\s*)[-*+]\s+\[([ xX])\]\s+(.*)$/.exec(line))) {
    const done = m[2] !== " ";
    return h("div", { class: `t item in${INDENT(m[1])}` },
      h("span", { class: done ? "box done" : "box", role: "img", "aria-label": done ? "☑" : "☐" }), h("span", inline(m[3], links)));
  }
  if ((m = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/.exec(line))) {
    const bullet = /\d/.test(m[2]) ? m[2] : "•";
    return h("div", { class: `t item in${INDENT(m[1])}` }, h("span.bullet", bullet), h("span", inline(m[3], links)));
  }
  if ((m = /^\s*>\s?(.*)$/.exec(line))) return h(".t.quote", inline(m[1], links));
  if (/^\s*\|.*\|\s*$/.test(line)) {
    if (/^[\s|:-]+$/.test(line)) return h(".t.rule", h("hr"));
    const cells = line.trim().slice(1, -1).split(/(?<!\\)\|/);
    return h(".t.cells", cells.map((cell) => h("span", inline(cell.trim(), links))));
  }
  if ((m = /^(\s{2,})(\S.*)$/.exec(line))) return h("div", { class: `t item more in${INDENT(m[1]) - 1}` }, h("span", inline(m[2], links)));
  return h(".t", inline(line, links));
}

/** One line as a node; `kind` is what `kinds` says of it. */
export function drawLine(line, kind, links) {
  const node =
    kind === "text" ? textLine(line, links) : h("div", { class: `t ${kind}` }, line || "\u200b");
  const lang = langOf(line);
  if (lang) node.lang = lang;
  return node;
}

/** A short piece of Markdown on one line, as results show it; `isStart` when it is the beginning of a line. */
export function plain(text, isStart = true) {
  const line = isStart ? text.replace(/^\s*(#{1,6}|[-*+]|\d+[.)]|>)\s+(\[[ xX]\]\s+)?/, "") : text;
  return line
    .replace(/<!-- m:[\w-]+ -->|\*\*|~~|`/g, "")
    .replace(/!?\[\[([^\]|]*\|)?([^\]]*)\]\]/g, "$2")
    .replace(/!?\[\[|\]\]/g, "") // of a link in which a word is marked
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1");
}

const escape = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** What finds the words of a question in a text: a word by its beginning, Chinese by its characters. */
export function finder(words) {
  const parts = words
    .filter((word) => word && (word.length > 1 || langOf(word)))
    .sort((a, b) => b.length - a.length)
    .map((word) => {
      if (langOf(word)) return escape(word);
      const stem = word.length > 5 ? word.slice(0, -2) : word.length > 4 ? word.slice(0, -1) : word;
      return `(?<![\\p{L}\\p{N}])${escape(stem)}[\\p{L}\\p{N}]*`;
    });
  return parts.length ? new RegExp(parts.join("|"), "giu") : null;
}

/** A text with the found words marked. */
export function marked(text, find) {
  if (!find) return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(find)) {
    if (!found[0]) continue;
    nodes.push(text.slice(end, found.index), h("mark", found[0]));
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** Mark the found words in a drawn line. */
export function markIn(node, find) {
  if (!find) return;
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) texts.push(walk.currentNode);
  for (const text of texts) {
    const parts = marked(text.data, find);
    if (parts.length > 1) text.replaceWith(...parts);
  }
}
