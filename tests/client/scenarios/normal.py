"""Normalize observations, so that those of all runs and brokers compare equal."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pulsarium.client import Message, MessageId

Facts: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None

LONG = 200
"""Longer texts become their length, beginning and end."""

ENDS = {MessageId.earliest: "earliest", MessageId.latest: "latest"}


def normal(observed: object, names: Mapping[str, str]) -> Facts:
    """Return an observation as dicts, lists and texts. `names` has texts of this run, and their replacements.

    A message becomes its content, and bytes become text. A message id becomes `ledger:entry:batch index@partition`,
    without a batch index or a partition that it does not have. Ledgers are numbered from 0 in each partition.
    """
    ledgers: dict[int, set[int]] = defaultdict(set)
    for one in _ids(observed):
        if one.ledger_id not in (-1, MessageId.latest.ledger_id):
            ledgers[one.partition].add(one.ledger_id)
    ranks = {partition: {ledger: n for n, ledger in enumerate(sorted(each))} for partition, each in ledgers.items()}
    return _Normal(names, ranks).of(observed)


def _ids(observed: object) -> Iterator[MessageId]:
    if isinstance(observed, MessageId):
        yield observed
        if observed.first_chunk is not None:
            yield observed.first_chunk
    elif isinstance(observed, Mapping):
        for key, value in observed.items():
            yield from _ids(key)
            yield from _ids(value)
    elif isinstance(observed, list | tuple):
        for value in observed:
            yield from _ids(value)


class _Normal:
    def __init__(self, names: Mapping[str, str], ranks: Mapping[int, Mapping[int, int]]) -> None:
        self._names = names
        self._ranks = ranks

    def of(self, observed: object) -> Facts:
        match observed:
            case enum.Enum():
                return observed.name
            case None | bool() | int() | float():
                return observed
            case str():
                return self._text(observed)
            case bytes():
                return self._text(observed.decode("utf-8", "backslashreplace"))
            case MessageId():
                return self._id(observed)
            case Message():
                return self._text(observed.data().decode("utf-8", "backslashreplace"))
            case BaseException():
                return type(observed).__name__
            case Mapping():
                return {str(self.of(key)): self.of(value) for key, value in observed.items()}
            case list() | tuple():
                return [self.of(value) for value in observed]
            case set() | frozenset():
                return sorted(self.of(value) for value in observed)
        raise TypeError(f"{observed!r} is no fact")

    def _text(self, text: str) -> str:
        for name, said in self._names.items():
            text = text.replace(name, said)
        return text if len(text) <= LONG else f"{text[:10]}...{text[-10:]} ({len(text)})"

    def _id(self, one: MessageId) -> str:
        place = f"@{one.partition}" if one.partition >= 0 else ""
        end = ENDS.get(MessageId(one.ledger_id, one.entry_id))
        if end is not None:
            return end + place
        text = f"{self._ranks[one.partition].get(one.ledger_id, -1)}:{one.entry_id}"
        if one.batch_index >= 0:
            text += f":{one.batch_index}"
        first = "" if one.first_chunk is None else f" from {self._id(one.first_chunk)}"
        return text + place + first
