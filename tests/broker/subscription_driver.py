"""Drive a subscription on a broker, and keep its account."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import trio

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.subscription_model import LATEST, TICK, Account, Entry, Member
from tests.broker.subscription_talk import MOMENT, Talk
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Earliest,
    Failover,
    Individual,
    Type,
    Wire,
    batch_of,
    frame_of,
    message_id,
    plain,
)

ROUNDS = 8  # of acknowledging everything: messages of one key may come from several consumers, one after the other
SAVED = 0.2  # seconds, after which an ACK without a request id is stored


class Driver(Talk):
    """A driver of one subscription. Each consumer has a connection of its own."""

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self.sender: Wire
        self._unkept: dict[Position, int] | None = None  # while commits wait: the ack set of each entry before
        self._unconfirmed: list[tuple[int, str, float]] = []  # entries that were published meanwhile
        self._unanswered = False  # an ACK without a request id was sent

    # broker and connections

    async def begin(self, bed: Bed) -> None:
        """Connect the producer to a broker that has just started, and has no other clients."""
        self.bed = bed
        self._calm = False
        self.account.now = self._now
        self.sender = await bed.connect()
        await self.sender.producer()

    def end(self) -> None:
        """Detach all consumers in the account, because the broker has ended."""
        for member in list(self.members):
            self.account.left(member)

    async def crash(self) -> None:
        """Prepare for a kill of the broker: keep all that was answered, and forget the commits that wait."""
        if self._unkept is None:
            await self._saved()
        else:
            await self.settle()
            for position, remaining in self._unkept.items():
                self.account.entries[position].remaining = remaining
        vain, self.disk = self.disk, self.disk.left_behind()
        vain.let_go()
        self._unkept = None
        self._unconfirmed.clear()
        self._asked.clear()

    async def hold(self, *, reads: bool) -> None:
        """Let commits wait, and with `reads` also reads, until `release` or a step that needs a commit."""
        await self.release()
        await self._saved()
        self._unkept = {position: entry.remaining for position, entry in self.account.entries.items()}
        self.disk.hold(reads=reads)
        self._calm = False

    async def _saved(self) -> None:
        """Wait until all acknowledgements are stored, also those without a request id."""
        await self.settle()
        if self._unanswered:
            await trio.sleep(SAVED)
            self._unanswered = False

    async def release(self) -> None:
        """Perform the commits that wait, and enter the published entries in the account."""
        await self.settle()
        if self._unkept is not None:
            self._unkept = None
            self.disk.let_go()
            made, self._unconfirmed = self._unconfirmed, []
            await self._confirmed(made)
            await self.settle()

    async def join(self, name: str) -> None:
        await self.release()
        await self._attach(Member(name, await self.bed.connect()))

    async def _attach(self, member: Member) -> None:
        meta = pb.KeySharedMeta(keySharedMode=pb.AUTO_SPLIT)
        await member.wire.subscribe(
            type=self.account.type, consumer_name=member.name, initialPosition=Earliest, keySharedMeta=meta
        )
        self.account.joined(member)
        self._calm = False

    async def leave(self, member: Member, *, politely: bool) -> None:
        """Close the consumer in one write with its earlier commands, or just drop its connection."""
        if self._unkept is not None:
            await self.release()
        if politely:
            await self.say(member, member.wire.numbered(Type.CLOSE_CONSUMER, consumer_id=0))
            self.account.left(member)
            await self._flush()
            self._heard(member, await member.wire.rest(MOMENT))
        else:
            await self.settle()
            self.account.left(member)
        await member.wire.aclose()
        self._calm = False
        await self.settle()

    async def change(self, type: int) -> None:
        """Close all consumers. The next ones subscribe with another type."""
        await self.settle()
        for member in list(self.members):
            await self.leave(member, politely=True)
        self.account.type = type

    async def unload(self) -> None:
        await self.release()
        self.bed.broker.topics.unload(TopicName.parse(TOPIC))
        await self.sender.expect(Type.CLOSE_PRODUCER)
        await self.sender.producer()
        await self._come_back()

    async def _come_back(self, *, passive_stay: bool = False) -> None:
        """Subscribe the consumers again that the broker has closed, in the same order.

        With `passive_stay`, the broker has closed only the active consumer, otherwise all consumers.
        """
        old = list(self.members)
        for member in old:
            self._heard(member, await member.wire.rest(MOMENT))
        closed = [member for member in old if member not in self.members]
        assert len(closed) == (1 if passive_stay else len(old)), f"closed consumers: {len(closed)} of {len(old)}"
        for member in closed:
            await self._attach(Member(member.name, member.wire))

    # producers and consumers

    async def publish(self, entries: Iterable[tuple[int, str, float]]) -> None:
        """Publish entries. Each is given by its number of messages, its key and its delay in seconds."""
        await self.settle()
        made: list[tuple[int, str, float]] = []
        frames: list[bytes] = []
        for size, key, delay in entries:
            due = self._now() + delay if delay else 0.0
            more: dict[str, Any] = {"deliver_at_time": round(due * 1000)} if delay else {}
            frames.append((batch_of if size > 1 else plain)(*[b"x"] * size, partition_key=key, **more))
            made.append((size, key, due))
        await self.sender.write(self.sender.sends(*frames))
        self._calm = False
        if self._unkept is None:
            await self._confirmed(made)
        else:
            self._unconfirmed += made

    async def _confirmed(self, made: list[tuple[int, str, float]]) -> None:
        for position, (size, key, due) in zip(await self.sender.receipts(len(made)), made, strict=True):
            self.account.entries[position] = Entry(position, (1 << size) - 1, key, due)
        self._calm = False

    async def flow(self, member: Member, permits: int) -> None:
        await self.say(member, frame_of(Type.FLOW, consumer_id=0, messagePermits=permits))
        member.permits += permits

    async def ack(self, member: Member, acks: dict[Position, int], *, cumulative: bool = False, asks: bool) -> None:
        """Acknowledge positions, each with the ack set that remains. 0 is sent without an ack set (S54-10)."""
        ids = [message_id(position, ack_set=[left] if left else []) for position, left in acks.items()]
        kind = Cumulative if cumulative else Individual
        if asks:
            frame = member.wire.numbered(Type.ACK, consumer_id=0, ack_type=kind, message_id=ids)
            request = member.wire.requests
            await self.say(member, frame)
            self._asked[member, request] = None
        else:
            await self.say(member, frame_of(Type.ACK, consumer_id=0, ack_type=kind, message_id=ids))
            self._unanswered = True
        for position, left in acks.items():
            (self.account.acked_through if cumulative else self.account.acked)(position, left)

    async def redeliver(self, member: Member, positions: Sequence[Position]) -> None:
        ids = [message_id(position) for position in positions]
        await self.say(member, frame_of(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=0, message_ids=ids))
        self.account.redelivered(member, positions)

    async def seek(self, member: Member, target: Position, remaining: int) -> None:
        """Seek to an entry, or to the messages `remaining` in its batch. A negative `remaining` is the whole entry."""
        if self._unkept is not None:
            await self.release()
        ack_set = [] if remaining < 0 else [remaining]
        frame = member.wire.numbered(Type.SEEK, consumer_id=0, message_id=message_id(target, ack_set=ack_set))
        await self.say(member, frame)
        await self._flush()
        await self._come_back(passive_stay=self.account.type == Failover)
        self.account.moved(target, remaining)

    async def pass_time(self, quarters: int) -> None:
        """Sleep for quarters of a second, and check the broker after each."""
        for _ in range(quarters):
            await self.settle()
            await trio.sleep(0.25)
            self._calm = False
        await self.settle()

    async def finish(self) -> None:
        """Give permits to all consumers, and expect that the whole backlog is delivered and can be acknowledged."""
        await self.release()
        if not self.members:
            await self.join("a")
        for member in self.members:
            await self.flow(member, 10_000)
        await self.settle()
        await trio.sleep(
            max([0.0, *(entry.due - self._now() for entry in self.account.unacked_entries())]) + LATEST + TICK
        )
        for _ in range(ROUNDS):
            await self.pass_time(1)
            for member in self.members:
                held = {entry.position: 0 for entry in self.account.of(member)}
                if held and (not self.account.single or member is self.account.active):
                    await self.ack(member, held, asks=True)
        await self.settle()
        left = [entry.position for entry in self.account.unacked_entries()]
        assert not left, f"not delivered: {left}"
