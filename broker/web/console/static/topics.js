// The list of topics. The broker searches, and sends the part of the list that is in view.
import { useRates } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { many, number, rate, size, Table, TopicLink, Trouble } from "./parts.js";

const PART = 100, BEFORE = 40, CLOSE = 10; // rows: of a part, of it above the view, and from its edge that ask for another
const ROW = 34; // pixels, as in console.css
const TYPING_MS = 200, SCROLLING_MS = 60;

export function Topics({ live: { value, error, at }, query }) {
  const filter = query.get("filter") || "", offset = Number(query.get("offset")) || 0;
  const [text, set] = useState(filter), timer = useRef(), scroller = useRef(), kept = useRef({});
  const to = (filter, offset) => `#/topics?${new URLSearchParams({ filter, offset })}`;
  useEffect(() => {
    clearTimeout(timer.current);
    if (text !== filter) timer.current = setTimeout(() => { location.replace(to(text, 0)); }, TYPING_MS);
  }, [text]);
  if (value) kept.current = { value, at, offset }; // shown until the next part comes
  const shown = kept.current, count = shown.value ? shown.value.topicCount : 0;
  useEffect(() => { if (scroller.current) scroller.current.scrollTop = offset * ROW; }, [filter, !shown.value]);
  const scrolled = () => {
    const { scrollTop, clientHeight } = scroller.current;
    const first = Math.floor(scrollTop / ROW), end = Math.ceil((scrollTop + clientHeight) / ROW);
    clearTimeout(timer.current);
    if ((offset && first < offset + CLOSE) || (offset + PART < count && end > offset + PART - CLOSE)) {
      timer.current = setTimeout(() => { location.replace(to(filter, Math.max(0, first - BEFORE))); }, SCROLLING_MS);
    }
  };
  return html`<h2>Topics</h2>
    <form role="search" aria-label="Topics" class="row" onSubmit=${(e) => e.preventDefault()}>
      <input type="search" aria-label="Filter topics" placeholder="Part of a name" value=${text}
        onInput=${(e) => set(e.target.value)}/>
      <span role="status" class="soft">${shown.value ? many(count, "topic") : ""}</span></form>
    <${Trouble} error=${error}/>
    ${shown.value && html`<${List} value=${shown.value} at=${shown.at} empty=${filter ? "No topic's name contains this text." : "No topics yet."}
      part=${{ first: shown.offset, count, height: ROW, scroller, onScroll: scrolled }}/>`}`;
}

function List({ value, at, empty, part }) {
  const counters = {};
  for (const t of value.topics) { counters["i" + t.name] = t.messagesIn || 0; counters["o" + t.name] = t.messagesOut || 0; }
  const rates = useRates(at, counters);
  const of = (cell) => (t) => (t.loaded ? cell(t) : "");
  const kind = (t) => (t.partitions ? many(t.partitions, "partition") : t.segments ? many(t.segments, "segment") : "");
  return html`<${Table} label="Topics" rows=${value.topics} empty=${empty} keyOf=${(t) => t.name} late=${(t) => t.late} part=${part} columns=${[
    ["Topic", (t) => html`<${TopicLink} name=${t.name}/> <span class="soft small">${kind(t)}</span>
      ${t.late && html`<span class="late small" title=${t.late.reason}><b>${t.late.subscription}</b> waits: ${t.late.reason}</span>`}
      ${!t.loaded && html`<span class="soft small">not loaded</span>`}`],
    ["Producers", of((t) => number(t.producers)), true],
    ["In", of((t) => rate(rates("i" + t.name))), true],
    ["Subscriptions", of((t) => number(t.subscriptions)), true],
    ["Consumers", of((t) => number(t.consumers)), true],
    ["Out", of((t) => rate(rates("o" + t.name))), true],
    ["Backlog", of((t) => number(t.backlog)), true],
    ["Stored", of((t) => size(t.storageSize)), true]]}/>`;
}
