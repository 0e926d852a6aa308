"""The counters of a subscription, in the terms in which a dispatcher decides."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from pulsarium.proto.topic_name import url_encoded
from pulsarium.rest.why.facts import Facts, Json

QUIET_MS: Final = 10_000  # a subscription that delivered or acknowledged something later than this ago moves on
ONE_READS: Final = ("Exclusive", "Failover")
KEY_SHARED: Final = "Key_Shared"

Position: TypeAlias = tuple[int, int]


class KeyRange(NamedTuple):
    """Hashes from `first` to `last`, both included."""

    first: int
    last: int


class State:
    """The state of a subscription, as far as the facts tell. Counters that a release does not have count as 0."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.topic: Json = facts.stats
        self.stats: Json = facts.of_subscription
        self.consumers: list[Json] = self.stats.get("consumers") or []

    @property
    def type(self) -> str:
        """Return the type of the subscription, or ""."""
        return str(self.stats.get("type", ""))

    @property
    def backlog(self) -> int:
        """Return the entries that are not acknowledged."""
        return self.count("msgBacklog")

    @property
    def unacked(self) -> int:
        """Return the messages that consumers have and did not acknowledge. Where one reads, the entries, if known."""
        if self.type in ONE_READS and self.consumers:
            return 0 if self.unread is None else max(0, self.backlog - self.unread)
        return max(self.count("unackedMessages"), sum(number(each, "unackedMessages") for each in self.consumers))

    @property
    def sent(self) -> int:
        """Return how many messages the connected consumers were sent."""
        return sum(number(each, "msgOutCounter") for each in self.consumers)

    def count(self, name: str) -> int:
        """Return a counter of the subscription."""
        return number(self.stats, name)

    def rate(self, name: str) -> float:
        """Return a rate of the subscription."""
        return rate_of(self.stats, name)

    @property
    def holds_back(self) -> bool:
        """Return whether the dispatcher has entries that it read and sends later."""
        return bool(self.count("msgDelayed") or self.count("msgInReplay"))

    # ---- consumers

    @cached_property
    def served(self) -> list[Json]:
        """Return the consumers that the dispatcher chooses from: one where only one is active."""
        if self.type not in ONE_READS:
            return self.consumers
        active = self.stats.get("activeConsumerName")
        return [each for each in self.consumers if each.get("consumerName") == active] or self.consumers[:1]

    @property
    def owing(self) -> list[Json]:
        """Return the consumers at their limit of unacknowledged messages."""
        return [each for each in self.served if each.get("blockedConsumerOnUnackedMsgs")]

    @property
    def without_permits(self) -> list[Json]:
        """Return the consumers that asked for no more messages."""
        return [each for each in self.served if number(each, "availablePermits") <= 0]

    @property
    def able(self) -> list[Json]:
        """Return the consumers that have permits and are at no limit."""
        return [each for each in self.served if each not in self.owing and each not in self.without_permits]

    # ---- positions

    @cached_property
    def cursor(self) -> Json:
        """Return the cursor in the internal stats, or {}."""
        return (self.facts.internal.get("cursors") or {}).get(url_encoded(self.facts.subscription)) or {}

    @cached_property
    def unread(self) -> int | None:
        """Return how many entries the dispatcher has not read yet, or None without internal stats."""
        read, last = position(self.cursor.get("readPosition")), position(self.facts.internal.get("lastConfirmedEntry"))
        if read is None or last is None:
            return None
        closed = sum(
            max(0, number(each, "entries") - (read[1] if each.get("ledgerId") == read[0] else 0))
            for each in self.facts.internal.get("ledgers") or []
            if read[0] <= number(each, "ledgerId") < last[0]
        )
        here = last[1] + 1 - (read[1] if read[0] == last[0] else 0)
        return closed + max(0, here) if read[0] <= last[0] else 0

    @property
    def waits_to_be_sent(self) -> bool:
        """Return whether some message of the backlog is with no consumer, as far as the counters tell."""
        if self.unread is None:
            return self.backlog > self.unacked
        return self.unread > 0 or self.count("msgInReplay") > 0 or (self.backlog > 0 and not self.unacked)

    # ---- movement

    @cached_property
    def quiet_ms(self) -> int | None:
        """Return how long nothing was delivered or acknowledged, or None where the facts do not say."""
        if self.facts.now_ms is None:
            return None
        names = ("lastConsumedTimestamp", "lastAckedTimestamp")
        return self.facts.now_ms - max(number(each, name) for each in (self.stats, *self.consumers) for name in names)

    @property
    def quiet(self) -> bool:
        """Return whether the subscription stands still. A healthy one has short moments without permits."""
        if self.quiet_ms is not None:
            return self.quiet_ms >= QUIET_MS
        return not self.stats.get("msgRateOut") and not self.stats.get("messageAckRate")

    @property
    def without_progress(self) -> bool:
        """Return whether nothing was acknowledged lately, and the rates of a whole period are 0.

        A dispatcher that reads and may send nothing counts as delivery in `lastConsumedTimestamp`.
        """
        acked = max(number(each, "lastAckedTimestamp") for each in (self.stats, *self.consumers))
        still = not self.stats.get("msgRateOut") and not self.stats.get("messageAckRate")
        return still and (self.facts.now_ms is None or self.facts.now_ms - acked >= QUIET_MS)

    @property
    def mark_delete_stands(self) -> bool:
        """Return whether the mark-delete position did not move lately."""
        moved = self.count("lastMarkDeleteAdvancedTimestamp")
        if self.facts.now_ms is None or not moved:
            return not self.stats.get("messageAckRate")
        return self.facts.now_ms - moved >= QUIET_MS

    # ---- keys

    @property
    def gaps(self) -> list[KeyRange]:
        """Return the ranges of hashes that no consumer has."""
        found, free = list[KeyRange](), 0
        for first, last in sorted(each for consumer in self.consumers for each in _ranges(consumer)):
            if first > free:
                found.append(KeyRange(free, first - 1))
            free = max(free, last + 1)
        return [*found, KeyRange(free, 0xFFFF)] if free <= 0xFFFF else found

    # ---- transactions

    @property
    def max_read(self) -> Position | None:
        """Return the position up to which the open transactions let consumers read."""
        return position((self.facts.transactions.get("buffer") or {}).get("maxReadPosition"))


def _ranges(consumer: Json) -> list[KeyRange]:
    arrays = consumer.get("keyHashRangeArrays")
    if arrays:
        return [KeyRange(*each) for each in arrays]
    return [KeyRange(*map(int, each.strip("[] ").split(","))) for each in consumer.get("keyHashRanges") or []]


def number(values: Mapping[str, Any], name: str) -> int:
    """Return a counter, or 0 where the release has none."""
    return int(values.get(name) or 0)


def rate_of(values: Mapping[str, Any], name: str) -> float:
    """Return a rate, or 0 where the release has none."""
    return float(values.get(name) or 0)


def position(text: object) -> Position | None:
    """Return the numbers of `ledger:entry`, or None."""
    ledger, colon, entry = str(text).partition(":")
    try:
        return (int(ledger), int(entry)) if colon else None
    except ValueError:
        return None
