"""Key_Shared as it was before Pulsar 4.0 (subscriptionKeySharedUseClassicPersistentImplementation)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.dispatch.selector import Selector
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.consumer import Consumer, KeySharedOptions
from pulsarium.broker.model.subscription.reason import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class RecentlyJoinedDispatcher(KeySharedDispatcher):
    """Hashes do not drain. A consumer that joins gets nothing that is read later until all that was read before is
    acknowledged, by whomever: so no key can be with two consumers (B-12).
    """

    def __init__(self, subscription: Subscription, selector: Selector, options: KeySharedOptions) -> None:
        super().__init__(subscription, selector, options)
        self.drains = False
        self.joined: dict[Consumer, Position] = {}  # where reading stood then
        self._too_new = PositionSet()  # entries for those

    def add_consumer(self, consumer: Consumer) -> None:
        cursor = self.cursor
        owes = cursor.ledger.next(cursor.mark_delete) < cursor.read_position
        if self.consumers and owes and not self.out_of_order:
            self.joined[consumer] = cursor.read_position
        super().add_consumer(consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        self.joined.pop(consumer, None)
        if len(self.consumers) == 2:  # the one that stays need not wait for itself
            self.joined.clear()
        super().remove_consumer(consumer)

    def _reassign(self) -> None:
        super()._reassign()
        self._try_again()

    def _try_again(self) -> None:
        self._again(self._too_new)
        self._too_new.clear()

    def _settled(self, positions: Sequence[Position]) -> None:
        super()._settled(positions)
        if self.joined:
            self._subscription.dispatch_soon()

    def dispatch(self) -> Reason:
        if self.joined:
            self._let_go()
        return super().dispatch()

    def _let_go(self) -> None:
        """Those who joined before the first entry that is not acknowledged are like all others now."""
        cursor = self.cursor
        first = cursor.ledger.next(cursor.mark_delete)
        left = {consumer: position for consumer, position in self.joined.items() if position > first}
        if len(left) < len(self.joined):
            self.joined = left
            self._try_again()

    def _holds_back(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        if super()._holds_back(consumer, position, metadata):
            return True
        if consumer not in self.joined or position < min(self.joined.values()):
            return False
        self._too_new.add(position)
        return True

    @property
    def waiting_count(self) -> int:
        return super().waiting_count + len(self._too_new)

    def _forget_everything(self) -> None:
        super()._forget_everything()
        self.joined.clear()
        self._too_new.clear()

    def undelivered(self) -> list[Iterable[Position]]:
        return [*super().undelivered(), self._too_new]

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        return Reason.RECENTLY_JOINED if position in self._too_new else super().why(position, metadata)
