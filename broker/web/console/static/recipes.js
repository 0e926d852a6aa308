// Recipes of the lab: what happens to clients in production, done in one click and taken back in one. Each is a call of the lab.
import { send } from "./api.js";
import { callText, Commands } from "./act.js";
import { html, useState } from "./html.js";
import { toast } from "./overlays.js";
import { Trouble } from "./parts.js";

const WEEK = 604_800;
const fault = (command, action, more = {}) => ({ method: "POST", path: "/lab/faults", body: { command, action, ...more }, named: true });

// Each recipe: its title, what a client meets, the call, and the same as a command line. A fault and a mask are undone by their ids.
export const RECIPES = [
  { part: "The network", title: "Lose the next receipt", about: "A message is stored, but its producer never hears of it, and sends it again.", ...fault("SEND_RECEIPT", { kind: "drop" }), command: "fault add SEND_RECEIPT drop" },
  { part: "The network", title: "Close the connection at the next SEND", about: "The producer reconnects, and sends again what has no receipt.", ...fault("SEND", { kind: "close" }), command: "fault add SEND close" },
  { part: "The network", title: "Make every third ACK slow", about: "Acknowledgements arrive 2 s late: consumers with few permits stand still.", ...fault("ACK", { kind: "delay", seconds: 2 }, { every: 3, count: null }), command: "fault add ACK delay --seconds 2 --every 3 --forever" },
  { part: "The network", title: "Deliver the next message twice", about: "A consumer gets the same message again, as after a redelivery.", ...fault("MESSAGE", { kind: "duplicate" }), command: "fault add MESSAGE duplicate" },
  { part: "The broker", title: "Be busy at the next lookup", about: "The next lookup is answered with ServiceNotReady: a client must try again.", ...fault("LOOKUP", { kind: "answer", error: "ServiceNotReady" }), command: "fault add LOOKUP answer --error ServiceNotReady" },
  { part: "The broker", title: "Hand all topics of public/default over", about: "Topics close and open again, as when a broker goes away. It cannot be taken back.", method: "PUT", path: "/admin/v2/namespaces/public/default/unload", command: "admin namespaces unload public/default" },
  { part: "The broker", title: "Meet a Pulsar 2.11 broker", about: "Clients reconnect, and find the protocol version and features of Pulsar 2.11.", method: "POST", path: "/lab/masks", body: { profile: "pulsar-2.11", disconnect: true }, named: true, command: "mask add --profile pulsar-2.11 --disconnect" },
  { part: "Time", title: "One hour later", about: "Delayed messages come, and timeouts pass.", method: "POST", path: "/lab/clock/advance", body: { seconds: 3600 }, undo: { method: "POST", path: "/lab/clock/reset" }, command: "clock advance 3600" },
  { part: "Time", title: "One week later", about: "What retention and message TTL delete is gone.", method: "POST", path: "/lab/clock/advance", body: { seconds: WEEK }, undo: { method: "POST", path: "/lab/clock/reset" }, command: `clock advance ${WEEK}` },
  { part: "Time", title: "Stop the clock", about: "Nothing expires, and no delayed message comes, until the clock runs again.", method: "POST", path: "/lab/clock/freeze", undo: { method: "POST", path: "/lab/clock/resume" }, command: "clock freeze" },
];

const bodyOf = (recipe, topic) => JSON.stringify(recipe.path === "/lab/faults" && topic ? { ...recipe.body, topic } : recipe.body);

export function Recipes({ value }) {
  const [topic, set] = useState(""), [error, setError] = useState(null), [made, keep] = useState({});
  const alive = new Set([...value.faults.map((f) => `/lab/faults/${f.id}`), ...value.masks.map((m) => `/lab/masks/${m.id}`)]);
  const undoOf = (recipe) => (recipe.named ? made[recipe.title] && alive.has(made[recipe.title]) && { method: "DELETE", path: made[recipe.title] }
    : recipe.path.startsWith("/lab/clock") && value.clock && (value.clock.frozen === (recipe.path === "/lab/clock/freeze")) && recipe.undo);
  const run = async (recipe) => {
    try {
      setError(null);
      const answer = await (await send(recipe.method, recipe.path, recipe.body && bodyOf(recipe, topic))).text();
      const undo = recipe.named ? { method: "DELETE", path: `${recipe.path}/${JSON.parse(answer).id}` } : recipe.undo;
      if (recipe.named) keep({ ...made, [recipe.title]: undo.path });
      toast(`Done: ${recipe.title}`, undo && { label: "Take back", act: () => send(undo.method, undo.path) });
    } catch (problem) { setError(problem); }
  };
  const back = async (undo) => { try { await send(undo.method, undo.path); } catch (problem) { setError(problem); } };
  return html`<section class="card"><div class="bar"><h3>Recipes</h3><span class="soft">What clients meet in production, in one click. A recipe can be taken back until it has hit.</span><span class="grow"></span>
      <label class="small soft">only for topic <input aria-label="Only for topic" placeholder="any, such as orders*" value=${topic} onInput=${(e) => set(e.target.value)}/></label></div><${Trouble} error=${error}/>
    ${["The network", "The broker", "Time"].map((part) => html`<h4 class="soft small">${part}</h4><div class="recipes">${RECIPES.filter((r) => r.part === part).map((recipe) => {
      const undo = undoOf(recipe);
      return html`<article class="recipe ${undo ? "on" : ""}" data-recipe=${recipe.title}><div><b>${recipe.title}</b><br/><span class="soft small">${recipe.about}</span></div>
        <div class="row"><button onClick=${() => run(recipe)}>Do it</button>${undo && html`<button onClick=${() => back(undo)}>Take back</button>`}</div>
        <details class="small"><summary>As a command</summary><${Commands} lines=${[["Command line:", `pulsarium ${recipe.command}`], ["REST:", callText({ method: recipe.method, path: recipe.path, body: recipe.body && bodyOf(recipe, topic) })]]}/></details></article>`; })}</div>`)}</section>`;
}
