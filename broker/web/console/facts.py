"""Facts about the broker and its cluster."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.config.proposals import PROPOSALS
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.model.policy.without_effect import REPLICATED, SETTING, WithoutEffect
from pulsarium.broker.net.slices import Slice

SHOWN: Final = 50  # settings without effect
LOOKED_AT: Final = 500  # loaded topics whose subscriptions are searched for settings without effect

Json = dict[str, Any]


async def facts_of(broker: Broker, slice_: Slice) -> Json:
    """Return what a broker is, and what it has noticed."""
    return {
        "version": VERSION,
        "profile": broker.profile.name,
        "proposals": [str(PROPOSALS[number]) for number in sorted(broker.profile.proposals)],
        "cluster": broker.config.clusterName,
        "serviceUrl": broker.assigned.service_url,
        "upSinceMs": broker.up_since_ms,
        "connections": len(broker.sessions),
        "namespaces": len(broker.metadata.namespaces),
        "withoutEffect": [
            {"where": where, "what": fact.name, "why": fact.why}
            for where, fact in await _without_effect(broker, slice_)
        ],
        "stalls": [stall._asdict() for stall in broker.turn.stalls.latest],
    }


async def _without_effect(broker: Broker, slice_: Slice) -> list[tuple[str, WithoutEffect]]:
    """Return the first settings that have no effect, with their places."""
    known = documented_keys()
    found = [
        *islice(broker.metadata.without_effect, SHOWN),
        *((name, SETTING) for name in broker.cluster.dynamic.values if name not in known),
    ]
    for topic in list(islice(broker.topics.loaded.values(), LOOKED_AT)):
        for each in list(topic.subscriptions.values()):
            if len(found) >= SHOWN:
                return found[:SHOWN]
            if each.replicated:
                found.append((f"{topic.name}/{each.name}", REPLICATED))
            await slice_.pause()
    return found[:SHOWN]
