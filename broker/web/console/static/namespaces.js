// Tenants and their namespaces; one namespace with its topics, policies and permissions.
import { Acts } from "./act.js";
import { get, session, useGet } from "./api.js";
import { Policies } from "./policies.js";
import { html, useEffect, useState } from "./preact.js";
import { hrefOf, many, pretty, TopicLink, Trouble } from "./parts.js";

export function Namespaces({ role }) {
  const [state, set] = useState({}), [changed, change] = useState(0);
  useEffect(() => {
    let stale = false;
    const ask = async () => {
      const tenants = (await get("/admin/v2/tenants")).sort();
      return Promise.all(tenants.map(async (name) => [name, await get(`/admin/v2/namespaces/${encodeURIComponent(name)}`)]));
    };
    ask().then((value) => stale || set({ value }), (error) => stale || set({ error }));
    return () => { stale = true; };
  }, [session.token, changed]);
  return html`<h2>Tenants and namespaces</h2><${Trouble} error=${state.error}/>
    <div onClose=${() => change(changed + 1)}>
    ${(state.value || []).map(([tenant, namespaces]) => html`<section class="card" key=${tenant} data-tenant=${tenant}><h3>${tenant}</h3>
      <ul>${namespaces.map((name) => html`<li><a href=${hrefOf("namespace", ...name.split("/"))}>${name}</a></li>`)}</ul>
      <${Acts} on="tenant" given=${{ tenant }} role=${role}/></section>`)}
    <${Acts} on="broker" given=${{}} role=${role}/></div>
    <button onClick=${() => change(changed + 1)}>Look again</button>`;
}

export function Namespace({ name, role }) {
  const topics = useGet(`/admin/v2/namespaces/${name}/topics?mode=ALL`);
  const permissions = useGet(`/admin/v2/namespaces/${name}/permissions`);
  return html`<h2>${name}</h2><${Trouble} error=${topics.error}/>
    <section class="card"><details><summary>${topics.value ? many(topics.value.length, "topic") : "…"}</summary>
      <ul>${(topics.value || []).slice(0, 500).map((topic) => html`<li><${TopicLink} name=${topic}/></li>`)}</ul></details>
      <a href="#/topics?${new URLSearchParams({ filter: `${name}/` })}">Their numbers</a>
      ${permissions.value && html`<details><summary>Permissions</summary><pre>${pretty(permissions.value)}</pre></details>`}
      <h3>Acts on the namespace</h3><${Acts} on="namespace" given=${{ namespace: name }} role=${role}/></section>
    <h3>Policies</h3><${Policies} of=${{ namespace: name }} role=${role}/>`;
}
