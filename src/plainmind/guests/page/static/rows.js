// A list of any length of which only a window is drawn: rows of one height, a listbox for keyboard and screen reader.

import { h } from "./dom.js";

const SPARE = 6;

export class Rows {
  /**
   * draw(index) gives the children of a row, or null while it is not known; choose(index) is called when a row is chosen,
   * open(index) on Enter or a click; want(from, to) when rows come into view that may have to be loaded.
   */
  constructor({ label, height, draw, choose, open, want }) {
    Object.assign(this, { height, draw, choose, open, want });
    this.count = 0;
    this.at = -1;
    this.nodes = new Map();
    this.space = h(".space", { role: "presentation" });
    this.node = h("div", {
      class: "rows", role: "listbox", tabindex: "0", "aria-label": label,
      onscroll: () => this.plan(),
      onkeydown: (event) => this.key(event),
      onclick: (event) => this.click(event),
    }, this.space);
    new ResizeObserver(() => this.plan()).observe(this.node);
  }

  /** So many rows now; what was drawn is drawn anew. */
  set(count, { keep = false } = {}) {
    this.count = count;
    this.space.style.height = `${count * this.height}px`;
    for (const node of this.nodes.values()) node.remove();
    this.nodes.clear();
    if (!keep) {
      this.node.scrollTop = 0;
      this.at = -1;
    } else if (this.at >= count) this.at = count - 1;
    this.paint();
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.paint();
    });
  }

  paint() {
    const top = this.node.scrollTop;
    const seen = this.node.clientHeight || 600;
    const from = Math.max(0, Math.floor(top / this.height) - SPARE);
    const to = Math.min(this.count, Math.ceil((top + seen) / this.height) + SPARE);
    for (const [index, node] of this.nodes)
      if (index < from || index >= to) {
        node.remove();
        this.nodes.delete(index);
      }
    for (let index = from; index < to; index += 1) {
      const old = this.nodes.get(index);
      if (old && !old.dataset.wait) continue;
      const children = this.draw(index);
      const node = h("div", {
        class: children ? "row" : "row wait", role: "option", id: `row-${index}`,
        "aria-setsize": this.count, "aria-posinset": index + 1, "aria-selected": index === this.at ? "true" : "false",
        style: { transform: `translateY(${index * this.height}px)`, height: `${this.height}px` },
      }, children);
      node.dataset.index = index;
      if (!children) node.dataset.wait = "1";
      if (old) old.replaceWith(node);
      else this.space.append(node);
      this.nodes.set(index, node);
    }
    this.point();
    if (to > from && this.want) this.want(from, to);
  }

  point() {
    if (this.at >= 0 && this.nodes.has(this.at)) this.node.setAttribute("aria-activedescendant", `row-${this.at}`);
    else this.node.removeAttribute("aria-activedescendant");
  }

  /** Choose a row and bring it into view. */
  go(index, { quiet = false } = {}) {
    if (!this.count) return;
    const next = Math.max(0, Math.min(this.count - 1, index));
    this.nodes.get(this.at)?.setAttribute("aria-selected", "false");
    this.at = next;
    const top = next * this.height;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + this.height > this.node.scrollTop + this.node.clientHeight)
      this.node.scrollTop = top + this.height - this.node.clientHeight;
    this.paint();
    this.nodes.get(next)?.setAttribute("aria-selected", "true");
    this.point();
    if (!quiet && this.choose) this.choose(next);
  }

  step(by) {
    this.go(this.at < 0 ? 0 : this.at + by);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.height) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page };
    const ends = { Home: 0, End: this.count - 1 };
    if (event.key in moves) {
      event.preventDefault();
      this.step(moves[event.key]);
    } else if (event.key in ends) {
      event.preventDefault();
      this.go(ends[event.key]);
    } else if (event.key === "Enter" && this.at >= 0) {
      event.preventDefault();
      this.open(this.at);
    }
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row || row.dataset.wait) return;
    this.go(Number(row.dataset.index), { quiet: true });
    this.open(Number(row.dataset.index));
  }
}

/** Rows that come from the server in parts: knows which it has, asks for those in view. */
export class Parts {
  /** ask(offset, limit) gives {rows, total, next}. */
  constructor(ask, size = 100) {
    this.ask = ask;
    this.size = size;
    this.rows = new Map();
    this.asked = new Set();
    this.total = 0;
  }

  async first() {
    const part = await this.ask(0, this.size);
    this.take(0, part);
    return this.total;
  }

  take(offset, part) {
    part.rows.forEach((row, index) => this.rows.set(offset + index, row));
    this.total = part.total ?? Math.max(this.total, offset + part.rows.length);
    this.asked.add(Math.floor(offset / this.size));
  }

  row(index) {
    return this.rows.get(index);
  }

  /** Load what is missing between two rows, then say so. */
  want(from, to, done) {
    for (let part = Math.floor(from / this.size); part * this.size < to; part += 1) {
      if (this.asked.has(part)) continue;
      this.asked.add(part);
      this.ask(part * this.size, this.size).then(
        (answer) => { this.take(part * this.size, answer); done(); },
        () => this.asked.delete(part),
      );
    }
  }
}
