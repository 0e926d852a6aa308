// Publish a message over REST.
import { mayCall, send } from "./api.js";
import { callText, Commands } from "./act.js";
import { html, useEffect, useState } from "./preact.js";
import { restPath, Trouble } from "./parts.js";

const TYPES = ["BYTES", "STRING", "JSON", "INT32", "INT64", "DOUBLE", "BOOLEAN"]; // those that REST can write

function bodyOf({ payload, key, properties, delay, type, definition }) {
  const message = { payload };
  if (key) message.key = key;
  const pairs = properties.split("\n").filter(Boolean).map((line) => line.split(/=(.*)/s).slice(0, 2));
  if (pairs.length) message.properties = Object.fromEntries(pairs);
  if (Number(delay)) Object.assign(message, { eventTime: Date.now(), deliverAfterMs: Math.round(Number(delay) * 1000) });
  const valueSchema = JSON.stringify({ name: "", schema: btoa(definition), type, properties: {}, timestamp: 0 });
  return { producerName: "console", valueSchema, messages: [message] };
}

export function Publish({ name, role }) {
  const [form, set] = useState({ payload: "", key: "", properties: "", delay: "", type: "BYTES", definition: "" });
  const [state, setState] = useState({}), [may, setMay] = useState(true);
  const path = `/topics/${restPath(name)}`, body = JSON.stringify(bodyOf(form));
  useEffect(() => { if (role) mayCall("POST", path).then(setMay); }, [role, path]);
  const field = (key) => ({ value: form[key], onInput: (e) => set({ ...form, [key]: e.target.value }) });
  const run = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      const answer = await (await send("POST", path, JSON.stringify(bodyOf(form)))).json();
      const [first] = answer.messagePublishResults;
      if (first.errorCode) throw new Error(first.errorMsg);
      setState({ done: `published as ${first.messageId}` });
    } catch (error) {
      setState({ error });
    }
  };
  const words = ["pulsarium", "client", "produce", name, "-s", "''", "-m", `'${form.payload.replace(/'/g, `'\\''`)}'`];
  if (form.key) words.push("-k", `'${form.key.replace(/'/g, `'\\''`)}'`);
  return html`<details class="card"><summary>Publish a message</summary><form class="form" onSubmit=${run}>
    <label>Payload<textarea ...${field("payload")}></textarea></label>
    <label>Key<input ...${field("key")}/></label>
    <label>Properties, one KEY=VALUE a line<textarea ...${field("properties")}></textarea></label>
    <label>Deliver after, in seconds<input type="number" min="0" ...${field("delay")}/></label>
    <label>Schema<select value=${form.type} onChange=${(e) => set({ ...form, type: e.target.value })}>
      ${TYPES.map((type) => html`<option value=${type}>${type}</option>`)}</select></label>
    ${form.type === "JSON" && html`<label>Definition, in Avro's JSON<textarea ...${field("definition")}></textarea></label>`}
    <${Commands} lines=${[["The same on the command line (without delay and schema):", words.join(" ")],
      ["The REST call:", callText({ method: "POST", path, body })]]}/>
    <${Trouble} error=${state.error}/>${state.done && html`<p class="fine" role="status">Done: ${state.done}</p>`}
    <div class="row"><button class="main" disabled=${state.busy || !may} title=${may ? "" : `The role ${role} may not publish.`}>Publish</button></div>
  </form></details>`;
}
