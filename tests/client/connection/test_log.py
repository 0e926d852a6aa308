"""Log lines about connections: a reader of the log sees a broker go and come back."""

from __future__ import annotations

import logging

import anyio
import pytest
import trio.testing
from trio.testing import MockClock

from pulsarium.client import AuthenticationToken
from pulsarium.client.connection.waiting import LONGEST, shortened
from pulsarium.client.errors import ProducerBusy, TopicNotFound
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.consumer.started import started
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import TOPIC, URL, error_answer, playing
from tests.client.peer import Type


def said(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    assert all(record.name.startswith("pulsarium.client.") for record in caplog.records)
    return [record.getMessage() for record in caplog.records if record.levelno == level]


@on_both
async def test_a_connection_that_is_lost_and_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pulsarium.client")
    async with playing() as (played, client), client.create_producer(TOPIC) as producer:
        assert said(caplog, logging.INFO) == [
            "connected to a:6650, broker played",
            f"{TOPIC}: served by a:6650",
            f"producer of {TOPIC}: open on a:6650",
        ]
        caplog.clear()
        await played.connections[0].close()
        await played.sent(Type.PRODUCER, 2)
        await producer.send(b"x")
        reason = "connection to a:6650 lost: the broker closed the connection"
        assert said(caplog, logging.WARNING) == [reason]
        assert said(caplog, logging.INFO) == [
            f"producer of {TOPIC}: {reason}; reconnecting in 0.1 s",
            "connected to a:6650, broker played",
            f"{TOPIC}: served by a:6650",
            f"producer of {TOPIC}: reconnected to a:6650 after 0.1 s",
        ]


@on_both
async def test_a_final_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pulsarium.client")
    async with playing() as (played, client), client.subscribe(TOPIC, "s") as consumer:
        played.on[Type.SUBSCRIBE] = error_answer(pb.TopicNotFound, "gone\nERROR forged")
        await played.connections[0].say(Type.CLOSE_CONSUMER, consumer_id=0, request_id=1)
        with pytest.raises(TopicNotFound):
            await consumer.receive()
        assert f"consumer of {TOPIC}: the broker closed the consumer; reconnecting in 0.1 s" in caplog.messages
        assert said(caplog, logging.WARNING) == [f"consumer of {TOPIC}: given up: gone\\nERROR forged"]


@on_both
async def test_a_client_that_is_closed_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pulsarium.client")
    async with (
        playing(authentication=AuthenticationToken("geheim")) as (_, client),
        client.create_producer(TOPIC),
        client.subscribe(TOPIC, "s"),
    ):
        pass
    assert said(caplog, logging.WARNING) == []
    assert "geheim" not in caplog.text


async def test_a_broker_of_ours_that_goes_and_comes(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pulsarium.client")
    async with started() as (inside, client), client.subscribe("t", "s"):
        await inside.cut()
        await anyio.sleep(1)
        await trio.testing.wait_all_tasks_blocked()
        lines = [line for line in caplog.messages if "consumer of persistent://public/default/t" in line]
        assert "; reconnecting in 0.1 s" in lines[1]
        assert "reconnected to here:6650 after" in lines[2]


def test_foreign_texts_neither_forge_lines_nor_fill_the_log() -> None:
    assert shortened(ProducerBusy("a\nb")) == "a\\nb"
    assert shortened("x" * (LONGEST + 1)) == "x" * LONGEST + f"...({LONGEST + 1} characters)"
    assert shortened(URL) == URL
