"""Helpers for the tests of session."""

from __future__ import annotations

import pytest

from pulsarium.broker.session.session import Session, sessions_of
from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Bed, Type, frame_of


def used_much(bed: Bed) -> None:
    """Let the connections so far have used the loop more than a later one will, however long the machine stops."""
    for session in sessions_of(bed.broker):
        session.gate.use.seconds += 60


class Full:
    """A socket without room: its session's bytes wait until the test takes them."""

    def __init__(self, bed: Bed) -> None:
        self.session = Session(bed.broker, "/full", self)
        self._turn = bed.broker.turn
        self._decoder = FrameDecoder()

    def wake(self) -> None:
        """Ignore that bytes wait, because the test takes them."""

    def give(self, *frames: bytes) -> None:
        self.session.receive(b"".join(frames))
        self._turn.finish()

    def take(self) -> list[int]:
        """Return the types of the waiting commands, and give the session room again."""
        found = [pb.BaseCommand.FromString(head).type for head, _ in self._decoder.feed(self.session.outgoing.take())]
        self.session.drained()
        self._turn.finish()
        return list(found)


@pytest.fixture
async def full(bed: Bed) -> Full:
    made = Full(bed)
    made.give(frame_of(Type.CONNECT, client_version="full", protocol_version=21))
    assert made.take() == [Type.CONNECTED]
    return made
