// The shell: the pages at the side, the address at the top, what concerns every page below it, and the page that the address names.
import { Acts } from "./act.js";
import { session, useLive } from "./api.js";
import { Connections } from "./connections.js";
import { html, render, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Lab } from "./lab.js";
import { Namespace, Namespaces } from "./namespaces.js";
import { Overlay, Toasts } from "./overlays.js";
import { Overview } from "./overview.js";
import { Palette } from "./palette.js";
import { Empty, followClock, hrefOf, instant, Mark, span, topicHref, useKey } from "./parts.js";
import { Topic } from "./topic.js";
import { Topics } from "./topics.js";
import { Transactions } from "./transactions.js";

const THEME = "pulsarium.theme";
const PAGES = [
  ["", "Overview", "M2 9h3l2-6 3 10 2-4h2"],
  ["topics", "Topics", "M2 4h12M2 8h12M2 12h8"],
  ["connections", "Connections", "M5 3v4a3 3 0 0 0 6 0V3M8 10v4M5 1v2M11 1v2"],
  ["namespaces", "Namespaces", "M2 4.5V13h12V5.5H8L6.5 3.5H2z"],
  ["transactions", "Transactions", "M3 5h9l-2.5-2.5M13 11H4l2.5 2.5"],
  ["lab", "Lab", "M6 2h4M7 2v4.5L3 13.5h10L9 6.5V2M5 10.5h6"],
];

// The address behind #: parts of a path, and a query. Any text may be in a part, so each is encoded.
function parsed() {
  const [path, query] = location.hash.slice(2).split("?");
  let parts = [];
  try { parts = path.split("/").filter(Boolean).map(decodeURIComponent); } catch { parts = ["?"]; }
  return { parts, query: new URLSearchParams(query) };
}

// The stream of each page. Every value of a stream has the role and the clock, which the shell shows.
function streamOf({ parts: [page, ...rest], query }) {
  if (!page) return "pulsarium/overview";
  if (page === "topic" && rest.length > 3) return `pulsarium/topic/${rest.slice(0, 4).map(encodeURIComponent).join("/")}`;
  if (page === "lab") return "lab/live";
  if (page === "connections") return `pulsarium/connections?${new URLSearchParams({ filter: query.get("filter") || "" })}`;
  const of = (name, otherwise = "") => (page === "topics" && query.get(name)) || otherwise;
  return `pulsarium/topics?${new URLSearchParams({ filter: of("filter"), namespace: of("namespace"), sort: of("sort", "name"),
    idle: of("idle", "true"), system: of("system", "false"), offset: of("offset", "0"), limit: page === "topics" ? "100" : "0" })}`;
}

function page(address, live) {
  const [name, ...rest] = address.parts, { query } = address, role = live.value && live.value.role;
  if (!name) return html`<${Overview} live=${live}/>`;
  if (name === "topics" && !rest.length) return html`<${Topics} live=${live} query=${query}/>`;
  if (name === "topic" && rest.length > 3 && rest.length < 6) {
    const [domain, tenant, namespace, local, tab] = rest;
    return html`<${Topic} key=${rest.slice(0, 4).join("/")} live=${live} name=${`${domain}://${tenant}/${namespace}/${local}`} tab=${tab || "subscriptions"} query=${query}/>`;
  }
  if (name === "connections" && !rest.length) return html`<${Connections} live=${live} query=${query}/>`;
  if (name === "namespaces" && !rest.length) return html`<${Namespaces} role=${role}/>`;
  if (name === "namespace" && rest.length > 1) return html`<${Namespace} name=${`${rest[0]}/${rest[1]}`} role=${role} query=${query}/>`;
  if (name === "transactions" && !rest.length) return html`<${Transactions} role=${role}/>`;
  if (name === "lab") return html`<${Lab} live=${live} part=${rest[0] || ""}/>`;
  return html`<${Empty} title="There is no page at this address"><p>The address is ${location.hash}. These pages exist:</p>
    <div class="row">${PAGES.map(([at, title]) => html`<a href=${hrefOf(at)}>${title}</a>`)}</div></${Empty}>`;
}

function Crumbs({ parts: [page, ...rest] }) {
  const known = PAGES.find(([at]) => at === (page || ""));
  if (page === "topic" && rest.length > 3) {
    const [domain, tenant, namespace, local] = rest;
    const whole = local.match(/^(.*)-partition-(\d+)$/);
    return html`<a href="#/topics">Topics</a><span>/</span><a href=${hrefOf("namespace", tenant, namespace)}>${tenant}/${namespace}</a><span>/</span>
      ${whole ? html`<a href=${topicHref(`${domain}://${tenant}/${namespace}/${whole[1]}`)}>${whole[1]}</a><span>/</span><b>partition ${whole[2]}</b>` : html`<b>${local}</b>`}`;
  }
  if (page === "namespace" && rest.length > 1) return html`<a href="#/namespaces">Namespaces</a><span>/</span><b>${rest[0]}/${rest[1]}</b>`;
  return html`<b>${known ? known[1] : "Unknown page"}</b>`;
}

function Clock({ clock, role }) {
  if (!clock) return null;
  const text = clock.frozen ? `The broker's clock is frozen at ${instant(clock.nowMs)}: nothing expires, and no delayed message comes.`
    : `The broker's clock is ${span(Math.abs(clock.aheadMs))} ${clock.aheadMs > 0 ? "ahead of" : "behind"} real time.`;
  return html`<div class="banner" role="status"><span>${text}</span>
    <${Acts} on="clock" given=${{}} role=${role} only=${clock.frozen ? ["resume", "reset-clock"] : ["reset-clock"]}/></div>`;
}

function Lost({ live: { error, againAt } }) {
  const [, tick] = useState(0), lost = error && error.status === 0;
  useEffect(() => {
    if (!lost) return;
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => clearInterval(timer);
  }, [lost]);
  if (!lost) return null;
  const left = Math.max(0, Math.ceil((againAt - Date.now()) / 1000));
  return html`<div class="banner lost" role="alert"><span>The broker at ${location.host} does not answer. Is it running? What you see is from before.
    ${left ? `Trying again in ${left} s.` : "Trying again…"}</span></div>`;
}

function SignIn({ live, onChange }) {
  const [open, set] = useState(false), { value, error } = live, role = value && value.role;
  const told = role ? `Role ${role}` : error && error.isTokenRefused && session.token ? "Token not accepted" : session.token ? "Token kept" : "Sign in";
  const keep = (token) => { session.token = token; onChange(); };
  return html`<button class=${told === "Token not accepted" ? "danger" : ""} onClick=${() => set(true)}>${told}</button>
    ${open && html`<${Overlay} label="Sign in" onEnd=${() => set(false)}>${(close) => html`<form class="form"
      onSubmit=${(e) => { e.preventDefault(); keep(new FormData(e.target).get("token").trim()); close(); }}>
      <h2>Sign in</h2><p class="soft">A broker with authentication needs a token. The token stays in this tab, and is sent as a header.</p>
      <label>Token<input name="token" type="password" autocomplete="off"/></label>
      <div class="row"><button class="main">Use token</button><button type="button" onClick=${() => { keep(""); close(); }}>Forget token</button>
        <button type="button" onClick=${close}>Cancel</button></div></form>`}</${Overlay}>`}`;
}

function Theme() {
  const [theme, set] = useState(localStorage.getItem(THEME) || "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }, [theme]);
  return html`<select aria-label="Theme" value=${theme} onChange=${(e) => set(e.target.value)}>
    ${["auto", "light", "dark"].map((each) => html`<option value=${each}>${each}</option>`)}</select>`;
}

function Side({ here, shown, live, stuck, onChange }) {
  const told = useRef({}), value = told.current;
  if (live.value && live.value.version) told.current = live.value;
  return html`<aside aria-label="Pulsarium" class="side ${shown ? "shown" : ""}"><h1 class="brand"><a href="#/"><${Mark}/>Pulsarium</a></h1>
    <nav aria-label="Pages">${PAGES.map(([at, title, icon]) => html`<a href=${hrefOf(at)} aria-current=${at === here ? "page" : null}>
      <svg viewBox="0 0 16 16" aria-hidden="true"><path d=${icon}/></svg>${title}
      ${at === "" && stuck > 0 && html`<span class="badge waits count" title="subscriptions without progress">${stuck}</span>`}</a>`)}</nav>
    <div class="foot">${value.version && html`<span>version ${value.version}<br/>profile ${[value.profile, ...(value.proposals || [])].join(" + ")}</span>`}
      <div class="row"><${Theme}/><${SignIn} live=${live} onChange=${onChange}/></div></div></aside>`;
}

function App() {
  const [address, go] = useState(parsed()), [, redraw] = useState(0), [side, showSide] = useState(false), [finding, find] = useState(false);
  const main = useRef(), stuck = useRef(0);
  useLayoutEffect(() => {  // before the page is seen, so that no key is lost
    const moved = () => { go(parsed()); showSide(false); };
    const pressed = (event) => { if (event.key === "k" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); find(true); } };
    addEventListener("hashchange", moved);
    addEventListener("keydown", pressed);
    return () => { removeEventListener("hashchange", moved); removeEventListener("keydown", pressed); };
  }, []);
  useKey("/", () => { const field = document.querySelector("main input[type=search]"); field ? field.focus() : find(true); });
  const live = useLive(streamOf(address)), value = live.value || {}, [first, ...rest] = address.parts;
  const here = { topic: "topics", namespace: "namespaces" }[first] || first || "";
  if (value.stuckCount !== undefined) stuck.current = value.stuckCount;
  const title = first === "topic" ? rest[3] : first === "namespace" ? rest.slice(0, 2).join("/") : (PAGES.find(([at]) => at === here) || [, "Unknown page"])[1];
  useEffect(() => { document.title = `${stuck.current ? `(${stuck.current}) ` : ""}${title} · Pulsarium`; }, [title, stuck.current]);
  useEffect(() => { main.current.focus({ preventScroll: true }); scrollTo(0, 0); }, [address.parts.join("/")]);
  followClock(value.clock);
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); main.current.focus(); }}>Skip to content</a>
    <${Side} here=${here} shown=${side} live=${live} stuck=${stuck.current} onChange=${() => redraw((n) => n + 1)}/>
    <header class="top"><button class="menu" aria-label="Pages" aria-expanded=${String(side)} onClick=${() => showSide(!side)}>☰</button>
      <nav class="crumbs" aria-label="Where you are"><${Crumbs} parts=${address.parts}/></nav>
      <span class="pulse ${live.error && live.error.status === 0 ? "off" : ""}"><span>${live.value && !live.error ? "live" : live.error ? "no data" : "connecting"}</span></span>
      <button class="finder" onClick=${() => find(true)}><span>Find</span><kbd>Ctrl K</kbd></button></header>
    <div class="banners"><${Lost} live=${live}/><${Clock} clock=${value.clock} role=${value.role}/></div>
    <main ref=${main} id="main" tabindex="-1">${page(address, live)}</main><${Toasts}/>
    ${finding && html`<${Palette} live=${live} address=${address} pages=${PAGES} onEnd=${() => find(false)}/>`}`;
}

render(html`<${App}/>`, document.getElementById("app"));
