"""Make packets of the records of a capture: TCP connections with handshake, sequence numbers and acknowledgements."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable
from dataclasses import dataclass

from pulsarium.capture.as_json import described
from pulsarium.capture.file import CaptureRecord, EventKind, Header
from pulsarium.capture.lint.checker import Walk
from pulsarium.capture.pcap.blocks import packet_block, section
from pulsarium.capture.pcap.segments import ACK, FIN, PUSH, RST, SYN, Address, TcpSegment, packet_of
from pulsarium.proto.commands import Direction

_MOST_DATA = 60_000  # bytes of a segment
_BROKER_PORT = 6650
_FIRST = {Direction.CLIENT: 1_000, Direction.BROKER: 2_000}


@dataclass(slots=True)
class _Stream:
    """A connection: both addresses, and the next sequence number of each side."""

    addresses: dict[Direction, Address]
    next: dict[Direction, int]


class Exporter:
    """Writer of a pcapng file, with one call of `write` for each packet."""

    def __init__(self, write: Callable[[bytes], object], header: Header) -> None:
        """Write the head of the file."""
        self._write = write
        self._walk = Walk()
        self._streams: dict[int, _Stream] = {}
        self._taken: set[tuple[Address, Address]] = set()
        self.packets = 0
        write(section(f"pulsarium, capture of {header.broker or 'a broker'}"))

    def feed(self, number: int, record: CaptureRecord) -> None:
        """Add a record. The packet that ends a frame has the decoded frame as its comment."""
        _, seen = self._walk.feed(record)
        comment = json.dumps(described(number, record, seen))
        if record.kind is EventKind.OPENED:
            self._open(record, comment)
            return
        stream = self._streams.get(record.connection)
        if stream is None:
            stream = self._add(record)
        if record.kind is EventKind.CLOSED:
            self._send(stream, record, RST | ACK if record.note.get("reason") else FIN | ACK, b"", 0, comment)
            return
        left, missing = record.data, record.size - len(record.data)
        while len(left) > _MOST_DATA:
            self._send(stream, record, ACK, left[:_MOST_DATA], 0)
            left = left[_MOST_DATA:]
        lost = min(missing, 65_000 - len(left))
        self._send(stream, record, PUSH | ACK, left, lost, comment)
        while lost < missing:  # as packets of which nothing was kept
            part = min(missing - lost, _MOST_DATA)
            self._send(stream, record, PUSH | ACK, b"", part)
            lost += part

    def _open(self, record: CaptureRecord, comment: str) -> None:
        stream = self._add(record)
        client, broker = Direction.CLIENT, Direction.BROKER
        self._send(stream, record, SYN, b"", 0, comment)
        self._send(stream, record, SYN | ACK, b"", 0, sender=broker)
        self._send(stream, record, ACK, b"", 0, sender=client)

    def _add(self, record: CaptureRecord) -> _Stream:
        port = 10_000 + record.connection % 50_000
        client = _address(record.note.get("peer")) or ("127.0.0.1", port)
        version = ipaddress.ip_address(client[0]).version
        broker = _address(record.note.get("broker")) or ("", _BROKER_PORT)
        if not broker[0] or ipaddress.ip_address(broker[0]).version != version:
            broker = ("127.0.0.1" if version == 4 else "::1", broker[1])
        while (client, broker) in self._taken:  # another connection had the same port
            client, port = (client[0], port), port % 65_535 + 1
        self._taken.add((client, broker))
        addresses = {Direction.CLIENT: client, Direction.BROKER: broker}
        stream = self._streams[record.connection] = _Stream(addresses, dict(_FIRST))
        return stream

    def _send(
        self,
        stream: _Stream,
        record: CaptureRecord,
        flags: int,
        data: bytes,
        missing: int,
        comment: str = "",
        *,
        sender: Direction | None = None,
    ) -> None:
        sender = sender or record.sender
        other = Direction.CLIENT if sender is Direction.BROKER else Direction.BROKER
        acknowledged = stream.next[other] if flags & ACK else 0
        number = stream.next[sender]
        source, target = stream.addresses[sender], stream.addresses[other]
        segment = TcpSegment(record.wall_ns, source, target, number, acknowledged, flags, data, missing)
        packet, size = packet_of(segment)
        self._write(packet_block(record.wall_ns, packet, size, comment))
        self.packets += 1
        stream.next[sender] = (number + len(data) + missing + bool(flags & (SYN | FIN))) % 2**32


def _address(text: object) -> Address | None:
    """Return the address and port of `host:port`, or None for a name."""
    host, _, port = str(text or "").removeprefix("pulsar://").rpartition(":")
    try:
        return str(ipaddress.ip_address(host.strip("[]"))), int(port)
    except ValueError:
        return None
