// What every screen shares: going somewhere, short messages, dialogs, and the states of waiting, emptiness and failure.

import { button, h, icon, show } from "./dom.js";
import { t } from "./words.js";

/** Screens say here what happened: "note" (a path changed), "live", and the events of the server by their names. */
export const bus = new EventTarget();
export const tell = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));
export const hear = (name, act) => bus.addEventListener(name, (event) => act(event.detail));

/** Show another address. `replace` leaves no step behind for the back button. */
export function go(hash, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", hash);
  else if (location.hash !== hash) history.pushState(null, "", hash);
  tell("route");
}

/** The address of lines of a note. */
export function noteHash(path, from = 0, to = from) {
  const lines = from ? `:${from}${to > from ? `-${to}` : ""}` : "";
  return `#/note/${path.split("/").map(encodeURIComponent).join("/")}${lines}`;
}

/** The address of a conversation, by the name or the citation of it. */
export const talkHash = (name, line = 0) => `#/talks/${encodeURIComponent(name)}${line ? `:${line}` : ""}`;

/** Where a cited place is read: a note, or a conversation. */
export const placeHash = (place) =>
  place.path.startsWith("sessions/")
    ? talkHash(place.path, place.bestLine || place.startLine)
    : noteHash(place.path, place.startLine, place.endLine);

const toasts = h(".toasts", { role: "status", "aria-live": "polite" });
export const mountToasts = () => document.body.append(toasts);

/** A short message; with an action it stays long enough to be used. */
export function toast(text, { action, act, bad = false } = {}) {
  const node = h("div", { class: bad ? "toast bad" : "toast" }, h("span", text));
  const close = () => node.remove();
  if (action) node.append(h("button", { onclick: () => { close(); act(); } }, action));
  node.append(h("button.x", { "aria-label": t("close"), onclick: close }, icon("close")));
  while (toasts.children.length > 2) toasts.firstChild.remove();
  toasts.append(node);
  setTimeout(close, action || bad ? 12000 : 4000);
}

/** An error in a sentence, with what to do. */
export function sentence(error) {
  if (error.kind === "gone") return t("server.gone");
  const text = error.message || String(error);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
export const fail = (error) => {
  if (error.name !== "AbortError") toast([sentence(error), error.hint].filter(Boolean).join(". "), { bad: true });
};

/** A modal dialog that closes on Escape; what was focused before is focused again. */
export function dialog(label, ...children) {
  const before = document.activeElement;
  const node = h("dialog", { "aria-label": label }, h(".sheet", children));
  node.addEventListener("close", () => {
    node.remove();
    if (before?.isConnected) before.focus();
  });
  node.addEventListener("mousedown", (event) => event.target === node && node.close());
  document.body.append(node);
  node.showModal();
  return node;
}

/** Ask a yes-or-no question. */
export function confirm(title, text, yes) {
  return new Promise((resolve) => {
    const node = dialog(title, h("h2", title), h("p", text),
      h(".actions",
        h("button", { onclick: () => node.close() }, t("cancel")),
        h("button.primary", { onclick: () => { resolve(true); node.close(); } }, yes)));
    node.addEventListener("close", () => resolve(false));
  });
}

/** Nothing is here, and what to do about it. */
export const empty = (name, title, text, ...actions) =>
  h(".empty", icon(name), h("h2", title), text && h("p", text), actions.length ? h(".actions", actions) : null);

/** Something could not be shown; trying again is one press. */
export const failure = (error, again) =>
  error.kind === "absent" || error.status === 404 && !error.hint
    ? empty("more", t("absent"), sentence(error))
    : empty("health", sentence(error), error.hint, again && button(null, t("again"), again));

/** Grey lines where text will be; drawn only when it takes a moment. */
export const waiting = () => h(".waiting", { role: "status", "aria-label": t("loading") }, Array.from({ length: 5 }, () => h("i")));

/** Fill a node with what a promise gives, with the states on the way. Newer fillings win. */
export async function fillWith(node, load, draw) {
  const turn = (node.turn = (node.turn || 0) + 1);
  const timer = setTimeout(() => node.turn === turn && show(node, waiting()), 150);
  try {
    const found = await load();
    if (node.turn === turn) show(node, draw(found));
  } catch (error) {
    if (node.turn === turn && error.name !== "AbortError") show(node, failure(error, () => fillWith(node, load, draw)));
  } finally {
    clearTimeout(timer);
  }
}

/** Whether keys typed now are text. */
export const isTyping = () => {
  const at = document.activeElement;
  return Boolean(at && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)));
};

/** Whether list and reader stand beside each other. */
export const isWide = () => matchMedia("(min-width: 840px)").matches;
