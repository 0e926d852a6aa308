"""Carry one connection of a client to a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final

import trio
from google.protobuf.message import DecodeError

from pulsarium.broker.cluster import Broker
from pulsarium.broker.lab.masks import Mask
from pulsarium.broker.lab.proxy.cutter import HEAD, NO_TYPE, Cut, Cutter, kind_of
from pulsarium.broker.lab.proxy.masking import mask_connect, mask_connected
from pulsarium.broker.lab.proxy.opened import OF_BROKER, OF_CLIENT, OpenedByClient, ProxiedConsumer, ProxiedProducer
from pulsarium.broker.lab.proxy.outbox import Outbox
from pulsarium.broker.lab.proxy.rewriting import WITH_URLS, Through, lead
from pulsarium.broker.lab.tap import each_once, taken_apart
from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.dialling import is_reset
from pulsarium.broker.session.outgoing import MOST_WAITING, Frame, Tap
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import FRAME_PADDING, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb

log = PartLog("proxy")

LINGER: Final = 5.0  # seconds that one side may go on sending after the other has ended
HELD: Final = 1 << 20  # bytes for the client that a tap may hold before the broker is read no more
LAST_WORDS: Final = 1.0  # seconds for the last bytes of a connection that the lab closes
READ: Final = 1 << 19  # large batches need fewer turns of the loop than with 1 << 18
BEGIN: Final = 16  # bytes that tell whether a side speaks the protocol
_CLIENT, _BROKER = Direction.CLIENT, Direction.BROKER
_FROM_CLIENT: Final = OF_CLIENT
_FROM_BROKER: Final = OF_BROKER | WITH_URLS
_CONNECT, _CONNECTED = pb.BaseCommand.CONNECT, pb.BaseCommand.CONNECTED

MaskOf = Callable[["ProxiedConnection"], Mask | None]
"""Return the mask of a connection that begins."""


class ProxiedConnection:
    """Carry one connection in both directions, past the tap of the lab when there is one.

    Without a tap only frames are parsed that name a client or the URL of a broker, or that open or close a producer or
    a consumer.
    """

    def __init__(self, stand_in: Broker, address: str, listener: str, through: Through, mask_of: MaskOf) -> None:
        self.broker = stand_in
        self.address = address
        self.listener = listener
        self.role = None  # only the broker knows who the client is
        self.connected = False
        self.findings = 0
        self.fault_hits = 0
        self.tap: Tap | None = None
        self.mask: Mask | None = None
        self.closed = False
        self.was_reset = False  # by one side, so that the other is to see a reset, too
        self.begins: dict[Direction, bytes] = {}  # the first bytes of each side
        self.left_by_broker = False
        self.opened = OpenedByClient()
        self.waiting_producers: dict[int, ProxiedProducer] = {}
        self._through = through
        self._mask_of = mask_of
        self._cutters = {_CLIENT: Cutter(), _BROKER: Cutter()}
        self._to_broker: Outbox | None = None  # before both sides are there
        self._to_client: Outbox | None = None
        self._nursery: trio.Nursery
        self._directions = 2  # that have not ended
        self._held_back = trio.lowlevel.ParkingLot()  # directions that are not read, until the tap lets go of frames

    def __str__(self) -> str:
        return self.address

    @property
    def client_version(self) -> str:
        return self.opened.client_version

    @property
    def producers(self) -> dict[int, ProxiedProducer]:
        return self.opened.producers

    @property
    def consumers(self) -> dict[int, ProxiedConsumer]:
        return self.opened.consumers

    # the lab

    def heard(self) -> None:
        """Ignore a sign of life: the broker itself looks for them."""

    def hand_on(self, frames: Iterable[Frame]) -> None:
        """Send frames of the client to the broker, past the tap."""
        parts = list(self._masked(frames))
        if self._to_broker is not None:
            self._to_broker.put(parts)
        self._held_back.unpark_all()

    def send_on(self, parts: Iterable[bytes]) -> None:
        """Send frames of the broker to the client, past the tap."""
        led = list(each_once(self._led, parts))
        if self._to_client is not None:
            self._to_client.put(led)
        self._held_back.unpark_all()

    def command(self, command: pb.BaseCommand) -> None:
        """Send a frame to the client in the broker's place, through the tap."""
        data = frame(command.SerializeToString())
        self.send_on([data] if self.tap is None else self.tap.outgoing(data))

    def close(self, reason: str = "") -> None:
        """Close both sides, once the bytes that wait are written."""
        if not self.closed:
            log.info("closing a connection", peer=self.address, reason=reason)
            self._ended(_BROKER, reason)
            self._nursery.start_soon(self._leave)

    def _ended(self, sender: Direction, reason: str = "") -> None:
        """Tell the tap once that `sender` has ended the connection."""
        if not self.closed:
            self.closed = True
            if self.tap is not None:
                self.tap.closed(sender, reason)

    def refused(self, reason: str) -> None:
        """Note that the broker did not accept the connection."""
        self._ended(_BROKER, reason)

    async def _leave(self) -> None:
        with trio.move_on_after(LAST_WORDS):
            for outbox in (self._to_broker, self._to_client):
                if outbox is not None:
                    await outbox.at_most(0)
        self._nursery.cancel_scope.cancel()

    # both directions

    async def carry(
        self, client: trio.abc.Stream, broker: trio.abc.Stream, begun: Callable[[], None] = lambda: None
    ) -> None:
        """Carry bytes until both sides have ended, or one was reset. Call `begun` first."""
        async with trio.open_nursery() as self._nursery:
            self._to_broker, self._to_client = Outbox(broker, self._nursery), Outbox(client, self._nursery)
            begun()
            self._nursery.start_soon(self._pump, _CLIENT, client, self._to_broker)
            self._nursery.start_soon(self._pump, _BROKER, broker, self._to_client)

    async def _pump(self, sender: Direction, source: trio.abc.Stream, outbox: Outbox) -> None:
        reason = ""
        while True:
            await self._until_readable(sender)
            try:
                data = bytes(await source.receive_some(READ))
            except trio.BrokenResourceError as error:
                data, reason = b"", str(error.__cause__ or error)
                self.was_reset |= is_reset(error)
            except trio.ClosedResourceError:
                data = b""
            if not data:
                break
            await outbox.send(self._passed(sender, data))
        await self._end(sender, reason, outbox)

    async def _until_readable(self, sender: Direction) -> None:
        """Wait while the tap holds as much of this direction as it may, or a client does not read the tap's answers."""
        if sender is _CLIENT and self._to_client is not None:
            await self._to_client.at_most(MOST_WAITING)
        while self.tap is not None and not self.closed:
            if self.tap.may_read if sender is _CLIENT else self.tap.held < HELD:
                return
            await self._held_back.park()

    async def _end(self, sender: Direction, reason: str, outbox: Outbox) -> None:
        """Handle the end of one direction. The other direction has a while to end, too."""
        rest = self._cutters[sender].end()
        if rest:
            outbox.put([rest])
        self.left_by_broker |= sender is _BROKER and not self.closed
        if sender is _CLIENT and self.tap is not None and not self.closed:
            self.tap.ended()
        self._ended(sender, reason)
        with trio.move_on_after(LINGER):
            await (outbox.at_most(0) if self._is_reset() else outbox.end())
        if self.was_reset:
            self._nursery.cancel_scope.cancel()
        self._nursery.cancel_scope.deadline = min(self._nursery.cancel_scope.deadline, trio.current_time() + LINGER)
        self._directions -= 1
        if not self._directions:
            self._nursery.cancel_scope.cancel()

    def _is_reset(self) -> bool:
        """Note whether a write has met the reset: the kernel tells of it only once."""
        self.was_reset |= any(each is not None and each.was_reset for each in (self._to_broker, self._to_client))
        return self.was_reset

    def _passed(self, sender: Direction, data: bytes) -> list[bytes]:
        """Return the bytes that go on now, in parts."""
        self.begins.setdefault(sender, data[:BEGIN])
        of_client = sender is _CLIENT
        watched = None if self.tap is not None else _FROM_CLIENT if of_client else _FROM_BROKER
        cuts = self._cutters[sender].feed(data, watched)
        if len(cuts) == 1 and not cuts[0].is_frame:
            return [cuts[0].data]
        return list(self._from_client(cuts) if of_client else self._from_broker(cuts))

    def _from_client(self, cuts: list[Cut]) -> Iterator[bytes]:
        for is_frame, group in groupby(cuts, key=attrgetter("is_frame")):
            if not is_frame:
                yield from (cut.data for cut in group)
                continue
            frames = [taken_apart(self._noted(_CLIENT, cut.data)) for cut in group]
            yield from self._masked(frames if self.tap is None else self.tap.incoming(frames))

    def _from_broker(self, cuts: list[Cut]) -> Iterator[bytes]:
        for is_frame, group in groupby(cuts, key=attrgetter("is_frame")):
            if not is_frame:
                yield from (cut.data for cut in group)
                continue
            data = b"".join([self._noted(_BROKER, cut.data) for cut in group])
            yield from each_once(self._led, [data] if self.tap is None else self.tap.outgoing(data))

    def _noted(self, sender: Direction, data: bytes) -> bytes:
        """Note what a frame tells, and return the frame as the tap sees it: CONNECTED as the mask shows it."""
        kind = kind_of(data)
        if kind != NO_TYPE and kind not in (OF_CLIENT if sender is _CLIENT else OF_BROKER):
            return data
        head, trailing = taken_apart(data)
        command = _parsed(head)
        if command is None:
            return data
        self.opened.note(sender, command)
        if command.type == _CONNECTED and sender is _BROKER:
            for cutter in self._cutters.values():
                cutter.most = max(cutter.most, command.connected.max_message_size + FRAME_PADDING)
        if command.type == _CONNECT and sender is _CLIENT:
            self.connected = True
            self.mask = self._mask_of(self)
        if command.type == _CONNECTED and self.mask is not None:
            mask_connected(self.mask, command.connected)
            return frame(command.SerializePartialToString(), trailing)
        return data

    def _masked(self, frames: Iterable[Frame]) -> Iterator[bytes]:
        """Return the bytes for the broker: CONNECT as the mask changes it."""

        def masked(each: Frame) -> bytes:
            head, trailing = each
            if self.mask is not None and head[1:2] == bytes([_CONNECT]) and (command := _parsed(head)) is not None:
                mask_connect(self.mask, command.connect)
                head = command.SerializePartialToString()
            return frame(head, trailing)

        return each_once(masked, frames)

    def _led(self, data: bytes) -> bytes:
        """Return frames for the client with the URLs of the proxy. A fault may have cut the last one."""
        parts: list[bytes] = []
        begin = start = 0
        while start + HEAD <= len(data):
            stop = start + 4 + int.from_bytes(data[start : start + 4], "big")
            kind = kind_of(data, start)
            if stop <= len(data) and (kind == NO_TYPE or kind in WITH_URLS):
                head, trailing = taken_apart(data[start:stop])
                command = _parsed(head)
                if command is not None and lead(command, self._through):
                    parts += [data[begin:start], frame(command.SerializePartialToString(), trailing)]
                    begin = stop
            start = stop
        return b"".join([*parts, data[begin:]]) if parts else data


def _parsed(head: bytes) -> pb.BaseCommand | None:
    command = pb.BaseCommand()
    try:
        command.ParseFromString(head)
    except DecodeError:
        return None
    return command
