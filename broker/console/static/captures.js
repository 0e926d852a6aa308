// A capture: its newest frames, decoded by the broker, and its files.
import { Acts } from "./act.js";
import { send } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { download, number, Table, Trouble } from "./parts.js";

const SHOWN = 200;

export function Capture({ capture: c, role }) {
  const [open, setOpen] = useState(false);
  return html`<article data-capture=${c.id}><h3>Capture ${c.id} <small>${c.running ? "running" : "ended"}, ${number(c.frames)} frames${c.dropped ? `, ${number(c.dropped)} dropped` : ""}${c.reason ? `, ${c.reason}` : ""}</small></h3>
    <div class="row"><button aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? "Hide frames" : "Show frames"}</button>
      <button onClick=${() => save(c.id, "frames?full=true", "jsonl")}>Download JSON lines</button>
      <button onClick=${() => save(c.id, "records", "pulscap")}>Download capture</button>
      ${c.running && html`<${Acts} on="capture" given=${{ id: String(c.id) }} role=${role}/>`}</div>
    ${open && html`<${Frames} id=${c.id} records=${c.records}/>`}</article>`;
}

// Fetch the whole capture, answer by answer. A capture file has one head, so it is saved in one piece only.
async function save(id, what, ending) {
  const parts = [];
  for (let after = 0, more = true; more;) {
    const answer = await send("GET", `/lab/captures/${id}/${what}${what.includes("?") ? "&" : "?"}after=${after}`);
    const part = await answer.blob();
    if (part.size) parts.push(part);
    const lines = ending === "jsonl" ? (await part.text()).trim().split("\n").filter(Boolean) : [];
    more = lines.length > 0;
    if (more) after = JSON.parse(lines[lines.length - 1]).number;
  }
  download(`capture-${id}.${ending}`, new Blob(parts));
}

// The stream of the page tells how many records there are; the frames behind the last known one are fetched then.
function Frames({ id, records }) {
  const [frames, set] = useState([]), [error, setError] = useState(null), after = useRef(0), busy = useRef(false);
  useEffect(() => {
    if (busy.current) return;
    busy.current = true;
    send("GET", `/lab/captures/${id}/frames?after=${after.current}`).then(async (answer) => {
      const lines = (await answer.text()).trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
      if (lines.length) after.current = lines[lines.length - 1].number;
      set((old) => [...lines.reverse(), ...old].slice(0, SHOWN));
    }).catch(setError).finally(() => { busy.current = false; });
  }, [records]);
  return html`<${Trouble} error=${error}/><${Table} label="Frames of capture ${id}, newest first" rows=${frames} empty="No frames yet." columns=${[
    ["Number", (f) => f.number, true], ["Frame", (f) => html`<details><summary>${f.command || f.kind}${f.topic ? ` · ${f.topic}` : ""}</summary><pre>${JSON.stringify(f, null, 1)}</pre></details>`],
    ["Sender", (f) => f.sender], ["Bytes", (f) => number(f.size), true]]}/>`;
}
