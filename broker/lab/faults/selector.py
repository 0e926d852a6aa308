"""Which frames a rule is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pulsarium.broker.lab.faults.errors import FaultError
from pulsarium.broker.lab.faults.passing import Passing
from pulsarium.broker.logs import Log
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.near import did_you_mean
from pulsarium.proto.topic_name import TopicName

log = Log("lab")

ANY = "*"
NAMES = {spec.name: spec for spec in COMMANDS.values()}
Predicate = Callable[[Passing], bool]


@dataclass(frozen=True)
class Selector:
    """All of it has to fit. Texts are globs; "*" fits also what has no such name.

    command: a name of BaseCommand.Type, or "*". sender: BOTH for a command that either side sends.
    topic: fits a topic by its full name, without its domain or by its own name alone, and partitions by the name of
        their topic too. broker: its index in the cluster.
    """

    command: str
    sender: Direction
    topic: str = ANY
    client_version: str = ANY
    producer: str = ANY
    consumer: str = ANY
    subscription: str = ANY
    broker: int | None = None
    predicate: Predicate | None = None

    def fits(self, frame: Passing) -> bool:
        """Whether this frame is meant."""
        return (
            self.command in (ANY, frame.name)
            and self.sender in (Direction.BOTH, frame.sender)
            and (self.topic == ANY or any(fnmatchcase(name, self.topic) for name in names_of(frame.topic)))
            and (self.client_version == ANY or fnmatchcase(frame.client_version, self.client_version))
            and (self.producer == ANY or _named(frame.producer, self.producer))
            and (self.consumer == ANY or _named(frame.consumer, self.consumer))
            and (self.subscription == ANY or _named(frame.subscription, self.subscription))
            and (self.broker is None or frame.session.broker is frame.session.broker.cluster.brokers[self.broker])
            and (self.predicate is None or self._told(self.predicate, frame))
        )

    def _told(self, predicate: Predicate, frame: Passing) -> bool:
        try:
            return bool(predicate(frame))
        except Exception as error:  # of a test; its connection must not die of it
            log.error("a predicate failed", exception=error, command=frame.name)
            return False


def _named(name: str, glob: str) -> bool:
    return bool(name) and fnmatchcase(name, glob)


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
