"""Fuzz target that splits bytes into frames and parses their commands.

The frames must be the same however the bytes are cut into pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from zlib import crc32

from pulsarium.proto.commands import COMMANDS, parse
from pulsarium.proto.errors import CommandError
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.proto.golden import golden_frames
from yardsticks.fuzz import mutations
from yardsticks.fuzz.oracle import Finding, watched
from yardsticks.fuzz.recorded import conversations
from yardsticks.fuzz.target import Target

LIMIT = 4096  # bytes of a frame, so few that small inputs reach the limit


class Frames(Target):
    """Frames of a connection."""

    name = "frames"
    fresh = 2000

    def run(self, data: bytes) -> None:
        with watched():
            whole = decoded([data])
            random = Random(crc32(data))
            cuts = sorted(random.randint(0, len(data)) for _ in range(5))
            pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            for cut in ([data[i : i + 1] for i in range(len(data))], pieces):
                if (other := decoded(cut)) != whole:
                    raise Finding("frames differ", f"{whole} as a whole, {other} in pieces")
            for command, trailing in whole[0]:
                understood(command, trailing)

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        if random.random() < 0.5:
            return mutations.any_bytes(data, random)
        frames, rest = cut(data)
        other = cut(random.choice(others))[0] if others else []

        def change(found: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
            return mutations.head(found[0], random), found[1]

        made = mutations.list_of(frames, other, random, change)
        return b"".join(frame(*each) for each in made) + (rest if random.random() < 0.5 else b"")

    def seeds(self) -> Iterable[bytes]:
        yield from (b"", b"\0\0\0\x04\0\0\0\0", b"\0\0\0\x03", b"\0\0\0\x04\0\0\0\x01", b"\x7f\xff\xff\xff")
        yield (LIMIT - 4).to_bytes(4, "big") + bytes(LIMIT - 4)
        yield (LIMIT - 3).to_bytes(4, "big") + bytes(LIMIT - 4)
        yield from (golden.frame for golden in golden_frames() if len(golden.frame) < LIMIT)
        for conversation in conversations():
            yield b"".join(data for _, data in conversation)[:2000]


def decoded(pieces: Iterable[bytes]) -> tuple[list[tuple[bytes, bytes]], str, int]:
    """Return the frames, the decoder's error, and the number of bytes of an incomplete frame."""
    decoder = FrameDecoder(LIMIT)
    frames = [found for piece in pieces for found in decoder.feed(piece)]
    return frames, str(decoder.error), decoder.pending


def cut(data: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the whole frames of an input, and the bytes behind them."""
    decoder = FrameDecoder()
    frames = decoder.feed(data)
    return frames, data[sum(8 + len(head) + len(trailing) for head, trailing in frames) :]


def understood(head: bytes, trailing: bytes) -> None:
    """Check that a frame is a command with its body, or that `parse` refuses the frame."""
    command = pb.BaseCommand()
    try:
        spec = parse(head, command, trailing)
    except CommandError:
        return
    if COMMANDS[command.type] is not spec or not command.HasField(spec.field):
        raise Finding("command without a body", repr(head))
