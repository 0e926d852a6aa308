// A capture: its newest frames, decoded by the broker, and its files.
import { Acts } from "./act.js";
import { send } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { download, number, Table, Trouble } from "./parts.js";

const SHOWN = 200;

export function Capture({ capture: c, role }) {
  const [open, setOpen] = useState(false), [error, setError] = useState(null);
  const saving = (save) => save(c.id).then(() => setError(null), setError);
  return html`<article data-capture=${c.id}><h3>Capture ${c.id} <small>${c.running ? "running" : "ended"}, ${number(c.frames)} frames${c.dropped ? `, ${number(c.dropped)} dropped` : ""}${c.reason ? `, ${c.reason}` : ""}</small></h3>
    <div class="row"><button aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? "Hide frames" : "Show frames"}</button>
      <button onClick=${() => saving(lines)}>Download JSON lines</button><button onClick=${() => saving(packets)}>Download pcapng</button>
      ${c.running && html`<${Acts} on="capture" given=${{ id: String(c.id) }} role=${role}/>`}</div>
    <${Trouble} error=${error}/>${open && html`<${Frames} id=${c.id} records=${c.records}/>`}</article>`;
}

// Fetch all frames, answer by answer.
async function lines(id) {
  const parts = [];
  for (let after = 0; ;) {
    const text = (await (await send("GET", `/lab/captures/${id}/frames?full=true&after=${after}`)).text()).trim();
    if (!text) break;
    parts.push(text + "\n");
    after = JSON.parse(text.slice(text.lastIndexOf("\n") + 1)).number;
  }
  download(`capture-${id}.jsonl`, new Blob(parts));
}

// Fetch the packets of all frames, for Wireshark.
async function packets(id) {
  download(`capture-${id}.pcapng`, await (await send("GET", `/lab/captures/${id}/packets`)).blob());
}

// The stream of the page tells how many records there are; the frames behind the last known one are fetched then.
function Frames({ id, records }) {
  const [frames, set] = useState([]), [error, setError] = useState(null), after = useRef(0), busy = useRef(false), newest = useRef(0);
  useEffect(() => {
    newest.current = records;
    if (busy.current) return;
    busy.current = true;
    const ask = async () => {
      for (let seen, text; text || seen !== newest.current;) { // records may come while the broker answers
        seen = newest.current;
        text = (await (await send("GET", `/lab/captures/${id}/frames?after=${after.current}`)).text()).trim();
        if (!text) continue;
        const lines = text.split("\n").map((line) => JSON.parse(line));
        after.current = lines[lines.length - 1].number;
        set((old) => [...lines.reverse(), ...old].slice(0, SHOWN));
      }
      busy.current = false;
    };
    ask().catch((problem) => { busy.current = false; setError(problem); });
  }, [records]);
  return html`<${Trouble} error=${error}/><${Table} label="Frames of capture ${id}, newest first" rows=${frames} empty="No frames yet." columns=${[
    ["Number", (f) => f.number, true], ["Frame", (f) => html`<details><summary>${f.command || f.kind}${f.topic ? ` · ${f.topic}` : ""}</summary><pre>${JSON.stringify(f, null, 1)}</pre></details>`],
    ["Sender", (f) => f.sender], ["Bytes", (f) => number(f.size), true]]}/>`;
}
