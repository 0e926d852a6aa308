// The lab: the clock, faults, masks, captures, the linter, and the whole state.
import { Acts, callText, Commands } from "./act.js";
import { send, useGet } from "./api.js";
import { Capture } from "./captures.js";
import { html, useState } from "./preact.js";
import { download, instant, number, pretty, span, Table, Trouble } from "./parts.js";

export function Lab({ live: { value, error } }) {
  if (!value) return html`<h2>Lab</h2><${Trouble} error=${error}/>`;
  const { role, clock, linter } = value, acts = (on, given = {}, only) => html`<${Acts} on=${on} given=${given} role=${role} only=${only}/>`;
  return html`<h2>Lab</h2><${Trouble} error=${error}/>
    <section class="card"><h3>Clock</h3><p>${!clock ? "The clock follows real time."
      : clock.frozen ? `The clock is frozen at ${instant(clock.nowMs)}.`
      : `The clock is ${span(Math.abs(clock.aheadMs))} ${clock.aheadMs > 0 ? "ahead of" : "behind"} real time.`}</p>
      ${value.namespaces.length > 0 && html`<p>Namespaces with their own time: ${value.namespaces.join(", ")}.</p>`}${acts("clock")}</section>
    <section class="card"><h3>Faults</h3><${Table} label="Faults" rows=${value.faults} empty="No faults." columns=${[["Id", (f) => f.id],
      ["Command", (f) => f.command], ["Action", (f) => pretty(f.action.kind || f.action)], ["When", (f) => html`<code class="small">${JSON.stringify(f)}</code>`],
      ["Hits", (f) => number(f.hits), true], ["Acts", (f) => acts("fault", { id: String(f.id) })]]}/>${acts("faults")}</section>
    <section class="card"><h3>Masks</h3><${Table} label="Masks" rows=${value.masks} empty="No masks." columns=${[["Id", (m) => m.id],
      ["Mask", (m) => html`<code class="small">${JSON.stringify(m)}</code>`], ["Acts", (m) => acts("mask", { id: String(m.id) })]]}/>${acts("masks")}</section>
    <section class="card"><h3>Captures</h3>${value.captures.map((c) => html`<${Capture} key=${c.id} capture=${c} role=${role}/>`)}${acts("captures")}</section>
    <section class="card"><h3>Linter <small>${linter.running ? "running" : "stopped"}</small></h3><${Findings} linter=${linter}/>${acts("linter")}</section>
    <section class="card"><h3>State of the broker</h3>${acts("state")}<${State}/></section>`;
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
    <${Commands} lines=${[["The same on the command line:", "pulsarium state snapshot FILE\npulsarium state restore FILE\npulsarium state seed FILE"],
      ["The REST calls:", ["snapshot", "restore", "seed"].map((each) => callText({ method: "POST", path: `/lab/${each}` })).join("\n")]]}/>
    <${Trouble} error=${state.error}/>${state.done && html`<p class="fine" role="status">Done: ${state.done}</p>`}`;
}
