"""Parse packets as TCP segments: Ethernet, loopback, Linux cooked and raw links, IPv4 and IPv6. Build them too."""

from __future__ import annotations

import ipaddress
from struct import Struct
from typing import NamedTuple

from pulsarium.capture.pcap.blocks import Packet

FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16
_TCP = 6
_IP, _IP6 = 0x0800, 0x86DD
_TAGS = {0x8100, 0x88A8, 0x9100}
_EXTENSIONS = {0, 43, 60, 135}
_NULL, _ETHERNET, _RAW, _LOOP, _COOKED, _COOKED2, _IP4_ONLY, _IP6_ONLY = 0, 1, 101, 108, 113, 276, 228, 229
LINKS = {_NULL, _ETHERNET, _RAW, 12, 14, _LOOP, _COOKED, _COOKED2, _IP4_ONLY, _IP6_ONLY}

Address = tuple[str, int]
"""IP address and port."""


class TcpSegment(NamedTuple):
    """A TCP segment. `missing` counts bytes at its end that the capture does not have."""

    ns: int
    source: Address
    target: Address
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    missing: int


def segment_of(packet: Packet) -> TcpSegment | None:
    """Return the TCP segment of a packet, or None for any other packet, and for fragments."""
    data = packet.data
    start = _network(packet.link, data)
    if start is None or len(data) <= start:
        return None
    version = data[start] >> 4
    if version == 4:
        return _of_ip4(packet, start)
    return _of_ip6(packet, start) if version == 6 else None


def _network(link: int, data: bytes) -> int | None:
    """Return where the IP packet begins, or None when there is none."""
    if link in (_RAW, 12, 14, _IP4_ONLY, _IP6_ONLY):
        return 0
    if link in (_NULL, _LOOP):
        return 4
    if link == _ETHERNET:
        at = 12
        while int.from_bytes(data[at : at + 2], "big") in _TAGS:
            at += 4
        return at + 2 if int.from_bytes(data[at : at + 2], "big") in (_IP, _IP6) else None
    if link == _COOKED:
        return 16 if int.from_bytes(data[14:16], "big") in (_IP, _IP6) else None
    if link == _COOKED2:
        return 20 if int.from_bytes(data[:2], "big") in (_IP, _IP6) else None
    return None


def _of_ip4(packet: Packet, start: int) -> TcpSegment | None:
    data = packet.data
    if len(data) < start + 20 or data[start + 9] != _TCP:
        return None
    total, fragment = int.from_bytes(data[start + 2 : start + 4], "big"), int.from_bytes(data[start + 6 : start + 8])
    if fragment & 0x3FFF:
        return None
    size = total or packet.size - start  # a card that cuts segments itself leaves 0
    source, target = (str(ipaddress.IPv4Address(data[at : at + 4])) for at in (start + 12, start + 16))
    return _of_tcp(packet, start + (data[start] & 15) * 4, start + size, source, target)


def _of_ip6(packet: Packet, start: int) -> TcpSegment | None:
    data = packet.data
    if len(data) < start + 40:
        return None
    payload, following, at = int.from_bytes(data[start + 4 : start + 6], "big"), data[start + 6], start + 40
    stop = at + payload if payload else packet.size
    while following in _EXTENSIONS and len(data) >= at + 8:
        following, at = data[at], at + 8 + data[at + 1] * 8
    if following != _TCP:
        return None
    source, target = (str(ipaddress.IPv6Address(data[each : each + 16])) for each in (start + 8, start + 24))
    return _of_tcp(packet, at, stop, source, target)


_HEAD = Struct(">HHIIBB")


def _of_tcp(packet: Packet, start: int, stop: int, source: str, target: str) -> TcpSegment | None:
    data = packet.data
    if len(data) < start + 20:
        return None
    from_port, to_port, sequence, acknowledged, offset, flags = _HEAD.unpack_from(data, start)
    begin = start + (offset >> 4) * 4
    if begin < start + 20 or begin > stop:
        return None
    kept = data[begin:stop]
    missing = stop - begin - len(kept)
    return TcpSegment(packet.ns, (source, from_port), (target, to_port), sequence, acknowledged, flags, kept, missing)


_IP4_HEAD = Struct(">BBHHHBBH4s4s")
_TCP_HEAD = Struct(">HHIIBBHHH")
_WINDOW = 65535


def packet_of(segment: TcpSegment) -> tuple[bytes, int]:
    """Return an IP packet of a segment and its size on the wire, with right checksums where all bytes are kept."""
    flags, size = segment.flags, len(segment.data) + segment.missing
    head = _TCP_HEAD.pack(
        segment.source[1], segment.target[1], segment.sequence, segment.acknowledged, 5 << 4, flags, _WINDOW, 0, 0
    )
    source, target = (ipaddress.ip_address(each[0]) for each in (segment.source, segment.target))
    both = source.packed + target.packed
    length = 20 + size
    pseudo = both + (
        Struct(">BBH").pack(0, _TCP, length) if source.version == 4 else Struct(">IHBB").pack(length, 0, 0, _TCP)
    )
    checksum = 0 if segment.missing else _checksum(pseudo + head + segment.data)
    head = head[:16] + checksum.to_bytes(2, "big") + head[18:]
    if source.version == 6:
        network = Struct(">IHBB").pack(6 << 28, length, _TCP, 64) + both
    else:
        fields = (0x45, 0, 20 + length, 0, 0x4000, 64, _TCP)
        network = _IP4_HEAD.pack(*fields, 0, source.packed, target.packed)
        network = network[:10] + _checksum(network).to_bytes(2, "big") + network[12:]
    return network + head + segment.data, len(network) + length


def _checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total: int = sum(Struct(f">{len(data) // 2}H").unpack(data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
