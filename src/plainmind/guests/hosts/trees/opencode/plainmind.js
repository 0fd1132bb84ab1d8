// Plainmind in opencode: recalls before a prompt, keeps what was said after an answer.
// `plainmind connect opencode` writes this file, `plainmind disconnect opencode` removes it.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const HOOK = ["plainmind", "hook"];
const PATIENCE_MS = { SessionStart: 4000, UserPromptSubmit: 2000 };

// One process for as long as opencode runs: started by the first question, and again should it ever end.
let child = null;
let count = 0;
const waiting = new Map();

function start() {
  const started = spawn(HOOK[0], [...HOOK.slice(1), "--serve"], { stdio: ["pipe", "pipe", "ignore"] });
  const end = () => {
    if (child === started) child = null;
    for (const [id, answer] of waiting) if (answer.of === started) { waiting.delete(id); answer.give(null); }
  };
  started.on("error", end);
  started.on("exit", end);
  started.stdin.on("error", end);
  createInterface({ input: started.stdout }).on("line", (line) => {
    let told;
    try { told = JSON.parse(line); } catch { return; }
    const answer = waiting.get(told.id);
    if (answer) { waiting.delete(told.id); answer.give(told.result ?? null); }
  });
  started.unref();
  started.stdin.unref?.();
  started.stdout.unref?.();
  return started;
}

// The answer, or null when there is none in time: a memory must not hold up a prompt.
function ask(event, patience) {
  child ??= start();
  const id = ++count;
  return new Promise((give) => {
    const timer = setTimeout(() => { waiting.delete(id); give(null); }, patience);
    waiting.set(id, { of: child, give: (told) => { clearTimeout(timer); give(told); } });
    child.stdin.write(JSON.stringify({ id, host: "opencode", ...event }) + "\n");
  });
}

const textOf = (parts) =>
  (parts ?? []).filter((part) => part.type === "text" && !part.synthetic && part.text).map((part) => part.text).join("\n");

export const Plainmind = async ({ client, directory }) => {
  const begun = new Map(); // what each session began with
  const children = new Set(); // sessions of subagents: they are told nothing, and what they say is kept by nobody
  const start = async (sessionID) => {
    if (!begun.has(sessionID)) {
      const asked = { hook_event_name: "SessionStart", source: "startup", session_id: sessionID, cwd: directory };
      begun.set(sessionID, ask(asked, PATIENCE_MS.SessionStart));
    }
    return (await begun.get(sessionID))?.context ?? "";
  };
  const keep = async (sessionID) => {
    const found = await client.session.messages({ path: { id: sessionID } });
    const messages = (found.data ?? [])
      .map(({ info, parts }) => ({ id: info.id, role: info.role, text: textOf(parts) }))
      .filter(({ role, text }) => (role === "user" || role === "assistant") && text);
    await ask({ hook_event_name: "Stop", session_id: sessionID, cwd: directory, messages }, 10000);
  };
  return {
    "chat.message": async ({ sessionID }, output) => {
      if (children.has(sessionID)) return;
      await start(sessionID);
      const asked = { hook_event_name: "UserPromptSubmit", session_id: sessionID, cwd: directory, prompt: textOf(output.parts) };
      const text = (await ask(asked, PATIENCE_MS.UserPromptSubmit))?.context;
      if (!text) return;
      const id = "prt_" + Date.now().toString(16) + Math.random().toString(16).slice(2, 14);
      output.parts.push({ id, sessionID, messageID: output.message.id, type: "text", text, synthetic: true });
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (!sessionID || children.has(sessionID)) return;
      const text = await start(sessionID);
      if (text) output.system.push(text);
    },
    event: async ({ event }) => {
      const about = event.properties;
      if (event.type === "session.created" && about?.info?.parentID) children.add(about.info.id);
      if (event.type === "session.compacted") begun.delete(about.sessionID);
      if (event.type === "session.idle" && !children.has(about.sessionID)) await keep(about.sessionID);
    },
  };
};
