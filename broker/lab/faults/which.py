"""Select the frames of a rule, and choose which of them the rule acts on."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Unpack

from pulsarium.broker.expression import ExpressionError
from pulsarium.broker.lab.arguments import ANY, Selected, When, arguments_of
from pulsarium.broker.lab.faults.names import condition
from pulsarium.broker.lab.faults.tapped import Predicate, TappedFrame, names_of
from pulsarium.broker.logs import PartLog
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.text import did_you_mean

log = PartLog("lab")

NAMES = {spec.name: spec for spec in COMMANDS.values()}
WITHOUT_NAMESPACE = frozenset(
    ("CONNECT", "CONNECTED", "TC_CLIENT_CONNECT_REQUEST", "TC_CLIENT_CONNECT_RESPONSE"),
)
"""Commands that a connection exchanges before it names a topic."""
GLOBS = tuple(name for name, argument in arguments_of(Selected).items() if argument.types == (str,))


class FaultError(ValueError):
    """A rule that is not valid. The text says what is allowed."""


class FaultRemoved(Exception):
    """A rule was removed while a caller waited for its hits."""


class FrameSelector:
    """Select frames by command (a name of BaseCommand.Type, or "*"), sender (BOTH: either side) and all of `which`.

    A topic matches by its full name, without its domain, or by its local name. Partitions match by the name of their
    topic too.
    """

    def __init__(self, command: str, sender: Direction, which: Selected) -> None:
        """Create a selector. Raise `FaultError` for an invalid `when`, or a namespace of a command that has none."""
        if which.get("namespace", ANY) != ANY and command in WITHOUT_NAMESPACE:
            raise FaultError(f"{command} comes before its connection names a topic: select it without a namespace")
        self.command = command
        self.sender = sender
        self.which = which
        given: dict[str, object] = {**which}
        self._globs = [(name, str(given[name])) for name in GLOBS if given.get(name, ANY) != ANY]
        when = which.get("when")
        try:
            self._condition = None if when is None else condition(when, spec_of(command))
        except ExpressionError as error:
            raise FaultError(f"when: {error}") from None

    def fits(self, frame: TappedFrame) -> bool:
        """Return whether the frame matches."""
        broker, predicate = self.which.get("broker"), self.which.get("predicate")
        return (
            self.command in (ANY, frame.name)
            and self.sender in (Direction.BOTH, frame.sender)
            and all(any(fnmatchcase(called, glob) for called in _names(frame, name)) for name, glob in self._globs)
            and (broker is None or frame.session.broker is frame.session.broker.cluster.brokers[broker])
            and (self._condition is None or self._condition(frame))
            and (predicate is None or self._told(predicate, frame))
        )

    def _told(self, predicate: Predicate, frame: TappedFrame) -> bool:
        try:
            return bool(predicate(frame))
        except Exception as error:  # a bug of the test must not end its connection
            log.error("the predicate of a fault failed; the frame does not match", exception=error, command=frame.name)
            return False


def _names(frame: TappedFrame, name: str) -> Iterable[str]:
    """Return all names that a frame's field has for globs. A frame without such a name has none."""
    if name == "topic":
        return names_of(frame.topic)
    if name == "namespace":
        return frame.namespaces
    called: str = getattr(frame, name)
    return (called,) if called or name == "client_version" else ()


def spec_of(command: str) -> CommandSpec | None:
    """Return the spec of a command, or None for "*". Raise `FaultError` for an unknown name."""
    if command == ANY:
        return None
    if command not in NAMES:
        meant = did_you_mean(command, NAMES)
        raise FaultError(
            f"no command {command!r}; {meant or 'there are ' + ', '.join(sorted(NAMES)) + ', and * for all of them'}"
        )
    return NAMES[command]


def sender_of(spec: CommandSpec | None, sender: str | None) -> Direction:
    """Return the sender: `sender` ("client" or "broker"), or by default the side that sends the command.

    Raise `FaultError` when that side never sends the command.
    """
    sends = Direction.BOTH if spec is None else spec.direction
    if sender is None:
        return sends
    if sender not in (Direction.CLIENT.value, Direction.BROKER.value):
        raise FaultError(f"sender is {sender!r}; it must be client or broker")
    if spec is not None and sends not in (Direction.BOTH, Direction(sender)):
        raise FaultError(f"{spec.name} is sent by the {sends.value}")
    return Direction(sender)


class Occurrence:
    """Decide for each selected frame whether the rule acts on it.

    Skip the first `skip` frames, then act on the first of each `every`, `count` times in all (None: no limit), each
    with `probability`. `seed` seeds the probability and the corrupted bytes. Raise `FaultError` for a value out of
    range.
    """

    def __init__(self, **when: Unpack[When]) -> None:
        skip, every, count = when.get("skip", 0), when.get("every", 1), when.get("count", 1)
        probability, seed = when.get("probability", 1.0), when.get("seed")
        if skip < 0:
            raise FaultError(f"skip is {skip}; it must be 0 or more")
        if every < 1:
            raise FaultError(f"every is {every}; it must be 1 or more")
        if count is not None and count < 1:
            raise FaultError(f"count is {count}; it must be 1 or more, or None for no limit")
        if not 0 <= probability <= 1:
            raise FaultError(f"probability is {probability}; it must be from 0 to 1")
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
        """Return whether the rule never acts again."""
        return self.count is not None and self._struck >= self.count

    def strikes(self) -> bool:
        """Return whether the rule acts on this frame, and count the frame."""
        if self.spent:
            return False
        nth = self._seen - self.skip
        self._seen += 1
        if nth < 0 or nth % self.every or (self.probability < 1 and self.chance.random() >= self.probability):
            return False
        self._struck += 1
        return True

    def give_back(self) -> None:
        """Return the turn of a frame that never came."""
        self._struck -= 1

    def take_back(self) -> bool:
        """Take a returned turn again for a frame that came after all. Return whether a turn is left."""
        if self.spent:
            return False
        self._struck += 1
        return True
