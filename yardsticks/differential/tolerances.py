"""Tolerated differences, by name, each with the words of docs/differences.md that give the reason."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

Facts = list[str]
Pardon = Callable[[Facts, Facts], Facts]
"""A function of our facts and the real broker's, which returns ours with the tolerated facts as in the real ones."""

READER = "n"
"""The subscription of readers that never use SEEK, in every program."""

AGAIN = " again"
"""Suffix of the fact of a REACHED_END_OF_TOPIC that its consumer has received before."""

SEEKER = "sought"
"""The subscription of readers that may use SEEK, in every program."""


@dataclass(frozen=True)
class Tolerance:
    """A tolerated difference. `pardon` takes the facts of one stream, and `words` stand in docs/differences.md."""

    name: str
    words: str
    pardon: Pardon


def either(ours: str, real: str) -> Pardon:
    """Pardon a fact of ours that matches `ours` where the real broker's matches `real`, with equal groups."""
    of_ours, of_real = re.compile(ours), re.compile(real)

    def same(mine: str, other: str) -> bool:
        found, there = of_ours.fullmatch(mine), of_real.fullmatch(other)
        return found is not None and there is not None and found.groups() == there.groups()

    def pardon(facts: Facts, others: Facts) -> Facts:
        if len(facts) != len(others):
            return facts
        return [other if same(mine, other) else mine for mine, other in zip(facts, others, strict=True)]

    return pardon


def wording(facts: Facts, others: Facts) -> Facts:
    """Pardon another reason of an error when both brokers answer with the same status 4xx."""
    if facts[:1] != others[:1] or not "".join(facts[:1]).startswith("status 4"):
        return facts
    return either(r"(/reason) .+", r"(/reason) .+")(facts, others)


def more(pattern: str, when: Callable[[re.Match[str], Facts, Facts], bool] = lambda *_: True) -> Pardon:
    """Pardon a fact of the real broker alone that matches `pattern`, if `when` allows this for the facts of both."""
    wanted = re.compile(pattern)

    def pardon(facts: Facts, others: Facts) -> Facts:
        told = [*facts]
        for place, other in enumerate(others):
            found = wanted.fullmatch(other)
            if found is not None and told[place : place + 1] != [other] and when(found, facts, others):
                told.insert(place, other)
        return told

    return pardon


def order(sorted_facts: Callable[[Facts], Facts]) -> Pardon:
    """Pardon another order of facts that are equal after `sorted_facts`."""
    return lambda facts, others: others if sorted_facts(facts) == sorted_facts(others) else facts


_LIST = re.compile(r"(/publishers|/subscriptions/[^/]+/consumers|)/(\d+)(?=[/ ])")


def _sorted_lists(facts: Facts) -> Facts:
    """Sort the elements of lists of publishers, consumers and names. The facts of one element stay together."""
    elements: dict[str, dict[str, Facts]] = {}
    rest = []
    for fact in facts:
        if found := _LIST.match(fact):
            elements.setdefault(found[1], {}).setdefault(found[2], []).append(fact[found.end() :])
        else:
            rest.append(fact)
    return rest + [f"{path}: {each}" for path, those in sorted(elements.items()) for each in sorted(those.values())]


def _sorted_closes(facts: Facts) -> Facts:
    """Sort adjacent CLOSE_PRODUCERs and CLOSE_CONSUMERs, together with the errors of pending requests."""
    together = itertools.groupby(facts, key=lambda fact: fact.startswith("CLOSE_") or "TopicFencedException" in fact)
    return [fact for closes, group in together for fact in (sorted(group) if closes else group)]


def _left(active: re.Match[str], _: Facts, others: Facts) -> bool:
    """Return whether an active consumer is missing among the consumers."""
    there = re.compile(rf"/subscriptions/{re.escape(active[1])}/consumers/\d+/consumerName {re.escape(active[2])}")
    return not any(map(there.fullmatch, others))


def _gone(_: re.Match[str], facts: Facts, __: Facts) -> bool:
    """Return whether the cursor of a seek is missing in our facts."""
    return not any(fact.startswith(f"/cursors/{SEEKER}/") for fact in facts)


_WAITS = "/waitingReadOp True"
_WAITING = "/waitingCursorsCount"


def _waiting(facts: Facts, others: Facts) -> Facts:
    """Pardon a read that waits only in our broker, and a larger count of waiting cursors in the real broker.

    The real broker also counts cursors whose read was canceled.
    """
    mine, theirs = (sum(each.endswith(_WAITS) for each in those) for those in (facts, others))
    cursor = r"(/cursors/[^/]+/(?:subscriptionHavePendingRead|waitingReadOp))"
    counts = [each for each in others if each.startswith(f"{_WAITING} ") and int(each.split()[1]) >= theirs]
    return each_of(
        either(rf"{cursor} True", rf"{cursor} False"),
        *(either(f"{_WAITING} {mine}", re.escape(count)) for count in counts),
    )(facts, others)


def each_of(*pardons: Pardon) -> Pardon:
    """Combine `pardons`, and apply them in order."""

    def pardon(facts: Facts, others: Facts) -> Facts:
        for each in pardons:
            facts = each(facts, others)
        return facts

    return pardon


_KEPT = rf"/cursors/(?!{READER}/)[^/]+"  # cursors that are stored, unlike those of readers

TOLERANCES = (
    Tolerance(
        "active consumer that left",
        "Stats still name the consumer that left as active",
        more(r"/subscriptions/([^/]+)/activeConsumerName (.*)", _left),
    ),
    Tolerance(
        "cursors of readers that sought",
        "The answer still shows the cursor of a reader that used SEEK",
        more(rf"/cursors/{SEEKER}/.*", _gone),
    ),
    Tolerance(
        "end of topic said again",
        "The broker repeats the command after redundant acknowledgements and FLOWs",
        more(rf"REACHED_END_OF_TOPIC .*{AGAIN}"),
    ),
    Tolerance(
        "highest sequence id of a receipt",
        "highest_sequence_id of a receipt, where the SEND has none",
        either(*[r'(SEND_RECEIPT .*"highest_sequence_id": )(?:0|18446744073709551615)\b(.*)'] * 2),
    ),
    Tolerance("wording of REST errors", "REST: the text of errors with status 4xx", wording),
    Tolerance(
        "cursor ledgers",
        "A cursor is `NoLedger` until its subscription acknowledges a message",
        each_of(
            either(rf"({_KEPT}/cursorLedger) -1", rf"({_KEPT}/cursorLedger) a ledger"),
            either(rf"({_KEPT}/cursorLedgerLastEntry) (?:-1|\d+)", rf"({_KEPT}/cursorLedgerLastEntry) \d+"),
            either(rf"({_KEPT}/state) NoLedger", rf"({_KEPT}/state) Open"),
        ),
    ),
    Tolerance(
        "state of a reader's cursor",
        "the state of a reader's cursor",
        either(rf"(/cursors/{READER}/state) NoLedger", rf"(/cursors/{READER}/state) Open"),
    ),
    Tolerance(
        "last consumption after a reset",
        "lastConsumedTimestamp of a subscription whose consumers have left",
        either(
            r"(/subscriptions/[^/]+/lastConsumedTimestamp) \.\.\.",
            r"(/subscriptions/[^/]+/lastConsumedTimestamp) never",
        ),
    ),
    Tolerance(
        "address in a conflict of ranges",
        "The error text ends in the connection as Netty shows it",
        either(r'(ERROR .*Range conflict .*), address=ADDRESS}"}', r'(ERROR .*Range conflict .*), address=\[id: .*}"}'),
    ),
    Tolerance(
        "read position after the earliest",
        "After a SEEK to the earliest message, the entry is -1",
        either(r"(/cursors/[^/]+/readPosition .+):0", r"(/cursors/[^/]+/readPosition .+):-1"),
    ),
    Tolerance(
        "ack set of a read position",
        "says that its ack set is null",
        either(r"(/cursors/[^/]+/readPosition .+)", r"(/cursors/[^/]+/readPosition .+) \(ackSet is null\)"),
    ),
    Tolerance(
        "activity of cursors",
        "The value is true from the cursor's creation until its first consumers have left",
        either(r"(/cursors/[^/]+/active) False", r"(/cursors/[^/]+/active) True"),
    ),
    Tolerance("reads that wait", "The value shows whether a read waits for entries at this moment", _waiting),
    Tolerance(
        "count in a property",
        "The property is -1 until all entries are deleted",
        either(r"(/properties/index) -1", r"(/properties/index) \d+"),
    ),
    Tolerance("order of REST lists", "The elements are in the order of their creation", order(_sorted_lists)),
    Tolerance(
        "order in which clients are sent away",
        "CLOSE_PRODUCER and CLOSE_CONSUMER of one unload or deletion",
        order(_sorted_closes),
    ),
)


@dataclass(frozen=True)
class Moment:
    """An answer of the real broker that depends on the moment. A program ends there, because later answers depend too.

    The answer matches `pattern`, and `words` stand in docs/differences.md.
    """

    name: str
    words: str
    pattern: str


MOMENTS = (
    Moment(
        "a reader's subscription that is being closed",
        "SUBSCRIBE right after the last consumer of a reader's subscription left",
        r'^ERROR {"request_id": (\d+), .*"ServiceNotReady", "message": "Subscription is fenced"',
    ),
)


def moment(ours: Facts, real: Facts) -> str | None:
    """Return the name of the moment that explains the real answers, if our broker did what the client asked."""
    for each in MOMENTS:
        for fact in real:
            found = re.search(each.pattern, fact)
            if found is not None and f'SUCCESS {{"request_id": {found[1]}}}' in ours:
                return each.name
    return None


def needed(ours: Facts, real: Facts) -> list[str] | None:
    """Return the names of the tolerances that make both equal, or None when they stay different."""
    names = []
    for tolerance in TOLERANCES:
        if ours == real:
            break
        pardoned = tolerance.pardon(ours, real)
        if pardoned != ours:
            names.append(tolerance.name)
            ours = pardoned
    return names if ours == real else None
