"""The older way (subscriptionKeySharedUseConsistentHashing=false): the widest range is halved for each newcomer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.model.dispatch.selector.selector import CeilingSelector
from pulsarium.broker.model.errors import ConsumerAssignError

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.consumer import Consumer


class AutoSplit(CeilingSelector):
    """One range for each consumer. The last ends at 65536, a hash that no key has, and is shown so."""

    def add(self, consumer: Consumer) -> None:
        if not self._owners:
            self._ends.append(self.size)
            self._owners.append(consumer)
            return
        widths = [end - before for before, end in zip([0, *self._ends], self._ends, strict=False)]
        width = max(widths)
        if width <= 1:
            raise ConsumerAssignError(
                f"No more range can assigned to new consumer, assigned consumers {len(self._owners)}"
            )
        self._marks = None
        index = widths.index(width)
        self._ends.insert(index, self._ends[index] - (width >> 1))
        self._owners.insert(index, consumer)

    def remove(self, consumer: Consumer) -> None:
        """The next takes over what a consumer had; the one before does when there is no next."""
        if consumer not in self._owners:
            return
        self._marks = None
        index = self._owners.index(consumer)
        del self._owners[index]
        del self._ends[index - 1 if index and index == len(self._owners) else index]
