// The probability of a pair over time: as it was just before each moment of the past, and as it will be if nothing happens.

import { api } from "./api.js";
import { gutter, legend, lineChart } from "./chart.js";
import { chance, chanceOf, justAfter, time, units } from "./format.js";
import { colour } from "./theme.js";

const POINTS = 150;

/** `state` has { src, dst, at, now, met, picked }; `click(time)` is called with the time of a click. */
export function pairCurve(state, range, click) {
  const what = units.probability;
  const series = [
    { label: `${what} so far`, colour: "--all", width: 2 },
    { label: `${what} to come, if nothing happens`, colour: "--all", width: 2, dash: [5, 4] },
    { label: "without the picked events", colour: "--fifth", width: 1.75 },
    { label: "", colour: "--fifth", width: 1.75, dash: [5, 4] },
  ];
  const chart = lineChart({
    label: `${what[0].toUpperCase()}${what.slice(1)} over time`, height: 190, left: gutter, range, series, click,
    y: { range: (_, low, high) => [0, high > 0 ? high * 1.12 : 1], format: (v) => (v === 0 ? "0" : Number(v.toPrecision(3)).toString()) },
    under: shade,
    draw: marks,
    readout: (u, i) => {
      const plain = u.data[1][i] ?? u.data[2][i];
      const without = u.data[3][i] ?? u.data[4][i];
      return `${time(u.data[0][i])}: ${chance(plain)}${without == null ? "" : `, without ${chance(without)}`}`;
    },
    describe: ([x, past, coming]) => {
      if (!x.length) return "Nothing yet.";
      const all = x.map((t, i) => [past[i] ?? coming[i], t]);
      const most = all.reduce((a, b) => (b[0] > a[0] ? b : a));
      return `From ${chance(all[0][0])} at ${time(x[0])} to ${chance(all.at(-1)[0])} at ${time(x.at(-1))}; highest ${chance(most[0])} at ${time(most[1])}. Click a time to score the pair then.`;
    },
  });
  chart.host.id = "pair-curve";

  function shade(u) {
    const { ctx, bbox } = u;
    const from = Math.max(bbox.left, u.valToPos(state.now, "x", true));
    const right = bbox.left + bbox.width;
    if (from >= right) return;
    ctx.save();
    ctx.fillStyle = colour("--card");
    ctx.fillRect(from, bbox.top, right - from, bbox.height);
    ctx.restore();
  }

  function marks(u) {
    const { ctx, bbox } = u;
    const floor = bbox.top + bbox.height;
    const inside = (t) => t >= range.min && t <= range.max;
    ctx.save();
    if (inside(state.at)) {
      const x = u.valToPos(state.at, "x", true);
      ctx.strokeStyle = colour("--ink");
      ctx.lineWidth = devicePixelRatio * 1.25;
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, floor);
      ctx.stroke();
    }
    // The times they met, on the axis.
    ctx.fillStyle = colour("--third");
    for (const t of state.met) {
      if (!inside(t)) continue;
      const x = u.valToPos(t, "x", true);
      const r = 4.5 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, floor - 2 * r);
      ctx.lineTo(x + r, floor - r);
      ctx.lineTo(x, floor);
      ctx.lineTo(x - r, floor - r);
      ctx.fill();
    }
    ctx.restore();
  }

  /** Even steps, and both sides of each meeting: that is where the curve jumps. */
  function times() {
    const { min, max } = range;
    const out = Array.from({ length: POINTS }, (_, i) => min + ((max - min) * i) / (POINTS - 1));
    for (const t of state.met.slice(0, 60)) out.push(t, justAfter(t));
    out.push(state.at, justAfter(state.now));
    return [...new Set(out.filter((t) => t >= min && t <= max))].sort((a, b) => a - b);
  }

  let asking = null;
  let timer;
  let plain = null; // of the last range, so that picking an event asks for one curve only
  async function refresh({ keep = false } = {}) {
    asking?.abort();
    const mine = new AbortController();
    asking = mine;
    const x = keep && plain ? plain.x : times();
    const pairs = x.map((t) => ({ src: state.src, dst: state.dst, time: t }));
    const without = [...state.picked];
    try {
      const [base, other] = await Promise.all([
        keep && plain ? plain.y : api.score(pairs, {}, mine.signal).then((answer) => answer.scores.map(chanceOf)),
        without.length ? api.score(pairs, { without }, mine.signal).then((answer) => answer.scores.map(chanceOf)) : null,
      ]);
      plain = { x, y: base };
      const edge = x.findLastIndex((t) => t <= justAfter(state.now));
      const until = (y) => (y ? y.map((v, i) => (i <= edge ? v : null)) : x.map(() => null));
      const from = (y) => (y ? y.map((v, i) => (i >= edge ? v : null)) : x.map(() => null));
      chart.set([x, until(base), from(base), until(other), from(other)]);
      chart.host.dataset.points = x.length;
    } catch (error) {
      if (!mine.signal.aborted) throw error;
    }
  }
  const stop = range.on(() => {
    plain = null;
    clearTimeout(timer);
    timer = setTimeout(() => refresh().catch(() => {}), 250);
  });

  return {
    host: chart.host,
    refresh,
    names: () => legend(series.slice(0, state.picked.size ? 3 : 2)),
    dispose() {
      asking?.abort();
      clearTimeout(timer);
      stop();
      chart.dispose();
    },
  };
}
