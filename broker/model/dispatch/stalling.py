"""Shared as Pulsar 4.2.4 has it, where chunks stop what comes behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsarium.broker.model.dispatch.shared import SharedDispatcher, is_last_chunk
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.consumer import Consumer
from pulsarium.broker.model.subscription.reason import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@dataclass(slots=True)
class Gone:
    """A consumer that left, and the permits that it had: so many more chunks go to it, and are lost with it."""

    permits: int


class StallingSharedDispatcher(SharedDispatcher):
    """Puts a chunk that its owner cannot be given back into `replay`, which comes before all new entries.

    The owner of a message is the consumer that got its first chunk. Nobody is told when it leaves: it stays the owner
    until the last chunk went to it, or the topic is unloaded.
    """

    def __init__(self, subscription: Subscription) -> None:
        super().__init__(subscription)
        self._owners: dict[str, Consumer | Gone] = {}  # by the uuid of a message whose last chunk did not go out yet
        self._put_back = 0  # chunks of the hand-over that is going on

    def remove_consumer(self, consumer: Consumer) -> None:
        gone = Gone(consumer.permits)
        for uuid in [uuid for uuid, owner in self._owners.items() if owner is consumer]:
            self._owners[uuid] = gone
        super().remove_consumer(consumer)

    def settle(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        waiting = len(self.replay)
        super().settle(consumer, positions)
        if len(self.replay) < waiting:  # perhaps what stopped the others
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
            self._wait_for(owner, position)  # which is served next
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
