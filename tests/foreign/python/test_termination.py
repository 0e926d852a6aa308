"""Terminated topics, which accept no more messages."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest

from ..admin import Admin
from .traffic import assert_nothing_more, payloads, receive, send_all


@pytest.mark.req("B-33", "W-10")
def test_messages_of_a_terminated_topic_are_still_read(client: Any, admin: Admin, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    sent = payloads(20)
    ids = send_all(producer, sent)
    last = admin.terminate(topic)
    assert (last["ledgerId"], last["entryId"]) == (ids[-1].ledger_id(), ids[-1].entry_id())
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
    messages = receive(consumer, 20)
    assert [message.data() for message in messages] == sent
    for message in messages:
        consumer.acknowledge(message)
    assert_nothing_more(consumer)  # the connection stays open without messages
    assert consumer.is_connected()
    again = client.subscribe(topic, "late", initial_position=pulsar.InitialPosition.Earliest)
    assert [message.data() for message in receive(again, 20)] == sent
    assert admin.terminate(topic) == last
