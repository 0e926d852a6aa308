// The list of topics: a page of it at a time, searched by the broker.
import { useRates } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { many, number, rate, size, Table, TopicLink, Trouble } from "./parts.js";

const PAGE = 100, TYPING_MS = 200;

export function Topics({ live: { value, error, at }, query }) {
  const filter = query.get("filter") || "", offset = Number(query.get("offset")) || 0;
  const [text, set] = useState(filter), timer = useRef();
  const to = (filter, offset) => `#/topics?${new URLSearchParams({ filter, offset })}`;
  useEffect(() => {
    clearTimeout(timer.current);
    if (text !== filter) timer.current = setTimeout(() => { location.replace(to(text, 0)); }, TYPING_MS);
  }, [text]);
  return html`<h2>Topics</h2>
    <form role="search" aria-label="Topics" class="row" onSubmit=${(e) => e.preventDefault()}>
      <input type="search" aria-label="Filter topics" placeholder="Part of a name" value=${text}
        onInput=${(e) => set(e.target.value)}/>
      <span role="status" class="soft">${value ? many(value.topicCount, "topic") : ""}</span></form>
    <${Trouble} error=${error}/>
    ${value && html`<${List} value=${value} at=${at} empty=${filter ? "No topic's name contains this text." : "No topics yet."}/>
      <nav class="row" aria-label="Pages of topics">
        ${offset > 0 && html`<a href=${to(filter, Math.max(0, offset - PAGE))}>Previous</a>`}
        ${value.topicCount > 0 && html`<span class="soft">${number(offset + 1)}–${number(offset + value.topics.length)} of ${number(value.topicCount)}</span>`}
        ${offset + PAGE < value.topicCount && html`<a href=${to(filter, offset + PAGE)}>Next</a>`}</nav>`}`;
}

export function List({ value, at, empty }) {
  const counters = {};
  for (const t of value.topics) { counters["i" + t.name] = t.messagesIn || 0; counters["o" + t.name] = t.messagesOut || 0; }
  const rates = useRates(at, counters);
  const of = (cell) => (t) => (t.loaded ? cell(t) : "");
  const kind = (t) => (t.partitions ? many(t.partitions, "partition") : t.segments ? many(t.segments, "segment") : "");
  return html`<${Table} label="Topics" rows=${value.topics} empty=${empty} keyOf=${(t) => t.name} late=${(t) => t.late} columns=${[
    ["Topic", (t) => html`<${TopicLink} name=${t.name}/> <span class="soft small">${kind(t)}</span>
      ${t.late && html`<div class="why late small"><b>${t.late.subscription}</b> waits: ${t.late.reason}</div>`}
      ${!t.loaded && html`<span class="soft small">not loaded</span>`}`],
    ["Producers", of((t) => number(t.producers)), true],
    ["In", of((t) => rate(rates("i" + t.name))), true],
    ["Subscriptions", of((t) => number(t.subscriptions)), true],
    ["Consumers", of((t) => number(t.consumers)), true],
    ["Out", of((t) => rate(rates("o" + t.name))), true],
    ["Backlog", of((t) => number(t.backlog)), true],
    ["Stored", of((t) => size(t.storageSize)), true]]}/>`;
}
