// The messages of a topic, one line each, newest first: searched by text and by fields of the value, followed live, and opened.
import { Acts, lookupOf, PositionField } from "./act.js";
import { get, useGet } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { Why } from "./subscriptions.js";
import { ask, Badge, Copied, download, Empty, instant, many, number, Pairs, pretty, restPath, shortName, size, Skeleton, Table, timeOfDay, Trouble } from "./parts.js";

const KEPT = 500; // messages of a tail
const TYPING_MS = 400;
const ASKED = ["start", "subscription", "partition", "where", "containing", "key", "fromMs", "toMs", "order"];

const idOf = (m) => (m.batchIndex === undefined ? m.id : `${m.id}:${m.batchIndex}`);
const keyOf = (m) => `${m.partition ?? ""}|${idOf(m)}`;

function after(position) {
  const [ledger, entry] = position.split(":").map(Number);
  return `${ledger}:${entry + 1}`;
}

// The part of the address that the broker is asked with. `start=next` is the first message that waits for the subscription.
function asked(query, waits) {
  const found = new URLSearchParams();
  for (const name of ASKED) if (query.get(name)) found.set(name, query.get(name));
  if (found.get("start") === "next") { waits ? found.set("start", waits.next || after(waits.markDelete)) : found.delete("start"); if (waits) found.set("order", "oldest"); }
  return found;
}

export function Messages({ name, topic, query, onPublish }) {
  const subscriptions = (topic.subscriptions || []).filter((s) => s.backlog !== null), subscription = query.get("subscription") || "";
  const waits = subscriptions.find((s) => s.name === subscription), path = `pulsarium/messages/${restPath(name)}`;
  const question = asked(query, topic.partitions ? null : waits).toString(), [tail, setTail] = useState(false), [open, setOpen] = useState("");
  const found = useGet(tail ? null : `${path}?${question}`, [waits && waits.markDelete]), tailed = useTail(path, tail, topic.messagesIn, question);
  const kept = useRef(), value = tail ? { messages: tailed.messages, complete: true } : found.value || kept.current;
  if (found.value) kept.current = found.value;
  const error = tail ? tailed.error : found.error, rows = value ? value.messages : [];
  const change = (more) => ask(query, { start: "", order: "", ...more });
  return html`<${Tools} name=${name} topic=${topic} query=${query} subscriptions=${subscriptions} tail=${tail} onTail=${() => setTail(!tail)} change=${change}/>
    <${Trouble} error=${error}/>
    ${!value ? !error && html`<${Skeleton} lines=${9}/>` : html`<section class="card flush lines" role="log" aria-label="Messages" aria-live=${tail ? "polite" : "off"}>
      ${rows.length ? html`<${Table} label="Messages" className="lines" rows=${rows} keyOf=${keyOf} onRow=${(m) => setOpen(open === keyOf(m) ? "" : keyOf(m))}
        detail=${(m) => open === keyOf(m) && html`<${Opened} m=${m} name=${name} subscription=${subscription} topic=${topic} onPublish=${onPublish}/>`} columns=${columns(topic, subscription, open, setOpen)}/>`
        : html`<${Empty} title=${!tail ? "No messages here" : tailed.ready ? "Waiting for new messages…" : "…"}>${!tail && html`<p>${question.includes("where") || question.includes("containing") || question.includes("key") ? "Nothing matches the search." : "The topic stores no messages, or they are before this place."}</p>`}</${Empty}>`}</section>
      <nav class="row" aria-label="Pages of messages">${!tail && html`
        ${value.previous && html`<button onClick=${() => ask(query, { start: value.previous })}>${query.get("order") === "oldest" ? "Earlier" : "Newer"}</button>`}
        ${value.next && html`<button onClick=${() => ask(query, { start: value.next })}>${!value.complete ? "Search on" : query.get("order") === "oldest" ? "Later" : "Older"}</button>`}
        <span class="soft">${many(value.total, "entry", "entries")} in all${value.scanned !== undefined && rows.length < value.scanned ? `, ${many(value.scanned, "message")} looked at` : ""}${value.complete === false ? "; the search is not at its end" : ""}</span>`}
        <span class="grow"></span><button onClick=${() => download("messages.jsonl", new Blob(rows.map((m) => JSON.stringify(m) + "\n")))}>Download</button></nav>
      <div class="small soft">GET /${path}?${question}</div>`}`;
}

function Tools({ name, topic, query, subscriptions, tail, onTail, change }) {
  const kinds = { where: ["Fields", 'total > 100 and customer == "Ada"'], containing: ["Text", "Text of the value, key or properties"], key: ["Key", "The whole key"] };
  const chosen = Object.keys(kinds).find((each) => query.get(each)) || "containing";
  const [kind, setKind] = useState(chosen), [text, set] = useState(query.get(chosen) || ""), timer = useRef(), [place, showPlace] = useState(false);
  const search = (kind, text) => change({ where: "", containing: "", key: "", [kind]: text });
  useEffect(() => {
    clearTimeout(timer.current);
    if (text !== (query.get(kind) || "")) timer.current = setTimeout(() => search(kind, text), TYPING_MS);
  }, [text, kind]);
  return html`<div class="tools"><select aria-label="Search in" value=${kind} onChange=${(e) => setKind(e.target.value)}>${Object.entries(kinds).map(([each, [title]]) => html`<option value=${each}>${title}</option>`)}</select>
    <form role="search" class="search" onSubmit=${(e) => { e.preventDefault(); search(kind, text); }}><input type="search" aria-label="Search messages" placeholder=${kinds[kind][1]} value=${text} onInput=${(e) => set(e.target.value)}/></form>
    <select aria-label="For subscription" value=${query.get("subscription") || ""} onChange=${(e) => change({ subscription: e.target.value })}>
      <option value="">no subscription</option>${subscriptions.map((s) => html`<option value=${s.name}>${s.name}</option>`)}</select>
    ${topic.partitions && html`<select aria-label="Partition" value=${query.get("partition") || ""} onChange=${(e) => change({ partition: e.target.value })}>
      <option value="">all partitions</option>${topic.partitions.map((_, i) => html`<option value=${i}>partition ${i}</option>`)}</select>`}
    <select aria-label="Order" value=${query.get("order") || ""} onChange=${(e) => change({ order: e.target.value, start: e.target.value ? "earliest" : "" })}>
      <option value="">newest first</option><option value="oldest">oldest first</option></select>
    <button aria-expanded=${String(place)} onClick=${() => showPlace(!place)}>Go to…</button>
    <button aria-pressed=${String(tail)} onClick=${onTail}>${tail ? "Stop following" : "Follow live"}</button></div>
    ${place && html`<${Place} name=${name} topic=${topic} query=${query}/>`}`;
}

function Place({ name, topic, query }) {
  const [at, setAt] = useState({ how: topic.partitions ? "time" : "id", text: "" }), [error, setError] = useState(null);
  const go = async (event) => {
    event.preventDefault();
    try {
      setError(null);
      if (at.how === "earliest") ask(query, { start: "earliest", order: "oldest" });
      else if (at.how === "latest") ask(query, { start: "", order: "" });
      else if (at.how === "time") ask(query, { fromMs: String(/^\d+$/.test(at.text) ? at.text : Date.parse(at.text)), start: "earliest", order: "oldest" });
      else if (at.how === "index") { const id = await get(lookupOf(at, name)); ask(query, { start: `${id.ledgerId}:${id.entryId}`, order: "oldest" }); }
      else ask(query, { start: at.text.trim(), order: "oldest" });
    } catch (problem) { setError(problem); }
  };
  return html`<form class="tools" onSubmit=${go}><${PositionField} label="From" value=${at} onChange=${setAt}/><button>Show</button><${Trouble} error=${error}/></form>`;
}

// New messages since the tail began. The page's stream tells that there are some; nothing is asked in between.
function useTail(path, on, published, question) {
  const [state, set] = useState({ messages: [] }), next = useRef(""), busy = useRef(false), newest = useRef();
  newest.current = published;
  useEffect(() => { set({ messages: [] }); next.current = ""; }, [on, question]);
  useEffect(() => {
    if (!on || busy.current) return;
    const look = async () => {
      for (let seen, more = false; more || seen !== newest.current;) { // messages may come while the broker answers
        seen = newest.current;
        if (!next.current) {
          next.current = (await get(`${path}?limit=1`)).end;
          set({ messages: [], ready: true });
          continue;
        }
        const asked = new URLSearchParams(question);
        asked.set("order", "oldest");
        asked.set("start", next.current);
        const value = await get(`${path}?${asked}`);
        more = Boolean(value.next);
        next.current = value.next || value.end;
        if (value.messages.length) set((old) => ({ messages: [...value.messages.reverse(), ...old.messages].slice(0, KEPT), ready: true }));
      }
    };
    busy.current = true;
    // A topic that has other partitions now refuses the place, so the tail begins anew at its end.
    look().catch((error) => (error.status === 400 && next.current ? (next.current = "") : set((old) => ({ ...old, error })))).finally(() => { busy.current = false; });
  }, [on, published, question]);
  return state;
}

const STATES = { acknowledged: ["good", "acknowledged"], delivered: ["waits", "delivered"], waiting: ["waits", "waits"], delayed: ["", "delayed"], passed: ["good", "passed by"] };

function State({ m }) {
  const state = m.state || (m.acknowledged === undefined ? "" : m.acknowledged ? "acknowledged" : "waiting");
  if (!state) return null;
  const [colour, text] = STATES[state] || ["", state];
  return html`<${Badge} state=${m.deliveries > 5 ? "stuck" : colour} title=${m.to ? `to ${m.to}` : ""}>${state === "delivered" && m.deliveries > 1 ? `delivered ${number(m.deliveries)}×` : text}</${Badge}>`;
}

function columns(topic, subscription, open, setOpen) {
  const batch = (m) => m.batchSize > 1 && html` <span class="badge" title="message of a batch">${m.batchIndex + 1}/${m.batchSize}</span>`;
  return [["Time", (m) => html`<button class="plain mono" aria-expanded=${String(open === keyOf(m))} aria-label=${`${m.publishMs ? timeOfDay(m.publishMs, true) : "–"}, message ${idOf(m)}`} title=${instant(m.publishMs)} onClick=${() => setOpen(open === keyOf(m) ? "" : keyOf(m))}>${m.publishMs ? timeOfDay(m.publishMs, true) : "–"}</button>`, { className: "c-time" }],
    ...(topic.partitions ? [["Part", (m) => m.partition, { n: true, className: "c-part wide" }]] : []),
    ["Id", (m) => html`<code data-message=${idOf(m)}>${m.id}</code>${batch(m)}`, { className: "c-id wide" }], ["Key", (m) => m.key, { className: "c-key wide" }],
    ["Value", (m) => html`<${Preview} m=${m}/>`], ["Size", (m) => (m.bytes === undefined ? "" : size(m.bytes)), { n: true, className: "c-size wide" }],
    ...(subscription ? [["State", (m) => html`<${State} m=${m}/>`, { className: "c-state" }]] : [])];
}

function Preview({ m }) {
  if (m.damage) return html`<span class="bad">cannot be read: ${m.damage}</span>`;
  if (m.marker !== undefined) return html`<span class="soft">a marker, which consumers do not receive</span>`;
  if (m.value === null) return html`<span class="soft">no value (null)</span>`;
  return html`<span class="mono">${m.preview ?? (typeof m.value === "string" ? m.value : JSON.stringify(m.value)).slice(0, 160)}</span>`;
}

function valueOf(m) {
  if (m.damage) return html`<p class="bad">It cannot be read: ${m.damage}</p>`;
  if (m.marker !== undefined) return html`<p class="note">A marker, which consumers do not receive.</p>`;
  if (m.value === null) return html`<p class="note">No value (null), which deletes its key in a compacted topic.</p>`;
  return html`<pre>${pretty(m.value)}${m.cut ? "…" : ""}</pre>${m.undecoded && html`<p class="waits">Not decoded: ${m.undecoded}</p>`}`;
}

// A message as a line of a seed, which a test gives to its broker.
const fixtureOf = (m) => JSON.stringify({ ...(m.key !== undefined && { key: m.key }), value: m.value, ...(m.properties && { properties: Object.fromEntries(m.properties) }), ...(m.eventMs && { eventTime: m.eventMs }) });

function Opened({ m, name, subscription, topic, onPublish }) {
  const [why, setWhy] = useState(null), id = idOf(m), on = m.partition === undefined ? name : `${name}-partition-${m.partition}`, [ledger, entry] = m.id.split(":");
  const find = async () => {
    const path = `/lab/why?${new URLSearchParams({ topic: on, subscription, messageId: id })}`;
    try { setWhy({ value: await get(path), path }); } catch (error) { setWhy({ error, path }); }
  };
  const json = pretty(m.value ?? null), text = typeof m.value === "string" ? m.value : json;
  return html`<div class="pair" data-opened=${id}><div>${valueOf(m)}
      <div class="row"><${Copied} text=${json} label="Copy JSON"/><${Copied} text=${fixtureOf(m)} label="Copy as a test's message"/>
        <${Copied} text=${`pulsarium admin topics get-message-by-id ${on} -l ${ledger} -e ${entry}`} label="Copy command"/>
        <button type="button" onClick=${() => onPublish({ text, key: m.key || "", properties: (m.properties || []).map(([k, v]) => `${k}=${v}`).join("\n") })}>Publish again…</button></div>
      ${subscription && html`<div class="row"><button type="button" onClick=${find} data-ask-why>What happened to it on ${subscription}?</button>
        <${Acts} on="subscription" only=${["skip-message", "seek"]} role=${topic.role} given=${{ topic: on, subscription, at: { how: "id", text: m.id } }}/></div>`}
      ${why && html`<div class="answer" role="status" data-answer>${why.error ? html`<${Trouble} error=${why.error}/>` : html`<${Why} value=${why.value} topic=${on}/>`}
        <div class="small soft">pulsarium why ${shortName(on)} ${subscription} ${id} · GET ${why.path}</div></div>`}</div>
    <div><${Pairs} of=${[["Message id", id], ["Partition", m.partition], ["Key", m.key], ["Published", instant(m.publishMs)], ["Event time", m.eventMs && instant(m.eventMs)], ["Deliver at", m.deliverAtMs && instant(m.deliverAtMs)],
      ["Broker time", m.brokerMs && instant(m.brokerMs)], ["Producer", m.producer], ["Sequence id", m.sequenceId], ["Index", m.index], ["Ordering key", m.orderingKey],
      ["Batch", m.batchSize && `${m.batchIndex + 1} of ${m.batchSize}`], ["Chunk", m.chunk && `${m.chunk.id + 1} of ${m.chunk.of} of ${m.chunk.uuid}`], ["Compression", m.compression],
      ["Replicated from", m.replicatedFrom], ["Decoded as", m.kind], ["Schema version", m.schemaVersion], ["Transaction", m.transaction && `${m.transaction.id}, ${m.transaction.state}`],
      ["Encryption", m.encryption && `${m.encryption.algorithm || "yes"}, keys ${m.encryption.keys.map((k) => k.name).join(", ")}`], ["Entry", m.size && `${number(m.size)} bytes`], ["Payload", m.bytes !== undefined && `${number(m.bytes)} bytes`],
      ["Held by", m.to], ["Deliveries", m.deliveries]]}/>
      ${m.properties && html`<h3>Properties</h3><${Pairs} of=${m.properties}/>${m.moreProperties && html`<p class="note">and ${number(m.moreProperties)} more</p>`}`}</div></div>`;
}
