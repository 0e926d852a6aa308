"""Make records of packets: TCP connections, each with both directions in order, and the frames in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pulsarium.capture.file import CaptureWriter, Header
from pulsarium.capture.pcap.blocks import Packet
from pulsarium.capture.pcap.segments import ACK, FIN, LINKS, RST, SYN, Address, TcpSegment, segment_of
from pulsarium.capture.pcap.streams import Frames, Order
from pulsarium.proto.commands import Direction

_MOST_CONNECTIONS = 20_000
_OTHER = {Direction.CLIENT: Direction.BROKER, Direction.BROKER: Direction.CLIENT}


@dataclass(slots=True)
class _Connection:
    """A TCP connection.

    number: number in the capture. sequence: first sequence number of the client, or None without its SYN. whole:
    whether the packets have everything since then. told: whether the capture has the connection. foreign: whether the
    connection is not Pulsar's. ended: side that sent FIN.
    """

    number: int
    client: Address
    broker: Address
    sequence: int | None
    begin_ns: int
    orders: dict[Direction, Order] = field(default_factory=lambda: {each: Order() for each in _OTHER})
    frames: dict[Direction, Frames] = field(default_factory=lambda: {each: Frames() for each in _OTHER})
    whole: bool = True
    told: bool = False
    foreign: bool = False
    ended: Direction | None = None
    closed: bool = False


class Importer:
    """Importer of packets, which writes the capture of all Pulsar connections in them."""

    def __init__(self, write: Callable[[bytes], object], begin_ns: int) -> None:
        """Write the head of the capture. `begin_ns` is the time of the first packet."""
        self._writer = CaptureWriter(write, Header(begin_ns, metadata={"from": "packets"}))
        self._connections: dict[tuple[Address, Address], _Connection] = {}
        self._count = 0
        self.frames = 0
        self.connections = 0
        self.notices: Counter[str] = Counter()
        """Facts about packets that are not in the capture, with counts."""

    def feed(self, packet: Packet) -> None:
        """Add a packet, in the order of the file."""
        segment = segment_of(packet)
        if segment is None:
            known = packet.link in LINKS
            self.notices["packets without TCP" if known else f"packets of the unknown link type {packet.link}"] += 1
            return
        connection, sender = self._of(segment)
        if connection.foreign:
            return
        order, begins = connection.orders[sender], bool(segment.flags & SYN)
        if begins:
            order.begin(segment.sequence + 1)
        if segment.data or segment.missing:
            order.add((segment.sequence + begins) % 2**32, segment.data, segment.missing)
            self._drain(connection, sender, segment.ns)
        if segment.flags & (FIN | RST) and connection.ended is None:
            connection.ended = sender
        if segment.flags & RST:
            self._end(connection, segment.ns, "the connection was reset")
        elif connection.ended is not None and not connection.orders[connection.ended].waiting:
            self._end(connection, segment.ns)

    def end(self, ns: int) -> None:
        """Write the frames behind the last gaps."""
        for connection in self._connections.values():
            self._flush(connection, ns)

    def _of(self, segment: TcpSegment) -> tuple[_Connection, Direction]:
        """Return the connection of a segment, and the side that sent the segment."""
        ends = (segment.source, segment.target)
        key = min(ends, ends[::-1])
        found = self._connections.get(key)
        first = segment.sequence if segment.flags & SYN and not segment.flags & ACK else None
        if found is not None and first is not None and found.sequence != first:
            self._flush(found, segment.ns)  # the port was used again
            del self._connections[key]
            found = None
        if found is None:
            client, broker = ends[::-1] if _from_broker(segment) else ends
            self._count += 1
            found = self._connections[key] = _Connection(
                self._count, client, broker, first, segment.ns, whole=bool(segment.flags & SYN)
            )
            if len(self._connections) > _MOST_CONNECTIONS:
                self._flush(self._connections.pop(next(iter(self._connections))), segment.ns)
        return found, Direction.CLIENT if segment.source == found.client else Direction.BROKER

    def _drain(self, connection: _Connection, side: Direction, ns: int) -> None:
        """Write the frames that are complete."""
        frames = connection.frames[side]
        for piece in connection.orders[side].ready():
            before = frames.lost
            if isinstance(piece, bytes):
                frames.add(piece)
            else:
                frames.skip(piece)
            self._lose(connection, side, ns, frames.lost - before)
            for data, size in frames.take():
                if not connection.told:
                    self._tell(connection)
                self._writer.frame(connection.number, side, ns, ns, data, size=size)
                self.frames += 1
            if frames.foreign and not connection.told:
                connection.foreign = True
                self.notices[frames.foreign] += 1
                return

    def _tell(self, connection: _Connection) -> None:
        connection.told = True
        self.connections += 1
        if not connection.whole:
            self.notices["connections whose beginning is missing"] += 1
            return
        peer, broker = ("{}:{}".format(*each) for each in (connection.client, connection.broker))
        self._writer.opened(connection.number, connection.begin_ns, connection.begin_ns, peer=peer, broker=broker)

    def _lose(self, connection: _Connection, side: Direction, ns: int, lost: int) -> None:
        """Continue as a connection of another number, without an opening, so that nobody is blamed for lost frames."""
        if not lost:
            return
        self.notices[f"missing bytes of the {side.value}, and the frames in them"] += lost
        if connection.told and connection.whole:
            self._writer.closed(connection.number, side, ns, ns, f"bytes of the {side.value} are missing")
            self._count += 1
            connection.number = self._count
        connection.whole = False

    def _flush(self, connection: _Connection, ns: int) -> None:
        """Write all that is left, without waiting for missing bytes."""
        if not connection.foreign:
            for side, order in connection.orders.items():
                order.give_up()
                self._drain(connection, side, ns)
            if connection.ended is not None:
                self._end(connection, ns)

    def _end(self, connection: _Connection, ns: int, reason: str = "") -> None:
        if connection.told and not connection.closed and connection.ended is not None:
            connection.closed = True
            self._writer.closed(connection.number, connection.ended, ns, ns, reason)


def _from_broker(segment: TcpSegment) -> bool:
    """Return whether the broker sent a connection's first segment. Without a SYN, the broker has the smaller port."""
    if segment.flags & SYN:
        return bool(segment.flags & ACK)
    return segment.source[1] < segment.target[1]
