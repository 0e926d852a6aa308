// Pictures of numbers over time, drawn in SVG: sparklines, charts with a cross-hair, and the shares of partitions.
import { get } from "./api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Choices, compact, timeOfDay, topicHref } from "./parts.js";

const COLOURS = ["one", "two", "three"], KEPT = 720;
const QUIET_MS = 5000; // until the samples of a topic on which nothing moves are asked for again
const OF = ["in", "out", "bytesIn", "bytesOut", "backlog", "unacked", "redelivered", "storage"];

// The path of values over a width and a height; the largest value is at the top.
function path(values, width, height, most, begin = 0) {
  const step = values.length > 1 ? width / (values.length - 1) : 0, top = most || 1;
  return values.map((v, i) => `${i ? "L" : "M"}${(begin + i * step).toFixed(1)} ${(height - (v / top) * height).toFixed(1)}`).join("");
}

export function Spark({ values, colour = "one", label = "" }) {
  if (!values || values.length < 2) return html`<svg class="spark" aria-hidden="true"></svg>`;
  const most = Math.max(...values), line = path(values, 88, 16, most);
  return html`<svg class="spark" viewBox="-1 -2 90 20" preserveAspectRatio="none" role="img" aria-label=${label || `up to ${compact(most)}`}>
    <path class="area ${colour}" d="${line}L88 16L0 16Z"/><path class="line ${colour}" vector-effect="non-scaling-stroke" d=${line}/></svg>`;
}

// The samples of the broker, a topic or a subscription. The page's stream says when there are newer ones.
export function useSamples({ topic = "", subscription = "" }, step, at) {
  const query = new URLSearchParams({ ...(topic && { topic }), ...(subscription && { subscription }), step }).toString();
  const [kept, set] = useState({ query }), [tick, beat] = useState(0), busy = useRef("");
  useEffect(() => {
    const timer = setInterval(() => document.hidden || beat((n) => n + 1), QUIET_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (!at || busy.current === query) return;
    busy.current = query;
    const known = kept.query === query && kept.times && kept.times.length ? kept : null;
    const after = known ? `&after=${known.times[known.times.length - 1]}` : "";
    let stale = false;
    get(`pulsarium/samples?${query}${after}`).then((value) => stale || set(known ? joined(known, value, query) : { ...value, query }), () => {})
      .finally(() => { if (busy.current === query) busy.current = ""; });
    return () => { stale = true; if (busy.current === query) busy.current = ""; };
  }, [query, at, tick]);
  return kept.query === query && kept.times ? kept : null;
}

function joined(known, more, query) {
  const next = { query, stepMs: more.stepMs };
  for (const name of ["times", ...OF]) next[name] = [...known[name], ...more[name]].slice(-KEPT);
  return next;
}

export const newest = (samples, name) => (samples && samples[name].length ? samples[name][samples[name].length - 1] : undefined);

// Lines over time. `lines` are [name, values, how a value is written].
export function Chart({ title, times, lines, height = 132, format = compact, extra }) {
  const ref = useRef(), [width, setWidth] = useState(600), [over, hover] = useState(null);
  useLayoutEffect(() => {
    const seen = new ResizeObserver(([entry]) => setWidth(Math.max(120, entry.contentRect.width)));
    seen.observe(ref.current);
    return () => seen.disconnect();
  }, []);
  const left = 40, inner = width - left - 6, most = ceiling(Math.max(0, ...lines.flatMap(([, values]) => values)));
  const count = times.length, index = over === null || count < 2 ? null : Math.max(0, Math.min(count - 1, Math.round(((over - left) / inner) * (count - 1))));
  const x = (i) => left + (count > 1 ? (i / (count - 1)) * inner : 0), ticks = count > 1 ? [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * (count - 1))) : [];
  const told = lines.map(([name, values]) => `${name} ${format(values[values.length - 1] ?? 0)}`).join(", ");
  return html`<div class="chart" ref=${ref} onPointerMove=${(e) => hover(e.clientX - ref.current.getBoundingClientRect().left)} onPointerLeave=${() => hover(null)}>
    <div class="bar"><h3>${title}</h3><span class="grow"></span><span class="legend">${lines.map(([name, values], i) => html`<span><i class=${COLOURS[i]}></i>${name}${" "}
      <b>${format((index === null ? values[values.length - 1] : values[index]) ?? 0)}</b></span>`)}</span>${extra}</div>
    <svg viewBox="0 -8 ${width} ${height + 28}" height=${height + 28} role="img" aria-label="${title}: ${told} now">
      ${[0, 0.5, 1].map((part) => html`<g><line class="rule" x1=${left} x2=${width - 6} y1=${height - part * height} y2=${height - part * height}/>
        <text class="axis" x=${left - 6} y=${height - part * height + 4} text-anchor="end">${format(most * part)}</text></g>`)}
      ${ticks.map((i, at) => html`<text class="axis" x=${x(i)} y=${height + 16} text-anchor=${at === 0 ? "start" : at === 4 ? "end" : "middle"}>${timeOfDay(times[i]).slice(0, count > 60 ? 5 : 8)}</text>`)}
      ${count > 1 && lines.map(([, values], i) => { const line = path(values, inner, height, most, left); return html`<path class="area ${COLOURS[i]}" d="${line}L${x(count - 1)} ${height}L${left} ${height}Z"/>
        <path class="line ${COLOURS[i]}" d=${line}/>`; })}
      ${index !== null && html`<line class="cross" x1=${x(index)} x2=${x(index)} y1="0" y2=${height}/>`}
      ${count < 2 && html`<text class="axis" x=${width / 2} y=${height / 2} text-anchor="middle">The first samples come in a second.</text>`}</svg>
    ${index !== null && html`<div class="tip" style=${{ left: `${Math.min(x(index) + 8, width - 90)}px` }}>${timeOfDay(times[index])}</div>`}</div>`;
}

// A round number above the largest value.
function ceiling(most) {
  if (most <= 4) return most <= 2 ? 2 : 4;
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 8, 10].map((n) => n * unit).find((n) => n >= most);
}

const RANGES = [["1", "10 min"], ["10", "2 h"]];
export const Range = ({ value, onChange }) => html`<${Choices} label="Range of time" of=${RANGES} value=${value} onChange=${onChange}/>`;

export function Tiles({ of, samples }) {
  return html`<dl class="tiles">${of.map(([name, value, unit, series, colour]) => html`<div class="tile"><dt>${name}</dt><dd>${value} ${unit && html`<small>${unit}</small>`}</dd>
    ${samples && series && html`<dd><${Spark} values=${samples[series].slice(-120)} colour=${colour} label=${`${name} over time`}/></dd>`}</div>`)}</dl>`;
}

// A bar for each partition, whose height is its share of `of`. Skew is seen at once; a bar chooses the partition.
export function Shares({ topic, values, chosen, late, what, onChoose }) {
  const most = Math.max(1, ...values);
  return html`<div class="shares" role="group" aria-label=${`${what} of each partition`}>${values.map((value, i) => html`<a key=${i} href=${topicHref(`${topic}-partition-${i}`)}
    class=${late && late.has(i) ? "waits" : ""} aria-current=${chosen === i ? "true" : null} title=${`partition ${i}: ${compact(value)}`}
    onClick=${onChoose && ((e) => { e.preventDefault(); onChoose(i); })}><i style=${{ height: `${Math.round((value / most) * 36)}px` }}></i>${i}</a>`)}</div>`;
}

