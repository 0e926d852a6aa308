"""A topic, its consumers, and an account of what each of them must and must not get."""

from __future__ import annotations

from dataclasses import dataclass, field

from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Type, Wire, batch_of, message_id, plain, position_of

MOMENT = 0.01  # seconds of the test's clock; everything that is due has happened by then


@dataclass
class Owed:
    """What a consumer has, by the account."""

    permits: int = 0
    unacked: set[Position] = field(default_factory=set)


class History:
    """Drives one subscription and checks every MESSAGE against the account.

    On Exclusive the account knows exactly what comes next. On Shared it knows what may not come: what is acknowledged,
    what another consumer owes, more than the permits, a wrong redelivery count; in the end everything must have come.
    """

    def __init__(self, type: int) -> None:
        self.bed: Bed
        self.sender: Wire
        self.type = type
        self.positions: list[Position] = []
        self.sizes: dict[Position, int] = {}  # messages of each entry
        self.acked: set[Position] = set()
        self.next = 0  # Exclusive: index of the entry that is read next
        self.newest = EARLIEST  # Shared: the last entry that was delivered for the first time
        self.counts: dict[Position, int] = {}  # Shared: redeliveries
        self.wires: list[Wire] = []
        self.owed: list[Owed] = []

    # the world

    async def begin(self, bed: Bed) -> None:
        """A broker was started, for the first time or again; all connections are new."""
        self.bed = bed
        self.sender = await bed.connect()
        await self.sender.producer()
        self.wires.clear()
        self.owed.clear()
        await self.join()

    async def join(self) -> None:
        wire = await self.bed.connect()
        await wire.subscribe(type=self.type, initialPosition=Earliest)
        if not self.wires:
            self._begin_again()
        self.wires.append(wire)
        self.owed.append(Owed())

    async def leave(self, index: int, *, politely: bool) -> None:
        await self.listen()
        wire = self.wires.pop(index)
        self.owed.pop(index)
        if politely:
            await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        await wire.aclose()
        await self.listen()

    def _begin_again(self) -> None:
        """Nobody was attached: reading begins with the first entry that is not acknowledged, counts are forgotten."""
        self.counts.clear()
        self.newest = EARLIEST
        self.next = self._mark()

    def _mark(self) -> int:
        unacked = (i for i, position in enumerate(self.positions) if position not in self.acked)
        return next(unacked, len(self.positions))

    async def come_back(self) -> None:
        """All consumers were closed by the broker: each subscribes again."""
        for wire in self.wires:
            await wire.expect(Type.CLOSE_CONSUMER)
        self._begin_again()
        for wire, owed in zip(self.wires, self.owed, strict=True):
            await wire.subscribe(type=self.type)
            owed.permits = 0
            owed.unacked.clear()

    # what happens

    async def publish(self, sizes: list[int]) -> None:
        entries = [batch_of(*[b"x"] * size) if size > 1 else plain(b"x") for size in sizes]
        published = await self.sender.publish(*entries)
        assert published == sorted(published)
        assert not self.positions or published[0] > self.positions[-1]
        self.positions += published
        self.sizes.update(zip(published, sizes, strict=True))
        await self.listen()

    async def flow(self, index: int, permits: int) -> None:
        await self.wires[index].flow(permits)
        self.owed[index].permits += permits
        await self.listen()

    async def ack(self, index: int, positions: list[Position]) -> None:
        await self.wires[index].ack(*positions)
        self._acknowledged(set(positions))
        await self.listen()

    async def ack_through(self, index: int, position: Position) -> None:
        """Cumulatively; only on Exclusive."""
        await self.wires[index].ack(position, type=1)
        self._acknowledged({each for each in self.positions if each <= position})
        await self.listen()

    def _acknowledged(self, positions: set[Position]) -> None:
        self.acked |= positions
        for owed in self.owed:
            owed.unacked -= positions
        for position in positions:
            self.counts.pop(position, None)
        self.next = max(self.next, self._mark())

    async def redeliver(self, index: int, positions: list[Position]) -> None:
        """Of Shared, the named ones, or all that the consumer owes."""
        await self.wires[index].redeliver(positions)
        if self.type == Exclusive:
            self.owed[index].unacked.clear()
            self.next = self._mark()
        else:
            for position in set(positions) or set(self.owed[index].unacked):
                for owed in self.owed:
                    if position in owed.unacked:
                        owed.unacked.discard(position)
                        self.counts[position] = self.counts.get(position, 0) + 1
        await self.listen()

    async def seek(self, index: int, target: Position) -> None:
        wire = self.wires[index]
        await wire.write(wire.numbered(Type.SEEK, consumer_id=0, message_id=message_id(target)))
        request = wire.requests
        self.acked = set(self.positions) if target == LATEST else {each for each in self.positions if each < target}
        await self.come_back_from(request, wire)

    async def come_back_from(self, request: int, wire: Wire) -> None:
        assert (await wire.reply(request)).type == Type.SUCCESS
        await self.come_back()
        await self.listen()

    async def unload(self) -> None:
        self.bed.broker.topics.unload(TopicName.parse(TOPIC))
        await self.sender.expect(Type.CLOSE_PRODUCER)
        await self.sender.producer()
        await self.come_back()
        await self.listen()

    # what comes of it

    async def listen(self) -> None:
        """Check all that has arrived, and on Exclusive that it is all that should have."""
        for index, wire in enumerate(self.wires):
            for command, _ in await wire.rest(MOMENT):
                assert command.type == Type.MESSAGE, command
                self._delivered(index, position_of(command.message.message_id), command.message.redelivery_count)
        if self.type == Exclusive:
            for owed in self.owed:
                assert owed.permits <= 0 or self._expected() is None
        elif any(owed.permits > 0 for owed in self.owed):
            assert self.missing() == set()

    def _expected(self) -> Position | None:
        unacked = (each for each in self.positions[self.next :] if each not in self.acked)
        return next(unacked, None)

    def _delivered(self, index: int, position: Position, count: int) -> None:
        owed = self.owed[index]
        assert owed.permits > 0
        owed.permits -= self.sizes[position]
        assert position not in self.acked
        if self.type == Exclusive:
            assert position == self._expected()
            assert count == 0
            self.next = self.positions.index(position) + 1
        else:
            assert not any(position in other.unacked for other in self.owed)
            assert count == self.counts.get(position, 0)
        owed.unacked.add(position)

    def missing(self) -> set[Position]:
        """What is neither acknowledged nor with a consumer."""
        return set(self.positions) - self.acked - {each for owed in self.owed for each in owed.unacked}

    async def finish(self) -> None:
        """With permits for all, everything that is not acknowledged has been delivered, or is now."""
        if not self.wires:
            await self.join()
        for index in range(len(self.wires)):
            await self.flow(index, 10_000)
        if self.type == Exclusive:
            await self.redeliver(0, [])
        assert self.missing() == set()
        for index, owed in enumerate(self.owed):
            if owed.unacked:
                await self.ack(index, sorted(owed.unacked))
        stats = await self.wires[0].ask(Type.CONSUMER_STATS, consumer_id=0)
        assert (stats.msgBacklog, stats.unackedMessages) == (0, 0)
