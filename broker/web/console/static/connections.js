// All connections: who they are, what they use, what the linter found, and which faults hit them.
import { html, useEffect, useRef, useState } from "./html.js";
import { Ago, ask, Badge, Empty, many, number, size, Skeleton, Table, topicHref, partsOf, Trouble } from "./parts.js";

const TYPING_MS = 200;

export function Connections({ live: { value, error }, query }) {
  const filter = query.get("filter") || "", [text, set] = useState(filter), timer = useRef(), kept = useRef();
  useEffect(() => { set(filter); }, [filter]);
  useEffect(() => {
    clearTimeout(timer.current);
    if (text !== filter) timer.current = setTimeout(() => ask(query, { filter: text }), TYPING_MS);
  }, [text]);
  if (value) kept.current = value;
  const shown = value || kept.current;
  return html`<div class="tools"><form role="search" aria-label="Connections" class="search" onSubmit=${(e) => e.preventDefault()}>
      <input type="search" aria-label="Filter connections" placeholder="Part of an address, client, role or topic   ( / )" value=${text} onInput=${(e) => set(e.target.value)}/></form>
      <span role="status" class="soft">${shown ? many(shown.count, "connection") : ""}</span></div>
    <${Trouble} error=${error}/>
    ${!shown ? !error && html`<${Skeleton} lines=${8}/>` : shown.connections.length ? html`<section class="card flush"><${Table} label="Connections" rows=${shown.connections} keyOf=${(c) => c.id} columns=${[
      ["Client", (c) => html`${c.client || "–"} ${c.kind !== "binary" && html`<${Badge}>${c.kind}</${Badge}>`} ${c.tls && html`<${Badge} state="good">TLS</${Badge}>`}`],
      ["Address", (c) => html`<code>${c.address.replace(/^\//, "")}</code>`], ["Role", (c) => c.role || "–"], ["Protocol", (c) => (c.protocolVersion === null ? "–" : `v${c.protocolVersion}`), true],
      ["Connected", (c) => html`<${Ago} ms=${c.sinceMs}/>`], ["Producers", (c) => number(c.producers), true], ["Consumers", (c) => number(c.consumers), true],
      ["Topics", (c) => html`${c.topics.map((t) => html`<a href=${topicHref(t)}>${partsOf(t).local}</a>${" "}`)} ${c.topicCount > c.topics.length && html`<span class="soft">and ${number(c.topicCount - c.topics.length)} more</span>`}`],
      ["Received", (c) => size(c.inBytes), true], ["Sent", (c) => size(c.outBytes), true],
      ["State", (c) => html`${c.paused && html`<${Badge} state="waits" title=${c.paused}>paused</${Badge}>`} ${c.faultHits > 0 && html`<${Badge} state="lab">${many(c.faultHits, "fault hit")}</${Badge}>`}
        ${c.findings > 0 && html`<a href="#/lab/linter"><${Badge} state="waits">${many(c.findings, "finding")}</${Badge}></a>`}`]]}/></section>`
      : html`<section class="card"><${Empty} title=${filter ? "No connection matches" : "No client is connected"}>${filter ? html`<button onClick=${() => set("")}>Show all connections</button>` : html`<p>Clients appear here while they are connected.</p>`}</${Empty}></section>`}`;
}
