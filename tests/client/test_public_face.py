"""The client's public members are those that applications use, and obey one rule.

What an object tells is a method, as in the official Python client; parts to call on (`client.admin`) and the fields of
values (MessageId, options) are attributes. A duration is seconds, a point in time milliseconds since the epoch.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

import pytest

from pulsarium.client import Client, Consumer, Message, Producer, RawReader, Reader, Receipt, TableView, Transaction

SHOWN: Mapping[type, str] = {
    Client: "aclose admin begin_transaction create_producer create_raw_reader create_reader create_table_view"
    " get_schema get_topic_partitions get_topics subscribe transaction",
    Producer: "abandon aclose flush is_connected last_sequence_id producer_name send send_nowait statistics submit"
    " topic topic_epoch",
    Consumer: "acknowledge acknowledge_cumulative acknowledge_index aclose batch_receive consumer_name"
    " get_last_message_ids has_reached_end_of_topic is_active negative_acknowledge pause receive reconsume_later"
    " redeliver_unacknowledged_messages resume seek seek_to_index statistics subscription_name topic unsubscribe",
    Reader: "aclose get_last_message_ids has_message_available read_next seek seek_to_index topic",
    RawReader: "aclose get_last_message_ids has_message_available read_next seek topic",
    TableView: "for_each for_each_and_listen listen refresh topic",
    Transaction: "abort commit id state",
    Receipt: "is_done result then wait",
    Message: "broker_metadata broker_publish_time data entry_metadata event_timestamp has_base64_encoded_key"
    " has_null_value has_partition_key index key_bytes message_id ordering_key partition_key producer_name properties"
    " publish_timestamp redelivery_count schema_version sequence_id topic_name value",
}


@pytest.mark.parametrize(("shown", "names"), SHOWN.items())
def test_a_class_shows_only_what_applications_use(shown: type, names: str) -> None:
    assert {name for name in vars(shown) if not name.startswith("_")} == set(names.split())


@pytest.mark.parametrize("shown", SHOWN)
def test_what_an_object_tells_is_a_method(shown: type) -> None:
    attributes = {name for name, member in vars(shown).items() if isinstance(member, property)}
    attributes |= {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(shown)))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    assert {name for name in attributes if not name.startswith("_")} == ({"admin"} if shown is Client else set())
