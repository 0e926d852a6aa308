"""Find topics, subscriptions, namespaces and clients by a part of their name, for Ctrl-K of the console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pulsarium.broker.cluster import Broker
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.listing import Listing
from pulsarium.broker.web.console.watch import watch_of
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply

MOST: Final = 8  # of each kind

Json = dict[str, Any]


@route("GET", "/pulsarium/find")
async def find(call: Call) -> HttpReply:
    """Return what has ?text= in its name: topics, subscriptions, namespaces and clients, at most 8 of each."""
    broker, text, slice_ = call.broker, call.query.get("text", "").lower(), Slice()
    listing = watch_of(broker).listing
    kinds = {
        "topics": ((name, name) for name in await listing.rows(slice_)),
        "subscriptions": _subscriptions(broker, listing),
        "namespaces": ((name, name) for name in sorted(broker.metadata.namespaces)),
        "clients": _clients(broker),
    }
    found: Json = {}
    for kind, named in kinds.items():
        shown = found[kind] = list[Any]()
        for name, row in named:
            if text in name.lower():
                shown.append(row)
            if len(shown) == MOST:
                break
            await slice_.pause()
    return json_reply(found)


def _subscriptions(broker: Broker, listing: Listing) -> Iterator[tuple[str, Json]]:
    seen = set[tuple[str, str]]()
    for topic in list(broker.topics.loaded.values()):
        whole = listing.row_of(str(topic.name))
        for name in list(topic.subscriptions):
            if (whole, name) not in seen:
                seen.add((whole, name))
                yield name, {"topic": whole, "name": name}


def _clients(broker: Broker) -> Iterator[tuple[str, Json]]:
    for session in list(broker.sessions):
        client, address = session.client_version, str(session.address)
        yield f"{client} {address}", {"client": client, "address": address}
