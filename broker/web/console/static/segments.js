// The segments of a scalable topic: each below the segments that it was made from, over the range of hashes.
import { html } from "./html.js";
import { Facts, topicHref } from "./parts.js";

const WIDTH = 1100, HEIGHT = 46, BAR = 28, HASHES = 65536;

export function Segments({ value }) {
  const rows = new Map();
  const row = (s) => {
    if (!rows.has(s.id)) {
      const parents = s.parents.map((id) => value.segments.find((each) => each.id === id)).filter(Boolean);
      rows.set(s.id, parents.length ? 1 + Math.max(...parents.map(row)) : 0);
    }
    return rows.get(s.id);
  };
  value.segments.forEach(row);
  const active = value.segments.filter((s) => s.active).length, height = (Math.max(0, ...rows.values()) + 1) * HEIGHT;
  const x = (hash) => (hash / HASHES) * WIDTH, middle = (s) => (x(s.start) + x(s.end + 1)) / 2;
  const byId = new Map(value.segments.map((s) => [s.id, s]));
  return html`<section class="card"><h3>Segments</h3>
    <${Facts} of=${[[active, "active"], [value.segments.length - active, "sealed"], [value.epoch, "epoch"]]}/>
    <p class="why">Scaling: ${value.scaling}.</p>
    <svg class="drawn" viewBox="0 0 ${WIDTH} ${height}" role="group" aria-label="Segments by the range of their hashes, children below parents">
      ${value.segments.flatMap((s) => s.parents.filter((id) => byId.has(id)).map((id) => html`<path class="link"
        d="M ${middle(byId.get(id))} ${rows.get(id) * HEIGHT + BAR} L ${middle(s)} ${rows.get(s.id) * HEIGHT}"/>`))}
      ${value.segments.map((s) => html`<a href=${topicHref(s.name)} aria-label="segment ${s.id}, ${s.active ? "active" : "sealed"}, hashes ${s.start} to ${s.end}">
        <rect class=${s.active ? "active" : "ledger"} x=${x(s.start) + 1} y=${rows.get(s.id) * HEIGHT} width=${Math.max(2, x(s.end + 1) - x(s.start) - 2)} height=${BAR} rx="4"/>
        <text class=${s.active ? "on" : ""} x=${middle(s)} y=${rows.get(s.id) * HEIGHT + 18} text-anchor="middle">${s.id}</text></a>`)}</svg></section>`;
}
