// The messages of a topic: a page of them, or the newest ones as they come.
import { Acts, lookupOf, PositionField } from "./act.js";
import { get, useGet } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { download, instant, many, number, pretty, restPath, shortName, Trouble } from "./parts.js";

const KEPT = 500; // messages of a tail

async function startOf(at, name) {
  if (at.how === "earliest" || at.how === "latest") return at.how;
  if (at.how === "id") return at.text.trim();
  const found = await get(lookupOf(at, name));
  return `${found.ledgerId}:${found.entryId}`;
}

function after(position) {
  const [ledger, entry] = position.split(":").map(Number);
  return `${ledger}:${entry + 1}`;
}

export function Messages({ name, topic, query }) {
  const subscriptions = (topic.subscriptions || []).filter((s) => s.backlog !== null);
  const [subscription, choose] = useState(query.get("subscription") || "");
  const waits = subscriptions.find((s) => s.name === subscription);
  const [at, setAt] = useState({ how: "latest", text: "" });
  const [start, setStart] = useState(query.get("start") === "next" && waits ? after(waits.markDelete) : "latest");
  const [error, setError] = useState(null), [tail, setTail] = useState(false), [part, setPart] = useState("");
  const path = start && `pulsarium/messages/${restPath(name)}?${new URLSearchParams({ start, subscription })}`;
  const live = tail ? topic.lastConfirmed : "", found = useGet(tail ? null : path, [waits && waits.markDelete]);
  const tailed = useTail(name, tail, live, subscription);
  const show = async () => {
    setError(null);
    try { setTail(false); setStart(await startOf(at, name)); } catch (problem) { setError(problem); }
  };
  const value = tail ? { messages: tailed.messages } : found.value;
  const shown = (value ? value.messages : []).filter((m) => !part || JSON.stringify(m).includes(part));
  return html`<section class="card"><div class="row">
      <${PositionField} label="From" value=${at} onChange=${setAt}/><button onClick=${show}>Show</button>
      <label>For subscription<select value=${subscription} onChange=${(e) => choose(e.target.value)}>
        <option value="">none</option>${subscriptions.map((s) => html`<option value=${s.name}>${s.name}</option>`)}</select></label>
      <label>Containing<input value=${part} onInput=${(e) => setPart(e.target.value)}/></label>
      <button aria-pressed=${tail} onClick=${() => setTail(!tail)}>${tail ? "Stop following" : "Follow live"}</button></div>
    <div class="small soft">GET /${path}</div></section>
    <${Trouble} error=${error || found.error || tailed.error}/>
    ${value && html`<div role="log" aria-label="Messages" aria-live=${tail ? "polite" : "off"}>
      ${shown.map((m) => html`<${Message} key=${m.id + ":" + (m.batchIndex ?? "")} m=${m} name=${name} subscription=${subscription} role=${topic.role}/>`)}</div>
      ${!shown.length && html`<p class="note">${tail ? "Waiting for new messages…" : "No messages here."}</p>`}
      <nav class="row" aria-label="Pages of messages">${!tail && html`
        ${value.previous && html`<button onClick=${() => setStart(value.previous)}>Earlier</button>`}
        ${value.next && html`<button onClick=${() => setStart(value.next)}>Later</button>`}
        <span class="soft">${many(value.total, "entry", "entries")} in all, from number ${number(value.first + 1)}</span>`}
        <button onClick=${() => download("messages.jsonl", new Blob(shown.map((m) => JSON.stringify(m) + "\n")))}>Download</button></nav>`}`;
}

// New messages since the tail began. The page's stream tells that there are some; nothing is asked in between.
function useTail(name, on, lastConfirmed, subscription) {
  const [state, set] = useState({ messages: [] }), next = useRef("");
  useEffect(() => {
    if (!on) { set({ messages: [] }); next.current = ""; return; }
    if (!next.current) { next.current = after(lastConfirmed); return; }
    let stale = false;
    get(`pulsarium/messages/${restPath(name)}?${new URLSearchParams({ start: next.current, subscription })}`).then((value) => {
      if (stale) return;
      next.current = value.next || value.end;
      if (value.messages.length) set((old) => ({ messages: [...value.messages.reverse(), ...old.messages].slice(0, KEPT) }));
    }, (error) => stale || set((old) => ({ ...old, error })));
    return () => { stale = true; };
  }, [on, lastConfirmed]);
  return state;
}

function valueOf(m) {
  if (m.damage) return html`<p class="bad">It cannot be read: ${m.damage}</p>`;
  if (m.marker !== undefined) return html`<p class="note">A marker, which consumers do not receive.</p>`;
  if (m.value === null) return html`<p class="note">No value (null), which deletes its key in a compacted topic.</p>`;
  return html`<pre>${pretty(m.value)}${m.cut ? "…" : ""}</pre>`;
}

function Message({ m, name, subscription, role }) {
  const [why, setWhy] = useState(null);
  const id = m.batchIndex === undefined ? m.id : `${m.id}:${m.batchIndex}`;
  const ask = async () => {
    const path = `/lab/why?${new URLSearchParams({ topic: name, subscription, messageId: id })}`;
    try { setWhy({ value: await get(path), path }); } catch (error) { setWhy({ error, path }); }
  };
  const facts = [["published", instant(m.publishMs)], ["producer", m.producer], ["sequence id", m.sequenceId], ["index", m.index],
    ["broker time", m.brokerMs && instant(m.brokerMs)], ["event time", m.eventMs && instant(m.eventMs)],
    ["deliver at", m.deliverAtMs && instant(m.deliverAtMs)], ["ordering key", m.orderingKey],
    ["batch", m.batchSize && `${m.batchIndex + 1} of ${m.batchSize}`], ["compression", m.compression],
    ["chunk", m.chunk && `${m.chunk.id + 1} of ${m.chunk.of} of ${m.chunk.uuid}`], ["replicated from", m.replicatedFrom],
    ["schema version", m.schemaVersion], ["transaction", m.transaction && `${m.transaction.id}, ${m.transaction.state}`],
    ["encryption", m.encryption && `${m.encryption.algorithm || "yes"}, keys ${m.encryption.keys.map((k) => k.name).join(", ")}`],
    ["entry", m.size && `${number(m.size)} bytes`], ["payload", m.bytes !== undefined && `${number(m.bytes)} bytes`],
    ["decoded as", m.kind], ["not decoded", m.undecoded]].filter(([, value]) => value !== undefined && value !== false && value !== 0);
  const state = m.acknowledged === undefined ? null : m.acknowledged
    ? html`<span class="fine">not in the backlog</span>` : html`<span class="amber">not acknowledged</span>`;
  const [ledger, entry] = m.id.split(":");
  return html`<article class="card" data-message=${id}><h3><code>${id}</code> ${m.key !== undefined && html`<small>key ${m.key}</small>`} <small>${state}</small></h3>
    ${valueOf(m)}
    ${m.properties && html`<ul class="facts">${m.properties.map(([key, value]) => html`<li><b>${key}</b> = ${value}</li>`)}
      ${m.moreProperties && html`<li>and ${number(m.moreProperties)} more</li>`}</ul>`}
    <details><summary>Facts</summary><ul class="facts">${facts.map(([what, value]) => html`<li>${what} <b>${value}</b></li>`)}</ul>
      <div class="small soft">pulsarium admin topics get-message-by-id ${name} -l ${ledger} -e ${entry}</div></details>
    ${subscription && html`<div class="row"><button onClick=${ask} data-ask-why>What happened to it on ${subscription}?</button>
      <${Acts} on="subscription" only=${["skip-message", "seek"]} role=${role}
        given=${{ topic: name, subscription, at: { how: "id", text: m.id } }}/></div>`}
    ${why && html`<div role="status" data-answer>${why.error ? html`<${Trouble} error=${why.error}/>` : html`<p class="why"><b>${why.value.text}.</b></p>`}
      <div class="small soft">pulsarium why ${shortName(name)} ${subscription} ${id} · GET ${why.path}</div></div>`}</article>`;
}
