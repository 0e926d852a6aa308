"""Export captures as packets, and import packets as networks deliver them."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from struct import pack

import pytest

from pulsarium.capture.file import CaptureError, CaptureReader, CaptureRecord, EventKind, Header, scrubbed
from pulsarium.capture.lint.checker import Walk
from pulsarium.capture.pcap.blocks import Packet, PacketReader, packet_block, section
from pulsarium.capture.pcap.exporter import Exporter
from pulsarium.capture.pcap.importer import Importer
from pulsarium.capture.pcap.segments import SYN, TcpSegment, packet_of, segment_of
from pulsarium.capture.pcap.streams import Order
from tests.capture.lint.planted import conforming
from tests.capture.lint.talk import BROKER, CLIENT, Talk, encoded, entry
from tests.capture.lint.transcripts import complete, records

RAW, IP4, IP6 = 101, bytes([8, 0]), bytes([0x86, 0xDD])
Facts = list[tuple[int, EventKind, str, bytes, int]]


def exported(some: Iterable[CaptureRecord]) -> bytes:
    out = io.BytesIO()
    exporter = Exporter(out.write, Header(0))
    for number, record in enumerate(some, 1):
        exporter.feed(number, record)
    return out.getvalue()


def packets_of(data: bytes) -> list[Packet]:
    return list(PacketReader().feed(data))


def imported(packets: Iterable[Packet]) -> tuple[list[CaptureRecord], dict[str, int]]:
    out = io.BytesIO()
    importer = Importer(out.write, 0)
    last = 0
    for packet in packets:
        importer.feed(packet)
        last = packet.ns
    importer.end(last)
    return list(CaptureReader().feed(out.getvalue())), dict(importer.notices)


def facts(some: Iterable[CaptureRecord]) -> Facts:
    """Return the facts that an export and import keeps, by connection. Connections are numbered from 0 on."""
    numbers: dict[int, int] = {}
    found = [
        (numbers.setdefault(each.connection, len(numbers)), each.kind, each.sender.value, each.data, each.size)
        for each in some
    ]
    return sorted(found, key=lambda each: each[0])


def packet(segment: TcpSegment) -> Packet:
    data, size = packet_of(segment)
    return Packet(segment.ns, RAW, data, size)


def talks() -> list[CaptureRecord]:
    """Return the records of two connections. Each connection has a frame of many segments."""
    found = []
    for number in (4, 9):
        talk = Talk(number)
        conforming(talk)
        talk.client("SEND", entry() + bytes(200_000), producer_id=1, sequence_id=7)
        talk.client("PING")
        talk.broker("PONG")
        talk.close(BROKER)
        found.append(talk.records)
    return [each for pair in zip(*found, strict=True) for each in pair]


def cut(packet: Packet, size: int) -> Packet:
    """Cut a packet after `size` bytes, as `tcpdump -s` does."""
    return replace(packet, data=packet.data[:size])


def test_a_capture_survives_as_packets() -> None:
    back, notices = imported(packets_of(exported(talks())))
    assert facts(back) == facts(talks())
    assert sorted(each.wall_ns for each in back) == sorted(each.wall_ns for each in talks())
    assert not notices


def test_a_cut_entry_survives_as_packets() -> None:
    talk = Talk()
    talk.greet()
    data = encoded("SEND", entry() + bytes(300_000), producer_id=1, sequence_id=7)
    talk.raw(CLIENT, data[:100], len(data))
    talk.client("PING")
    back, notices = imported(packets_of(exported(talk.records)))
    assert facts(back) == facts(talk.records)
    assert not notices


@pytest.mark.parametrize("path", complete(), ids=lambda path: path.stem)
def test_recordings_of_a_real_broker_survive_as_packets(path: Path) -> None:
    """Recordings may hold invalid frames. The connection ends there, or the importer finds the next frames again."""
    before, (after, _) = facts(records(path)), imported(packets_of(exported(records(path))))
    assert {data for _, _, _, data, _ in facts(after)} <= {scrubbed(data) for _, _, _, data, _ in before}
    assert len(after) >= len(before) // 2 or path.stem == "015-not-pulsar"  # the importer finds no frame there


def test_a_packet_has_right_checksums_and_a_comment() -> None:
    data = exported(talks())
    for packet in packets_of(data):
        (segment,) = [segment_of(packet)]
        assert segment is not None
        assert packet_of(segment) == (packet.data, packet.size)
    assert b'"command": "CONNECT"' in data


def test_reordered_and_repeated_packets_make_the_same_frames() -> None:
    packets = packets_of(exported(talks()))
    for seed in range(20):
        random = Random(seed)
        mixed = [each for packet in packets for each in [packet] * random.choice([1, 1, 2])]
        mixed[7:] = [each for _, each in sorted(enumerate(mixed[7:]), key=lambda item: item[0] + random.random() * 6)]
        back, notices = imported(mixed)
        frames = [each for each in facts(back) if each[1] is EventKind.FRAME]
        for connection in (0, 1):
            for sender in ("client", "broker"):
                assert [each for each in frames if each[0] == connection and each[2] == sender] == [
                    each for each in facts(talks()) if each[:3] == (connection, EventKind.FRAME, sender)
                ]
        assert not notices


def test_a_sequence_number_may_wrap() -> None:
    start = 2**32 - 20
    data = encoded("CONNECT", client_version="c") + encoded("PING") * 5
    ends = (("10.0.0.1", 5), ("10.0.0.2", 6650))
    packets = [packet(TcpSegment(0, *ends, start - 1, 0, SYN, b"", 0))]
    packets += [
        packet(TcpSegment(at, *ends, (start + at) % 2**32, 0, 16, data[at : at + 7], 0))
        for at in range(0, len(data), 7)
    ]
    back, _ = imported(packets)
    assert [each.size for each in back if each.kind is EventKind.FRAME] == [len(data) - 5 * 13, *[13] * 5]


def test_frames_behind_a_lost_packet_are_found_again() -> None:
    talk = Talk()
    talk.greet()
    for number in range(5):
        talk.client("LOOKUP", topic="t", request_id=number)
    packets = packets_of(exported(talk.records))
    del packets[6]  # the second LOOKUP
    back, notices = imported(packets)
    frames = [each for each in back if each.kind is EventKind.FRAME]
    assert len(frames) == 6
    (lost,) = notices.values()
    assert notices == {"missing bytes of the client, and the frames in them": lost}
    assert lost == frames[-1].size
    (closed,) = [each for each in back if each.kind is EventKind.CLOSED]
    assert closed.note["reason"] == "bytes of the client are missing"
    assert frames[-1].connection not in {each.connection for each in back if each.kind is EventKind.OPENED}


def test_nobody_is_blamed_for_lost_frames() -> None:
    """The CONNECTED of the broker is cut, so that the client seems to send LOOKUP too early."""
    talk = Talk()
    talk.greet()
    talk.client("LOOKUP", topic="t", request_id=1)
    packets = packets_of(exported(talk.records))
    packets[4] = cut(packets[4], 44)
    walk = Walk(judging=True)
    back, _ = imported(packets)
    assert len([each for each in back if each.kind is EventKind.FRAME]) == 2
    assert [each for record in back for each in walk.feed(record)[1].violations] == []


def test_a_gap_is_given_up_when_too_many_bytes_wait_behind_it() -> None:
    order = Order()
    order.add(0, b"a", 0)
    piece = bytes(1 << 20)
    found: list[bytes | int] = []
    for number in range(5):
        order.add(11 + number * len(piece), piece, 0)
        found += order.ready()
    assert found[:2] == [b"a", 10]
    assert sum(len(each) for each in found if isinstance(each, bytes)) == 1 + 5 * len(piece)


def test_short_packets_cut_entries_and_lose_nothing_else() -> None:
    packets = [cut(each, 110) for each in packets_of(exported(talks()))]
    back, _ = imported(packets)
    sizes = [each[4] for each in facts(back) if each[0] == 0 and each[1] is EventKind.FRAME and each[4] > 200_000]
    assert sizes == [each[4] for each in facts(talks()) if each[0] == 0 and each[4] > 200_000]


def test_a_connection_that_was_open_before_has_no_opening() -> None:
    packets = packets_of(exported(talks()))[6:]
    back, notices = imported(packets)
    assert EventKind.OPENED not in {each.kind for each in back}
    assert notices == {"connections whose beginning is missing": 2}
    assert {each.sender for each in back if each.size > 200_000} == {CLIENT}


FOREIGN = {"connections without frames": b"GET / HTTP/1.1\r\n\r\n", "connections with TLS": b"\x16\x03\x01" + bytes(20)}


@pytest.mark.parametrize("what", FOREIGN)
def test_other_protocols_are_left_out(what: str) -> None:
    back, notices = imported([packet(TcpSegment(0, ("::1", 5), ("::1", 6651), 0, 0, 16, FOREIGN[what], 0))])
    assert (back, notices) == ([], {what: 1})


LINKS = {
    "ethernet": (1, bytes(12) + IP4),
    "ethernet with a tag": (1, bytes(12) + b"\x81\0\0\x07" + IP4),
    "loopback": (0, b"\2\0\0\0"),
    "cooked": (113, bytes(14) + IP4),
    "cooked, version 2": (276, IP4 + bytes(18)),
    "ethernet, IPv6": (1, bytes(12) + IP6),
}


@pytest.mark.parametrize("link", LINKS)
def test_all_links_are_read(link: str) -> None:
    number, head = LINKS[link]
    hosts = ("fe80::1", "fe80::2") if "IPv6" in link else ("10.0.0.1", "10.0.0.2")
    segment = TcpSegment(3, (hosts[0], 5), (hosts[1], 6650), 1, 2, 16, b"data", 0)
    data, size = packet_of(segment)
    assert segment_of(Packet(3, number, head + data, len(head) + size)) == segment
    assert segment_of(Packet(3, number, head + data + bytes(6), len(head) + size + 6)) == segment, "padding"


@pytest.mark.parametrize("endian", "<>")
def test_the_older_format_is_read(endian: str) -> None:
    head = pack(f"{endian}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    data = head + pack(f"{endian}4I", 7, 5, 3, 9) + b"abc"
    assert packets_of(data) == [Packet(7_000_005_000, 1, b"abc", 9)]


def test_any_pieces_of_a_file_are_read() -> None:
    data, reader = exported(talks()), PacketReader()
    assert [each for at in range(0, len(data), 997) for each in reader.feed(data[at : at + 997])] == packets_of(data)
    assert reader.pending == 0


def block(kind: int, body: bytes) -> bytes:
    size = pack("<I", len(body) + 12)
    return pack("<I", kind) + size + body + size


@pytest.mark.parametrize(
    ("kind", "head", "ns"),
    [(3, pack("<I", 9), 0), (2, pack("<HH4I", 0, 0, 0, 5, 4, 9), 5), (6, pack("<5I", 0, 0, 5, 4, 9), 5)],
    ids=["simple", "obsolete", "enhanced"],
)
def test_each_kind_of_packet_block_is_read(kind: int, head: bytes, ns: int) -> None:
    assert packets_of(section("x") + block(4, b"name") + block(kind, head + b"data")) == [Packet(ns, RAW, b"data", 9)]


@pytest.mark.parametrize("version", [4, 6])
def test_a_packet_that_is_cut_before_its_data_is_no_segment(version: int) -> None:
    hosts = ("10.0.0.1", "10.0.0.2") if version == 4 else ("fe80::1", "fe80::2")
    data, size = packet_of(TcpSegment(3, (hosts[0], 5), (hosts[1], 6650), 1, 2, 16, b"data", 0))
    head = len(data) - len(b"data")
    assert [segment_of(Packet(3, RAW, data[:kept], size)) for kept in range(head)] == [None] * head
    assert segment_of(Packet(3, 147, data, size)) is None, "a link that no IP packet has"


def test_extensions_of_ipv6_are_passed_over() -> None:
    segment = TcpSegment(3, ("fe80::1", 5), ("fe80::2", 6650), 1, 2, 16, b"data", 0)
    data, size = packet_of(segment)
    extended = data[:4] + pack(">H", size - 40 + 8) + b"\0" + data[7:40] + b"\6" + bytes(7) + data[40:]
    assert segment_of(Packet(3, RAW, extended, size + 8)) == segment


WRONG = {
    "neither pcapng nor pcap": b"pulscap1" + bytes(20),
    "no byte order": section("x")[:8] + bytes(4) + section("x")[12:],
    "invalid size 7": section("x") + b"\6\0\0\0\7\0\0\0" + bytes(20),
    "its two sizes differ": section("x") + packet_block(0, b"data", 4)[:-4] + b"\1\0\0\0",
    "names interface 0": section("x")[: len(section("x")) - 32] + packet_block(0, b"data", 4),
    "a packet block is too short": section("x") + block(6, bytes(8)),
    "an interface block is too short": section("x") + block(1, bytes(4)),
    "a packet has the invalid size": pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    + pack("<4I", 0, 0, 2**32 - 1, 0),
    "a packet of 9 bytes": section("x") + packet_block(0, b"data", 4).replace(pack("<II", 4, 4), pack("<II", 9, 9)),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_damaged_file_is_refused_with_a_reason(why: str) -> None:
    with pytest.raises(CaptureError, match=why):
        packets_of(WRONG[why])
