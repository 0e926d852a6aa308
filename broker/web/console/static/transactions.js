// Coordinators of transactions, and the transactions that are open for long.
import { Acts } from "./act.js";
import { useGet } from "./api.js";
import { html, useState } from "./html.js";
import { instant, number, span, Table, Trouble } from "./parts.js";

export function Transactions({ role }) {
  const [changed, change] = useState(0);
  const coordinators = useGet("/admin/v3/transactions/coordinatorStats", [changed]);
  const slow = useGet("/admin/v3/transactions/slowTransactions/0", [changed]);
  const rows = Object.entries(coordinators.value || {}), open = Object.values(slow.value || {});
  const idOf = (t) => (t.txnId.match(/\d+/g) || []);
  return html`<div class="head"><h2>Transactions</h2><span class="grow"></span><button onClick=${() => change(changed + 1)}>Look again</button></div>
    ${coordinators.error && coordinators.error.status === 404
      ? html`<p class="note card">No coordinator: no client has begun a transaction yet, or transactionCoordinatorEnabled is off.</p>` : html`<${Trouble} error=${coordinators.error}/>`}
    ${coordinators.value && html`<section class="card flush"><h3>Coordinators</h3><${Table} label="Coordinators" rows=${rows}
      empty="No coordinator: transactions are off (transactionCoordinatorEnabled)." columns=${[["Coordinator", ([id]) => id],
        ["State", ([, c]) => c.state], ["Lowest open id", ([, c]) => c.lowWaterMark ?? "–", true],
        ["Next id", ([, c]) => number(c.leastSigBits), true]]}/></section>
    <section class="card flush"><h3>Open transactions</h3><${Trouble} error=${slow.error}/><${Table} label="Open transactions" rows=${open}
      empty="No transaction is open." columns=${[["Transaction", (t) => t.txnId], ["State", (t) => t.status],
        ["Opened", (t) => instant(t.openTimestamp)], ["Timeout", (t) => span(t.timeoutAt)],
        ["Topics", (t) => Object.keys(t.producedPartitions || {}).concat(Object.keys(t.ackedPartitions || {})).join(", ")],
        ["Acts", (t) => html`<${Acts} on="transaction" given=${{ most: idOf(t)[0], least: idOf(t)[1] }} role=${role}/>`]]}/></section>`}`;
}
