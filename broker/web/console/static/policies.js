// Policies: the value in effect, the level that it comes from, and a form for the topic's or namespace's own value.
import { mayCall, send, useGet } from "./api.js";
import { POLICY_COMMANDS } from "./acts.js";
import { callText, Commands, quoted } from "./act.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { pretty, restPath, Table, Trouble } from "./parts.js";

export function Policies({ of: { topic, namespace }, role }) {
  const [changed, change] = useState(0), [edited, edit] = useState(null);
  const found = useGet(`pulsarium/policies/${topic ? restPath(topic) : namespace}`, [changed]);
  return html`<${Trouble} error=${found.error}/>${found.value && html`<section class="card"><${Table} label="Policies"
    rows=${found.value} keyOf=${(p) => p.word} columns=${[
      ["Policy", (p) => html`<b>${p.word}</b><div class="soft small">${p.about}</div>`],
      ["In effect", (p) => html`<code>${p.value === null ? "not set" : JSON.stringify(p.value)}</code>`],
      ["From", (p) => html`<span class=${p.from === "broker" ? "soft" : ""}>${p.from}${p.from === "broker" && p.key ? `: ${p.key}` : ""}</span>`],
      ["Own value", (p) => html`<button aria-label="Edit ${p.word}" onClick=${() => edit(p)}>Edit</button>`]]}/></section>`}
    ${edited && html`<${Editor} policy=${edited} topic=${topic} namespace=${namespace} role=${role}
      onEnd=${() => { edit(null); change(changed + 1); }}/>`}`;
}

function Editor({ policy: p, topic, namespace, role, onEnd }) {
  const dialog = useRef(), [text, set] = useState(pretty(p.value === null ? null : JSON.stringify(p.value, null, 2)));
  const [state, setState] = useState({}), [may, setMay] = useState(true);
  const base = `/admin/v2/${topic ? restPath(topic) : "namespaces/" + namespace}`, own = topic ? "topic" : "namespace";
  const query = p.inQuery ? `?${p.word}=${encodeURIComponent(text)}` : "";
  const setting = { method: p.set, path: `${base}/${p.word}${query}`, body: p.inQuery || !p.hasBody ? undefined : text };
  const removal = { method: p.remove, path: `${base}/${p.removeAt}` };
  const command = POLICY_COMMANDS[own][p.word];
  const words = command ? `pulsarium admin ${command.replace("{name}", quoted(topic || namespace)).replace("{value}", quoted(text))}` : "There is none.";
  useEffect(() => { dialog.current.showModal(); if (role) mayCall(setting.method, setting.path).then(setMay); }, []);
  const run = async ({ method, path, body }) => {
    setState({ busy: true });
    try {
      if (body !== undefined) JSON.parse(body);
      await send(method, path, body);
      dialog.current.close();
    } catch (error) {
      setState({ error });
    }
  };
  return html`<dialog ref=${dialog} onClose=${onEnd} aria-labelledby="policy"><form class="form" onSubmit=${(e) => { e.preventDefault(); run(setting); }}>
    <h2 id="policy">${p.word} <small>${topic || namespace}</small></h2><p class="soft">${p.about}</p>
    <label>Value of the ${own}, in JSON<textarea value=${text} onInput=${(e) => set(e.target.value)}></textarea></label>
    <${Commands} lines=${[["The same on the command line:", words], ["The REST call:", callText(setting)],
      ...(p.remove ? [["The REST call that removes the value:", callText(removal)]] : [])]}/>
    <${Trouble} error=${state.error}/>
    <div class="row"><button class="main" disabled=${state.busy || !may} title=${may ? "" : `The role ${role} may not do this.`}>Set</button>
      ${p.remove && html`<button type="button" class="danger" disabled=${!may || p.from !== own} onClick=${() => run(removal)}>Remove, so that the ${topic ? "namespace's or the broker's" : "broker's"} value applies</button>`}
      <button type="button" onClick=${() => dialog.current.close()}>Cancel</button></div></form></dialog>`;
}
