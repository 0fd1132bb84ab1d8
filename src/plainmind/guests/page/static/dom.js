// Nodes made by plain calls. Nothing here, or anywhere in the page, ever parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
    else if (key === "value" || key === "checked" || key === "indeterminate") node[key] = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** Append children: nodes, texts, lists of them; null and false are nothing. */
export function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An HTML element: "p.lead" is <p class="lead">, ".row" is <div class="row">. Attributes come first, if there are any. */
export function h(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  if (tag === "button") node.type = "button";
  const hasProps = rest[0]?.constructor === Object;
  return fill(node, hasProps ? rest[0] : null, hasProps ? rest.slice(1) : rest);
}

/** An SVG element. */
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

/** Put these children in place of what a node holds. */
export function show(node, ...children) {
  node.textContent = "";
  add(node, children);
  return node;
}

const ICONS = {
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16.2 16.2 20.5 20.5",
  days: "M5 6.5h14v13H5zM5 10.5h14M8.5 4v4M15.5 4v4",
  talks: "M4.5 5.5h15v10.5h-8L7 19.5V16H4.5z",
  start: "M6.5 4.5h11v15h-11zM9.5 8.5h5M9.5 12h5M9.5 15.5h2.5",
  entries: "M5 6.5h.5M5 12h.5M5 17.5h.5M9.5 6.5h10M9.5 12h10M9.5 17.5h10",
  review: "M4.5 13.5 7 5.5h10l2.5 8v5h-15zM4.5 13.5H9c.3 2 1.4 3 3 3s2.7-1 3-3h4.5",
  tags: "M9.5 5 8 19M16 5l-1.5 14M5 9.5h14M5 14.5h14",
  map: "M5 18.5h.01M9 9h.01M13 14h.01M17 6.5h.01M18.5 16h.01M7 13.5h.01M12 6.5h.01",
  health: "M3.5 12.5h4l2.5-6.5 4 12 2.5-5.5h4",
  plus: "M12 5.5v13M5.5 12h13",
  edit: "M5 19l.9-3.8L15.6 5.5l2.9 2.9L8.8 18.1z",
  forget: "M5.5 7.5h13M10 7.5V5h4v2.5M7.5 7.5l.8 12h7.4l.8-12",
  history: "M5 12a7 7 0 1 0 2.2-5.1L5 9M5 5v4h4M12 8.5V12l2.5 1.5",
  link: "M10 14l4-4M8.5 11l-2.3 2.3a3.2 3.2 0 0 0 4.5 4.5L13 15.5M11 8.5l2.3-2.3a3.2 3.2 0 0 1 4.5 4.5L15.5 13",
  back: "M14.5 5.5 8 12l6.5 6.5",
  next: "M9.5 5.5 16 12l-6.5 6.5",
  close: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  more: "M5.5 12h.01M12 12h.01M18.5 12h.01",
  settings: "M4.5 8h9M17.5 8h2M4.5 16h2M10.5 16h9M15.5 6v4M8.5 14v4",
  lock: "M6.5 11h11v8.5h-11zM9 11V8a3 3 0 0 1 6 0v3",
  graph: "M5 5.5h4v4H5zM15 5.5h4v4h-4zM10 15h4v4h-4zM9 7.5h6M8 9.5l3 5.5M16 9.5 13 15",
};

/** A line drawing that says nothing to a screen reader. */
export const icon = (name) =>
  s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: ICONS[name === "recalls" ? "history" : name] }));

/** A button with an icon, its word, and the key that does the same. */
export const button = (name, word, press, more = {}) =>
  h("button", { onclick: press, ...more }, name && icon(name), h("span", word));

const CJK = /[\u3040-\u30ff]|[\uac00-\ud7af]|[\u3400-\u9fff]/;

/** The language of a text as far as its script tells it: fonts draw the same character differently. */
export function langOf(text) {
  if (!CJK.test(text)) return null;
  if (/[\u3040-\u30ff]/.test(text)) return "ja";
  return /[\uac00-\ud7af]/.test(text) ? "ko" : "zh-Hans";
}

/** Run something once its caller has been quiet for a while. */
export function later(ms, run) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...args), ms);
  };
}
