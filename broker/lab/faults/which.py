"""Which frames a rule is about, and which of those it strikes: once, the nth, every kth, so many, by chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Unpack

from pulsarium.broker.lab.arguments import ANY, Selected, When, arguments_of
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.logs import Log
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.text import did_you_mean
from pulsarium.proto.topic_name import TopicName

log = Log("lab")

NAMES = {spec.name: spec for spec in COMMANDS.values()}
GLOBS = tuple(name for name, argument in arguments_of(Selected).items() if argument.types == (str,))
Predicate = Callable[[TappedFrame], bool]


class FaultError(ValueError):
    """A rule that makes no sense; the text says what is allowed."""


class FaultRemoved(Exception):
    """A rule was removed while somebody waited for it."""


class Selector:
    """Selects frames of a command (a name of BaseCommand.Type, or "*") and a sender (BOTH: of either side) that all of
    `which` fits.

    A topic fits by its full name, without its domain or by its own name alone, and partitions by the name of their
    topic too.
    """

    def __init__(self, command: str, sender: Direction, which: Selected) -> None:
        self.command = command
        self.sender = sender
        self.which = which
        given: dict[str, object] = {**which}
        self._globs = [(name, str(given[name])) for name in GLOBS if given.get(name, ANY) != ANY]

    def fits(self, frame: TappedFrame) -> bool:
        """Whether this frame is meant."""
        broker, predicate = self.which.get("broker"), self.which.get("predicate")
        return (
            self.command in (ANY, frame.name)
            and self.sender in (Direction.BOTH, frame.sender)
            and all(any(fnmatchcase(called, glob) for called in _names(frame, name)) for name, glob in self._globs)
            and (broker is None or frame.session.broker is frame.session.broker.cluster.brokers[broker])
            and (predicate is None or self._told(predicate, frame))
        )

    def _told(self, predicate: Predicate, frame: TappedFrame) -> bool:
        try:
            return bool(predicate(frame))
        except Exception as error:  # of a test; its connection must not die of it
            log.error("a predicate failed", exception=error, command=frame.name)
            return False


def _names(frame: TappedFrame, name: str) -> Iterable[str]:
    """Return everything that what a frame is about may be called by; nothing, where it has no such name."""
    if name == "topic":
        return names_of(frame.topic)
    called: str = getattr(frame, name)
    return (called,) if called or name == "client_version" else ()


def names_of(topic: TopicName | str) -> Iterator[str]:
    """Everything a topic may be called by."""
    if isinstance(topic, str):
        if topic:
            yield topic
        return
    for each in {topic, _partitioned(topic)}:
        yield from (str(each), f"{each.namespace_name}/{each.local_name}", each.local_name)


def _partitioned(topic: TopicName) -> TopicName:
    try:
        return topic.partitioned_name
    except InvalidTopicName:
        return topic


def spec_of(command: str) -> CommandSpec | None:
    """What is known of a command by its name, None for "*". Raises FaultError."""
    if command == ANY:
        return None
    if command not in NAMES:
        meant = did_you_mean(command, NAMES)
        raise FaultError(
            f"no command {command!r}; {meant or 'there are ' + ', '.join(sorted(NAMES)) + ', and * for all of them'}"
        )
    return NAMES[command]


def sender_of(spec: CommandSpec | None, sender: str | None) -> Direction:
    """Whose frames are meant: `sender` ("client", "broker") or, without it, whoever sends the command."""
    sends = Direction.BOTH if spec is None else spec.direction
    if sender is None:
        return sends
    if sender not in (Direction.CLIENT.value, Direction.BROKER.value):
        raise FaultError(f"sender is {sender!r}; it is client or broker")
    if spec is not None and sends not in (Direction.BOTH, Direction(sender)):
        raise FaultError(f"{spec.name} is sent by the {sends.value}")
    return Direction(sender)


class Occurrence:
    """Is asked once for each frame that was selected. Raises FaultError.

    Of those, the first `skip` pass, then the first of each `every` is struck, `count` in all (None: for ever), each by
    `probability`. `seed` is that of chance, also of the bytes that are corrupted.
    """

    def __init__(self, **when: Unpack[When]) -> None:
        skip, every, count = when.get("skip", 0), when.get("every", 1), when.get("count", 1)
        probability, seed = when.get("probability", 1.0), when.get("seed")
        if skip < 0:
            raise FaultError(f"skip is {skip}; it is 0 or more")
        if every < 1:
            raise FaultError(f"every is {every}; it is 1 or more")
        if count is not None and count < 1:
            raise FaultError(f"count is {count}; it is 1 or more, or nothing for ever")
        if not 0 <= probability <= 1:
            raise FaultError(f"probability is {probability}; it is from 0 to 1")
        self.skip = skip
        self.every = every
        self.count = count
        self.probability = probability
        self.seed = random.randrange(2**32) if seed is None else seed
        self.chance = random.Random(self.seed)
        self._seen = 0
        self._struck = 0

    @property
    def spent(self) -> bool:
        """Whether nothing more is struck."""
        return self.count is not None and self._struck >= self.count

    def strikes(self) -> bool:
        """Whether it is this one's turn."""
        if self.spent:
            return False
        nth = self._seen - self.skip
        self._seen += 1
        if nth < 0 or nth % self.every or (self.probability < 1 and self.chance.random() >= self.probability):
            return False
        self._struck += 1
        return True

    def give_back(self) -> None:
        """One that was to be struck never came."""
        self._struck -= 1

    def take_back(self) -> bool:
        """It did come. Whether it is still its turn."""
        if self.spent:
            return False
        self._struck += 1
        return True
