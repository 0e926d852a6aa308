"""The order that Key_Shared guarantees while consumers come and go, as the tests of all clients check it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

What: TypeAlias = Literal["received", "acknowledged", "left"]

KEYED_MESSAGES, STEPS = 5000, 25
"""Number of messages, and number of joins and leaves, in one run."""


def seeds(everyday: str) -> list[ParameterSet]:
    """Return (seed, batched) parameters, all but `everyday` heavy.

    The seed decides about joins and leaves. Batches hold messages of one key.
    """
    names = {f"{seed}-{how}": (seed, how == "batched") for seed in range(1, 5) for how in ("single", "batched")}
    return [
        pytest.param(*values, id=name, marks=[pytest.mark.heavy] * (name != everyday)) for name, values in names.items()
    ]


@dataclass(frozen=True)
class Event:
    """An action of one consumer. The tests note an acknowledgement or a leave before they call the client."""

    consumer: str
    what: What
    key: str = ""
    number: int = -1


def assert_ordered_by_key(events: Iterable[Event]) -> None:
    """Assert the order of Key_Shared for applications that acknowledge in order of receipt, never negatively (B-11).

    1. While a consumer that has not left holds a message of a key (received, not acknowledged), no other consumer
       receives a message of that key.
    2. For each key the first receipts, over all consumers, are in the order of publishing.
    3. Each consumer receives the messages of a key in the order of publishing, each of them once.
    """
    held: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    newest: dict[str, int] = defaultdict(lambda: -1)
    last: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    seen: set[int] = set()
    for event in events:
        if event.what == "left":
            for holders in held.values():
                holders.pop(event.consumer, None)
            continue
        holders, number = held[event.key], event.number
        if event.what == "acknowledged":
            holders[event.consumer].discard(number)
            continue
        others = {name: sorted(numbers) for name, numbers in holders.items() if numbers and name != event.consumer}
        assert not others, f"{event} while others hold messages of its key: {others}"
        assert last[event.consumer, event.key] < number, f"{event} after {last[event.consumer, event.key]}"
        assert number in seen or newest[event.key] < number, f"{event}, new, after {newest[event.key]}"
        last[event.consumer, event.key] = number
        newest[event.key] = max(newest[event.key], number)
        seen.add(number)
        holders[event.consumer].add(number)


def events(lines: Iterable[str]) -> list[Event]:
    """Parse lines such as "a received k 1", "a acknowledged k 1" and "a left"."""
    parts = (line.split() for line in lines)
    return [Event(who, what, *rest[:1], *map(int, rest[1:])) for who, what, *rest in parts]  # type: ignore[arg-type]
