// A map by meaning: what is alike lies together, and a new note moves nothing. The table says the same.

import { get } from "./api.js";
import { button, h, langOf } from "./dom.js";
import { pageOf } from "./lists.js";
import { empty, fillWith, go, noteHash } from "./shell.js";
import { dayName, t } from "./words.js";

let isTable = false;
const nameOf = (point) => point.title || point.path.split("/").at(-1);

function drawing(points) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const label = h(".map-label", { hidden: true });
  const box = h(".map", canvas, label);
  let width = 0;
  let height = 0;
  const most = points.reduce((far, point) => Math.max(far, Math.abs(point.x), Math.abs(point.y)), 1);
  const place = (point) => [width / 2 + (point.x / most) * (width / 2 - 40), height / 2 - (point.y / most) * (height / 2 - 30)];
  const paint = () => {
    const scale = devicePixelRatio || 1;
    width = box.clientWidth;
    height = box.clientHeight;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(box);
    pen.fillStyle = style.getPropertyValue("color");
    const isDense = points.length > 10000;
    pen.globalAlpha = isDense ? 0.12 : 0.55;
    for (const point of points) {
      const [x, y] = place(point);
      const radius = isDense ? 1.5 : 3.5 + Math.min(5, Math.sqrt(point.passages || 1));
      pen.beginPath();
      pen.arc(x, y, radius, 0, 7);
      pen.fill();
    }
    if (points.length > 60) return;
    pen.globalAlpha = 0.9;
    pen.fillStyle = style.getPropertyValue("--soft") || style.color;
    pen.font = `12px ${style.fontFamily}`;
    const taken = [];
    for (const point of points) {
      const name = nameOf(point).slice(0, 28);
      const [x, y] = place(point);
      const w = pen.measureText(name).width;
      const left = x + w + 16 > width ? x - w - 12 : x + 12;
      if (left < 0 || taken.some(([l, r, m]) => left < r && left + w > l && Math.abs(m - y) < 15)) continue;
      taken.push([left, left + w, y]);
      pen.fillText(name, left, y + 4);
    }
  };
  const nearest = (event) => {
    const area = canvas.getBoundingClientRect();
    let best = null;
    let least = 400;
    for (const point of points) {
      const [x, y] = place(point);
      const d = (x - event.clientX + area.left) ** 2 + (y - event.clientY + area.top) ** 2;
      if (d < least) { least = d; best = point; }
    }
    return best;
  };
  canvas.addEventListener("mousemove", (event) => {
    const point = nearest(event);
    label.hidden = !point;
    canvas.style.cursor = point ? "pointer" : "default";
    if (!point) return;
    const [x, y] = place(point);
    label.textContent = `${nameOf(point)}  ${point.path}`;
    label.style.left = `${Math.min(x, width - 240)}px`;
    label.style.top = `${y + 14}px`;
  });
  canvas.addEventListener("click", (event) => { const point = nearest(event); if (point) go(noteHash(point.path)); });
  new ResizeObserver(paint).observe(box);
  return box;
}

const table = (points) => h("table", h("thead", h("tr", h("th", { scope: "col" }, t("notes")), h("th", { scope: "col" }, t("when")), h("th", { scope: "col" }, "x"), h("th", { scope: "col" }, "y"))),
  h("tbody", points.slice(0, 2000).map((point) => h("tr", h("td", { lang: langOf(nameOf(point)) }, h("a", { href: noteHash(point.path) }, nameOf(point))), h("td", point.day ? dayName(point.day, "short") : ""), h("td", point.x.toFixed(2)), h("td", point.y.toFixed(2))))));

export const map = {
  enter(at, detail) {
    fillWith(detail, () => get("map"), ({ points }) => points.length
      ? pageOf(t("map"), t("map.lead"), [button(null, t(isTable ? "as.drawing" : "as.table"), () => { isTable = !isTable; map.enter(at, detail); })], isTable ? table(points) : drawing(points))
      : empty("map", t("map.none"), t("map.none.text")));
    return true;
  },
};
