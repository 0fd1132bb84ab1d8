// What differs between two texts, line by line; and three texts made into one where that is safe.

const LIMIT = 4000;

/** Runs of lines: {kind: "same" | "gone" | "new", lines}. Myers' shortest way, ends cut off first. */
export function diff(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const middle = shortest(before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  const runs = [];
  const push = (kind, line) => {
    if (runs.at(-1)?.kind === kind) runs.at(-1).lines.push(line);
    else runs.push({ kind, lines: [line] });
  };
  before.slice(0, head).forEach((line) => push("same", line));
  middle.forEach(([kind, line]) => push(kind, line));
  before.slice(before.length - tail).forEach((line) => push("same", line));
  return runs;
}

function shortest(a, b) {
  const max = a.length + b.length;
  const replaced = () => [...a.map((line) => ["gone", line]), ...b.map((line) => ["new", line])];
  if (!a.length || !b.length || max > LIMIT) return replaced();
  const trace = [];
  const v = new Int32Array(2 * max + 2);
  for (let d = 0; d <= max; d += 1) {
    trace.push(v.slice(max - d, max + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[max + k - 1] < v[max + k + 1]) ? v[max + k + 1] : v[max + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      v[max + k] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(trace, d, a, b);
    }
    if (d > 600) return replaced();
  }
  return replaced();
}

function walkBack(trace, last, a, b) {
  const steps = [];
  let x = a.length;
  let y = b.length;
  for (let d = last; d > 0; d -= 1) {
    const at = (k) => trace[d][k + d] ?? -1;
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = at(from);
    const fromY = fromX - from;
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      steps.push(["same", a[--x]]);
      y -= 1;
    }
    if (down) steps.push(["new", b[--y]]);
    else steps.push(["gone", a[--x]]);
  }
  while (x > 0 && y > 0) {
    steps.push(["same", a[--x]]);
    y -= 1;
  }
  return steps.reverse();
}

function hunks(base, other) {
  const found = [];
  let at = 0;
  for (const run of diff(base, other)) {
    if (run.kind === "same") at += run.lines.length;
    else {
      let hunk = found.at(-1);
      if (!hunk || hunk.to !== at) found.push((hunk = { from: at, to: at, lines: [] }));
      if (run.kind === "gone") hunk.to = at += run.lines.length;
      else hunk.lines.push(...run.lines);
    }
  }
  return found;
}

/** Both sides' changes to a text in one, or null where they touch the same lines. */
export function merge(base, mine, theirs) {
  const changes = [
    ...hunks(base, mine).map((hunk) => ({ ...hunk, mine: true })),
    ...hunks(base, theirs).map((hunk) => ({ ...hunk, mine: false })),
  ].sort((p, q) => p.from - q.from || p.to - q.to);
  const merged = [];
  let at = 0;
  let last = null;
  for (const change of changes) {
    if (last && last.from === change.from && last.to === change.to && last.lines.join("\n") === change.lines.join("\n")) continue;
    if (last && last.mine !== change.mine && change.from <= last.to) return null;
    merged.push(...base.slice(at, change.from), ...change.lines);
    at = change.to;
    last = change;
  }
  merged.push(...base.slice(at));
  return merged;
}

/** The part in the middle in which two lines differ, as [start, end of a, end of b]. */
export function inner(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  const most = Math.min(a.length, b.length) - start;
  while (end < most && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return [start, a.length - end, b.length - end];
}
