"""Count the ids to be skipped that a topic has: the broker takes any id, and says nothing of unknown ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.errors import ServerError
from pulsarium.rest.message_ids import Place

if TYPE_CHECKING:
    from pulsarium.rest.stats import TopicInternalStats

NAMED = 5  # of the ids that are not there

Entries = dict[int, int]  # how many there are in each ledger


async def entries_of(api: Api, topic: str) -> Entries | None:
    """The ledgers of a topic, or of all its partitions. None: the broker does not say."""
    try:
        found = [await api.topics.get_internal_stats(topic)]
    except ServerError:
        try:
            parts = await api.topics.get_partitioned_internal_stats(topic)
        except ServerError:
            return None
        found = list((parts or {}).get("partitions", {}).values())
    ledgers: Entries = {}
    for stats in found:
        if stats:
            ledgers.update(_entries(stats))
    return ledgers or None


def _entries(stats: TopicInternalStats) -> Entries:
    ledgers = {ledger["ledgerId"]: ledger["entries"] for ledger in stats.get("ledgers", ())}
    if ledgers:  # the last one is written to, and counted apart
        last = max(ledgers)
        ledgers[last] = max(ledgers[last], stats.get("currentLedgerEntries", 0))
    return ledgers


def note(topic: str, ids: Sequence[Place], entries: Entries) -> str:
    """Return the note about these ids."""
    missing = [each for each in ids if not 0 <= each.entry_id < entries.get(each.ledger_id, 0)]
    names = ", ".join(f"{each.ledger_id}:{each.entry_id}" for each in missing[:NAMED])
    if len(missing) > NAMED:
        names += f" and {len(missing) - NAMED} more"
    told = f"In the topic's ledgers: {len(ids) - len(missing)} of {len(ids)} message ids"
    if missing:
        told += f"; not there: {names}"
    if len(missing) < len(ids):
        return told
    return f"Warning: nothing is skipped. {told}; see pulsarium admin topics stats-internal {topic}"
