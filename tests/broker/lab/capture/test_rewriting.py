"""Rewriting of a stream by a proxy: URLs of brokers change, and nothing else does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.lab.capture.rewriting import Rewriter
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type, command, frame_of, plain

OTHERS = [
    frame_of(Type.CONNECTED, server_version="Pulsar", protocol_version=21),
    frame_of(Type.MESSAGE, plain(b"pulsar://inside:6650"), consumer_id=1, message_id={"ledgerId": 3, "entryId": 4}),
    frame_of(Type.ERROR, request_id=1, error=pb.ServiceNotReady, message="go to pulsar://other:6650"),
    frame_of(Type.LOOKUP_RESPONSE, request_id=1, response=2, error=pb.ServiceNotReady),
    frame_of(Type.CLOSE_CONSUMER, consumer_id=1, request_id=2),
    frame(b"\x08\xff\x7f"),  # no command
    frame(b""),
    frame(b"\x08"),
]
LOOKUP = command(
    Type.LOOKUP_RESPONSE,
    request_id=7,
    response=1,
    authoritative=True,
    brokerServiceUrl="pulsar://b1:6650",
    brokerServiceUrlTls="pulsar+ssl://b1:6651",
)
CLOSE = command(Type.CLOSE_PRODUCER, producer_id=1, request_id=2, assignedBrokerServiceUrl="pulsar://b2:6650")
URLS = [frame(each.SerializeToString()) for each in (LOOKUP, CLOSE)]


def through(url: str) -> str:
    return url.replace("pulsar://b", "pulsar://proxy")


def pass_all(passing: Rewriter, data: bytes, piece: int) -> tuple[list[bytes], bytes]:
    frames: list[bytes] = []
    out = b""
    for start in range(0, len(data), piece):
        came, going = passing.feed(data[start : start + piece])
        frames += came
        out += going
    return frames, out + passing.end()


STREAMS = st.lists(st.sampled_from([*OTHERS, *URLS]), max_size=8)


@given(STREAMS, st.integers(1, 200), st.binary(max_size=20), st.booleans())
def test_frames_without_a_broker_url_pass_unchanged(frames: list[bytes], piece: int, rest: bytes, broker: bool) -> None:
    if broker:
        frames = [each for each in frames if each not in URLS]
    data = b"".join(frames) + rest
    seen, out = pass_all(Rewriter(through if broker else None), data, piece)
    assert out == data
    assert seen[: len(frames)] == frames


@given(STREAMS, st.integers(1, 200))
def test_urls_of_brokers_lead_through_the_proxy(frames: list[bytes], piece: int) -> None:
    seen, out = pass_all(Rewriter(through), b"".join(frames), piece)
    assert seen == frames  # as the broker sent them
    again, _ = Rewriter().feed(out)
    assert [each == was for each, was in zip(again, frames, strict=True)] == [each not in URLS for each in frames]
    for each, was in zip(again, frames, strict=True):
        if was == URLS[0]:
            told = pb.BaseCommand.FromString(each[8:]).lookupTopicResponse
            assert told.brokerServiceUrl == "pulsar://proxy1:6650"
            told.brokerServiceUrl = "pulsar://b1:6650"
            assert told == LOOKUP.lookupTopicResponse
        if was == URLS[1]:
            closed = pb.BaseCommand.FromString(each[8:]).close_producer
            assert closed.assignedBrokerServiceUrl == "pulsar://proxy2:6650"


def test_clients_that_stay_on_the_service_url_are_told_the_true_one() -> None:
    """Clients put the broker's true URL into CONNECT.proxy_to_broker_url."""
    answer = pb.BaseCommand()
    answer.CopyFrom(LOOKUP)
    answer.lookupTopicResponse.proxy_through_service_url = True
    data = frame(answer.SerializeToString())
    assert Rewriter(through).feed(data) == ([data], data)


def test_every_command_with_a_url_of_a_broker_is_looked_at() -> None:
    """URLs in nested messages are rewritten too. TLS URLs stay, because clients of the proxy do not follow them."""
    scalable = pb.BaseCommand(type=Type.SCALABLE_TOPIC_UPDATE)
    dag = getattr(scalable, COMMANDS[Type.SCALABLE_TOPIC_UPDATE].field).dag
    dag.controller_broker_url = "pulsar://b3:6650"
    dag.segment_brokers.add(segment_id=1, broker_url="pulsar://b4:6650", broker_url_tls="pulsar+ssl://b4:6651")
    _, out = Rewriter(through).feed(frame(scalable.SerializePartialToString()))
    assert b"pulsar://proxy3:6650" in out
    assert b"pulsar://proxy4:6650" in out
    assert b"pulsar+ssl://b4:6651" in out


def test_bytes_that_are_no_frame_pass_with_all_bytes_behind_them() -> None:
    passing = Rewriter(through)
    garbage = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    assert passing.feed(garbage) == ([garbage], garbage)
    assert passing.feed(URLS[0]) == ([], URLS[0])
