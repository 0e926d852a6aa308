// One topic: its clients and subscriptions, and why each subscription waits.
import { Acts } from "./act.js";
import { get, useRates } from "./api.js";
import { Messages } from "./messages.js";
import { Policies } from "./policies.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { Publish } from "./publish.js";
import { Schemas } from "./schemas.js";
import { Segments } from "./segments.js";
import { Storage } from "./storage.js";
import { Ago, Facts, many, number, partsOf, pretty, rate, shortName, size, Span, Table, Tabs, topicHref, TopicLink,
  Trouble } from "./parts.js";

const TABS = ["clients", "messages", "storage", "schema", "policies"];
const CAUGHT_UP = "everything was delivered";

export function Topic({ live, name, tab, query }) {
  const { domain, tenant, namespace } = partsOf(name), { value, error, at } = live;
  const on = !value ? "" : value.partitions ? "partitioned" : value.segments ? "scalable" : "topic";
  const tabs = TABS.filter((each) => on === "topic" || each === "clients" || each === "policies" || each === "schema");
  return html`<p class="small"><a href="#/topics">Topics</a> / <a href="#/namespace/${encodeURIComponent(tenant)}/${encodeURIComponent(namespace)}">${tenant}/${namespace}</a></p>
    <h2>${shortName(name)} ${domain !== "persistent" && html`<small>${domain}</small>`}
      ${value && value.terminated && html`<small class="amber">terminated</small>`}</h2>
    <${Tabs} label="About the topic" chosen=${tab} of=${tabs.map((each) => [each, topicHref(name, each)])}/>
    <${Trouble} error=${error}/>
    ${value && (tab === "messages" ? html`<${Messages} name=${name} topic=${value} query=${query}/>`
      : tab === "storage" ? html`<${Storage} name=${name} topic=${value}/>`
      : tab === "schema" ? html`<${Schemas} name=${name} role=${value.role}/>`
      : tab === "policies" ? html`<${Policies} of=${{ topic: name }} role=${value.role}/>`
      : html`<${Clients} name=${name} value=${value} at=${at} on=${on}/>`)}`;
}

function Clients({ name, value, at, on }) {
  const counters = { in: value.messagesIn || 0 };
  for (const s of value.subscriptions || []) {
    counters["s" + s.name] = s.messagesOut;
    for (const c of s.consumers) counters["c" + s.name + "\n" + c.name + c.id] = c.messagesOut;
  }
  const rates = useRates(at, counters);
  return html`${on === "partitioned" && html`<${Parts} title="Partitions" rows=${value.partitions}/>`}
    ${on === "scalable" && html`<${Segments} value=${value}/><${Parts} title="Segments" rows=${value.segments}/>`}
    ${on === "topic" && (value.loaded ? html`<${Loaded} name=${name} value=${value} rates=${rates}/>`
      : html`<p class="note">The topic is not loaded: no client has used it since the broker started.</p>`)}
    <section class="card"><h3>Acts on the topic</h3><${Acts} on=${on} given=${{ topic: name }} role=${value.role}/></section>
    ${on !== "scalable" && html`<${Publish} name=${name} role=${value.role}/>`}`;
}

function Parts({ title, rows }) {
  const of = (cell) => (row) => (row.loaded ? cell(row) : "");
  return html`<section class="card"><h3>${title}</h3><${Table} label=${title} rows=${rows} late=${(row) => row.late} columns=${[
    ["Name", (row) => html`<${TopicLink} name=${row.name}/> <span class="soft small">${row.loaded ? "" : "not loaded"}${row.active === false ? " sealed" : ""}</span>
      ${row.late && html`<div class="why late small"><b>${row.late.subscription}</b> waits: ${row.late.reason}</div>`}`],
    ["Producers", of((row) => number(row.producers)), true], ["Published", of((row) => number(row.messagesIn)), true],
    ["Consumers", of((row) => number(row.consumers)), true], ["Backlog", of((row) => number(row.backlog)), true],
    ["Stored", of((row) => size(row.storageSize)), true]]}/></section>`;
}

function Loaded({ name, value, rates }) {
  return html`${value.subscriptions.map((s) => html`<${Subscription} key=${s.name} name=${name} s=${s} rates=${rates} role=${value.role}/>`)}
    ${!value.subscriptions.length && html`<p class="note">No subscriptions: what is published is not kept for anyone.</p>`}
    ${value.subscriptionCount > value.subscriptions.length && html`<p class="note">and ${many(value.subscriptionCount - value.subscriptions.length, "more subscription")}</p>`}
    <section class="card"><h3>Producers</h3>
      <${Facts} of=${[[number(value.messagesIn), "published"], [rate(rates("in")), "in"],
        value.storageSize !== null && [size(value.storageSize), "stored"], value.entries !== null && [number(value.entries), "entries"]]}/>
      <${Table} label="Producers" rows=${value.producers} empty="No producer is connected." columns=${[
        ["Name", (p) => p.name], ["Address", (p) => p.address], ["Client", (p) => p.client || "–"],
        ["Connected", (p) => html`<${Ago} ms=${p.connectedMs}/>`]]}/>
      ${value.producerCount > value.producers.length && html`<p class="note">and ${many(value.producerCount - value.producers.length, "more producer")}</p>`}
    </section>`;
}

// What the reason means for a person who looks at it for the first time.
function line(s) {
  if (s.backlog === null) return null;
  if (!s.backlog) return ["fine", "Nothing waits: the backlog is empty."];
  if (s.reason !== CAUGHT_UP) return [s.late || s.backlog > s.delayed ? "late" : "", `Waits: ${s.reason}.`];
  if (s.delayed >= s.backlog) return ["", `${many(s.delayed, "message")} wait for the time of delivery.`];
  if (s.late) return ["late", "Waits: everything was delivered, but the consumers have not acknowledged it."];
  return ["", "Everything was delivered; acknowledgements are awaited."];
}

function Subscription({ name, s, rates, role }) {
  const [why, setWhy] = useState(null), said = line(s), moves = useRef();
  // Opened when the subscription is late and never closed again: a dialog of it may be open when the backlog is gone.
  useEffect(() => { if (s.late && moves.current) moves.current.open = true; }, [s.late]);
  const ask = async () => {
    const path = `/lab/why?${new URLSearchParams({ topic: name, subscription: s.name })}`;
    try { setWhy({ path, value: await get(path) }); } catch (error) { setWhy({ path, error }); }
  };
  return html`<article class="card ${s.late ? "late" : ""}" data-subscription=${s.name}>
    <h3>${s.name} <small>${s.type === "None" ? "no consumer yet" : s.type}${s.durable ? "" : ", not durable"}</small></h3>
    ${said && html`<p class="why ${said[0]}" data-why><b>${said[1]}</b>
      ${s.late && html` <span class="small">No progress for <${Span} ms=${s.since}/>.</span>`}</p>`}
    <${Facts} of=${[s.backlog !== null && [number(s.backlog), "backlog"], s.delayed > 0 && [number(s.delayed), "delayed"],
      [number(s.unacked), "unacknowledged"], [number(s.messagesOut), "delivered"], [rate(rates("s" + s.name)), "out"],
      s.markDelete && [s.markDelete, "mark-delete position"], s.readPosition && [s.readPosition, "read position"]]}/>
    <${Table} label="Consumers of ${s.name}" rows=${s.consumers} empty="No consumer is connected." keyOf=${(c) => c.name + c.id} columns=${[
      ["Consumer", (c) => html`${c.name || "(no name)"}${s.active === c.name && s.active ? html` <b class="small">active</b>` : ""}`],
      ["Permits", (c) => html`<span class=${c.permits > 0 ? "" : "amber"}>${number(c.permits)}</span>`, true],
      ["Unacknowledged", (c) => html`<span class=${c.blocked ? "amber" : ""}>${number(c.unacked)}${c.blocked ? " (limit)" : ""}</span>`, true],
      ["Delivered", (c) => number(c.messagesOut), true], ["Out", (c) => rate(rates("c" + s.name + "\n" + c.name + c.id)), true],
      ["Last delivery", (c) => html`<${Ago} ms=${c.consumedMs}/>`],
      ["Last acknowledgement", (c) => html`<span class=${!c.ackedMs && c.unacked && s.late ? "amber" : ""}><${Ago} ms=${c.ackedMs}/></span>`],
      ["Address", (c) => html`${c.address}${c.writable ? "" : html` <b class="amber">does not read</b>`}`], ["Client", (c) => c.client || "–"]]}/>
    ${s.consumerCount > s.consumers.length && html`<p class="note">and ${many(s.consumerCount - s.consumers.length, "more consumer")}</p>`}
    ${s.backlog > 0 && html`<div class="row"><button class="main" data-ask-why onClick=${ask}>Why is the next message not delivered?</button>
      <a href=${topicHref(name, "messages") + `?${new URLSearchParams({ subscription: s.name, start: "next" })}`}>See the messages that wait</a></div>`}
    ${why && html`<div role="status" data-answer>${why.error ? html`<${Trouble} error=${why.error}/>` : html`<p class="why"><b>${why.value.text}.</b></p>
      <details><summary>Facts</summary><pre>${pretty(why.value.details)}</pre></details>`}
      <div class="small soft">pulsarium why ${name} ${s.name} · GET ${why.path}</div></div>`}
    ${s.backlog !== null && html`<details ref=${moves}><summary>Move on: skip, seek, clear…</summary>
      <${Acts} on="subscription" given=${{ topic: name, subscription: s.name }} role=${role}/></details>`}
  </article>`;
}

