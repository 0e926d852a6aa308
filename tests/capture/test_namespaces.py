"""The records of one namespace in a capture of several."""

from __future__ import annotations

from pulsarium.capture.file import CaptureRecord, EventKind
from pulsarium.capture.namespaces import connections_of, topics_of
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb

CONNECT = frame(
    pb.BaseCommand(
        type=pb.BaseCommand.CONNECT, connect=pb.CommandConnect(client_version="c", protocol_version=19)
    ).SerializeToString()
)


def lookup(topic: str) -> bytes:
    body = pb.CommandLookupTopic(topic=topic, request_id=1)
    return frame(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=body).SerializeToString())


def talk(connection: int, *topics: str) -> list[CaptureRecord]:
    """Return a connection with its CONNECT and a LOOKUP of each topic."""
    frames = [(EventKind.OPENED, b""), *((EventKind.FRAME, data) for data in (CONNECT, *map(lookup, topics)))]
    return [CaptureRecord(kind, connection, Direction.CLIENT, 1, 1, data, len(data), {}) for kind, data in frames]


def test_the_connections_of_a_namespace_are_whole() -> None:
    both, other, none = talk(1, "public/mine/t", "public/other/t"), talk(2, "public/other/t"), talk(3)
    assert list(connections_of([*other, *both, *none], "public/mine")) == both


def test_the_topics_of_a_namespace_are_without_frames_of_others() -> None:
    both, other = talk(1, "public/mine/t", "public/other/t", "not/a/valid/topic/name"), talk(2, "public/other/t")
    assert list(topics_of([*both, *other], "public/mine")) == both[:3]
