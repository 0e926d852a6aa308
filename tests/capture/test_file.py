"""Capture files that are whole, in pieces, cut off or damaged. Writers cut entries and blank secrets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.capture.file import (
    MAGIC,
    MOST_RECORD,
    CaptureError,
    CaptureReader,
    CaptureRecord,
    CaptureWriter,
    EventKind,
    Header,
    scrubbed,
)
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import crc32c
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

SIDES = st.sampled_from([Direction.CLIENT, Direction.BROKER])
TIMES = st.integers(-(2**63), 2**63 - 1)
JSON = st.dictionaries(
    st.text(max_size=8), st.none() | st.booleans() | st.integers() | st.text(max_size=20), max_size=3
)
HEADER = Header(1_700_000_000_000_000_000, "Pulsar 4.2.4", "pulsar-4.2", {"client": "Pulsar-CPP", "n": 1})


@st.composite
def records(draw: st.DrawFn) -> CaptureRecord:
    data = draw(st.binary(max_size=60))
    size = len(data) + draw(st.integers(0, 100))
    kind, connection = draw(st.sampled_from(EventKind)), draw(st.integers(0, 2**64 - 1))
    return CaptureRecord(kind, connection, draw(SIDES), draw(TIMES), draw(TIMES), data, size, draw(JSON))


def written(some: list[CaptureRecord], header: Header = HEADER) -> bytes:
    out = bytearray()
    writer = CaptureWriter(out.extend, header)
    for each in some:
        writer.record(each)
    return bytes(out)


def read(data: bytes, piece: int = 1 << 20) -> tuple[CaptureReader, list[CaptureRecord]]:
    reader = CaptureReader()
    found: list[CaptureRecord] = []
    for start in range(0, len(data), piece):
        found += reader.feed(data[start : start + piece])
    return reader, found


def command(kind: str, **fields: Any) -> BaseCommand:
    made = BaseCommand(type=kind)
    body = getattr(made, kind.lower())
    body.SetInParent()
    for name, value in fields.items():
        setattr(body, name, value)
    return made


@given(st.lists(records(), max_size=5), st.integers(1, 50))
def test_a_written_capture_is_read_in_pieces_of_any_size(some: list[CaptureRecord], piece: int) -> None:
    reader, found = read(written(some), piece)
    assert found == some
    assert reader.header == HEADER
    assert reader.pending == 0


@given(st.lists(records(), min_size=1, max_size=3), st.data())
def test_a_cut_file_is_read_to_its_last_whole_record(some: list[CaptureRecord], data: st.DataObject) -> None:
    whole = written(some)
    cut = data.draw(st.integers(0, len(whole) - 1))
    reader, found = read(whole[:cut], 7)
    ends = [len(written(some[:count])) for count in range(len(some) + 1)]  # ends of the header and of each record
    assert found == some[: sum(cut >= end for end in ends[1:])]
    assert reader.pending == cut - max((end for end in [len(MAGIC), *ends] if end <= cut), default=0)


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_waited_for(garbage: bytes) -> None:
    for data in (garbage, MAGIC + garbage, written([]) + garbage):
        reader = CaptureReader()
        try:
            list(reader.feed(data))
        except CaptureError:
            continue
        assert reader.pending <= len(data)


@given(st.lists(records(), min_size=1, max_size=3), st.data())
def test_a_changed_byte_is_noticed(some: list[CaptureRecord], data: st.DataObject) -> None:
    whole = bytearray(written(some))
    at = data.draw(st.integers(len(MAGIC) + 8, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    reader = CaptureReader()
    found: list[CaptureRecord] = []
    try:
        found += reader.feed(bytes(whole))
    except CaptureError:
        return
    assert len(found) < len(some)
    assert reader.pending


def test_a_claimed_length_costs_nothing() -> None:
    reader = CaptureReader()
    list(reader.feed(written([]) + (MOST_RECORD).to_bytes(4, "big")))
    assert reader.pending == 4
    with pytest.raises(CaptureError, match="a record has the invalid size"):
        list(CaptureReader().feed(MAGIC + (MOST_RECORD + 1).to_bytes(4, "big") * 2))


@pytest.mark.parametrize("version", [0, 2])
def test_a_capture_of_another_format_is_refused_with_what_can_be_done(version: int) -> None:
    with pytest.raises(CaptureError, match=f"the capture has format {version}, .*: use the version that wrote it, or"):
        read(written([], Header(0, version=version)))


def test_the_format_is_read_before_the_other_facts_of_a_header() -> None:
    header = b'\0{"version": 2}'
    with pytest.raises(CaptureError, match="the capture has format 2"):
        read(MAGIC + len(header).to_bytes(4, "big") + crc32c(header).to_bytes(4, "big") + header)


def test_a_record_of_an_unknown_kind_is_refused() -> None:
    data, start = written([CaptureRecord(EventKind.OPENED, 1, Direction.CLIENT, 2, 3)]), len(written([]))
    body = b"\x09" + data[start + 9 :]
    with pytest.raises(CaptureError, match="9 is not a valid EventKind"):
        read(data[:start] + len(body).to_bytes(4, "big") + crc32c(body).to_bytes(4, "big") + body)


SECRETS: dict[str, dict[str, Any]] = {
    "CONNECT": {"client_version": "c", "auth_data": b"s3cret", "original_auth_data": "s3cret"},
    "LOOKUP": {"topic": "t", "request_id": 1, "original_auth_data": "s3cret"},
    "PARTITIONED_METADATA": {"topic": "t", "request_id": 1, "original_auth_data": "s3cret"},
}


@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_are_blanked(kind: str) -> None:
    names = {"LOOKUP": "lookupTopic", "PARTITIONED_METADATA": "partitionMetadata", "CONNECT": "connect"}
    given = BaseCommand(type=kind)
    for name, value in SECRETS[kind].items():
        setattr(getattr(given, names[kind]), name, value)
    told = frame(given.SerializeToString(), b"s3cret behind")
    kept = scrubbed(told)
    assert b"s3cret" in told
    assert b"s3cret" not in kept
    assert len(kept) == len(told)
    read_back = BaseCommand.FromString(kept[8 : 8 + int.from_bytes(kept[4:8], "big")])
    assert read_back.type == given.type


@pytest.mark.parametrize("field", ["authChallenge", "authResponse"])
def test_secrets_of_an_auth_challenge_are_blanked(field: str) -> None:
    kind = {"authChallenge": BaseCommand.AUTH_CHALLENGE, "authResponse": BaseCommand.AUTH_RESPONSE}[field]
    given = BaseCommand(type=kind)
    inner = getattr(given, field)
    part = inner.challenge if field == "authChallenge" else inner.response
    part.auth_method_name, part.auth_data = "token", b"s3cret"
    kept = scrubbed(frame(given.SerializeToString()))
    assert b"s3cret" not in kept
    assert b"token" in kept


def test_a_broken_greeting_and_other_protocols_are_cut() -> None:
    connect = command("CONNECT", client_version="c", auth_data=b"s3cret" * 9).SerializeToString()
    for told in (frame(connect)[:-3], frame(connect[:-3]), b"GET / HTTP/1.1\r\nAuthorization: s3cret\r\n\r\n"):
        assert scrubbed(told) == told[:16]


@given(st.binary(max_size=80))
def test_scrubbing_takes_anything(data: bytes) -> None:
    assert len(scrubbed(data)) <= len(data)


def test_an_entry_is_cut_and_says_so() -> None:
    out = bytearray()
    send = frame(command("SEND", producer_id=1, sequence_id=2).SerializeToString(), b"e" * 100)
    CaptureWriter(out.extend, HEADER, keep_entry=10).frame(7, Direction.CLIENT, 1, 2, send, fault="delay")
    [record] = read(bytes(out))[1]
    assert (record.size, record.cut, record.data) == (len(send), True, send[:-90])
    assert record.note == {"fault": "delay"}


TOKEN = b"SECRETTOKEN123"


def holders() -> dict[str, BaseCommand]:
    """Return commands with credentials, as clients and proxies send them."""
    text = TOKEN.decode()
    made = {
        "client": command("CONNECT", client_version="c", auth_data=TOKEN, auth_method_name="token"),
        "bare": command("CONNECT", client_version="c", auth_data=TOKEN),
        "proxy": command("CONNECT", client_version="c", protocol_version=21, original_principal="me"),
        "response": BaseCommand(type=BaseCommand.AUTH_RESPONSE),
        "lookup": BaseCommand(type=BaseCommand.LOOKUP),
    }
    made["proxy"].connect.original_auth_data = text
    response = made["response"].authResponse
    response.client_version, response.protocol_version = "c", 21
    response.response.auth_method_name, response.response.auth_data = "token", TOKEN
    lookup = made["lookup"].lookupTopic
    lookup.topic, lookup.request_id, lookup.original_principal, lookup.original_auth_data = "t", 1, "me", text
    return made


@pytest.mark.parametrize("name", holders())
def test_no_damaged_byte_lets_a_secret_through(name: str) -> None:
    whole = frame(holders()[name].SerializeToString(), TOKEN)
    for at in range(len(whole)):
        for value in range(256):
            told = whole[:at] + bytes([value]) + whole[at + 1 :]
            kept = scrubbed(told)
            assert TOKEN[:7] not in kept, (at, value)
            assert TOKEN[7:] not in kept, (at, value)
            assert len(kept) in (len(told), 16)


def test_a_secret_behind_another_command_is_cut() -> None:
    connect = command("CONNECT", client_version="c", auth_data=b"s3cret").SerializeToString()
    ping = command("PING").SerializeToString()
    for told in (frame(ping + connect), frame(ping + connect[2:]), frame(b"\x08\x12" + connect)):
        assert b"s3cret" not in scrubbed(told)


def test_a_secret_in_an_unusual_encoding_is_cut() -> None:
    """A length has too many bytes, or a field stands twice: the scrubbed command would be shorter than the original."""
    body = command("CONNECT", client_version="c", auth_data=b"s3cret").connect.SerializeToString()
    for odd in (bytes([0x12, 0x80 | len(body), 0]) + body, bytes([0x12, 2 * len(body)]) + body + body):
        told = frame(b"\x08\x02" + odd)
        assert scrubbed(told) == told[:16]


@pytest.mark.parametrize("size", [0, 100, 127, 128, 200, 20_000])
def test_frames_without_secrets_are_kept_unchanged(size: int) -> None:
    told = frame(command("PRODUCER", topic="t" * size, producer_id=1, request_id=1).SerializeToString(), b"behind")
    assert scrubbed(told) == told


def test_a_damaged_length_word_stays_to_be_seen() -> None:
    told = frame(command("CONNECT", client_version="c", auth_data=b"s3cret").SerializeToString())
    assert scrubbed(b"\0\0\0\1" + told[4:])[:8] == b"\0\0\0\1" + told[4:8]


def test_a_body_that_runs_over_the_end_of_its_command_is_kept() -> None:
    told = frame(command("PRODUCER", topic="topic", producer_id=1, request_id=1).SerializeToString()[:-1], b"behind")
    assert scrubbed(told) == told
