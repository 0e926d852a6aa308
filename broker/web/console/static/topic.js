// The page of a topic, also of one with partitions or segments: what moves, and the tabs about it.
import { Acts } from "./act.js";
import { Chart, newest, Range, Shares, Tiles, useSamples } from "./charts.js";
import { html, useState } from "./html.js";
import { Messages } from "./messages.js";
import { Policies } from "./policies.js";
import { Publish } from "./publish.js";
import { Schemas } from "./schemas.js";
import { Segments } from "./segments.js";
import { Storage } from "./storage.js";
import { Subscriptions } from "./subscriptions.js";
import { Address, Ago, Badge, compact, Copied, Empty, many, number, pace, partsOf, partsText, rate, shortName, size, Skeleton, Table, Tabs, topicHref, TopicLink, Trouble } from "./parts.js";

const TABS = [["subscriptions", "Subscriptions"], ["messages", "Messages"], ["clients", "Producers"], ["storage", "Storage"], ["schema", "Schema"], ["policies", "Policies"], ["acts", "Acts"]];
const WITHOUT = { scalable: ["messages", "storage"], partitioned: ["storage"] };

export function Topic({ live: { value, error, at }, name, tab, query }) {
  const [publishing, publish] = useState(null);
  if (!value) return error ? html`<${Missing} name=${name} error=${error}/>` : html`<${Skeleton}/>`;
  const on = value.kind === "partitioned" || value.kind === "scalable" ? value.kind : "topic";
  const tabs = TABS.filter(([each]) => !(WITHOUT[on] || []).includes(each));
  const counts = { subscriptions: value.subscriptionCount, clients: value.producerCount };
  return html`<div class="head"><h2>${shortName(name)}</h2><${Copied} text=${name} label="Copy name"/>
      ${value.partitions && html`<${Badge} state="accent">${many(value.partitions.length, "partition")}</${Badge}>`}
      ${value.segments && html`<${Badge} state="accent">${many(value.segments.filter((s) => s.active).length, "active segment")}</${Badge}>`}
      ${partsOf(name).domain === "non-persistent" && html`<${Badge}>not persistent</${Badge}>`}
      ${value.terminated && html`<${Badge} state="waits">terminated</${Badge}>`} ${value.loaded === false && html`<${Badge}>not loaded</${Badge}>`}
      <span class="grow"></span>${on !== "scalable" && html`<button class="main" onClick=${() => publish({})}>Publish a message</button>`}</div>
    <${Tabs} label="About the topic" chosen=${tab} of=${tabs.map(([each, title]) => [each, topicHref(name, ...(each === "subscriptions" ? [] : [each])),
      html`${title}${counts[each] > 0 && html` <span class="badge">${number(counts[each])}</span>`}`])}/>
    <${Trouble} error=${error}/>
    ${tab === "messages" ? html`<${Messages} name=${name} topic=${value} query=${query} onPublish=${publish}/>`
      : tab === "clients" ? html`<${Producers} value=${value} name=${name}/>`
      : tab === "storage" ? html`<${Storage} name=${name} topic=${value}/>`
      : tab === "schema" ? html`<${Schemas} name=${name} role=${value.role}/>`
      : tab === "policies" ? html`<${Policies} of=${{ topic: name }} role=${value.role}/>`
      : tab === "acts" ? html`<section class="card"><h3>Acts on the topic</h3><${Acts} on=${on} given=${{ topic: name }} role=${value.role}/></section>`
      : html`<${Moves} name=${name} value=${value} at=${at} on=${on}/><${Subscriptions} name=${name} value=${value} at=${at} query=${query} on=${on}/>`}
    ${publishing && html`<${Publish} name=${name} role=${value.role} start=${publishing} onEnd=${() => publish(null)}/>`}`;
}

function Missing({ name, error }) {
  if (error.status !== 404) return html`<${Trouble} error=${error}/>`;
  const near = (error.details && error.details.near) || [];
  return html`<section class="card"><${Empty} title=${`There is no topic ${shortName(name)}`}>
    ${near.length > 0 && html`<p>Names that are close:</p><div class="row">${near.map((each) => html`<${TopicLink} name=${each}/>`)}</div>`}
    <p>A client that uses the name creates the topic, where the policy of the namespace allows it.</p><a href="#/topics">All topics</a></${Empty}></section>`;
}

function Moves({ name, value, at, on }) {
  const [step, setStep] = useState("1"), samples = useSamples({ topic: name }, step, at);
  const now = (of, otherwise) => newest(samples, of) ?? otherwise;
  const late = new Set((value.subscriptions || []).flatMap((s) => (s.parts || []).filter((p) => p.late).map((p) => p.part)));
  const backlogs = value.partitions && value.partitions.map((p) => p.backlog || 0), ins = value.partitions && value.partitions.map((p) => p.messagesIn || 0);
  return html`<${Tiles} samples=${samples} of=${[["In", pace(now("in", value.in)), "messages/s", "in", "one"], ["Out", pace(now("out", value.out)), "messages/s", "out", "two"],
      ["Backlog", compact(now("backlog")), "messages", "backlog", "three"], ["Unacknowledged", compact(now("unacked")), "messages", "unacked", "three"],
      ["Published", compact(value.messagesIn), "messages"], ["Stored", size(value.storageSize), "", "storage", "one"]]}/>
    ${samples && samples.times.length > 1 && html`<div class="grid"><section class="card"><${Chart} title="Messages a second" height=${96} times=${samples.times} lines=${[["in", samples.in], ["out", samples.out]]} format=${pace}/></section>
      <section class="card"><${Chart} title="Backlog" height=${96} times=${samples.times} lines=${[["backlog", samples.backlog]]} extra=${html`<${Range} value=${step} onChange=${setStep}/>`}/></section></div>`}
    ${on === "partitioned" && html`<div class="grid"><section class="card"><h3>Published to each partition</h3><${Shares} topic=${name} values=${ins} what="Published messages"/></section>
      <section class="card"><h3>Backlog of each partition</h3><${Shares} topic=${name} values=${backlogs} late=${late} what="Backlog"/></section></div>`}
    ${on === "scalable" && html`<${Segments} value=${value}/><${Parts} title="Segments" rows=${value.segments}/>`}
    ${value.loaded === false && html`<p class="note card">The topic is not loaded: no client has used it since the broker started.</p>`}`;
}

function Parts({ title, rows }) {
  const of = (cell) => (row) => (row.loaded ? cell(row) : "");
  return html`<section class="card flush"><h3>${title}</h3><${Table} label=${title} rows=${rows} late=${(row) => row.late} columns=${[
    ["Name", (row) => html`<${TopicLink} name=${row.name}/> ${!row.loaded && html`<span class="soft small">not loaded</span>`} ${row.active === false && html`<${Badge}>sealed</${Badge}>`}
      ${row.late && html`<div class="why late small"><b>${row.late.subscription}</b> waits: ${row.late.reason}</div>`}`],
    ["Producers", of((row) => number(row.producers)), true], ["Published", of((row) => number(row.messagesIn)), true],
    ["Consumers", of((row) => number(row.consumers)), true], ["Backlog", of((row) => number(row.backlog)), true],
    ["Stored", of((row) => size(row.storageSize)), true]]}/></section>`;
}


function Producers({ value, name }) {
  const producers = value.producers || [];
  return html`<section class="card flush"><${Table} label="Producers" rows=${producers} empty="No producer is connected." keyOf=${(p) => p.name + p.id} columns=${[
      ["Name", (p) => p.name], ["In", (p) => rate(p.in), true], ["Address", (p) => html`<${Address} of=${p.address}/>`], ["Client", (p) => p.client || "–"],
      ...(value.partitions ? [["Partitions", (p) => partsText(p.parts)]] : []), ["Connected", (p) => html`<${Ago} ms=${p.connectedMs}/>`]]}/>
    ${value.producerCount > producers.length && html`<p class="note small">and ${many(value.producerCount - producers.length, "more producer")}</p>`}</section>
    <p class="small soft">pulsarium admin topics stats ${name}</p>`;
}
