// Versions of a topic's schema, and what changed between two of them.
import { Acts } from "./act.js";
import { useGet } from "./api.js";
import { html, useState } from "./html.js";
import { instant, restPath, Trouble } from "./parts.js";

export function Schemas({ name, role }) {
  const path = `/admin/v2/schemas/${restPath(name).split("/").slice(1).join("/")}/schemas`;
  const found = useGet(path), [chosen, choose] = useState(null);
  const versions = found.value ? [...found.value.getSchemaResponses].reverse() : [];
  if (found.error && found.error.status !== 404) return html`<${Trouble} error=${found.error}/>`;
  const at = chosen ?? (versions[0] && versions[0].version), index = versions.findIndex((v) => v.version === at);
  const now = versions[index], before = versions[index + 1];
  if (!now) return html`<p class="note">${found.value || found.error ? "The topic has no schema: its messages are bytes." : "…"}</p>`;
  return html`<section class="card"><div class="row"><label>Version<select value=${at} onChange=${(e) => choose(Number(e.target.value))}>
      ${versions.map((v) => html`<option value=${v.version}>${v.version}</option>`)}</select></label>
      <span>${now.type}</span><span class="soft">since ${instant(now.timestamp)}</span></div>
    ${before && html`<p class="soft">Compared with version ${before.version}:</p>`}
    <pre>${before ? differences(shown(before), shown(now)) : shown(now)}</pre>
    <div class="small soft">pulsarium admin schemas get ${name} --version ${now.version} · GET ${path}</div></section>
    <${Acts} on="topic" only=${["delete-schema"]} given=${{ topic: name }} role=${role}/>`;
}

function shown({ data, properties }) {
  let text = data;
  try { text = JSON.stringify(JSON.parse(data), null, 2); } catch { /* no JSON */ }
  return Object.keys(properties || {}).length ? `${text}\n${JSON.stringify(properties)}` : text;
}

// Lines that were added and removed: the longest common subsequence of both texts.
function differences(before, now) {
  const a = before.split("\n"), b = now.split("\n"), width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const lines = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) { lines.push(`  ${a[i]}\n`); i++; j++; }
    else if (j < b.length && (i === a.length || lengths[i * width + j + 1] >= lengths[(i + 1) * width + j])) {
      lines.push(html`<ins class="added">+ ${b[j++]}${"\n"}</ins>`);
    } else lines.push(html`<del class="removed">- ${a[i++]}${"\n"}</del>`);
  }
  return lines;
}

