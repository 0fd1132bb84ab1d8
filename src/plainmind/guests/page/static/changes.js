// Changes a person can see before they happen and take back afterwards: a drawn diff, undo, forgetting for good.

import { get, may, note, post, put } from "./api.js";
import { h, langOf, show } from "./dom.js";
import { diff, inner } from "./diff.js";
import { confirm, dialog, fail, failure, go, noteHash, sentence, tell, toast, waiting } from "./shell.js";
import { named, t } from "./words.js";

const AROUND = 2;

function piece(kind, number, text, part) {
  const content = part ? [text.slice(0, part[0]), h(kind === "gone" ? "del" : "ins", null, text.slice(part[0], part[1])), text.slice(part[1])] : text || "\u200b";
  const sign = { gone: "−", new: "+", same: "" }[kind];
  return h("div", { class: `change ${kind}` }, h("span.no", number), h("span.sign", sign), h("span.said", { lang: langOf(text) }, content));
}

/** Two texts as what goes and what comes, with a few lines around. */
export function drawDiff(before, after, first = 1) {
  const runs = diff(before ? before.split("\n") : [], after ? after.split("\n") : []);
  const box = h(".diff", { role: "group", tabindex: "0", "aria-label": t("diff.label") });
  let a = first;
  let b = first;
  runs.forEach((run, i) => {
    if (run.kind === "same") {
      const n = run.lines.length;
      const head = i === 0 ? 0 : Math.min(AROUND, n);
      const tail = i === runs.length - 1 ? 0 : Math.min(AROUND, n - head);
      run.lines.slice(0, head).forEach((line, k) => box.append(piece("same", b + k, line)));
      if (n > head + tail && box.children.length + tail) box.append(h(".gap", "⋯"));
      run.lines.slice(n - tail).forEach((line, k) => box.append(piece("same", b + n - tail + k, line)));
      a += n;
      b += n;
      return;
    }
    const other = run.kind === "gone" ? runs[i + 1] : runs[i - 1];
    const pairs = other && other.kind !== "same" && other.lines.length === run.lines.length;
    run.lines.forEach((line, k) => {
      let part = null;
      if (pairs) {
        const [from, endA, endB] = run.kind === "gone" ? inner(line, other.lines[k]) : inner(other.lines[k], line);
        part = [from, run.kind === "gone" ? endA : endB];
        if (from === 0 && part[1] === line.length) part = null;
      }
      box.append(piece(run.kind, run.kind === "gone" ? a + k : b + k, line, part));
    });
    if (run.kind === "gone") a += run.lines.length;
    else b += run.lines.length;
  });
  return box;
}

/** Offer to take a change back: the old text is put again, unless somebody has changed the file since. */
export function offerUndo(text, path, old, etag) {
  toast(text, {
    action: t("undo"),
    act: async () => {
      try {
        await put(path, old, etag, true);
        tell("note.changed", { path });
        toast(t("undone"));
      } catch (error) {
        if (error.status === 412) toast(t("undo.stale"), { bad: true, action: t("history"), act: () => go(`${noteHash(path)}!history`) });
        else fail(error);
      }
    },
  });
}

/** What a version is called by what was done. */
export const did = (version) => named("op", version.operation.split(" ")[0]);

/** Take back the latest change of the memory, whoever made it, after saying which it is. */
export async function undoLatest() {
  try {
    const { versions } = await get("history", { limit: 100 });
    const back = versions.map((one) => one.operation.replace("undo ", ""));
    const latest = versions.find((one) => !/^(before|undo|init)/.test(one.operation) && !back.includes(one.id));
    if (!latest) return toast(t("undo.nothing"));
    const what = t("undo.ask", { operation: did(latest), path: latest.path });
    // What was forgotten for good does not come back; who tries is told so.
    if (latest.operation !== "forget" && !(await confirm(t("undo"), what, t("undo")))) return undefined;
    const undone = await post("undo");
    tell("note.changed", { path: undone.path });
    toast([t("undone"), ...undone.remarks].join("; "));
    go(noteHash(undone.path, undone.line || 0));
  } catch (error) {
    fail(error);
  }
  return undefined;
}

const count = (plan) => plan.lines.reduce((n, part) => n + part.endLine - part.startLine + 1, plan.entries.length);

function placeList(lines) {
  const by = new Map();
  for (const line of lines) by.set(line.path, [...(by.get(line.path) || []), line]);
  return [...by].map(([path, found]) => h("section.doomed", h("h3", path),
    found.map((part) => part.text.replace(/\n$/, "").split("\n").map((text, k) =>
      h(".change.gone", h("span.no", part.startLine + k), h("span.said", { lang: langOf(text) }, text || "\u200b"))))));
}

/** Show everything that would go, then let it go. `what` is a citation, a list of them, or a text. */
export async function forget(what, { session } = {}) {
  const body = h(".preview", waiting());
  const yes = h("button.danger", { disabled: true }, t("forget.yes"));
  const node = dialog(t("forget.title"), h("h2", t("forget.title")), body,
    h(".actions", h("button", { onclick: () => node.close() }, t("cancel")), yes));
  try {
    const plan = await post("forget", session ? { session } : { what });
    const still = plan.stillIn || {};
    const left = [...(still.sessions || []), ...(still.entries || [])];
    show(body,
      h("p.lead", count(plan)
        ? t("forget.lead", { n: count(plan) })
        : t("forget.old")),
      placeList(plan.lines),
      plan.entries.length ? h("section.doomed", h("h3", t("entries")), plan.entries.map((entry) => h(".change.gone", h("span.no"), h("span.said", entry.text)))) : null,
      plan.session && h("p", plan.session.title || plan.session.name),
      left.length ? h(".still", h("h3", t("forget.still")), h("ul", left.map((name) => h("li", name)))) : null,
      still.chatHistory ? h("p.note", t("forget.chat")) : null,
      (plan.remarks || []).map((text) => h("p.note", text)),
      h("p.note", t("forget.warning")));
    yes.disabled = false;
    yes.addEventListener("click", async () => {
      yes.disabled = true;
      try {
        const done = await post("forget", { code: plan.code });
        node.close();
        for (const path of new Set(done.lines.map((line) => line.path))) tell("note.forgotten", { path });
        if (done.entries.length) tell("entry");
        toast(t("forgotten", { n: count(done) }));
      } catch (error) {
        show(body, failure(error));
      }
    });
  } catch (error) {
    show(body, failure(error));
  }
}

/** Ask for a text, then forget every line that has it. */
export function forgetText() {
  if (!may("forget")) return;
  const field = h("input", { type: "text", id: "doom", autocomplete: "off" });
  const next = () => {
    const text = field.value.trim();
    if (!text) return;
    node.close();
    forget(text);
  };
  const node = dialog(t("forget.title"), h("h2", t("forget.title")),
    h("label", { for: "doom" }, t("forget.which")), field,
    h(".actions", h("button", { onclick: () => node.close() }, t("cancel")),
      h("button.primary", { onclick: next }, t("forget.preview"))));
  field.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && next());
  field.focus();
}

/** Write something down: into today's log, or for good into MEMORY.md. */
export function quickNote(text = "") {
  if (!may("write")) return;
  const field = h("textarea", { id: "new-note", rows: "5", value: text });
  const durable = h("input", { type: "checkbox", id: "durable" });
  const key = crypto.randomUUID();
  const save = async () => {
    if (!field.value.trim()) return field.focus();
    try {
      const made = await post("notes", { text: field.value.trim(), durable: durable.checked }, { headers: { "Idempotency-Key": key } });
      node.close();
      tell("note.changed", { path: made.path });
      go(noteHash(made.path, made.startLine, made.endLine));
      toast(t("noted", { path: made.path }), { action: t("undo"), act: () => undoNote(made) });
    } catch (error) {
      show(problem, sentence(error), error.hint ? ` ${error.hint}` : "");
    }
    return undefined;
  };
  const problem = h("p.problem", { role: "alert" });
  const node = dialog(t("note.new"), h("h2", t("note.new")), h("label", { for: "new-note", class: "hidden" }, t("note.new")), field,
    h("label.check", { for: "durable" }, durable, h("span", t("note.durable"))), problem,
    h(".actions", h("button", { onclick: () => node.close() }, t("cancel")),
      h("button.primary", { onclick: save }, t("note.save"), h("kbd", "⌃⏎"))));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) save();
  });
  field.focus();
}

async function undoNote(made) {
  try {
    const { versions } = await get("history", { limit: 1 });
    const now = await note(made.path);
    if (versions[0]?.path !== made.path || now.etag !== made.etag) {
      return toast(t("undo.stale"), { bad: true, action: t("history"), act: () => go(`${noteHash(made.path)}!history`) });
    }
    await post("undo");
    tell("note.changed", { path: made.path });
    toast(t("undone"));
  } catch (error) {
    fail(error);
  }
  return undefined;
}
