"""Bytes to frames: the same frames however the bytes are cut, and every broken length found."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto.commands import COMMANDS, parse
from pulsarium.proto.framing import MAX_FRAME_SIZE, FrameDecoder, frame, frame_head
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from tests.proto.golden import Golden, golden_entries, golden_frames

PING = bytes.fromhex("00000009000000050812920100")
PING_FRAME = (PING[8:], b"")

Frames = list[tuple[bytes, bytes]]


def decode(*pieces: bytes) -> tuple[Frames, FrameDecoder]:
    decoder = FrameDecoder()
    return [found for piece in pieces for found in decoder.feed(piece)], decoder


@pytest.mark.req("W-01")
def test_a_ping_is_one_frame() -> None:
    frames, decoder = decode(PING)
    assert frames == [PING_FRAME]
    assert decoder.error is None
    assert decoder.pending == 0


def test_frame_and_its_head() -> None:
    assert frame(PING[8:]) == PING
    assert frame(b"abc", b"xy") == bytes.fromhex("0000000900000003") + b"abcxy"
    assert frame_head(b"abc", 2) + b"xy" == frame(b"abc", b"xy")
    assert frame(b"") == bytes.fromhex("0000000400000000")


@pytest.mark.parametrize("golden", golden_frames(), ids=lambda golden: golden.kind)
def test_golden_frames_decode_and_encode_again(golden: Golden) -> None:
    [(command, trailing)], _ = decode(golden.frame)
    parsed = BaseCommand()
    assert parse(command, parsed).name == golden.type_name
    assert frame(parsed.SerializeToString(), trailing) == golden.frame


def test_golden_frames_in_one_stream_cut_everywhere() -> None:
    recorded = [golden.frame for golden in golden_frames()]
    stream = b"".join(recorded)
    whole, _ = decode(stream)
    assert [frame(*found) for found in whole] == recorded
    assert decode(*(stream[at : at + 1] for at in range(len(stream))))[0] == whole
    for cut in range(len(stream) + 1):
        frames, decoder = decode(stream[:cut], stream[cut:])
        assert frames == whole
        assert decoder.pending == 0


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=300)), max_size=12),
    st.binary(max_size=12),
    st.lists(st.integers(0, 4000), max_size=20),
)
def test_any_frames_in_any_pieces(frames: Frames, rest: bytes, cuts: list[int]) -> None:
    """The bytes of `rest` begin a frame that never ends, or a frame with a broken length."""
    stream = b"".join(frame(*found) for found in frames) + rest
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    once, decoder = decode(stream)
    pieces, other = decode(*(stream[start:stop] for start, stop in pairwise(edges)))
    assert once[: len(frames)] == frames
    assert pieces == once
    assert str(other.error) == str(decoder.error)
    assert other.pending == decoder.pending


# Sizes of commands and of trailing bytes, each repeated up to five times.
@given(st.lists(st.tuples(st.sampled_from([0, 1, 9]), st.sampled_from([0, 1, 300])), max_size=3), st.data())
def test_frames_of_one_size_in_a_row(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Frames of the same size have a fast path, which a cut between or inside the frames must not break."""
    frames = [
        (data.draw(st.binary(min_size=command, max_size=command)), bytes([number]) * trailing)
        for command, trailing in sizes
        for number in range(data.draw(st.integers(1, 5)))
    ]
    stream = b"".join(frame(*one) for one in frames)
    cut = data.draw(st.integers(0, len(stream)))
    assert decode(stream[:cut], stream[cut:])[0] == frames
    found, decoder = decode(stream + PING[:-1])
    assert (found, decoder.pending) == (frames, len(PING) - 1)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("0050280000000010", "frame of 5253120 bytes is over the limit of 5253116"),
        ("0050280100000010", "frame of 5253121 bytes is over the limit of 5253116"),
        ("0050df2000000010", "frame of 5300000 bytes is over the limit of 5253116"),
        ("7fffffff00000010", "frame of 2147483647 bytes is over the limit of 5253116"),
        ("ffffffff00000010", "frame of 4294967295 bytes is over the limit of 5253116"),
        ("00000000", "frame of 0 bytes has no room for its command size"),
        ("0000000000000009000000050812920100", "frame of 0 bytes has no room for its command size"),
        ("000000020000", "frame of 2 bytes has no room for its command size"),
        ("0000000400000005", "command of 5 bytes is beyond its frame of 4"),
        ("00000008ffffffff00000000", "command of 4294967295 bytes is beyond its frame of 8"),
    ],
)
def test_broken_lengths_end_the_decoder(data: str, error: str) -> None:
    broken = bytes.fromhex(data)
    for pieces in ([PING + broken], [PING, *(broken[at : at + 1] for at in range(len(broken)))]):
        frames, decoder = decode(*pieces)
        assert frames == [PING_FRAME], "frames before the broken one count"
        assert str(decoder.error) == error
        assert decoder.feed(PING) == []
        assert str(decoder.error) == error


@pytest.mark.parametrize(
    ("data", "pending"),
    [("005026d000000010", 8), ("0050", 2), ("0050280000000010"[:6], 3), ("0000000400000000"[:14], 7)],
)
def test_incomplete_frames_wait(data: str, pending: int) -> None:
    frames, decoder = decode(bytes.fromhex(data))
    assert frames == []
    assert decoder.error is None
    assert decoder.pending == pending


def test_empty_command_is_a_frame() -> None:
    """The parser refuses an empty command, not the decoder of frames."""
    assert decode(bytes.fromhex("0000000400000000"))[0] == [(b"", b"")]


def test_trailing_bytes_of_a_simple_command() -> None:
    frames, _ = decode(bytes.fromhex("0000000c00000005" + "0812920100" + "616263") + PING)
    assert frames == [(PING[8:], b"abc"), PING_FRAME]


def test_the_largest_frame_passes() -> None:
    assert MAX_FRAME_SIZE == 5253120
    largest = frame(b"", bytes(5253116 - 4))
    assert len(largest) == MAX_FRAME_SIZE
    for pieces in ([largest], [largest[:4], largest[4:]], [largest[:5_000_000], largest[5_000_000:]]):
        frames, decoder = decode(*pieces)
        assert decoder.error is None
        assert [len(trailing) for _, trailing in frames] == [5253112]


@pytest.mark.parametrize("size", [3, 4])
def test_too_big_a_frame_is_known_by_its_length_word(size: int) -> None:
    _, decoder = decode((5253117).to_bytes(4, "big")[:size])
    assert (decoder.error is not None) == (size == 4)


def test_too_big_a_frame_that_is_all_there() -> None:
    frames, decoder = decode(PING + frame(b"", bytes(5253117 - 4)) + PING)
    assert frames == [PING_FRAME]
    assert decoder.error is not None


def test_a_decoder_may_have_another_limit() -> None:
    decoder = FrameDecoder(max_frame_size=len(PING))
    assert decoder.feed(PING) == [PING_FRAME]
    assert decoder.feed(frame(PING[8:], b"x")) == []
    assert str(decoder.error) == "frame of 10 bytes is over the limit of 9"


@pytest.mark.timeout(15)
def test_a_big_frame_in_small_pieces() -> None:
    """A decoder that copied all earlier bytes for each piece would take minutes."""
    big = frame(PING[8:], bytes(5_000_000))
    frames, _ = decode(*(big[at : at + 64] for at in range(0, len(big), 64)))
    assert [len(trailing) for _, trailing in frames] == [5_000_000]


def test_memory_follows_what_arrived() -> None:
    tracemalloc.start()
    try:
        decoders = [FrameDecoder() for _ in range(100)]
        for decoder in decoders:
            assert decoder.feed(bytes.fromhex("005027fc" + "00000010") + bytes(1000)) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 4000, "a frame of 5 MB was announced, and 1 KB of it sent"


def test_results_are_bytes_of_their_own() -> None:
    """A view would change with the decoder's buffer."""
    for pieces in ([PING + b"\0"], [PING[:5], PING[5:] + b"\0"]):
        frames, _ = decode(*pieces)
        assert [(type(command), type(trailing)) for command, trailing in frames] == [(bytes, bytes)]


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_v22_reply_keeps_its_last_entry(cut: int) -> None:
    """PIP-429 draft: the last entry follows the command of GET_LAST_MESSAGE_ID_RESPONSE."""
    entry = next(golden.frame for golden in golden_entries() if golden.kind == "MESSAGE/batch")
    command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)
    command.getLastMessageIdResponse.request_id = 7
    command.getLastMessageIdResponse.last_message_id.ledgerId = 24
    command.getLastMessageIdResponse.last_message_id.entryId = 1
    raw = command.SerializeToString()
    assert raw.hex() == "081ef201080a0408181001" + "1007"
    data = (4 + len(raw) + len(entry)).to_bytes(4, "big") + len(raw).to_bytes(4, "big") + raw + entry
    assert decode(data[:cut], data[cut:])[0] == [(raw, entry)]
    parsed = BaseCommand()
    assert parse(raw, parsed) == COMMANDS[BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE]
