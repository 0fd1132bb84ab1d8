// The words of the page in the reader's language, and numbers and days as that language writes them.

export const LANGUAGES = { en: "English", "zh-Hans": "简体中文", ja: "日本語", ko: "한국어", de: "Deutsch" };

let texts = {};
let language = "en";
let region = "en"; // as this browser writes the language: "en-GB"
let plural = null;

function choose() {
  const kept = localStorage.getItem("plainmind.language");
  for (const wanted of [kept, ...navigator.languages]) {
    if (!wanted) continue;
    if (LANGUAGES[wanted]) return wanted;
    const short = wanted.split("-")[0];
    if (short === "zh") return "zh-Hans";
    if (LANGUAGES[short]) return short;
  }
  return "en";
}

/** {"forget": {"": a, "yes": b}} is {"forget": a, "forget.yes": b}. */
function flat(groups) {
  const all = {};
  for (const [name, value] of Object.entries(groups)) {
    if (typeof value === "string") all[name] = value;
    else for (const [part, text] of Object.entries(value)) all[part ? `${name}.${part}` : name] = text;
  }
  return all;
}

/** Load the texts. English stands in for what a language does not have. */
export async function loadTexts(fetchJson) {
  language = choose();
  const [base, own] = await Promise.all([
    fetchJson("en"),
    language === "en" ? {} : fetchJson(language).catch(() => ({})),
  ]);
  texts = flat(base);
  // In the wheel the other languages are lists in the order of English.
  const names = Object.keys(texts);
  Object.assign(texts, Array.isArray(own) ? Object.fromEntries(own.map((text, i) => [names[i], text])) : flat(own));
  region = navigator.languages.find((one) => one.startsWith(language.split("-")[0])) ?? language;
  plural = new Intl.PluralRules(language);
  document.documentElement.lang = language;
}

/** A text by its name, with {holes} filled; `n` also chooses between one and many ("one|many"). */
export function t(name, holes = {}) {
  let text = texts[name] ?? name;
  if (text.includes("|") && "n" in holes) {
    const [one, many] = text.split("|");
    text = plural.select(holes.n) === "one" ? one : many;
  }
  return text.replace(/\{(\w+)\}/g, (_, key) => {
    const value = holes[key];
    return typeof value === "number" ? number(value) : String(value ?? "");
  });
}

/** The name that a word of the server has in this language, else the word itself. */
export const named = (group, word) => texts[`${group}.${word}`] ?? word;

/** A number as this language writes it. */
export const number = (value) => new Intl.NumberFormat(region).format(value);

/** A share from 0 to 1, in per cent. */
export const percent = (value) => new Intl.NumberFormat(region, { style: "percent" }).format(value);

/** The day "2026-11-15" without its time zone ever mattering. */
const dayDate = (day) => new Date(`${day.slice(0, 10)}T12:00:00`);

/** A day in full, or short. */
export function dayName(day, style = "long") {
  const form =
    style === "long"
      ? { weekday: "long", day: "numeric", month: "long", year: "numeric" }
      : { day: "numeric", month: "short", year: sameYear(day) ? undefined : "numeric" };
  return new Intl.DateTimeFormat(region, form).format(dayDate(day));
}

const sameYear = (day) => day.slice(0, 4) === String(new Date().getFullYear());

/** A month in full: "November 2026". */
export const monthName = (day) =>
  new Intl.DateTimeFormat(region, { month: "long", year: "numeric" }).format(dayDate(`${day.slice(0, 7)}-01`));

/** A moment: the time today, else day and time. */
export function moment(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const time = new Intl.DateTimeFormat(region, { hour: "2-digit", minute: "2-digit" }).format(date);
  if (isToday) return time;
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return `${new Intl.DateTimeFormat(region, { day: "numeric", month: "short", year }).format(date)}, ${time}`;
}

/** How long ago a moment or a day was: "yesterday", "3 weeks ago". */
export function ago(at) {
  const date = at.length === 10 ? dayDate(at) : new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const relative = new Intl.RelativeTimeFormat(region, { numeric: "auto" });
  const start = (d) => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();
  const days = Math.round((start(date) - start(new Date())) / 864e5);
  return days > -7 ? relative.format(days, "day") : dayName(date.toISOString(), "short");
}
