// Publish a message with the topic's schema: a form made from it, or its JSON, which the broker encodes.
import { mayCall, send, useGet } from "./api.js";
import { callText, Commands, quoted } from "./act.js";
import { html, useEffect, useState } from "./html.js";
import { Overlay, toast } from "./overlays.js";
import { Badge, Choices, many, restPath, shortName, Skeleton, Trouble } from "./parts.js";

const BYTES = ["BYTES", "NONE"];

export function Publish({ name, role, start, onEnd }) {
  const found = useGet(`pulsarium/form/${restPath(name)}`);
  const title = html`<h2>Publish a message <small>${shortName(name)}</small></h2>`;
  return html`<${Overlay} label="Publish a message" kind="drawer" onEnd=${onEnd}>${(close) => (found.value ? html`<${Form} title=${title} name=${name} role=${role} start=${start} schema=${found.value} close=${close}/>`
    : html`${title}${found.error ? html`<${Trouble} error=${found.error}/>` : html`<${Skeleton}/>`}<button type="button" onClick=${close}>Close</button>`)}</${Overlay}>`;
}

function Form({ title, name, role, start, schema, close }) {
  const typed = !BYTES.includes(schema.type), isText = schema.type === "STRING", text0 = start.text ?? (typed && !isText ? JSON.stringify(schema.example ?? null, null, 2) : "");
  const fillable = schema.value && ["record", "enum", "union", "array", "map"].includes(schema.value.kind) && schema.type !== "KEY_VALUE";
  const [form, set] = useState({ text: text0, key: start.key || "", properties: start.properties || "", delay: "", raw: false }), [how, setHow] = useState(fillable ? "form" : "json");
  const [state, setState] = useState({}), [may, setMay] = useState(true), path = `/pulsarium/publish/${restPath(name)}`;
  const raw = form.raw || !typed, body = JSON.stringify(bodyOf(form, raw, isText));
  useEffect(() => { if (role) mayCall("POST", path).then(setMay); }, [role, path]);
  const field = (key) => ({ value: form[key], onInput: (e) => set({ ...form, [key]: e.target.value }) });
  const parsed = isText ? { ok: true, value: form.text } : parse(form.text);
  const run = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      const answer = await (await send("POST", path, body)).json();
      toast(`Published as ${answer.messageId}`);
      setState({ done: `published as ${answer.messageId}` });
    } catch (error) { setState({ error }); }
  };
  const words = ["pulsarium client produce", quoted(name), "-m", quoted(form.text)];
  if (form.key) words.push("-k", quoted(form.key));
  return html`<form class="form" onSubmit=${run}>${title}
    <div class="bar">${typed ? html`<${Badge} state="accent">${schema.type}${schema.encoding ? ` ${schema.encoding}` : ""}</${Badge}><span class="soft small">version ${schema.version} of the topic's schema; the broker encodes the value</span>`
      : html`<${Badge}>no schema</${Badge}><span class="soft small">the text is the payload</span>`}
      <span class="grow"></span>${fillable && !raw && html`<${Choices} label="How to write the value" of=${[["form", "Form"], ["json", "JSON"]]} value=${how} onChange=${setHow}/>`}</div>
    ${!raw && how === "form" && parsed.ok ? html`<${Field} shape=${schema.value} value=${parsed.value} name="Value" onChange=${(value) => set({ ...form, text: JSON.stringify(value, null, 2) })}/>`
      : html`<label>${raw || isText ? "Payload" : "Value, in JSON"}<textarea spellcheck="false" ...${field("text")}></textarea></label>`}
    ${!raw && !parsed.ok && html`<p class="waits small">Not JSON yet: ${parsed.error}</p>`}
    ${typed && html`<label class="check"><input type="checkbox" checked=${form.raw} onChange=${(e) => set({ ...form, raw: e.target.checked })}/>
      Publish the text as bytes, without the schema: consumers with the schema may not be able to read it</label>`}
    <div class="grid"><label>Key<input ...${field("key")}/></label><label>Deliver after, in seconds<input type="number" min="0" ...${field("delay")}/></label></div>
    <details open=${Boolean(form.properties)}><summary>Properties</summary><label>Properties, one KEY=VALUE a line<textarea ...${field("properties")}></textarea></label></details>
    ${state.error && html`<p class="bad" role="alert">${state.error.details && state.error.details.at ? html`<b>${state.error.details.at}</b>: ` : ""}${state.error.message}</p>`}
    ${state.done && html`<p class="fine" role="status">Done: ${state.done}</p>`}
    <div class="row"><button class="main" disabled=${state.busy || !may || (!raw && !parsed.ok)} title=${may ? "" : `The role ${role} may not publish.`}>Publish</button><button type="button" onClick=${close}>Close</button></div>
    <details><summary>The same elsewhere</summary><${Commands} lines=${[["On the command line:", words.join(" ")], ["The REST call:", callText({ method: "POST", path, body })]]}/></details></form>`;
}

function parse(text) {
  try { return { ok: true, value: JSON.parse(text) }; } catch (error) { return { ok: false, error: error.message }; }
}

// The text goes as it is, because numbers of 64 bits do not fit into those of JavaScript.
function bodyOf({ text, key, properties, delay }, raw, isText) {
  const pairs = properties.split("\n").filter(Boolean).map((line) => line.split(/=(.*)/s).slice(0, 2));
  return { ...(isText && !raw ? { value: text } : { text }), ...(raw && { raw: true }), ...(key && { key }), ...(pairs.length && { properties: Object.fromEntries(pairs) }), ...(Number(delay) > 0 && { deliverAfterMs: Math.round(Number(delay) * 1000) }) };
}

// ---- a form of a value, by the shape of its schema

const NUMBERS = ["int", "long", "float", "double"];

function blank(shape) {
  switch (shape.kind) {
    case "record": return Object.fromEntries(shape.fields.map((f) => [f.name, f.default !== undefined ? f.default : blank(f.shape)]));
    case "enum": return shape.symbols[0];
    case "array": return [];
    case "map": return {};
    case "union": return shape.branches.some((b) => b.kind === "null") ? null : blank(shape.branches[0]);
    case "boolean": return false;
    case "null": return null;
    default: return NUMBERS.includes(shape.kind) ? 0 : "";
  }
}

function branchOf(shape, value) {
  const fits = { null: value === null, boolean: typeof value === "boolean", string: typeof value === "string", bytes: typeof value === "string", enum: typeof value === "string",
    array: Array.isArray(value), record: value !== null && typeof value === "object" && !Array.isArray(value), map: value !== null && typeof value === "object" && !Array.isArray(value) };
  const at = shape.branches.findIndex((b) => (NUMBERS.includes(b.kind) ? typeof value === "number" : fits[b.kind]));
  return Math.max(0, at);
}

function Field({ shape, value, name, doc, onChange }) {
  const label = html`<span>${name} <span class="soft">${shape.logical || shape.kind}${doc ? `: ${doc}` : ""}</span></span>`;
  const object = value && typeof value === "object" ? value : {};
  switch (shape.kind) {
    case "record": return html`<fieldset><legend>${name} <span class="soft">${shape.name || "record"}</span></legend>${shape.fields.map((f) => html`<${Field} key=${f.name} shape=${f.shape} name=${f.name} doc=${f.doc}
      value=${object[f.name]} onChange=${(v) => onChange({ ...object, [f.name]: v })}/>`)}</fieldset>`;
    case "enum": return html`<label>${label}<select value=${value} onChange=${(e) => onChange(e.target.value)}>${shape.symbols.map((s) => html`<option value=${s}>${s}</option>`)}</select></label>`;
    case "union": { const at = branchOf(shape, value), kind = shape.branches[at];
      return html`<fieldset><legend>${name}</legend><select aria-label="Kind of ${name}" value=${at} onChange=${(e) => onChange(blank(shape.branches[Number(e.target.value)]))}>${shape.branches.map((b, i) => html`<option value=${i}>${b.kind === "null" ? "nothing (null)" : b.name || b.kind}</option>`)}</select>
        ${kind.kind !== "null" && html`<${Field} shape=${kind} name=${name} value=${value} onChange=${onChange}/>`}</fieldset>`; }
    case "array": { const list = Array.isArray(value) ? value : [];
      return html`<fieldset><legend>${name} <span class="soft">${many(list.length, "item")}</span></legend>${list.map((each, i) => html`<div class="row"><${Field} shape=${shape.items} name=${`${name}[${i}]`} value=${each}
        onChange=${(v) => onChange(list.map((old, at) => (at === i ? v : old)))}/><button type="button" aria-label="Remove ${name}[${i}]" onClick=${() => onChange(list.filter((_, at) => at !== i))}>×</button></div>`)}
        <button type="button" onClick=${() => onChange([...list, blank(shape.items)])}>Add an item</button></fieldset>`; }
    case "boolean": return html`<label class="check"><input type="checkbox" checked=${Boolean(value)} onChange=${(e) => onChange(e.target.checked)}/>${label}</label>`;
    case "null": return null;
    case "map": case "recursive": return html`<${JsonField} label=${label} value=${value} onChange=${onChange}/>`;
    default: {
      const numeric = NUMBERS.includes(shape.kind);
      return html`<label>${label}<input type=${numeric ? "number" : "text"} step=${shape.kind === "int" || shape.kind === "long" ? "1" : "any"} value=${value ?? ""}
        onInput=${(e) => onChange(numeric ? Number(e.target.value) : e.target.value)}/></label>`;
    }
  }
}

function JsonField({ label, value, onChange }) {
  const [text, set] = useState(JSON.stringify(value ?? null)), now = parse(text);
  return html`<label>${label}<input value=${text} aria-invalid=${String(!now.ok)} onInput=${(e) => { set(e.target.value); const next = parse(e.target.value); if (next.ok) onChange(next.value); }}/></label>`;
}
