"""Drive transactions on a broker and in a model, and compare the messages that clients see."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import trio

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.entry import payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.transaction_model import Entry, Model, Place, Seen, State, Txn
from tests.broker.wire import Bed, Earliest, Shared, Type, Wire, frame_of, message_id, plain

ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
TOPICS = [f"persistent://public/default/{name}" for name in "abc"]
SUBSCRIPTIONS = ["one", "two"]
PLACES: list[Place] = [(topic, subscription) for topic in TOPICS for subscription in SUBSCRIPTIONS]
LIFE = 30.0  # seconds, after which a transaction times out
MOMENT = 0.001  # seconds of the test's clock, after which all has happened that needs no timer


class Driver:
    """An application that publishes, acknowledges and ends transactions. Observers connect for each comparison."""

    def __init__(self) -> None:
        self.model = Model(
            {topic: [] for topic in TOPICS}, {place: set() for place in PLACES}, {place: {} for place in PLACES}
        )
        self.disk = HeldStorage()
        self.bed: Bed
        self.wire: Wire
        self._sent = 0
        self._waited = 0.0

    async def begin_life(self, bed: Bed) -> None:
        """Connect to a broker that has just started."""
        self.bed = bed
        await self._connect()

    async def _connect(self) -> None:
        self.wire = await self.bed.connect()
        await self.wire.ask(Type.LOOKUP, topic=ASSIGN, authoritative=True)
        assert not (await self.wire.ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=0)).HasField("error")
        for number, topic in enumerate(TOPICS):
            await self.wire.producer(topic, number)
        for number, (topic, name) in enumerate(PLACES):
            await self.wire.subscribe(topic, name, Shared, number, initialPosition=Earliest)
        for number, topic in enumerate(TOPICS, len(PLACES)):  # so that no ledger is trimmed
            await self.wire.subscribe(topic, "holder", Shared, number, initialPosition=Earliest)

    def unload(self, topic: str) -> None:
        self.bed.broker.topics.unload(TopicName.parse(topic))

    async def again(self) -> None:
        """Open a new connection, as clients do after an unload."""
        await self.wire.aclose()
        await self._connect()

    # the application

    async def begin(self) -> None:
        reply = await self.wire.ask(Type.NEW_TXN, tc_id=0, txn_ttl_millis=int(LIFE * 1000))
        assert not reply.HasField("error"), reply
        assert reply.txnid_least_bits not in self.model.states, "the broker gave out a transaction id twice"
        self.model.states[reply.txnid_least_bits] = State.OPEN

    async def publish(self, txn: Txn | None, topic: str, count: int) -> None:
        number = TOPICS.index(topic)
        bits: dict[str, Any] = {} if txn is None else bits_of(txn)
        if txn is not None:
            reply = await self.wire.ask(Type.ADD_PARTITION_TO_TXN, **bits, partitions=[topic])
            assert not reply.HasField("error"), reply
        payloads = [b"%04d" % (self._sent + place) for place in range(count)]
        self._sent += count
        sends = [
            frame_of(Type.SEND, plain(payload, **bits), producer_id=number, sequence_id=0, **bits)
            for payload in payloads
        ]
        await self.wire.write(b"".join(sends))
        for position, payload in zip(await self.wire.receipts(count), payloads, strict=True):
            self.model.topics[topic].append(Entry(position, payload, txn))

    async def ack(self, txn: Txn | None, place: Place, entry: Entry) -> None:
        bits: dict[str, Any] = {} if txn is None else bits_of(txn)
        if txn is not None:
            there = [{"topic": place[0], "subscription": place[1]}]
            reply = await self.wire.ask(Type.ADD_SUBSCRIPTION_TO_TXN, **bits, subscription=there)
            assert not reply.HasField("error"), reply
        conflicts = txn is not None and self.model.conflicts(place, entry.position)
        ids = [message_id(entry.position)]
        number = PLACES.index(place)
        reply = await self.wire.ask(Type.ACK, consumer_id=number, ack_type=0, message_id=ids, **bits)
        assert reply.HasField("error") == conflicts, reply
        if conflicts:
            assert reply.error == pb.TransactionConflict
        elif txn is None:
            self.model.acked[place].add(entry.position)
        else:
            self.model.pending[place][entry.position] = txn

    async def end(self, txn: Txn, *, commit: bool) -> None:
        reply = await self.wire.ask(Type.END_TXN, **bits_of(txn), txn_action=pb.COMMIT if commit else pb.ABORT)
        assert not reply.HasField("error"), reply
        self.model.ended(txn, State.COMMITTED if commit else State.ABORTED)

    async def end_held(self, txn: Txn, *, commit: bool) -> int:
        """Send END_TXN while commits wait, expect that no client sees an effect, and return the request id."""
        watchers = [await self._reader(topic) for topic in TOPICS]
        for watcher in watchers:
            await watcher.rest(MOMENT)
        self.disk.hold(reads=False)
        action = pb.COMMIT if commit else pb.ABORT
        await self.wire.write(self.wire.numbered(Type.END_TXN, **bits_of(txn), txn_action=action))
        for watcher in (*watchers, self.wire):
            await watcher.quiet(MOMENT)
        for watcher in watchers:
            await watcher.aclose()
        return self.wire.requests

    async def end_kept(self, request: int, txn: Txn, *, commit: bool) -> None:
        """Perform the commit of END_TXN, and expect its answer."""
        self.disk.let_go()
        reply = await self.wire.reply(request)
        assert not reply.endTxnResponse.HasField("error"), reply
        self.model.ended(txn, State.COMMITTED if commit else State.ABORTED)

    async def ended_or_not(self, txn: Txn, *, commit: bool) -> None:
        """Repeat an END_TXN whose broker was killed before its answer. Expect all effects of the first one, or none."""
        before, seen = deepcopy(self.model), await self.seen()
        self.model.ended(txn, State.COMMITTED if commit else State.ABORTED)
        reply = await self.wire.ask(Type.END_TXN, **bits_of(txn), txn_action=pb.COMMIT if commit else pb.ABORT)
        if reply.HasField("error"):
            assert reply.error == pb.TransactionNotFound
            self.compare(seen, self.model.seen())
        else:
            self.compare(seen, before.seen())

    async def wait(self) -> None:
        """Sleep until all open transactions have timed out.

        A restart sets the broker's clock back to the machine's. Transactions that began before it need `_waited` more.
        """
        seconds = LIFE + self._waited + 1
        self._waited += seconds
        await trio.sleep(seconds)
        for txn in self.model.open:
            self.model.ended(txn, State.ABORTED)

    # observers

    async def check(self) -> None:
        self.compare(await self.seen(), self.model.seen())

    @staticmethod
    def compare(seen: Seen, expected: Seen) -> None:
        for topic in TOPICS:
            assert seen.read[topic] == expected.read[topic], f"read from {topic}"
        for place in PLACES:
            assert seen.left[place] == expected.left[place], f"backlog of {place}"

    async def seen(self) -> Seen:
        left = {place: sorted(await self._taken(await self._observer(*place, type=Shared))) for place in PLACES}
        return Seen(await self.read(), left)

    async def read(self) -> dict[str, list[bytes]]:
        """Return the messages of each topic that a reader gets from the beginning."""
        return {topic: await self._taken(await self._reader(topic)) for topic in TOPICS}

    async def _reader(self, topic: str) -> Wire:
        start = message_id(Position(-1, -1))
        return await self._observer(topic, "reader", durable=False, start_message_id=start)

    async def _observer(self, topic: str, name: str, **options: Any) -> Wire:
        wire = await self.bed.connect()
        await wire.subscribe(topic, name, initialPosition=Earliest, **options)
        await wire.flow()
        return wire

    async def _taken(self, observer: Wire) -> list[bytes]:
        """Return the messages that a consumer got, and close its connection."""
        frames = await observer.rest(MOMENT)
        await observer.aclose()
        assert {frame.command.type for frame in frames} <= {Type.MESSAGE, Type.ACTIVE_CONSUMER_CHANGE}, frames
        return [payload_of(trailing) for command, trailing in frames if command.type == Type.MESSAGE]


def bits_of(txn: Txn) -> dict[str, int]:
    return {"txnid_most_bits": 0, "txnid_least_bits": txn}
