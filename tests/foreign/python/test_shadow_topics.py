"""Shadow topics (PIP-180): the official client reads a source's messages in its shadow."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin

SOURCE = "persistent://public/default/shadowed"
SHADOW = "persistent://public/default/seen-elsewhere"
PATH = "/admin/v2/persistent/public/default"


@pytest.mark.req("B-53")
def test_batches_and_chunks_have_the_ids_of_the_source(client: Any, admin: Admin) -> None:
    admin.call("PUT", f"{PATH}/shadowed")
    admin.call("PUT", f"{PATH}/seen-elsewhere", {"PULSAR.SHADOW_SOURCE": SOURCE})
    admin.call("PUT", f"{PATH}/shadowed/shadowTopics", [SHADOW])
    consumers = [
        client.subscribe(topic, "sub", initial_position=pulsar.InitialPosition.Earliest) for topic in (SOURCE, SHADOW)
    ]
    producer = client.create_producer(SOURCE, batching_enabled=True, batching_max_publish_delay_ms=60_000)
    for number in range(10):
        producer.send_async(b"%d" % number, None, properties={"n": str(number)})
    producer.flush()
    large = client.create_producer(SOURCE, chunking_enabled=True, batching_enabled=False, max_pending_messages=10)
    large.send(b"x" * 6_000_000)
    found = [[consumer.receive(timeout_millis=30_000) for _ in range(11)] for consumer in consumers]
    source, shadow = ([(m.message_id().serialize(), m.data(), m.properties()) for m in each] for each in found)
    assert [data for _, data, _ in source] == [*(b"%d" % number for number in range(10)), b"x" * 6_000_000]
    assert shadow == source
