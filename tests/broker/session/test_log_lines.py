"""The log at INFO: one line for each connection, producer, consumer and refusal, and none for a message."""

from __future__ import annotations

import logging

import pytest

from tests.broker.wire import TOPIC, Bed, Exclusive, Type, plain


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log messages since the last call, without addresses."""
    said = [" ".join(word for word in record.getMessage().split() if "peer=" not in word) for record in caplog.records]
    caplog.clear()
    return said


async def test_one_line_each(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pulsarium")
    wire = await bed.connect(client_version="a client")
    assert lines(caplog) == ['connection opened client="a client" protocol=21']
    await wire.producer(producer_name="p")
    assert lines(caplog) == [f"producer opened producer=p topic={TOPIC}"]
    await wire.subscribe(consumer_name="c", type=Exclusive)
    assert lines(caplog) == [f"consumer opened consumer=c topic={TOPIC} subscription=sub type=Exclusive"]

    await wire.flow()
    position, *_ = await wire.publish(*(plain(b"%d" % number) for number in range(50)))
    await wire.payloads(50)
    await wire.ack(position)
    assert lines(caplog) == []

    await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, producer_name="p")
    (line,) = lines(caplog)
    assert line.startswith(f'request refused command=PRODUCER topic={TOPIC} producer=p held_by="p at ')
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert lines(caplog) == [f"producer closed producer=p topic={TOPIC}"]
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert lines(caplog) == [f"consumer closed consumer=c topic={TOPIC}"]
    await wire.aclose()
    await bed.connect(client_version="another")
    assert lines(caplog) == ["connection closed", "connection opened client=another protocol=21"]


async def test_the_log_says_why_the_broker_closed_a_connection(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    wire = await bed.connect()
    caplog.set_level(logging.INFO, "pulsarium")
    caplog.clear()
    await wire.send(Type.FLOW, consumer_id=0, messagePermits=0)
    await wire.closed()
    assert lines(caplog) == ['closing connection reason="FLOW of 0 permits"']
