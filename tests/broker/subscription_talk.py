"""Send commands of one subscription's consumers to a broker, and enter the answers in the account."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from tests.broker.held import HeldStorage
from tests.broker.subscription_model import Account, Member
from tests.broker.wire import Bed, Received, Type, position_of

MOMENT = 0.001  # seconds of the test's clock, after which all has happened that needs no timer


class Talk:
    """A conversation of one subscription's consumers with a broker.

    Commands of one consumer wait until `settle`, or until another consumer sends a command. So the broker gets them in
    one read, and handles them in one turn.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self.bed: Bed
        self.disk = HeldStorage()
        self._held: tuple[Member, list[bytes]] | None = None
        self._calm = False  # no command was sent, and no time passed, since the last `settle`
        self._asked: dict[tuple[Member, int], None] = {}  # ACKs that must be answered

    @property
    def members(self) -> list[Member]:
        return self.account.members

    async def say(self, member: Member, frame: bytes) -> None:
        if self._held is not None and self._held[0] is member:
            self._held[1].append(frame)
        else:
            await self.settle()
            self._held = (member, [frame])

    async def _flush(self) -> None:
        if self._held is not None:
            (member, frames), self._held = self._held, None
            await member.wire.write(b"".join(frames))
            self._calm = False

    async def settle(self) -> None:
        """Send the commands that wait, let the broker handle them, and compare the broker with the account."""
        await self._flush()
        if self._calm:
            return
        self._calm = True
        await trio.sleep(MOMENT)
        asked: list[tuple[Member, int]] = []
        for member in self.members:
            await member.wire.write(member.wire.numbered(Type.CONSUMER_STATS, consumer_id=0))
            asked.append((member, member.wire.requests))
        answers = [(member, (await member.wire.reply(request)).consumerStatsResponse) for member, request in asked]
        for member, _ in asked:
            self._heard(member, list(member.wire.inbox))
            member.wire.inbox.clear()
        assert self.disk.holding or not self._asked, "an ACK was not answered"
        if not self.disk.holding_reads:
            self.account.check()
        for member, stats in answers:
            said = (stats.availablePermits, stats.unackedMessages, stats.msgBacklog)
            ours = (
                member.permits % 2**64,
                self.account.unacked(member),
                sum(1 for _ in self.account.unacked_entries()),
            )
            assert said == ours, f"{member.name} (permits, unacknowledged, backlog): {said}, not {ours}"

    def _heard(self, member: Member, frames: Iterable[Received]) -> None:
        for command, _ in frames:
            if command.type == Type.MESSAGE:
                body = command.message
                where = position_of(body.message_id)
                self.account.delivered(member, where, body.redelivery_count, list(body.ack_set))
            elif command.type == Type.ACTIVE_CONSUMER_CHANGE:
                self.account.told(member, active=command.active_consumer_change.is_active)
            elif command.type == Type.ACK_RESPONSE:
                assert not command.ackResponse.HasField("error"), command
                assert not self.disk.holding, "an ACK was answered before it was stored"
                del self._asked[member, command.ackResponse.request_id]
            elif command.type == Type.CLOSE_CONSUMER:
                self.account.left(member)
            else:
                assert command.type == Type.SUCCESS, command

    def _now(self) -> float:
        """Return the broker's time in seconds since the epoch."""
        return self.bed.broker.clock.now_ms() / 1000
