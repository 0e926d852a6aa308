// The ledgers of a topic as a line of entries, and below it the position of each cursor.
import { useGet } from "./api.js";
import { html } from "./html.js";
import { Facts, many, number, restPath, size, Table, Trouble } from "./parts.js";

const WIDTH = 1100, LEFT = 0, BAR = 20, ROW = 44, MOST_RANGES = 500;

// `individuallyDeletedMessages` is "[(3:1..3:4],(3:6..3:9]]": ranges that are open below and closed above.
function rangesOf(text) {
  return [...text.matchAll(/\((\d+):(-?\d+)\.\.(\d+):(-?\d+)\]/g)].slice(0, MOST_RANGES)
    .map(([, l1, e1, l2, e2]) => [[+l1, +e1 + 1], [+l2, +e2 + 1]]);
}

function batchesOf(topic, cursor) {
  const found = (topic.subscriptions || []).find((s) => s.name === cursor);
  return (found && found.batches) || [];
}

export function Storage({ name, topic }) {
  const path = `/admin/v2/${restPath(name)}/internalStats`;
  const changes = (topic.subscriptions || []).map((s) => s.markDelete + s.readPosition + s.unacked).join() + topic.lastConfirmed;
  const { value, error } = useGet(path, [changes]);
  if (!value) return html`<${Trouble} error=${error}/>`;
  if (!value.ledgers) return html`<p class="note">A non-persistent topic stores nothing.</p>`;
  let before = 0;
  const starts = new Map(), ledgers = value.ledgers.map((ledger, i) => {
    const open = i === value.ledgers.length - 1 && !ledger.entries;
    const count = open ? value.currentLedgerEntries : ledger.entries;
    starts.set(ledger.ledgerId, before);
    const made = { ...ledger, count, start: before, size: open ? value.currentLedgerSize : ledger.size, open };
    before += count;
    return made;
  });
  const total = Math.max(1, before), x = (entries) => LEFT + (Math.min(entries, total) / total) * WIDTH;
  const at = ([ledger, entry]) => (starts.has(ledger) ? starts.get(ledger) + entry : ledger < ledgers[0].ledgerId ? 0 : total);
  const parsed = (text) => text.split(":").map(Number);
  const decoded = (name) => decodeURIComponent(name.replaceAll("+", " ")); // Java's URLEncoder made it
  const cursors = Object.entries(value.cursors).filter(([, c]) => c.markDeletePosition).map(([name, c]) => [decoded(name), c]);
  const height = 40 + cursors.length * ROW;
  return html`<section class="card"><${Facts} of=${[[number(value.numberOfEntries), "entries"], [size(value.totalSize), "stored"],
      [value.lastConfirmedEntry, "last confirmed"], [value.state, ""]]}/>
    <p class="small soft"><b class="key-acked">■</b> before the mark-delete position, <b class="key-ranges">■</b> individually acknowledged (thin: a part of a batch),
      <b class="key-left">■</b> not acknowledged, │ read position</p>
    <svg class="drawn" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Ledgers and cursors of the topic">
      ${ledgers.map((l) => html`<g><rect class="ledger" x=${x(l.start)} y="0" width=${Math.max(2, x(l.start + l.count) - x(l.start))} height=${BAR}/>
        <text x=${x(l.start) + 4} y="14">${l.ledgerId}</text></g>`)}
      ${cursors.map(([cursor, c], i) => {
        const y = 34 + i * ROW, [ml, me] = parsed(c.markDeletePosition), mark = at([ml, me + 1]), read = at(parsed(c.readPosition));
        return html`<g><text x="2" y=${y + 10}>${cursor.slice(0, 60)}</text>
          <rect class="left" x="0" y=${y + 14} width=${WIDTH} height="12"/><rect class="acked" x="0" y=${y + 14} width=${x(mark)} height="12"/>
          ${rangesOf(c.individuallyDeletedMessages || "").map(([from, to]) => html`<rect class="ranges" x=${x(at(from))} y=${y + 14}
            width=${Math.max(1, x(at(to)) - x(at(from)))} height="12"/>`)}
          ${(batchesOf(topic, cursor)).map((b) => html`<rect class="part" x=${x(at(parsed(b.id)))} y=${y + 17}
            width=${Math.max(2, x(1))} height="6"/>`)}
          <path class="link" d="M ${x(read)} ${y + 10} V ${y + 30}"/></g>`;
      })}</svg></section>
    <section class="card flush"><h3>Cursors</h3><${Table} label="Cursors" rows=${cursors} columns=${[["Cursor", ([name]) => name],
      ["Mark-delete position", ([, c]) => c.markDeletePosition], ["Read position", ([, c]) => c.readPosition],
      ["Individually acknowledged", ([, c]) => html`${many(c.totalNonContiguousDeletedMessagesRange, "range")} <code class="small">${(c.individuallyDeletedMessages || "").slice(0, 300)}</code>`],
      ["Partly acknowledged batches", ([name]) => batchesOf(topic, name).map((b) => html`<div><b>${b.id}</b> ${many(b.left, "message")} left</div>`)], ["Saved in", ([, c]) => (c.cursorLedger > 0 ? `ledger ${c.cursorLedger}` : "metadata")]]}/>
    </section><section class="card flush"><h3>Ledgers</h3><${Table} label="Ledgers" rows=${ledgers} columns=${[["Ledger", (l) => l.ledgerId], ["Entries", (l) => number(l.count), true],
      ["Size", (l) => size(l.size), true], ["State", (l) => (l.open ? "open" : "closed")]]}/></section>
    <div class="small soft">pulsarium admin topics stats-internal ${name} · GET ${path}</div>`;
}
