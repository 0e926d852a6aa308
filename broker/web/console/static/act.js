// Acts: buttons that open a dialog, which shows the call and the command before it does anything.
import { ACTS } from "./acts.js";
import { get, mayCall, send } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { restPath, Trouble } from "./parts.js";

const FIRST = { text: "earliest", ledger: "-1", entry: "-1" };
const END = { text: "latest", ledger: "9223372036854775807", entry: "9223372036854775807" };
const SAFE = /^[\w@%+=:,./-]+$/;

export const quoted = (text) => (SAFE.test(text) ? text : `'${String(text).replace(/'/g, `'\\''`)}'`);

// ---- templates: {name}, {name:1} and {name:2} (encoded once, twice), {name:local}, {name:ago}, {name.entry}

function pathOf(template, values) {
  return template.replace(/{(\w+)(?::(\w+))?}/g, (_, name, how) => {
    const value = values[name];
    if (how === "ago") return String(Date.now() - Number(value) * 1000);
    if (how === "local") return restPath(value).split("/").slice(1).join("/");
    if (how === "1") return encodeURIComponent(value);
    if (how === "2") return encodeURIComponent(encodeURIComponent(value));
    return value.includes("://") ? restPath(value) : value;
  });
}

// The body as a text, because positions have more digits than numbers of JavaScript.
function bodyOf(act, values) {
  if (act.body === undefined) return undefined;
  const kinds = Object.fromEntries(act.fields.map((field) => [field.name, field.kind]));
  const left = act.body && typeof act.body === "object" && !Array.isArray(act.body) ? Object.fromEntries(
    Object.entries(act.body).filter(([, value]) => !(typeof value === "string" && isEmpty(act, value, values)))) : act.body;
  return JSON.stringify(left).replace(/"{(\w+)(?:\.(\w+))?}"/g, (_, name, part) => {
    if (part) return values[name][part];
    return kinds[name] === "number" ? String(Number(values[name]) || 0) : JSON.stringify(values[name]);
  });
}

function isEmpty(act, template, values) {
  const name = (template.match(/^{(\w+)}$/) || [])[1];
  const field = act.fields.find((each) => each.name === name);
  return Boolean(field && field.optional && !values[name]);
}

export function commandOf(act, values) {
  const fill = (text) => text.replace(/{(\w+)}/g, (_, name) => quoted(values[name].text ?? values[name]));
  const chosen = act.command.replace(/\[([^\]]*{(\w+)}[^\]]*)\]/g, (_, inner, name) => (values[name] ? inner : ""));
  return "pulsarium " + fill(chosen.replace(/ +/g, " ").trim());
}

export function callOf(act, values) {
  const query = new URLSearchParams(Object.entries(act.query || {}).map(([name, value]) =>
    [name, value.replace(/{(\w+)}/g, (_, field) => values[field])])).toString();
  return { method: act.method, path: pathOf(act.path, values) + (query ? "?" + query : ""), body: bodyOf(act, values) };
}

// ---- positions

async function resolved(field, value, topic) {
  const { how, text } = value;
  if (how === "earliest") return FIRST;
  if (how === "latest") return END;
  let id = text;
  if (how === "index" || how === "time") {
    const found = await get(lookupOf(value, topic));
    id = `${found.ledgerId}:${found.entryId}`;
  }
  const [, ledger, entry] = /^\s*(-?\d+):(-?\d+)\s*$/.exec(id) || [];
  if (!ledger) throw new Error(`${field.label}: enter LEDGER:ENTRY, such as 12:0`);
  return { text: `${ledger}:${entry}`, ledger, entry };
}

export function lookupOf({ how, text }, topic) {
  const path = `/admin/v2/${restPath(topic)}`;
  if (how === "index") return `${path}/getMessageIdByIndex?index=${encodeURIComponent(text)}`;
  const ms = /^\d+$/.test(text) ? text : Date.parse(text);
  return `${path}/messageid/${ms}`;
}

export function PositionField({ label, value, onChange }) {
  const set = (more) => onChange({ ...value, ...more });
  const hints = { id: "LEDGER:ENTRY", index: "0", time: "2030-01-01T12:00Z or ms" };
  return html`<label>${label}<span class="row">
    <select aria-label="${label}: by" value=${value.how} onChange=${(e) => set({ how: e.target.value })}>
      ${["earliest", "latest", "id", "index", "time"].map((how) => html`<option value=${how}>${how}</option>`)}</select>
    ${hints[value.how] && html`<input aria-label="${label}: value" value=${value.text} placeholder=${hints[value.how]}
      onInput=${(e) => set({ text: e.target.value })}/>`}</span></label>`;
}

// ---- fields and dialog

function started(act, given) {
  return Object.fromEntries(act.fields.map((field) => [field.name,
    field.kind === "position" ? given.at || { how: field.default, text: "" } : field.default]));
}

// The name of a new topic is entered without its namespace.
function named(field, value, given) {
  const whole = (domain) => (value.includes("://") ? value : `${domain}://${given.namespace}/${value}`);
  if (field.kind === "topic") return whole("persistent");
  return field.kind === "scalable" ? whole("topic") : value;
}

function preview(act, values, given) {
  const shown = { ...given };
  for (const field of act.fields) {
    const value = values[field.name];
    if (field.kind !== "position") shown[field.name] = named(field, value, given);
    else if (value.how === "earliest") shown[field.name] = FIRST;
    else if (value.how === "latest") shown[field.name] = END;
    else if (value.how === "id" && /^\d+:\d+$/.test(value.text.trim())) {
      const [ledger, entry] = value.text.trim().split(":");
      shown[field.name] = { text: `${ledger}:${entry}`, ledger, entry };
    } else shown[field.name] = { text: "LEDGER:ENTRY", ledger: "LEDGER", entry: "ENTRY" };
  }
  return shown;
}

export function Commands({ lines }) {
  return html`<div>${lines.map(([what, text]) => html`<div class="small soft">${what}</div><pre>${text}</pre>`)}</div>`;
}

export const callText = ({ method, path, body }) => `${method} ${path}` + (body === undefined ? "" : `\n${body}`);

function Dialog({ act, given, onEnd }) {
  const ref = useRef(), [values, set] = useState(started(act, given));
  const [state, setState] = useState({});
  useEffect(() => ref.current.showModal(), []);
  const shown = preview(act, values, given);
  const lookups = act.fields.filter((f) => f.kind === "position" && ["index", "time"].includes(values[f.name].how));
  const run = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      const found = { ...shown };
      for (const field of act.fields) {
        if (field.kind === "position") found[field.name] = await resolved(field, values[field.name], given.topic);
      }
      const { method, path, body } = callOf(act, found);
      const answer = await send(method, path, body);
      const text = await answer.text();
      setState({ done: text.length > 2000 ? text.slice(0, 2000) + "…" : text || `${answer.status}` });
    } catch (error) {
      setState({ error });
    }
  };
  const on = given.subscription || given.topic || given.namespace || given.tenant || (given.id && `${act.on} ${given.id}`);
  return html`<dialog ref=${ref} onClose=${onEnd} aria-labelledby="act-title">
    <form class="form" onSubmit=${run}>
      <h2 id="act-title">${act.label}${on && html` <small>${on}</small>`}</h2>
      <p class=${act.danger ? "bad" : "soft"}>${act.about}</p>
      ${act.fields.map((field) => html`<${FieldOf} field=${field} value=${values[field.name]}
        onChange=${(value) => set({ ...values, [field.name]: value })}/>`)}
      <${Commands} lines=${[["The same on the command line:", commandOf(act, shown)],
        ["The REST call:", [...lookups.map((f) => `GET ${lookupOf(values[f.name], given.topic)}`),
          callText(callOf(act, shown))].join("\n")]]}/>
      <${Trouble} error=${state.error}/>
      ${state.done !== undefined && html`<p class="fine" role="status">Done: ${state.done}</p>`}
      <div class="row"><button class=${act.danger ? "danger" : "main"} disabled=${state.busy}>${act.label}</button>
        <button type="button" onClick=${() => ref.current.close()}>${state.done === undefined ? "Cancel" : "Close"}</button></div>
    </form></dialog>`;
}

function FieldOf({ field, value, onChange }) {
  if (field.kind === "position") return html`<${PositionField} label=${field.label} value=${value} onChange=${onChange}/>`;
  const input = (e) => onChange(e.target.value);
  if (field.kind === "choice") {
    return html`<label>${field.label}<select value=${value} onChange=${input}>
      ${field.choices.map((choice) => html`<option value=${choice}>${choice}</option>`)}</select></label>`;
  }
  return html`<label>${field.label}${field.optional ? " (may stay empty)" : ""}
    <input type=${field.kind === "number" ? "number" : "text"} min="0" required=${!field.optional} value=${value}
      onInput=${input}/></label>`;
}

// ---- buttons

// The acts on one object. `given` has the names that its commands need; `role` is empty without authentication.
export function Acts({ on, given, role, only }) {
  const acts = ACTS.filter((act) => act.on === on && (!only || only.includes(act.id)));
  const [chosen, choose] = useState(null), [refused, setRefused] = useState(new Set());
  const names = JSON.stringify(given);
  useEffect(() => {
    if (!role) { setRefused(new Set()); return; }
    let stale = false;
    const ask = async (act) => {
      const { method, path } = callOf(act, preview(act, started(act, given), given));
      if (!(await mayCall(method, path))) return act.id;
    };
    Promise.all(acts.map(ask)).then((found) => stale || setRefused(new Set(found.filter(Boolean))));
    return () => { stale = true; };
  }, [on, names, role]);
  const button = (act) => html`<button key=${act.id} type="button" class=${act.danger ? "danger" : ""} data-act=${act.id}
    disabled=${refused.has(act.id)} title=${refused.has(act.id) ? `The role ${role} may not do this.` : act.about}
    onClick=${() => choose(act)}>${act.label}</button>`;
  return html`<div class="row">${acts.map(button)}
    ${acts.length > 0 && refused.size === acts.length && html`<span class="soft">Read only: the role ${role} may change nothing here.</span>`}
    ${chosen && html`<${Dialog} act=${chosen} given=${given} onEnd=${() => choose(null)}/>`}</div>`;
}

