// Tenants and their namespaces; one namespace with its permissions, policies and acts.
import { Acts } from "./act.js";
import { get, session, useGet } from "./api.js";
import { html, useEffect, useState } from "./html.js";
import { Policies } from "./policies.js";
import { hrefOf, many, Table, Tabs, Trouble } from "./parts.js";

export function Namespaces({ role }) {
  const [state, set] = useState({}), [changed, change] = useState(0);
  useEffect(() => {
    let stale = false;
    const find = async () => {
      const tenants = (await get("/admin/v2/tenants")).sort();
      return Promise.all(tenants.map(async (name) => [name, (await get(`/admin/v2/namespaces/${encodeURIComponent(name)}`)).sort()]));
    };
    find().then((value) => stale || set({ value }), (error) => stale || set({ error }));
    return () => { stale = true; };
  }, [session.token, changed]);
  const again = () => setTimeout(() => change((n) => n + 1), 200);
  return html`<div class="head"><h2>Tenants and namespaces</h2><span class="grow"></span><div onClose=${again}><${Acts} on="broker" given=${{}} role=${role}/></div><button onClick=${again}>Look again</button></div>
    <${Trouble} error=${state.error}/><div class="grid" onClose=${again}>
    ${(state.value || []).map(([tenant, namespaces]) => html`<section class="card" key=${tenant} data-tenant=${tenant}><h3>${tenant} <small>${many(namespaces.length, "namespace")}</small></h3>
      <ul>${namespaces.map((name) => html`<li><a href=${hrefOf("namespace", ...name.split("/"))}>${name}</a></li>`)}</ul>
      <${Acts} on="tenant" given=${{ tenant }} role=${role}/></section>`)}</div>`;
}

export function Namespace({ name, role, query }) {
  const tab = query.get("tab") || "policies", permissions = useGet(`/admin/v2/namespaces/${name}/permissions`);
  const to = (tab) => hrefOf("namespace", ...name.split("/")) + (tab === "policies" ? "" : `?tab=${tab}`), rows = Object.entries(permissions.value || {});
  return html`<div class="head"><h2>${name}</h2><a href="#/topics?${new URLSearchParams({ namespace: name })}">Its topics</a></div>
    <${Tabs} label="About the namespace" chosen=${tab} of=${[["policies", to("policies"), "Policies"], ["permissions", to("permissions"), "Permissions"], ["acts", to("acts"), "Acts"]]}/>
    ${tab === "acts" ? html`<section class="card"><h3>Acts on the namespace</h3><${Acts} on="namespace" given=${{ namespace: name }} role=${role}/></section>`
      : tab === "permissions" ? html`<${Trouble} error=${permissions.error}/><section class="card flush"><${Table} label="Permissions" rows=${rows} empty="No role has a permission of its own here."
        columns=${[["Role", ([role]) => role], ["May", ([, actions]) => actions.join(", ")]]}/></section><p class="small soft">pulsarium admin namespaces permissions ${name}</p>`
      : html`<${Policies} of=${{ namespace: name }} role=${role}/>`}`;
}
