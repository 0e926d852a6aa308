// What several pages show: numbers, tables, addresses of pages.
import { html, useEffect, useState } from "./preact.js";

const plain = new Intl.NumberFormat("en");
export const number = (n) => (n === null || n === undefined ? "–" : plain.format(n));
export const many = (n, one, more = one + "s") => `${number(n)} ${n === 1 ? one : more}`;
export const rate = (n) => (n >= 10 ? Math.round(n) : Math.round(n * 10) / 10) + "/s";

export function size(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  return d ? `${d} d ${h % 24} h` : h ? `${h} h ${m % 60} min` : m ? `${m} min` : `${s} s`;
}

export const instant = (ms) => (ms ? new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC") : "–");

const broker = { aheadMs: 0, frozenMs: 0 }; // the broker's clock, which the lab may have moved

export function followClock(clock) {
  broker.aheadMs = (clock && clock.aheadMs) || 0;
  broker.frozenMs = (clock && clock.frozen && clock.nowMs) || 0;
}

const brokerNow = () => broker.frozenMs || Date.now() + broker.aheadMs;

// A span of time up to now, drawn again each second while the page is visible. It asks the broker nothing.
export function Span({ ms, now = brokerNow }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return html`<span title=${instant(ms)}>${span(now() - ms)}</span>`;
}

export const Ago = ({ ms }) => (ms ? html`<${Span} ms=${ms}/> ago` : "never");

export function Facts({ of }) {
  return html`<ul class="facts">${of.filter(Boolean).map(([value, name]) => html`<li><b>${value}</b> ${name}</li>`)}</ul>`;
}

// `columns` are [title, cell, isNumber]; a cell is a function of the row. With `part`, the rows are some of a list that is
// scrolled, { first, count, height of a row, scroller, onScroll }: the others are empty space.
export function Table({ label, columns, rows, empty = "Nothing here.", late, keyOf, part }) {
  if (!rows.length && !(part && part.count)) return html`<p class="note">${empty}</p>`;
  const { first = 0, count, height, scroller, onScroll } = part || {};
  const space = (of) => part && of > 0 && html`<tr class="space" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${of * height}px` }}></td></tr>`;
  return html`<div class=${part ? "scroll list" : "scroll"} tabindex="0" role="region" aria-label=${label} ref=${scroller} onScroll=${onScroll}>
    <table aria-label=${label} aria-rowcount=${part && count + 1}>
    <thead><tr>${columns.map(([title, , n]) => html`<th scope="col" class=${n ? "n" : ""}>${title}</th>`)}</tr></thead>
    <tbody>${space(first)}${rows.map((row, i) => html`<tr key=${keyOf ? keyOf(row) : i} class=${late && late(row) ? "late" : ""} aria-rowindex=${part && first + i + 2}>
      ${columns.map(([, cell, n]) => html`<td class=${n ? "n" : ""}>${cell(row)}</td>`)}</tr>`)}${space(count - first - rows.length)}</tbody></table></div>`;
}

export function Trouble({ error }) {
  return error ? html`<p class="bad" role="alert">${error.message}</p>` : null;
}

export function Tabs({ label, of, chosen }) {
  return html`<div class="tabs" role="navigation" aria-label=${label}>${of.map(([name, href]) =>
    html`<a href=${href} aria-current=${name === chosen ? "page" : null}>${name}</a>`)}</div>`;
}

// ---- names

export function partsOf(topic) {
  const at = topic.indexOf("://"), [tenant, namespace, ...local] = topic.slice(at + 3).split("/");
  return { domain: topic.slice(0, at), tenant, namespace, local: local.join("/") };
}

// The path of a topic as the admin API writes it.
export function restPath(topic) {
  const { domain, tenant, namespace, local } = partsOf(topic);
  return `${domain}/${tenant}/${namespace}/${encodeURIComponent(local)}`;
}

export const shortName = (topic) => {
  const { domain, tenant, namespace, local } = partsOf(topic);
  return (domain === "persistent" ? "" : domain + "://") + `${tenant}/${namespace}/${local}`;
};

export function hrefOf(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

export function topicHref(topic, ...more) {
  const { domain, tenant, namespace, local } = partsOf(topic);
  return hrefOf("topic", domain, tenant, namespace, local, ...more);
}

export const TopicLink = ({ name }) => html`<a href=${topicHref(name)}>${shortName(name)}</a>`;

export function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
