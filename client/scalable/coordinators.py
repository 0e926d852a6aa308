"""Find the transaction coordinators of scalable topics (PIP-473)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Link
from pulsarium.client.connection.routes import SessionUpdate
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.errors import PulsarError, TransactionCoordinatorNotFoundError, copy_of, error_of
from pulsarium.client.scalable.seat import Seat, check_scalable
from pulsarium.client.statistics import LinkCounts
from pulsarium.client.topics import MOST_TOPICS
from pulsarium.client.transaction.coordinator import Coordinator
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

UPDATE = pb.BaseCommand.WATCH_TC_ASSIGNMENTS_UPDATE
NAME = "transaction coordinators"


class ScalableCoordinators:
    """Choose the coordinator of each new transaction, in turn. One watch tells the broker of each coordinator."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._all: dict[int, Coordinator] = {}
        self._where: Mapping[int, BrokerUrls] = {}
        self._seat = Seat(brokers, NAME, UPDATE)
        self._turns = itertools.count()
        self._opening = anyio.Lock()
        self._link: Link | None = None
        self._error: PulsarError | None = None

    async def next(self) -> Coordinator:
        """Return the coordinator of the next transaction.

        Raise `NotAllowedError` or `OperationNotSupported` where scalable transactions are off.
        """
        async with self._opening:
            if self._link is None or self._error is not None:
                link = Link(
                    self._brokers,
                    NAME,
                    self._open,
                    LinkCounts(),
                    on_failed=self._failed,
                    connect=self._brokers.connect_to_any,
                    what="watch of",
                )
                await link.start()
                self._link, self._error = link, None
        numbers = sorted(self._all)
        if not numbers:
            raise TransactionCoordinatorNotFoundError("the broker named no transaction coordinator of scalable topics")
        return self._all[numbers[next(self._turns) % len(numbers)]]

    # ---- for the connection

    def on_update(self, update: SessionUpdate) -> None:
        assert isinstance(update, pb.CommandWatchTcAssignmentsUpdate)
        if update.HasField("error"):
            self._seat.fail(error_of(update.error, text_of(update.message)))
            return
        self._where = {
            one.tc_id: BrokerUrls(text_of(one.broker_service_url), text_of(one.broker_service_url_tls))
            for one in update.snapshot.assignments[:MOST_TOPICS]
        }
        for number in self._where:
            if number not in self._all:
                connect = partial(self._connect, number)
                self._all[number] = Coordinator(self._brokers, number, connect, is_scalable=True)
        self._seat.accepted()

    def on_lost(self, error: PulsarError) -> None:
        self._seat.lost(error)
        if self._link is not None:
            self._link.lost(error)

    # ---- its own

    async def _open(self, connection: Connection) -> None:
        check_scalable(connection, "supports_tc_metadata_discovery")
        await self._seat.take(connection, self, _watch)

    def _failed(self, error: PulsarError) -> None:
        self._error = error

    async def _connect(self, number: int) -> Connection:
        """Connect to the current broker of a coordinator. Without one, the request is repeated by its caller."""
        if self._error is not None:
            raise copy_of(self._error)
        where = self._where.get(number)
        if where is None:
            raise TransactionCoordinatorNotFoundError(f"transaction coordinator {number} has no broker at present")
        return await self._brokers.connect_to_broker(where, None)


def _watch(number: int) -> pb.BaseCommand:
    watch = pb.CommandWatchTcAssignments(watch_id=number)
    return pb.BaseCommand(type=pb.BaseCommand.WATCH_TC_ASSIGNMENTS, watchTcAssignments=watch)
