// The parts that all pages are made of: numbers and names as text, badges, tables, tabs, empty states, what can be copied.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";

// ---- numbers and times

const plain = new Intl.NumberFormat("en"), short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
export const number = (n) => (n === null || n === undefined ? "–" : plain.format(n));
export const compact = (n) => (n === null || n === undefined ? "–" : Math.abs(n) < 10_000 ? plain.format(Math.round(n)) : short.format(n));
export const many = (n, one, more = one + "s") => `${number(n)} ${n === 1 ? one : more}`;
export const pace = (n) => (n === undefined || n === null ? "–" : n >= 10 ? compact(n) : String(Math.round(n * 10) / 10));
export const rate = (n) => pace(n) + "/s";

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
export const timeOfDay = (ms, millis = false) => {
  const at = new Date(ms), two = (n) => String(n).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}${millis ? "." + String(at.getMilliseconds()).padStart(3, "0") : ""}`;
};

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

// ---- text

export const Badge = ({ state = "", children, title }) => html`<span class="badge ${state}" title=${title}>${children}</span>`;

export function Facts({ of }) {
  return html`<ul class="facts">${of.filter(Boolean).map(([value, name]) => html`<li><b>${value}</b> ${name}</li>`)}</ul>`;
}

export function Pairs({ of }) {
  return html`<dl class="kv">${of.filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "")
    .map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

export function Trouble({ error }) {
  if (!error || error.hasBanner) return null;
  return html`<p class="bad" role="alert">${error.message}</p>`;
}

export const Mark = () => html`<svg viewBox="0 0 32 32" aria-hidden="true"><g transform="rotate(32 16 16)" fill="var(--accent)">
  <path d="M16 15 11 1q5-2 10 0zM16 17 11 31q5 2 10 0z"/><ellipse cx="16" cy="16" rx="14" ry="5.2" fill="none" stroke="var(--accent)" stroke-width="2"/></g>
  <circle cx="16" cy="16" r="5.2" fill="var(--accent)"/></svg>`;

export function Empty({ title, children }) {
  return html`<div class="empty"><${Mark}/><b class="title">${title}</b>${children}</div>`;
}

export const Skeleton = ({ lines = 6 }) => html`<div class="card skeleton" role="status" aria-label="Loading">
  ${Array.from({ length: lines }, (_, i) => html`<i style=${{ width: `${92 - ((i * 37) % 50)}%` }}></i>`)}</div>`;

export function Copied({ text, label = "Copy" }) {
  const [done, set] = useState(false);
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); } catch { // a page over plain HTTP has no clipboard
      const area = document.createElement("textarea");
      area.value = text;
      (document.querySelector("dialog[open]") || document.body).append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<button type="button" onClick=${copy}>${done ? "Copied" : label}</button>`;
}

export const Code = ({ text }) => html`<div class="copied"><pre>${text}</pre><${Copied} text=${text}/></div>`;

export function Tabs({ label, of, chosen }) {
  return html`<nav class="tabs" aria-label=${label}>${of.map(([name, href, title = name]) =>
    html`<a href=${href} aria-current=${name === chosen ? "page" : null}>${title}</a>`)}</nav>`;
}

export function Choices({ label, of, value, onChange }) {
  return html`<span class="seg" role="group" aria-label=${label}>${of.map(([each, title]) => html`<button type="button"
    aria-pressed=${String(each === value)} onClick=${() => onChange(each)}>${title}</button>`)}</span>`;
}

// ---- tables

// `columns` are [title, cell, kind]; a cell is a function of the row; kind is true for numbers, or { n, key, className }. With `part`,
// the rows are some of a list that is scrolled, { first, count, height of a row, scroller, onScroll }: the others are empty space.
export function Table({ label, columns, rows, empty = "Nothing here.", late, keyOf, part, sort, onSort, detail, onRow, className = "" }) {
  if (!rows.length && !(part && part.count)) return html`<p class="note">${empty}</p>`;
  const { first = 0, count, height, scroller, onScroll } = part || {};
  const space = (of) => part && of > 0 && html`<tr class="space" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${of * height}px` }}></td></tr>`;
  const kind = (of) => (of === true ? { n: true } : of || {});
  const classOf = (of) => `${kind(of).n ? "n" : ""} ${kind(of).className || ""}`.trim();
  const title = (name, of) => {
    const { key } = kind(of);
    return key && onSort ? html`<button class="sort" type="button" onClick=${() => onSort(key)}>${name}${sort === key ? " ↓" : ""}</button>` : name;
  };
  return html`<div class="scroll ${part ? "list" : ""} ${className}" tabindex="0" role="region" aria-label=${label} ref=${scroller} onScroll=${onScroll}>
    <table aria-label=${label} aria-rowcount=${part && count + 1}>
    <thead><tr>${columns.map(([name, , of]) => name === "" ? html`<td></td>` : html`<th scope="col" class=${classOf(of)} aria-sort=${kind(of).key && sort === kind(of).key ? (sort === "name" ? "ascending" : "descending") : null}>${title(name, of)}</th>`)}</tr></thead>
    <tbody>${space(first)}${rows.map((row, i) => { const more = detail && detail(row); return html`<tr key=${keyOf ? keyOf(row) : i}
      class="${late && late(row) ? "late" : ""} ${more ? "open" : ""} ${onRow ? "go" : ""}" aria-rowindex=${part && first + i + 2} onClick=${onRow && ((e) => e.target.closest("a,button,input") || onRow(row))}>
      ${columns.map(([, cell, of]) => html`<td class=${classOf(of)}>${cell(row)}</td>`)}</tr>${more && html`<tr class="detail" key=${(keyOf ? keyOf(row) : i) + "+"}><td colspan=${columns.length}>${more}</td></tr>`}`; })}
    ${space(count - first - rows.length)}</tbody></table></div>`;
}

// ---- keys

// Call `act` when a key is pressed outside of a field.
export function useKey(key, act) {
  const latest = useRef(act);
  latest.current = act;
  useLayoutEffect(() => {
    const pressed = (event) => {
      const typing = event.target.closest && event.target.closest("input, textarea, select");
      if (event.key === key && !typing && !event.ctrlKey && !event.metaKey && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        latest.current();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [key]);
}

// ---- names and addresses

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

export const fullName = (name) => {
  const whole = name.includes("/") ? name : `public/default/${name}`;
  return whole.includes("://") ? whole : `persistent://${whole}`;
};

export function hrefOf(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

export function topicHref(topic, ...more) {
  const { domain, tenant, namespace, local } = partsOf(topic);
  return hrefOf("topic", domain, tenant, namespace, local, ...more);
}

export const subscriptionHref = (topic, subscription) => topicHref(topic) + `?${new URLSearchParams({ subscription })}`;

export const TopicLink = ({ name }) => html`<a href=${topicHref(name)}>${shortName(name)}</a>`;

// Replace some of the query of the page's address, so that the address leads to what is seen.
export function ask(query, more) {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(more)) value ? next.set(name, value) : next.delete(name);
  const text = next.toString();
  location.replace(location.hash.split("?")[0] + (text ? `?${text}` : ""));
}

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

// The partitions that a client uses.
export const partsText = (parts) => (parts && parts.length ? (parts.length > 8 ? `${parts.length} partitions` : parts.join(", ")) : "");

// A client's address, which opens its connection. Pulsar writes a slash before it, as Java does.
export const Address = ({ of }) => html`<a href="#/connections?${new URLSearchParams({ filter: of.replace(/^\//, "") })}"><code>${of.replace(/^\//, "")}</code></a>`;
