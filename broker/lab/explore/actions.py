"""Actions that only an exploration takes. Each is something that Pulsar, or its network, may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import trio

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.faults.rule import Action, InstalledFault, Piece, Strike
from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.broker.lab.faults.which import Occurrence
from pulsarium.broker.lab.lab import Lab
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Work = Callable[[], Awaitable[object]]


class Stage:
    """The lab on which the actions of an exploration act, and their work that waits."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.lost_answer: InstalledFault | None = None
        """The rule that loses the first of two answers to one SEND."""
        self._send, self.work = trio.open_memory_channel[Work](1000)

    @property
    def cluster(self) -> Cluster:
        return self.lab.cluster

    def soon(self, work: Work) -> None:
        """Do work that waits, after the work that was noted before."""
        self._send.send_nowait(work)


class Chosen(Occurrence):
    """Decisions of a plan about the frames of a rule, on a stage."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(count=None, seed=0)
        self.stage = stage
        self.value = 0.0
        """The value of the last decision."""


def chosen(strike: Strike) -> Chosen:
    """Return the decisions that led to this strike."""
    return cast(Chosen, strike.rule.occurrence)


def value_of(strike: Strike) -> float:
    """Return the value of the decision that led to this strike."""
    return chosen(strike).value


@dataclass(frozen=True)
class Wait(Action):
    """Delay the frame, and everything behind it, by the seconds of the decision."""

    kind = "wait"

    def act(self, strike: Strike) -> Iterator[Piece]:
        strike.hold("delayed", value_of(strike))
        yield from ()


@dataclass(frozen=True)
class SendTwice(Action):
    """Handle a SEND twice, and answer once, as after a lost receipt whose client sends again."""

    kind = "send-twice"

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.untouched()
        lost_answer = chosen(strike).stage.lost_answer
        assert lost_answer is not None
        strike.queue.claim(lost_answer, strike.frame)
        yield strike.changed(strike.frame.data, "duplicated")


@dataclass(frozen=True)
class Overtake(Action):
    """Let the next MESSAGE overtake this one, when it waits already and nothing orders the two."""

    kind = "overtake"

    def act(self, strike: Strike) -> Iterator[Piece]:
        following = strike.queue.take_next(lambda later: may_overtake(later, strike.frame))
        if following is None:
            yield strike.untouched()
        else:
            yield strike.changed(following, "reordered")
            yield strike.changed(strike.frame.data, "reordered")


@dataclass(frozen=True)
class After(Action):
    """Send the frame, and do something to the broker right behind it."""

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.untouched()
        self.begin(chosen(strike).stage, strike.frame)

    def begin(self, stage: Stage, frame: TappedFrame) -> None:
        """Do the work, or note it for the end of the turn."""
        raise NotImplementedError


@dataclass(frozen=True)
class CloseConsumer(After):
    """Close the consumer of the frame. Its client subscribes again."""

    kind = "close-consumer"

    def begin(self, stage: Stage, frame: TappedFrame) -> None:
        consumer = consumer_of(frame)
        if consumer is not None:
            leave = consumer.subscription.disconnect_those
            stage.cluster.turn.later(lambda: leave(lambda each: each is consumer))


@dataclass(frozen=True)
class Unload(After):
    """Unload the topic of the frame."""

    kind = "unload"

    def begin(self, stage: Stage, frame: TappedFrame) -> None:
        cluster, name = stage.cluster, frame.topic
        stage.cluster.turn.later(lambda: _unload(cluster, str(name)))


def _unload(cluster: Cluster, name: str) -> None:
    topic = cluster.topics.loaded.get(name)
    if topic is not None:
        cluster.topics.unload(topic.name)


@dataclass(frozen=True)
class Move(After):
    """Move the namespace bundle of the topic to the next broker."""

    kind = "move"

    def begin(self, stage: Stage, frame: TappedFrame) -> None:
        topic = stage.cluster.topics.loaded.get(str(frame.topic))
        bundle = None if topic is None else stage.cluster.ownership.bundle_of(topic.name)
        if topic is None or bundle is None:
            return
        brokers = [broker for broker in stage.cluster.brokers if broker.alive]
        after = brokers.index(frame.session.broker) + 1
        destination = brokers[after % len(brokers)]
        moved = (str(topic.name.namespace_name), bundle)
        stage.soon(lambda: stage.cluster.unload([moved], destination))


@dataclass(frozen=True)
class Jump(After):
    """Advance the clock by the seconds of the decision."""

    kind = "jump"

    def act(self, strike: Strike) -> Iterator[Piece]:
        yield strike.untouched()
        stage, seconds = chosen(strike).stage, value_of(strike)
        stage.soon(lambda: stage.lab.clock.advance(seconds))


@dataclass(frozen=True)
class TimeOut(Action):
    """Abort the transaction of the frame, as after its timeout, before the frame is handled."""

    kind = "time-out"

    def act(self, strike: Strike) -> Iterator[Piece]:
        stage, body = chosen(strike).stage, strike.frame.body
        coordinators = stage.cluster.coordinators
        coordinator = None if coordinators is None else coordinators.anywhere(body.txnid_most_bits)
        if coordinator is not None:
            coordinator.time_out(body.txnid_least_bits)
        yield strike.untouched()


@dataclass(frozen=True)
class Crash(Action):
    """End all brokers instead of sending the frame, and start them again with what was stored."""

    kind = "crash"

    def act(self, strike: Strike) -> Iterator[Piece]:
        stage = chosen(strike).stage
        yield strike.lost("closed")
        strike.close()
        for broker in stage.cluster.brokers:
            broker.close_sessions()
        stage.soon(stage.lab.state.crash)


# moments: predicates of frames


def consumer_of(frame: TappedFrame) -> Consumer | None:
    """Return the consumer of this broker that the frame concerns, or None."""
    consumer = frame.open_consumer
    return consumer if isinstance(consumer, Consumer) else None


def is_persistent(frame: TappedFrame) -> bool:
    return str(frame.topic).startswith("persistent://")


def on_topic(frame: TappedFrame) -> bool:
    return "://" in str(frame.topic)


def of_several_brokers(frame: TappedFrame) -> bool:
    return on_topic(frame) and len(frame.session.broker.cluster.brokers) > 1


def is_redelivered(frame: TappedFrame) -> bool:
    return consumer_of(frame) is not None and is_persistent(frame)


def among_others(frame: TappedFrame) -> bool:
    """Return whether another consumer can take over a Failover subscription or a range of keys."""
    consumer = consumer_of(frame)
    takes_turns = (pb.CommandSubscribe.Failover, pb.CommandSubscribe.Key_Shared)
    return consumer is not None and consumer.type in takes_turns and len(consumer.subscription.consumers) > 1


def is_unordered(frame: TappedFrame) -> bool:
    """Return whether some messages of the consumer have no order."""
    consumer = frame.open_consumer
    return consumer is not None and consumer.type in (pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared)


def may_overtake(later: TappedFrame, earlier: TappedFrame) -> bool:
    """Return whether nothing orders two messages of a connection: the type Shared, or Key_Shared and other keys."""
    consumer = earlier.open_consumer
    if consumer is None or later.spec is not earlier.spec or later.open_consumer is not consumer:
        return False
    keys = _key_of(later), _key_of(earlier)
    return consumer.type == pb.CommandSubscribe.Shared or (None not in keys and keys[0] != keys[1])


def _key_of(frame: TappedFrame) -> bytes | None:
    """Return the key of a message, or None for a batch and for a message without a key."""
    with suppress(EntryError):
        metadata = parse_metadata(frame.entry)
        if not metadata.HasField("num_messages_in_batch"):
            return metadata.ordering_key or metadata.partition_key.encode() or None
    return None


def in_transaction(frame: TappedFrame) -> bool:
    coordinators = frame.session.broker.cluster.coordinators
    return coordinators is not None and coordinators.anywhere(frame.body.txnid_most_bits) is not None


def is_delayed(frame: TappedFrame) -> bool:
    with suppress(EntryError):
        return parse_metadata(frame.entry).HasField("deliver_at_time")
    return False


def is_published(frame: TappedFrame) -> bool:
    """Return whether the broker answers a SEND: a SEND for a producer that the broker has closed has no answer."""
    return frame.body.producer_id in frame.session.producers and is_persistent(frame)
