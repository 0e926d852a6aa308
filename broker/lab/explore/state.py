"""Describe what a choice would hit, for coverage."""

from __future__ import annotations

from pulsarium.broker.lab.faults.tapped import TappedFrame
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def state_of(frame: TappedFrame) -> str:
    """Return the state of the producer, the subscription or the transaction that a frame concerns."""
    words = []
    consumer, producer = frame.open_consumer, frame.open_producer
    if consumer is not None:
        others = len(consumer.subscription.consumers) > 1
        words += [pb.CommandSubscribe.SubType.Name(consumer.type), "with others" if others else "alone"]
        if frame.name == "MESSAGE" and frame.body.redelivery_count:
            words.append("redelivered")
        elif frame.name == "ACK":
            words.append(pb.CommandAck.AckType.Name(frame.body.ack_type).lower())
        elif frame.name != "MESSAGE" and consumer.unacked:
            words.append("with unacknowledged messages")
    if producer is not None:
        words.append("with consumers" if producer.topic.subscriptions else "without subscription")
    if "txnid_least_bits" in frame.body.DESCRIPTOR.fields_by_name and frame.body.HasField("txnid_least_bits"):
        words.append("in a transaction")
    return ", ".join(words)
