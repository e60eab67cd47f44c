// Numbers, times and intervals as text, and the ticks of time axes.

/** Set once from /v1/status: times are seconds since 1970 where the data has dates. */
export const units = { dates: false, probability: "probability" };

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const minus = (text) => text.replace("-", "−");

export const count = (n) => (Number.isFinite(n) ? whole.format(n) : "–");

/** A probability: three digits after the point, or two significant ones where it is small. */
export function chance(p) {
  if (!Number.isFinite(p)) return "–";
  if (p === 0 || Math.abs(p) >= 0.0995) return p.toFixed(3);
  if (Math.abs(p) >= 0.00095) return p.toFixed(4);
  return minus(p.toExponential(1));
}

/** A change of a probability, with its sign. */
export function change(c) {
  if (!Number.isFinite(c)) return "–";
  if (c === 0) return "±0";
  const size = Math.abs(c);
  return `${c > 0 ? "+" : "−"}${size >= 0.00005 && size < 0.0995 ? size.toFixed(4) : chance(size)}`;
}

export const chanceOf = (row) => row.probability ?? row.score;

export function rate(r) {
  return r >= 100 ? count(r) : (Math.round(r * 10) / 10).toString();
}

/** Seconds of latency. */
export function latency(s) {
  if (!Number.isFinite(s)) return "–";
  if (s < 0.001) return `${digits(s * 1e6, 2)} µs`;
  return s < 1 ? `${digits(s * 1e3, 3)} ms` : `${digits(s, 3)} s`;
}

const digits = (x, n) => Number(x.toPrecision(n)).toString();

/** A span of real seconds, in the largest fitting unit. */
export function span(s) {
  for (const [unit, size] of [["y", 31557600], ["d", 86400], ["h", 3600], ["min", 60]]) {
    if (Math.abs(s) >= size) return `${minus(digits(s / size, 3))} ${unit}`;
  }
  return Math.abs(s) < 0.01 ? "0 s" : `${minus(digits(s, 3))} s`;
}

/** An interval between two times of the data. */
export function interval(x) {
  if (units.dates) return span(x);
  if (Math.abs(x) >= 1e4) return minus(whole.format(x));
  return minus(digits(Math.abs(x) < 1e-6 ? 0 : x, 4));
}

const two = (n) => String(n).padStart(2, "0");
const day = (d) => `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;

/** A time of the data; `date` is what the server says it is called, if it does. */
export function time(t, date) {
  if (date) return date;
  if (!Number.isFinite(t)) return "–";
  if (!units.dates) return minus(new Intl.NumberFormat("en", { maximumFractionDigits: 3 }).format(t));
  const d = new Date(t * 1000);
  if (Number.isNaN(d.getTime())) return String(t);
  return `${day(d)} ${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())}`;
}

/** A time as someone types it: a number, or a date (UTC) where the data has dates. NaN if it is neither, undefined if it is blank. */
export function parseTime(text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const number = Number(trimmed.replaceAll(",", "").replace("−", "-"));
  if (Number.isFinite(number)) return number;
  if (!units.dates) return NaN;
  const zone = /(z|[+-]\d\d:?\d\d)$/i.test(trimmed.slice(10)) || !/\d:\d/.test(trimmed) ? "" : "Z";
  return Date.parse(`${trimmed.replace(" ", "T")}${zone}`) / 1000;
}

/** Without the year, for narrow columns whose title has all of it. */
export function shortTime(t, date) {
  const text = time(t, date);
  return units.dates && /^\d{4}-\d\d-\d\d./.test(text) ? text.slice(5) : text;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600,
  2629800, 5259600, 7889400, 15778800, 31557600, 63115200, 157788000, 315576000];

/** About `n` round times between two, as { at, text }. */
export function ticks(min, max, n) {
  const rough = (max - min) / Math.max(1, n);
  if (!(rough > 0)) return [{ at: min, text: units.dates ? time(min) : String(min) }];
  let step;
  if (units.dates && rough >= 1) step = STEPS.find((s) => s >= rough) ?? STEPS.at(-1);
  else {
    const power = 10 ** Math.floor(Math.log10(rough));
    step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  }
  const out = [];
  for (let at = Math.ceil(min / step) * step; at <= max && out.length < 50; at += step) out.push({ at, text: tick(at || 0, step) });
  return out;
}

function tick(at, step) {
  if (!units.dates) {
    const places = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
    return minus(new Intl.NumberFormat("en", { minimumFractionDigits: places, maximumFractionDigits: places }).format(at));
  }
  const d = new Date(at * 1000);
  if (step >= 31557600) return String(d.getUTCFullYear());
  if (step >= 2629800) return day(d).slice(0, 7);
  if (step >= 86400) return day(d);
  return step >= 60 ? `${day(d).slice(5)} ${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` : time(at).slice(11);
}

/** The next larger 64-bit float: the moment just after an event. */
export function justAfter(t) {
  if (t === 0) return Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, t);
  view.setBigInt64(0, view.getBigInt64(0) + (t > 0 ? 1n : -1n));
  return view.getFloat64(0);
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
