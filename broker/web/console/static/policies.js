// Policies: the value in effect, the level that it comes from, and a form for the topic's or namespace's own value.
import { mayCall, send, useGet } from "./api.js";
import { POLICY_COMMANDS } from "./acts.js";
import { callText, Commands, quoted } from "./act.js";
import { html, useEffect, useState } from "./html.js";
import { Overlay, toast } from "./overlays.js";
import { Badge, Choices, Empty, many, restPath, Skeleton, span, Table, Trouble } from "./parts.js";

export function Policies({ of: { topic, namespace }, role }) {
  const [changed, change] = useState(0), [edited, edit] = useState(null), [text, set] = useState(""), [own, onlyOwn] = useState(false);
  const found = useGet(`pulsarium/policies/${topic ? restPath(topic) : namespace}`, [changed]), level = topic ? "topic" : "namespace";
  if (!found.value) return found.error ? html`<${Trouble} error=${found.error}/>` : html`<${Skeleton} lines=${10}/>`;
  const lower = text.toLowerCase(), here = found.value.filter((p) => p.from === level);
  const rows = (own ? here : found.value).filter((p) => `${p.word} ${p.about} ${p.key}`.toLowerCase().includes(lower));
  return html`<div class="tools"><form role="search" aria-label="Policies" class="search" onSubmit=${(e) => e.preventDefault()}><input type="search" aria-label="Filter policies" placeholder="Part of a name, a meaning or a key of broker.conf   ( / )" value=${text} onInput=${(e) => set(e.target.value)}/></form>
      <label class="check"><input type="checkbox" checked=${own} onChange=${() => onlyOwn(!own)}/>only what is set here (${here.length})</label><span class="soft" role="status">${many(rows.length, "policy", "policies")}</span></div>
    <section class="card flush">${rows.length ? html`<${Table} label="Policies" rows=${rows} keyOf=${(p) => p.word} onRow=${edit} columns=${[
      ["Policy", (p) => html`<b>${p.word}</b><div class="soft small">${p.about}</div>`],
      ["In effect", (p) => html`<${Shown} p=${p}/>`],
      ["From", (p) => (p.from === level ? html`<${Badge} state="accent">set here</${Badge}>` : html`<span class="soft">${p.from}${p.from === "broker" && p.key ? `: ${p.key}` : ""}</span>`)],
      ["", (p) => html`<button aria-label="Edit ${p.word}" onClick=${() => edit(p)}>Edit</button>`]]}/>`
      : html`<${Empty} title=${own && !here.length ? `Nothing is set on this ${level}` : "No policy matches"}>${own && !here.length && html`<p>All values come from the levels above.</p>`}</${Empty}>`}</section>
    ${edited && html`<${Editor} policy=${edited} topic=${topic} namespace=${namespace} role=${role} onEnd=${() => { edit(null); change(changed + 1); }}/>`}`;
}

function Shown({ p }) {
  if (p.value === null) return html`<span class="soft">not set</span>`;
  if (typeof p.value === "boolean") return p.value ? "on" : "off";
  if (p.value && typeof p.value === "object" && !Array.isArray(p.value)) return html`<code>${Object.entries(p.value).map(([k, v]) => `${k}: ${JSON.stringify(v)}`).join(", ") || "{}"}</code>`;
  const unit = (p.form || {}).unit;
  return html`<code>${JSON.stringify(p.value)}</code> ${unit && html`<span class="soft">${unit}</span>`}`;
}

// The text of what is wrong with a value, or "" if it is JSON.
function wrongIn(text) {
  try { JSON.parse(text); return ""; } catch (error) { return error.message; }
}

function Editor({ policy: p, topic, namespace, role, onEnd }) {
  const own = topic ? "topic" : "namespace", form = p.form || { kind: "json" }, first = p.value ?? blankOf(form);
  const [text, set] = useState(JSON.stringify(first, null, 2)), [how, setHow] = useState(form.kind === "json" ? "json" : "form");
  const [state, setState] = useState({}), [may, setMay] = useState(true), wrong = wrongIn(text);
  const base = `/admin/v2/${topic ? restPath(topic) : "namespaces/" + namespace}`, query = p.inQuery ? `?${p.word}=${encodeURIComponent(text)}` : "";
  const setting = { method: p.set, path: `${base}/${p.word}${query}`, body: p.inQuery || !p.hasBody ? undefined : text.replace(/\n\s*/g, " ") };
  const removal = { method: p.remove, path: `${base}/${p.removeAt}` }, command = POLICY_COMMANDS[own][p.word];
  const words = command ? `pulsarium admin ${command.replace("{name}", quoted(topic || namespace)).replace("{value}", quoted(text))}` : "There is none.";
  useEffect(() => { if (role) mayCall(setting.method, setting.path).then(setMay); }, []);
  const run = async ({ method, path, body }, close) => {
    setState({ busy: true });
    try {
      await send(method, path, body);
      toast(`Done: ${p.word} of ${topic || namespace}`);
      close();
    } catch (error) { setState({ error }); }
  };
  return html`<${Overlay} label=${`Policy ${p.word}`} onEnd=${onEnd}>${(close) => html`<form class="form" onSubmit=${(e) => { e.preventDefault(); run(setting, close); }}>
    <h2>${p.word} <small>${topic || namespace}</small></h2><p class="soft">${p.about}</p>
    ${form.kind !== "json" && html`<${Choices} label="How to write the value" of=${[["form", "Form"], ["json", "JSON"]]} value=${how} onChange=${setHow}/>`}
    ${how === "form" && !wrong ? html`<${Value} form=${form} name=${`Value of the ${own}`} value=${JSON.parse(text)} onChange=${(value) => set(JSON.stringify(value, null, 2))}/>`
      : html`<label>Value of the ${own}, in JSON<textarea spellcheck="false" value=${text} onInput=${(e) => set(e.target.value)}></textarea></label>${wrong && html`<p class="waits small">Not JSON yet: ${wrong}</p>`}`}
    <${Trouble} error=${state.error}/>
    <div class="row"><button class="main" disabled=${state.busy || !may || Boolean(wrong)} title=${may ? "" : `The role ${role} may not do this.`}>Set</button>
      ${p.remove && html`<button type="button" class="danger" disabled=${!may || p.from !== own} onClick=${() => run(removal, close)}>Remove, so that the ${topic ? "namespace's or the broker's" : "broker's"} value applies</button>`}
      <button type="button" onClick=${close}>Cancel</button></div>
    <${Commands} lines=${[["The same on the command line:", words], ["The REST call:", callText(setting)],
      ...(p.remove ? [["The REST call that removes the value:", callText(removal)]] : [])]}/></form>`}</${Overlay}>`;
}

// ---- fields: { kind: "switch" | "number" | "choice" | "text" | "list" | "record" | "json", unit, choices, fields: [[name, form]] }

function blankOf(form) {
  const of = { switch: false, number: 0, text: "", list: [], choice: (form.choices || [""])[0] };
  return form.kind === "record" ? Object.fromEntries(form.fields.map(([name, each]) => [name, blankOf(each)])) : of[form.kind] ?? null;
}

function Value({ form, name, value, onChange }) {
  const unit = form.unit ? `, in ${form.unit}` : "";
  if (form.kind === "switch") return html`<label class="check"><input type="checkbox" checked=${Boolean(value)} onChange=${(e) => onChange(e.target.checked)}/>${name}</label>`;
  if (form.kind === "number") {
    return html`<label>${name}${unit}<input type="number" step=${form.whole ? "1" : "any"} value=${value ?? ""} onInput=${(e) => onChange(e.target.value === "" ? null : Number(e.target.value))}/>
      ${form.unit === "seconds" && value > 0 && html`<span>${span(value * 1000)}</span>`}</label>`;
  }
  if (form.kind === "choice") return html`<label>${name}<select value=${value} onChange=${(e) => onChange(e.target.value)}>${form.choices.map((c) => html`<option value=${c}>${c}</option>`)}</select></label>`;
  if (form.kind === "text") return html`<label>${name}<input value=${value ?? ""} onInput=${(e) => onChange(e.target.value)}/></label>`;
  if (form.kind === "list") return html`<label>${name}, separated by commas<input value=${(value || []).join(", ")} onChange=${(e) => onChange(e.target.value.split(",").map((each) => each.trim()).filter(Boolean))}/></label>`;
  const object = value && typeof value === "object" ? value : {};
  return html`<fieldset><legend>${name}</legend>${form.fields.map(([key, each]) => html`<${Value} key=${key} form=${each} name=${key} value=${object[key]} onChange=${(v) => onChange(without({ ...object, [key]: v }))}/>`)}</fieldset>`;
}

// A field that is empty is left out, so that Pulsar's value for an absent one applies.
const without = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== ""));
