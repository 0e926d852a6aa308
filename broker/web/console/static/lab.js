// The lab: recipes, the clock, faults, masks, captures, the linter, the whole state, and what was done so far.
import { Acts, callText, Commands } from "./act.js";
import { send, useGet } from "./api.js";
import { Capture } from "./captures.js";
import { html, useEffect, useState } from "./html.js";
import { Recipes } from "./recipes.js";
import { Badge, download, instant, many, number, pretty, Skeleton, span, Table, timeOfDay, Trouble } from "./parts.js";

export function Lab({ live: { value, error }, part }) {
  useEffect(() => { const at = part && document.getElementById(`lab-${part}`); if (at) at.scrollIntoView(); }, [part, !value]);
  if (!value) return error ? html`<${Trouble} error=${error}/>` : html`<${Skeleton}/>`;
  const { role, clock, linter } = value;
  // What cannot be done now is not a live button: only the acts of the present state are shown.
  const acts = (on, given = {}, only) => html`<${Acts} on=${on} given=${given} role=${role} only=${only}/>`;
  const ofClock = [clock && clock.frozen ? "resume" : "freeze", "advance", ...(clock ? ["reset-clock"] : []), "run-next"];
  return html`<div class="head"><h2>Lab</h2><span class="soft">The broker misbehaves here as you say, for tests and for a look at how clients bear it.</span></div><${Trouble} error=${error}/>
    <div class="split"><div><${Recipes} value=${value}/>
    <section class="card" id="lab-faults"><h3>Faults</h3><p class="soft">A fault acts on frames of one command: it loses, delays, doubles or damages them, answers them with an error, or closes their connection.</p>
      <${Table} label="Faults" rows=${value.faults} empty="No faults." columns=${[["Id", (f) => f.id],
      ["Fault", (f) => html`<b>${f.command}</b> ${typeof f.action === "object" ? f.action.kind : pretty(f.action)} <span class="soft small">${detailsOf(f)}</span>`],
      ["Hits", (f) => html`${number(f.hits)} ${f.hits > 0 && html`<${Badge} state="lab">hit</${Badge}>`}`, true], ["", (f) => acts("fault", { id: String(f.id) })]]}/>
      ${acts("faults", {}, value.faults.length ? undefined : ["fault"])}</section>
    <section class="card" id="lab-clock"><h3>Clock</h3><p class="soft">Timers, expiry and delayed messages follow the broker's clock, which can stand still or jump.</p><p>${!clock ? "The clock follows real time."
      : clock.frozen ? `The clock is frozen at ${instant(clock.nowMs)}.`
      : `The clock is ${span(Math.abs(clock.aheadMs))} ${clock.aheadMs > 0 ? "ahead of" : "behind"} real time.`}</p>
      ${value.namespaces.length > 0 && html`<p>Namespaces with their own time: ${value.namespaces.join(", ")}.</p>`}${acts("clock", {}, ofClock)}</section>
    <section class="card" id="lab-masks"><h3>Masks</h3><p class="soft">A mask shows clients an older or smaller broker: another protocol version, or fewer features.</p>
      <${Table} label="Masks" rows=${value.masks} empty="No masks." columns=${[["Id", (m) => m.id],
      ["Mask", (m) => html`<code class="small">${JSON.stringify(m)}</code>`], ["", (m) => acts("mask", { id: String(m.id) })]]}/>${acts("masks")}</section>
    <section class="card" id="lab-captures"><h3>Captures</h3><p class="soft">A capture records every frame of every connection, for a look here or in Wireshark.</p>
      ${value.captures.map((c) => html`<${Capture} key=${c.id} capture=${c} role=${role}/>`)}${acts("captures")}</section>
    <section class="card" id="lab-linter"><h3>Linter <${Badge} state=${linter.running ? "good" : ""}>${linter.running ? "running" : "stopped"}</${Badge}></h3><p class="soft">The linter checks every client against the rules of the protocol, as it works.</p>
      <${Findings} linter=${linter}/>${acts("linter", {}, [linter.running ? "lint-stop" : "lint", ...(Object.keys(linter.counts).length ? ["lint-clear"] : [])])}</section>
    <section class="card" id="lab-state"><h3>State of the broker</h3><p class="soft">A snapshot has all topics, messages, subscriptions and policies in one file. A seed describes them in TOML.</p><${State}/></section>
    <section class="card danger-zone"><h3 class="stuck">Delete everything</h3><p class="soft">All topics, messages, policies and tenants of this broker go, for every program that uses it. Save a snapshot first: nothing else brings them back.</p>${acts("state")}</section></div>
    <${Timeline} rows=${value.timeline || []}/></div>`;
}

// What a fault says beside its command and action: only what differs from a fault that says nothing.
const PLAIN = { skip: 0, every: 1, probability: 1, stage: "before" }, INNER = ["id", "command", "action", "hits", "sender", "seed", "matched", "spent", "kind"];

function detailsOf(fault) {
  const all = Object.entries({ ...(typeof fault.action === "object" ? fault.action : {}), ...fault });
  const told = all.filter(([name, value]) => !INNER.includes(name) && value !== "*" && value !== PLAIN[name] && (value !== null || name === "count"));
  return told.map(([name, value]) => (name === "count" ? (value === null ? "forever" : many(value, "time")) : `${name} ${value}`)).join(", ") + (fault.spent ? "; spent" : "");
}

function Timeline({ rows }) {
  return html`<section class="card flush"><h3>What was done</h3>${rows.length ? html`<ol class="feed" tabindex="0" aria-label="What was done in the lab, newest first">${rows.map((t) => html`<li key=${t.number}><time>${timeOfDay(t.ms)}</time>
    <span>${t.what} <${Badge} state=${t.by === "person" ? "accent" : ""}>${t.by}</${Badge}> ${t.hits > 0 && html`<${Badge} state="lab">${many(t.hits, "hit")}</${Badge}>`}
      ${t.undo && html`<button class="plain small" onClick=${() => send(t.undo.method, t.undo.path)}>take back</button>`}</span></li>`)}</ol>`
    : html`<p class="note">Nothing yet. Faults, masks, captures and moves of the clock appear here, with who made them and what they hit.</p>`}</section>`;
}

function Findings({ linter }) {
  const found = useGet("/lab/violations", [JSON.stringify(linter)]);
  const rows = found.value ? found.value.violations : [];
  return html`<${Table} label="Findings" rows=${rows} empty="No rule was broken." columns=${[["Rule", (v) => v.rule],
    ["Text", (v) => v.detail], ["Times", (v) => number(linter.counts[v.rule]), true]]}/>`;
}

// Files of the whole state: their bodies are the files themselves.
function State() {
  const [state, set] = useState({});
  const run = async (work) => {
    set({ busy: true });
    try { set({ done: await work() }); } catch (error) { set({ error }); }
  };
  const save = () => run(async () => {
    download("snapshot.pulsarium", await (await send("POST", "/lab/snapshot")).blob());
    return "the snapshot is in your downloads";
  });
  const put = (path, type) => (event) => {
    const [file] = event.target.files;
    if (file) run(async () => (await (await send("POST", path, file, { "Content-Type": type })).text()) || "the state was replaced");
    event.target.value = "";
  };
  return html`<div class="row"><button data-act="snapshot" disabled=${state.busy} onClick=${save}>Save a snapshot</button>
      <label>Restore a snapshot<input type="file" data-act="restore" onChange=${put("/lab/restore", "application/octet-stream")}/></label>
      <label>Apply a seed<input type="file" data-act="seed" onChange=${put("/lab/seed", "application/toml")}/></label></div>
    <${Trouble} error=${state.error}/>${state.done && html`<p class="fine" role="status">Done: ${state.done}</p>`}
    <details><summary>The same elsewhere</summary><${Commands} lines=${[["On the command line:", "pulsarium state snapshot FILE\npulsarium state restore FILE\npulsarium state seed FILE"],
      ["The REST calls:", ["snapshot", "restore", "seed"].map((each) => callText({ method: "POST", path: `/lab/${each}` })).join("\n")]]}/></details>`;
}
