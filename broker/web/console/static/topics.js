// The list of topics. The broker searches and sorts, and sends the part of the list that is in view.
import { Spark } from "./charts.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { ask, Badge, compact, Empty, many, number, rate, size, Skeleton, span, Table, TopicLink, Trouble } from "./parts.js";

const PART = 100, BEFORE = 40, CLOSE = 10; // rows: of a part, of it above the view, and from its edge that ask for another
const ROW = 34; // pixels, as --row
const TYPING_MS = 200, SCROLLING_MS = 60;

export function Topics({ live: { value, error }, query }) {
  const filter = query.get("filter") || "", offset = Number(query.get("offset")) || 0, sort = query.get("sort") || "name";
  const namespace = query.get("namespace") || "", idle = query.get("idle") !== "false", system = query.get("system") === "true";
  const [text, set] = useState(filter), timer = useRef(), scroller = useRef(), kept = useRef({});
  useEffect(() => {
    clearTimeout(timer.current);
    if (text !== filter) timer.current = setTimeout(() => ask(query, { filter: text, offset: "" }), TYPING_MS);
  }, [text]);
  if (value) kept.current = { value, offset }; // shown until the next part comes
  const shown = kept.current, count = shown.value ? shown.value.topicCount : 0;
  useEffect(() => { if (scroller.current) scroller.current.scrollTop = offset * ROW; }, [filter, namespace, sort, idle, system, !shown.value]);
  const scrolled = () => {
    const { scrollTop, clientHeight } = scroller.current;
    const first = Math.floor(scrollTop / ROW), end = Math.ceil((scrollTop + clientHeight) / ROW);
    clearTimeout(timer.current);
    if ((offset && first < offset + CLOSE) || (offset + PART < count && end > offset + PART - CLOSE)) {
      timer.current = setTimeout(() => ask(query, { offset: String(Math.max(0, first - BEFORE)) }), SCROLLING_MS);
    }
  };
  const change = (more) => ask(query, { ...more, offset: "" });
  const check = (name, label, n, on, otherwise) => n > 0 && html`<label class="check"><input type="checkbox" checked=${on} onChange=${() => change({ [name]: otherwise })}/>${label} (${number(n)})</label>`;
  return html`<div class="tools"><form role="search" aria-label="Topics" class="search" onSubmit=${(e) => e.preventDefault()}>
      <input type="search" aria-label="Filter topics" placeholder="Part of a name   ( / )" value=${text} onInput=${(e) => set(e.target.value)}/></form>
      ${shown.value && html`<select aria-label="Namespace" value=${namespace} onChange=${(e) => change({ namespace: e.target.value })}><option value="">all namespaces</option>
        ${shown.value.namespaceCounts.map((n) => html`<option value=${n.name}>${n.name} (${number(n.topics)})</option>`)}</select>
      ${check("idle", "idle topics", shown.value.idleTopics, idle, idle ? "false" : "")}${check("system", "system topics", shown.value.systemTopics, system, system ? "" : "true")}`}
      <span role="status" class="soft">${shown.value ? many(count, "topic") : ""}</span></div>
    <${Trouble} error=${error}/>
    ${!shown.value ? !error && html`<${Skeleton} lines=${10}/>` : count ? html`<section class="card flush"><${List} value=${shown.value} sort=${sort} onSort=${(key) => change({ sort: key })}
      part=${{ first: shown.offset, count, height: ROW, scroller, onScroll: scrolled }}/></section>`
      : html`<section class="card"><${Empty} title=${filter || namespace ? "No topic matches" : "No topics yet"}>${filter || namespace
        ? html`<button onClick=${() => { set(""); change({ filter: "", namespace: "", idle: "" }); }}>Show all topics</button>`
        : html`<p>A topic appears here as soon as a client uses it. <a href="#/namespaces">Create one by hand</a></p>`}</${Empty}></section>`}`;
}

function List({ value, part, sort, onSort }) {
  const of = (cell) => (t) => (t.loaded ? cell(t) : html`<span class="soft">–</span>`);
  const kind = (t) => (t.partitions ? many(t.partitions, "partition") : t.segments ? many(t.segments, "segment") : "");
  return html`<${Table} label="Topics" rows=${value.topics} keyOf=${(t) => t.name} late=${(t) => t.late} part=${part} sort=${sort} onSort=${onSort} columns=${[
    ["Topic", (t) => html`<${TopicLink} name=${t.name}/> ${kind(t) && html`<${Badge}>${kind(t)}</${Badge}>`} ${t.schema && html`<${Badge}>${t.schema}</${Badge}>`}
      ${t.system && html`<${Badge}>system</${Badge}>`} ${!t.loaded && html`<span class="soft small">not loaded</span>`}`, { key: "name" }],
    ["State", (t) => t.late && html`<span class="waits cut" title=${t.late.reason}><b>${t.late.subscription}</b> waits: ${t.late.reason}</span>`, { key: "stuck" }],
    ["Last minute", of((t) => html`<${Spark} values=${t.trend}/>`)],
    ["In", of((t) => rate(t.in)), { n: true, key: "in" }], ["Out", of((t) => rate(t.out)), { n: true, key: "out" }],
    ["Backlog", of((t) => compact(t.backlog)), { n: true, key: "backlog" }], ["Age", of((t) => (t.ageMs ? span(t.ageMs) : "–")), { n: true, key: "age" }],
    ["Producers", of((t) => number(t.producers)), true], ["Subscriptions", of((t) => number(t.subscriptions)), true], ["Consumers", of((t) => number(t.consumers)), true],
    ["Stored", of((t) => size(t.storageSize)), true]]}/>`;
}
