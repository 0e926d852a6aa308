// Acts: buttons that open a dialog, which shows the call and the command before it does anything.
import { ACTS } from "./acts.js";
import { get, mayCall, send } from "./api.js";
import { html, useEffect, useState } from "./html.js";
import { Overlay, toast } from "./overlays.js";
import { Code, many, restPath, Trouble } from "./parts.js";

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

function commandOf(act, values) {
  const fill = (text) => text.replace(/{(\w+)}/g, (_, name) => quoted(values[name].text ?? values[name]));
  const chosen = act.command.replace(/\[([^\]]*{(\w+)}[^\]]*)\]/g, (_, inner, name) => (values[name] ? inner : ""));
  return "pulsarium " + fill(chosen.replace(/ +/g, " ").trim());
}

function callOf(act, values) {
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

// What the fields of an act begin with. An act on one message begins with the next one of the subscription.
function started(act, given) {
  const next = given.at || (given.next && act.fields.some((f) => f.kind === "position" && act.danger) && { how: "id", text: given.next });
  return Object.fromEntries(act.fields.map((field) => [field.name,
    field.kind === "position" ? next || { how: field.default, text: "" } : field.default]));
}

// The name of a new topic is entered without its namespace.
function named(field, value, given) {
  const whole = (domain) => (value.includes("://") ? value : `${domain}://${given.namespace}/${value}`);
  if (field.kind === "topic") return whole("persistent");
  return field.kind === "scalable" ? whole("topic") : value;
}

function filled(act, values, given) {
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
  return html`<div>${lines.map(([what, text]) => html`<div class="small soft">${what}</div><${Code} text=${text}/>`)}</div>`;
}

export const callText = ({ method, path, body }) => `${method} ${path}` + (body === undefined ? "" : `\n${body}`);

const TYPING_MS = 250, COUNTING = "Counting what it will touch…"; // shown at once, so that the buttons below do not move
const MOVES = new Set(["seek", "rewind"]); // acts that a seek takes back
const COUNTED = new Set(["skip", "skip-message", "clear", "expire", "expire-to", "seek", "rewind", "unsubscribe", "unsubscribe-force", "truncate", "delete", "delete-force",
  "delete-partitioned", "delete-partitioned-force"]); // acts that the broker counts before

// What the act will touch: the broker counts it, and changes nothing.
function questionOf(act, shown) {
  return JSON.stringify({ act: act.id, subscription: shown.subscription, ...Object.fromEntries(act.fields.map((field) => {
    const value = shown[field.name];
    return [field.name, field.kind === "position" ? value.text : field.kind === "number" ? Number(value) : value];
  })) });
}

const touchedBy = async (topic, question) => (await send("POST", `pulsarium/preview/${restPath(topic)}`, question)).json();

function usePreview(act, shown, topic) {
  const asked = COUNTED.has(act.id) && topic ? questionOf(act, shown) : "", [state, set] = useState(asked ? { text: COUNTING } : {});
  useEffect(() => {
    if (!asked || asked.includes("LEDGER:ENTRY")) { set({}); return; }
    let stale = false;
    const timer = setTimeout(() => touchedBy(topic, asked).then((value) => stale || set(value), () => stale || set({})), TYPING_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [asked]);
  return state;
}

function Touched({ value: { text, touched, unit, first, last, refused } }) {
  if (!text && !refused) return null;
  const line = (m) => html`<li><code>${m.id}</code> ${m.key !== undefined && html`<span class="badge">${m.key}</span>`} ${m.preview}</li>`;
  return html`<div class="answer" data-touches><b class=${refused ? "bad" : ""}>${refused || text}</b>
    ${touched > 0 && first && html`<ul class="small">${line(first)}${last && last.id !== first.id && html`${touched > 2 && html`<li class="soft">${many(touched - 2, unit === "entries" ? "entry" : "message", unit === "entries" ? "entries" : "messages")} between them</li>`}${line(last)}`}</ul>`}</div>`;
}

// What a person does when an act is refused, because clients use the object.
const INSTEAD = { "delete": "delete-force", "delete-partitioned": "delete-partitioned-force", "unsubscribe": "unsubscribe-force" };

export function Dialog({ act: first, given, onEnd }) {
  const [act, change] = useState(first), other = ACTS.find((each) => each.id === INSTEAD[act.id]);
  const [values, set] = useState(started(act, given)), [state, setState] = useState({});
  const shown = filled(act, values, given), will = usePreview(act, shown, given.topic);
  const lookups = act.fields.filter((f) => f.kind === "position" && ["index", "time"].includes(values[f.name].how));
  const run = async (event, close) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      const found = { ...shown };
      for (const field of act.fields) {
        if (field.kind === "position") found[field.name] = await resolved(field, values[field.name], given.topic);
      }
      const { method, path, body } = callOf(act, found);
      const undo = MOVES.has(act.id) && undoOf(given, (await touchedBy(given.topic, questionOf(act, found)).catch(() => ({}))).undo);
      const text = (await (await send(method, path, body)).text()).slice(0, 200);
      toast(`Done: ${act.label}${text ? `: ${text}` : ""}`, undo);
      close();
    } catch (error) {
      setState({ error });
    }
  };
  const on = given.subscription || given.topic || given.namespace || given.tenant || (given.id && `${act.on} ${given.id}`);
  return html`<${Overlay} label=${act.label} onEnd=${onEnd}>${(close) => html`<form class="form" onSubmit=${(event) => run(event, close)}>
      <h2>${act.label} ${on && html`<small>${on}</small>`}</h2>
      <p class=${act.danger ? "bad" : "soft"}>${act.about}</p>
      ${act.fields.map((field) => html`<${FieldOf} field=${field} value=${values[field.name]}
        onChange=${(value) => set({ ...values, [field.name]: value })}/>`)}
      <${Touched} value=${will}/>
      <${Commands} lines=${[["The same on the command line:", commandOf(act, shown)],
        ["The REST call:", [...lookups.map((f) => `GET ${lookupOf(values[f.name], given.topic)}`),
          callText(callOf(act, shown))].join("\n")]]}/>
      <${Trouble} error=${state.error}/>
      ${state.error && other && html`<p>Clients use it. <button type="button" onClick=${() => { change(other); setState({}); }}>${other.label}…</button></p>`}
      <div class="row"><button class=${act.danger ? "danger" : "main"} disabled=${state.busy}>${act.label}</button>
        <button type="button" onClick=${close}>Cancel</button></div>
    </form>`}</${Overlay}>`;
}

// A seek back to the position before an act, or to those of all partitions.
function undoOf({ topic, subscription }, former) {
  if (!former) return null;
  const seek = ACTS.find((act) => act.id === "seek"), places = Object.entries(former.positions || { [topic]: former.position });
  const back = async () => {
    for (const [on, position] of places) {
      const [ledger, entry] = position.split(":"), { method, path, body } = callOf(seek, { topic: on, subscription, position: { text: position, ledger, entry } });
      await send(method, path, body);
    }
  };
  return { label: `Back to ${places.length === 1 ? places[0][1] : "the former positions"}`, act: back };
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

export const actsOf = (on, only) => ACTS.filter((act) => act.on === on && (!only || only.includes(act.id)));

// The acts on one object. `given` has the names that its commands need; `role` is empty without authentication.
// With `first`, those acts are shown, and the others behind “More”.
export function Acts({ on, given, role, only, first }) {
  const acts = actsOf(on, only), [chosen, choose] = useState(null), [refused, setRefused] = useState(new Set());
  const names = JSON.stringify(given);
  useEffect(() => {
    if (!role) { setRefused(new Set()); return; }
    let stale = false;
    const ask = async (act) => {
      const { method, path } = callOf(act, filled(act, started(act, given), given));
      if (!(await mayCall(method, path))) return act.id;
    };
    Promise.all(acts.map(ask)).then((found) => stale || setRefused(new Set(found.filter(Boolean))));
    return () => { stale = true; };
  }, [on, names, role]);
  const button = (act) => html`<button key=${act.id} type="button" class=${act.danger ? "danger" : ""} data-act=${act.id}
    disabled=${refused.has(act.id)} title=${refused.has(act.id) ? `The role ${role} may not do this.` : act.about}
    onClick=${() => choose(act)}>${act.label}</button>`;
  const ordered = [...acts.filter((act) => !act.danger), ...acts.filter((act) => act.danger)], shown = first ? first.flatMap((id) => ordered.filter((act) => act.id === id)) : ordered;
  const rest = ordered.filter((act) => !shown.includes(act));
  return html`<div class="row">${shown.map(button)}${rest.length > 0 && html`<details class="more"><summary>More…</summary>${rest.map(button)}</details>`}
    ${acts.length > 0 && refused.size === acts.length && html`<span class="soft">Read only: the role ${role} may change nothing here.</span>`}
    ${chosen && html`<${Dialog} act=${chosen} given=${given} onEnd=${() => choose(null)}/>`}</div>`;
}
