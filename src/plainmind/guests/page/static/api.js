// The page is a client of /v1 and nothing else: one way to ask, one kind of error, one stream of events.

const KEPT = "plainmind.token";

/** An answer that says no: RFC 9457, in sentences for people. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.status = status;
    this.kind = (body.type || "").replace("urn:plainmind:", "");
    this.hint = body.hint || "";
    this.body = body;
  }
}

/** Who asks, and what this page may do. */
export const session = { rights: [], workspace: "", today: "", sources: ["memory"], readOnly: false };
export const may = (right) => session.rights.includes(right) && !(session.readOnly && right !== "read");

let over = () => {};
/** What to do when the session has ended. */
export const whenOver = (act) => (over = act);

/** Another answerer in place of the server: the exported file has one of its own. */
let answerer = null;
export const answerWith = (answer) => (answerer = answer);
export const isAlone = () => Boolean(answerer);
/** Whether there is such a place: the exported file has few. */
export const has = (place) => (session.places ? session.places.includes(place) : place !== "entries" || session.entries);
/** The texts of a language. */
export const loadJson = async (name) => (answerer ? answerer("GET", `/texts/${name}`) : (await fetch(`/static/texts/${name}.json`)).json());

export async function ask(method, path, { body, headers = {}, signal, quiet } = {}) {
  if (answerer) return answerer(method, path, body);
  const token = sessionStorage.getItem(KEPT);
  const all = { ...headers };
  if (token) all.Authorization = `Bearer ${token}`;
  if (body !== undefined) all["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers: all, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { type: "urn:plainmind:gone" });
  }
  if (answer.status === 204) return null;
  const text = await answer.text();
  let data = {};
  try {
    data = text ? JSON.parse(text) : {};
  } catch {
    data = { detail: text.slice(0, 200) };
  }
  if (answer.ok) return data;
  const problem = new Problem(answer.status, data);
  if (answer.status === 401 && !quiet) over(problem);
  throw problem;
}

const query = (wanted) => {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(wanted || {}))
    if (value !== undefined && value !== null && value !== "") parts.set(key, value);
  const text = parts.toString();
  return text ? `?${text}` : "";
};

export const get = (path, wanted, more) => ask("GET", `/v1/${path}${query(wanted)}`, more);
export const post = (path, body = {}, more = {}) => ask("POST", `/v1/${path}`, { body, ...more });

/** A path with each of its parts encoded. */
export const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");

export const note = (path, more) => get(`notes/${encoded(path)}`, null, more);
export const put = (path, text, etag, allowShrink = false) =>
  ask("PUT", `/v1/notes/${encoded(path)}`, {
    body: { text, allowShrink },
    headers: etag ? { "If-Match": `"${etag}"` } : { "If-None-Match": "*" },
  });

/** Exchange the code in the address for a token, or go on with the one that this tab has. */
export async function begin() {
  if (answerer) return Object.assign(session, await answerer("GET", "/v1/session"));
  const code = /^#code=([^&]+)/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      const made = await post("session", { code: decodeURIComponent(code) }, { quiet: true });
      sessionStorage.setItem(KEPT, made.token);
      delete made.token;
      return Object.assign(session, made);
    } catch (problem) {
      if (!sessionStorage.getItem(KEPT)) throw problem;
    }
  }
  return Object.assign(session, await get("session", null, { quiet: true }));
}

/** Read the events until the tab closes; `tell(name, data)` for each, `live(is)` when the line comes and goes. */
export async function listen(tell, live) {
  let last = null;
  let pause = 500;
  for (;;) {
    try {
      const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEPT)}`, Accept: "text/event-stream" };
      if (last !== null) headers["Last-Event-ID"] = last;
      const answer = await fetch("/v1/events", { headers, cache: "no-store" });
      if (answer.status === 401) return over(new Problem(401, {}));
      if (!answer.ok) throw new Problem(answer.status, {});
      live(true);
      pause = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value.replace(/\r/g, "")).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const fields = {};
          for (const line of part.split("\n")) {
            const found = /^(id|event|data): ?(.*)$/.exec(line);
            if (found) fields[found[1]] = found[1] === "data" && fields.data ? `${fields.data}\n${found[2]}` : found[2];
          }
          if (fields.id) last = fields.id;
          if (fields.event) tell(fields.event, JSON.parse(fields.data || "{}"));
        }
      }
    } catch {
      // The server is away; the dot says so, and we try again.
    }
    live(false);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 15000);
  }
}
