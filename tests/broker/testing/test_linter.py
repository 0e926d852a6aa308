"""A linter of a test, on a capture that the test plays."""

from __future__ import annotations

from pulsarium.broker.testing import CaptureLinter
from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb

CONNECT = pb.BaseCommand(
    type=pb.BaseCommand.CONNECT, connect=pb.CommandConnect(client_version="careless", protocol_version=19)
)
LOOKUP = pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=pb.CommandLookupTopic(topic="t", request_id=7))


class Played:
    """A capture of one connection, whose client says what the test wants."""

    def __init__(self) -> None:
        self.said: list[CaptureRecord] = []

    def start(self) -> Played:
        self._add(EventKind.OPENED)
        return self

    def stop(self) -> None: ...

    def records(self) -> list[CaptureRecord]:
        return self.said

    def say(self, command: pb.BaseCommand) -> None:
        self._add(EventKind.FRAME, frame(command.SerializeToString()))

    def _add(self, kind: EventKind, data: bytes = b"") -> None:
        self.said.append(CaptureRecord(kind, 1, Direction.CLIENT, len(self.said) + 1, 0, data, len(data), {}))


def test_cleared_mistakes_of_a_client_are_forgotten() -> None:
    played = Played()
    linter = CaptureLinter(played)
    linter.start()
    for command in (CONNECT, LOOKUP, LOOKUP):
        played.say(command)
    assert [each.rule for each in linter.violations()].count("request-id-reused") == 1
    linter.clear()
    assert linter.violations() == []
    played.say(LOOKUP)
    assert [each.rule for each in linter.violations()].count("request-id-reused") == 1


def test_a_linter_that_runs_is_not_started_again() -> None:
    played = Played()
    linter = CaptureLinter(played)
    linter.start()
    linter.start()
    assert len(played.said) == 1
    linter.stop()
    linter.start()
    assert len(played.said) == 2
