"""Helpers for the tests of limits."""

from __future__ import annotations

from typing import Any

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Bed

NO_MORE_PRODUCERS = (pb.ProducerBusy, f"Topic '{TOPIC}' reached max producers limit")


def namespace_says(bed: Bed, **policies: Any) -> None:
    metadata = bed.broker.metadata
    metadata.put_namespace("public/default", {**metadata.namespaces["public/default"], **policies})
