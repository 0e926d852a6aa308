"""The model's view of connections.

Sessions implement these protocols, so that the model needs no socket and no frame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeAlias, cast

from pulsarium.broker.model.errors import OwningConnection
from pulsarium.broker.model.ledger.position import Position


class Delivery(NamedTuple):
    """A stored entry on its way to a consumer."""

    position: Position
    entry: bytes
    messages: int  # messages that the consumer does not have yet, which is the cost in permits
    redelivery_count: int
    ack_set: Sequence[int]  # ack set of the batch's remaining messages; empty for all


_Fields: TypeAlias = tuple[Position, bytes, int, int, Sequence[int]]

delivery_of: Final = cast("Callable[[_Fields], Delivery]", partial(tuple.__new__, Delivery))
"""Make a delivery of its fields, sooner than `Delivery(...)`, see `position_of`."""


class AssignedBroker(NamedTuple):
    """The broker that serves a topic from now on, if known (PIP-307).

    With `migrated`, it is one of the cluster to which the topic has migrated (PIP-188).
    """

    service_url: str
    service_url_tls: str = ""
    migrated: bool = False


class Holder(Protocol):
    """A producer or consumer, as a refusal names it."""

    @property
    def name(self) -> str: ...
    @property
    def client(self) -> Client: ...


_MOST_HOLDERS: Final = 5


def holders(known: Collection[Holder]) -> str:
    """Return the names and addresses of producers or consumers, for the log."""
    first = ", ".join(f"{each.name} at {each.client.address}" for each in islice(known, _MOST_HOLDERS))
    return f"{first} and {len(known) - _MOST_HOLDERS} more" if len(known) > _MOST_HOLDERS else first


class Client(OwningConnection, Protocol):
    """A client connection, as consumers see it. `topic/producers.py` has the producers' view."""

    address: str
    client_version: str

    @property
    def room(self) -> int:
        """Return how many bytes of messages the connection takes now.

        0 or less is no room. Once there is room again, the session dispatches to its consumers.
        """
        ...

    def messages(
        self, consumer_id: int, partition: int, consumer_epoch: int | None, deliveries: Sequence[Delivery]
    ) -> None:
        """Send MESSAGE for each of `deliveries`."""
        ...

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None: ...

    def reached_end_of_topic(self, consumer_id: int) -> None:
        """Send REACHED_END_OF_TOPIC, unless the client does not support it."""
        ...

    def close_consumer(self, consumer_id: int, assigned: AssignedBroker | None = None) -> None:
        """Tell the client that the broker closed its consumer, and forget the consumer."""
        ...

    def close(self, reason: str) -> None: ...
