"""Name whom a command concerns, for the log and `pulsarium why`: topic, subscription, producer, consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

_NAMES = {
    "topic": "topic",
    "namespace": "namespace",
    "subscription": "subscription",
    "consumer_name": "consumer",
    "producer_name": "producer",
}


def concerned(consumers: Mapping[int, Consumer], command: int, body: Any) -> dict[str, object]:
    """Return the names in a client's command, and those of the consumer of the connection to which it refers."""
    found: dict[str, object] = {"command": COMMANDS[command].name}
    fields = body.DESCRIPTOR.fields_by_name
    consumer = consumers.get(body.consumer_id) if "consumer_id" in fields else None
    if consumer is not None:
        subscription = consumer.subscription
        found |= {"topic": str(subscription.topic.name), "subscription": subscription.name, "consumer": consumer.name}
    for field, name in _NAMES.items():
        if field in fields and (text := _text(getattr(body, field))):
            found[name] = _full(text) if name == "topic" else text
    if "txnid_most_bits" in fields and body.HasField("txnid_most_bits"):
        found["transaction"] = str(TxnId(body.txnid_most_bits, body.txnid_least_bits))
    return found


def _text(value: Any) -> str:
    """Return the text of a field. END_TXN_ON_SUBSCRIPTION names topic and subscription in one field."""
    if isinstance(value, pb.Subscription):
        return f"{text_of(value.subscription)} of {text_of(value.topic)}"
    return text_of(value) if isinstance(value, str | bytes) else ""


def _full(topic: str) -> str:
    try:
        return str(TopicName.parse(topic))
    except InvalidTopicName:
        return topic
