"""The first page of a proxy in front of a broker that has no console: the lab of the proxy, and what is elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Final

from pulsarium.broker.config.listeners import Listener
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.arguments import ADDED_BY
from pulsarium.broker.lab.connections import Connection
from pulsarium.broker.lab.masks import mask_to_json
from pulsarium.broker.web.http.reply import HttpReply

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-store",
    "Refresh": "5",
}
MOST_ROWS: Final = 500  # of a table: a proxy may have many thousand clients
NONE: Final = "None. Add one: <code>{}</code>"
_ASKS: Final = (
    "<p>The lab of this proxy asks for a role, so this page does not show it: <code>pulsarium fault list --token "
    "TOKEN</code>, and the same with <code>mask</code> and <code>capture</code>.</p>"
)
_STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884;overflow-wrap:anywhere}"
)
_FITS: Final = '<meta name="viewport" content="width=device-width">'
_ELSEWHERE: Final = (
    "The console's pages of topics, messages and subscriptions need the state of a broker: only a broker of Pulsarium "
    "has them. Of this broker, <code>pulsarium admin topics stats TOPIC</code> shows the numbers, <code>pulsarium why "
    "TOPIC</code> explains what is stuck, and <code>pulsarium client read TOPIC -m earliest</code> reads messages."
)


def page_of_proxy(lab: Lab | None, broker: str, urls: Listener, brokers: Iterable[tuple[str, str]]) -> HttpReply:
    """Return the page of a proxy in front of the broker at a URL. `urls` are those of the proxy.

    `brokers` are those that clients were led to, each with what keeps clients from it or is unexpected. Without `lab`,
    the page shows neither brokers nor the lab, because callers must prove a role.
    """
    for_clients, for_commands = (
        " or ".join(f"<code>{escape(url)}</code>" for url in each if url)
        for each in ((urls.pulsar, urls.pulsar_ssl), (urls.http, urls.https))
    )
    tables = (_ASKS,) if lab is None else _tables(lab, brokers)
    parts = (
        f"<h1>Pulsarium proxy in front of {escape(broker)}</h1>",
        f"<p>Clients connect to {for_clients}. Commands find it with <code>--admin-url</code> {for_commands}.</p>",
        *tables,
        f"<h2>Elsewhere</h2><p>{_ELSEWHERE}</p>",
    )
    title = f"<title>Pulsarium proxy</title><style>{_STYLE}</style>"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8">{_FITS}{title}'
    return HttpReply(200, f"{head}<body>{''.join(parts)}</body></html>".encode(), "text/html;charset=utf-8", HEADERS)


def _tables(lab: Lab, brokers: Iterable[tuple[str, str]]) -> Sequence[str]:
    return (
        *_table(
            "Connections",
            ("client", "version", "producers", "consumers", "faults", "findings"),
            map(_cells, lab.taps.connections.all()),
            "No client is connected.",
        ),
        *_table("Brokers", ("broker", "to know"), brokers, "None."),
        *_table(
            "Faults",
            ("id", "what it does", "hits"),
            ((rule.id, rule.words, rule.hits) for rule in lab.faults.rules),
            NONE.format(ADDED_BY["faults"]),
        ),
        *_table(
            "Masks",
            ("id", "mask"),
            ((worn.id, json.dumps(mask_to_json(worn))) for worn in lab.masks.worn),
            NONE.format(ADDED_BY["masks"]),
        ),
        *_table(
            "Captures",
            ("id", "file", "frames", "state"),
            (
                (each.id, each.path or "in memory", each.frames, "running" if each.running else "ended")
                for each in lab.captures.all
            ),
            NONE.format(ADDED_BY["captures"]),
        ),
        *_table(
            "Mistakes of clients",
            ("rule", "times"),
            lab.linter.counts.items(),
            "None was found."
            if lab.linter.running
            else "The linter does not run. Start it: <code>pulsarium lint --live --start</code>",
        ),
    )


def _cells(client: Connection) -> Sequence[object]:
    opened = len(client.producers), len(client.consumers)
    return client.address, client.client_version, *opened, client.fault_hits, client.findings


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], without: str) -> Iterable[str]:
    """Yield a table, or the text `without` when there are no rows. All cells are escaped."""
    yield f"<h2>{title}</h2>"
    left = iter(rows)
    cells = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in islice(left, MOST_ROWS)]
    if not cells:
        yield f"<p>{without}</p>"
        return
    yield f"<table><tr>{''.join(f'<th>{each}</th>' for each in columns)}</tr>"
    yield "".join(f"<tr>{row}</tr>" for row in cells)
    yield "</table>"
    if next(left, None) is not None:
        yield f"<p>Only the first {MOST_ROWS} are shown.</p>"
