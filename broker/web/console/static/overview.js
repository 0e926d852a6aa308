// The overview: how much moves, what is stuck and why, which topics move most, and what happened.
import { Chart, newest, Range, Spark, Tiles, useSamples } from "./charts.js";
import { html, useState } from "./html.js";
import { Badge, Code, compact, Copied, Empty, hrefOf, many, number, pace, rate, shortName, size, Skeleton, Span, subscriptionHref, Table, timeOfDay, topicHref, TopicLink, Trouble } from "./parts.js";

export function Overview({ live: { value, error, at } }) {
  const [step, setStep] = useState("1"), samples = useSamples({}, step, at);
  if (!value) return error ? html`<${Trouble} error=${error}/>` : html`<${Skeleton}/>`;
  if (!value.userTopics) return html`<${First} value=${value}/>`;
  const now = (name) => newest(samples, name) ?? (value.now || {})[name];
  return html`<div class="head"><h2>${value.cluster}</h2><code>${value.serviceUrl}</code><${Copied} text=${value.serviceUrl}/>
      <span class="soft">${many(value.userTopics, "topic")} · ${many(value.namespaces, "namespace")} · <a href="#/connections">${many(value.connections, "connection")}</a> · up for <${Span} ms=${value.upSinceMs} now=${Date.now}/></span>
      <span class="grow"></span><${Range} value=${step} onChange=${setStep}/></div>
    <${Trouble} error=${error}/>
    <${Tiles} samples=${samples} of=${[["In", pace(now("in")), "messages/s", "in", "one"], ["Out", pace(now("out")), "messages/s", "out", "two"],
      ["Backlog", compact(now("backlog")), "messages", "backlog", "three"], ["Unacknowledged", compact(now("unacked")), "messages", "unacked", "three"],
      ["Redelivered", pace(now("redelivered")), "messages/s", "redelivered", "three"], ["Stored", size(now("storage")), "", "storage", "one"]]}/>
    ${samples && html`<div class="grid"><section class="card"><${Chart} title="Messages a second" times=${samples.times} lines=${[["in", samples.in], ["out", samples.out]]} format=${pace}/></section>
      <section class="card"><${Chart} title="Backlog" times=${samples.times} lines=${[["backlog", samples.backlog], ["unacknowledged", samples.unacked]]}/></section></div>`}
    <div class="split"><div><${Stuck} causes=${value.stuck} count=${value.stuckCount}/><${Busiest} rows=${value.busiest}/><${Notes} value=${value}/></div><${Feed} events=${value.events}/></div>`;
}

function Stuck({ causes, count }) {
  if (!causes.length) return html`<section class="card" id="late"><h3>No progress for longer than a minute</h3><p class="fine">Nothing. Every subscription makes progress.</p></section>`;
  return html`<section class="card flush" id="late"><div class="bar"><h3>No progress for longer than a minute</h3><${Badge} state="waits">${many(count, "subscription")}</${Badge}></div>
    ${causes.map((cause) => html`<${Cause} key=${cause.topic + "\n" + cause.subscription + cause.kind} cause=${cause}/>`)}</section>`;
}

function Cause({ cause }) {
  const { topic, subscription, loop, partitions, backlog } = cause;
  return html`<article class="cause ${loop ? "loop" : ""}" data-late><div class="bar"><b><a href=${subscriptionHref(topic, subscription)}>${shortName(topic)}</a></b> <span>${subscription}</span>
      ${loop && html`<${Badge} state="stuck">loop</${Badge}>`}${partitions.length > 0 && html`<${Badge}>${many(partitions.length, "partition")}</${Badge}>`}
      <span class="grow"></span><span class="soft small">${many(backlog, "message")} · for <${Span} ms=${cause.sinceMs}/></span></div>
    <p class=${loop ? "stuck" : "waits"}>${loop ? `${loop.messageId} was delivered ${number(loop.deliveries)} times${loop.consumer ? ` to ${loop.consumer}` : ""}, and came back each time.` : `Waits: ${cause.reason}${cause.kind === "caughtUp" ? ", but the consumers have not acknowledged it" : ""}.`}</p>
    <p class="small soft">${cause.remedy} <a href=${subscriptionHref(topic, subscription)}>See why, and move it on</a></p></article>`;
}

function Busiest({ rows }) {
  if (!rows.length) return null;
  return html`<section class="card flush"><div class="bar"><h3>Topics that move most</h3><span class="grow"></span><a href="#/topics?sort=in">All topics</a></div>
    <${Table} label="Topics that move most" rows=${rows} keyOf=${(t) => t.name} late=${(t) => t.late} columns=${[["Topic", (t) => html`<${TopicLink} name=${t.name}/>`],
      ["In, last minute", (t) => html`<${Spark} values=${t.trend}/>`], ["In", (t) => rate(t.in), true], ["Out", (t) => rate(t.out), true],
      ["Backlog", (t) => number(t.backlog), true]]}/></section>`;
}

const GROUPS = { faultHit: "lab", labAct: "lab", loopFound: "stuck", quotaExceeded: "stuck", storageFull: "stuck", topicDeleted: "waits" };

function Feed({ events }) {
  return html`<section class="card flush"><h3>What happened</h3>
    ${events.length ? html`<ol class="feed" tabindex="0" aria-label="What happened, newest first">${events.map((e) => html`<li key=${e.number}><time>${timeOfDay(e.ms)}</time>
      <span class=${GROUPS[e.kind] || ""}>${e.text} ${e.topic && e.kind !== "topicDeleted" && html`<a href=${e.subscription ? subscriptionHref(e.topic, e.subscription) : topicHref(e.topic)}>open</a>`}</span></li>`)}</ol>`
      : html`<p class="note feed">Nothing yet.</p>`}</section>`;
}

function Notes({ value: { withoutEffect, stalls } }) {
  return html`${stalls.length > 0 && html`<article class="card" data-stalls><h3>The broker was held up</h3>
      <p class="soft">All clients waited meanwhile. A client that sends less at once, or a smaller request, helps.</p>
      <ul>${stalls.map((s) => html`<li>${number(Math.round(s.seconds * 1000))} ms, <${Span} ms=${s.at_ms}/> ago: ${s.work}</li>`)}</ul></article>`}
    ${withoutEffect.length > 0 && html`<details class="card"><summary>${many(withoutEffect.length, "setting")} without an effect in Pulsarium</summary>
      <ul>${withoutEffect.map((f) => html`<li><b>${f.what}</b> of ${f.where}: ${f.why}</li>`)}</ul></details>`}`;
}

// What a broker without topics shows: how the first message comes here.
function First({ value }) {
  return html`<section class="card"><${Empty} title="The broker is ready, and has no topics yet">
    <p>Let a client use <code>${value.serviceUrl}</code>, or publish the first message from here:</p>
    <${Code} text=${`pulsarium client produce orders --messages hello --url ${value.serviceUrl}`}/>
    <p>In Python, Java, Go, Node.js or any other language, the URL is all that a Pulsar client needs. Topics appear here as they are made.</p>
    <div class="row"><a href=${hrefOf("namespace", "public", "default")}>Create a topic</a><a href="#/lab/state">Apply a seed</a></div></${Empty}></section><${Notes} value=${value}/>
    ${value.events.length > 0 && html`<${Feed} events=${value.events}/>`}`;
}
