// The overview: what waits too long, in front of everything else.
import { Acts } from "./act.js";
import { html } from "./preact.js";
import { Facts, many, number, shortName, Span, topicHref, Trouble } from "./parts.js";

export function Late({ topic, late }) {
  return html`<article class="card late" data-late>
    <h3><a href=${topicHref(topic)}>${shortName(topic)}</a> <small>${late.subscription}</small></h3>
    <p class="why late"><b>Waits:</b> ${late.reason}. <span class="small">No progress for <${Span} ms=${late.since}/>.</span></p>
    <a href=${topicHref(topic)}>See why, and move it on</a></article>`;
}

const counted = (n, one) => [number(n), n === 1 ? one : one + "s"];

export function Overview({ live: { value, error } }) {
  if (!value) return html`<h2>Overview</h2><${Trouble} error=${error}/>${!error && html`<p class="note">Connecting…</p>`}`;
  const silent = value.withoutEffect;
  return html`<h2>Overview</h2><${Trouble} error=${error}/>
    <p class="soft">${value.serviceUrl} · version ${value.version} · profile ${[value.profile, ...value.proposals].join(" + ")} · cluster ${value.cluster} ·
      up for <${Span} ms=${value.upSinceMs} now=${Date.now}/></p>
    <section class="card"><${Facts} of=${[counted(value.topicCount, "topic"), counted(value.namespaces, "namespace"),
      counted(value.connections, "connection")]}/>
      <a href="#/topics">All topics</a></section>
    <h3 id="late">Waiting for longer than a minute</h3>
    ${value.late.length ? value.late.map((late) => html`<${Late} key=${late.topic + "\n" + late.subscription}
      topic=${late.topic} late=${late}/>`) : html`<p class="fine">Nothing. Every subscription makes progress.</p>`}
    ${!value.topicCount && html`<p class="note">No topics yet. Produce to ${value.serviceUrl}, and they appear here.</p>`}
    ${silent.length > 0 && html`<article class="card"><h3>${many(silent.length, "setting")} without an effect in Pulsarium</h3>
      <ul>${silent.map((f) => html`<li><b>${f.what}</b> of ${f.where}: ${f.why}</li>`)}</ul></article>`}
    ${value.stalls.length > 0 && html`<article class="card" data-stalls><h3>The broker was held up</h3>
      <p class="fine">All clients waited meanwhile. A client that sends less at once, or a smaller request, helps.</p>
      <ul>${value.stalls.map((s) => html`<li>${number(Math.round(s.seconds * 1000))} ms, <${Span} ms=${s.at_ms}/> ago: ${s.work}</li>`)}</ul></article>`}
    <details><summary>Tenants</summary><${Acts} on="broker" given=${{}} role=${value.role}/></details>`;
}
