"""Facts from stats that somebody copied from `topics stats` and `topics stats-internal`, of any release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pulsarium.rest.why.facts import Facts, Json

UNNAMED: Final = "TOPIC"  # stands for the topic in suggested commands


class NotPasted(ValueError):
    """A document that has no stats. The text says what to paste instead."""


def pasted(documents: Iterable[Any], topic: str = "", subscription: str | None = None) -> list[Facts]:
    """Return the facts of stats and internal stats, of a topic or of its partitions, in any order.

    Raise `NotPasted` for a document that is neither, and where no document has stats.
    """
    stats, internal = dict[str, Json](), dict[str, Json]()
    for each in documents:
        for name, document in _by_topic(each, topic or UNNAMED).items():
            (stats if "subscriptions" in document else internal)[name] = document
    if not stats:
        raise NotPasted("internal stats alone do not tell who waits; add the output of `topics stats`")
    known = [Facts(name, "", each, internal=internal.get(name, {})) for name, each in stats.items()]
    return [found for each in known for found in each.by_subscription(subscription)]


def _by_topic(document: Any, topic: str) -> dict[str, Json]:
    """Return stats or internal stats by topic: one, or one for each partition."""
    if not isinstance(document, Mapping):
        raise NotPasted("it is no JSON object; paste the output of `topics stats` or `topics stats-internal`")
    partitions = document.get("partitions")
    if isinstance(partitions, Mapping) and partitions:
        return {name: each for name, of_one in partitions.items() for each in _by_topic(of_one, name).values()}
    if "subscriptions" in document or "cursors" in document:
        return {topic: document}
    raise NotPasted("it has no subscriptions and no cursors; paste the output of `topics stats`, or `stats-internal`")
