"""Shared: whole entries, round robin among the consumers that have permits.

A consumer gets several entries in a row, up to its permits and to the fair share of a read, before the next one has its
turn. An entry with a batch goes to one consumer as a whole, and takes as many permits as messages are left in it. So a
consumer's permits may fall below 0: Pulsar does the same, and clients count on it.

Order is not promised, and an entry that is delivered again goes to whoever can take it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsarium.broker.model.dispatch.sharing import SharingDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Consumer, Subscription, reads
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MOST_CHUNKED = 10_000  # messages of a subscription whose owner is known


def is_last_chunk(metadata: pb.MessageMetadata) -> bool:
    """Return whether a chunk is the last one of its message."""
    return metadata.chunk_id == metadata.num_chunks_from_msg - 1


class SharedDispatcher(SharingDispatcher):
    """Deliver up to dispatcherMaxRoundRobinBatchSize entries to one consumer, then go on to the next.

    All chunks of a message go to the consumer that got one of them before, in whatever order they come.
    """

    type = pb.CommandSubscribe.Shared

    def __init__(self, subscription: Subscription) -> None:
        super().__init__(subscription)
        self._in_a_row = subscription.topic.stores.config.dispatcherMaxRoundRobinBatchSize
        # consumers by the uuid of a message whose last chunk has not gone out yet
        self._chunked: dict[str, Consumer] = {}

    def remove_consumer(self, consumer: Consumer) -> None:
        for uuid in [uuid for uuid, owner in self._chunked.items() if owner is consumer]:
            del self._chunked[uuid]
        super().remove_consumer(consumer)

    def consumer_for(self, entry: bytes) -> Consumer | None:
        return self._rotation.next()

    def dispatch(self) -> Reason:
        cursor = self.cursor
        if self._to_serve and (stopped := self._serve_waiting()) is not None:
            return stopped
        for _ in reads():
            replays = bool(self.replay)
            if not replays and (due := self.delayed.take_due(self._max_read)):
                self._again(due)
                replays = True
            if not replays:
                if not cursor.has_more():
                    return self.nothing_more() if self.consumers else Reason.NO_CONSUMER
                if self.blocked:
                    return Reason.SUBSCRIPTION_OWES
            limit = self._in_a_row if len(self.consumers) > 1 else self._max_read
            if self.throttle is not None and self._any_ready() and not (limit := self.throttle.entries(limit)):
                return Reason.RATE_LIMITED  # the turn stays with the same consumer
            consumer = self._rotation.next()
            if consumer is None:
                return self.blocked_reason()
            stopped = self._replay_to(consumer, limit) if replays else self._read_for(consumer, limit)
            if stopped is not None:
                return stopped
            if self._to_serve and (stopped := self._serve_waiting()) is not None:
                return stopped
        return self._dispatch_again()

    def _replay_to(self, consumer: Consumer, limit: int) -> Reason | None:
        """Redeliver entries to a consumer. Return the reason if all delivery must stop, else None."""
        permits = self._capacity(consumer)
        entries = self._stored(self.replay, min(permits, limit))
        if entries is None:
            return Reason.LOADING
        self._hand_over(consumer, entries, permits, self.replay)
        return None

    def _read_for(self, consumer: Consumer, limit: int) -> Reason | None:
        """Read new entries for a consumer. Return the reason if all delivery must stop, else None."""
        cursor, permits = self.cursor, self._capacity(consumer)
        entries = cursor.read(min(permits, limit), self._subscription.dispatch_soon)
        if entries is None:
            return Reason.LOADING
        taken = self._hand_over(consumer, entries, permits)
        if taken < len(entries):
            cursor.read_position = entries[taken][0]
        return None

    def _holds_back(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        if super()._holds_back(consumer, position, metadata):
            return True
        if not (metadata.uuid and metadata.HasField("chunk_id") and metadata.HasField("num_chunks_from_msg")):
            return False
        return self._holds_back_chunk(consumer, position, metadata)

    def _holds_back_chunk(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        if len(self._chunked) >= MOST_CHUNKED:  # messages whose last chunk never came
            del self._chunked[next(iter(self._chunked))]
        owner = self._chunked.setdefault(metadata.uuid, consumer)
        if owner is not consumer:
            self._wait_for(owner, position)
            return True
        if is_last_chunk(metadata):
            del self._chunked[metadata.uuid]
        return False

    def _forget_everything(self) -> None:
        super()._forget_everything()
        self._chunked.clear()


@dataclass(slots=True)
class Gone:
    """A consumer that has left, with its remaining permits. That many more chunks go to it, and are lost."""

    permits: int


class StallingSharedDispatcher(SharedDispatcher):
    """Shared as in Pulsar 4.2.4, where chunks stop the entries behind them.

    A chunk that its owner cannot take, or that comes before the first chunk of its message, goes back into `replay`,
    which comes before all new entries.

    The owner of a message is the consumer that got its first chunk. A consumer that leaves stays the owner until it
    gets the last chunk, or until the topic is unloaded.
    """

    def __init__(self, subscription: Subscription) -> None:
        super().__init__(subscription)
        self._owners: dict[str, Consumer | Gone] = {}  # by the uuid of a message whose last chunk has not gone out yet
        self._put_back = 0  # chunks put back by the current hand-over

    def remove_consumer(self, consumer: Consumer) -> None:
        gone = Gone(consumer.permits)
        for uuid in [uuid for uuid, owner in self._owners.items() if owner is consumer]:
            self._owners[uuid] = gone
        super().remove_consumer(consumer)

    def settle(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        waiting = len(self.replay)
        super().settle(consumer, positions)
        if len(self.replay) < waiting:  # the acknowledged entry may have stopped the others
            self._subscription.dispatch_soon()

    def _replay_to(self, consumer: Consumer, limit: int) -> Reason | None:
        entries = self._stored(self.replay, limit)
        if entries is None:
            return Reason.LOADING
        self._put_back = 0
        taken = self._hand_over(consumer, entries, self._capacity(consumer), self.replay)
        return Reason.BEHIND_CHUNK if 0 < taken == self._put_back else None

    def _holds_back_chunk(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        uuid = metadata.uuid
        owner = self._owners.get(uuid)
        if owner is None and metadata.chunk_id == 0:
            owner = self._owners[uuid] = consumer
        if owner is None or (owner is not consumer and not self._takes_one_more(owner)):
            self.replay.add(position)
            self._put_back += 1
            return True
        if owner is not consumer and isinstance(owner, Consumer):
            self._wait_for(owner, position)  # the owner is served next
            return True
        if is_last_chunk(metadata):
            del self._owners[uuid]
        if isinstance(owner, Gone):
            owner.permits -= 1
            return True
        return False

    def _takes_one_more(self, owner: Consumer | Gone) -> bool:
        waiting = self._waiting.get(owner, ()) if isinstance(owner, Consumer) else ()
        return owner.permits > len(waiting)

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        is_chunk = metadata.HasField("chunk_id")
        if is_chunk and metadata.uuid not in self._owners and position in self.replay:
            return Reason.ORPHAN_CHUNK
        return super().why(position, metadata)
