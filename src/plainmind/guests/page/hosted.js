// The page inside a host of MCP Apps: it asks through the host, wears its colours, and shows what the agent asked for.

import { answerWith, Problem } from "./api.js";

const PROTOCOL = "2026-01-26";
const HEIGHT = 560;
const kept = JSON.parse(document.getElementById("kept").textContent);
const host = { context: {}, canAsk: false };
const waiting = new Map();
let last = 0;

const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const notify = (method, params = {}) => send({ method: `ui/notifications/${method}`, params });
const request = (method, params) =>
  new Promise((resolve, reject) => {
    last += 1;
    waiting.set(last, { resolve, reject });
    send({ id: last, method, params });
  });

/** Show another address, as if somebody had gone there. */
function show(hash) {
  history.pushState(null, "", hash);
  dispatchEvent(new Event("popstate"));
}

/** What the agent asked for, as a place of the page. */
function placeOf({ query, path, from, lines }) {
  if (query) return `#/?q=${encodeURIComponent(query)}`;
  if (!path) return "#/";
  const to = from && lines ? `-${Number(from) + Number(lines) - 1}` : "";
  return `#/note/${path.split("/").map(encodeURIComponent).join("/")}${from ? `:${from}${to}` : ""}`;
}

function dress(context) {
  Object.assign(host.context, context);
  const { theme, locale } = host.context;
  if (theme) {
    localStorage.setItem("plainmind.theme", theme);
    document.documentElement.dataset.theme = theme;
  }
  if (locale) localStorage.setItem("plainmind.language", locale);
  const space = host.context.containerDimensions || {};
  if (host.context.displayMode !== "fullscreen" && !space.height) notify("size-changed", { height: Math.min(HEIGHT, space.maxHeight || HEIGHT) });
}

/** A host that hands on no calls: what the agent was given is all there is. */
function showText({ content = [] }) {
  const text = content.map((part) => part.text || "").join("\n");
  const node = document.createElement("pre");
  node.className = "given";
  node.textContent = text;
  document.body.replaceChildren(node);
}

const HEARD = {
  "ui/notifications/tool-input": (params) => show(placeOf(params.arguments || {})),
  "ui/notifications/tool-result": (params) => host.canAsk || showText(params),
  "ui/notifications/host-context-changed": dress,
  "ui/resource-teardown": () => ({}),
  ping: () => ({}),
};

addEventListener("message", ({ source, data }) => {
  if (source !== parent || data?.jsonrpc !== "2.0") return;
  if (data.method) {
    const result = HEARD[data.method]?.(data.params || {});
    if (data.id === undefined) return;
    send(HEARD[data.method] ? { id: data.id, result } : { id: data.id, error: { code: -32601, message: "there is no such method here" } });
    return;
  }
  const asked = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.error) asked?.reject(new Problem(502, { detail: data.error.message }));
  else asked?.resolve(data.result);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented) return;
  event.preventDefault();
  const href = link.getAttribute("href");
  if (href.startsWith("#")) show(href);
  else request("ui/open-link", { url: href }).catch(() => {});
});

answerWith(async (method, path, body) => {
  if (path.startsWith("/texts/")) return kept.texts[path.slice(7)];
  const told = await request("tools/call", { name: "memory_page", arguments: { method, path, ...(body ? { body } : {}) } });
  const said = told.structuredContent || { detail: told.content?.[0]?.text };
  if (told.isError) throw new Problem(said.status || 502, said);
  return said.answer;
});

const met = await request("ui/initialize", {
  protocolVersion: PROTOCOL,
  appInfo: { name: "plainmind", version: kept.version },
  appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
});
host.canAsk = Boolean(met.hostCapabilities?.serverTools);
dress(met.hostContext || {});
notify("initialized");
if (host.canAsk) await import("./app.js");
