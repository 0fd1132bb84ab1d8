// QMD's store, open, asked line by line: node qmd_open.mjs STORE_MODULE DATABASE CONFIG lex|both
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [module, dbPath, configPath, kind] = process.argv.slice(2);
const { createStore, extractSnippet } = await import(pathToFileURL(module));
const store = await createStore({ dbPath, configPath });

async function search(text) {
  if (kind === "lex") {
    const found = await store.searchLex(text, { limit: 6 });
    return found.map((one) => ({ path: one.filepath, text: extractSnippet(one.body ?? "", text, 500).snippet }));
  }
  const query = text.replaceAll(":", " ").split(/\s+/).join(" ");
  const queries = ["lex", "vec"].map((type) => ({ type, query }));
  const found = await store.search({ queries, rerank: false, limit: 6 });
  return found.map((one) => ({ path: one.file, text: extractSnippet(one.body ?? "", text, 500, one.bestChunkPos, one.bestChunk?.length).snippet }));
}

async function answer(request) {
  if (request.search !== undefined) return { shown: await search(request.search) };
  await store.update();
  if (kind !== "lex") await store.embed();
  return {};
}

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(await answer(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
await store.close();
process.exit(0);
