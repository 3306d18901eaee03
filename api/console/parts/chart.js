// Charts over time as SVG: lines, areas and stacked bars, read by pointer or arrow keys, with their table behind them.
import { html, cls, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../lib/ui.js";
import * as format from "../lib/format.js";
import { Button } from "./basics.js";
import { Table } from "./table.js";

const HEIGHT = 190;
const EDGE = { top: 10, right: 10, bottom: 22 };
/// Room for what stands at the levels: at least this much, so that most charts of a page begin at one line.
const LABELS = { least: 50, gap: 8, edge: 4 };

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/// Steps of lengths of time from a second on, which people count in other numbers than ten.
const LENGTHS = [...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND), ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((n) => n * HOUR)];

/// Round steps for an axis, of which the last is at least `most`. `lengths`: they are milliseconds.
function ticks(most, { about = 4, integers = false, lengths = false } = {}) {
  if (!(most > 0)) return [0, 1];
  const rough = most / about;
  const size = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((value) => value >= rough * 0.999);
  if (lengths && step >= SECOND) step = LENGTHS.find((length) => length >= rough * 0.999) || step;
  if (integers) step = Math.max(1, Math.round(step));
  const out = [];
  for (let i = 0; i * step < most + step * 0.999; i += 1) out.push(Number((i * step).toPrecision(12)));
  return out;
}

const STEPS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((minutes) => minutes * 60_000);

let pen;
/// How wide a text of the class `axis` is, in pixels.
function widthOf(text) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  }
  return pen.measureText(text).width;
}

/// Days of UTC, each named at its middle, where its bar stands.
function dayTicks(from, to, room) {
  const step = 24 * HOUR * Math.max(1, Math.ceil((to - from) / (24 * HOUR) / room));
  const out = [];
  for (let at = Math.ceil((from - 12 * HOUR) / step) * step + 12 * HOUR; at <= to; at += step) out.push({ at, text: format.utcDay(at) });
  return out;
}

function timeTicks(from, to, room) {
  const step = STEPS.find((size) => (to - from) / size <= room) || 7 * 24 * HOUR;
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  const out = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) out.push(at);
  return out.map((at) => ({ at, text: step >= 24 * HOUR ? format.day(at) : format.hourMinute(at) }));
}

/// `points`: [{at, values: [number | null, …]}] in order; `series`: [{name, color}]; `kind`: "lines" or "stack"; `binary`:
/// levels are round in KB, MB and so on; `lengths`: they are round in seconds, minutes and so on; `daily`: each point is
/// the middle of a day of UTC.
export function Chart({ title, note, points, series, kind = "lines", say = format.short, sayExact = say, unit = "",
    integers = false, binary = false, lengths = false, daily = false, from, to, onPick }) {
  const sayTime = daily ? format.utcDayExact : format.exact;
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState(null);
  const [asTable, showTable] = useState(false);
  const id = useId();
  useLayoutEffect(() => {
    const measure = () => box.current && setWidth(Math.floor(box.current.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [asTable]);
  useEffect(() => {
    if (at !== null && at >= points.length) setAt(null);
  }, [points.length]);

  const shape = useMemo(() => {
    if (!width || !points.length) return null;
    // Bars stand in the middle of their time, so that the first and the last need room beside them.
    const beside = kind === "stack"
      && points.length > 1 ? (points[points.length - 1].at - points[0].at) / (points.length - 1) / 2 : 0;
    const start = (from ?? points[0].at) - beside;
    const end = Math.max((to ?? points[points.length - 1].at) + beside, start + 1);
    const total = (point) => point.values.reduce((sum, value) => sum + (value || 0), 0);
    const most = points.reduce((most, point) => Math.max(most,
        kind === "stack" ? total(point) : Math.max(...point.values.map((value) => value || 0))), 0);
    const scale = binary && most > 0 ? 1024 ** Math.floor(Math.log(most) / Math.log(1024)) : 1;
    const levels = ticks(most / scale, { integers, lengths }).map((level) => level * scale);
    const top = levels[levels.length - 1];
    const widest = Math.max(...levels.map((level) => widthOf(say(level))));
    const left = Math.max(LABELS.least, Math.ceil(widest) + LABELS.gap + LABELS.edge);
    const inner = { width: Math.max(40, width - left - EDGE.right), height: HEIGHT - EDGE.top - EDGE.bottom };
    const x = (time) => left + ((time - start) / (end - start)) * inner.width;
    const y = (value) => EDGE.top + inner.height - (value / top) * inner.height;
    const times = (daily ? dayTicks : timeTicks)(start, end, Math.max(2, Math.floor(inner.width / 84)));
    return { start, end, left, inner, levels, x, y, times };
  }, [width, points, kind, from, to]);

  const move = (event) => {
    if (!shape) return;
    const rect = event.currentTarget.getBoundingClientRect();
    const time = shape.start + ((event.clientX - rect.left - shape.left) / shape.inner.width) * (shape.end - shape.start);
    let best = 0;
    points.forEach((point, i) => {
      if (Math.abs(point.at - time) < Math.abs(points[best].at - time)) best = i;
    });
    setAt(best);
  };
  const keys = (event) => {
    const last = points.length - 1;
    const to = { ArrowLeft: (at ?? last + 1) - 1, ArrowRight: (at ?? last - 1) + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") setAt(null);
    if (event.key === "Enter" && at !== null && onPick) onPick(points[at]);
    if (to === undefined) return;
    event.preventDefault();
    setAt(Math.min(last, Math.max(0, to)));
  };
  const picked = at === null ? null : points[at];
  // A gauge of the minute that runs is not written yet: the latest that is known stands there.
  const values = series.map((_, i) => (picked || points.findLast((point) => point.values[i] !== null
    && point.values[i] !== undefined) || { values: [] }).values[i]);
  const described = picked ? `${sayTime(picked.at)}: ${series.map((one,
            i) => `${one.name} ${sayExact(picked.values[i])}${unit}`).join(", ")}` : "";

  return html`<section class="card chart" aria-label=${title}>
    <header class="card-head"><h2>${title}</h2>${note ? html`<span class="soft">${note}</span>` : null}
      <div class="actions"><${Button} kind="quiet" small icon="table"
          label=${asTable ? `Show ${title} as a chart` : `Show ${title} as a table`}
            aria-pressed=${asTable ? "true" : "false"} onClick=${() => showTable(!asTable)} /></div></header>
    <div class="card-body">
      ${asTable ? html`<div class="chart-table">
            <${Table} label=${title} rows=${[...points].reverse()} id=${(point) => point.at} columns=${[
        { name: daily ? "Day" : "Time", cell: (point) => sayTime(point.at) },
        ...series.map((one, i) => ({ name: one.name, numeric: true,
                cell: (point) => `${sayExact(point.values[i])}${point.values[i] === null ? "" : unit}` })),
      ]} /></div>` : html`<div class="chart-box" ref=${box}>
        ${shape ? html`<svg class="plot" width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} role="img"
              tabindex="0" aria-label=${`${title}. Arrow keys read the values.`} aria-describedby=${`${id}-said`}
            onPointerMove=${move} onPointerLeave=${() => setAt(null)} onKeyDown=${keys} onBlur=${() => setAt(null)}>
          ${shape.levels.map((level) => html`
                <g key=${level}><line class="grid" x1=${shape.left} x2=${width - EDGE.right} y1=${shape.y(level)}
                    y2=${shape.y(level)} />
            <text class="axis" x=${shape.left - LABELS.gap} y=${shape.y(level) + 4} text-anchor="end">${say(level)}</text></g>`)}
          ${shape.times.map((tick) => html`
                <text key=${tick.at} class="axis"
                  x=${Math.min(Math.max(shape.x(tick.at), shape.left + 14), width - EDGE.right - 14)} y=${HEIGHT - 5}
                    text-anchor="middle">${tick.text}</text>`)}
          ${kind === "stack" ? stack(points, series,
                shape) : series.map((one, i) => line(points, one, i, shape, series.length === 1))}
          ${picked ? html`<g><line class="cross" x1=${shape.x(picked.at)} x2=${shape.x(picked.at)} y1=${EDGE.top}
                  y2=${HEIGHT - EDGE.bottom} />
            ${kind === "stack" ? null : series.map((one,
                    i) => (picked.values[i] === null || picked.values[i] === undefined ? null
                      : html`<circle class=${`dot fill-${one.color}`} cx=${shape.x(picked.at)}
                          cy=${shape.y(picked.values[i])} r="3.5" />`))}</g>` : null}
        </svg>` : html`<div class="plot-room"></div>`}
      </div>
      <div class="legend"><span class="legend-time">${picked ? sayTime(picked.at) : points.length ? "Latest" : ""}</span>
        ${series.map((one, i) => html`
              <span class="legend-item" key=${one.name}><span class=${cls("swatch", `back-${one.color}`)}></span>
                ${one.name}<strong class="num">${sayExact(values[i])}
                  ${values[i] === null || values[i] === undefined ? "" : unit}</strong></span>`)}
                    </div>`}
      <span class="hidden" role="status" id=${`${id}-said`}>${described}</span>
    </div>
  </section>`;
}

/// A line breaks where nothing was measured.
function line(points, one, i, shape, filled) {
  const runs = [];
  let run = null;
  for (const point of points) {
    const value = point.values[i];
    if (value === null || value === undefined) run = null;
    else {
      if (!run) runs.push(run = []);
      run.push(`${shape.x(point.at).toFixed(1)},${shape.y(value).toFixed(1)}`);
    }
  }
  const floor = shape.y(0).toFixed(1);
  return html`<g key=${one.name}>${runs.map((run) => html`<g>
    ${filled && run.length > 1
      ? html`<path class=${`area-fill fill-${one.color}`}
          d=${`M${run[0].split(",")[0]},${floor}L${run.join("L")}L${run[run.length - 1].split(",")[0]},${floor}Z`} />` : null}
    ${run.length > 1 ? html`<path class=${`line stroke-${one.color}`} d=${`M${run.join("L")}`} />`
      : html`<circle class=${`fill-${one.color}`} cx=${run[0].split(",")[0]} cy=${run[0].split(",")[1]} r="2" />`}
  </g>`)}</g>`;
}

function stack(points, series, shape) {
  const slot = points.length > 1 ? (shape.x(points[points.length - 1].at) - shape.x(points[0].at)) / (points.length - 1) : 24;
  const wide = Math.max(1, Math.min(28, slot * 0.76));
  return series.map((one, i) => {
    let d = "";
    for (const point of points) {
      const value = point.values[i] || 0;
      if (!value) continue;
      let under = 0;
      for (let j = 0; j < i; j += 1) under += point.values[j] || 0;
      const left = shape.x(point.at) - wide / 2;
      const top = shape.y(under + value);
      d += `M${left.toFixed(1)},${top.toFixed(1)}h${wide.toFixed(1)}v${Math.max(0.6,
              shape.y(under) - top).toFixed(1)}h-${wide.toFixed(1)}Z`;
    }
    return html`<path key=${one.name} class=${`bar fill-${one.color}`} d=${d} />`;
  });
}

/// A line without axes beside a number. What is not known is a gap; where nothing is, the line is level.
export function Spark({ values: given, color = "c1" }) {
  const isKnown = (value) => value !== null && value !== undefined;
  const some = given.some(isKnown) ? given : [0];
  const values = some.length > 1 ? some : [some[0], some[0]];
  const most = Math.max(1, ...values.filter(isKnown));
  const x = (at) => ((at / (values.length - 1)) * 100).toFixed(1);
  const runs = [];
  values.forEach((value, at) => {
    if (!isKnown(value)) return;
    if (at === 0 || !isKnown(values[at - 1])) runs.push([]);
    runs[runs.length - 1].push([at, (26 - (value / most) * 24).toFixed(1)]);
  });
  // One value by itself is drawn as wide as the line is thick.
  const line = (run) => `M${run.map(([at, y]) => `${x(at)},${y}`).join("L")}h.010`;
  const area = (run) => `${line(run)}V28H${x(run[0][0])}Z`;
  return html`<svg class="spark" viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
      <path class=${`area-fill fill-${color}`} d=${runs.map(area).join("")} />
      <path class=${`line stroke-${color}`} d=${runs.map(line).join("")} vector-effect="non-scaling-stroke" /></svg>`;
}

/// How much of a limit is used, as a bar with its words.
export function Meter({ used, limit, label, say = format.count }) {
  const share = limit ? Math.min(1, used / limit) : 0;
  const tone = share > 0.9 ? "bad" : share > 0.7 ? "warn" : "good";
  return html`<div class="meter">
    <div class="meter-words"><span>${label}</span>
      <span class="num">${say(used)}
        ${limit ? html`<span class="soft"> of ${say(limit)}</span>` : html`<span class="soft"> · no limit</span>`}
        </span></div>
    <div class="meter-bar" role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax=${limit || 0}
      aria-valuenow=${Math.min(used, limit || used)}
        aria-valuetext=${limit ? `${say(used)} of ${say(limit)}` : `${say(used)}, no limit`}>
      <span class=${cls("meter-fill", tone)} style=${{ width: `${share * 100}%` }}></span></div>
  </div>`;
}
