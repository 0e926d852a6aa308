// The shell: the bar, the banner about the clock, and the page that the address names.
import { Acts } from "./act.js";
import { session, useLive } from "./api.js";
import { Lab } from "./lab.js";
import { Namespace, Namespaces } from "./namespaces.js";
import { Overview } from "./overview.js";
import { html, render, useEffect, useRef, useState } from "./preact.js";
import { followClock, hrefOf, instant, partsOf, span, topicHref } from "./parts.js";
import { Topic } from "./topic.js";
import { Topics } from "./topics.js";
import { Transactions } from "./transactions.js";

const THEME = "pulsarium.theme";
const PAGES = [["Overview", "#/"], ["Topics", "#/topics"], ["Namespaces", "#/namespaces"],
  ["Transactions", "#/transactions"], ["Lab", "#/lab"]];

// The address behind #: parts of a path, and a query. Any text may be in a part, so each is encoded.
function parsed() {
  const [path, query] = location.hash.slice(2).split("?");
  let parts = [];
  try { parts = path.split("/").filter(Boolean).map(decodeURIComponent); } catch { /* a broken address is the overview */ }
  return { parts, query: new URLSearchParams(query) };
}

// The stream of each page. Every value of a stream has the role and the clock, which the shell shows.
function streamOf({ parts: [page, ...rest], query }) {
  if (page === "topic" && rest.length > 3) return `pulsarium/topic/${rest.slice(0, 4).map(encodeURIComponent).join("/")}`;
  if (page === "lab") return "lab/live";
  const asked = new URLSearchParams({ filter: page === "topics" ? query.get("filter") || "" : "",
    offset: page === "topics" ? query.get("offset") || "0" : "0", limit: page === "topics" ? "100" : "0" });
  return `pulsarium/topics?${asked}`;
}

function page(address, live) {
  const [name, ...rest] = address.parts;
  if (name === "topics") return html`<${Topics} live=${live} query=${address.query}/>`;
  if (name === "topic" && rest.length > 3) {
    const [domain, tenant, namespace, local, tab] = rest;
    return html`<${Topic} live=${live} name=${`${domain}://${tenant}/${namespace}/${local}`} tab=${tab || "clients"}
      query=${address.query}/>`;
  }
  if (name === "namespaces") return html`<${Namespaces} role=${live.value && live.value.role}/>`;
  if (name === "namespace" && rest.length > 1) {
    return html`<${Namespace} name=${`${rest[0]}/${rest[1]}`} role=${live.value && live.value.role}/>`;
  }
  if (name === "transactions") return html`<${Transactions} role=${live.value && live.value.role}/>`;
  if (name === "lab") return html`<${Lab} live=${live}/>`;
  return html`<${Overview} live=${live}/>`;
}

function Clock({ clock, role }) {
  if (!clock) return null;
  const text = clock.frozen ? `The broker's clock is frozen at ${instant(clock.nowMs)}: nothing expires, and no delayed message comes.`
    : `The broker's clock is ${span(Math.abs(clock.aheadMs))} ${clock.aheadMs > 0 ? "ahead of" : "behind"} real time.`;
  return html`<div class="banner" role="status"><span>${text}</span>
    <${Acts} on="clock" given=${{}} role=${role} only=${clock.frozen ? ["resume", "reset-clock"] : ["reset-clock"]}/></div>`;
}

function SignIn({ role, onChange }) {
  const dialog = useRef(), [token, set] = useState("");
  const keep = (value) => { session.token = value; set(""); dialog.current.close(); onChange(); };
  return html`<button onClick=${() => dialog.current.showModal()}>${role ? `Role ${role}` : session.token ? "Signed in" : "Sign in"}</button>
    <dialog ref=${dialog} aria-labelledby="sign-in"><form class="form" onSubmit=${(e) => { e.preventDefault(); keep(token.trim()); }}>
      <h2 id="sign-in">Sign in</h2>
      <p class="soft">A broker with authentication needs a token. The token stays in this tab, and is sent as a header.</p>
      <label>Token<input type="password" autocomplete="off" value=${token} onInput=${(e) => set(e.target.value)}/></label>
      <div class="row"><button class="main">Use token</button>
        <button type="button" onClick=${() => keep("")}>Forget token</button>
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button></div></form></dialog>`;
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

// A role without rights on the whole broker has no list of topics, so it names one.
function GoTo() {
  const [name, set] = useState("");
  const go = (event) => {
    event.preventDefault();
    const short = name.includes("/") ? name : `public/default/${name}`;
    const full = short.includes("://") ? short : `persistent://${short}`;
    if (partsOf(full).local) location.hash = topicHref(full);
  };
  return html`<form onSubmit=${go} role="search" aria-label="Go to topic"><input type="search" aria-label="Go to topic" placeholder="Go to topic"
    value=${name} onInput=${(e) => set(e.target.value)}/></form>`;
}

function App() {
  const [address, go] = useState(parsed()), [, redraw] = useState(0), main = useRef();
  useEffect(() => {
    const moved = () => { go(parsed()); };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const live = useLive(streamOf(address));
  const here = address.parts[0] === "topic" ? "topics" : address.parts[0] === "namespace" ? "namespaces" : address.parts[0] || "";
  useEffect(() => {
    document.title = address.parts.length ? `${address.parts.slice(-1)[0]} · Pulsarium` : "Pulsarium";
    main.current.focus({ preventScroll: true });
  }, [address.parts.join("/")]);
  const value = live.value || {};
  followClock(value.clock);
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); main.current.focus(); }}>Skip to content</a>
    <header class="bar"><h1><a href="#/">Pulsarium</a></h1>
      <nav aria-label="Pages">${PAGES.map(([title, href]) => html`<a href=${href}
        aria-current=${href === hrefOf(here) || (href === "#/" && !here) ? "page" : null}>${title}</a>`)}</nav>
      <span class="grow"></span><${GoTo}/><${Theme}/>
      <${SignIn} role=${value.role} onChange=${() => redraw((n) => n + 1)}/></header>
    <${Clock} clock=${value.clock} role=${value.role}/>
    <main ref=${main} id="main" tabindex="-1">${page(address, live)}</main>`;
}

render(html`<${App}/>`, document.getElementById("app"));
