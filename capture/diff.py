"""Compare two captures connection by connection, and ignore the values that differ between any two runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from pulsarium.capture.as_json import entry_of, fields_of
from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.capture.lint.checker import Walk
from pulsarium.capture.lint.exchanges import LintedExchange
from pulsarium.capture.lint.frames import Frame
from pulsarium.proto.commands import Direction

Source = Callable[[], Iterable[CaptureRecord]]
"""Function that reads a capture from its beginning on each call."""

KEEP_ALIVE = frozenset({"PING", "PONG"})

_NAMES = {"topic", "subscription", "producer_name", "consumer_name", "uuid", "namespace", "replicated_from"}
_NUMBERS = {"ledgerId", "txnid_least_bits", "txnid_most_bits", "producer_id", "consumer_id"}
_OF_THE_RUN = {
    *(
        "request_id",
        "client_version",
        "server_version",
        "auth_data",
        "original_auth_data",
        "topics_hash",
        "topic_epoch",
    ),
    *("publish_time", "event_time", "deliver_at_time", "broker_timestamp", "index", "proxy_version"),
    *("uncompressed_size", "encryption_keys", "encryption_param"),
}
_OF_AN_ENTRY = {"messages", "metadata", "checksum", "broken"}
_URL = re.compile(r"url", re.IGNORECASE)
_TEXTS = {"message", "error_message"}
_NO_HIGHEST = (0, 2**64 - 1)  # receipts of a real broker have either, at random
_PARTITION = re.compile(r"-partition-\d+$")
_WINDOW = 30  # connections among which the counterpart of one is searched


Speaker = tuple[Direction, str]
"""A side, with the kind and number of the producer or consumer that its command names, or ""."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command or request of one side, with its answer. `words` are compared."""

    words: str
    frame: Frame


@dataclass(slots=True)
class Talk:
    """The steps of one connection."""

    connection: int
    client: str = ""
    steps: dict[Speaker, list[Step]] = field(default_factory=dict)
    """Requests of the client with their answers, and commands that the broker sent on its own, by producer or consumer.

    The order between producers and consumers depends on the client's threads.
    """

    def words(self) -> Counter[str]:
        return Counter(step.words for steps in self.steps.values() for step in steps)


@dataclass(frozen=True, slots=True)
class Change:
    """Steps that only one of the captures has. They follow `before`, which both have."""

    side: Direction
    before: list[Step]
    old: list[Step]
    new: list[Step]


@dataclass(frozen=True, slots=True)
class Difference:
    """Two matching connections, or one that only one capture has: the other is None."""

    old: Talk | None
    new: Talk | None
    changes: list[Change]


def differences(
    old: Source, new: Source, *, ignore: Collection[str] = KEEP_ALIVE, texts: bool = False
) -> list[Difference]:
    """Return the connections that differ.

    Commands in `ignore` are not compared. With `texts`, messages of errors are compared, and not only their codes.
    """
    both = _names_of(old()) & _names_of(new())
    before = _talks(old(), _Normal(both, texts), ignore)
    after = _talks(new(), _Normal(both, texts), ignore)
    found = []
    for one, other in _pairs(before, after):
        changes = [] if one is None or other is None else list(_changes(one, other))
        if changes or one is None or other is None:
            found.append(Difference(one, other, changes))
    return found


def _names_of(records: Iterable[CaptureRecord]) -> set[str]:
    """Return the names that clients chose. Names that brokers generate may coincide."""
    found: set[str] = set()
    for frame in _frames(records):
        if frame.body is not None and frame.sender is Direction.CLIENT:
            fields = fields_of(frame.body, full=True)
            if not fields.get("user_provided_producer_name"):
                fields.pop("producer_name", None)
            found.update(str(fields[name]) for name in _NAMES & fields.keys())
    return found


def _frames(records: Iterable[CaptureRecord]) -> Iterator[Frame]:
    walk = Walk()
    for record in records:
        frame = walk.feed(record)[1].frame
        if frame is not None:
            yield frame


class _Normal:
    """Converter of one capture's frames to comparable words.

    Ids, and names that only this capture has, are replaced by numbers, in the order in which a connection uses them.
    """

    def __init__(self, both: set[str], texts: bool) -> None:
        self._both = both
        self._texts = texts
        self._seen: dict[tuple[str, int], dict[object, int]] = {}

    def words(self, frame: Frame) -> str:
        """Return the command and its fields."""
        if frame.body is None:
            return f"{frame.name or 'no command'}: {frame.broken}"
        fields = self._of(fields_of(frame.body, full=True), frame.record.connection)
        entry = entry_of(frame)
        if entry is not None:
            kept = {name: value for name, value in entry.items() if name in _OF_AN_ENTRY}
            fields["entry"] = self._of(kept, frame.record.connection)
        return " ".join([frame.name, *(f"{name}={_text(value)}" for name, value in fields.items())])

    def speaker(self, frame: Frame) -> Speaker:
        """Return the side that sent the frame, and the producer or consumer that the frame names."""
        for name, number in (("producer_id", frame.producer_id), ("consumer_id", frame.consumer_id)):
            if number is not None:
                return frame.sender, f"{name} {self._number(name, number, frame.record.connection)}"
        return frame.sender, ""

    def _of(self, fields: Mapping[str, Any], connection: int) -> dict[str, Any]:
        return {
            name: self._value(name, value, connection)
            for name, value in fields.items()
            if name not in _OF_THE_RUN
            and not _URL.search(name)
            and (self._texts or name not in _TEXTS)
            and not (name == "highest_sequence_id" and value in _NO_HIGHEST)
        }

    def _value(self, name: str, value: Any, connection: int) -> Any:
        if isinstance(value, Mapping):
            return self._of(value, connection)
        if isinstance(value, list):
            return [self._value(name, each, connection) for each in value]
        if name in _NAMES and value not in self._both:
            partition = _PARTITION.search(value)
            base = value[: partition.start()] if partition else value
            return f"<{name} {self._number(name, base, connection)}>{partition[0] if partition else ''}"
        if name in ("producer_id", "consumer_id"):
            return f"<{self._number(name, value, connection)}>"
        return f"<{name} {self._number(name, value, connection)}>" if name in _NUMBERS else value

    def _number(self, kind: str, value: object, connection: int) -> int:
        """Return a number by order of appearance on the connection, because the order of connections is random."""
        known = self._seen.setdefault((kind, connection), {})
        return known.setdefault(value, len(known) + 1)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + " ".join(f"{name}={_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return str(value)


def _talks(records: Iterable[CaptureRecord], normal: _Normal, ignore: Collection[str]) -> list[Talk]:
    talks: dict[int, Talk] = {}
    spoke: set[int] = set()  # a connection without a frame has nothing to compare
    walk = Walk()
    asked: dict[tuple[int, int], int] = {}  # index of a request's step, by connection and number of the request

    def ended(exchanges: Iterable[LintedExchange]) -> None:
        for each in exchanges:
            request = each.request
            at = asked.pop((request.record.connection, request.number), None)
            if at is not None:
                steps = talks[request.record.connection].steps[normal.speaker(request)]
                answer = each.outcome if each.answer is None else normal.words(each.answer)
                steps[at] = Step(f"{steps[at].words} -> {answer}", steps[at].frame)

    for record in records:
        checker, seen = walk.feed(record)
        if record.kind is EventKind.OPENED or record.connection not in talks:
            talks[record.connection] = Talk(record.connection)
        talk = talks[record.connection]
        frame = seen.frame
        if frame is not None:
            spoke.add(record.connection)
        answers = frame is not None and any(each.answer is frame for each in seen.exchanges)
        ended(seen.exchanges)
        if frame is not None and frame.name not in ignore and not answers:
            talk.client = " ".join(filter(None, (checker.conversation.client, checker.conversation.client_version)))
            steps = talk.steps.setdefault(normal.speaker(frame), [])
            asked[record.connection, frame.number] = len(steps)
            steps.append(Step(normal.words(frame), frame))
    for _, seen in walk.end():
        ended(seen.exchanges)
    return [talk for connection, talk in talks.items() if connection in spoke]


def _pairs(old: list[Talk], new: list[Talk]) -> Iterator[tuple[Talk | None, Talk | None]]:
    """Yield pairs of connections that have the most words in common. Equal candidates are paired in order."""
    left = list(new)
    words = {id(each): each.words() for each in (*old, *new)}
    for one in old:
        there = [other for other in left[:_WINDOW] if _kind(other) == _kind(one)]
        if not there:
            yield one, None
            continue
        best = max(
            there,
            key=lambda other: (words[id(one)] & words[id(other)]).total() - abs(_length(one) - _length(other)) / 2,
        )
        left.remove(best)
        yield one, best
    for other in left:
        yield None, other


def _kind(talk: Talk) -> str:
    """Return the client's name without its version."""
    return talk.client.partition(" ")[0]


def _length(talk: Talk) -> int:
    return sum(map(len, talk.steps.values()))


def _changes(old: Talk, new: Talk) -> Iterator[Change]:
    for speaker in dict.fromkeys((*old.steps, *new.steps)):
        one, other = old.steps.get(speaker, []), new.steps.get(speaker, [])
        matcher = SequenceMatcher(None, [each.words for each in one], [each.words for each in other], autojunk=False)
        for what, a, b, c, d in matcher.get_opcodes():
            if what != "equal":
                yield Change(speaker[0], one[max(a - 2, 0) : a], one[a:b], other[c:d])
