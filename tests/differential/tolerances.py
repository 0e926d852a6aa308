"""What may differ, each by name and with the words of docs/differences.md that give the reason."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

Facts = list[str]
READER = "n"
"""What programs call the subscriptions of readers."""


@dataclass(frozen=True)
class Tolerance:
    """`without` takes away from what one broker said on one stream what may differ.

    `words` stand in docs/differences.md.
    """

    name: str
    words: str
    without: Callable[[Facts], Facts]


def masked(pattern: str, by: str = "...") -> Callable[[Facts], Facts]:
    found = re.compile(pattern)
    return lambda facts: [found.sub(by, fact) for fact in facts]


_NUMBERED = re.compile(r"/\d+(?=[/ ])")


def _unordered_list(facts: Facts) -> Facts:
    """Values of a REST answer, those of a list in any order."""
    if not facts or not facts[0].startswith("status "):
        return facts
    return sorted(_NUMBERED.sub("/*", fact) for fact in facts)


def _unordered_closes(facts: Facts) -> Facts:
    """CLOSE_PRODUCER and CLOSE_CONSUMER, sorted where several come together, with what pending ones are told."""
    together = itertools.groupby(facts, key=lambda fact: fact.startswith("CLOSE_") or "TopicFencedException" in fact)
    return [fact for closes, group in together for fact in (sorted(group) if closes else group)]


_ACTIVE = re.compile(r"(/subscriptions/[^/]+/)activeConsumerName (.*)")


def _without_stale_active(facts: Facts) -> Facts:
    """Without the active consumers that are not among the consumers."""

    def stale(fact: str) -> bool:
        found = _ACTIVE.fullmatch(fact)
        if found is None:
            return False
        there = re.compile(rf"{re.escape(found[1])}consumers/\d+/consumerName {re.escape(found[2])}")
        return not any(map(there.fullmatch, facts))

    return [fact for fact in facts if not stale(fact)]


TOLERANCES = (
    Tolerance(
        "highest sequence id of a receipt",
        "highest_sequence_id of a receipt, where the SEND has none",
        masked(r'"highest_sequence_id": (0|18446744073709551615)\b'),
    ),
    Tolerance("wording of REST errors", "REST: the wording of errors", masked(r"^/reason .*")),
    Tolerance(
        "cursor ledgers",
        "`NoLedger` until something is acknowledged",
        masked(r"^(/cursors/[^/]+/(cursorLedger|cursorLedgerLastEntry|state)) .*", r"\1 ..."),
    ),
    Tolerance(
        "address in a conflict of ranges",
        "the text ends in the connection as Netty shows it",
        masked(r"(Range conflict .*), address=.*}", r"\1}"),
    ),
    Tolerance(
        "read position after the earliest",
        "after a SEEK to the earliest it is entry -1",
        masked(r"^(/cursors/[^/]+/readPosition .+):-1$", r"\1:0"),
    ),
    Tolerance("ack set of a read position", "says that its ack set is null", masked(r" \(ackSet is null\)", "")),
    Tolerance(
        "activity of cursors",
        "whether the subscription has consumers",
        masked(r"^(/cursors/[^/]+/active) .*", r"\1 ..."),
    ),
    Tolerance(
        "reads that wait",
        "whether a read waits for entries right now",
        masked(r"^(/cursors/[^/]+/(subscriptionHavePendingRead|waitingReadOp)|/waitingCursorsCount) .*", r"\1 ..."),
    ),
    Tolerance(
        "count in a property", "REST: the property `index` of a topic", masked(r"^(/properties/index) .*", r"\1 ...")
    ),
    Tolerance("active consumer that left", "the one that left is still called active", _without_stale_active),
    Tolerance(
        "end of topic said again",
        "repeated with redundant acknowledgements and FLOWs",
        lambda facts: [fact for fact in facts if not fact.startswith("REACHED_END_OF_TOPIC")],
    ),
    Tolerance(
        "cursors of readers that sought",
        "of a reader that used SEEK is still shown",
        lambda facts: [fact for fact in facts if not fact.startswith(f"/cursors/{READER}/")],
    ),
    Tolerance("order of REST lists", "in the order of their creation", _unordered_list),
    Tolerance(
        "order in which clients are sent away",
        "CLOSE_PRODUCER and CLOSE_CONSUMER of one unload or deletion",
        _unordered_closes,
    ),
)


@dataclass(frozen=True)
class Moment:
    """An answer of the real broker, `pattern`, that is of the moment, as is what comes of it: a program ends there.

    `words` stand in docs/differences.md.
    """

    name: str
    words: str
    pattern: str


MOMENTS = (
    Moment(
        "a reader's subscription that is being closed",
        "SUBSCRIBE right after the last consumer of a reader's subscription left",
        r'^ERROR .*"ServiceNotReady", "message": "Subscription is fenced"',
    ),
)


def moment(real: Facts) -> str | None:
    """The name of the moment that these answers are of."""
    return next((each.name for each in MOMENTS for fact in real if re.search(each.pattern, fact)), None)


def needed(ours: Facts, real: Facts) -> list[str] | None:
    """The names of the tolerances that make both equal; None where they stay different."""
    names = []
    for tolerance in TOLERANCES:
        if ours == real:
            break
        less = tolerance.without(ours), tolerance.without(real)
        if less != (ours, real):
            names.append(tolerance.name)
            ours, real = less
    return names if ours == real else None
