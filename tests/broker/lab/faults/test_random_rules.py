"""Random rules on random traffic: the broker stays up, and everything works again once the rules are gone."""

from __future__ import annotations

import gc
import logging
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import (
    Action,
    Answer,
    Close,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    FaultError,
    Observe,
    Reorder,
    Stall,
    Truncate,
    WrongRequestId,
)
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Bed, Shared, Type, frame_of, plain, serving

ACTIONS: list[st.SearchStrategy[Action]] = [
    st.builds(Answer, st.sampled_from(pb.ServerError.keys())),
    st.just(Drop()),
    st.builds(Delay, st.sampled_from([0.001, 0.5, 40.0])),
    st.builds(Duplicate, st.integers(1, 3)),
    st.just(Reorder()),
    st.builds(Corrupt, st.sampled_from(["checksum", "byte"])),
    st.builds(Truncate, st.integers(0, 40)),
    st.just(Close()),
    st.just(Stall()),
    st.just(WrongRequestId()),
    st.just(Observe()),
]
COMMON = ["*", "SEND", "SEND_RECEIPT", "MESSAGE", "FLOW", "ACK", "PING", "PONG", "SUBSCRIBE", "SUCCESS", "CONNECT"]
RULES = st.tuples(
    st.one_of(ACTIONS),
    st.one_of(st.sampled_from(COMMON), st.sampled_from([spec.name for spec in COMMANDS.values()])),
    st.fixed_dictionaries(
        {
            "stage": st.sampled_from(["before", "after"]),
            "count": st.sampled_from([1, 2, None]),
            "skip": st.integers(0, 2),
            "topic": st.sampled_from(["*", "t", "no*"]),
            "probability": st.sampled_from([1.0, 0.5]),
            "seed": st.integers(0, 9),
        }
    ),
)
TRAFFIC = st.sampled_from(
    ["connect", "producer", "send", "batch", "subscribe", "flow", "ack", "ping", "lookup", "leave"]
)
GARBAGE = st.one_of(st.binary(max_size=4), st.builds(lambda data: b"\x08" + data, st.binary(max_size=4)))
STEPS = st.lists(
    st.one_of(RULES, GARBAGE, TRAFFIC, TRAFFIC, TRAFFIC, st.sampled_from(["wait", "wait long", "remove"])), max_size=30
)


class Traffic:
    """A client with one connection, which sends commands and ignores the answers."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.wire = bed.dial()

    async def do(self, what: str | bytes) -> None:
        frames: dict[str, bytes] = {
            "connect": frame_of(Type.CONNECT, client_version="x", protocol_version=21),
            "producer": frame_of(Type.PRODUCER, topic=TOPIC, producer_id=0, request_id=1),
            "send": frame_of(Type.SEND, plain(b"a"), producer_id=0, sequence_id=0),
            "batch": b"".join(
                frame_of(Type.SEND, plain(b"b"), producer_id=0, sequence_id=number) for number in range(1, 6)
            ),
            "subscribe": frame_of(
                Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=0, request_id=2
            ),
            "flow": frame_of(Type.FLOW, consumer_id=0, messagePermits=10),
            "ack": frame_of(Type.ACK, consumer_id=0, ack_type=0, request_id=3),
            "ping": frame_of(Type.PING),
            "lookup": frame_of(Type.LOOKUP, topic=TOPIC, request_id=4),
        }
        if what == "leave":
            await self.wire.aclose()
            self.wire = self.bed.dial()
        else:
            try:
                await self.wire.write(frame(what) if isinstance(what, bytes) else frames[what])
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.wire = self.bed.dial()
        await trio.lowlevel.checkpoint()


async def works(bed: Bed) -> None:
    """Check that a new client can publish and consume."""
    wire = await bed.connect()
    await wire.producer(producer_id=5)
    await wire.subscribe(name="after", consumer_id=5)
    await wire.flow(consumer_id=5)
    await wire.publish(plain(b"works"), producer_id=5)
    while (await wire.message()).payload != b"works":
        pass
    await wire.aclose()


async def program(steps: list[Any]) -> None:
    async with serving() as bed:
        lab = bed.broker.cluster.attached(Lab)
        traffic = Traffic(bed)
        for step in ["connect", "producer", "subscribe", *steps]:
            if isinstance(step, tuple):
                action, command, options = step
                try:
                    lab.faults.add(action, command, **options)
                except FaultError:
                    continue
            elif step == "remove":
                if lab.faults.rules:
                    lab.faults.rules[0].remove()
            elif step in ("wait", "wait long"):
                await trio.sleep(0.2 if step == "wait" else 70)
            else:
                await traffic.do(step)
        lab.faults.clear()
        assert not lab.taps.busy
        assert all(session.outgoing.tap is None for session in sessions_of(bed.broker))
        assert all(session.may_read for session in sessions_of(bed.broker))
        await works(bed)
        tasks = trio.lowlevel.current_statistics().tasks_living
        bed.broker.close_sessions()
        await trio.sleep(2)
        assert trio.lowlevel.current_statistics().tasks_living <= tasks
        assert lab.clock.next_in is None  # no timer is left


@pytest.fixture
def no_garbage() -> None:
    """Let what earlier tests left log its errors before the test."""
    gc.collect()


@pytest.mark.heavy
@pytest.mark.usefixtures("no_garbage")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_random_rules_cause_no_error_in_the_broker(caplog: pytest.LogCaptureFixture, steps: list[Any]) -> None:
    caplog.clear()
    trio.run(program, steps, clock=MockClock(autojump_threshold=0))
    gc.collect()  # makes coroutines that were not awaited, and generators that did not end, log their errors now
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
