"""Requests that the broker must refuse: the code and the text of the ERROR."""

from __future__ import annotations

from typing import Any

from tests.broker.wire import TOPIC, Exclusive, Type, Wire

JAVA = "org.apache.pulsar.broker.service.BrokerServiceException$"  # how errors of PRODUCER begin


async def refused_producer(wire: Wire, producer_id: int = 0, topic: str = TOPIC, **fields: Any) -> tuple[int, str]:
    return await wire.refused(Type.PRODUCER, topic=topic, producer_id=producer_id, **fields)


async def refused_consumer(
    wire: Wire, name: str = "sub", type: int = Exclusive, consumer_id: int = 0, topic: str = TOPIC, **fields: Any
) -> tuple[int, str]:
    return await wire.refused(
        Type.SUBSCRIBE, topic=topic, subscription=name, subType=type, consumer_id=consumer_id, **fields
    )
