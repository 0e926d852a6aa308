// The subscriptions of a topic: one line each, with the reason why it waits; opened, its consumers, its past and the acts on it.
import { Acts } from "./act.js";
import { get } from "./api.js";
import { Chart, Shares, Spark, useSamples } from "./charts.js";
import { html, useState } from "./html.js";
import { Address, Ago, ask, Badge, compact, Empty, Facts, many, number, pace, partsText, pretty, rate, shortName, Span, span, Table, topicHref, Trouble } from "./parts.js";

const CAUGHT_UP = "everything was delivered";
export const ON_ALL = ["rewind", "clear", "expire", "unsubscribe", "unsubscribe-force"]; // what Pulsar does on all partitions at once
const FEW = 3; // subscriptions that are all open
const DRAWN = 12; // subscriptions whose backlog is drawn while they are closed: each asks for its samples

export function Subscriptions({ name, value, at, query, on }) {
  const all = value.subscriptions || [], [part, setPart] = useState(""), chosen = query.get("subscription");
  if (!all.length) {
    return html`<section class="card"><${Empty} title="No subscriptions"><p>What is published is kept for nobody. A consumer that subscribes makes one, or:</p>
      <${Acts} on=${on} only=${["subscribe", "subscribe-all"]} given=${{ topic: name }} role=${value.role}/></${Empty}></section>`;
  }
  const shown = [...all].filter((s) => s.name.includes(part)).sort((a, b) => Number(b.late || 0) - Number(a.late || 0));
  const first = chosen && shown.find((s) => s.name === chosen);
  const ordered = first ? [first, ...shown.filter((s) => s !== first)] : shown;
  return html`<section class="card flush"><div class="bar"><h3>Subscriptions</h3>
      ${all.length > 8 && html`<input type="search" aria-label="Filter subscriptions" placeholder="Part of a name" value=${part} onInput=${(e) => setPart(e.target.value)}/>`}
      <span class="grow"></span><${Acts} on=${on} only=${["subscribe", "subscribe-all"]} given=${{ topic: name }} role=${value.role}/></div>
    ${ordered.map((s) => html`<${Subscription} key=${s.name} name=${name} s=${s} at=${at} role=${value.role} on=${on} isDrawn=${all.length <= DRAWN} partitions=${value.partitions}
      start=${s.name === chosen || (!chosen && all.length <= FEW)} onOpen=${(open) => ask(query, { subscription: open && all.length > FEW ? s.name : "" })}/>`)}
    ${value.subscriptionCount > all.length && html`<p class="note small">and ${many(value.subscriptionCount - all.length, "more subscription")}</p>`}</section>`;
}

// What the reason means for a person who looks at it for the first time.
function line(s) {
  if (s.backlog === null) return null;
  if (!s.backlog) return ["fine", "Nothing waits: the backlog is empty."];
  if (s.reason && s.reason !== CAUGHT_UP) return [s.late || s.backlog > s.delayed ? "late" : "", `Waits: ${s.reason}.`];
  if (s.delayed >= s.backlog) return ["", `${many(s.delayed, "message")} wait for the time of delivery.`];
  if (s.late) return ["late", "Waits: everything was delivered, but the consumers have not acknowledged it."];
  return ["", "Everything was delivered; acknowledgements are awaited."];
}

const figure = (value, name, className = "") => html`<span class="num ${className}">${value}<small>${name}</small></span>`;

function Subscription({ name, s, at, role, on, start, isDrawn, partitions, onOpen }) {
  const [open, setOpen] = useState(start), said = line(s), show = () => { setOpen(!open); onOpen(!open); };
  const samples = useSamples({ topic: name, subscription: s.name }, "1", open || (isDrawn && s.backlog) ? at : 0);
  return html`<article class="sub ${s.late ? "late" : ""}" data-subscription=${s.name}>
    <button class="line1" type="button" aria-expanded=${String(open)} onClick=${show}>
      <span><b class="name">${s.name}</b> <span class="badge">${s.type === "None" ? "no consumer yet" : s.type}</span> ${!s.durable && html`<span class="badge">not durable</span>`}</span>
      <${Spark} values=${samples && samples.backlog.slice(-120)} colour="three" label=${`backlog of ${s.name} over time`}/>
      ${figure(s.backlog === null ? "–" : compact(s.backlog), "backlog")}${figure(s.ageMs ? span(s.ageMs) : "–", "oldest waits", "mid")}
      ${figure(html`<span>${compact(s.unacked)}</span>`, "unacknowledged", "mid")}${figure(rate(s.out), "out", "wide")}${figure(number(s.consumerCount), "consumers", "wide")}<span class="chev" aria-hidden="true">›</span></button>
    ${said && html`<p class="why ${said[0]}" data-why><b>${said[1]}</b> ${s.late && html`<span class="small">No progress for <${Span} ms=${s.since}/>.</span>`}</p>`}
    ${open && html`<${Inside} name=${name} s=${s} role=${role} on=${on} samples=${samples} partitions=${partitions}/>`}</article>`;
}

function Inside({ name, s, role, on, samples, partitions }) {
  const [why, setWhy] = useState(null);
  const find = async () => {
    const path = `/lab/why?${new URLSearchParams({ topic: name, subscription: s.name })}`;
    try { setWhy({ path, value: await get(path) }); } catch (error) { setWhy({ path, error }); }
  };
  const late = new Set((s.parts || []).filter((p) => p.late).map((p) => p.part));
  return html`<div class="inner"><div class="row">
      ${s.backlog > 0 && html`<button class="main" data-ask-why onClick=${find}>Why is the next message not delivered?</button>`}
      ${on !== "scalable" && html`<a href=${topicHref(name, "messages") + `?${new URLSearchParams({ subscription: s.name, ...(s.backlog > 0 && on === "topic" && { start: "next" }) })}`}>${s.backlog > 0 ? "See the messages that wait" : "See messages"}</a>`}
      ${s.backlog !== null && on !== "scalable" && html`<${Acts} on="subscription" first=${on === "partitioned" ? ["rewind", "clear"] : ["skip-message", "seek", "clear"]}
        only=${on === "partitioned" ? ON_ALL : undefined} given=${{ topic: name, subscription: s.name, next: s.next }} role=${role}/>`}</div>
    ${why && html`<div class="answer" role="status" data-answer>${why.error ? html`<${Trouble} error=${why.error}/>` : html`<${Why} value=${why.value} topic=${name}/>`}
      <div class="small soft">pulsarium why ${shortName(name)} ${s.name} · GET ${why.path}</div></div>`}
    <${Facts} of=${[s.delayed > 0 && [number(s.delayed), "delayed"], [number(s.messagesOut), "delivered"], s.redelivered > 0 && [number(s.redelivered), "redelivered"],
      s.ackRate !== undefined && [rate(s.ackRate), "acknowledged"], s.markDelete && [s.markDelete, "mark-delete position"], s.readPosition && [s.readPosition, "read position"], s.next && [s.next, "next message"]]}/>
    ${samples && samples.times.length > 1 && html`<div class="grid"><div class="card"><${Chart} title="Lag" height=${70} times=${samples.times} lines=${[["backlog", samples.backlog], ["unacknowledged", samples.unacked]]}/></div>
      <div class="card"><${Chart} title="Delivered a second" height=${70} times=${samples.times} lines=${[["out", samples.out], ["redelivered", samples.redelivered]]} format=${pace}/></div></div>`}
    ${partitions && s.shares && html`<div class="card"><h3>Backlog of each partition</h3><${Shares} topic=${name} values=${s.shares} late=${late} what=${`Backlog of ${s.name}`}/>
      ${s.parts.filter((p) => p.late).slice(0, 10).map((p) => html`<p class="small waits">Partition ${p.part} waits: ${p.reason}, for <${Span} ms=${p.sinceMs}/>.</p>`)}</div>`}
    <${Consumers} s=${s} partitions=${partitions}/></div>`;
}

export function Why({ value, topic }) {
  const parts = value.partitions || [];
  return html`<p class="why"><b>${value.text}.</b></p>
    ${parts.length > 0 && html`<${Table} label="Partitions" rows=${parts} columns=${[["Partition", (p) => html`<a href=${topicHref(`${topic}-partition-${p.partition}`)}>${p.partition}</a>`], ["Why", (p) => p.text]]}/>`}
    ${value.details && html`<details><summary>Facts</summary><pre>${pretty(value.details)}</pre></details>`}`;
}

function Consumers({ s, partitions }) {
  return html`<${Table} label="Consumers of ${s.name}" rows=${s.consumers} empty="No consumer is connected." keyOf=${(c) => c.name + c.id + c.address} columns=${[
      ["Consumer", (c) => html`${c.name || "(no name)"} ${s.active === c.name && s.active && html`<${Badge} state="good">active</${Badge}>`}`],
      ...(partitions ? [["Partitions", (c) => partsText(c.parts)]] : []),
      ["Permits", (c) => html`<span class=${c.permits > 0 ? "" : "waits"}>${number(c.permits)}</span>`, true],
      ["Unacknowledged", (c) => html`<span class=${c.blocked ? "waits" : ""}>${number(c.unacked)}${c.blocked ? " (limit)" : ""}</span>`, true],
      ["Delivered", (c) => number(c.messagesOut), true], ["Out", (c) => rate(c.out), true],
      ["Last delivery", (c) => html`<${Ago} ms=${c.consumedMs}/>`],
      ["Last acknowledgement", (c) => html`<span class=${!c.ackedMs && c.unacked && s.late ? "waits" : ""}><${Ago} ms=${c.ackedMs}/></span>`],
      ["Address", (c) => html`<${Address} of=${c.address}/> ${!c.writable && html`<${Badge} state="waits">does not read</${Badge}>`}`], ["Client", (c) => c.client || "–"]]}/>
    ${s.consumerCount > s.consumers.length && html`<p class="note small">and ${many(s.consumerCount - s.consumers.length, "more consumer")}</p>`}`;
}
