"""The page at /: one file that loads nothing else. It asks /pulsarium/topics every two seconds."""

from __future__ import annotations

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Pulsarium</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
%3Ccircle cx='8' cy='8' r='3' fill='%232f7ff0'/%3E%3Ccircle cx='8' cy='8' r='6.5' fill='none' stroke='%232f7ff0'/%3E\
%3C/svg%3E">
<style>
:root { --back: #f6f7f9; --card: #fff; --line: #e2e5ea; --text: #1b1f24; --soft: #667080; --blue: #1f6fe0;
  --warn: #b15c00; --good: #1a7f43 }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171b; --card: #1d2126; --line: #30363d; --text: #e4e8ee; --soft: #97a1af; --blue: #6aa8ff;
    --warn: #f0a64a; --good: #5cc98a }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 1rem }
header { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: baseline }
h1 { font-size: 1.35rem; margin: 0; color: var(--blue) }
header p { margin: 0; color: var(--soft); overflow-wrap: anywhere }
form { margin: 1rem 0 }
input { width: 100%; padding: .5rem .7rem; font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: .5rem }
article { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem;
  margin: 0 0 .8rem }
h2 { font-size: 1rem; margin: 0; overflow-wrap: anywhere }
h2 small { color: var(--soft); font-weight: normal }
ul { list-style: none; margin: .2rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.2rem;
  color: var(--soft) }
li b { color: var(--text); font-variant-numeric: tabular-nums }
section { border-top: 1px solid var(--line); margin-top: .6rem; padding-top: .6rem }
h3 { font-size: .95rem; margin: 0; overflow-wrap: anywhere }
h3 small { color: var(--soft); font-weight: normal }
.why { margin: .2rem 0 0 } .waits { color: var(--warn) } .fine { color: var(--good) }
.note { color: var(--soft); text-align: center; padding: 2rem 0 } .lost { color: var(--warn) }
.rest { overflow-wrap: anywhere }
</style>
</head>
<body>
<main>
<header><h1>Pulsarium</h1><p id="about">connecting&hellip;</p></header>
<form role="search"><input id="filter" type="search" placeholder="Filter topics" aria-label="Filter topics"></form>
<div id="silent"></div>
<div id="topics"></div>
<noscript><p class="note">This page shows <a href="pulsarium/topics">pulsarium/topics</a>; it needs JavaScript.</p>
</noscript>
</main>
<script>
"use strict";
const CAUGHT_UP = "everything was delivered";
const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const rate = (n) => (n >= 10 ? Math.round(n) : Math.round(n * 10) / 10) + "/s";
function size(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++ }
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}
function time(s) {
  const d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  return d ? d + " d " + h + " h" : h ? h + " h " + m + " min" : m ? m + " min" : s + " s";
}
const many = (n, what) => number.format(n) + " " + what + (n === 1 ? "" : "s");
function make(tag, text, ...more) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...more);
  return made;
}
function facts(pairs) {
  return make("ul", "", ...pairs.map(([value, name]) => make("li", "", make("b", value), " " + name)));
}
const clients = (list) => list.map((c) => (c.name || "(no name)") + " " + c.address).join(", ");
function subscription(s) {
  const kind = s.type === "None" ? "no consumer yet" : s.type;
  const box = make("section", "", make("h3", s.name + " ", make("small", kind + (s.durable ? "" : ", not durable"))));
  const pairs = [];
  if (s.backlog !== null) pairs.push([number.format(s.backlog), "backlog"]);
  pairs.push([number.format(s.consumers.length), s.consumers.length === 1 ? "consumer" : "consumers"],
    [number.format(s.messagesOut), "delivered"], [rate(s.rateOut), "out"]);
  if (s.unacked) pairs.push([number.format(s.unacked), "unacknowledged"]);
  const list = facts(pairs);
  if (s.consumers.length) list.title = clients(s.consumers);
  box.append(list);
  if (s.reason && (s.backlog || s.reason !== CAUGHT_UP)) {
    const caughtUp = s.reason === CAUGHT_UP;
    const why = make("p", caughtUp ? "Everything was delivered; acknowledgements are awaited." :
      s.backlog ? "Waits: " + s.reason + "." : "");
    why.className = "why " + (caughtUp ? "fine" : "waits");
    if (why.textContent) box.append(why);
  }
  return box;
}
function range(s) {  // of a segment, in percent of all hashes
  return Math.round(s.start / 655.36) + "\u2013" + Math.round((s.end + 1) / 655.36) + " %";
}
function segment(s) {
  const state = s.active ? "active" : "sealed";
  const box = make("section", "", make("h3", "segment " + s.id + " ", make("small", state + ", " + range(s))));
  if (!s.loaded) { box.append(facts([["not loaded:", "not used since the broker started"]])); return box }
  const list = facts([[number.format(s.producers.length), s.producers.length === 1 ? "producer" : "producers"],
    [number.format(s.messagesIn), "published"], [rate(s.rateIn), "in"], [size(s.storageSize), "stored"]]);
  if (s.producers.length) list.title = clients(s.producers);
  box.append(list, ...s.subscriptions.map(subscription));
  return box;
}
function scalable(t) {
  const active = t.segments.filter((s) => s.active).length, sealed = t.segments.length - active;
  const box = make("article", "", make("h2", t.name.slice(t.name.indexOf("://") + 3) + " ", make("small", "scalable")));
  const why = make("p", "Scaling: " + t.scaling + ".");
  why.className = "why";
  const pairs = [[number.format(active), "active segments"], [number.format(sealed), "sealed"], [t.epoch, "epoch"]];
  box.append(facts(pairs), why, ...t.segments.map(segment));
  return box;
}
function topic(t) {
  if (t.segments) return scalable(t);
  const at = t.name.indexOf("://"), domain = t.name.slice(0, at), name = t.name.slice(at + 3);
  const box = make("article", "", make("h2", name + " ", make("small", domain === "persistent" ? "" : domain)));
  if (!t.loaded) { box.append(facts([["not loaded:", "not used since the broker started"]])); return box }
  const pairs = [[number.format(t.producers.length), t.producers.length === 1 ? "producer" : "producers"],
    [number.format(t.messagesIn), "published"], [rate(t.rateIn), "in"]];
  if (t.storageSize !== null) pairs.push([size(t.storageSize), "stored"]);
  const list = facts(pairs);
  if (t.producers.length) list.title = clients(t.producers);
  box.append(list, ...t.subscriptions.map(subscription));
  return box;
}
let told = "";
function showWithoutEffect(facts) {
  if (JSON.stringify(facts) === told) return;
  told = JSON.stringify(facts);
  const rows = facts.map((f) => make("li", "", make("b", f.what), " of " + f.where + ": " + f.why));
  const box = make("article", "", make("h2", "Settings without an effect in Pulsarium"), make("ul", "", ...rows));
  $("silent").replaceChildren(...(facts.length ? [box] : []));
}
let shown = "", counted = new Map(), countedAt = 0;
function addRates(topics) {  // between two answers; the broker's own rates are of whole minutes
  const now = performance.now(), seconds = (now - countedAt) / 1000, counts = new Map();
  const since = (key, count) => {
    counts.set(key, count);
    return counted.has(key) && count > counted.get(key) ? (count - counted.get(key)) / seconds : 0;
  };
  for (const t of topics.flatMap((each) => each.segments || [each])) {
    t.rateIn = since(t.name, t.messagesIn);
    for (const s of t.subscriptions) s.rateOut = since(t.name + "\\n" + s.name, s.messagesOut);
  }
  counted = counts;
  countedAt = now;
}
async function refresh() {
  try {
    const answer = await fetch("pulsarium/topics?filter=" + encodeURIComponent($("filter").value));
    const text = await answer.text();
    if (!answer.ok) throw new Error(answer.status === 401 || answer.status === 403 ?
      "The broker requires authentication (" + answer.status + "): send credentials, or use `pulsarium admin`." :
      "The broker answers " + answer.status + ".");
    const all = JSON.parse(text);
    $("about").className = "";
    $("about").textContent = [all.serviceUrl, "version " + all.version, "profile " + all.profile,
      many(all.topicCount, "topic"), many(all.connections, "connection"), "up " + time(all.uptimeSeconds)].join(" · ");
    showWithoutEffect(all.withoutEffect);
    addRates(all.topics);
    const topics = JSON.stringify(all.topics) + all.topicCount;
    if (topics === shown) return;
    shown = topics;
    const boxes = all.topics.map(topic);
    const more = all.topicCount - all.topics.length;
    if (more) boxes.push(make("p", "and " + many(more, "more topic") + "; use the filter to see them"));
    if (!all.topics.length) boxes.push(make("p", $("filter").value ? "No topic's name contains this text." :
      "No topics yet. Produce to " + all.serviceUrl + " and they appear here."));
    for (const box of boxes) if (box.tagName === "P") box.className = "note";
    $("topics").replaceChildren(...boxes);
  } catch (error) {
    $("about").className = "lost";
    $("about").textContent = error instanceof TypeError ? "The broker does not answer." : error.message;
  }
}
async function forever() {
  if (!document.hidden) await refresh();
  setTimeout(forever, 2000);
}
$("filter").addEventListener("input", refresh);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
forever();
</script>
</body>
</html>
"""
