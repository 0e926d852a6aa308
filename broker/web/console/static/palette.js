// Ctrl-K: find a page, a topic, a subscription, a client or an act by a part of its name.
import { get } from "./api.js";
import { Dialog, actsOf } from "./act.js";
import { html, useEffect, useState } from "./html.js";
import { Overlay } from "./overlays.js";
import { ON_ALL } from "./subscriptions.js";
import { fullName, hrefOf, partsOf, shortName, subscriptionHref, topicHref } from "./parts.js";

const TYPING_MS = 120;

export function Palette({ live, address, pages, onEnd }) {
  const [text, set] = useState(""), [{ rows: found, of }, setFound] = useState({ rows: [], of: "" }), [at, move] = useState(0), [act, choose] = useState(null);
  useEffect(() => {
    let stale = false;
    const timer = setTimeout(async () => {
      if (!text) { setFound({ rows: [], of: "" }); return; }
      const value = await get(`pulsarium/find?${new URLSearchParams({ text })}`).catch(() => null);
      if (!stale) setFound({ rows: value ? rowsOf(value) : [], of: text });
    }, TYPING_MS);
    return () => { stale = true; clearTimeout(timer); };
  }, [text]);
  const lower = text.toLowerCase(), on = onPage(live, address);
  const here = [...pages.map(([where, title]) => ({ kind: "page", title, href: hrefOf(where) })),
    ...on.map(([act, given]) => ({ kind: "act", title: act.label, more: given.subscription || "", act, given }))]
    .filter((each) => `${each.title} ${each.more || ""}`.toLowerCase().includes(lower));
  const named = text && of === text && !/\s/.test(text) && partsOf(fullName(text)).local ? [{ kind: "open", title: `Open topic ${shortName(fullName(text))}`, href: topicHref(fullName(text)) }] : [];
  const all = [...here.slice(0, 12), ...found, ...named];
  const take = (one, close) => {
    if (one.act) choose(one);
    else { location.hash = one.href; close(); }
  };
  const keys = (close) => (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); move((at + step + all.length) % Math.max(1, all.length)); }
    if (event.key === "Enter" && all[at]) { event.preventDefault(); take(all[at], close); }
  };
  if (act) return html`<${Dialog} act=${act.act} given=${act.given} onEnd=${onEnd}/>`;
  return html`<${Overlay} label="Find" kind="palette" onEnd=${onEnd}>${(close) => html`
    <input type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${all[at] ? `found-${at}` : null} aria-label="Find"
      placeholder="A page, topic, subscription, client or act" value=${text} autofocus onKeyDown=${keys(close)} onInput=${(e) => { set(e.target.value); move(0); }}/>
    <ul id="found" role="listbox" aria-label="Found">${all.map((one, i) => html`<li id="found-${i}" role="option" aria-selected=${String(i === at)} onPointerMove=${() => move(i)}
      onClick=${() => take(one, close)}><span>${one.title} ${one.more && html`<span class="soft">${one.more}</span>`}</span><small>${one.kind}</small></li>`)}</ul>
    ${!all.length && of === text && html`<p class="note empty">Nothing has this in its name.</p>`}`}</${Overlay}>`;
}

function rowsOf(value) {
  return [...value.topics.map((name) => ({ kind: "topic", title: shortName(name), href: topicHref(name) })),
    ...value.subscriptions.map((s) => ({ kind: "subscription", title: s.name, more: `of ${shortName(s.topic)}`, href: subscriptionHref(s.topic, s.name) })),
    ...value.namespaces.map((name) => ({ kind: "namespace", title: name, href: hrefOf("namespace", ...name.split("/")) })),
    ...value.clients.map((c) => ({ kind: "client", title: c.client || c.address, more: c.address, href: hrefOf("connections") + `?${new URLSearchParams({ filter: c.address })}` }))];
}

// The acts on what the page shows, each with the names that it needs.
function onPage({ value }, { parts: [page, ...rest] }) {
  if (page === "topic" && value && rest.length > 3) {
    const topic = `${rest[0]}://${rest.slice(1, 4).join("/")}`;
    const subscriptions = value.subscriptions || [];
    return [...actsOf(value.kind === "partitioned" || value.kind === "scalable" ? value.kind : "topic").map((act) => [act, { topic }]),
      ...subscriptions.slice(0, 50).flatMap((s) => actsOf("subscription", value.kind === "partitioned" ? ON_ALL : undefined).map((act) => [act, { topic, subscription: s.name, next: s.next }]))];
  }
  if (page === "namespace" && rest.length > 1) return actsOf("namespace").map((act) => [act, { namespace: `${rest[0]}/${rest[1]}` }]);
  return ["clock", "faults", "captures", "linter", "broker"].flatMap((on) => actsOf(on).map((act) => [act, {}]));
}
