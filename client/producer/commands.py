"""Commands that open and close a producer."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from pulsarium.client.producer.options import ProducerOptions
from pulsarium.proto.generated import PulsarApi_pb2 as pb

ISOLATES_SINCE: Final = (3, 2)  # the release of Pulsar that needs no txn_enabled


def open_producer(topic: str, producer_id: int, name: str, options: ProducerOptions[Any]) -> pb.CommandProducer:
    """Return a PRODUCER command for a first opening, without a request id."""
    command = pb.CommandProducer(
        topic=topic,
        producer_id=producer_id,
        encrypted=bool(options.encryption_keys),
        user_provided_producer_name=options.producer_name is not None,
        producer_access_mode=options.access_mode.value,
        initial_subscription_name=options.initial_subscription_name,
        metadata=[pb.KeyValue(key=key, value=value) for key, value in options.properties.items()],
    )
    if name:
        command.producer_name = name
    if options.schema.info is not None:
        command.schema.CopyFrom(options.schema.info.to_proto())
    return command


def close_producer(producer_id: int, request_id: int) -> pb.BaseCommand:
    """Return CLOSE_PRODUCER."""
    close = pb.CommandCloseProducer(producer_id=producer_id, request_id=request_id)
    return pb.BaseCommand(type=pb.BaseCommand.CLOSE_PRODUCER, close_producer=close)


@cache
def must_enable_transactions(server_version: str) -> bool:
    """Return whether a broker shows uncommitted messages unless a producer of the topic was opened with txn_enabled."""
    release = re.match(r"Pulsar Server(\d+)\.(\d+)", server_version)
    return release is not None and (int(release[1]), int(release[2])) < ISOLATES_SINCE
